"""Functions that pick elements by index: take, put, windows at traced places, and their refusals."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...ir.types import I64, is_inexact
from ..arrays import ufuncs
from ..arrays.common import (
    along_axis,
    array,
    as_elements,
    axis_index,
    build,
    check_real,
    check_values,
    finish_taken,
    index_array,
    ints,
    known_array,
    static_array,
    store,
)
from ..arrays.creation import COUNTED, bound_of
from ..arrays.elementwise import clip, no_static_shape, where
from ..arrays.movement import resize
from ..arrays.table import function
from ..core.tracers import Tracer, as_value, wrap, wrap_like
from ..data.promotion import can_cast, check_python_int
from ..indexing.indexing import update
from ..messages import errors
from ..messages.errors import complain
from .scans import cumsum


def _bounded(indices: Tracer, n: int, mode: str) -> Tracer:
    """Indices for modes "clip" and "wrap", which never are out of range."""
    if mode == "wrap":
        return indices % n
    return clip(indices, 0, n - 1)


@function("take")
def take(a: Any, indices: Any, axis: Any = None, out: Any = None, mode: str = "raise") -> Tracer:
    x, axis = along_axis(array(a), axis, at_least_1d=True)
    if check_mode(mode) != "raise":
        indices = _bounded(index_array(indices, "same_kind"), x.shape[axis], mode)
    elif type(indices) is not int:
        constant = static_array(indices)
        traced = index_array(indices, "same_kind")
        indices = traced if constant is None else constant.astype(I64)
    result = x[(slice(None),) * axis + (indices,)]
    return finish_taken(wrap(as_value(result), scalar=result.scalar), out)


def _along(x: Tracer, indices: Tracer, axis: int) -> tuple[Any, ...]:
    """Index arrays that pair `indices` with its own position on the other axes."""
    if x.ndim != indices.ndim:
        raise ValueError("`indices` and `arr` must have the same number of dimensions")
    grid: list[Any] = []
    for i, n in enumerate(x.shape):
        shape = (1,) * i + (n,) + (1,) * (x.ndim - 1 - i)
        along = build().iota(shape=shape, dtype=I64, axis=i)
        grid.append(indices if i == axis else wrap(along, scalar=False))
    return tuple(grid)


@function("take_along_axis")
def take_along_axis(arr: Any, indices: Any, axis: Any = -1) -> Tracer:
    chosen = array(indices)
    x, axis = along_axis(array(arr), axis)
    return wrap_like(as_value(x[_along(x, chosen, axis)]), (chosen,), scalar=False)


@function("put_along_axis")
def put_along_axis(arr: Any, indices: Any, values: Any, axis: Any) -> None:
    x, chosen = destination(arr), array(indices)
    if axis is None:
        x, axis = x.reshape(-1), 0
    x[_along(x, chosen, axis_index(axis, x.ndim, x))] = values


def destination(x: Any) -> Tracer:
    if isinstance(x, Tracer):
        return x
    complain(
        errors.TracerConversionError,
        "assignment of traced values into an array that NumPy made",
        "make the destination with jt.zeros, jt.empty or np.zeros_like(x).",
        operands={"destination": x},
    )


@function("put")
def put(a: Any, ind: Any, v: Any, mode: str = "raise") -> None:
    x = destination(a)
    indices, values = index_array(ind).ravel(), as_elements(v, x.dtype).ravel()
    if not indices.size or not values.size:
        x.assign(as_value(x))  # which only asks whether it could be written
        return
    if check_mode(mode) != "raise":
        indices = _bounded(indices, x.size, mode)
    values = _repeated(values, indices.size)
    flat = x.reshape(-1)
    if flat._storage is x._storage:
        flat[indices] = values
    else:
        numbers = wrap(build().iota(shape=(x.size,), dtype=I64, axis=0), scalar=False)
        x[np.unravel_index(numbers[indices], x.shape)] = values


def check_mode(mode: str | None) -> str:
    """What is done with indices out of range; None is "raise"."""
    if mode not in ("raise", "clip", "wrap", None):
        raise ValueError(f"clipmode must be one of 'clip', 'raise', or 'wrap' (got {mode!r})")
    return mode or "raise"


def _repeated(values: Tracer, size: int) -> Tracer:
    """The values again and again, `size` of them."""
    if values.size in (1, size):
        return values
    return resize(values, size)


def _check_safe(values: Any, target: Any) -> None:
    new, own = array(values), array(target).dtype
    if (
        isinstance(values, (Tracer, np.ndarray))
        and not new.weak
        and not can_cast(new.dtype, own, "safe")
    ):
        raise TypeError(
            f"Cannot cast array data from {new.dtype!r} to {own!r} according to the rule 'safe'"
        )


def _where_true(arr: Any, mask: Any, vals: Any) -> tuple[Tracer, Tracer, Tracer]:
    x, chosen = destination(arr), array(mask).astype(bool)
    values = as_elements(vals, x.dtype).ravel()
    if chosen.size != x.size:
        raise ValueError("place: mask and data must be the same size")
    return x, chosen.reshape(x.shape), values


@function("place")
def place(arr: Any, mask: Any, vals: Any) -> None:
    """The values one after the other at the places where the mask is true."""
    _check_safe(vals, arr)
    x, chosen, values = _where_true(arr, mask, vals)
    if not values.size:
        check_values(~chosen.any(), "Cannot insert from an empty array!")
        return
    if values.size > 1:
        number = cumsum(chosen.ravel().astype(np.int64)) - 1
        values = values[number.reshape(x.shape) % values.size]
    x[...] = where(chosen, values if values.ndim == x.ndim else values.reshape(()), x)


@function("putmask")
def putmask(a: Any, mask: Any, values: Any) -> None:
    """Of the values, repeated to a's size, those where the mask is true."""
    _check_safe(values, a)
    x, chosen, elements = _where_true(a, mask, values)
    if elements.size == 0:
        return
    spread = (
        elements.reshape(()) if elements.size == 1 else _repeated(elements, x.size).reshape(x.shape)
    )
    x[...] = where(chosen, spread, x)


