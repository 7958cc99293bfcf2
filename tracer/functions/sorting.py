"""Sorting, order statistics, and searches in sorted arrays."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ...ir.graph import Value
from ...ir.ops.folds.sorting import search
from ...ir.types import BOOL, C64, C128, F64, is_complex
from ..arrays import ufuncs
from ..arrays.common import (
    along_axis,
    array,
    axis_index,
    build,
    check_real,
    check_values,
    common_dtype,
    known_array,
)
from ..arrays.elementwise import where
from ..arrays.movement import concatenate, flip
from ..arrays.reductions import any_
from ..arrays.table import function
from ..core import views
from ..core.tracers import Tracer, as_value, wrap, wrap_like
from ..indexing.indexing import update
from .selection import take, take_along_axis


def _sort(op: str, a: Any, axis: Any) -> Tracer:
    x, axis = along_axis(array(a), axis)
    return wrap_like(
        build().op(op, as_value(x), axis=axis, stable=True), (x,), scalar=False, copy=True
    )


def _argsort(a: Any, axis: Any) -> Tracer:
    x = array(a)
    order = _sort("argsort", x.reshape(1) if x.ndim == 0 else x, axis)  # NumPy: 0-d as 1-d
    return wrap(as_value(order), scalar=False)


_NOTHING = np.zeros(1)  # to sort


def _no_order(order: Any) -> None:
    if order is not None:
        raise ValueError("Cannot specify order when the array has no fields.")


def _sort_reference(
    a: Any, axis: Any = -1, *args: Any, descending: bool = False, **options: Any
) -> Any:
    ordered = np.sort(a, axis, *args, **options)
    return np.flip(ordered, -1 if axis is None else axis) if descending else ordered


def _argsort_reference(
    a: Any, axis: Any = -1, *args: Any, descending: bool = False, **options: Any
) -> Any:
    if not descending:
        return np.argsort(a, axis, *args, **options)
    x, along = (np.ravel(a), 0) if axis is None else (np.asarray(a), axis)
    if x.ndim == 0:
        return np.argsort(x)
    order = np.argsort(np.flip(x, along), along, stable=True)  # equal elements stay in order
    return x.shape[along] - 1 - np.flip(order, along)


@function("sort", reference=_sort_reference)
def sort(
    a: Any,
    axis: Any = -1,
    kind: Any = None,
    order: Any = None,
    *,
    stable: Any = None,
    descending: bool = False,
) -> Any:
    """np.sort; `descending` turns the result over, so that NaN comes first."""
    _no_order(order)
    np.sort(_NOTHING, kind=kind, stable=stable)  # says what is wrong with them
    ordered = _sort("sort", a, axis)
    return flip(ordered, -1 if axis is None else axis) if descending else ordered


@function("argsort", reference=_argsort_reference)
def argsort(
    a: Any,
    axis: Any = -1,
    kind: Any = None,
    order: Any = None,
    *,
    stable: Any = None,
    descending: bool = False,
) -> Any:
    """np.argsort, always stable, whatever `kind` is; with `descending` too."""
    _no_order(order)
    np.argsort(_NOTHING, kind=kind, stable=stable)
    x = array(a)
    if not descending or x.ndim == 0:
        return _argsort(x, axis)
    x, axis = along_axis(x, axis)
    return x.shape[axis] - 1 - flip(_argsort(flip(x, axis), axis), axis)


LONG = 1 << 12  # elements of a row from which its partitions are not sorted


def _partition(op: str, a: Any, kth: Any, axis: Any) -> Tracer:
    """Partitioned at one place; sorted for several, which is one of the orders that NumPy allows."""
    x, axis = along_axis(array(a), axis, at_least_1d=op == "argpartition")
    n = x.shape[axis]
    wanted, constant = array(kth), known_array(kth)
    if wanted.dtype == BOOL or wanted.ndim > 1:
        raise ValueError("a partition index is an integer, or a list of integers")
    if wanted.dtype.kind not in "iu":
        raise TypeError("Partition index must be integer")
    if n:
        inside = (wanted >= -n) & (wanted < n)
        check_values(inside.all(), f"kth out of bounds ({n})")
    positions = set() if constant is None else {int(k) for k in constant.ravel()}
    if len(positions) != 1 or n < LONG or x.dtype.itemsize == 1 or x.dtype.kind not in "iuf":
        return _argsort(x, axis) if op == "argpartition" else _sort("sort", x, axis)
    (k,) = positions
    value = build().op(op, as_value(x), axis=axis - x.ndim, kth=k % n)
    return wrap_like(value, (x,), scalar=False, copy=True)


@function("partition")
def partition(
    a: Any, kth: Any, axis: Any = -1, kind: Any = "introselect", order: Any = None
) -> Tracer:
    """One of the orders that NumPy allows; the short side of `kth` is sorted."""
    _no_order(order)
    np.partition(_NOTHING, 0, kind=kind)
    return _partition("partition", a, kth, axis)


@function("argpartition")
def argpartition(
    a: Any, kth: Any, axis: Any = -1, kind: Any = "introselect", order: Any = None
) -> Tracer:
    _no_order(order)
    np.partition(_NOTHING, 0, kind=kind)
    return _partition("argpartition", a, kth, axis)


@function("sort_complex")
def sort_complex(a: Any) -> Tracer:
    x = array(a)
    if not is_complex(
        x.dtype
    ):  # after sorting, as NumPy does: only small integers become complex64
        small = x.dtype.kind in "iu" and x.dtype.itemsize <= 2
        return _sort("sort", x, -1).astype(C64 if small else C128)
    return _sort("sort", x, -1)


@function("lexsort")
def lexsort(keys: Any, axis: int = -1) -> Tracer:
    parts = [array(k) for k in keys] if isinstance(keys, (list, tuple)) else list(array(keys))
    if not parts:
        raise TypeError("need sequence of keys with len > 0 in lexsort")
    axis = axis_index(axis, parts[0].ndim)
    order = argsort(parts[0], axis)
    for key in parts[1:]:
        order = take_along_axis(order, argsort(take_along_axis(key, order, axis), axis), axis)
    return order


# Searches in sorted arrays


@function("searchsorted")
def searchsorted(a: Any, v: Any, side: str = "left", sorter: Any = None) -> Tracer:
    """By binary search: log2(n) gathers of v's shape."""
    if side not in ("left", "right"):
        raise ValueError(f"search side must be 'left' or 'right' (got {side!r})")
    x, values = array(a), array(v)
    if x.ndim != 1:
        raise ValueError("object of too small depth for desired array")
    if sorter is not None:
        x = _in_order(x, sorter)
    dtype = common_dtype(x, values)
    table, keys = as_value(x, dtype), as_value(values, dtype)
    return wrap(search(build(), table, keys, right=side == "right"))


