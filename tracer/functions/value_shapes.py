"""Functions whose result is as long as the values say: nonzero, unique, compress and the like.

Eagerly they are NumPy's. Compiled, they give arrays whose length is a value (`indexing.bounded`). With
`size=` the result has so many entries, the first ones if there are more, and is filled up with
`fill_value` if there are fewer; so it has eagerly.
"""

from __future__ import annotations

import functools
import inspect
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from ...ir.types import BOOL, I64, is_inexact
from ..arrays import ufuncs
from ..arrays.common import (
    NO_VALUE,
    along_axis,
    array,
    axis_index,
    axis_tuple,
    build,
    common_dtype,
    finish_taken,
    given,
    known_array,
    operand,
)
from ..arrays.creation import arange
from ..arrays.elementwise import where
from ..arrays.movement import concatenate, moveaxis, stack
from ..arrays.reductions import count_nonzero
from ..arrays.table import FUNCTIONS, eagerly, function, numpy_function, refuse_option
from ..core.tracers import Tracer, as_value, wrap
from ..data.promotion import check_python_int
from ..indexing.bounded import Bounded, bounded, number, refuse, rule
from ..indexing.indexing import update
from ..indexing.masked import Masked
from .scans import cumsum
from .selection import take
from .sorting import argsort, isin, lexsort, sort

Array = np.ndarray[Any, Any]


def _sized(name: str, by_condition: bool = False) -> Callable[..., Any]:
    """A decorator: `traced(*args, size=, fill_value=)` as the function `name`.

    Where `size` is not given the elements must be known; what NumPy says of them is the result. With
    `by_condition` the first argument alone decides: so many are true in it.
    """
    plain = numpy_function(name)
    assert plain is not None

    def enter(traced: Callable[..., Any]) -> Callable[..., Any]:
        positional = [
            p.name
            for p in inspect.signature(traced).parameters.values()
            if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
        ]

        @functools.wraps(traced)
        def reference(*args: Any, size: Any = None, fill_value: Any = None, **options: Any) -> Any:
            if size is None:
                return plain(*args, **options)
            return eager(*args, size=size, fill_value=fill_value, **options)

        @functools.wraps(traced)
        def compiled(*args: Any, size: Any = None, fill_value: Any = None, **options: Any) -> Any:
            if size is not None:
                size = operator.index(size)
                if size < 0:
                    raise ValueError(f"size={size} is negative")
                return traced(*args, size=size, fill_value=fill_value, **options)
            while len(args) < len(positional) and positional[len(args)] in options:
                args = (*args, options.pop(positional[len(args)]))
            if by_condition and (condition := known_array(args[0])) is not None:
                return traced(*args, size=int(np.count_nonzero(condition)), **options)
            constants = [
                known_array(x) if isinstance(x, (Tracer, list, tuple)) else x for x in args
            ]
            if any(k is None and a is not None for k, a in zip(constants, args, strict=True)):
                if fill_value is not None:
                    raise ValueError("fill_value= goes with size=")
                return traced(*args, size=None, **options)
            return _traced(plain(*constants, **options))

        eager = eagerly(compiled)
        reference.__doc__ = traced.__doc__ or plain.__doc__
        function(name, reference=reference)(compiled)
        return compiled

    return enter


def _traced(result: Any) -> Any:
    """NumPy's result, a tuple or named tuple of arrays or an array, as tracers."""
    if not isinstance(result, tuple):
        return array(result)
    parts = [array(part) for part in result]
    return type(result)(*parts) if hasattr(result, "_fields") else tuple(parts)


# Places


def _places(mask: Tracer, size: int, beyond: int) -> Tracer:
    """Where the first `size` true elements of a 1-d mask are; `beyond` where there are no more."""
    if mask.size == 0:
        return array(np.full(size, beyond))
    indices = wrap(build().op("true_indices", as_value(mask), size=size, classes=1), scalar=False)
    return indices if beyond == mask.size else where(indices < mask.size, indices, beyond)


