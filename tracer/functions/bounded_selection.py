"""Arrays whose length is a value (`indexing.bounded`): elements at places, searches, interpolation,
averages, comparison as a whole."""

from __future__ import annotations

import functools
import operator
from typing import Any

import numpy as np

from ...ir.types import BOOL, F64, is_complex, is_inexact
from ..arrays.common import array, axis_index, given
from ..arrays.table import FUNCTIONS, ArrayFunction
from ..arrays.whole import whole_rows
from ..core.effects import check
from ..core.tracers import Tracer
from ..data.promotion import result_dtype
from ..indexing.at import At
from ..indexing.bounded import (
    Aligned,
    Bounded,
    bounded,
    filled,
    live,
    number,
    refuse,
    require_equal,
    resized,
    rule,
)
from .bounded import elementwise
from .bounded_joins import finished, joined, one_of, parts_of
from .bounded_reductions import last_of, require_some


def _call(name: str, *args: Any, **options: Any) -> Any:
    return FUNCTIONS[name].trace(args, options)


def _part(x: Any) -> Any:
    """An operand as a `Bounded` or a traced array."""
    return parts_of([x])[0]


# Places


@rule("take")
def _take(
    entry: ArrayFunction,
    a: Any,
    indices: Any,
    axis: Any = None,
    out: Any = None,
    mode: str = "raise",
) -> Any:
    x, places = _part(a), _part(indices)
    if mode != "raise" or (axis is None and x.ndim != 1):
        refuse(one_of(a if isinstance(a, Bounded) else indices), "np.take with these options")
    axis = axis_index(0 if axis is None else axis, x.ndim)
    return finished(x[(slice(None),) * axis + (places,)], out)


@rule("roll")
def _roll(entry: ArrayFunction, a: Any, shift: Any, axis: Any = None) -> Any:
    x = one_of(a)
    if isinstance(shift, (tuple, list)) or isinstance(axis, (tuple, list)):
        refuse(x, "np.roll along several axes")
    if axis is None and x.ndim > 1:
        refuse(x, "np.roll with axis=None")
    axis = axis_index(0 if axis is None else axis, x.ndim)
    if axis not in x.counts:
        return Bounded(entry.traced(x.padded, shift, axis), x.counts)
    n = _call("maximum", x.counts[axis], 1)
    places = (_call("arange", x.padded.shape[axis]) - shift) % n
    return Bounded(_call("take", x.padded, places, axis, mode="clip"), x.counts)


@rule("delete")
def _deleted(entry: ArrayFunction, arr: Any, obj: Any, axis: Any = None) -> Any:
    """What `obj` does not name: the elements where a mask is left."""
    x = _part(arr)
    if axis is None and x.ndim != 1:
        refuse(one_of(arr if isinstance(arr, Bounded) else obj), "np.delete without an axis")
    axis = axis_index(0 if axis is None else axis, x.ndim)
    counts = x.counts if isinstance(x, Bounded) else {}
    if counts and axis not in counts:
        left = entry.traced(x.padded, obj, axis)
        return bounded(left, counts) if isinstance(left, Tracer) else refuse(x, "np.delete")
    there = array(np.ones((x.padded if counts else x).shape[axis], bool))
    kept: Any = Bounded(there, {0: counts[axis]}) if axis in counts else there
    if isinstance(obj, (list, tuple, range)):
        obj = np.asarray(obj, None if len(obj) else np.int64)
    if getattr(obj, "dtype", None) == BOOL and obj.ndim:
        kept = ~_part(obj)
    else:
        kept[obj] = False
    return x[(slice(None),) * axis + (kept,)]


@rule("broadcast_to")
def _broadcast_to(entry: ArrayFunction, array: Any, shape: Any, subok: bool = False) -> Any:
    x = one_of(array)
    sizes = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    first = len(sizes) - x.ndim
    if first < 0:
        refuse(x, "np.broadcast_to with fewer axes")
    padded, counts = list(sizes), {}
    for axis, count in x.counts.items():
        text = "operands could not be broadcast together with remapped shapes: ({0},) -> ({1},)"
        require_equal(count, sizes[first + axis], text)
        padded[first + axis], counts[first + axis] = x.padded.shape[axis], count
    spread = entry.traced(x.padded, tuple(padded))
    if isinstance(spread, Bounded):  # new axes have lengths that are values, too
        spread, counts = spread.padded, {**spread.counts, **counts}
    return bounded(spread, counts)


@rule("at")
def _at(entry: ArrayFunction, x: Any) -> At:
    return At(one_of(x), traced=True)


@rule("expand_dims")
def _expanded(entry: ArrayFunction, a: Any, axis: Any) -> Any:
    x = one_of(a)
    new = entry.traced(x.padded, axis)
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    added = {axis_index(k, new.ndim) for k in axes}
    old = [d for d in range(new.ndim) if d not in added]
    return Bounded(new, {old[d]: count for d, count in x.counts.items()})


