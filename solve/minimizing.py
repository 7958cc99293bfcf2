"""`minimize`, with the arguments and results of `scipy.optimize.minimize`."""

from __future__ import annotations

from typing import Any

import numpy as np

import jitney as jt

from . import common
from .common import Function, refuse
from .descent import FLAT, bfgs, descend, lbfgs
from .linear import cg
from .results import OptimizeResult
from .simplex import nelder_mead

_OPTIONS: dict[str, dict[str, Any]] = {
    "BFGS": {"gtol": 1e-5, "norm": np.inf, "maxiter": None, "xrtol": 0.0, "hess_inv0": None},
    "L-BFGS-B": {"maxcor": 10, "ftol": 2.220446049250313e-09, "gtol": 1e-5, "maxiter": 15000},
    "Nelder-Mead": {
        "xatol": 1e-4,
        "fatol": 1e-4,
        "maxiter": None,
        "maxfev": None,
        "adaptive": False,
        "initial_simplex": None,
    },
}
_TOLERANCES = {"BFGS": ("gtol",), "L-BFGS-B": ("ftol", "gtol"), "Nelder-Mead": ("xatol", "fatol")}
_STATIC = ("norm", "maxcor", "adaptive")
_MESSAGES = {
    0: "Optimization terminated successfully.",
    1: "Maximum number of iterations has been exceeded.",
    2: "Desired error not necessarily achieved due to precision loss.",
    3: "NaN result encountered.",
}
_OF_SIMPLEX = {
    0: "Optimization terminated successfully.",
    1: "Maximum number of function evaluations has been exceeded.",
    2: "Maximum number of iterations has been exceeded.",
}


def minimize(
    fun: Function,
    x0: Any,
    args: Any = (),
    method: str | None = None,
    jac: Any = None,
    tol: float | None = None,
    options: dict[str, Any] | None = None,
) -> OptimizeResult:
    """`scipy.optimize.minimize`: where `fun(x, *args)`, a number for a vector, is smallest near x0.

    Methods are "BFGS" (the default), "L-BFGS-B" for many unknowns, and "Nelder-Mead" for what has no
    derivative. Gradients are exact; `jac` is a function that gives them, or True where `fun` gives both.
    Options are SciPy's, by method: `gtol`, `ftol`, `maxiter`, `maxcor`, `xatol`, `fatol`, ...

    The result has `x`, `fun`, `jac`, `nit`, `nfev`, `success`, `status`, `message`. `x`, `fun` and `jac`
    are functions of `args`, and of what `fun` closes over: their derivatives are those of the solution
    of `gradient(x) == 0`, not of the iterations.

    Raises jt.errors.ArgumentError for unknown methods and options, and for an `x0` that is no vector.

    >>> res = jt.solve.minimize(lambda x, a: np.sum((x - a) ** 2), np.zeros(2), (3.0,))
    >>> np.round(res.x, 6), bool(res.success)
    (array([3., 3.]), True)
    """
    common.function_of(fun, "fun", "a vector")
    named = {"none": "BFGS", "l-bfgs": "L-BFGS-B", **{name.lower(): name for name in _OPTIONS}}
    method = named.get(str(method).lower(), str(method))
    common.choose("method", method, _OPTIONS, "minimize")
    chosen = common.only(options, _OPTIONS[method], f"minimize with method={method!r}")
    if tol is not None:
        chosen.update(dict.fromkeys(_TOLERANCES[method], tol))
    static = tuple(chosen.pop(name, None) for name in _STATIC)
    fields = _minimize(fun, common.start(x0), common.arguments(args), method, jac, chosen, static)
    messages = _OF_SIMPLEX if method == "Nelder-Mead" else _MESSAGES
    return OptimizeResult(messages, **fields)


@jt.jit(static_argnames=("method", "jac", "static"))
def _minimize(
    fun: Function, x0: Any, args: Any, method: str, jac: Any, options: Any, static: Any
) -> dict[str, Any]:
    def value(x: Any) -> Any:
        out = fun(x, *args)
        return _number(out[0] if jac is True else out, x)

    def both(x: Any) -> Any:
        if jac is True:
            f, g = fun(x, *args)
            return _number(f, x), _like(g, x)
        if callable(jac):
            return value(x), _like(jac(x, *args), x)
        return jt.value_and_grad(value)(x)

    norm, maxcor, adaptive = static
    if method == "Nelder-Mead":
        found = _by_simplex(value, x0, options, adaptive)
    else:
        found = _by_descent(both, x0, options, norm, maxcor)
    x = jt.implicit(lambda x: both(x)[1], found.pop("x"), _curvature_solve)
    if method == "Nelder-Mead":
        return common.numbers({"x": x, "fun": value(x), **found})
    f, g = both(x)
    return common.numbers({"x": x, "fun": f, "jac": g, **found})


def _curvature_solve(matvec: Function, b: Any) -> Any:
    if b.size <= common.DENSE:
        return common.dense_solve(matvec, b)
    return cg(matvec, b, rtol=1e-10)[0]


def _number(f: Any, x: Any) -> Any:
    f = jt.asarray(f)
    if f.size != 1:
        refuse(f"fun gives an array of shape {f.shape}", "let it give a number: np.sum, np.mean.")
    return jt.reshape(f, ()).astype(x.dtype)


def _like(g: Any, x: Any) -> Any:
    g = jt.asarray(g)
    if g.shape != x.shape:
        refuse(f"jac gives shape {g.shape}, and x has {x.shape}", "give one number for each of x.")
    return g.astype(x.dtype)


def _by_descent(both: Function, x0: Any, options: Any, norm: Any, maxcor: Any) -> dict[str, Any]:
    if maxcor is None:
        model = bfgs(x0, options["hess_inv0"])
        most = options["maxiter"]
        most = 200 * x0.size if most is None else most
        found = descend(both, x0, model, options["gtol"], -1.0, options["xrtol"], norm, most)
    else:
        model = lbfgs(x0, maxcor)
        found = descend(
            both, x0, model, options["gtol"], options["ftol"], 0.0, np.inf, options["maxiter"]
        )
    x, _, _, state, status, nit, nfev = found
    status = jt.where(status == FLAT, 0, status)
    fields = {"x": x, "nit": nit, "nfev": nfev, "njev": nfev, "status": status}
    if maxcor is None:
        fields["hess_inv"] = jt.stop_gradient(state)
    return {**fields, "success": status == 0}


def _by_simplex(value: Function, x0: Any, options: Any, adaptive: bool) -> dict[str, Any]:
    most = [options["maxiter"], options["maxfev"]]
    if most == [None, None]:
        most = [200 * x0.size] * 2
    maxiter, maxfev = (np.iinfo(np.int64).max if m is None else m for m in most)
    found = nelder_mead(value, x0, options, adaptive, maxiter, maxfev)
    simplex, values, status, nit, nfev = found
    fields = {"x": simplex[0], "nit": nit, "nfev": nfev, "status": status, "success": status == 0}
    return {**fields, "final_simplex": jt.stop_gradient((simplex, values))}
