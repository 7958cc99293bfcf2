"""SciPy's functions that are plain Python around compiled code, of traced values: ours, with SciPy's
signatures and conventions.

They are found by name among what SciPy's modules hold, if these are loaded. What a function cannot do
(`pivoting=True`) goes to SciPy's own, which says that it needs the elements. Options that only speak of
memory (`overwrite_a`) mean nothing to values.
"""

from __future__ import annotations

import functools
import inspect
import math
import sys
from collections.abc import Callable
from types import FunctionType, MethodType
from typing import Any

import numpy as np

from ...arrays.common import array
from ...arrays.table import holds_tracer
from .eigenvalues import complex_eig
from .scipy_common import Formula, Unfit, any_arrays, blas_norm, finite, ours, unless
from .scipy_distances import DISTANCES
from .scipy_filters import FILTERS
from .scipy_integrals import INTEGRALS
from .scipy_solvers import DENSITIES, SOLVERS, density, solver

_MEMORY = ("overwrite_a", "overwrite_b", "overwrite_ab", "lwork", "lapack_driver", "driver")
_SYMMETRIC = ("sym", "her", "pos", "symmetric", "hermitian", "positive definite")
_LEAVING_NANS = ("tvar", "tstd", "tsem", "moment")
_GENERAL = (None, "gen", "general")


def replaced_scipy(function: Any) -> Formula | None:
    """What is called in place of a function of SciPy's."""
    kind = type(function)
    if kind is FunctionType:
        module = function.__module__
        if type(module) is str and module.startswith("scipy."):
            place = ".".join(module.split(".")[:2])
            where = SOLVERS.get(function.__name__)
            if where is not None and _lies(where, function.__name__, function):
                return solver(function)
            formula = _FORMULAS.get((place, function.__name__))
            known = formula is not None and any(
                _lies(m, function.__name__, function) for m in (place, module)
            )
            return _with_arrays(function, formula if known else None)
    elif kind is MethodType and str(type(function.__self__).__module__).startswith("scipy.stats"):
        formula = _NORMAL.get(function.__name__)
        if formula is not None and _lies("scipy.stats", "norm", function.__self__):
            return _with_arrays(function, formula)
        name = getattr(function.__self__, "name", None) or type(function.__self__).__name__[:-4]
        if function.__name__ in DENSITIES and _lies("scipy.stats", name, function.__self__):
            return _with_arrays(function, density(name, function.__name__))
    elif kind.__module__ == "uarray" or kind.__module__.startswith("scipy._lib._uarray"):
        return _with_arrays(function, None)  # `scipy.fft`
    return None


def _lies(place: str, name: str, value: Any) -> bool:
    """Whether that is what stands there. A function may be a copy of it, with stand-ins for globals."""
    found = getattr(sys.modules.get(place), name, None)
    code = getattr(value, "__code__", None)
    return found is value or (code is not None and getattr(found, "__code__", None) is code)


def _with_arrays(function: Any, formula: Formula | None) -> Formula:
    """The function itself, of any library's arrays if there is no formula or it is not fit."""

    def call(*args: Any, **kwargs: Any) -> Any:
        if not holds_tracer((*args, *kwargs.values())):
            return function(*args, **kwargs)
        if formula is not None:
            try:
                return formula(*args, **{k: v for k, v in kwargs.items() if k not in _MEMORY})
            except Unfit:
                pass
        with any_arrays():
            result = function(*args, **kwargs)
        return _with_nans(function, args, kwargs, result)

    return call


def _with_nans(function: Any, args: Any, kwargs: Any, result: Any) -> Any:
    """The result of a statistic that leaves NaN out of all arrays but NumPy's, with NaN where there was
    one."""
    name, module = getattr(function, "__name__", None), getattr(function, "__module__", "")
    if name not in _LEAVING_NANS or not module.startswith("scipy.stats"):
        return result
    bound = inspect.signature(function).bind(*args, **kwargs)
    bound.apply_defaults()
    given = bound.arguments
    if given.get("nan_policy", "propagate") != "propagate":
        return result
    keepdims = bool(given.get("keepdims", False))
    lost = np.isnan(array(given["a"])).any(axis=given["axis"], keepdims=keepdims)
    return np.where(lost, np.nan, result)[()]


def _matrices(*names: str) -> dict[tuple[str, str], Formula]:
    """Functions of one matrix, which are ours but for the check."""

    def make(name: str) -> Formula:
        own = ours(f"linalg.{name}")
        return lambda a, check_finite=True: own(finite(a, check_finite))

    return {("scipy.linalg", name): make(name) for name in names}


