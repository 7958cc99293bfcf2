"""Reductions, products and sorts of arrays whose length is a value (`indexing.bounded`)."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from ...ir.types import BOOL, I64, is_complex, is_float
from ..arrays import reductions, ufuncs
from ..arrays.common import NO_VALUE, array, axis_index, build, given
from ..arrays.reductions import highest, lowest
from ..arrays.table import FUNCTIONS, ArrayFunction
from ..arrays.whole import whole_rows
from ..core.effects import check
from ..core.tracers import Tracer, as_value, wrap
from ..indexing.bounded import (
    RULES,
    Aligned,
    Bounded,
    bounded,
    bounded_method,
    filled,
    live,
    number,
    refuse,
    require_equal,
    resized,
    rule,
)
from ..indexing.bounded_index import store
from ..indexing.masked import Masked
from .bounded import apply, elementwise
from .bounded_joins import finished, joined, one_of, parts_of

F = TypeVar("F", bound=Callable[..., Any])
Axes = tuple[int, ...]

# Reductions


def _reduced_axes(x: Bounded, axis: Any) -> tuple[int, ...]:
    if axis is None:
        return tuple(range(x.ndim))
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    return tuple(axis_index(a, x.ndim) for a in axes)


def _left(x: Bounded, axes: tuple[int, ...], keepdims: Any) -> dict[int, Any]:
    """The counts of what is left of x's axes."""
    keep = given(keepdims) and keepdims
    rest = {a: c for a, c in x.counts.items() if a not in axes}
    return rest if keep else {a - sum(r < a for r in axes): c for a, c in rest.items()}


def _count(x: Bounded, axes: Sequence[int]) -> Any:
    """How many elements are reduced to one: a number or a traced int."""
    total: Any = 1
    for axis in axes:
        total = x.shape[axis] * total
    return total


def require_some(x: Bounded, axes: Sequence[int], text: str, error: str = "ValueError") -> None:
    """An error when the compiled function runs if an axis has no element."""
    for axis in axes:
        if axis in x.counts:
            some = wrap(build().gt(as_value(x.counts[axis], I64), build().const(0, I64)))
            check(some, text, error=error)


def _with_where(x: Bounded, axes: Sequence[int], where: Any) -> Any:
    where = where.materialised() if isinstance(where, Masked) else where
    there = live(x, axes) if any(a in x.counts for a in axes) else True
    if where is True or not given(where):
        return there
    mask = Aligned([x, where]).padded[1]
    return mask if there is True else there & mask


def reduction(*names: str) -> Callable[[F], F]:
    """Make the decorated function what reductions of the table do with bounded arrays.

    It is called with the table's entry, the array, the axes that are reduced, and by name what else is
    given of the parameters of the entry, which are NumPy's. It gives the result, or what that is padded.
    """

    def enter(function: F) -> F:
        def reduced(entry: ArrayFunction, *args: Any, **options: Any) -> Any:
            parameters = _signature(entry.traced).parameters
            bound = _signature(entry.traced).bind(*args, **options).arguments
            x = one_of(bound.pop(next(iter(parameters))))
            axes, out = _reduced_axes(x, bound.pop("axis", None)), bound.pop("out", None)
            options = {
                name: value
                for name, value in bound.items()
                if given(value) and value is not parameters[name].default
            }
            result = function(entry, x, axes, **options)
            if not isinstance(result, Bounded):
                result = bounded(result, _left(x, axes, options.get("keepdims", False)))
            return finished(result, out)

        RULES.update(dict.fromkeys(names, reduced))
        return function

    return enter


_signature = functools.cache(inspect.signature)


@reduction("sum", "prod", "any", "all", "count_nonzero")
def _fold(
    entry: ArrayFunction, x: Bounded, axes: Axes, where: Any = True, **options: Any
) -> Tracer:
    if entry.name == "count_nonzero":
        x, entry = x != 0, FUNCTIONS["sum"]
    return entry.traced(x.padded, axes, where=_with_where(x, axes, where), **options)