def _in_order(x: Tracer, sorter: Any) -> Tracer:
    """x in the order of the indices that sort it."""
    order, n = array(sorter), x.size
    if order.ndim != 1:
        raise TypeError("could not parse sorter argument")
    if order.dtype.kind not in "iu":
        raise TypeError("sorter must only contain integers")
    if order.size != n:
        raise ValueError("sorter.size must equal a.size")
    check_values(((order >= 0) & (order < n)).all(), "Sorter index out of range.")
    return take(x, order, mode="clip")


@function("digitize")
def digitize(x: Any, bins: Any, right: bool = False) -> Tracer:
    """By `searchsorted`; whether bins rise or fall is seen when the compiled function runs, as is
    that they do one of both."""
    check_real("digitize", x, bins)
    edges, side = array(bins), "left" if right else "right"
    if edges.ndim != 1:
        raise ValueError("object of too small depth for desired array")
    if edges.size < 2:
        return searchsorted(edges, x, side)
    constant = known_array(bins)
    pairs = (edges[:-1], edges[1:]) if constant is None else (constant[:-1], constant[1:])
    rises, falls = (pairs[0] < pairs[1]).any(), (pairs[0] > pairs[1]).any()
    check_values(~(rises & falls), "bins must be monotonically increasing or decreasing")
    if constant is None:
        numbers = searchsorted(where(falls, edges[::-1], edges), x, side)
        return where(falls, edges.size - numbers, numbers)
    return (
        edges.size - searchsorted(edges[::-1], x, side) if falls else searchsorted(edges, x, side)
    )