def _as_many(x: Tracer, count: Any, axis: int = 0) -> Any:
    """The first `count` of x's elements, or rows."""
    return bounded(x, {axis: number(count)})


def _truth(x: Any) -> Tracer:
    a = array(x)
    return a if a.dtype == BOOL else a != 0


@_sized("nonzero")
def nonzero(a: Any, *, size: Any = None, fill_value: Any = None) -> tuple[Tracer, ...]:
    mask = _truth(a)
    if mask.ndim == 0:
        raise ValueError("Calling nonzero on 0d arrays is not allowed.")
    if size is None:
        return tuple(
            _as_many(places, count_nonzero(mask)) for places in nonzero(mask, size=mask.size)
        )
    flat = _places(mask.ravel(), size, -1)
    fills: Any = fill_value if isinstance(fill_value, tuple) else (fill_value or 0,) * mask.ndim
    coordinates, rest = [], flat
    for n, fill in zip(reversed(mask.shape), reversed(fills), strict=True):
        coordinates.append(where(flat < 0, fill, rest % max(n, 1)).astype(I64))
        rest = rest // max(n, 1)
    return tuple(reversed(coordinates))


@_sized("flatnonzero")
def flatnonzero(a: Any, *, size: Any = None, fill_value: Any = None) -> Tracer:
    return nonzero(array(a).ravel(), size=size, fill_value=fill_value)[0]


@_sized("argwhere")
def argwhere(a: Any, *, size: Any = None, fill_value: Any = None) -> Tracer:
    x = array(a)
    if size is None and x.ndim:
        return _as_many(argwhere(x, size=x.size), count_nonzero(_truth(x)))
    if x.ndim == 0:
        if size is None:
            return _as_many(array(np.zeros((1, 0), I64)), _truth(x))
        return array(np.zeros((size, 0), I64))
    return stack(nonzero(x, size=size, fill_value=fill_value), axis=1)


def _chosen(x: Tracer, mask: Tracer, axis: int, size: Any = None, fill_value: Any = None) -> Tracer:
    """The slices of `x` along an axis at which a 1-d mask is true."""
    if size is None:
        return Masked(wrap(as_value(x), scalar=False), mask, axis).materialised()
    indices = _places(mask, size, -1)
    if x.shape[axis] == 0:
        shape = (*x.shape[:axis], size, *x.shape[axis + 1 :])
        return array(np.full(shape, 0 if fill_value is None else fill_value, x.dtype))
    rows = take(x, where(indices < 0, 0, indices), axis)
    along = [size if d == axis else 1 for d in range(x.ndim)]
    fill = array(0 if fill_value is None else fill_value).astype(x.dtype)
    return where((indices < 0).reshape(along), fill, rows)


@_sized("compress", by_condition=True)
def compress(
    condition: Any,
    a: Any,
    axis: Any = None,
    out: Any = None,
    *,
    size: Any = None,
    fill_value: Any = None,
) -> Tracer:
    mask = _truth(condition)
    if mask.ndim != 1:
        raise ValueError("condition must be a 1-d array")
    x, axis = along_axis(array(a), axis, at_least_1d=True)
    constant, n = known_array(condition), x.shape[axis]
    if constant is not None and constant[n:].any():
        raise IndexError(f"index {n + int(constant[n:].argmax())} is out of bounds for axis {axis}")
    mask = mask[:n]
    if mask.size < x.shape[axis]:
        mask = concatenate([mask, np.zeros(x.shape[axis] - mask.size, bool)])
    return finish_taken(_chosen(x, mask, axis, size, fill_value), out)


@_sized("extract", by_condition=True)
def extract(condition: Any, arr: Any, *, size: Any = None, fill_value: Any = None) -> Tracer:
    return compress(_truth(condition).ravel(), array(arr).ravel(), size=size, fill_value=fill_value)


# Sets