@reduction("max", "min", "amax", "amin")
def _extremum(
    entry: ArrayFunction, x: Bounded, axes: Axes, where: Any = True, **options: Any
) -> Tracer:
    name = "maximum" if entry.name.endswith("max") else "minimum"
    if options.get("initial") is None:
        require_some(
            x, axes, f"zero-size array to reduction operation {name} which has no identity"
        )
    if where is not True:
        where = where.materialised() if isinstance(where, Masked) else where
        options["where"] = Aligned([x, where]).padded[1]
    fill = lowest(x.dtype) if name == "maximum" else highest(x.dtype)
    return entry.traced(filled(x, fill, axes), axes, **options)


@reduction("argmax", "argmin")
def _place(entry: ArrayFunction, x: Bounded, axes: Axes, **options: Any) -> Tracer:
    if len(axes) > 1 and any(k > 0 for k in x.counts):
        refuse(x, f"np.{entry.name} over several axes")
    require_some(x, axes, f"attempt to get {entry.name} of an empty sequence")
    fill = lowest(x.dtype) if entry.name == "argmax" else highest(x.dtype)
    axis = axes[0] if len(axes) == 1 else None
    return entry.traced(filled(x, fill, axes), axis, **options)


@reduction("mean")
def _mean(
    entry: ArrayFunction,
    x: Bounded,
    axes: Axes,
    dtype: Any = None,
    where: Any = True,
    **options: Any,
) -> Tracer:
    mask = _with_where(x, axes, where)
    if where is not True:
        return entry.traced(x.padded, axes, dtype, where=mask, **options)
    dtype = _float(x.dtype) if dtype is None else dtype
    total = FUNCTIONS["sum"].traced(x.padded, axes, dtype=dtype, where=mask, **options)
    return total / as_count(_count(x, axes), total.dtype)


def _float(dtype: np.dtype[Any]) -> Any:
    return np.dtype(np.float64) if dtype.kind in "biu" else dtype


def as_count(count: Any, dtype: np.dtype[Any]) -> Any:
    """A number of elements in the dtype of what is divided by it."""
    return wrap(as_value(count, dtype))


@reduction("var", "std")
def _variance(
    entry: ArrayFunction,
    x: Bounded,
    axes: Axes,
    ddof: Any = 0,
    correction: Any = None,
    keepdims: Any = False,
    **options: Any,
) -> Tracer:
    if options:
        refuse(x, f"np.{entry.name} with these options")
    deviation = x - RULES["mean"](FUNCTIONS["mean"], x, axes, keepdims=True)
    squares = Bounded(reductions.absolute_square(deviation.padded), deviation.counts)
    total = _fold(FUNCTIONS["sum"], squares, axes, keepdims=keepdims)
    less = ddof if correction is None else correction
    left = ufuncs.apply(np.maximum, as_count(_count(x, axes), total.dtype) - less, 0)
    result = total / left
    return ufuncs.apply(np.sqrt, result) if entry.name == "std" else result


def _with_for_nan(x: Bounded, fill: Any) -> Bounded:
    if not (is_float(x.dtype) or is_complex(x.dtype)):
        return x
    return one_of(RULES["where"](FUNCTIONS["where"], apply(np.isnan, x), fill, x))


_PLAIN = {"nansum": ("sum", 0), "nanprod": ("prod", 1)}


@reduction("nansum", "nanprod")
def _without_nan(entry: ArrayFunction, x: Bounded, axes: Axes, **options: Any) -> Tracer:
    name, identity = _PLAIN[entry.name]
    return _fold(FUNCTIONS[name], _with_for_nan(x, identity), axes, **options)


@reduction("nanmean")
def _nanmean(entry: ArrayFunction, x: Bounded, axes: Axes, **options: Any) -> Any:
    total = RULES["nansum"](FUNCTIONS["nansum"], x, axes, **options)
    count = RULES["sum"](FUNCTIONS["sum"], ~apply(np.isnan, x), axes, **options)
    return total / count.astype(_float(total.dtype))


@reduction("nanmax", "nanmin")
def _nan_extremum(entry: ArrayFunction, x: Bounded, axes: Axes, **options: Any) -> Tracer:
    fill = lowest(x.dtype) if entry.name == "nanmax" else highest(x.dtype)
    return _extremum(FUNCTIONS[entry.name[3:]], _with_for_nan(x, fill), axes, **options)