def _cholesky(a: Any, lower: bool = False, check_finite: bool = True) -> Any:
    return np.linalg.cholesky(finite(a, check_finite), upper=not lower)


def _cho_factor(a: Any, lower: bool = False, check_finite: bool = True) -> Any:
    a = finite(a, check_finite)
    factor = np.linalg.cholesky(a, upper=not lower)
    if _keeps_triangle():
        factor = factor + (np.triu(a, 1) if lower else np.tril(a, -1))
    return factor, lower


@functools.cache
def _keeps_triangle() -> bool:
    """Whether the other triangle stays what it was: before SciPy 1.18, which makes it zeros."""
    from scipy import linalg  # which is there: it was called

    return bool(linalg.cho_factor(np.array([[2.0, 1.0], [1.0, 2.0]]))[0][1, 0])


def _cho_solve(c_and_lower: Any, b: Any, check_finite: bool = True) -> Any:
    c, lower = c_and_lower
    c = np.tril(c) if lower else np.triu(c)
    return ours("linalg.cho_solve")((finite(c, check_finite), lower), finite(b, check_finite))


def _det(a: Any, check_finite: bool = True) -> Any:
    a = finite(a, check_finite)
    return np.linalg.det(a.astype(np.complex128 if a.dtype.kind == "c" else np.float64))


def _inv(a: Any, check_finite: bool = True, *, assume_a: Any = None, lower: bool = False) -> Any:
    unless(assume_a not in _GENERAL)
    return np.linalg.inv(finite(a, check_finite))


def _solve(
    a: Any,
    b: Any,
    lower: bool = False,
    check_finite: bool = True,
    assume_a: Any = None,
    transposed: bool = False,
) -> Any:
    a, b = finite(a, check_finite), finite(b, check_finite)
    if assume_a in _SYMMETRIC:  # one triangle is read
        other = np.swapaxes(a, -1, -2)
        if assume_a not in ("sym", "symmetric"):
            other = np.conj(other)
        a = np.tril(a) + np.triu(other, 1) if lower else np.triu(a) + np.tril(other, -1)
    else:
        unless(assume_a not in _GENERAL)
    return np.linalg.solve(a.mT if transposed else a, b)


def _solve_triangular(
    a: Any,
    b: Any,
    trans: Any = 0,
    lower: bool = False,
    unit_diagonal: bool = False,
    check_finite: bool = True,
) -> Any:
    a, b = finite(a, check_finite), finite(b, check_finite)
    return ours("linalg.solve_triangular")(
        a, b, lower=lower, trans=trans, unit_diagonal=unit_diagonal
    )


def _lu(a: Any, permute_l: bool = False, check_finite: bool = True, p_indices: bool = False) -> Any:
    p, lower, upper = ours("linalg.lu")(finite(a, check_finite))
    if permute_l:
        return p @ lower, upper
    return (np.argmax(p, axis=-1).astype(np.int32) if p_indices else p), lower, upper


def _lu_factor(a: Any, check_finite: bool = True) -> Any:
    lu, pivots = ours("linalg.lu_factor")(finite(a, check_finite))
    return lu, pivots.astype(np.int32)


def _lu_solve(lu_and_piv: Any, b: Any, trans: Any = 0, check_finite: bool = True) -> Any:
    lu, pivots = lu_and_piv
    b = finite(b, check_finite)
    return ours("linalg.lu_solve")((lu, array(pivots).astype(np.int64)), b, trans)


def _qr(a: Any, mode: str = "full", pivoting: bool = False, check_finite: bool = True) -> Any:
    unless(pivoting, mode not in ("full", "r", "economic"))
    q, r = np.linalg.qr(
        finite(a, check_finite), mode="reduced" if mode == "economic" else "complete"
    )
    return (r,) if mode == "r" else (q, r)


def _svd(
    a: Any, full_matrices: bool = True, compute_uv: bool = True, check_finite: bool = True
) -> Any:
    found = ours("linalg.svd")(finite(a, check_finite), full_matrices, compute_uv)
    return tuple(found) if compute_uv else found


def _eigvalsh(
    a: Any, b: Any = None, *, lower: bool = True, check_finite: bool = True, **subsets: Any
) -> Any:
    unless(b is not None, subsets.pop("type", 1) != 1, *(s is not None for s in subsets.values()))
    return np.linalg.eigvalsh(finite(a, check_finite), UPLO="L" if lower else "U")


def _eigvals(
    a: Any, b: Any = None, check_finite: bool = True, homogeneous_eigvals: bool = False
) -> Any:
    unless(b is not None, homogeneous_eigvals)
    return np.linalg.eigvals(finite(a, check_finite))


