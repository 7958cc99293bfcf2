"""`root` and `fsolve`, with the arguments and results of `scipy.optimize`."""

from __future__ import annotations

from typing import Any

import numpy as np

import jitney as jt

from . import common
from .common import Function, refuse
from .fitting import levenberg_marquardt
from .results import OptimizeResult

_EPS = float(np.finfo(np.float64).eps)
_OPTIONS: dict[str, dict[str, Any]] = {
    "hybr": {"xtol": 1.49012e-08, "maxfev": None, "factor": 100.0},
    "lm": {"ftol": 1.49012e-08, "xtol": 1.49012e-08, "gtol": 0.0, "maxiter": None},
    "broyden1": {"fatol": _EPS ** (1 / 3), "maxiter": None, "alpha": None},
}
_TOLERANCE = {"hybr": "xtol", "lm": "xtol", "broyden1": "fatol"}
_MESSAGES = {
    1: "The solution converged.",
    2: "The number of calls to function has reached its limit.",
    4: "The iteration is not making good progress, as measured by the \n improvement from the last "
    "five Jacobian evaluations.",
    5: "The iteration is not making good progress, as measured by the \n improvement from the last "
    "ten iterations.",
}


def root(
    fun: Function,
    x0: Any,
    args: Any = (),
    method: str = "hybr",
    jac: Any = None,
    tol: float | None = None,
    options: dict[str, Any] | None = None,
) -> OptimizeResult:
    """`scipy.optimize.root`: the x near x0 where `fun(x, *args)`, a vector for a vector, is 0.

    Methods are "hybr" (Newton's steps within a radius, after Powell), "lm" (Levenberg and Marquardt's),
    and "broyden1", which makes no Jacobian. Jacobians are exact; `jac` is a function that gives
    them. Options are SciPy's, by method: `xtol`, `maxfev`, `factor`, `fatol`, `maxiter`, ...

    The result has `x`, `fun`, `nfev`, `success`, `status`, `message`. `x` is a function of `args` and of
    what `fun` closes over, by the implicit function theorem.

    Raises jt.errors.ArgumentError for unknown methods and options and for shapes that do not fit.

    >>> res = jt.solve.root(lambda x, a: np.array([x[0] + x[1] - a, x[0] - x[1]]), [0.0, 0.0], (4.0,))
    >>> np.round(res.x, 6), res.message
    (array([2., 2.]), 'The solution converged.')
    """
    common.function_of(fun, "fun", "a vector")
    common.choose("method", method, _OPTIONS, "root")
    chosen = common.only(options, _OPTIONS[method], f"root with method={method!r}")
    if tol is not None:
        chosen[_TOLERANCE[method]] = tol
    return OptimizeResult(
        _MESSAGES, **_root(fun, common.start(x0), common.arguments(args), method, jac, chosen)
    )


def fsolve(
    func: Function,
    x0: Any,
    args: Any = (),
    fprime: Any = None,
    xtol: float = 1.49012e-08,
    maxfev: int = 0,
) -> Any:
    """`scipy.optimize.fsolve`: the x of `root`.

    >>> np.round(jt.solve.fsolve(lambda x: x**2 - 2, [1.0]), 6)
    array([1.414214])
    """
    return root(func, x0, args, jac=fprime, options={"xtol": xtol, "maxfev": maxfev or None}).x


@jt.jit(static_argnames=("method", "jac"))
def _root(fun: Function, x0: Any, args: Any, method: str, jac: Any, options: Any) -> dict[str, Any]:
    def value(x: Any) -> Any:
        f = fun(x, *args)
        f = jt.stack(f) if isinstance(f, (list, tuple)) else jt.asarray(f)
        f = jt.reshape(f, (-1,)) if f.ndim == 0 else f
        if f.shape != x.shape:
            refuse(
                f"fun gives shape {f.shape}, and x has {x.shape}",
                "give as many equations as unknowns; least_squares takes more.",
            )
        return f.astype(x.dtype)

    def jacobian(x: Any) -> Any:
        return jt.asarray(jac(x, *args)) if callable(jac) else jt.jacfwd(value)(x)

    found = _METHODS[method](value, jacobian, x0, options)
    x = jt.implicit(value, found.pop("x"), common.dense_solve)
    return common.numbers({"x": x, "fun": value(x), **found, "success": found["status"] == 1})


