"""Index arrays: triangles and diagonals of matrices, places in an array as one number or as several."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...ir.types import I64
from ..arrays.common import array, axis_index, check_values, ints
from ..arrays.elementwise import where
from ..arrays.movement import moveaxis
from ..arrays.table import function
from ..core.tracers import Tracer, as_value, wrap_like
from .padding import pad


def _constants(arrays: tuple[np.ndarray[Any, Any], ...]) -> tuple[Tracer, ...]:
    return tuple(array(x) for x in arrays)


def _enter_static(name: str) -> None:
    """A function of sizes alone: its result is constants of the program."""
    plain = getattr(np, name)
    function(name, creates=True)(lambda *args, **kwargs: _constants(plain(*args, **kwargs)))


def _enter_of_shape(name: str) -> None:
    """A function of the shape of its first argument alone."""
    plain = getattr(np, name)

    def traced(arr: Any, *args: Any, **kwargs: Any) -> tuple[Tracer, ...]:
        return _constants(plain(np.empty(array(arr).shape, bool), *args, **kwargs))

    function(name)(traced)


for _name in ("tril_indices", "triu_indices", "diag_indices"):
    _enter_static(_name)
for _name in ("tril_indices_from", "triu_indices_from", "diag_indices_from"):
    _enter_of_shape(_name)


def _whole(index: Any) -> Tracer:
    indices = array(index)
    if indices.dtype.kind not in "biu":
        raise TypeError("only int indices permitted")
    return indices.astype(I64)


def _in_range(index: Tracer, n: int, mode: str | None) -> Tracer:
    """An index of an axis of n elements: checked, clipped, or taken modulo n."""
    match mode:
        case "clip":
            return where(index < 0, 0, where(index >= n, n - 1, index))
        case "wrap":
            return index % n
        case "raise" | None:
            inside = ((index >= 0) & (index < n)).all()
            check_values(inside, f"an index is out of bounds for an axis of size {n}")
            return index
    raise ValueError(f"mode={mode!r} is not one of 'raise', 'wrap' and 'clip'")


def _order(order: str) -> bool:
    """Whether the last dim is the fastest."""
    if order not in ("C", "F"):
        raise ValueError("only 'C' or 'F' order is permitted")
    return order == "C"


@function("ravel_multi_index")
def ravel_multi_index(multi_index: Any, dims: Any, mode: Any = "raise", order: str = "C") -> Tracer:
    """np.ravel_multi_index; what is out of range is a ValueError when the compiled function runs."""
    shape = ints(dims)
    parts = [_whole(i) for i in multi_index]
    if len(parts) != len(shape):
        raise ValueError(f"parameter multi_index must be a sequence of length {len(shape)}")
    modes = mode if isinstance(mode, tuple) else (mode,) * len(shape)
    dims_in_order = list(zip(parts, shape, modes, strict=True))
    if not all(p.size for p in parts):  # of no indices none is out of bounds
        return array(np.zeros(np.broadcast_shapes(*(p.shape for p in parts)), np.int64))
    if 0 in shape:
        raise ValueError("cannot unravel if shape has zero entries (is empty).")
    flat: Any = 0
    for index, n, how in dims_in_order if _order(order) else reversed(dims_in_order):
        flat = flat * n + _in_range(index, n, how)
    return array(flat)


@function("unravel_index")
def unravel_index(indices: Any, shape: Any, order: str = "C") -> tuple[Tracer, ...]:
    """np.unravel_index; what is out of range is a ValueError when the compiled function runs."""
    dims: Sequence[int] = ints(shape)
    rest = _whole(indices)
    if not dims and rest.ndim:
        raise ValueError("multiple indices are not supported for 0d arrays")
    rest = _in_range(rest, math.prod(dims), "raise")
    coordinates = []
    for n in reversed(dims) if _order(order) else dims:
        coordinates.append(rest % max(n, 1))
        rest = rest // max(n, 1)
    return tuple(reversed(coordinates)) if _order(order) else tuple(coordinates)


# Bits in bytes


def _bit_shifts(bitorder: str) -> np.ndarray[Any, Any]:
    if bitorder not in ("big", "little"):
        raise ValueError("'order' must be either 'little' or 'big'")
    shifts = np.arange(8, dtype=np.uint8)
    return shifts[::-1].copy() if bitorder == "big" else shifts


@function("packbits")
def packbits(a: Any, /, axis: Any = None, bitorder: str = "big") -> Tracer:
    x = array(a)
    if x.dtype.kind not in "biu":
        raise TypeError("Expected an input array of integer or boolean data type")
    flat = axis is None or x.ndim == 0
    axis_index(axis or 0, max(x.ndim, 1), x)
    x, axis = (x.ravel(), 0) if flat else (x, operator.index(axis))
    bits = moveaxis(x != 0, axis, -1)
    missing = -bits.shape[-1] % 8
    bits = pad(bits, [(0, 0)] * (bits.ndim - 1) + [(0, missing)])
    bits = bits.reshape((*bits.shape[:-1], bits.shape[-1] // 8, 8)).astype(np.uint8)
    packed = (bits << _bit_shifts(bitorder)).sum(axis=-1, dtype=np.uint8)
    return wrap_like(as_value(moveaxis(packed, -1, axis)), (x,), order="A")


@function("unpackbits")
def unpackbits(a: Any, /, axis: Any = None, count: Any = None, bitorder: str = "big") -> Tracer:
    x = array(a)
    if x.dtype != np.uint8:
        raise TypeError("Expected an input array of unsigned byte data type")
    x, axis = (x.ravel(), 0) if axis is None else (x, operator.index(axis))
    packed = moveaxis(x, axis, -1)
    bits = (packed[..., None] >> _bit_shifts(bitorder)) & np.uint8(1)
    n = packed.shape[-1] * 8
    bits = bits.reshape((*packed.shape[:-1], n))
    wanted = n if count is None else operator.index(count)
    if wanted < -n:
        raise ValueError("-count larger than number of elements")
    wanted = n + wanted if wanted < 0 else wanted
    bits = pad(bits[..., :wanted], [(0, 0)] * (bits.ndim - 1) + [(0, max(wanted - n, 0))])
    return wrap_like(as_value(moveaxis(bits, -1, axis)), (x,), order="A")