@function("copyto")
def copyto(dst: Any, src: Any, casting: Any = "same_kind", where: Any = True) -> None:
    x = destination(dst)
    big = type(src) is int and is_inexact(x.dtype)  # as a float, an int may be of any size
    if type(src) is int and x.dtype.kind in "iu":
        check_python_int(src, x.dtype)
    store(x, array(src, x.dtype if big else None), casting, where)


@function("fill_diagonal")
def fill_diagonal(a: Any, val: Any, wrap: bool = False) -> None:
    x = destination(a)
    if x.ndim < 2:
        raise ValueError("array must be at least 2-d")
    if x.ndim > 2 and len(set(x.shape)) != 1:
        raise ValueError("All dimensions of input must be of equal length")
    end, step = x.size, 1 + int(np.cumprod(x.shape[1:][::-1]).sum())
    if x.ndim == 2 and not wrap:
        end = min(end, x.shape[1] ** 2)
    flat = np.arange(0, end, step)
    if flat.size:
        coordinates = tuple(part.tolist() for part in np.unravel_index(flat, x.shape))
        x[coordinates] = _repeated(as_elements(val, x.dtype).ravel(), flat.size)
    else:
        x.assign(as_value(x))  # which only asks whether it could be written


def _bincount_reference(
    x: Any, /, weights: Any = None, minlength: int = 0, *, length: Any = None
) -> Any:
    if length is None:
        return np.bincount(x, weights, minlength)
    inside = (np.asarray(x) >= 0) & (np.asarray(x) < length)
    weights_inside = None if weights is None else np.asarray(weights)[inside]
    return np.bincount(np.asarray(x)[inside], weights_inside, length)


@function("bincount", reference=_bincount_reference)
def bincount(x: Any, /, weights: Any = None, minlength: int = 0, *, length: Any = None) -> Tracer:
    """np.bincount; with `length`, which compiled code needs, that many counts: what is outside of
    them is not counted."""
    if weights is not None:
        check_real("bincount", weights)
    dtype = np.dtype(np.int64 if weights is None else np.float64)
    if length is None:
        size = _counted(x, minlength)
        if isinstance(size, Tracer):
            added = _added(weights, dtype)
            most = bound_of(size)
            assert most is not None
            return COUNTED[0](totals(array(x), added, most), {0: size})
    else:
        size = operator.index(length)
        # Negative ones are beyond all others.
        unsigned = array(x).astype(np.int64).astype(np.uint64)
        x = ufuncs.apply(np.minimum, unsigned, np.uint64(size)).astype(np.int64)
    return totals(array(x), _added(weights, dtype), size, spare=length is not None)


