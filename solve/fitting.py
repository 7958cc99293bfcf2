"""`least_squares` and `curve_fit`, with the arguments and results of `scipy.optimize`."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

import jitney as jt

from . import common
from .common import Function, refuse
from .results import OptimizeResult

_MESSAGES = {
    0: "The maximum number of function evaluations is exceeded.",
    1: "`gtol` termination condition is satisfied.",
    2: "`ftol` termination condition is satisfied.",
    3: "`xtol` termination condition is satisfied.",
}


def _cauchy(z: Any) -> tuple[Any, Any, Any]:
    return np.log1p(z), 1 / (1 + z), -1 / (1 + z) ** 2


def _soft_l1(z: Any) -> tuple[Any, Any, Any]:
    t = np.sqrt(1 + z)
    return 2 * (t - 1), 1 / t, -0.5 / t**3


def _huber(z: Any) -> tuple[Any, Any, Any]:
    far = jt.where(z > 1, z, 1.0)
    root = np.sqrt(far)
    return (
        jt.where(z > 1, 2 * root - 1, z),
        jt.where(z > 1, 1 / root, 1.0),
        jt.where(z > 1, -0.5 / (far * root), 0.0),
    )


def _arctan(z: Any) -> tuple[Any, Any, Any]:
    t = 1 + z * z
    return np.arctan(z), 1 / t, -2 * z / (t * t)


LOSSES = {"cauchy": _cauchy, "soft_l1": _soft_l1, "huber": _huber, "arctan": _arctan}


def least_squares(
    fun: Function,
    x0: Any,
    jac: Any = None,
    *,
    method: str = "lm",
    ftol: float | None = 1e-8,
    xtol: float | None = 1e-8,
    gtol: float | None = 1e-8,
    loss: str = "linear",
    f_scale: float = 1.0,
    max_nfev: int | None = None,
    args: Any = (),
    kwargs: dict[str, Any] | None = None,
) -> OptimizeResult:
    """`scipy.optimize.least_squares`: the x near x0 for which `0.5 * sum(fun(x, *args)**2)` is smallest,
    by the method of Levenberg and Marquardt with exact Jacobians.

    `loss` is "linear", or one that outliers weigh less in, as in SciPy ("soft_l1", "huber", "cauchy",
    "arctan", with `f_scale`). `method` may be any of SciPy's names; there is one method, without bounds.

    The result has `x`, `cost`, `fun`, `jac`, `grad`, `optimality`, `nfev`, `njev`, `success`, `status`,
    `message`; `x` is a function of `args` and of what `fun` closes over, as the solution of `grad == 0`.

    Raises jt.errors.ArgumentError for unknown losses and methods.

    >>> t = np.arange(4.0)
    >>> res = jt.solve.least_squares(lambda p: p[0] + p[1] * t - (1 + 2 * t), [0.0, 0.0])
    >>> np.round(res.x, 6)
    array([1., 2.])
    """
    common.function_of(fun, "fun", "a vector")
    common.choose("method", method, ("lm", "trf", "dogbox"), "least_squares")
    common.choose("loss", loss, ("linear", *LOSSES), "least_squares")
    x0 = common.start(x0)
    tolerances = tuple(0.0 if t is None else t for t in (ftol, xtol, gtol))
    most = 100 * x0.size if max_nfev is None else max_nfev
    jac = jac if callable(jac) else None
    fields = _least_squares(
        fun, x0, common.arguments(args), kwargs or {}, jac, tolerances, loss, f_scale, most
    )
    return OptimizeResult(_MESSAGES, **fields)


def curve_fit(
    f: Function,
    xdata: Any,
    ydata: Any,
    p0: Any = None,
    sigma: Any = None,
    absolute_sigma: bool = False,
    **options: Any,
) -> tuple[Any, Any]:
    """`scipy.optimize.curve_fit`: parameters p for which `f(xdata, *p)` is closest to ydata, and their
    covariance. `options` are those of `least_squares`.

    >>> x = np.arange(4.0)
    >>> p, cov = jt.solve.curve_fit(lambda x, a, b: a + b * x, x, 1 + 2 * x)
    >>> np.round(p, 6), cov.shape
    (array([1., 2.]), (2, 2))
    """
    common.function_of(f, "f", "xdata and the parameters")
    names = list(inspect.signature(f).parameters.values())[1:]
    p0 = common.start(np.ones(len(names)) if p0 is None else p0)
    if len(names) != p0.size and not any(name.kind is name.VAR_POSITIONAL for name in names):
        what = f"p0 has {p0.size} numbers, and f {len(names)} parameters behind xdata"
        refuse(what, "give a first guess for each.")
    weight = 1.0 if sigma is None else 1.0 / jt.asarray(sigma)
    n = p0.size

    def residual(p: Any, xdata: Any, ydata: Any, weight: Any) -> Any:
        return (f(xdata, *(p[i] for i in range(n))) - ydata) * weight

    res = least_squares(residual, p0, args=(xdata, ydata, weight), **options)
    cov = jt.linalg.inv(res.jac.T @ res.jac)
    if not absolute_sigma:
        cov = cov * (2 * res.cost / (res.fun.size - n))
    return res.x, cov


@jt.jit(static_argnames=("jac", "loss"))
def _least_squares(
    fun: Function,
    x0: Any,
    args: Any,
    kwargs: Any,
    jac: Any,
    tolerances: Any,
    loss: str,
    f_scale: Any,
    most: Any,
) -> dict[str, Any]:
    def value(x: Any) -> Any:
        f = fun(x, *args, **kwargs)
        f = jt.stack(f) if isinstance(f, (list, tuple)) else jt.asarray(f)
        return jt.reshape(f, (-1,)).astype(x.dtype)

    def jacobian(x: Any) -> Any:
        return jt.asarray(jac(x, *args, **kwargs)) if jac is not None else jt.jacfwd(value)(x)

    def cost_of(f: Any) -> Any:
        if loss == "linear":
            return 0.5 * (f @ f)
        return 0.5 * f_scale**2 * jt.sum(LOSSES[loss]((f / f_scale) ** 2)[0])

    def weighted(x: Any) -> tuple[Any, Any]:
        """What has the cost's gradient, and nearly its second derivative, as least squares."""
        f, j = value(x), jacobian(x)
        if loss == "linear":
            return f, j
        _, one, two = LOSSES[loss]((f / f_scale) ** 2)
        curvature = np.maximum(one + 2 * two * (f / f_scale) ** 2, np.finfo(f.dtype).eps)
        return f * (one / np.sqrt(curvature)), j * np.sqrt(curvature)[:, None]

    x, _, _, status, nfev, njev = levenberg_marquardt(
        weighted, x0, tolerances, most, lambda x: cost_of(value(x))
    )
    gradient = jt.grad(lambda x: cost_of(value(x)))
    x = jt.implicit(gradient, x, common.dense_solve)
    f, j = weighted(x)
    grad = f @ j
    fields = {
        "x": x,
        "cost": cost_of(value(x)),
        "fun": value(x),
        "jac": j,
        "grad": grad,
        "optimality": np.max(np.abs(grad)),
        "active_mask": jt.zeros(x.shape, np.int64),
        "nfev": nfev,
        "njev": njev,
        "status": status,
        "success": status > 0,
    }
    return common.numbers(fields)


