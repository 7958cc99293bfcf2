"""Quantiles and medians: elements of a sorted row, and what lies between them.

`METHODS` says for each of NumPy's methods where in a row of n sorted elements the quantile q lies:
R. Hyndman, Y. Fan, Sample quantiles in statistical packages (1996).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...ir.types import BOOL, F32, F64, I64, is_float, is_small
from ..arrays import ufuncs
from ..arrays.common import (
    array,
    axis_tuple,
    build,
    check_real,
    check_values,
    finish,
    finish_ufunc,
    known_array,
)
from ..arrays.elementwise import where
from ..arrays.movement import moveaxis, stack
from ..arrays.reductions import any_, kept_shape, sum_, weights_along
from ..arrays.table import FUNCTIONS, function
from ..core import views
from ..core.constants import is_differentiated
from ..core.tracers import Tracer, as_value, wrap
from ..data.promotion import DType, float_dtype, result_dtype
from .scans import cumsum
from .selection import take_along_axis
from .sorting import argsort, sort

Place = Callable[[Any, Any], Any]


def _between(alpha: float, beta: float) -> Place:
    """A place among n elements, by what is cut off below the first and above the last one."""
    return lambda n, q: n * q + (alpha + q * (1 - alpha - beta)) - 1


def _linear(n: Any, q: Any) -> Any:
    return (n - 1) * q


def _next_if(condition: Callable[[Any, Any], Any], shift: float) -> Place:
    """A whole place: that before n q - 1 - shift if the condition holds, else the one behind it."""

    def index_of(n: Any, q: Any) -> Any:
        at = n * q - 1 - shift
        low = np.floor(at)
        stays = condition(at - low, low)
        index = where(stays, low, low + 1) if isinstance(at, Tracer) else low + (not stays)
        return np.maximum(index, 0)

    return index_of


METHODS: dict[str, Place] = {
    "linear": _linear,
    "lower": lambda n, q: np.floor((n - 1) * q),
    "higher": lambda n, q: np.ceil((n - 1) * q),
    "nearest": lambda n, q: np.rint((n - 1) * q),
    "midpoint": lambda n, q: 0.5 * (np.floor((n - 1) * q) + np.ceil((n - 1) * q)),
    "inverted_cdf": _next_if(lambda gap, low: gap == 0, 0.0),
    "closest_observation": _next_if(lambda gap, low: (gap == 0) & (low % 2 == 1), 0.5),
    "averaged_inverted_cdf": lambda n, q: n * q - 1,
    "interpolated_inverted_cdf": _between(0, 1),
    "hazen": _between(0.5, 0.5),
    "weibull": _between(0, 0),
    "median_unbiased": _between(1 / 3.0, 1 / 3.0),
    "normal_unbiased": _between(3 / 8.0, 3 / 8.0),
}


def _fixed(method: str, share: Any) -> Any:
    """How much of the upper neighbour there is in the result."""
    if method == "averaged_inverted_cdf":
        return (
            where(share == 0, 0.5, 1.0) if isinstance(share, Tracer) else 1.0 - 0.5 * (share == 0)
        )
    return share


def _clipped(index: Tracer, low: Any, high: Any) -> Tracer:
    return ufuncs.apply(np.minimum, ufuncs.apply(np.maximum, index, low), high)


class _Rows:
    """An array with the axes of a reduction as one last axis, sorted along it."""

    def __init__(self, x: Tracer, axis: Any, keepdims: Any) -> None:
        axes = axis_tuple(axis, x.ndim, x, strict=True)
        self.kept = kept_shape(x.shape, axes) if keepdims else None
        rest = [i for i in range(x.ndim) if i not in axes]
        self.size = math.prod(x.shape[i] for i in axes)
        self.lead = tuple(x.shape[i] for i in rest)
        self.shape = self.lead if self.kept is None else self.kept
        flat = moveaxis(x, axes, range(len(rest), x.ndim)).reshape((*self.lead, self.size))
        self.source = flat
        self.sorted = sort(flat, -1) if self.size else flat
        self.float = is_float(x.dtype)

    def shaped(self, result: Tracer) -> Tracer:
        result = wrap(as_value(result))
        return result.reshape(self.kept) if self.kept is not None else result

    def undefined(self, dtype: Any) -> Tracer:
        return self.shaped(wrap(build().full(self.lead, math.nan, dtype)))

    def has_nan(self) -> Tracer:
        """Asked of the elements as they came, so that only the wanted part of a row is sorted."""
        return any_(ufuncs.apply(np.isnan, self.source), axis=-1)

    def at(self, position: Any) -> Tracer:
        """The elements at a place: a number, or one for each row."""
        if not isinstance(position, Tracer):
            return self.sorted[..., int(position)]
        index = views.broadcast_to(position.astype(I64), self.lead)[..., None]
        return take_along_axis(self.sorted, index, -1)[..., 0]


class _Fractions:
    """What is asked for: `values` between 0 and 1, known ones as an ndarray.

    `weak`: a Python number, beside which the data keep their dtype.
    """

    def __init__(self, q: Any, percent: bool) -> None:
        traced = isinstance(q, Tracer)
        self.weak = q.weak is not None if traced else type(q) in (int, float)
        constant = None if traced and is_differentiated(q) else known_array(q)
        values: Any = wrap(as_value(array(q)), scalar=False) if constant is None else constant
        if values.ndim > 2:
            raise ValueError("q must be a scalar or 1d")
        if values.ndim == 2 and not values.size:
            raise ValueError("q has no elements")  # as NumPy, which asks for the least of them
        if percent:
            values = values / 100
        self.values = values if isinstance(values, Tracer) else np.asarray(values)
        span = "Percentiles must be in the range [0, 100]"
        span = span if percent else "Quantiles must be in the range [0, 1]"
        check_values(((self.values >= 0) & (self.values <= 1)).all(), span)

    def each(self) -> list[Any]:
        flat = self.values.ravel()
        return [flat[i] for i in range(flat.size)]

    def share_kind(self, method: str) -> Any:
        """How the share of the upper neighbour promotes, that is as places do; None where an element
        is the result."""
        index_dtype = np.asarray(METHODS[method](2, self.values.dtype.type(1))).dtype
        if _whole(method) or (index_dtype.kind in "iu" and method == "linear"):
            return None
        return float if self.weak else index_dtype


def _interpolated(rows: _Rows, n: Any, q: Any, method: str, share_kind: Any) -> Tracer:
    """The quantile q of the first n elements of each row; the place is a number of q's dtype."""
    traced = isinstance(n, Tracer) or isinstance(q, Tracer)
    if isinstance(n, Tracer) and is_float(q.dtype):
        n = n.astype(q.dtype)
    index, last = METHODS[method](n, q), n - 1
    if share_kind is None:  # an element, and never a float between
        return rows.at(_clipped(index, 0, last) if traced else min(max(index, 0), last))
    low = np.floor(index)
    share = _fixed(method, index - low)
    if traced:
        low, high = (_clipped(p, 0, last) for p in (low, low + 1))
        share = where(index < 0, 0.0, where(index >= last, 0.0, share)).astype(index.dtype)
    else:
        share = 0.0 if index < 0 or index >= last else index.dtype.type(share)
        low, high = (min(max(p, 0), last) for p in (low, low + 1))
        share = float(share) if share_kind is float else share_kind.type(share)
    own = rows.sorted.dtype
    if share_kind is float or is_float(share_kind):
        own = float_dtype(own)
    a, b = rows.at(low).astype(own), rows.at(high).astype(own)
    if traced and share_kind is float:
        share = share.astype(own)
    gap = b - a
    if traced:
        return where(share < 0.5, a + gap * share, b - gap * (1 - share))
    return a + gap * share if share < 0.5 else b - gap * (1 - share)


