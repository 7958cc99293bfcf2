"""numpy.linalg.norm and its kin: the norms that need no decomposition."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from ...ir.types import F64, is_complex, is_inexact, real_dtype
from ..arrays import ufuncs
from ..arrays.common import array, axis_index, axis_tuple, build, check_values
from ..arrays.elementwise import clip, where
from ..arrays.movement import atleast_2d, concatenate
from ..arrays.reductions import absolute_square, kept_shape, max_, mean, min_, sum_
from ..arrays.table import function
from ..core.tracers import Tracer, as_value, wrap
from ..data.promotion import result_dtype
from ..functions.diagonals import diagonal
from ..messages import errors
from ..messages.errors import JitneyError
from .contraction import dot
from .linalg import computed, made, matrix_operand, result_type, singular_norm, svd


def _float(x: Any) -> Tracer:
    a = array(x)
    return a if is_inexact(a.dtype) else a.astype(F64)


@function("linalg.norm")
def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Tracer:
    a = _float(x)
    if axis is None:
        if ord is None or (ord == 2 and a.ndim == 1) or (ord == "fro" and a.ndim == 2):
            result = _euclidean(a, tuple(range(a.ndim)), False)
            return result.reshape((1,) * a.ndim) if keepdims else result
        axes: tuple[int, ...] = tuple(range(a.ndim))
    else:
        axes = tuple(axis_index(i, a.ndim, a) for i in _tuple(axis))
    if len(axes) == 1:
        return _vector(a, 2 if ord is None else ord, axes, keepdims)
    if len(axes) == 2:
        return _matrix(a, "fro" if ord is None else ord, axes, keepdims)
    raise ValueError("Improper number of dimensions to norm.")


def _tuple(axis: Any) -> tuple[Any, ...]:
    """Axes as NumPy's norms take them: whatever is a number is one."""
    if isinstance(axis, tuple):
        return axis
    try:
        return (operator.index(axis) if isinstance(axis, Tracer) else int(axis),)
    except (TypeError, ValueError) as error:
        if isinstance(error, JitneyError):
            raise
        raise TypeError("'axis' must be None, an integer or a tuple of integers") from error


def _euclidean(x: Tracer, axes: tuple[int, ...], keepdims: bool) -> Tracer:
    return ufuncs.apply(np.sqrt, sum_(absolute_square(x), axis=axes, keepdims=keepdims))


def _vector(x: Tracer, ord: Any, axes: tuple[int, ...], keepdims: bool) -> Tracer:
    if isinstance(ord, str):
        raise ValueError(f"Invalid norm order '{ord}' for vectors")
    if ord == math.inf:
        return max_(abs(x), axis=axes, keepdims=keepdims, initial=0)
    if ord == -math.inf:
        return min_(abs(x), axis=axes, keepdims=keepdims)
    if ord == 0:
        return sum_((x != 0).astype(real_dtype(x.dtype)), axis=axes, keepdims=keepdims)
    if ord == 1:
        return sum_(abs(x), axis=axes, keepdims=keepdims)
    if ord == 2:
        return _euclidean(x, axes, keepdims)
    total = sum_(abs(x) ** ord, axis=axes, keepdims=keepdims)
    return ufuncs.apply(np.power, total, total.dtype.type(1) / ord)


def _matrix(x: Tracer, ord: Any, axes: tuple[int, ...], keepdims: bool) -> Tracer:
    if axes[0] == axes[1]:
        raise ValueError("Duplicate axes given.")
    row, column = axes
    if ord in ("fro", "f"):
        return _euclidean(x, tuple(sorted(axes)), keepdims)
    if ord in (1, -1, math.inf, -math.inf):
        inner, outer = (row, column) if abs(ord) == 1 else (column, row)
        sums = sum_(abs(x), axis=inner, keepdims=True)
        least = {"initial": 0} if ord > 0 else {}
        result = (max_ if ord > 0 else min_)(sums, axis=outer, keepdims=True, **least)
        shape = kept_shape(x.shape, axes)
        if keepdims:
            return result
        rest = tuple(n for i, n in enumerate(shape) if i not in axes)
        return wrap(as_value(result.reshape(rest)))
    if ord in (2, -2, "nuc"):
        return singular_norm(x, ord, (row, column), keepdims)
    raise ValueError("Invalid norm order for matrices.")


@function("linalg.vector_norm")
def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Tracer:
    a = _float(x)
    axes = axis_tuple(None if axis is None else _tuple(axis), a.ndim, a, strict=True)
    return _vector(a, ord, axes, keepdims)