def _eig(
    a: Any,
    b: Any = None,
    left: bool = False,
    right: bool = True,
    check_finite: bool = True,
    homogeneous_eigvals: bool = False,
) -> Any:
    unless(b is not None, left, homogeneous_eigvals)
    return complex_eig(finite(a, check_finite)) if right else _eigvals(a, check_finite=check_finite)


def _eigh(
    a: Any,
    b: Any = None,
    *,
    lower: bool = True,
    eigvals_only: bool = False,
    check_finite: bool = True,
    **subsets: Any,
) -> Any:
    if eigvals_only:
        return _eigvalsh(a, b, lower=lower, check_finite=check_finite, **subsets)
    unless(b is not None, subsets.pop("type", 1) != 1, *(s is not None for s in subsets.values()))
    return tuple(np.linalg.eigh(finite(a, check_finite), UPLO="L" if lower else "U"))


def _pinv(
    a: Any,
    *,
    atol: Any = None,
    rtol: Any = None,
    return_rank: bool = False,
    check_finite: bool = True,
) -> Any:
    unless(atol is not None, return_rank)
    a = finite(a, check_finite)
    return np.linalg.pinv(
        a, rtol=max(a.shape[-2:]) * np.finfo(a.dtype).eps if rtol is None else rtol
    )


def _norm(
    a: Any, ord: Any = None, axis: Any = None, keepdims: bool = False, check_finite: bool = True
) -> Any:
    finite(a, check_finite)
    return blas_norm(array(a), ord, axis, keepdims)


def _lstsq(a: Any, b: Any, cond: Any = None, check_finite: bool = True) -> Any:
    a, b = finite(a, check_finite), finite(b, check_finite)
    found = np.linalg.lstsq(a, b, rcond=np.finfo(a.dtype).eps if cond is None else cond)
    return tuple(found)


def _transform(name: str) -> Formula:
    """A Fourier transform of `scipy.fftpack`."""

    def call(x: Any, *options: Any, overwrite_x: bool = False, **more: Any) -> Any:
        if "shape" in more:
            more["s"] = more.pop("shape")
        return getattr(np.fft, name)(x, *options, **more)

    return call


def _circulant(c: Any) -> Any:
    c = array(c)
    unless(c.ndim != 1)
    return ours("linalg.toeplitz")(c, np.roll(c[::-1], 1))


def _normal(formula: Callable[[Any], Any], density: bool = False, log: bool = False) -> Formula:
    """A function of the normal distribution of mean `loc` and deviation `scale`."""

    def call(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
        value = formula((x - loc) / scale)
        if density:
            value = value - np.log(scale) if log else value / scale
        return np.where(scale > 0, value, np.nan)[()]

    return call


def _quantile(sign: float) -> Formula:
    def call(q: Any, loc: Any = 0, scale: Any = 1) -> Any:
        return np.where(scale > 0, sign * ours("special.ndtri")(q) * scale + loc, np.nan)[()]

    return call


_ROOT = math.sqrt(2 * math.pi)
_NORMAL: dict[str, Formula] = {
    "pdf": _normal(lambda z: np.exp(-z * z / 2.0) / _ROOT, density=True),
    "logpdf": _normal(lambda z: -z * z / 2.0 - math.log(_ROOT), density=True, log=True),
    "cdf": _normal(lambda z: ours("special.ndtr")(z)),
    "sf": _normal(lambda z: ours("special.ndtr")(-z)),
    "logcdf": _normal(lambda z: ours("special.log_ndtr")(z)),
    "logsf": _normal(lambda z: ours("special.log_ndtr")(-z)),
    "ppf": _quantile(1.0),
    "isf": _quantile(-1.0),
}
_FORMULAS: dict[tuple[str, str], Formula] = {
    **FILTERS,
    **INTEGRALS,
    **_matrices("expm", "svdvals"),
    **{
        ("scipy.linalg", formula.__name__[1:]): formula
        for formula in (
            *(_cholesky, _cho_factor, _cho_solve, _det, _inv, _solve, _solve_triangular),
            *(_lu, _lu_factor, _lu_solve, _qr, _svd, _eigh, _eigvalsh, _eig, _eigvals, _pinv),
            *(_norm, _lstsq, _circulant),
        )
    },
    ("scipy.linalg", "block_diag"): ours("linalg.block_diag"),
    ("scipy.linalg", "toeplitz"): ours("linalg.toeplitz"),
    **DISTANCES,
    **{
        ("scipy.fftpack", n): _transform(n)
        for n in ("fft", "ifft", "fft2", "ifft2", "fftn", "ifftn")
    },
    **{("scipy.special", n): ours(f"special.{n}") for n in ("logsumexp", "softmax", "log_softmax")},
}