def _whole(method: str) -> bool:
    return method in ("lower", "higher", "nearest", "inverted_cdf", "closest_observation")


def _quantile(
    x: Tracer, q: _Fractions, axis: Any, keepdims: Any, method: str, skip_nan: bool
) -> Tracer:
    check_real("quantile", x)
    rows, share = _Rows(x, axis, keepdims), q.share_kind(method)
    dtype = x.dtype if share is None else result_dtype(x.dtype, share)
    if rows.size == 0:
        raise IndexError("cannot take a quantile of no elements")
    if x.dtype == BOOL and share is not None:
        raise TypeError(f"quantiles of booleans are not defined with method={method!r}")
    count: Any = rows.size
    bad = rows.has_nan() if rows.float and not skip_nan else None
    if skip_nan and rows.float:
        count = sum_(~ufuncs.apply(np.isnan, rows.sorted), axis=-1)
        bad = count == 0

    def one(fraction: Any) -> Tracer:
        quantile = _interpolated(rows, count, fraction, method, share).astype(dtype)
        return rows.shaped(quantile if bad is None else where(bad, dtype.type(math.nan), quantile))

    return _stacked(q, [one(fraction) for fraction in q.each()], rows.shape, dtype)


def _stacked(q: _Fractions, results: list[Tracer], shape: Any, dtype: DType) -> Tracer:
    """The results of each fraction, with q's dims in front."""
    if not q.values.ndim:
        return results[0]
    if not results:
        return wrap(build().full((*q.values.shape, *shape), 0, dtype), scalar=False)
    return stack(results).reshape(q.values.shape + results[0].shape)