def _hybrid(value: Function, jacobian: Function, x0: Any, options: Any) -> dict[str, Any]:
    """Steps between Newton's and the gradient's, within a radius that follows what they achieve."""
    n, factor, xtol = x0.size, options["factor"], options["xtol"]
    most = 100 * (n + 1) if options["maxfev"] is None else options["maxfev"]

    def body(carry: Any) -> Any:
        x, f, j, scale, radius, successes, failures, slow, nfev, njev, _ = carry
        size = jt.linalg.norm(f)
        p, predicted = _dogleg(j / scale, f, radius)
        length = jt.linalg.norm(p)
        radius = jt.where(njev + successes + failures == 1, np.minimum(radius, length), radius)
        trial = x + p / scale
        f_new = value(trial)
        size_new = jt.linalg.norm(f_new)
        gained = jt.where(size_new < size, 1 - (size_new / size) ** 2, -1.0)
        ratio = jt.where(predicted > 0, gained / jt.where(predicted > 0, predicted, 1.0), 0.0)
        failed = ~(ratio >= 0.1)
        failures = jt.where(failed, failures + 1, 0)
        successes = jt.where(failed, 0, successes + 1)
        grown = jt.where((ratio >= 0.5) | (successes > 1), np.maximum(radius, 2 * length), radius)
        grown = jt.where(np.abs(ratio - 1) <= 0.1, 2 * length, grown)
        radius = jt.where(failed, 0.5 * radius, grown)
        accepted = ratio >= 1e-4
        slow = jt.where(accepted & (gained >= 0.002), 0, slow + 1)
        x = jt.where(accepted, trial, x)
        f = jt.where(accepted, f_new, f)
        status = jt.where(nfev + 1 >= most, 2, jt.where(slow >= 10, 5, 0))
        near = np.minimum(radius, length) <= xtol * jt.linalg.norm(scale * x)
        status = jt.where(near | (f == 0).all(), 1, status)
        more = accepted & (status == 0)
        j = jt.cond(more, lambda: jacobian(x), lambda: j)
        scale = np.maximum(scale, _column_sizes(j))
        njev = njev + jt.where(more, 1, 0)
        return x, f, j, scale, radius, successes, failures, slow, nfev + 1, njev, status

    f, j = value(x0), jacobian(x0)
    scale = _column_sizes(j)
    scale = jt.where(scale == 0, 1.0, scale)
    radius = factor * jt.linalg.norm(scale * x0)
    radius = jt.where(radius == 0, factor, radius)
    status = jt.where((f == 0).all(), 1, 0)
    carry = (x0, f, j, scale, radius, 0, 0, 0, 1, 1, status)
    x, *_, nfev, njev, status = jt.while_loop(lambda c: c[-1] == 0, body, carry)
    return {"x": x, "nfev": nfev, "njev": njev, "status": status}


def _column_sizes(j: Any) -> Any:
    return np.sqrt(jt.sum(j * j, axis=0))


def _dogleg(j: Any, f: Any, radius: Any) -> tuple[Any, Any]:
    """The step within the radius, and which part of |f|**2 it is expected to take away."""
    lu, piv = jt.linalg.lu_factor(j)
    each = np.arange(f.size)
    pivots = lu[each, each]
    largest = np.max(np.abs(pivots))
    least = np.finfo(lu.dtype).eps * jt.where(largest > 0, largest, 1.0)
    lu[each, each] = jt.where(np.abs(pivots) < least, least, pivots)  # a singular one is no error
    newton = -jt.linalg.lu_solve((lu, piv), f)
    g = f @ j
    jg = j @ g
    g_size = jt.linalg.norm(g)
    bend = jt.where(g_size > 0, (g @ g) / np.maximum(jg @ jg, 1e-300), 0.0)
    cauchy = -bend * g
    cauchy_size = bend * g_size
    usable = np.isfinite(newton).all()
    newton = jt.where(usable, newton, cauchy)
    short = cauchy * np.minimum(1.0, radius / np.maximum(cauchy_size, 1e-300))
    way = newton - cauchy
    a, b = way @ way, cauchy @ way
    c = np.maximum(radius * radius - cauchy_size * cauchy_size, 0.0)
    part = c / np.maximum(b + np.sqrt(np.maximum(b * b + a * c, 0.0)), 1e-300)
    p = jt.where(cauchy_size >= radius, short, cauchy + np.minimum(part, 1.0) * way)
    p = jt.where(usable & (jt.linalg.norm(newton) <= radius), newton, p)
    left = f + j @ p
    return p, 1 - (left @ left) / np.maximum(f @ f, 1e-300)