@function("linalg.matrix_norm")
def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Tracer:
    a = _float(x)
    return _matrix(a, ord, (axis_index(-2, a.ndim, a), axis_index(-1, a.ndim, a)), keepdims)


@function("cov")
def cov(
    m: Any,
    y: Any = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: Any = None,
    fweights: Any = None,
    aweights: Any = None,
    *,
    dtype: Any = None,
) -> Tracer:
    if ddof is not None and isinstance(ddof, float) and ddof != int(ddof):
        raise ValueError("ddof must be integer")

    def rows(data: Any, turned: bool) -> Tracer:
        a = array(data)
        if a.ndim > 2:
            raise ValueError("m has more than 2 dimensions")
        a = atleast_2d(a.astype(result_dtype(a.dtype, F64) if dtype is None else dtype))
        return a.T if turned else a

    x = rows(m, turned=not rowvar and np.ndim(m) != 1)
    if x.shape[0] == 0:
        return wrap(build().full((0, 0), 0, F64), scalar=False)
    if y is not None:
        turned = not rowvar and np.ndim(y) == 2 and np.shape(y)[0] != 1
        x = concatenate([x, rows(y, turned)], 0)
    ddof = (0 if bias else 1) if ddof is None else ddof
    weights = _observation_weights(fweights, aweights, x.shape[1])
    if weights is None:
        x = x - mean(x, axis=1, keepdims=True)
        result = dot(x, ufuncs.apply(np.conjugate, x).T) / max(x.shape[1] - ddof, 0)
    else:
        total = weights.sum()
        check_values(total != 0, "Weights sum to zero, can't be normalized", ZeroDivisionError)
        x = x - (x * weights).sum(axis=1, keepdims=True) / total
        left = total - ddof
        if aweights is not None:
            left = total - ddof * (weights * array(aweights)).sum() / total
        left = ufuncs.apply(np.maximum, left, 0)
        result = dot(x, ufuncs.apply(np.conjugate, x * weights).T) / left
    return result.reshape(()).copy() if result.size == 1 else result


def _observation_weights(fweights: Any, aweights: Any, count: int) -> Tracer | None:
    """How often each observation counts, times how much; None: all the same."""
    product: Tracer | None = None
    for name, weights in (("fweights", fweights), ("aweights", aweights)):
        if weights is None:
            continue
        w = array(weights)
        if name == "fweights" and w.dtype.kind not in "iu":
            raise TypeError("fweights must be integer")
        if w.ndim > 1:
            raise RuntimeError(f"cannot handle multidimensional {name}")
        if w.shape != (count,):
            raise RuntimeError(f"incompatible numbers of samples and {name}")
        check_values(~(w < 0).any(), f"{name} cannot be negative")
        w = w.astype(F64)
        product = w if product is None else product * w
    return product


@function("corrcoef")
def corrcoef(x: Any, y: Any = None, rowvar: bool = True, *, dtype: Any = None) -> Tracer:
    c = cov(x, y, rowvar, dtype=dtype)
    if c.ndim == 0:
        return c / c
    deviation = ufuncs.apply(np.sqrt, diagonal(c).real)
    c = c / deviation[:, None] / deviation[None, :]
    if is_complex(c.dtype):
        parts = (as_value(_clipped(part)) for part in (c.real, c.imag))
        return wrap(build().complex(*parts), scalar=False)
    return _clipped(c)


def _clipped(c: Tracer) -> Tracer:
    """c in -1..1, which only rounding leaves: derivatives at the ends, too, are those of c."""
    excess = wrap(build().stop_gradient(as_value(c - clip(c, -1, 1))), scalar=False)
    return where(abs(c) > 1, c - excess, c)


@function("linalg.cond")
def cond(x: Any, p: Any = None) -> Tracer:
    a = matrix_operand("cond", x, square=p not in (None, 2, -2))
    if 0 in a.shape[-2:]:
        raise errors.LinearAlgebraError("cond is not defined on empty arrays")
    if p in (None, 2, -2):
        s = svd(a, compute_uv=False)
        r = s[..., -1] / s[..., 0] if p == -2 else s[..., 0] / s[..., -1]
    else:
        result = result_type(a)
        inverse = made(build().inv(computed(a, result), mode="fill"), result)
        r = matrix_norm(a, ord=p) * matrix_norm(inverse, ord=p)
    undefined = ufuncs.apply(np.isnan, r) & ~ufuncs.apply(np.isnan, a).any(axis=(-2, -1))
    return wrap(as_value(where(undefined, r.dtype.type(np.inf), r)))