def _weighted(
    x: Tracer, weights: Any, q: _Fractions, axis: Any, keepdims: Any, skip_nan: bool
) -> Tracer:
    """The first of the sorted elements up to which there is the fraction q of all weight."""
    check_real("quantile", x)
    axes = axis_tuple(axis, x.ndim, x, strict=True)
    w = weights_along(x, weights, None if axis is None else axes).astype(F64)
    shape_kept = kept_shape(x.shape, axes) if keepdims else None
    rest = [i for i in range(x.ndim) if i not in axes]
    lead, size = tuple(x.shape[i] for i in rest), math.prod(x.shape[i] for i in axes)

    def rows(y: Tracer) -> Tracer:
        whole = wrap(build().broadcast_to(as_value(y), x.shape), scalar=False)
        return moveaxis(whole, axes, range(len(rest), x.ndim)).reshape((*lead, size))

    flat, w = rows(x), rows(w)
    nan = ufuncs.apply(np.isnan, flat) if is_float(x.dtype) else None
    if skip_nan and nan is not None:
        w = where(nan, 0.0, w)
    order = argsort(flat, -1)
    ordered, w = take_along_axis(flat, order, -1), take_along_axis(w, order, -1)
    check_values((w >= 0).all(), "Weights must be non-negative.")
    share = cumsum(w, -1)
    whole = ufuncs.apply(np.isfinite, share[..., -1:]) & (share[..., -1:] != 0)
    check_values(whole.all(), "Weights included NaN, inf or were all zero.")
    share = share / share[..., -1:]
    share = share.astype(q.values.dtype) if is_float(q.values.dtype) else share
    share = where(share == 0, -1, share)  # what weighs nothing at the beginning is not the first
    results = []
    for fraction in q.each():
        index = sum_((share < fraction).astype(I64), axis=-1)
        index = ufuncs.apply(np.minimum, index, size - 1)
        quantile = take_along_axis(ordered, index[..., None], -1)[..., 0]
        if nan is not None:
            bad = nan.all(axis=-1) if skip_nan else any_(nan, axis=-1)
            quantile = where(bad, x.dtype.type(math.nan), quantile)
        results.append(
            wrap(
                as_value(quantile if shape_kept is None else quantile.reshape(shape_kept)),
                scalar=False,
            )
        )
    return _stacked(q, results, lead if shape_kept is None else shape_kept, x.dtype)


def _between_two(a: Tracer, b: Tracer) -> Tracer:
    """Their mean, rounded once, as means of small floats are."""
    if is_small(a.dtype):
        return ((a.astype(F32) + b) / 2).astype(a.dtype)
    return (a + b) / 2


def _median(x: Tracer, axis: Any, keepdims: Any, skip_nan: bool) -> Tracer:
    rows = _Rows(x, axis, keepdims)
    own = float_dtype(x.dtype)
    if rows.size == 0:
        return rows.undefined(own)
    if skip_nan and rows.float:
        count: Any = sum_(~ufuncs.apply(np.isnan, rows.sorted), axis=-1)
        middle = _clipped((count - 1) // 2, 0, rows.size)
        a, b = rows.at(middle), rows.at(_clipped(count // 2, 0, rows.size))
        median = where(middle == count // 2, a, _between_two(a, b))
        bad = count == 0
    else:
        a, b = (rows.at(i).astype(own) for i in ((rows.size - 1) // 2, rows.size // 2))
        median = a if rows.size % 2 else _between_two(a, b)
        bad = rows.has_nan() if x.dtype.kind in "fc" else None
    return rows.shaped(median if bad is None else where(bad, own.type(math.nan), median))


def _enter_median(name: str, skip_nan: bool) -> None:
    def traced(
        a: Any,
        axis: Any = None,
        out: Any = None,
        overwrite_input: bool = False,
        keepdims: Any = False,
    ) -> Any:
        keep = keepdims is not np._NoValue and keepdims
        result = _median(array(a), axis, keep, skip_nan)
        return finish_ufunc(result, out, "unsafe") if skip_nan else finish(result, out)

    function(name)(traced)


def _enter_quantile(name: str, skip_nan: bool, percent: bool) -> None:
    def traced(
        a: Any,
        q: Any,
        axis: Any = None,
        out: Any = None,
        overwrite_input: bool = False,
        method: str = "linear",
        keepdims: Any = False,
        *,
        weights: Any = None,
    ) -> Any:
        if weights is not None and method != "inverted_cdf":
            raise ValueError(f"Only method 'inverted_cdf' supports weights. Got: {method}.")
        if method not in METHODS:
            raise ValueError(f"{method!r} is not a valid method. Use one of: {', '.join(METHODS)}")
        x = array(a)
        fractions = _Fractions(q, percent)
        keep = keepdims is not np._NoValue and keepdims
        if skip_nan and x.size == 0:
            return FUNCTIONS["nanmean"].traced(x, axis=axis, out=out, keepdims=keep)
        if weights is not None:
            quantile = _weighted(x, weights, fractions, axis, keep, skip_nan)
            return finish_ufunc(quantile, out)
        return finish_ufunc(_quantile(x, fractions, axis, keep, method, skip_nan), out)

    function(name)(traced)


for _nan in ("", "nan"):
    _enter_median(f"{_nan}median", bool(_nan))
    _enter_quantile(f"{_nan}quantile", bool(_nan), percent=False)
    _enter_quantile(f"{_nan}percentile", bool(_nan), percent=True)
