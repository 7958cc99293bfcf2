"""Joins of arrays whose length is a value (`indexing.bounded`): concatenate, stack, np.array of several.

Along the axis that is joined lengths are added up; along others they must be equal, which is checked
when the compiled function runs unless they are the same computation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...ir.types import I64
from ..arrays.common import array, axis_index, build, given
from ..arrays.table import FUNCTIONS, ArrayFunction
from ..core.tracers import as_value, wrap
from ..data.promotion import can_cast, canonical, result_dtype
from ..indexing.bounded import Bounded, bounded, number, refuse, require_equal, resized, rule
from ..indexing.bounded_index import store
from ..indexing.masked import Masked

_CONCATENATED = (
    "all the input array dimensions except for the concatenation axis must match exactly, but along "
    "dimension {axis}, the array at index 0 has size {{0}} and the array at index {k} has size {{1}}"
)
_STACKED = "all input arrays must have the same shape"
_NESTED = (
    "setting an array element with a sequence. The requested array has an inhomogeneous shape after "
    "1 dimensions"
)


def parts_of(arrays: Any) -> list[Any]:
    """The arrays of a sequence, those whose length is a value as `Bounded`s."""
    parts = [x.materialised() if isinstance(x, Masked) else x for x in arrays]
    return [x if isinstance(x, Bounded) else array(x) for x in parts]


def joined(
    parts: Sequence[Any],
    axis: int,
    text: str = _CONCATENATED,
    dtype: Any = None,
    casting: str = "same_kind",
) -> Any:
    """`np.concatenate` of arrays of one rank; `text` is for lengths that differ."""
    if any(p.ndim != parts[0].ndim for p in parts):
        raise ValueError("all the input arrays must have same number of dimensions")
    dtype = result_dtype(*(p.dtype for p in parts)) if dtype is None else canonical(dtype)
    if not all(can_cast(p.dtype, dtype, casting) for p in parts):
        raise TypeError(f"Cannot cast array data to {dtype!r} according to the rule {casting!r}")
    arrays = [p.padded if isinstance(p, Bounded) else p for p in parts]
    arrays = [a.astype(dtype) for a in arrays]
    counts: dict[int, Any] = {}
    for d in (d for d in range(parts[0].ndim) if d != axis):
        lengths = [p.shape[d] for p in parts]
        for k, n in enumerate(lengths):
            if isinstance(n, int) and isinstance(lengths[0], int) and n != lengths[0]:
                raise ValueError(text.format(axis=d, k=k).format(lengths[0], n))
            require_equal(lengths[0], n, text.format(axis=d, k=k))
        known = [n for n in lengths if isinstance(n, int)]
        size = known[0] if known else min(a.shape[d] for a in arrays)
        arrays = [resized(a, d, size) for a in arrays]
        if not known:
            counts[d] = lengths[0]
    lengths = [p.shape[axis] for p in parts]
    if all(isinstance(n, int) for n in lengths):
        return bounded(FUNCTIONS["concatenate"].traced(arrays, axis), counts)
    b, total, at = build(), sum(a.shape[axis] for a in arrays), build().const(0, I64)
    shape = tuple(total if d == axis else n for d, n in enumerate(arrays[0].shape))
    whole = b.full(shape, 0, dtype)
    for a, length in zip(arrays, lengths, strict=True):
        count, window = as_value(length, I64), as_value(resized(a, axis, total))
        whole = b.bounded_update_slice(whole, window, at, count, axes=(axis,), steps=(1,))
        at = b.add(at, count)
    return bounded(wrap(whole, scalar=False), {**counts, axis: number(wrap(at))})


def stacked(arrays: Any, axis: Any = 0, text: str = _STACKED, **options: Any) -> Any:
    """Arrays of one shape, along a new axis."""
    parts = parts_of(arrays)
    if any(p.ndim != parts[0].ndim for p in parts):
        raise ValueError(text)
    axis = axis_index(axis, parts[0].ndim + 1)
    index = (*(slice(None),) * axis, None)
    return joined([p[index] for p in parts], axis, text, **options)


def one_of(a: Any) -> Bounded:
    """The array that a function is of. A sequence of arrays is one along a new axis."""
    if isinstance(a, (list, tuple)):
        a = stacked(a, text=_NESTED)
    return a if isinstance(a, Bounded) else Bounded(array(a), {})


def finished(result: Any, out: Any) -> Any:
    if out is None or not given(out):
        return result
    store(out, result)
    return out


def _written(result: Any, out: Any, options: dict[str, Any]) -> Any:
    if out is not None and options.get("dtype") is not None:
        raise TypeError(
            "concatenate() only takes `out` or `dtype` as an argument, but both were provided."
        )
    return finished(result, out)


@rule("concatenate", "concat")
def _concatenate(
    entry: ArrayFunction, arrays: Any, axis: Any = 0, out: Any = None, **options: Any
) -> Any:
    parts = parts_of(arrays)
    if axis is None:
        parts, axis = [_flat(p, entry.name) for p in parts], 0
    if not parts[0].ndim:
        raise ValueError("zero-dimensional arrays cannot be concatenated")
    return _written(joined(parts, axis_index(axis, parts[0].ndim), **options), out, options)


@rule("append")
def _append(entry: ArrayFunction, arr: Any, values: Any, axis: Any = None) -> Any:
    return _concatenate(entry, [arr, values], axis)


def _flat(x: Any, name: str) -> Any:
    if not isinstance(x, Bounded):
        return x.ravel()
    return x if x.ndim == 1 else refuse(x, f"np.{name} of matrices without an axis")


@rule("stack")
def _stack(
    entry: ArrayFunction, arrays: Any, axis: Any = 0, out: Any = None, **options: Any
) -> Any:
    return _written(stacked(arrays, axis, **options), out, options)


@rule("atleast_1d", "atleast_2d", "atleast_3d")
def _at_least(entry: ArrayFunction, *arrays: Any) -> Any:
    parts = tuple(_with_axes(x, int(entry.name[-2])) for x in parts_of(arrays))
    return parts[0] if len(parts) == 1 else parts


def _with_axes(x: Any, rank: int) -> Any:
    if not isinstance(x, Bounded):
        return FUNCTIONS[f"atleast_{rank}d"].traced(x)
    if rank == 3 and x.ndim < 3:
        return x[None, :, None] if x.ndim == 1 else x[:, :, None]
    return x[None] if rank == 2 and x.ndim == 1 else x


@rule("vstack", "hstack", "dstack", "column_stack")
def _side_by_side(entry: ArrayFunction, tup: Any, **options: Any) -> Any:
    parts = parts_of(tup)
    if entry.name == "column_stack":
        parts = [p[:, None] if p.ndim == 1 else p for p in (_with_axes(p, 1) for p in parts)]
        return joined(parts, 1, **options)
    rank = {"hstack": 1, "vstack": 2, "dstack": 3}[entry.name]
    parts = [_with_axes(p, rank) for p in parts]
    axis = {1: int(parts[0].ndim > 1), 2: 0, 3: 2}[rank]
    return joined(parts, axis, **options)
