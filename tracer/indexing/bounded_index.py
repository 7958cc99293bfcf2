"""Indices where lengths are values: slices with traced bounds, and any index of a bounded array.

An index is taken apart: slices with traced bounds are windows (`cuts`), positions of a bounded axis are
checked against its count, and the rest is an ordinary index of the padded array.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...ir.types import BOOL, I64
from ..arrays.common import array, build, operand, shape_of
from ..arrays.reductions import all_
from ..arrays.table import FUNCTIONS
from ..core.effects import check
from ..core.trace import bounds_checked
from ..core.tracers import Tracer, as_value, wrap
from ..messages import errors
from ..messages.errors import complain
from .bounded import (
    Aligned,
    Bounded,
    bounded,
    bounded_method,
    filled,
    live_in,
    refuse,
    resized,
    rule,
)
from .cuts import Window, cut, has_traced_step, is_cut, same_index, strided, window
from .index_plan import Subscript
from .indexing import getitem, setitem, update
from .masked import Masked


@rule("x[index]")
def read(entry: Any, x: Any, index: Any) -> Any:
    """`x[index]`: a view where NumPy has one."""
    items = _expanded(x, index)
    part = _read(x, items, any(i is ... for i in (index if isinstance(index, tuple) else (index,))))
    if isinstance(part, Bounded):
        part.origin = (x, items, _version(x))
    own, base = _padded(part), _padded(x)
    seen = isinstance(own, Tracer) and own._storage is base._storage and not own.scalar
    if seen and own._view is not None and all(map(_is_basic, items)):
        own._view.subscript = Subscript(tuple(items)), base
    return part


def _is_basic(item: Any) -> bool:
    """Whether an item of an index says where without any traced number."""
    parts = (item.start, item.stop, item.step) if isinstance(item, slice) else (item,)
    return all(part is None or type(part) is int for part in parts)


@bounded_method("__getitem__")
def _getitem(x: Bounded, index: Any) -> Any:
    return read(None, x, index)


def _version(x: Any) -> int:
    padded = x.padded if isinstance(x, Bounded) else x
    return int(padded._storage.version)


def _expanded(x: Any, index: Any) -> list[Any]:
    """The items of an index, the ellipsis and what is left out written out. Lists are arrays."""
    entries = list(index if isinstance(index, tuple) else (index,))
    entries = [np.asarray(i) if isinstance(i, (list, range)) else i for i in entries]
    used = sum(_axes(i) for i in entries)
    if used > x.ndim:
        complain(
            errors.BoundsError,
            f"too many indices for array: array is {x.ndim}-dimensional, but {used} were indexed",
            f"x has {x.ndim} axes.",
            operands={"x": x.padded if isinstance(x, Bounded) else x},
        )
    rest = [slice(None)] * (x.ndim - used)
    if not any(i is Ellipsis for i in entries):
        return entries + rest
    at = next(k for k, i in enumerate(entries) if i is Ellipsis)
    return [*entries[:at], *rest, *entries[at + 1 :]]


def _axes(item: Any) -> int:
    if item is None or item is Ellipsis:
        return 0
    return int(item.ndim) if getattr(item, "dtype", None) == BOOL else 1


def _read(x: Any, items: Sequence[Any], dots: bool = False) -> Any:
    if any(_is_array(i) and i.dtype == BOOL for i in items):
        return _masked(x, _padded(x), _counts(x), items)
    padded = _padded(x)
    static, windows, left = _apart(x, items)
    plain = all(isinstance(i, slice) and i == slice(None) for i in static)
    base = padded if plain else getitem(padded, (*static, ...) if dots else static)
    if not windows:
        return bounded(base, left) if left else base
    return cut(base, windows, left)


def _apart(
    x: Any, items: Sequence[Any]
) -> tuple[tuple[Any, ...], dict[int, Window], dict[int, Any]]:
    """An index of the padded array, and of what that gives the windows, and counts of other axes."""
    padded = x.padded if isinstance(x, Bounded) else x
    counts = x.counts if isinstance(x, Bounded) else {}
    items = _together(padded, items)
    first = next((k for k, i in enumerate(items) if _is_array(i)), 0)
    static: list[Any] = []
    windows: dict[int, Any] = {}
    left: dict[int, Any] = {}
    axis = place = 0
    for k, item in enumerate(items):
        if item is None:
            static.append(None)
            place += 1
            continue
        count = counts.get(axis)
        if isinstance(item, slice):
            static.append(slice(None))
            if item != slice(None) and (count is not None or is_cut(item)):
                windows[place] = window(item, count if count is not None else padded.shape[axis])
            elif item != slice(None):
                static[-1] = item
            elif count is not None:
                left[place] = count
            place += 1
        elif _is_array(item):
            index, own = _positions(item, padded, axis, count)
            static.append(index)
            if k == first:
                left.update({place + d: c for d, c in own.items()})
                place += index.ndim
        else:
            static.append(item if count is None else _position(item, count, axis))
        axis += 1
    return tuple(static), windows, left


def _together(x: Tracer, items: Sequence[Any]) -> list[Any]:
    """The items of an index, its arrays and the integers beside them broadcast against each other."""
    arrays = [k for k, i in enumerate(items) if _is_array(i)]
    if not arrays or (not any(_is_number(i) for i in items) and len(arrays) == 1):
        return list(items)
    positions = [k for k, i in enumerate(items) if k in arrays or _is_number(i)]
    if positions != list(range(positions[0], positions[-1] + 1)):
        _refuse_mixed(x)
    parts = [items[k] for k in positions]
    parts = [i.materialised() if isinstance(i, Masked) else i for i in parts]
    parts = [i if isinstance(i, Bounded) else array(i) for i in parts]
    if any(i.dtype == BOOL for i in parts):
        _refuse_mixed(x)
    aligned = Aligned(parts, _INDEX_MISMATCH, "IndexError")
    spread = FUNCTIONS["broadcast_to"].traced
    whole = [bounded(spread(i, aligned.shape), aligned.counts) for i in aligned.padded]
    return [*items[: positions[0]], *whole, *items[positions[-1] + 1 :]]


_INDEX_MISMATCH = (
    "shape mismatch: indexing arrays could not be broadcast together with shapes ({0},) ({1},)"
)


def _is_array(item: Any) -> bool:
    return isinstance(item, (Bounded, Masked, np.ndarray, Tracer)) and item.ndim > 0


def _is_number(item: Any) -> bool:
    return not (item is None or isinstance(item, slice) or _is_array(item))


def _refuse_mixed(x: Tracer) -> None:
    complain(
        errors.DynamicShapeError,
        "slices or arrays whose length is a value stand beside other index arrays or integers and "
        "arrays in one index",
        "index step by step: x[rows][:, a:b].",
        operands={"x": x},
    )


def _position(item: Any, count: Any, axis: int) -> Any:
    """The place that an integer means on an axis of `count` elements."""
    b = build()
    if isinstance(item, (bool, np.bool_)) or getattr(item, "dtype", I64).kind not in "iu":
        raise IndexError(
            "only integers, slices (`:`), ellipsis (`...`), numpy.newaxis (`None`) and integer or "
            "boolean arrays are valid indices"
        )
    value, n = as_value(item, I64), as_value(count, I64)
    zero = b.const(0, I64)
    position = b.select(b.lt(value, zero), b.add(value, n), value)
    if bounds_checked():
        inside = b.bitwise_and(b.ge(position, zero), b.lt(position, n))
        text = f"index {{0}} is out of bounds for axis {axis} with size {{1}}"
        check(wrap(inside), text, wrap(value), wrap(n), error="IndexError")
    return wrap(position)


def _positions(item: Any, x: Tracer, axis: int, count: Any) -> tuple[Tracer, dict[int, Any]]:
    """An array of places on an axis, and the counts of the array."""
    item = item.materialised() if isinstance(item, Masked) else item
    index, own = filled(item, 0), item.counts if isinstance(item, Bounded) else {}
    if index.dtype.kind not in "iu":
        raise IndexError("arrays used as indices must be of integer (or boolean) type")
    if count is None:
        return index, own
    position = FUNCTIONS["where"].trace((index < 0, index + count, index), {})
    if bounds_checked():
        inside = (position >= 0) & (position < count)
        if own:
            inside = inside | ~wrap(live_in(inside.shape, own), scalar=False)
        text = f"an index is out of bounds for axis {axis} with size {{0}}"
        check(all_(inside), text, wrap(as_value(count, I64)), error="IndexError")
    return FUNCTIONS["where"].trace(
        (inside, position, 0), {}
    ) if bounds_checked() else position, own


def _masked(x: Any, padded: Tracer, counts: Any, items: Sequence[Any]) -> Any:
    """`x[mask]`: the elements of the padded array where the mask is true, and is there."""
    position = next(k for k, i in enumerate(items) if _is_array(i))
    others = [i for k, i in enumerate(items) if k != position]
    if any(isinstance(i, slice) and i != slice(None) and (is_cut(i) or counts) for i in others):
        _refuse_mixed(padded)
    mask = items[position]
    mask = mask.materialised() if isinstance(mask, Masked) else mask
    axes = range(position, position + mask.ndim)
    if any(a in counts and a not in axes for a in range(padded.ndim)):
        refuse(x, "x[mask]")
    along = Aligned(
        [mask, _shape_like(x, axes)],
        "boolean index did not match indexed array along axis; sizes are {0} and {1}",
        "IndexError",
    )
    flags = filled(Aligned([mask]).result(along.padded[0]), False)
    for axis, count in along.counts.items():
        flags = flags & wrap(live_in(flags.shape, {axis: count}), scalar=False)
    for k, axis in enumerate(axes):
        padded = resized(padded, axis, flags.shape[k])
    return getitem(padded, tuple(flags if k == position else i for k, i in enumerate(items)))


def _shape_like(x: Any, axes: Sequence[int]) -> Any:
    """An array of the sizes and counts of some axes of `x`."""
    padded = x.padded if isinstance(x, Bounded) else x
    shape = tuple(padded.shape[a] for a in axes)
    counts = x.counts if isinstance(x, Bounded) else {}
    flags = wrap(build().full(shape, True, BOOL), scalar=False)
    return bounded(flags, {k: counts[a] for k, a in enumerate(axes) if a in counts})


# Writing


@rule("x[index] = value")
def write(entry: Any, x: Any, index: Any, value: Any) -> None:
    """`x[index] = value`."""
    items = _expanded(x, index)
    others = [i for i in items if not isinstance(i, slice) or i != slice(None)]
    if len(others) == 1 and has_traced_step(others[0]):
        sizes = zip(items, x.shape, _padded(x).shape, strict=True)
        items = [strided(i, n, most) if has_traced_step(i) else i for i, n, most in sizes]
    value = value.materialised() if isinstance(value, Masked) else value
    if isinstance(value, Bounded) and value.origin is not None:
        base, own, version = value.origin
        if base is x and version == _version(x) and same_index(own, items):
            return  # `x[a:b] += v` has been written
    arrays = [i for i in items if _is_array(i)]
    if arrays:
        _write_at(x, items, arrays, value)
        return
    static, windows, left = _apart(x, items)
    if windows or left or isinstance(value, Bounded):
        store(_read(x, items), value)
    else:
        setitem(_padded(x), static, value)


@bounded_method("__setitem__")
def _setitem(x: Bounded, index: Any, value: Any) -> None:
    write(None, x, index, value)


def store(target: Any, value: Any) -> None:
    """Assign to all elements of a view."""
    text = "could not broadcast input array from shape ({1},) into shape ({0},)"
    padded = target.padded if isinstance(target, Bounded) else target
    if padded.scalar:  # an element of its own
        complain(
            errors.DTypeError,
            "a NumPy scalar does not support item assignment: it is a value, not an array",
            "assign to an element of the array.",
            operands={"scalar": padded},
        )
    value = operand(value) if not isinstance(value, Bounded) else value
    while len(shape_of(_padded(value))) > target.ndim and _padded(value).shape[0] == 1:
        value = value[0]
    if isinstance(value, Bounded) or isinstance(target, Bounded):
        both = Aligned([target, value], text)
        if len(both.shape) > target.ndim:
            raise ValueError("could not broadcast input array into the shape of the destination")
        value = both.padded[1]
        for axis, (have, want) in enumerate(
            zip(shape_of(value)[::-1], padded.shape[::-1], strict=False)
        ):
            if have not in (1, want):
                value = resized(array(value), value.ndim - 1 - axis, want)
    setitem(padded, ..., value)


def _padded(x: Any) -> Any:
    return x.padded if isinstance(x, Bounded) else x


def _counts(x: Any) -> dict[int, Any]:
    return x.counts if isinstance(x, Bounded) else {}


def combine_at(x: Any, index: Any, value: Any, combine: str) -> None:
    """`value` combined into `x[index arrays]`, again where an element is named again."""
    items = _expanded(x, index)
    arrays = [i for i in items if _is_array(i)]
    if not arrays or any(i.dtype == BOOL for i in arrays):
        _refuse_mixed(_padded(x))
    _write_at(x, items, arrays, value, combine)


def _write_at(
    x: Any, items: Sequence[Any], arrays: Sequence[Any], value: Any, combine: str = "set"
) -> None:
    """`x[index arrays] = value`, `x[mask] = value`; what is not indexed are whole axes at the end."""
    padded, counts = _padded(x), _counts(x)
    rest = [i for i in items if not _is_array(i)]
    whole = all(isinstance(i, slice) and i == slice(None) for i in rest)
    if whole and len(arrays) == 1 and arrays[0] is items[0] and arrays[0].dtype == BOOL:
        _write_masked(x, items, value)
        return
    items = _together(padded, items)
    rest = [i for i in items if not _is_array(i)]
    chosen = items[: len(items) - len(rest)]  # what follows are whole axes
    whole = all(isinstance(i, slice) and i == slice(None) for i in rest)
    if not whole or not all(map(_is_array, chosen)) or any(k >= len(chosen) for k in counts):
        _refuse_mixed(padded)
    indices: list[Any] = []
    own: dict[int, Any] = {}
    for axis, item in enumerate(chosen):
        index, own = _positions(item, padded, axis, counts.get(axis))
        indices.append(index)
    if not own:
        value = filled(value, 0) if isinstance(value, Bounded) else value
        update(padded, tuple(indices), value, combine)
        return
    for axis, index in enumerate(indices):
        size = padded.shape[axis]
        inside = (index >= -size) & (index < size)
        text = f"an index is out of bounds for axis {axis} with size {size}"
        check(all_(inside), text, error="IndexError")
    there = wrap(live_in(indices[0].shape, own), scalar=False)
    indices[0] = FUNCTIONS["where"].trace((there, indices[0], padded.shape[0]), {})
    if len(shape_of(_padded(value))):
        columns = (..., *(None for _ in rest))
        both = Aligned(
            [*(bounded(i, own)[columns] for i in indices), value],
            "shape mismatch: value array of shape ({1},) "
            "could not be broadcast to indexing result of shape ({0},)",
        )
        indices = [i[(..., *(0 for _ in rest))] for i in both.padded[:-1]]
        value = both.padded[-1]
    update(padded, tuple(indices), value, combine, "fill")


def _write_masked(x: Any, items: Sequence[Any], value: Any) -> None:
    """`x[mask] = values`: one value after the other where the mask is true. Axes behind those of the
    mask are whole."""
    mask, *rest = items
    first = x[(..., *(0 for _ in rest))] if rest else x
    chosen = _masked(first, _padded(first), _counts(first), [mask])
    assert isinstance(chosen, Masked)
    flags, padded = chosen.mask, _padded(x)
    for axis, size in enumerate(flags.shape):
        padded = resized(padded, axis, size)
    if len(shape_of(_padded(value))) > len(rest):
        position = FUNCTIONS["cumsum"].trace((flags.astype(np.int64).ravel(),), {}) - 1
        position = position.reshape(flags.shape)
        if isinstance(value, Bounded) and 0 in value.counts:
            position = _all_or_one(value.counts[0], chosen.size, position)
        elif shape_of(_padded(value))[0] != 1:
            _all_or_one(shape_of(_padded(value))[0], chosen.size, position)
        source = array(_padded(value))
        if source.shape[0] == 0:
            return
        if source.shape[0] == 1 and not isinstance(value, Bounded):
            value = source[0]
        else:
            value = FUNCTIONS["take"].trace((source, position, 0), {"mode": "clip"})
    flags = flags[(..., *(None for _ in rest))]
    new = FUNCTIONS["where"].trace((flags, value, padded), {}).astype(padded.dtype)
    setitem(padded, ..., new)


def _all_or_one(count: Any, total: Any, position: Tracer) -> Tracer:
    """Which of `count` values `total` elements get, in turn: of one all get it."""
    b, number_of, wanted = build(), as_value(count, I64), as_value(total, I64)
    one = b.eq(number_of, b.const(1, I64))
    fits = b.eq(number_of, wanted)
    enough = fits if isinstance(count, int) else b.bitwise_or(one, fits)
    check(wrap(enough), _MASK_MISMATCH, wrap(number_of), wrap(wanted), error="ValueError")
    if isinstance(count, int):
        return position
    return FUNCTIONS["where"].trace((wrap(one), 0, position), {})


_MASK_MISMATCH = (
    "NumPy boolean array indexing assignment cannot assign {0} input values to the {1} output "
    "values where the mask is true"
)
