"""Histograms: counts of elements between edges."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ...ir.types import BOOL, F64, I32, I64, is_float, is_inexact
from ..arrays import ufuncs
from ..arrays.common import (
    array,
    check_real,
    check_values,
    common_dtype,
    holds_tracers,
    operand,
    require_static,
    shape_of,
)
from ..arrays.creation import linspace
from ..arrays.elementwise import clip, where
from ..arrays.reductions import max_, min_, sum_
from ..arrays.table import function
from ..core.tracers import Tracer
from ..data.promotion import can_cast
from .scans import diff
from .selection import totals
from .sorting import searchsorted


class _Bins:
    """Bins along one axis: their edges, and between which ends elements are counted at all.

    `bins` is a number of equal parts (`count`) of what `x` spans, or of `span`; or the edges (`count` is
    None). `name` is what errors call it.
    """

    def __init__(self, x: Tracer, bins: Any, span: Any, name: str) -> None:
        if isinstance(bins, str):
            raise TypeError(
                f"bins={bins!r}: the number of bins would depend on the values; give a number, or "
                "edges"
            )
        self.count: int | None = None
        if not shape_of(bins):
            self.count = operator.index(require_static(bins, "bins")[()])
            if self.count < 1:
                raise ValueError(f"`{name}` must be positive, when an integer")
            self.ends = _outer_ends(x, span)
            return
        self.edges = array(bins)
        if self.edges.ndim != 1:
            raise ValueError(f"`{name}` must be 1d, when an array")
        rising = ~(self.edges[:-1] > self.edges[1:]).any()
        check_values(rising, f"`{name}` must increase monotonically, when an array")
        self.ends = (self.edges[0], self.edges[-1]) if self.edges.size else (0, 0)

    def cut(self, dtype: Any) -> _Bins:
        """With edges of `dtype` (None: as linspace makes them), where a number of bins was given."""
        if self.count is not None:
            self.edges = linspace(*self.ends, self.count + 1, dtype=dtype)
        return self

    def bin_numbers(self, x: Tracer) -> tuple[Tracer, Tracer]:
        """The number of each element's bin, and whether it is in one; the last edge belongs to its
        bin. Where all bins are equally wide the number is nearly known; the edges decide."""
        edges, count = self.edges, self.edges.size - 1
        inside = (x >= self.ends[0]) & (x <= self.ends[1])
        if self.count is not None:
            at = x.astype(edges.dtype)
            guess = ((at - edges[0]) / (edges[-1] - edges[0])) * count
            number = clip(where(inside, guess, 0).astype(_integers(count)), 0, count - 1)
            below, above = at < edges[number], at >= edges[number + 1]
            number = number - below.astype(number.dtype)
            number = number + (above & (number < count - 1)).astype(number.dtype)
        else:
            number = searchsorted(edges, x, "right") - 1
            number = where(x == self.ends[1], count - 1, number)
        return clip(number, 0, max(count - 1, 0)), inside


def _integers(count: int) -> Any:
    """The dtype of bins' numbers: short ones, where they do, go in wide vectors."""
    return I32 if count < 1 << 30 else I64


def _outer_ends(x: Tracer, span: Any) -> tuple[Any, Any]:
    """The first and the last edge of equal bins; a number has half a bin on either side."""
    if span is None and x.size == 0:
        return 0, 1
    low, high = (min_(x), max_(x)) if span is None else span
    if span is not None:
        sorted_ = ~ufuncs.apply(np.greater, low, high)
        check_values(sorted_, "max must be larger than min in range parameter.")
    if span is not None or is_float(x.dtype):
        finite = ufuncs.apply(np.isfinite, low) & ufuncs.apply(np.isfinite, high)
        what = "autodetected" if span is None else "supplied"
        check_values(finite, f"{what} range is not finite")
    if not holds_tracers((low, high)):
        return (low - 0.5, high + 0.5) if low == high else (low, high)
    flat = ufuncs.apply(np.equal, low, high)
    return where(flat, low - 0.5, low * 1.0), where(flat, high + 0.5, high * 1.0)