@reduction("special.logsumexp", "logsumexp")
def _logsumexp(entry: ArrayFunction, x: Bounded, axes: Axes, b: Any = None, **options: Any) -> Any:
    if "return_sign" in options:
        refuse(x, "logsumexp with return_sign=")
    x = x if x.dtype.kind == "f" else x.astype(np.float64)
    if b is not None:
        together = Aligned([x, b])
        if together.counts.keys() != x.counts.keys() or together.shape != x.padded.shape:
            refuse(x, "logsumexp with weights of another shape")
        options["b"] = together.padded[1]
    return entry.traced(filled(x, -math.inf, axes), axes, **options)


@rule("special.softmax", "special.log_softmax")
def _softmax(entry: ArrayFunction, x: Any, axis: Any = None) -> Any:
    rows = one_of(x)
    axes = _reduced_axes(rows, axis)
    rows = rows if rows.dtype.kind == "f" else rows.astype(np.float64)
    return Bounded(entry.traced(filled(rows, -math.inf, axes), axes), rows.counts)


@reduction("ptp")
def _ptp(entry: ArrayFunction, x: Bounded, axes: Axes, **options: Any) -> Tracer:
    high, low = (_extremum(FUNCTIONS[name], x, axes, **options) for name in ("max", "min"))
    return high - low


@reduction("linalg.norm")
def _norm(entry: ArrayFunction, x: Bounded, axes: Axes, ord: Any = None, **options: Any) -> Any:
    if ord not in (None, 2, 1, math.inf) or (ord is not None and len(axes) > 1):
        refuse(x, f"np.linalg.norm with ord={ord}")
    if ord == 1:
        return RULES["sum"](FUNCTIONS["sum"], abs(x), axes, **options)
    if ord == math.inf:
        return RULES["max"](FUNCTIONS["max"], abs(x), axes, **options)
    x = x if x.dtype.kind in "fc" else x.astype(np.float64)
    squares = Bounded(reductions.absolute_square(x.padded), x.counts)
    return _root(RULES["sum"](FUNCTIONS["sum"], squares, axes, **options))


def _root(x: Any) -> Any:
    return apply(np.sqrt, x) if isinstance(x, Bounded) else ufuncs.apply(np.sqrt, x)


# Products


@rule("matmul", "dot", "inner", "vdot", "vecdot", "linalg.vecdot")
def _product(entry: ArrayFunction, a: Any, b: Any, *args: Any, **options: Any) -> Any:
    x, y = (z.materialised() if isinstance(z, Masked) else z for z in (a, b))
    x, y = (z if isinstance(z, (Bounded, Tracer)) else array(z) for z in (x, y))
    out = options.pop("out", args[0] if args else None)
    if not x.ndim or not y.ndim:
        if entry.name == "matmul":
            raise ValueError("matmul: Input operand does not have enough dimensions")
        return finished(x * y, out)
    if entry.name == "vdot":
        x, y = _flat(x), _flat(y)
    ending = entry.name in ("inner", "vecdot", "linalg.vecdot", "vdot")
    i, j = x.ndim - 1, y.ndim - 1 if ending or y.ndim == 1 else y.ndim - 2
    x, y = _contracted(x, i, y, j)
    result = entry.traced(*(z.padded if isinstance(z, Bounded) else z for z in (x, y)))
    return finished(bounded(result, _product_counts(entry, x, i, y, j)), out)


def _flat(x: Any) -> Any:
    if x.ndim == 1:
        return x
    if isinstance(x, Bounded):
        refuse(x, "np.vdot")
    return x.ravel()


def _contracted(x: Any, i: int, y: Any, j: int) -> tuple[Any, Any]:
    """Two operands with one size along the axes that are summed over, and zeros behind the count."""
    text = (
        "matmul: Input operand 1 has a mismatch in its core dimension 0 (size {1} is different "
        "from {0})"
    )
    counts = [z.counts.get(k) if isinstance(z, Bounded) else None for z, k in ((x, i), (y, j))]
    if counts == [None, None]:
        return x, y
    sizes = [(z.padded if isinstance(z, Bounded) else z).shape[k] for z, k in ((x, i), (y, j))]
    lengths = [n if c is None else c for n, c in zip(sizes, counts, strict=True)]
    require_equal(lengths[0], lengths[1], text)
    count = counts[0] if counts[0] is not None else counts[1]
    fixed = [n for n, c in zip(sizes, counts, strict=True) if c is None]
    size = fixed[0] if fixed else min(sizes)
    found: list[Any] = []
    for z, k in ((x, i), (y, j)):
        if isinstance(z, Bounded):
            others = {a: c for a, c in z.counts.items() if a != k}
            assert count is not None
            padded = filled(Bounded(z.padded, {k: count}), 0)
            z = Bounded(resized(padded, k, size), others)
        found.append(z)
    return found[0], found[1]