def _changes(s: Tracer, equal_nan: bool) -> Tracer:
    """Where the rows of a sorted array differ from those before; the first one does."""
    different = s[1:] != s[:-1]
    if equal_nan and is_inexact(s.dtype):
        both = ufuncs.apply(np.isnan, s[1:]) & ufuncs.apply(np.isnan, s[:-1])
        different = different & ~both
    if different.ndim > 1:
        different = different.any(axis=tuple(range(1, different.ndim)))
    return concatenate([np.ones(min(s.shape[0], 1), bool), different])


class _Groups:
    """The distinct rows of an array along its first axis, in order."""

    def __init__(
        self, x: Tracer, size: int | None, equal_nan: bool, with_indices: bool = False
    ) -> None:
        """`with_indices`: `indices` or `inverse` will be asked for. Without a size there is room for
        all."""
        size = x.shape[0] if size is None else size
        self.x, self.size, n = x, size, x.shape[0]
        if x.ndim == 1 and not with_indices:
            self.sorted = sort(x)
        else:
            flat = x.reshape(n, -1)
            columns = [flat[:, c] for c in reversed(range(flat.shape[1]))]
            self.order = argsort(x) if x.ndim == 1 else lexsort(columns)
            self.sorted = take(x, self.order, 0)
        self.new = _changes(self.sorted, equal_nan)
        self.starts = _places(self.new, size, n)
        self.exists = self.starts < n

    def values(self, fill_value: Any) -> Tracer:
        """The distinct rows, then the smallest one, or `fill_value`."""
        values = take(self.sorted, where(self.exists, self.starts, 0), 0)
        if fill_value is None:
            return values
        shape = (self.size, *(1,) * (self.x.ndim - 1))
        return where(self.exists.reshape(shape), values, array(fill_value).astype(self.x.dtype))

    def indices(self) -> Tracer:
        """Where each is met first."""
        return take(self.order, where(self.exists, self.starts, 0), 0)

    def inverse(self) -> Tracer:
        """The number of each row's group."""
        numbers = cumsum(self.new.astype(I64)) - 1
        numbers_of = array(np.zeros(self.x.shape[0], I64))
        update(numbers_of, self.order, numbers, "set")
        return numbers_of

    def counts(self) -> Tracer:
        after = concatenate([self.starts[1:], np.array([self.x.shape[0]])])
        return after - self.starts


@_sized("unique")
def unique(
    ar: Any,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: Any = None,
    *,
    equal_nan: bool = True,
    sorted: bool = True,
    size: Any = None,
    fill_value: Any = None,
) -> Any:
    x = array(ar)
    parts: list[Any]
    along = 0 if axis is None else axis_index(axis, x.ndim, x)
    rows = x.ravel() if axis is None else moveaxis(x, along, 0)
    if rows.shape[0] == 0 or (rows.size == 0 and size is None):
        n = rows.shape[0]
        size = size or min(n, 1)
        values = np.full((size, *rows.shape[1:]), 0 if fill_value is None else fill_value, x.dtype)
        empty = np.moveaxis(values, 0, along), np.zeros(size, I64), np.zeros(n, I64)
        parts = [*map(array, empty), array(np.full(size, n))]
    else:
        placed = return_index or return_inverse
        groups = _Groups(rows, size, equal_nan, placed)
        parts = [moveaxis(groups.values(fill_value), 0, along), None, None]
        parts.append(groups.counts() if return_counts else None)
        if placed:
            parts[1:3] = groups.indices(), groups.inverse()
        if size is None:
            found = count_nonzero(groups.new)
            axes = (along, 0, None, 0)
            parts = [
                p if p is None or a is None else _as_many(p, found, a)
                for p, a in zip(parts, axes, strict=True)
            ]
    if axis is None and return_inverse:
        parts[2] = parts[2].reshape(x.shape)
    flags = (True, return_index, return_inverse, return_counts)
    results = tuple(part for part, wanted in zip(parts, flags, strict=True) if wanted)
    return results if len(results) > 1 else results[0]


