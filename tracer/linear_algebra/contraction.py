"""Products that sum over axes: matmul, dot, inner, tensordot, kron, cross, powers. One graph op, dot."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from ...ir.types import is_complex
from ..arrays import ufuncs
from ..arrays.common import (
    array,
    axis_index,
    build,
    common_dtype,
    finish,
    finish_ufunc,
    fold,
    ints,
    lies_in,
)
from ..arrays.movement import moveaxis, stack
from ..arrays.table import function
from ..core.tracers import Tracer, as_value, wrap
from ..functions.padding import pad
from ..messages import errors
from .products import accumulating, contract, mismatch, values


@accumulating("dot")
def dot(a: Any, b: Any, out: Any = None, *, preferred_element_type: Any = None) -> Tracer:
    x, y = array(a), array(b)
    if x.ndim == 0 or y.ndim == 0:
        return _into(out, _scaled("dot", x, y, preferred_element_type))
    axis = max(y.ndim - 2, 0)
    if x.shape[-1] != y.shape[axis]:
        mismatch("dot", x, y, x.shape[-1], y.shape[axis])
    u, v = values("dot", x, y, preferred_element_type)
    return _into(out, wrap(contract(u, v, ((x.ndim - 1,), (axis,)))))


def _into(out: Any, result: Tracer) -> Tracer:
    """A product writes to `out` itself: nothing is cast, and nothing is strided."""
    if isinstance(out, Tracer):
        alike = out.dtype == result.dtype and out.shape == result.shape
        if not (alike and lies_in(out, "C")):
            raise ValueError(
                "output array is not acceptable (must have the right datatype, number of "
                "dimensions, and be a C-Array)"
            )
    written = finish(result, out)
    return written if written.ndim else wrap(as_value(written))


def _scaled(name: str, x: Tracer, y: Tracer, preferred: Any) -> Tracer:
    """The product where one of the two has no axes."""
    if preferred is None:
        return ufuncs.apply(np.multiply, x, y)
    return ufuncs.apply(np.multiply, *map(wrap, values(name, x, y, preferred)))


@accumulating("vdot")
def vdot(a: Any, b: Any, /, *, preferred_element_type: Any = None) -> Tracer:
    x, y = array(a).ravel(), array(b).ravel()
    if x.size != y.size:
        mismatch("vdot", x, y, x.size, y.size)
    left = ufuncs.apply(np.conjugate, x) if is_complex(x.dtype) else x
    return dot(left, y, preferred_element_type=preferred_element_type)


@accumulating("inner")
def inner(a: Any, b: Any, /, *, preferred_element_type: Any = None) -> Tracer:
    x, y = array(a), array(b)
    if x.ndim == 0 or y.ndim == 0:
        return _scaled("inner", x, y, preferred_element_type)
    if x.shape[-1] != y.shape[-1]:
        mismatch("inner", x, y, x.shape[-1], y.shape[-1])
    u, v = values("inner", x, y, preferred_element_type)
    return wrap(contract(u, v, ((x.ndim - 1,), (y.ndim - 1,))))


@function("linalg.outer")
def linalg_outer(x1: Any, x2: Any, /) -> Tracer:
    x, y = array(x1), array(x2)
    if x.ndim != 1 or y.ndim != 1:
        raise ValueError(
            "Input arrays must be one-dimensional, "
            f"but they are x1.ndim={x.ndim} and x2.ndim={y.ndim}."
        )
    return outer(x, y)


@function("outer")
def outer(a: Any, b: Any, out: Any = None) -> Tracer:
    x, y = array(a).ravel(), array(b).ravel()
    return finish_ufunc(ufuncs.apply(np.multiply, x[:, None], y[None, :]), out)


@accumulating("tensordot", "linalg.tensordot")
def tensordot(a: Any, b: Any, axes: Any = 2, *, preferred_element_type: Any = None) -> Tracer:
    x, y = array(a), array(b)
    if isinstance(axes, (int, np.integer)):
        count = operator.index(axes)
        if not 0 <= count <= min(x.ndim, y.ndim):
            raise ValueError(f"tensordot: axes={count} with operands of {x.ndim} and {y.ndim} axes")
        left, right = tuple(range(x.ndim - count, x.ndim)), tuple(range(count))
    else:
        left, right = (ints(side) for side in axes)
    left = tuple(axis_index(i, x.ndim, x) for i in left)
    right = tuple(axis_index(i, y.ndim, y) for i in right)
    if len(left) != len(right):
        raise ValueError("shape-mismatch for sum")
    if len(set(left)) != len(left) or len(set(right)) != len(right):
        raise ValueError(f"tensordot: axes={axes} names an axis twice")
    for i, j in zip(left, right, strict=True):
        if x.shape[i] != y.shape[j]:
            mismatch("tensordot", x, y, x.shape[i], y.shape[j])
    u, v = values("tensordot", x, y, preferred_element_type)
    return wrap(contract(u, v, (left, right)), scalar=False)


@function("kron")
def kron(a: Any, b: Any) -> Tracer:
    x, y = array(a), array(b)
    rank = max(x.ndim, y.ndim)
    m = (1,) * (rank - x.ndim) + x.shape
    n = (1,) * (rank - y.ndim) + y.shape
    left = x.reshape(tuple(s for k in m for s in (k, 1)))
    right = y.reshape(tuple(s for k in n for s in (1, k)))
    product = ufuncs.apply(np.multiply, left, right)
    return product.reshape(tuple(i * j for i, j in zip(m, n, strict=True)))


@function("cross")
def cross(
    a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None
) -> Tracer:
    if axis is not None:
        axisa = axisb = axisc = axis
    x, y = array(a), array(b)
    x = moveaxis(x, axis_index(axisa, x.ndim, x), -1)
    y = moveaxis(y, axis_index(axisb, y.ndim, y), -1)
    if x.shape[-1] not in (2, 3) or y.shape[-1] not in (2, 3):
        raise ValueError("incompatible dimensions for cross product\n(dimension must be 2 or 3)")
    if x.shape[-1] + y.shape[-1] < 6 and not _crosses_planes():
        raise ValueError(
            "Both input arrays must be (arrays of) 3-dimensional vectors, "
            f"but they are {x.shape[-1]} and {y.shape[-1]} dimensional instead."
        )
    p = [x[..., i] for i in range(x.shape[-1])]
    q = [y[..., i] for i in range(y.shape[-1])]
    z = p[0] * q[1] - p[1] * q[0]
    if len(p) == len(q) == 2:
        return z
    if len(p) == 2:
        parts = [p[1] * q[2], -(p[0] * q[2]), z]
    elif len(q) == 2:
        parts = [-(p[2] * q[1]), p[2] * q[0], z]
    else:
        parts = [p[1] * q[2] - p[2] * q[1], p[2] * q[0] - p[0] * q[2], z]

    result = stack(parts, axis=-1)
    return moveaxis(result, -1, axis_index(axisc, result.ndim, result))


@cache
def _crosses_planes() -> bool:
    """Whether NumPy takes vectors of two numbers: before version 2.5, with a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        try:
            np.cross([1, 0], [0, 1])
        except ValueError:
            return False
    return True


