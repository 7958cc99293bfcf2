"""numpy.linalg: systems of equations and decompositions, by the ops of `ir.ops.libraries`.

As in NumPy, float32 is computed in float64 and rounded in the end. What decides a dtype by values
there (`eig` of a real matrix with real eigenvalues) is always complex here.
"""

from __future__ import annotations

import functools
import math
import operator
from typing import Any

import numpy as np

from ...ir.graph import Value
from ...ir.ops.libraries.matrices import Matrix
from ...ir.types import C64, C128, F32, F64, is_complex, is_inexact, real_dtype
from ..arrays import ufuncs
from ..arrays.common import array, build, fold
from ..arrays.creation import eye
from ..arrays.elementwise import where
from ..arrays.movement import broadcast_to, matrix_transpose, moveaxis
from ..arrays.reductions import count_nonzero, max_, min_, sum_
from ..arrays.table import function
from ..core import views
from ..core.tracers import Tracer, as_value, wrap, wrap_like
from ..data.promotion import DType
from ..functions.selection import take_along_axis
from ..functions.sorting import argsort, sort
from ..messages import errors
from ..messages.errors import complain
from .products import matrix_product

COMPUTED = {F32: F64, F64: F64, C64: C128, C128: C128}


def matrix_operand(name: str, x: Any, square: bool = True) -> Tracer:
    """A stack of matrices, or a LinAlgError."""
    a = array(x)
    if a.ndim < 2:
        complain(
            errors.LinearAlgebraError,
            f"{name}: {a.ndim}-dimensional array given. Array must be at least two-dimensional",
            "give a matrix, or a stack of matrices along leading axes.",
            operands={"a": a},
        )
    if square and a.shape[-1] != a.shape[-2]:
        complain(
            errors.LinearAlgebraError,
            f"{name}: Last 2 dimensions of the array must be square",
            "give square matrices; jt.linalg.lstsq and jt.linalg.pinv take others.",
            operands={"a": a},
        )
    return a


def result_type(*arrays: Tracer) -> DType:
    """The dtype of a result: single precision only if all operands have it."""
    dtypes = [x.dtype for x in arrays]
    for x in arrays:
        if is_inexact(x.dtype) and x.dtype not in COMPUTED:
            raise TypeError(f"array type {x.dtype.name} is unsupported in linalg")
    single = all(d in (F32, C64) for d in dtypes)
    if any(map(is_complex, dtypes)):
        return C64 if single else C128
    return F32 if single else F64


def computed(x: Tracer, result: DType) -> Value:
    """The operand in the precision that linear algebra is computed in."""
    return as_value(x, COMPUTED[result])


def made(value: Value, result: DType) -> Tracer:
    return wrap(value if value.dtype == result else build().convert(value, dtype=result))


@functools.cache
def _result_class(name: str) -> Any:
    """NumPy's own named tuple of a decomposition, so that eager and compiled results are alike."""
    return type(getattr(np.linalg, name)(np.ones((1, 1))))


def _swapped(x: Tracer) -> Tracer:
    return matrix_transpose(x)


# Systems of equations


@function("linalg.solve")
def solve(a: Any, b: Any) -> Tracer:
    return solve_by("solve", matrix_operand("solve", a), b)


def solve_by(name: str, a: Tracer, b: Any, **attrs: Any) -> Tracer:
    """A system of equations, one or many, by the op of that name."""
    b = array(b)
    vector = b.ndim == 1
    if b.ndim == 0:
        raise ValueError("solve: b needs at least one dimension")
    if vector:
        b = b.reshape(-1, 1)
    if b.shape[-2] != a.shape[-1]:
        complain(
            errors.ShapeError,
            f"solve: b has {b.shape[-2]} rows, and the matrices are {a.shape[-2]} x {a.shape[-1]}",
            "b must be one vector (M,), or matrices (..., M, K); b[..., None] makes vectors matrices.",
            operands={"a": a, "b": b},
        )
    result = result_type(a, b)
    lead = _lead("solve", a, b)
    left, right = (broadcast_to(x, (*lead, *x.shape[-2:])) for x in (a, b))
    solved = build().op(
        name, computed(left, result), computed(right, result), mode="check", **attrs
    )
    x = made(solved, result)
    return x.reshape(x.shape[:-1]) if vector else x


def _lead(name: str, a: Tracer, b: Tracer) -> tuple[int, ...]:
    return np.broadcast_shapes(a.shape[:-2], b.shape[:-2])


@function("linalg.inv")
def inv(a: Any) -> Tracer:
    a = matrix_operand("inv", a)
    result = result_type(a)
    return made(build().inv(computed(a, result), mode="check"), result)


@function("linalg.tensorsolve")
def tensorsolve(a: Any, b: Any, axes: Any = None) -> Tracer:
    a, b = array(a), array(b)
    if axes is not None:
        order = list(range(a.ndim))
        for k in axes:
            order.remove(k)
            order.append(k)
        a = a.transpose(order)
    shape = a.shape[b.ndim - a.ndim :] if a.ndim > b.ndim else ()
    n = math.prod(shape)
    if a.size != n * n:
        raise errors.LinearAlgebraError(
            "Input arrays must satisfy the requirement "
            "prod(a.shape[b.ndim:]) == prod(a.shape[:b.ndim])"
        )
    return solve(a.reshape(n, n), b.ravel()).reshape(shape)