def levenberg_marquardt(
    evaluate: Function, x0: Any, tolerances: Any, most: Any, cost: Function | None = None
) -> tuple[Any, ...]:
    """`(x, f, j, status, nfev, njev)`, where `evaluate(x)` gives residuals and their Jacobian.

    Steps solve (J^T J + damping D) p = -J^T f, where D has the scale of the columns; how far the step
    did what was expected decides on the next damping. `tolerances` are ftol, xtol and gtol.
    """
    ftol, xtol, gtol = tolerances

    def half_square(x: Any) -> Any:
        f = evaluate(x)[0]
        return 0.5 * (f @ f)

    measure = cost or half_square

    def body(carry: Any) -> Any:
        x, f, j, c, scale, damping, growth, nfev, njev, _ = carry
        g = f @ j
        normal = j.T @ j + jt.diag(damping * scale)
        p = -jt.linalg.lu_solve(jt.linalg.lu_factor(normal), g)
        c_new = measure(x + p)
        expected = 0.5 * (p @ (damping * scale * p - g))
        ratio = (c - c_new) / jt.where(expected > 0, expected, 1.0)
        accepted = (c_new < c) & (expected > 0)
        ftol_met = (c - c_new <= ftol * c) & (ratio > 0.25) & accepted
        ftol_met = ftol_met | (expected <= np.finfo(x.dtype).eps * c)
        step_size = jt.linalg.norm(p)
        xtol_met = step_size <= xtol * (xtol + jt.linalg.norm(x))
        x = jt.where(accepted, x + p, x)
        f, j = jt.cond(accepted, lambda: evaluate(x), lambda: (f, j))
        c = jt.where(accepted, c_new, c)
        scale = np.maximum(scale, jt.sum(j * j, axis=0))
        shrink = np.maximum(1 / 3, 1 - (2 * ratio - 1) ** 3)
        damping = np.maximum(damping * jt.where(accepted, shrink, growth), 1e-12)
        growth = jt.where(accepted, 2.0, 2 * growth)
        status = jt.where(nfev + 1 >= most, 0, -1)
        status = jt.where(xtol_met, 3, jt.where(ftol_met, 2, status))
        status = jt.where(np.max(np.abs(f @ j)) <= gtol, 1, status)
        status = jt.where(np.isfinite(damping), status, 0)
        njev = njev + jt.where(accepted, 1, 0)
        return x, f, j, c, scale, damping, growth, nfev + 1, njev, status

    f, j = evaluate(x0)
    scale = jt.sum(j * j, axis=0)
    scale = jt.where(scale == 0, 1.0, scale)
    status = jt.where(np.max(np.abs(f @ j)) <= gtol, 1, -1)
    one = jt.ones_like(x0[0])
    carry = (x0, f, j, measure(x0), scale, 1e-3 * one, 2.0 * one, 1, 1, status)
    x, f, j, *_, nfev, njev, status = jt.while_loop(lambda c: c[-1] < 0, body, carry)
    return x, f, j, status, nfev, njev