@rule("ediff1d")
def _ediff1d(entry: ArrayFunction, ary: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    x = _call("diff", one_of(ary))
    ends = [None if e is None else _part(e) for e in (to_begin, to_end)]
    if x.ndim > 1:
        refuse(x, "np.ediff1d of a matrix")
    before, after = ([] if e is None else [e if e.ndim else e.reshape(1)] for e in ends)
    return joined([*before, x, *after], 0, dtype=x.dtype) if before or after else x


@rule("trapezoid")
def _trapezoid(entry: ArrayFunction, y: Any, x: Any = None, dx: Any = 1.0, axis: Any = -1) -> Any:
    values = _part(y)
    if values.ndim != 1:
        refuse(one_of(y if isinstance(y, Bounded) else x), "np.trapezoid of a matrix")
    steps = dx if x is None else _call("diff", _part(x))
    values = values if isinstance(values, Bounded) else Bounded(values, {0: number(len(values))})
    if whole_rows(values) is not None:  # windows follow the axis
        return _call("sum", steps * (values[1:] + values[:-1]) / 2.0)
    pairs = values.padded[1:] + values.padded[:-1]
    left = Bounded(pairs, {0: number(_call("maximum", values.counts[0] - 1, 0))})
    return _call("sum", steps * left / 2.0)


@rule("take_along_axis")
def _along(entry: ArrayFunction, arr: Any, indices: Any, axis: Any = -1) -> Any:
    x, places = _part(arr), _part(indices)
    if x.ndim != places.ndim:
        raise ValueError("`indices` and `arr` must have the same number of dimensions")
    axis = axis_index(axis, x.ndim)
    index: list[Any] = []
    for d, n in enumerate(x.shape):  # each other position along its own axis
        own = places if d == axis else _call("arange", n)
        index.append(
            own if d == axis else own[tuple(slice(None) if k == d else None for k in range(x.ndim))]
        )
    return x[tuple(index)]


# Choices


@rule("select")
def _select(entry: ArrayFunction, condlist: Any, choicelist: Any, default: Any = 0) -> Any:
    conditions, k = list(condlist), len(condlist)
    if k != len(choicelist):
        raise ValueError("list of cases must be same length as list of conditions")

    def traced(*parts: Any) -> Any:
        return entry.traced(parts[:k], parts[k:-1], parts[-1])

    return elementwise(traced, [*conditions, *choicelist, default])


@rule("choose")
def _choose(
    entry: ArrayFunction, a: Any, choices: Any, out: Any = None, mode: str = "raise"
) -> Any:
    index = _part(a)
    parts = list(choices) if isinstance(choices, (list, tuple)) else [_part(choices)]
    if not isinstance(choices, (list, tuple)):
        refuse(one_of(a if isinstance(a, Bounded) else choices), "np.choose of one array")
    if mode == "raise":
        fits = (index >= 0) & (index < len(parts))
        check(_call("all", fits), "invalid entry in choice array", error="ValueError")
        mode = "clip"
    return finished(
        elementwise(lambda i, *them: entry.traced(i, them, mode=mode), [index, *parts]), out
    )


@rule("piecewise")
def _piecewise(
    entry: ArrayFunction, x: Any, condlist: Any, funclist: Any, *args: Any, **options: Any
) -> Any:
    a = one_of(x)
    conditions = parts_of(condlist if isinstance(condlist, (list, tuple)) else [condlist])
    if len(funclist) not in (len(conditions), len(conditions) + 1):
        raise ValueError(
            f"with {len(conditions)} condition(s), either {len(conditions)} or "
            f"{len(conditions) + 1} functions are expected"
        )
    if any(c.ndim != a.ndim or c.dtype != BOOL for c in conditions):
        refuse(a, "np.piecewise with conditions of other shapes")
    if len(funclist) > len(conditions):
        conditions.append(~functools.reduce(operator.or_, conditions))
    result = _call("zeros_like", a)
    for condition, f in zip(conditions, funclist, strict=True):
        value = _part(f(a, *args, **options) if callable(f) else f).astype(a.dtype)
        result = _call("where", condition, value, result)
    return result


# Searches


@rule("digitize")
def _digitize(entry: ArrayFunction, x: Any, bins: Any, right: bool = False) -> Any:
    if isinstance(bins, Bounded):
        refuse(bins, "np.digitize with bins")
    return elementwise(lambda v: entry.traced(v, bins, right), [x])


@rule("searchsorted")
def _searchsorted(
    entry: ArrayFunction, a: Any, v: Any, side: str = "left", sorter: Any = None
) -> Any:
    table, keys = _part(a), _part(v)
    if sorter is not None:
        refuse(one_of(a if isinstance(a, Bounded) else v), "np.searchsorted with sorter=")
    if isinstance(table, Bounded):
        count = table.counts[0]
        rows = filled(table, last_of(table.dtype))

        def search(x: Any) -> Any:
            return _call("minimum", entry.traced(rows, x, side), number(count))
    else:

        def search(x: Any) -> Any:
            return entry.traced(table, x, side)

    return elementwise(search, [keys]) if isinstance(keys, Bounded) else search(keys)


@rule("isin")
def _isin(
    entry: ArrayFunction,
    element: Any,
    test_elements: Any,
    assume_unique: bool = False,
    invert: bool = False,
    *,
    kind: Any = None,
) -> Any:
    x, tests = _part(element), _part(test_elements)
    if isinstance(tests, Bounded):
        if tests.ndim > 1 or is_complex(tests.dtype):
            refuse(tests, "np.isin")
        dtype = result_dtype(x.dtype, tests.dtype)
        ordered = _call("sort", tests.astype(dtype))
        x = x.astype(dtype)
        place = _call("searchsorted", ordered, x)
        nearest = elementwise(lambda p: _call("take", ordered.padded, p, mode="clip"), [place])
        found = (nearest == x) & (place < ordered.counts[0])
    else:
        found = elementwise(lambda e: entry.traced(e, tests), [x])
    return ~found if invert else found


@rule("interp")
def _interp(
    entry: ArrayFunction,
    x: Any,
    xp: Any,
    fp: Any,
    left: Any = None,
    right: Any = None,
    period: Any = None,
) -> Any:
    points, xs, ys = _part(x), _part(xp), _part(fp)
    if isinstance(xs, Bounded) or isinstance(ys, Bounded):
        if period is not None:
            refuse(one_of(xp if isinstance(xs, Bounded) else fp), "np.interp with period=")
        both = Aligned([xs, ys], "fp and xp are not of the same length.")
        xs, ys = (_continued(both.result(p)) for p in both.padded)
    return elementwise(lambda p: entry.traced(p, xs, ys, left, right, period), [points])


def _continued(x: Any) -> Tracer:
    """The padded array with the last element that is there in place of those that are not."""
    if not isinstance(x, Bounded):
        return array(x)
    require_some(x, [0], "array of sample points is empty")
    last = _call("take", x.padded, x.counts[0] - 1, mode="clip")
    result: Tracer = _call("where", live(x), x.padded, last)
    return result


@rule("polyval")
def _polyval(entry: ArrayFunction, p: Any, x: Any) -> Any:
    coefficients = _part(p)
    if not isinstance(coefficients, Bounded):
        return elementwise(lambda places: entry.traced(coefficients, places), [x])
    if isinstance(x, Bounded) or coefficients.ndim > 1:
        refuse(coefficients, "np.polyval at places whose number is a value, or of a matrix")
    y: Any = FUNCTIONS["zeros_like"].traced(x)
    for k, there in enumerate(live(coefficients)):
        y = FUNCTIONS["where"].traced(there, y * x + coefficients.padded[k], y)
    return y


# Of all elements


@rule("average")
def _average(
    entry: ArrayFunction,
    a: Any,
    axis: Any = None,
    weights: Any = None,
    returned: bool = False,
    *,
    keepdims: Any = False,
) -> Any:
    x = _part(a)
    keep = {"keepdims": True} if given(keepdims) and keepdims else {}
    if weights is None:
        result = _call("mean", x, axis, **keep)
        scale = _call("sum", _call("ones_like", x, dtype=result.dtype), axis, **keep)
    else:
        w = _part(weights)
        if w.ndim != x.ndim:
            refuse(one_of(a if isinstance(a, Bounded) else weights), "np.average with such weights")
        dtype = result_dtype(x.dtype, w.dtype, *(() if is_inexact(x.dtype) else (F64,)))
        w = w.astype(dtype)
        scale = _call("sum", w + _call("zeros_like", x, dtype=dtype), axis, **keep)
        text = "Weights sum to zero, can't be normalized"
        check(~_call("any", scale == 0), text, error="ZeroDivisionError")
        result = _call("sum", x * w, axis, dtype=dtype, **keep) / scale
    return (result, scale) if returned else result


@rule("array_equal")
def _array_equal(entry: ArrayFunction, a1: Any, a2: Any, equal_nan: bool = False) -> Any:
    x, y = _part(a1), _part(a2)
    false = entry.traced(np.zeros(1), np.zeros(2))
    if x.ndim != y.ndim:
        return false
    lengths = list(zip(x.shape, y.shape, strict=True))
    if any(type(m) is type(n) is int and m != n for m, n in lengths):
        return false
    agree: Any = True
    for m, n in lengths:
        agree = (number(m) == n) & agree
    padded = [z.padded if isinstance(z, Bounded) else z for z in (x, y)]
    for d in range(x.ndim):
        size = min(p.shape[d] for p in padded)
        padded = [resized(p, d, size) for p in padded]
    one, other = padded
    same = one == other
    if equal_nan:
        same = same | (_call("isnan", one) & _call("isnan", other))
    there = [live(Bounded(one, z.counts)) for z in (x, y) if isinstance(z, Bounded)]
    for mask in there:
        same = same | ~mask
    return entry.traced(array(agree) & _call("all", same), np.array(True))