def _added(weights: Any, dtype: Any) -> Any:
    return np.ones((), dtype) if weights is None else array(weights).astype(dtype)


def _counted(x: Any, minlength: Any) -> Any:
    """How many counts bincount gives, which depends on the values: a traced number if it has a bound."""
    negative = "'list' argument must have no negative elements"
    constant = static_array(x)
    if constant is not None:
        if constant.size and constant.min() < 0:
            raise ValueError(negative)
        return max(int(constant.max()) + 1 if constant.size else 0, operator.index(minlength))
    x = array(x)
    size = ufuncs.apply(np.maximum, x.max() + 1, minlength) if x.size else array(minlength)
    known = known_array(size)
    if known is None and bound_of(size) is None:
        no_static_shape("np.bincount", "jt.bincount(x, length=n)", size)
    check_values((x >= 0).all(), negative)
    return size if known is None else int(known)


def totals(indices: Tracer, added: Any, size: int, spare: bool = False) -> Tracer:
    """The sums of what is added at each of `size` places; with `spare`, what is at place `size` is left
    out. The table is a place longer then: adding there costs less than asking where to add."""
    table = wrap(build().full((size + spare,), 0, added.dtype), scalar=False)
    update(table, indices, added, "add")
    return table[:size].copy() if spare else table


# Windows at places that are known at run time


def _starts(starts: Any, rank: int) -> list[Any]:
    parts = list(starts) if isinstance(starts, (list, tuple, Tracer, np.ndarray)) else [starts]
    if len(parts) != rank:
        raise ValueError(f"{len(parts)} starts for an array with {rank} axes")
    return parts


def _clamped(x: Any, starts: Any, sizes: Sequence[int]) -> tuple[slice, ...]:
    clamped = [
        min(max(int(i) + n if int(i) < 0 else int(i), 0), n - size)
        for i, n, size in zip(_starts(starts, x.ndim), x.shape, sizes, strict=True)
    ]
    return tuple(slice(i, i + size) for i, size in zip(clamped, sizes, strict=True))


def _window(x: Any, sizes: Any) -> tuple[int, ...]:
    window = ints(sizes)
    if len(window) != x.ndim or any(not 0 <= s <= n for s, n in zip(window, x.shape, strict=False)):
        raise ValueError(
            f"a window of sizes {window} does not fit into an array of shape {x.shape}"
        )
    return window


def _dynamic_slice_reference(x: Any, starts: Any, sizes: Any) -> Any:
    """The window of `sizes` at `starts`, moved where needed so that it fits into x. A copy.

    >>> jt.dynamic_slice(np.arange(5), (1,), (3,))
    array([1, 2, 3])
    """
    a = np.asarray(x)
    return a[_clamped(a, starts, _window(a, sizes))].copy()


def _dynamic_update_slice_reference(x: Any, update: Any, starts: Any) -> Any:
    """A copy of x with `update` written at `starts`, moved where needed so that it fits.

    >>> jt.dynamic_update_slice(np.arange(5), np.array([8, 9]), (1,))
    array([0, 8, 9, 3, 4])
    """
    a, u = np.asarray(x), np.asarray(update)
    result = a.copy()
    result[_clamped(a, starts, _window(a, u.shape))] = u
    return result


def _start_values(x: Tracer, starts: Any) -> list[Any]:
    """Negative starts count from the end."""
    values = []
    for start, n in zip(_starts(starts, x.ndim), x.shape, strict=True):
        if isinstance(start, (int, np.integer)):
            values.append(build().const(int(start) + (n if start < 0 else 0), I64))
            continue
        first = array(start).astype(np.int64).reshape(())
        values.append(as_value(where(first < 0, first + n, first)))
    return values


@function("dynamic_slice", reference=_dynamic_slice_reference)
def dynamic_slice(x: Any, starts: Any, sizes: Any) -> Tracer:
    a = array(x)
    window = _window(a, sizes)
    return wrap(build().dynamic_slice(as_value(a), *_start_values(a, starts), sizes=window))


@function("dynamic_update_slice", reference=_dynamic_update_slice_reference)
def dynamic_update_slice(x: Any, update: Any, starts: Any) -> Tracer:
    a, u = array(x), array(update)
    _window(a, u.shape)
    new = as_value(u, a.dtype)
    return wrap(build().dynamic_update_slice(as_value(a), new, *_start_values(a, starts)))