@rule("unique", "unique_values")
def _unique_of_bounded(entry: Any, ar: Bounded, **options: Any) -> Any:
    """What is not there is a copy of the largest element, which is no other value."""
    if ar.ndim != 1:
        refuse(ar, f"np.{entry.name} of several axes")
    if any(options.values()):
        refuse_option(entry.name, **options)
    n = ar.counts[0]
    rows = FUNCTIONS["sort"].trace((ar,), {}).padded
    if not rows.shape[0]:
        return ar
    last = take(rows, FUNCTIONS["maximum"].traced(n - 1, 0), mode="clip")
    there = arange(rows.shape[0]) < n
    groups = _Groups(where(there, rows, last), None, entry.name == "unique")
    return _as_many(groups.values(None), count_nonzero(groups.new & there))


def _named(name: str, *, index: bool, inverse: bool, counts: bool) -> None:
    result = type(getattr(np, name)(np.zeros(1)))

    def traced(x: Any, *, size: Any = None, fill_value: Any = None) -> Any:
        results = unique(
            x, index, inverse, counts, equal_nan=False, size=size, fill_value=fill_value
        )
        return result(*results)

    _sized(name)(traced)


_named("unique_all", index=True, inverse=True, counts=True)
_named("unique_inverse", index=False, inverse=True, counts=False)
_named("unique_counts", index=False, inverse=False, counts=True)


@_sized("unique_values")
def unique_values(x: Any, *, size: Any = None, fill_value: Any = None) -> Tracer:
    values: Tracer = unique(x, equal_nan=False, size=size, fill_value=fill_value)
    return values


@_sized("union1d")
def union1d(ar1: Any, ar2: Any, *, size: Any = None, fill_value: Any = None) -> Tracer:
    both = concatenate([array(ar1).ravel(), array(ar2).ravel()])
    values: Tracer = unique(both, size=size, fill_value=fill_value)
    return values


def _distinct_where(
    x: Tracer, keep: Callable[[Tracer], Tracer], size: Any = None, fill_value: Any = None
) -> Tracer:
    """The distinct elements of `x` for which `keep(elements)` is true, in order."""
    a = x.ravel()
    if a.size == 0:
        return array(np.full(size or 0, 0 if fill_value is None else fill_value, a.dtype))
    groups = _Groups(a, a.size, True)
    values = groups.values(None)
    return _chosen(values, keep(values) & groups.exists, 0, size, fill_value)


def _same_dtype(ar1: Any, ar2: Any) -> tuple[Tracer, Tracer]:
    x, y = array(ar1).ravel(), array(ar2).ravel()
    dtype = np.result_type(x.dtype, y.dtype)
    return x.astype(dtype), y.astype(dtype)


@_sized("intersect1d")
def intersect1d(
    ar1: Any,
    ar2: Any,
    assume_unique: bool = False,
    return_indices: bool = False,
    *,
    size: Any = None,
    fill_value: Any = None,
) -> Any:
    x, y = _same_dtype(ar1, ar2)
    common = _distinct_where(x, lambda values: isin(values, y), size, fill_value)
    if not return_indices:
        return common
    if size is not None:
        refuse_option("intersect1d", return_indices=True, size=size)
    return (common, *(_first_places(a, common) for a in (x, y)))


def _first_places(x: Tracer, values: Any) -> Any:
    """Where each of some elements of `x` is met first."""
    order = argsort(x, kind="stable")
    return order[FUNCTIONS["searchsorted"].trace((x[order], values), {})]


@_sized("setdiff1d")
def setdiff1d(
    ar1: Any, ar2: Any, assume_unique: bool = False, *, size: Any = None, fill_value: Any = None
) -> Tracer:
    other = array(ar2)
    if assume_unique:
        x = array(ar1).ravel()
        return _chosen(x, isin(x, other, invert=True), 0, size, fill_value)
    return _distinct_where(array(ar1), lambda v: isin(v, other, invert=True), size, fill_value)