@function("linalg.tensorinv")
def tensorinv(a: Any, ind: int = 2) -> Tracer:
    a = array(a)
    if ind <= 0:
        raise ValueError("Invalid ind argument.")
    n = math.prod(a.shape[ind:])
    return inv(a.reshape(n, -1)).reshape(a.shape[ind:] + a.shape[:ind])


@function("linalg.det")
def det(a: Any) -> Tracer:
    a = matrix_operand("det", a)
    result = result_type(a)
    return made(build().det(computed(a, result)), result)


@function("linalg.slogdet")
def slogdet(a: Any) -> Any:
    a = matrix_operand("slogdet", a)
    result = result_type(a)
    sign, log = build().slogdet(computed(a, result))
    return _result_class("slogdet")(made(sign, result), made(log, real_dtype(result)))


# Decompositions


@function("linalg.cholesky")
def cholesky(a: Any, /, *, upper: bool = False) -> Tracer:
    a = matrix_operand("cholesky", a)
    result = result_type(a)
    factor = build().cholesky(computed(a, result), upper=bool(upper), mode="check")
    return made(factor, result)


def _upper(triangle: str) -> bool:
    if triangle.upper() not in ("L", "U"):
        raise ValueError("UPLO argument must be 'L' or 'U'")
    return triangle.upper() == "U"


@function("linalg.eigh")
def eigh(a: Any, UPLO: str = "L") -> Any:
    a = matrix_operand("eigh", a)
    result = result_type(a)
    w, v = build().eigh(computed(a, result), upper=_upper(UPLO), mode="check")
    return _result_class("eigh")(made(w, real_dtype(result)), made(v, result))


@function("linalg.eigvalsh")
def eigvalsh(a: Any, UPLO: str = "L") -> Tracer:
    a = matrix_operand("eigvalsh", a)
    result = result_type(a)
    w = build().eigvalsh(computed(a, result), upper=_upper(UPLO), mode="check")
    return made(w, real_dtype(result))


_COMPLEX_OF = {F32: C64, F64: C128, C64: C64, C128: C128}


def _finite(a: Tracer) -> tuple[Tracer, Tracer]:
    """Matrices without NaN or infinities in them, and which are what was given."""
    good = ufuncs.apply(np.isfinite, a).all(axis=(-2, -1), keepdims=True)
    return where(good, a, np.eye(a.shape[-1], dtype=a.dtype)), good


@function("linalg.eig")
def eig(a: Any) -> Any:
    a = matrix_operand("eig", a)
    result = _COMPLEX_OF[result_type(a)]
    safe, good = _finite(a)
    w, v = build().eig(computed(safe, result_type(a)), mode="check")
    values = where(good[..., 0], made(w, result), np.nan).astype(result)
    vectors = where(good, made(v, result), np.nan).astype(result)
    return _result_class("eig")(values, vectors)


@function("linalg.eigvals")
def eigvals(a: Any) -> Tracer:
    a = matrix_operand("eigvals", a)
    result = _COMPLEX_OF[result_type(a)]
    safe, good = _finite(a)
    w = build().eigvals(computed(safe, result_type(a)), mode="check")
    return where(good[..., 0], made(w, result), np.nan).astype(result)


@function("linalg.svd")
def svd(
    a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False
) -> Any:
    a = matrix_operand("svd", a, square=hermitian)
    result = result_type(a)
    part = real_dtype(result)
    if hermitian:
        return _hermitian_svd(a, compute_uv)
    if not compute_uv:
        return made(build().svdvals(computed(a, result), mode="check"), part)
    u, s, vh = build().svd(computed(a, result), full=bool(full_matrices), mode="check")
    return _result_class("svd")(made(u, result), made(s, part), made(vh, result))


def _hermitian_svd(a: Tracer, compute_uv: bool) -> Any:
    if not compute_uv:
        return sort(abs(eigvalsh(a)))[..., ::-1]
    w, u = eigh(a)
    order = argsort(abs(w))[..., ::-1]
    sign = take_along_axis(ufuncs.apply(np.copysign, 1.0, w), order, axis=-1)
    s = take_along_axis(abs(w), order, axis=-1)
    u = take_along_axis(u, order[..., None, :], axis=-1)
    vh = _swapped(ufuncs.apply(np.conjugate, u * sign[..., None, :]))
    return _result_class("svd")(u, s, vh)


@function("linalg.svdvals")
def svdvals(x: Any, /) -> Tracer:
    values: Tracer = svd(x, compute_uv=False)
    return values