def _product_counts(entry: ArrayFunction, x: Any, i: int, y: Any, j: int) -> dict[int, Any]:
    """The counts of a product's axes: x's but the one summed over, then y's."""
    mine, theirs = (z.counts if isinstance(z, Bounded) else {} for z in (x, y))
    if not mine and not theirs:
        return {}
    if x.ndim > 2 or y.ndim > 2:
        refuse(x if isinstance(x, Bounded) and mine else y, f"np.{entry.name} of several matrices")
    if entry.name in ("vecdot", "linalg.vecdot"):
        kept = mine if 0 in mine and i else theirs
        return {0: kept[0]} if 0 in kept and x.ndim == 2 else {}
    others = [c for a, c in mine.items() if a != i], [c for a, c in theirs.items() if a != j]
    return {axis: c for axis, found in zip((0, x.ndim - 1), others, strict=True) for c in found}


@rule("outer")
def _outer(entry: ArrayFunction, a: Any, b: Any, out: Any = None) -> Any:
    x, y = (z if isinstance(z, Bounded) else array(z).ravel() for z in (a, b))
    if x.ndim != 1 or y.ndim != 1:
        refuse(x if isinstance(x, Bounded) else y, "np.outer")
    return finished(apply(np.multiply, x[:, None], y[None, :]), out)


@rule("trace")
def _trace(
    entry: ArrayFunction,
    a: Any,
    offset: Any = 0,
    axis1: Any = 0,
    axis2: Any = 1,
    dtype: Any = None,
    out: Any = None,
) -> Any:
    x = one_of(a)
    if x.ndim != 2:
        refuse(x, "np.trace of more than two axes")
    return finished(entry.traced(filled(x, 0), offset, axis1, axis2, dtype), out)


# Order


@rule("sort", "argsort")
def _sorted(entry: ArrayFunction, a: Any, axis: Any = -1, *args: Any, **options: Any) -> Any:
    x = one_of(a)
    if axis is None:
        refuse(x, f"np.{entry.name} with axis=None") if x.ndim > 1 else None
        axis = 0
    axis = axis_index(axis, x.ndim)
    return Bounded(entry.traced(filled(x, last_of(x.dtype), [axis]), axis), x.counts)


def last_of(dtype: np.dtype[Any]) -> Any:
    """What is sorted behind all others, or beside its equals."""
    if is_complex(dtype):
        return complex(math.nan, math.nan)
    return math.nan if is_float(dtype) else highest(dtype)