FEW = 64  # elements that are compared with each one, not searched among


@function("isin")
def isin(
    element: Any,
    test_elements: Any,
    assume_unique: bool = False,
    invert: bool = False,
    *,
    kind: Any = None,
) -> Tracer:
    """Few tests are compared with each element, and elements of a byte or two looked up in a table;
    otherwise the tests are sorted, and searched."""
    x, tests = array(element), array(test_elements).ravel()
    dtype = common_dtype(x, tests)
    if kind not in (None, "sort", "table"):
        raise ValueError(f"Invalid kind: {kind!r}. Please use None, 'sort' or 'table'.")
    if kind == "table" and any(a.dtype.kind not in "biu" for a in (x, tests)):
        raise ValueError(
            "The 'table' method is only supported for boolean or integer arrays. Please select "
            "'sort' or None for kind."
        )
    if tests.size <= FEW or is_complex(dtype):
        is_member = any_(x[..., None] == tests, axis=-1)
    elif dtype.kind in "iu" and dtype.itemsize <= 2:
        is_member = _looked_up(x, tests, np.iinfo(dtype))
    else:
        table = sort(tests.astype(dtype))
        index = searchsorted(table, x)
        nearest = table[ufuncs.apply(np.minimum, index, tests.size - 1)]
        is_member = nearest == x
    return wrap(as_value(~is_member if invert else is_member), scalar=False)


def _looked_up(x: Tracer, tests: Tracer, info: Any) -> Tracer:
    """Whether elements are among the tests, by a table of all that the dtype holds."""
    table = array(np.zeros(int(info.max) - int(info.min) + 1, bool))
    update(table, tests.astype(np.int64) - info.min, True, "set")
    return table[x.astype(np.int64) - info.min]


@function("interp")
def interp(
    x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None
) -> Tracer:
    check_real("interp", x, xp)
    points, xs = (array(t).astype(F64) for t in (x, xp))
    ys = array(fp)
    ys = ys.astype(C128 if is_complex(ys.dtype) else F64)
    if xs.ndim != 1 or ys.shape != xs.shape:
        raise ValueError("fp and xp are not of the same length.")
    if len(xs) == 0:
        raise ValueError("array of sample points is empty")
    if is_complex(ys.dtype):

        def part(name: str) -> Value:
            own, low, high = (
                None if v is None else getattr(array(v), name) for v in (ys, left, right)
            )
            return as_value(interp(points, xs, own, low, high, period))

        return wrap(build().complex(part("real"), part("imag")))
    if period is not None:
        if period == 0:
            raise ValueError("period must be a non-zero value")
        period = abs(period)
        points, xs = points % period, xs % period
        order = argsort(xs)
        xs, ys = xs[order], ys[order]
        xs = concatenate([xs[-1:] - period, xs, xs[0:1] + period])
        ys = concatenate([ys[-1:], ys, ys[0:1]])
        left = right = None
    if len(xs) == 1:
        inside = views.broadcast_to(ys[0], points.shape)
    else:
        index = ufuncs.apply(np.maximum, searchsorted(xs, points, "right") - 1, 0)
        index = ufuncs.apply(np.minimum, index, len(xs) - 2)
        (x0, y0), (x1, y1) = ((xs[i], ys[i]) for i in (index, index + 1))
        slope = (y1 - y0) / (x1 - x0)
        # Beside infinities from the other end, as NumPy does it.
        inside, other = slope * (points - x0) + y0, slope * (points - x1) + y1
        isnan = partial(ufuncs.apply, np.isnan)
        inside = where(isnan(inside), where(isnan(other) & (y0 == y1), y0, other), inside)
        inside = where(points == xs[-1], ys[-1], where(points == x0, y0, inside))
    result = where(points < xs[0], ys[0] if left is None else left, inside)
    result = where(points > xs[-1], ys[-1] if right is None else right, result)
    if len(xs) > 1:
        result = where(ufuncs.apply(np.isnan, points), points, result)
    return wrap(as_value(result))
