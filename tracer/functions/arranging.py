"""Functions that rearrange or repeat elements: flip, roll, repeat, tile, grids, insertion."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from ...ir.build import Builder
from ...ir.graph import Value
from ...ir.types import BOOL
from ..arrays.common import (
    along_axis,
    array,
    as_elements,
    axis_index,
    build,
    check_values,
    index_array,
    ints,
    known_array,
    require_static,
    shape_of,
)
from ..arrays.creation import COUNTED, arange, bound_of
from ..arrays.elementwise import no_static_shape
from ..arrays.elementwise import where as choose
from ..arrays.movement import broadcast_to, concatenate, flip, moveaxis
from ..arrays.table import BY_NUMPY, FUNCTIONS, ArrayFunction, function, refuse_option
from ..core import views
from ..core.tracers import Tracer, as_value, wrap, wrap_like
from ..data.layout import c_strides
from ..messages import errors
from ..messages.errors import complain
from .scans import cumsum
from .selection import take
from .sorting import argsort, searchsorted


@function("rot90")
def rot90(m: Any, k: int = 1, axes: Any = (0, 1)) -> Tracer:
    x = array(m)
    if len(axes) != 2 or axes[0] == axes[1] or abs(axes[0] - axes[1]) == x.ndim:
        raise ValueError("Axes must be different.")
    i, j = (axis_index(a, x.ndim, x) for a in axes)
    perm = list(range(x.ndim))
    perm[i], perm[j] = perm[j], perm[i]
    k %= 4
    if k == 0:
        return x[...]
    if k == 2:
        return flip(x, (i, j))
    if k == 1:
        return views.transpose(flip(x, j), perm)
    return flip(views.transpose(x, perm), j)


@function("roll")
def roll(a: Any, shift: Any, axis: Any = None) -> Tracer:
    x = array(a)
    if axis is None:
        return roll(x.ravel(), shift, 0).reshape(x.shape)
    model = x
    constant = known_array(shift)
    if len(shape_of(shift)) > 1 or np.ndim(axis) > 1:
        raise ValueError("'shift' and 'axis' should be scalars or 1D sequences")
    if constant is None:
        return _rolled(x, array(shift).astype(np.int64), axis)
    shifts, axes = np.broadcast_arrays(constant, axis)
    for amount, ax in zip(map(int, shifts.ravel()), axes.ravel().tolist(), strict=True):
        ax = axis_index(ax, x.ndim, x)
        n = x.shape[ax]
        cut = n - amount % n if n else 0
        lead = (slice(None),) * ax
        if n and cut != n:
            x = concatenate([x[(*lead, slice(cut, n))], x[(*lead, slice(0, cut))]], ax)
    return wrap_like(as_value(x), (model,), scalar=False, copy=True)


def _rolled(x: Tracer, shift: Tracer, axis: Any) -> Tracer:
    """Rolled by as much as is known when the compiled function runs."""

    axes, model = np.atleast_1d(axis), x
    count = max(len(axes), shift.size)
    amounts = views.broadcast_to(shift.reshape(-1), (count,))
    for i, ax in enumerate(np.broadcast_to(axes, (count,)).tolist()):
        ax = axis_index(ax, x.ndim, x)
        n = x.shape[ax]
        if n:
            x = take(x, (arange(n) - amounts[i]) % n, ax, mode="clip")
    return wrap_like(as_value(x), (model,), scalar=False, copy=True)


def _repeat_reference(
    a: Any, repeats: Any, axis: Any = None, *, total_repeat_length: Any = None
) -> Any:
    if total_repeat_length is None:
        return np.repeat(a, repeats, axis)
    x, at = (np.ravel(a), 0) if axis is None else (np.asarray(a), axis)
    indices = np.repeat(np.arange(x.shape[at]), repeats)[:total_repeat_length]
    rest = np.full(total_repeat_length - len(indices), x.shape[at] - 1)
    return np.take(x, np.concatenate([indices, rest]), at)


@function("repeat", reference=_repeat_reference)
def repeat(a: Any, repeats: Any, axis: Any = None, *, total_repeat_length: Any = None) -> Tracer:
    """np.repeat; with `total_repeat_length`, which compiled code needs where `repeats` is traced, so
    many entries: the first ones, or the last one again and again."""
    x = array(a)
    if axis is None or x.ndim == 0:
        axis_index(axis or 0, max(x.ndim, 1), x)
        x, axis = x.ravel(), 0
    axis = axis_index(axis, x.ndim, x)
    if total_repeat_length is not None:
        return _repeated(x, index_array(repeats), axis, operator.index(total_repeat_length))
    counts = known_array(index_array(repeats))
    if counts is None:
        traced = index_array(repeats)
        total = traced.sum() if traced.size != 1 else traced.reshape(()) * x.shape[axis]
        length = known_array(total)
        if length is not None:
            return _repeated(x, traced, axis, int(length))
        most = bound_of(total)
        if most is not None:
            each = broadcast_to(traced.reshape(-1), (x.shape[axis],))
            check_values((each >= 0).all(), "repeats may not contain negative values.")
            return COUNTED[0](_repeated(x, each, axis, most), {axis: total})
        instead = "jt.repeat(x, r, total_repeat_length=n)"
        no_static_shape("np.repeat of traced repeats", instead, total)
    n = x.shape[axis]
    if counts.size == 1:
        count = int(counts.reshape(()))
        if count < 0:
            raise ValueError("repeats may not contain negative values.")
        shape = (*x.shape[: axis + 1], count, *x.shape[axis + 1 :])
        dims = tuple(i for i in range(len(shape)) if i != axis + 1)
        b = build()
        value = b.broadcast(as_value(x), shape=shape, dims=dims)
        final = (*x.shape[:axis], n * count, *x.shape[axis + 1 :])
        return wrap(b.reshape(value, shape=final), scalar=False)
    if counts.shape != (n,):
        raise ValueError(
            f"operands could not be broadcast together with shape ({n},) {counts.shape}"
        )

    return take(x, np.repeat(np.arange(n), counts).tolist(), axis=axis)


def _repeated(x: Tracer, repeats: Tracer, axis: int, length: int) -> Tracer:
    """Each entry its number of times, `length` of them in all: entry i ends where the sum of the first
    i numbers does."""

    n = x.shape[axis]
    if n == 0:
        raise ValueError("repeat: an axis without entries cannot be repeated")
    ends = cumsum(views.broadcast_to(repeats.reshape(-1), (n,)))
    indices = searchsorted(ends, arange(length, dtype=np.int64), "right")
    return take(x, indices, axis, mode="clip")


@function("sliding_window_view", reference=np.lib.stride_tricks.sliding_window_view)
def sliding_window_view(
    x: Any, window_shape: Any, axis: Any = None, *, subok: bool = False, writeable: bool = False
) -> Tracer:
    """np.lib.stride_tricks.sliding_window_view, read-only."""
    if writeable:
        refuse_option("sliding_window_view", writeable=True)
    a, sizes = array(x), ints(window_shape)
    axes = list(range(a.ndim)) if axis is None else [axis_index(d, a.ndim, a) for d in ints(axis)]
    if len(axes) != len(sizes):
        raise ValueError(
            "Must provide matching length window_shape and axis; got "
            f"{len(sizes)} window_shape elements and {len(axes)} axes elements."
        )
    if any(size < 0 for size in sizes):
        raise ValueError("`window_shape` cannot contain negative values")
    shape = list(a.shape)
    for size, along in zip(sizes, axes, strict=True):
        shape[along] -= size - 1
        if shape[along] < 1:
            raise ValueError("window shape cannot be larger than input array shape")
    return _windows(a, sizes, axes)


def _windows(a: Tracer, sizes: Sequence[int], axes: Sequence[int]) -> Tracer:
    shape, moves = (
        list(a.shape),
        [[int(d == axis) for d in range(a.ndim)] for axis in range(a.ndim)],
    )
    for size, along in zip(sizes, axes, strict=True):
        shape[along] -= size - 1
        for axis, row in enumerate(moves):
            row.append(int(axis == along))
    attrs = {"shape": (*shape, *sizes), "start": (0,) * a.ndim, "steps": tuple(map(tuple, moves))}

    def forward(b: Builder, v: Value) -> Value:
        return b.strided(v, **attrs)

    steps = a.element_strides
    return views.view(
        a,
        forward,
        None,
        strides=(*steps, *(steps[along] for along in axes)),
        numpy=lambda x: np.lib.stride_tricks.sliding_window_view(x, tuple(sizes), tuple(axes)),
    )


BY_NUMPY[np.lib.stride_tricks.sliding_window_view] = FUNCTIONS["sliding_window_view"]


def _as_strided(
    x: Any, shape: Any = None, strides: Any = None, subok: bool = False, writeable: bool = True
) -> Tracer:
    """np.lib.stride_tricks.as_strided of an array whose elements lie row by row: a view that is
    read-only, within the array."""
    a = array(x)
    sizes = a.shape if shape is None else ints(shape)
    steps = a.strides if strides is None else ints(strides)
    if len(sizes) != len(steps):
        raise ValueError("mismatch in length of strides and shape")
    ends = [(n - 1) * step for n, step in zip(sizes, steps, strict=True)]
    first, last = (sum(pick(end, 0) for end in ends) for pick in (min, max))
    inside = 0 in sizes or (first >= 0 and last < a.size * a.itemsize)
    whole = all(step % a.itemsize == 0 for step in steps)
    if a.element_strides != c_strides(a.shape) or not inside or not whole:
        complain(
            errors.UnsupportedFunctionError,
            "as_strided needs an array whose elements lie row by row, strides of whole elements, "
            "and a window that lies within the array",
            "copy the array first (x.copy()), or use slices, reshapes and jt.sliding_window_view.",
            operands={"x": a},
        )
    return _strided(a, tuple(sizes), tuple(step // a.itemsize for step in steps))


def _strided(a: Tracer, sizes: tuple[int, ...], steps: tuple[int, ...]) -> Tracer:
    def forward(b: Builder, v: Value) -> Value:
        return b.strided(b.reshape(v, shape=(a.size,)), shape=sizes, start=(0,), steps=(steps,))

    bytes_ = tuple(step * a.itemsize for step in steps)
    numpy = partial(np.lib.stride_tricks.as_strided, shape=sizes, strides=bytes_, writeable=False)
    return views.view(a, forward, None, strides=steps, numpy=numpy)


BY_NUMPY[np.lib.stride_tricks.as_strided] = ArrayFunction(
    "lib.stride_tricks.as_strided",
    _as_strided,
    np.lib.stride_tricks.as_strided,
    np.lib.stride_tricks.as_strided,
)


@function("meshgrid")
def meshgrid(
    *xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy"
) -> tuple[Tracer, ...]:
    if indexing not in ("xy", "ij"):
        raise ValueError("Valid values for `indexing` are 'xy' and 'ij'.")
    parts = [array(x) for x in xi]
    rank = len(parts)
    grids = [p.reshape((1,) * i + (-1,) + (1,) * (rank - 1 - i)) for i, p in enumerate(parts)]
    if indexing == "xy" and rank > 1:
        grids = [views.transpose(g, (1, 0, *range(2, rank))) for g in grids]
    if not sparse and grids:
        grids = FUNCTIONS["broadcast_arrays"].traced(*grids)
    return tuple(g.copy() if copy else g for g in grids)


@function("ix_")
def ix_(*args: Any) -> tuple[Tracer, ...]:
    parts = [array(x) for x in args]
    if any(p.ndim != 1 for p in parts):
        raise ValueError("Cross index must be 1 dimensional")
    for i, p in enumerate(parts):
        if p.dtype == BOOL:
            constant = known_array(args[i])
            if constant is None:
                no_static_shape("np.ix_ of a traced mask", "jt.nonzero(mask, size=n)")
            parts[i] = array(np.flatnonzero(constant))
    rank = len(parts)
    return tuple(p.reshape((1,) * i + (-1,) + (1,) * (rank - 1 - i)) for i, p in enumerate(parts))


# Insertion and deletion at positions that are known while tracing


@function("delete")
def delete(arr: Any, obj: Any, axis: Any = None) -> Tracer:
    x, axis = along_axis(array(arr), axis)
    n = x.shape[axis]
    if isinstance(obj, Tracer) and obj.ndim == 0 and known_array(obj) is None:
        index = _traced_place(obj, n)
        positions = arange(n - 1)
        return take(x, positions + (positions >= index), axis, mode="clip")
    if isinstance(obj, Tracer) and known_array(obj) is None:
        # How many are left is a value: an element may be named twice.
        kept = ~obj if obj.dtype == BOOL else array(np.ones(n, bool))
        if obj.dtype == BOOL:
            if obj.shape != (n,):
                raise ValueError(
                    f"boolean array argument obj to delete must be one dimensional and match the axis "
                    f"length of {n}"
                )
        else:
            kept[obj] = False
        left: Tracer = FUNCTIONS["compress"].traced(kept, x, axis)
        return left
    obj = obj if isinstance(obj, slice) else require_static(obj, "obj")
    if isinstance(obj, np.ndarray) and obj.size == 0:
        obj = obj.astype(np.int64)  # an empty list is one of floats
    remaining = np.delete(np.arange(n), obj)
    return _by_positions(x, remaining, axis)


def _traced_place(index: Tracer, n: int) -> Tracer:
    """A traced index into n places, counted from the front; checked when the function runs."""
    return arange(n)[index]


@function("insert")
def insert(arr: Any, obj: Any, values: Any, axis: Any = None) -> Tracer:
    x, axis = along_axis(array(arr), axis)
    n = x.shape[axis]
    new = as_elements(values, x.dtype)
    if isinstance(obj, Tracer) and obj.ndim == 0 and known_array(obj) is None:
        # There are n + 1 places: -1 is not the last of them, but in front of the last element.
        index = _traced_place(choose(obj < 0, obj - 1, obj), n + 1)
        return _inserted(x, index, _rows_of(x, new, axis, True), axis)
    if isinstance(obj, Tracer) and obj.ndim == 1 and obj.dtype != BOOL and known_array(obj) is None:
        return _inserted_at(x, obj, new, axis)
    where = _insertion_places(obj, n)
    if where.size == 1:
        new = _rows_of(x, new, axis, where.ndim == 0)
        rows = new.shape[axis]
    else:
        rows = where.size
        new = broadcast_to(new, (*x.shape[:axis], rows, *x.shape[axis + 1 :]))
    # NumPy says where the new rows n, n + 1, ... go.
    order = np.insert(np.arange(n), where, n + np.arange(rows))
    return _by_positions(concatenate([x, new], axis), order, axis)


def _insertion_places(obj: Any, n: int) -> np.ndarray[Any, Any]:
    """The places that np.insert is told: an int, several, a mask, or a slice of n."""
    if isinstance(obj, slice):
        return np.arange(*obj.indices(n))
    indices = require_static(obj, "obj")
    if indices.dtype == BOOL:
        if indices.ndim != 1:
            raise ValueError("boolean array argument obj to insert must be one dimensional")
        return np.flatnonzero(indices)
    if indices.ndim > 1:
        raise ValueError("index array argument obj to insert must be one dimensional or scalar")
    if not indices.size and not isinstance(obj, np.ndarray):
        return indices.astype(np.int64)  # an empty list is one of floats
    return indices


def _rows_of(x: Tracer, new: Tracer, axis: int, leading: bool) -> Tracer:
    """What is inserted at one place, with x's other axes. `leading`: a single index takes the first
    axis of the values for that of the rows, a list of one index does not."""
    new = new.reshape((1,) * (x.ndim - new.ndim) + new.shape)
    new = moveaxis(new, 0, axis) if leading else new
    return broadcast_to(new, (*x.shape[:axis], new.shape[axis], *x.shape[axis + 1 :]))


def _inserted(x: Tracer, index: Tracer, new: Tracer, axis: int) -> Tracer:
    """`new` in front of a traced place."""

    n, rows = x.shape[axis], new.shape[axis]
    at = arange(n + rows)
    behind = choose(at < index + rows, n + at - index, at - rows)
    result = take(concatenate([x, new], axis), choose(at < index, at, behind), axis, mode="clip")
    return wrap_like(as_value(result), (x,), scalar=False, order="A")


def _inserted_at(x: Tracer, places: Tracer, new: Tracer, axis: int) -> Tracer:
    """Rows of `new` in front of several traced places, in their order where they are the same."""
    n, count = x.shape[axis], len(places)
    if count == 1:
        new = _rows_of(x, new, axis, False)
        places = broadcast_to(places, (new.shape[axis],))
    rows = len(places)
    new = broadcast_to(new, (*x.shape[:axis], rows, *x.shape[axis + 1 :]))
    which = arange(n + 1)[choose(places < 0, places - (count > 0), places)]
    order = argsort(which, kind="stable")
    at = array(np.zeros(rows, np.int64))
    at[order] = which[order] + np.arange(rows)
    source = array(np.ones(n + rows, bool))
    source[at] = False
    source = cumsum(source) - 1
    source[at] = n + np.arange(rows)
    result = take(concatenate([x, new], axis), source, axis, mode="clip")
    return wrap_like(as_value(result), (x,), scalar=False, order="A")


def _by_positions(x: Tracer, positions: np.ndarray[Any, Any], axis: int) -> Tracer:
    """`take` of static positions, as slices joined where they form a few runs."""

    cuts = np.flatnonzero(np.diff(positions) != 1) + 1
    lead = (slice(None),) * axis
    if len(positions) == 0:
        rows = x[(*lead, slice(0, 0))]
    elif len(cuts) > 8:
        rows = take(x, positions.tolist(), axis=axis)
    else:
        runs = [slice(int(r[0]), int(r[-1]) + 1) for r in np.split(positions, cuts)]
        rows = concatenate([x[(*lead, run)] for run in runs], axis)
    return wrap_like(as_value(rows), (x,), scalar=False, order="A")