@rule("median")
def _median(
    entry: ArrayFunction,
    a: Any,
    axis: Any = None,
    out: Any = None,
    overwrite_input: Any = False,
    keepdims: Any = False,
) -> Any:
    x = one_of(a)
    if x.ndim != 1 or axis not in (None, 0, -1) or (given(keepdims) and keepdims):
        refuse(x, "np.median over an axis")
    if not x.padded.shape[0]:
        return finished(wrap(build().const(math.nan, _float(x.dtype))), out)
    n = x.counts[0]
    rows = _sorted(FUNCTIONS["sort"], x).padded
    low, high, end = (FUNCTIONS["maximum"].traced(k, 0) for k in ((n - 1) // 2, n // 2, n - 1))
    take = FUNCTIONS["take"].traced
    parts = [take(rows, k, mode="clip").astype(_float(x.dtype)) for k in (low, high, end)]
    middle = FUNCTIONS["mean"].traced(array(parts[:2]))
    nan = wrap(build().const(math.nan, middle.dtype))
    if is_float(x.dtype):
        middle = FUNCTIONS["where"].traced(FUNCTIONS["isnan"].traced(parts[2]), nan, middle)
    return finished(wrap(as_value(FUNCTIONS["where"].traced(array(n) == 0, nan, middle))), out)


@rule("quantile", "percentile")
def _quantile(entry: ArrayFunction, a: Any, q: Any, axis: Any = None, **options: Any) -> Any:
    """By linear interpolation, of one number, as NumPy rounds it."""
    x = one_of(a)
    plain = axis in (None, 0, -1) and not any(given(v) and v for v in options.values())
    if x.ndim != 1 or array(q).ndim or not plain or not x.padded.shape[0]:
        refuse(x, f"np.{entry.name} with these options")
    part = array(q).astype(np.float64) / (100 if entry.name == "percentile" else 1)
    check((part >= 0) & (part <= 1), "Quantiles must be in the range [0, 1]", error="ValueError")
    require_some(x, [0], "index -1 is out of bounds for axis 0 with size 0", "IndexError")
    rows = _sorted(FUNCTIONS["sort"], x).padded.astype(_float(x.dtype))
    place = part * (x.counts[0] - 1)
    low = FUNCTIONS["floor"].traced(place)
    take, where = FUNCTIONS["take"].traced, FUNCTIONS["where"].traced
    below, above, last = (
        take(rows, k.astype(np.int64) if isinstance(k, Tracer) else k, mode="clip")
        for k in (low, FUNCTIONS["minimum"].traced(low + 1, x.counts[0] - 1), x.counts[0] - 1)
    )
    way = (place - low).astype(rows.dtype)
    found = where(way >= 0.5, above - (above - below) * (1 - way), below + (above - below) * way)
    return wrap(as_value(where(FUNCTIONS["isnan"].traced(last), last, found)))


@rule("allclose")
def _allclose(entry: ArrayFunction, a: Any, b: Any, *args: Any, **options: Any) -> Any:
    close = elementwise(lambda x, y: FUNCTIONS["isclose"].traced(x, y, *args, **options), (a, b))
    return RULES["all"](FUNCTIONS["all"], close)


@rule("cumsum", "cumprod", "cumulative_sum", "cumulative_prod")
def _running(
    entry: ArrayFunction,
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    *,
    include_initial: bool = False,
) -> Any:
    x = one_of(a)
    if axis is None and x.ndim > 1:
        refuse(x, f"np.{entry.name} with axis=None")
    axis = axis_index(0 if axis is None else axis, x.ndim)
    fill = 0 if "sum" in entry.name else 1
    first = {"include_initial": True} if include_initial else {}
    running = entry.traced(filled(x, fill, [axis]), axis=axis, dtype=dtype, **first)
    counts = dict(x.counts)
    if first and axis in counts:
        counts[axis] = number(counts[axis] + 1)
    return finished(bounded(running, counts), out)


@rule("diff")
def _diff(
    entry: ArrayFunction,
    a: Any,
    n: Any = 1,
    axis: Any = -1,
    prepend: Any = NO_VALUE,
    append: Any = NO_VALUE,
) -> Any:
    x: Any = one_of(a)
    if n < 0:
        raise ValueError(f"order must be non-negative but got {n!r}")
    axis = axis_index(axis, x.ndim)
    if n and (given(prepend) or given(append)):
        ends = [parts_of([e])[0] if given(e) else None for e in (prepend, append)]
        if x.ndim > 1 and any(e is not None and not e.ndim for e in ends):
            refuse(x, "np.diff with a number before or after the elements of a matrix")
        before, after = ([] if e is None else [e if e.ndim else e.reshape(1)] for e in ends)
        x = one_of(joined([*before, x, *after], axis))
    follows = axis in x.counts and x.dtype != BOOL and whole_rows(x) is not None
    for _ in range(n):
        if follows:
            x = one_of(x[1:] - x[:-1])  # windows follow the axis
            continue
        steps, counts = entry.traced(x.padded, 1, axis), dict(x.counts)
        if axis in counts:
            counts[axis] = number(FUNCTIONS["maximum"].traced(counts[axis] - 1, 0))
        x = Bounded(steps, counts)
    return bounded(x.padded, x.counts)


@rule("flip")
def _flip(entry: ArrayFunction, m: Any, axis: Any = None) -> Any:
    x = one_of(m)
    axes = _reduced_axes(x, axis)
    return x[tuple(slice(None, None, -1) if a in axes else slice(None) for a in range(x.ndim))]


@bounded_method("sort")
def _sort_in_place(x: Bounded, axis: int = -1, kind: Any = None, **options: Any) -> None:
    store(x, _sorted(FUNCTIONS["sort"], x, axis))
