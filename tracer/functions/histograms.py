"""Histograms: counts of elements between edges."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...ir.types import BOOL, F64, I64
from ..core import Tracer
from ..promotion import float_dtype
from .common import array, check_real
from .creation import linspace
from .elementwise import clip, where
from .movement import stack
from .reductions import max_, min_, sum_
from .scans import diff
from .selection import totals
from .sorting import searchsorted
from .table import function


def _edges(x: Tracer, bins: Any, span: Any, dtype: Any = None) -> Tracer:
    """The edges that `bins` stands for: themselves, or so many equal parts of what `x` spans."""
    if isinstance(bins, str):
        raise TypeError(
            f"bins={bins!r}: the number of bins would depend on the values; give a number, or edges"
        )
    if not isinstance(bins, (int, np.integer)):
        edges = array(bins)
        if edges.ndim != 1:
            raise ValueError("`bins` must be 1d, when an array")
        return edges
    if bins < 1:
        raise ValueError("`bins` must be positive, when an integer")
    if span is not None:
        low, high = (float(end) for end in span)
        if low > high:
            raise ValueError("max must be larger than min in range parameter.")
        flat = low == high
        return linspace(low - 0.5 * flat, high + 0.5 * flat, int(bins) + 1, dtype=dtype)
    if x.size == 0:
        return linspace(0.0, 1.0, int(bins) + 1, dtype=dtype)
    low, high = min_(x), max_(x)
    flat = low == high
    low, high = where(flat, low - 0.5, low * 1.0), where(flat, high + 0.5, high * 1.0)
    return linspace(low, high, int(bins) + 1, dtype=dtype)


def _even(bins: Any) -> bool:
    """Whether the edges that `bins` stands for are equally far apart."""
    return isinstance(bins, (int, np.integer))


def _places(x: Tracer, edges: Tracer, even: bool) -> tuple[Tracer, Tracer]:
    """The number of each element's bin, and whether it is in one; the last edge belongs to its bin.

    `even`: the edges are equally far apart, so that the bin is nearly known; they decide.
    """
    count = edges.size - 1
    inside = (x >= edges[0]) & (x <= edges[-1])
    if even and count:
        at = x.astype(edges.dtype)
        guess = ((at - edges[0]) / (edges[-1] - edges[0])) * count
        place = clip(where(inside, guess, 0).astype(I64), 0, count - 1)
        place = place - where((at < edges[place]) & (place > 0), 1, 0)
        place = clip(place, 0, count - 1)
        place = place + where((at >= edges[place + 1]) & (place < count - 1), 1, 0)
    else:
        place = searchsorted(edges, x, "right") - 1
        place = where(x == edges[-1], count - 1, place)
    return clip(place, 0, max(count - 1, 0)), inside


def _totals(place: Tracer, inside: Tracer, weights: Any, count: int) -> Tracer:
    added = np.ones((), np.int64) if weights is None else array(weights).ravel()
    if added.dtype == BOOL:  # sums of booleans are "or"
        return _totals(place, inside, added.astype(np.int64), count).astype(bool)
    return totals(where(inside, place, count), added, count, spare=True)


@function("histogram_bin_edges")
def histogram_bin_edges(a: Any, bins: Any = 10, range: Any = None, weights: Any = None) -> Tracer:
    check_real("histogram_bin_edges", a)
    x = array(a).ravel()
    return _edges(x, bins, range, float_dtype(x.dtype))


@function("histogram")
def histogram(
    a: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None
) -> Any:
    """Counts by `searchsorted` in the edges, so that equal values fall as in the edges' array."""
    check_real("histogram", a)
    x = array(a).ravel()
    edges = _edges(x, bins, range, float_dtype(x.dtype))
    counts = _totals(*_places(x, edges, _even(bins)), weights, edges.size - 1)
    if density:
        counts = counts / diff(edges) / sum_(counts)
    return counts, edges


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
    each = bins if isinstance(bins, (list, tuple)) else [bins] * dims
    if len(each) != dims:
        raise ValueError("The dimension of bins must be equal to the dimension of the sample x.")
    spans = [None] * dims if range is None else range
    if len(spans) != dims:
        raise ValueError("range argument must have one entry per dimension")
    edges = [_edges(x, b, s) for x, b, s in zip(columns, each, spans, strict=True)]
    shape = tuple(e.size - 1 for e in edges)
    place: Any = array(np.zeros(1, np.int64))
    inside: Any = array(np.ones(1, bool))
    for x, e, n, given in zip(columns, edges, shape, each, strict=True):
        own, good = _places(x, e, _even(given))
        place, inside = place * n + own.astype(I64), inside & good
    w = None if weights is None else array(weights).astype(F64)
    counts = _totals(place, inside, w, int(np.prod(shape))).astype(F64).reshape(shape)
    if density:
        for d, e in enumerate(edges):
            counts = counts / diff(e).reshape([-1 if i == d else 1 for i in np.arange(dims)])
        counts = counts / _count(place, inside, w)
    return counts, tuple(edges)


def _count(place: Tracer, inside: Tracer, weights: Any) -> Tracer:
    return sum_(where(inside, 1.0 if weights is None else weights.ravel(), 0.0))


@function("histogram2d")
def histogram2d(
    x: Any, y: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None
) -> Any:
    a, b = array(x), array(y)
    if len(a) != len(b):
        raise ValueError("x and y must have the same length.")
    if isinstance(bins, (list, tuple)) and len(bins) not in (1, 2):
        bins = [array(bins)] * 2
    elif not isinstance(bins, (int, np.integer, list, tuple)):
        edges = array(bins)
        bins = [edges, edges]
    elif isinstance(bins, (list, tuple)) and len(bins) == 1:
        bins = [bins[0]] * 2
    counts, (first, second) = histogramdd(stack([a, b], 1), bins, range, density, weights)
    return counts, first, second