@function("linalg.cross")
def linalg_cross(x1: Any, x2: Any, /, *, axis: int = -1) -> Tracer:
    x, y = array(x1), array(x2)
    sizes = [v.shape[axis_index(axis, v.ndim, v)] for v in (x, y)]
    if sizes != [3, 3]:
        raise ValueError(
            "Both input arrays must be (arrays of) 3-dimensional vectors, "
            f"but they are {sizes[0]} and {sizes[1]} dimensional instead."
        )
    return cross(x, y, axis=axis)


@function("linalg.multi_dot")
def multi_dot(arrays: Sequence[Any], *, out: Any = None) -> Tracer:
    parts = [array(x) for x in arrays]
    if len(parts) < 2:
        raise ValueError("Expecting at least two arrays.")
    if len(parts) == 2:
        return _into(out, dot(*parts))
    first, last = parts[0].ndim, parts[-1].ndim
    if first == 1:
        parts[0] = parts[0].reshape(1, -1)
    if last == 1:
        parts[-1] = parts[-1].reshape(-1, 1)
    for part in parts:
        if part.ndim != 2:
            raise errors.LinearAlgebraError(
                f"{part.ndim}-dimensional array given. Array must be two-dimensional"
            )
    order = _chain_order([p.shape[0] for p in parts] + [parts[-1].shape[1]])

    def product(i: int, j: int) -> Tracer:
        if i == j:
            return parts[i]
        return dot(product(i, order[i, j]), product(order[i, j] + 1, j))

    result = product(0, len(parts) - 1)
    if first == 1 and last == 1:
        return _into(out, result[0, 0])
    if first == 1 or last == 1:
        result = result.ravel()
    return _into(out, result)