@function("linalg.qr")
def qr(a: Any, mode: str = "reduced") -> Any:
    if mode not in ("reduced", "complete", "r", "raw"):
        raise ValueError(f"Unrecognized mode '{mode}'")
    a = matrix_operand("qr", a, square=False)
    m, n = a.shape[-2:]
    result = result_type(a)
    value, b = computed(a, result), build()
    if mode == "raw":
        raw, tau = b.qr_raw(value)
        return _swapped(made(raw, result)), made(tau, result)
    q, r = b.qr(value, complete=mode == "complete" and m > n)
    if mode == "r":
        return made(r, result)
    return _result_class("qr")(made(q, result), made(r, result))


# What singular values tell


@function("linalg.matrix_rank")
def matrix_rank(A: Any, tol: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Tracer:
    if rtol is not None and tol is not None:
        raise ValueError("`tol` and `rtol` can't be both set.")
    a = array(A)
    if a.ndim < 2:
        return (a != 0).any().astype(np.int64)
    s = svd(a, compute_uv=False, hermitian=hermitian)
    if tol is not None:
        limit = array(tol)[..., None]
    else:
        eps = np.finfo(s.dtype).eps
        rtol = max(a.shape[-2:]) * eps if rtol is None else array(rtol)[..., None]
        limit = max_(s, axis=-1, keepdims=True, initial=0) * rtol
    return count_nonzero(s > limit, axis=-1)


def singular_norm(x: Tracer, ord: Any, axes: tuple[int, int], keepdims: bool) -> Tracer:
    """The largest or smallest singular value, or the sum of all."""
    s = svd(moveaxis(x, axes, (-2, -1)), compute_uv=False)
    reduce = {2: max_, -2: min_, "nuc": sum_}[ord]
    norm = reduce(s, axis=-1) if ord == -2 else reduce(s, axis=-1, initial=0)
    if not keepdims:
        return norm
    return norm.reshape([1 if d in axes else n for d, n in enumerate(x.shape)])


@function("linalg.pinv")
def pinv(a: Any, rcond: Any = None, hermitian: bool = False, *, rtol: Any = np._NoValue) -> Tracer:
    a = matrix_operand("pinv", a, square=hermitian)
    if rcond is not None and rtol is not np._NoValue:
        raise ValueError("`rtol` and `rcond` can't be both set.")
    if rcond is None:
        rcond = 1e-15 if rtol is np._NoValue else rtol
    if rcond is None:
        rcond = max(a.shape[-2:]) * np.finfo(a.dtype).eps
    if 0 in a.shape[-2:]:
        return _swapped(a)
    result = result_type(a)
    b, value = build(), computed(a, result)
    if hermitian:
        value = Matrix(b, value).hermitian().value
    relative = broadcast_to(array(rcond), a.shape[:-2])
    limit = as_value(relative, real_dtype(value.dtype))
    return made(b.pinv(value, limit, mode="check"), result)


@function("linalg.lstsq")
def lstsq(a: Any, b: Any, rcond: Any = None) -> Any:
    """As numpy.linalg.lstsq; where the rank decides about residuals, they are NaN, not left out."""
    a, b = array(a), array(b)
    vector = b.ndim == 1
    if vector:
        b = b.reshape(-1, 1)
    if a.ndim != 2 or b.ndim != 2:
        raise errors.LinearAlgebraError(
            f"lstsq takes a matrix and a vector or matrix, not arrays of shape {a.shape}, {b.shape}"
        )
    (m, n), k = a.shape, b.shape[1]
    if b.shape[0] != m:
        raise errors.LinearAlgebraError("Incompatible dimensions")
    result = result_type(a, b)
    part = real_dtype(result)
    rcond = float(np.finfo(F64).eps * max(m, n)) if rcond is None else float(rcond)
    if not (m and n):  # no unknowns, or nothing known about them
        x = array(np.zeros((n,) if vector else (n, k), result))
        left_over = sum_(abs(b) ** 2, axis=0).astype(part) if m else array(np.zeros(0, part))
        return x, left_over, array(np.int32(0)), array(np.zeros(0, part))
    if k == 0:  # LAPACK wants a right-hand side
        _, _, rank, s = lstsq(a, np.zeros((m, 1), result), rcond)
        return array(np.zeros((n, 0), result)), array(np.zeros(0, part)), rank, s
    left, right = computed(a, result), computed(b, result)
    x, residuals, rank, s = build().lstsq(left, right, rcond=rcond, mode="check")
    x, residuals, s = made(x, result), made(residuals, part), made(s, part)
    full = wrap(rank) == n
    residuals = where(full, residuals, np.nan).astype(part) if m > n else residuals[:0]
    return x.reshape(n) if vector else x, residuals, wrap(rank), s


@function("linalg.matrix_power")
def matrix_power(a: Any, n: int) -> Tracer:
    x = matrix_operand("matrix_power", a)
    n = operator.index(n)
    if n == 1:
        return x
    if n < 0:
        x, n = inv(x), -n
    if n == 0:
        ones = views.broadcast_to(eye(x.shape[-1], dtype=x.dtype), x.shape)
        return wrap_like(as_value(ones), (x,), copy=True)
    factors, power = [], x
    while True:
        if n % 2:
            factors.append(power)
        n //= 2
        if not n:
            return fold(matrix_product, factors)
        power = matrix_product(power, power)