def _bins(x: Tracer, bins: Any, span: Any) -> _Bins:
    """Those of np.histogram, whose edges have the dtype of the data and the ends."""
    axis = _Bins(x, bins, span, "bins")
    if axis.count is None:
        return axis
    dtype = common_dtype(*map(operand, axis.ends), x)
    axis.cut(dtype if is_inexact(dtype) else F64)
    apart = (axis.edges[:-1] < axis.edges[1:]).all()
    check_values(
        apart,
        f"Too many bins for data range. Cannot create {axis.count} finite-sized bins.",
    )
    return axis


def _is_number(bins: Any) -> bool:
    """Whether bins are a number, and no list: its items may be numbers and lists of edges."""
    return not isinstance(bins, (list, tuple)) and not shape_of(bins)


def _counted(a: Any) -> Tracer:
    x = array(a).ravel()
    return x.astype(np.uint8) if x.dtype == BOOL else x


def _totals(bin_numbers: Tracer, inside: Tracer, weights: Any, count: int) -> Tracer:
    added = np.ones((), np.int64) if weights is None else array(weights).ravel()
    if added.dtype == BOOL:  # sums of booleans are "or"
        return _totals(bin_numbers, inside, added.astype(np.int64), count).astype(bool)
    return totals(where(inside, bin_numbers, count), added, count, spare=True)


@function("histogram_bin_edges")
def histogram_bin_edges(a: Any, bins: Any = 10, range: Any = None, weights: Any = None) -> Tracer:
    check_real("histogram_bin_edges", a)
    return _bins(_counted(a), bins, range).edges


@function("histogram")
def histogram(
    a: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None
) -> Any:
    """Counts by `searchsorted` in the edges, so that equal values fall as in the edges' array."""
    check_real("histogram", a)
    if weights is not None and shape_of(weights) != shape_of(a):
        raise ValueError("weights should have the same shape as a.")
    x = _counted(a)
    axis = _bins(x, bins, range)
    counts = _totals(*axis.bin_numbers(x), weights, axis.edges.size - 1)
    if density:
        counts = counts / diff(axis.edges) / sum_(counts)
    return counts, axis.edges


@function("histogramdd")
def histogramdd(
    sample: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None
) -> Any:
    if isinstance(sample, (list, tuple)):
        columns = [array(column).ravel() for column in sample]
    else:
        points = array(sample)
        points = points.reshape(-1, 1) if points.ndim == 1 else points
        columns = [points[:, d] for d in np.arange(points.shape[1])]
    dims = len(columns)
    each = [bins] * dims if _is_number(bins) else list(bins)
    if len(each) != dims:
        raise ValueError("The dimension of bins must be equal to the dimension of the sample x.")
    spans = [None] * dims if range is None else list(range)
    if len(spans) != dims:
        raise ValueError("range argument must have one entry per dimension")
    w = None if weights is None else array(weights)
    if w is not None and not can_cast(w.dtype, F64, "safe"):
        raise TypeError(f"Cannot cast weights from {w.dtype!r} to float64 according to 'safe'")
    triples = zip(columns, each, spans, strict=True)
    axes = [_Bins(x, b, s, f"bins[{d}]").cut(None) for d, (x, b, s) in enumerate(triples)]
    edges = [axis.edges for axis in axes]
    shape = tuple(e.size - 1 for e in edges)
    bin_numbers: Any = array(np.zeros(1, np.int64))
    inside: Any = array(np.ones(1, bool))
    for x, axis, n in zip(columns, axes, shape, strict=True):
        own, good = axis.bin_numbers(x)
        bin_numbers, inside = bin_numbers * n + own.astype(I64), inside & good
    w = None if w is None else w.astype(F64)
    counts = _totals(bin_numbers, inside, w, int(np.prod(shape))).astype(F64).reshape(shape)
    if density:
        for d, e in enumerate(edges):
            counts = counts / diff(e).reshape([-1 if i == d else 1 for i in np.arange(dims)])
        counts = counts / _count(bin_numbers, inside, w)
    return counts, edges


def _count(bin_numbers: Tracer, inside: Tracer, weights: Any) -> Tracer:
    return sum_(where(inside, 1.0 if weights is None else weights.ravel(), 0.0))


@function("histogram2d")
def histogram2d(
    x: Any, y: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None
) -> Any:
    a, b = array(x), array(y)
    if len(a) != len(b):
        raise ValueError("x and y must have the same length.")
    if not _is_number(bins) and len(bins) not in (1, 2):
        bins = [array(bins)] * 2
    counts, (first, second) = histogramdd([a, b], bins, range, density, weights)
    return counts, first, second