def _marquardt(value: Function, jacobian: Function, x0: Any, options: Any) -> dict[str, Any]:
    most = 100 * (x0.size + 1) if options["maxiter"] is None else options["maxiter"]
    tolerances = options["ftol"], options["xtol"], options["gtol"]
    found = levenberg_marquardt(lambda x: (value(x), jacobian(x)), x0, tolerances, most)
    x, _, _, status, nfev, njev = found
    f = value(x)
    solved = jt.linalg.norm(f) <= np.sqrt(options["xtol"]) * (1 + jt.linalg.norm(x))
    status = jt.where(status == 0, 2, jt.where(solved, 1, 4))
    return {"x": x, "nfev": nfev, "njev": njev, "status": status}


def _broyden(value: Function, jacobian: Function, x0: Any, options: Any) -> dict[str, Any]:
    """Broyden's good update of the inverse Jacobian, with steps that are halved until f shrinks. If it
    does not, the full step is taken: the update learns of it."""
    n, fatol = x0.size, options["fatol"]
    most = 100 * (n + 1) if options["maxiter"] is None else options["maxiter"]

    def shorter(carry: Any) -> Any:
        x, p, size, a, _, k = carry
        return x, p, size, a * 0.5, value(x + 0.5 * a * p), k + 1

    def too_long(carry: Any) -> Any:
        _, _, size, a, f, k = carry
        new = jt.linalg.norm(f)
        return ~(new <= (1 - 1e-4 * a) * size) & (k < 7)

    def body(carry: Any) -> Any:
        x, f, inverse, nit, nfev, _ = carry
        p = -(inverse @ f)
        one = jt.ones_like(x[0])
        full = value(x + p)
        state = (x, p, jt.linalg.norm(f), one, full, 0)
        state = jt.while_loop(too_long, shorter, state)
        *_, a, f_new, tries = state
        a = jt.where(too_long((*state[:5], 0)), 1.0, a)
        f_new = jt.where(a == 1, full, f_new)
        s, y = a * p, f_new - f
        by = inverse @ y
        sb = s @ inverse
        bottom = sb @ y
        inverse = inverse + (bottom != 0) * jt.outer(
            (s - by) / jt.where(bottom == 0, 1.0, bottom), sb
        )
        done = np.max(np.abs(f_new)) <= fatol
        lost = ~np.isfinite(f_new).all()
        status = jt.where(done, 1, jt.where(lost | (nit + 1 >= most), 2, 0))
        return x + s, f_new, inverse, nit + 1, nfev + 1 + tries, status

    f = value(x0)
    size = jt.linalg.norm(f)
    alpha = options["alpha"]
    if alpha is None:
        alpha = 0.5 * np.maximum(jt.linalg.norm(x0), 1.0) / jt.where(size > 0, size, 1.0)
    status = jt.where(np.max(np.abs(f)) <= fatol, 1, 0)
    carry = (x0, f, -alpha * np.eye(n, dtype=x0.dtype), 0, 1, status)
    x, _, _, nit, nfev, status = jt.while_loop(lambda c: c[-1] == 0, body, carry)
    return {"x": x, "nit": nit, "nfev": nfev, "status": status}


_METHODS = {"hybr": _hybrid, "lm": _marquardt, "broyden1": _broyden}