@_sized("setxor1d")
def setxor1d(
    ar1: Any, ar2: Any, assume_unique: bool = False, *, size: Any = None, fill_value: Any = None
) -> Tracer:
    """Both arrays are sorted as one, stably: the first of equal elements tells whether they are in ar1,
    the last one whether they are in ar2. A NaN equals none of the other array."""
    x, y = _same_dtype(ar1, ar2)
    both = concatenate([x, y])
    if both.size == 0:
        return array(np.full(size or 0, 0 if fill_value is None else fill_value, both.dtype))
    groups = _Groups(both, both.size, True, with_indices=True)
    values = groups.values(None)
    last = take(groups.order, where(groups.exists, groups.starts + groups.counts() - 1, 0), 0)
    in_x, in_y = groups.indices() < x.size, last >= x.size
    in_one = in_x != in_y
    if is_inexact(both.dtype):
        nan = ufuncs.apply(np.isnan, values)
        # A second one, behind the first.
        again = (nan & in_x & in_y & groups.exists).any().reshape(1)
        values = concatenate([values, np.full(1, np.nan, both.dtype)])
        return _chosen(
            values, concatenate([(in_one | nan) & groups.exists, again]), 0, size, fill_value
        )
    return _chosen(values, in_one & groups.exists, 0, size, fill_value)


@_sized("trim_zeros")
def trim_zeros(
    filt: Any, trim: str = "fb", axis: Any = None, *, size: Any = None, fill_value: Any = None
) -> Tracer:
    x, ends = array(filt), trim.lower()
    if ends not in ("fb", "bf", "f", "b"):
        raise ValueError(f"unexpected character(s) in `trim`: {ends!r}")
    axes = axis_tuple(axis, x.ndim, x, strict=True)
    if not axes:
        return x
    mask = _truth(x)
    some: Any = mask.any()
    bounds: list[Any] = [(None, None)] * x.ndim
    for along in axes:
        if not mask.size:
            bounds[along] = (0, 0)
            continue
        lines = mask.any(axis=tuple(a for a in range(x.ndim) if a != along))
        first, behind = lines.argmax(), x.shape[along] - lines[::-1].argmax()
        bounds[along] = (
            where(some, first, 0) if "f" in ends else None,
            where(some, behind, 0) if "b" in ends else where(some, x.shape[along], 0),
        )
    if size is None:
        trimmed: Tracer = x[tuple(slice(*pair) for pair in bounds)]
        return trimmed
    if x.ndim != 1:
        raise ValueError("trim_zeros with size= trims arrays of one dimension")
    first, behind = bounds[0]
    index = arange(0, x.shape[0], dtype=I64)
    inside = mask if first is behind is None else index < behind
    return _chosen(x, inside if first is None else inside & (index >= first), 0, size, fill_value)


def _where_reference(*args: Any, size: Any = None, fill_value: Any = None) -> Any:
    if size is None:
        return np.where(*args)
    return FUNCTIONS["nonzero"].reference(*args, size=size, fill_value=fill_value)


@function("where", reference=_where_reference)
def where_(
    condition: Any,
    x: Any = NO_VALUE,
    y: Any = NO_VALUE,
    /,
    *,
    size: Any = None,
    fill_value: Any = None,
) -> Any:
    """np.where; without `x` and `y` it is `nonzero`, and takes its `size` and `fill_value`."""
    if not given(x) and not given(y):
        return nonzero(condition, size=size, fill_value=fill_value)
    if not (given(x) and given(y)):
        raise ValueError("either both or neither of x and y should be given")
    for side in (x, y):
        if type(side) is int and not _where_wraps():
            check_python_int(side, common_dtype(operand(x), operand(y)))
    return where(condition, x, y)


@functools.cache
def _where_wraps() -> bool:
    """Whether `np.where` stores a Python int that is out of range: before NumPy 2.5."""
    try:
        np.where(np.ones(1, bool), np.zeros(1, np.uint8), 256)
    except OverflowError:
        return False
    return True