def _chain_order(sizes: list[int]) -> dict[tuple[int, int], int]:
    """Where to split a chain of matrices for the fewest multiplications (Cormen et al.)."""
    n = len(sizes) - 1
    cost = {(i, i): 0 for i in range(n)}
    split = {}
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            options = [
                (cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k)
                for k in range(i, j)
            ]
            cost[i, j], split[i, j] = min(options)
    return split


@function("convolve")
def convolve(a: Any, v: Any, mode: str = "full") -> Tracer:
    x, y = (_signal(s.reshape(1) if s.ndim == 0 else s) for s in (array(a), array(v)))
    return _sliding(x, y, mode) if len(x) >= len(y) else _sliding(y, x, mode)


@function("correlate")
def correlate(a: Any, v: Any, mode: str = "valid") -> Tracer:
    x, y = _signal(a), _signal(v)
    y = ufuncs.apply(np.conjugate, y) if is_complex(y.dtype) else y
    if len(x) >= len(y):
        return _sliding(x, y[::-1], mode)
    return wrap(as_value(_sliding(y, x[::-1], mode)[::-1]))


def _signal(a: Any) -> Tracer:
    x = array(a)
    if x.ndim != 1:
        raise ValueError(
            f"object {'too deep' if x.ndim else 'of too small depth'} for desired array"
        )
    if not x.size:
        raise ValueError("array argument cannot be empty")
    return x


def _sliding(x: Tracer, kernel: Tracer, mode: Any) -> Tracer:
    """Convolution of x with a shorter kernel: windows of the padded x times the kernel."""
    n, k = len(x), len(kernel)
    mode = {0: "valid", 1: "same", 2: "full"}.get(mode, mode)  # NumPy's numbers
    dtype = common_dtype(x, kernel)
    x, kernel = x.astype(dtype), kernel.astype(dtype)
    low, count = {"full": (k - 1, n + k - 1), "same": ((k - 1) // 2 + (k - 1) % 2, n)}.get(
        mode, (0, n - k + 1)
    )
    if not isinstance(mode, (str, int)):
        raise TypeError("convolve/correlate mode not understood")
    if mode not in ("full", "same", "valid"):
        raise ValueError(f"mode must be one of 'valid', 'same', or 'full' (got {mode!r})")
    if mode == "same":
        low = k - 1 - (k - 1) // 2
    high = count + k - 1 - n - low
    flipped = kernel[::-1]
    if k <= 16:  # products are padded, since infinity times a zero that is not there is nothing
        products = (pad(x * flipped[i], (low, high)) for i in range(k))
        return fold(operator.add, [p[i : i + count] for i, p in enumerate(products)])
    padded = as_value(pad(x, (low, high)))
    windows = build().strided(padded, shape=(count, k), start=(0,), steps=((1, 1),))
    return wrap(contract(windows, as_value(flipped), ((1,), (0,))))
