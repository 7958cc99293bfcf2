"""np.pad: constants around an array, or its own elements continued past the edge."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..arrays.common import array, build, require_static
from ..arrays.creation import linspace
from ..arrays.elementwise import where
from ..arrays.movement import concatenate
from ..arrays.table import FUNCTIONS, function
from ..core.tracers import Tracer, as_value, wrap, wrap_like
from .applying import apply_along_axis
from .arranging import flip, repeat
from .selection import take


@function("pad")
def pad(array_: Any, pad_width: Any, mode: Any = "constant", **kwargs: Any) -> Tracer:
    x = array(array_)
    return wrap_like(as_value(_padded(x, pad_width, mode, kwargs)), (x,), scalar=False, order="A")


def _padded(x: Tracer, pad_width: Any, mode: Any, kwargs: dict[str, Any]) -> Tracer:
    widths = _pairs(pad_width, x.ndim, "pad_width")
    if any(w < 0 for pair in widths for w in pair):
        raise ValueError("index can't contain negative values")
    if callable(mode):
        return _pad_by(mode, x, widths, kwargs)
    if mode in ("constant", "empty"):
        values = kwargs.pop("constant_values", 0) if mode == "constant" else 0
        fills = _fills(values, x.ndim)
        _no_more(mode, kwargs)
        return _pad_constant(x, widths, fills)
    if mode == "linear_ramp":
        ends = _fills(kwargs.pop("end_values", 0), x.ndim)
        _no_more(mode, kwargs)
        return _each_axis(x, widths, lambda x, axis, pair: _ramps(x, axis, pair, ends[axis]))
    if mode in _STATISTICS:
        lengths = _lengths(kwargs.pop("stat_length", None), x.ndim)
        _no_more(mode, kwargs)
        statistic = _STATISTICS[mode]
        if statistic in ("max", "min") and any(0 in pair for pair in lengths):
            raise ValueError("stat_length of 0 yields no value for padding")
        return _each_axis(
            x, widths, lambda x, axis, pair: _statistics(x, axis, pair, statistic, lengths[axis])
        )
    odd = mode in ("reflect", "symmetric") and kwargs.pop("reflect_type", "even") == "odd"
    if mode not in ("edge", "reflect", "symmetric", "wrap"):
        raise ValueError(f"mode {mode!r} is not supported")
    _no_more(mode, kwargs)
    return _each_axis(x, widths, lambda x, axis, pair: _continued(x, axis, pair, mode, odd))


Sides = tuple[int, int]


def _each_axis(
    x: Tracer, widths: list[Sides], extend: Callable[[Tracer, int, Sides], Tracer]
) -> Tracer:
    """The axes extended one after the other: corners continue what the axes before have added."""
    for axis, pair in enumerate(widths):
        if any(pair):
            if x.shape[axis] == 0:
                raise ValueError(
                    f"can't extend empty axis {axis} using modes other than 'constant' or 'empty'"
                )
            x = extend(x, axis, pair)
    return wrap(as_value(x), scalar=False)


def _continued(x: Tracer, axis: int, widths: Sides, mode: str, odd: bool) -> Tracer:
    (low, high), n = widths, x.shape[axis]
    if odd:
        return _turned(x, axis, widths, n - 1 if mode == "reflect" else n)
    positions = np.pad(np.arange(n), (low, high), mode=mode)  # type: ignore[call-overload]
    joined = _pieces(x, positions, axis, low, high)
    return take(x, positions.tolist(), axis=axis) if joined is None else joined


def _turned(x: Tracer, axis: int, widths: Sides, half: int) -> Tracer:
    """Turned about its ends by half a turn, again and again: 2 * edge - x."""
    n = x.shape[axis]
    turns, rest = np.divmod(np.arange(-widths[0], n + widths[1]), max(2 * half, 1))
    forth = rest < n
    indices = np.where(forth, rest, np.clip(2 * half - rest - (half == n), 0, n - 1))
    shape = [-1 if i == axis else 1 for i in range(x.ndim)]
    first, last = (x[(slice(None),) * axis + (slice(i, i + 1),)] for i in (0, n - 1))
    if n - 1 <= 0 and half == 0:
        turns = np.zeros_like(turns)
    shift = 2 * (last - first) * turns.astype(x.dtype).reshape(shape)
    mirrored = take(x, indices.tolist(), axis=axis)
    return where(forth.reshape(shape), mirrored, 2 * last - mirrored).astype(x.dtype) + shift


def _ramps(x: Tracer, axis: int, widths: Sides, ends: tuple[Any, Any]) -> Tracer:
    """Straight lines from the edges to the end values."""
    n, lead = x.shape[axis], (slice(None),) * axis
    parts = [x]
    for side, (width, end) in enumerate(zip(widths, ends, strict=True)):
        if width:
            edge = x[(*lead, n - 1 if side else 0)]
            ramp = linspace(end, edge, width, endpoint=False, dtype=x.dtype, axis=axis)
            parts = [*parts, flip(ramp, axis)] if side else [ramp, *parts]
    return concatenate(parts, axis)


def _statistics(x: Tracer, axis: int, widths: Sides, name: str, lengths: tuple[Any, Any]) -> Tracer:
    """A statistic of the elements next to an edge, repeated."""
    n, lead = x.shape[axis], (slice(None),) * axis
    parts = [x]
    for side, (width, length) in enumerate(zip(widths, lengths, strict=True)):
        if not width:
            continue
        length = n if length is None else min(length, n)
        part = x[(*lead, slice(n - length, n) if side else slice(0, length))]
        statistic = FUNCTIONS[name].traced(part, axis=axis, keepdims=True)
        if x.dtype.kind in "iu":
            statistic = FUNCTIONS["rint"].traced(statistic)
        ends = repeat(statistic.astype(x.dtype), width, axis)
        parts = [*parts, ends] if side else [ends, *parts]
    return concatenate(parts, axis)


_STATISTICS = {"maximum": "max", "minimum": "min", "mean": "mean", "median": "median"}


def _lengths(value: Any, ndim: int) -> list[tuple[Any, Any]]:
    if value is None:
        return [(None, None)] * ndim
    pairs: list[tuple[Any, Any]] = list(_pairs(value, ndim, "stat_length"))
    if any(n < 0 for pair in pairs for n in pair):
        raise ValueError("index can't contain negative values")
    return pairs


def _pad_by(
    function: Callable[..., Any], x: Tracer, widths: list[Sides], kwargs: dict[str, Any]
) -> Tracer:
    """The user's function overwrites the pads of each row, axis after axis."""
    padded = _pad_constant(x, widths, [(0, 0)] * x.ndim)
    for axis, pair in enumerate(widths):

        def filled(row: Tracer, axis: int = axis, pair: Sides = pair) -> Tracer:
            own = row.copy()
            function(own, pair, axis, kwargs)
            return own

        padded = apply_along_axis(filled, axis, padded)
    return padded


def _pieces(
    x: Tracer, positions: np.ndarray[Any, Any], axis: int, low: int, high: int
) -> Tracer | None:
    """The padded axis as a concatenation of slices, when the pads are runs: no gather needed."""
    lead = (slice(None),) * axis

    def run(part: np.ndarray[Any, Any]) -> Tracer | None:
        steps = set(np.diff(part).tolist())
        if len(part) == 1 or steps == {1}:
            return x[(*lead, slice(int(part[0]), int(part[-1]) + 1))]
        if steps == {0}:
            return repeat(x[(*lead, slice(int(part[0]), int(part[0]) + 1))], len(part), axis)
        if steps == {-1}:
            return flip(x[(*lead, slice(int(part[-1]), int(part[0]) + 1))], axis)
        return None

    parts: list[Tracer] = []
    ends = (
        positions[:low],
        positions[low : len(positions) - high],
        positions[len(positions) - high :],
    )
    for part in ends:
        if len(part):
            piece = run(part)
            if piece is None:
                return None
            parts.append(piece)
    return concatenate(parts, axis)


def _pad_constant(x: Tracer, widths: list[tuple[int, int]], fills: list[tuple[Any, Any]]) -> Tracer:
    b = build()
    first = fills[0][0] if fills else 0
    if all(f is first for pair in fills for f in pair):
        low, high = tuple(w[0] for w in widths), tuple(w[1] for w in widths)
        value = as_value(array(first).astype(x.dtype))
        zeros = (0,) * x.ndim
        return wrap(b.pad(as_value(x), value, low=low, high=high, interior=zeros), scalar=False)
    for axis, ((low_, high_), pair) in enumerate(zip(widths, fills, strict=True)):
        for side, (width, fill) in enumerate(zip((low_, high_), pair, strict=True)):
            lo, hi = [0] * x.ndim, [0] * x.ndim
            (hi if side else lo)[axis] = width
            value = as_value(array(fill).astype(x.dtype))
            padded = b.pad(
                as_value(x), value, low=tuple(lo), high=tuple(hi), interior=(0,) * x.ndim
            )
            x = wrap(padded, scalar=False)
    return x


def _no_more(mode: str, kwargs: dict[str, Any]) -> None:
    if kwargs:
        raise ValueError(f"unsupported keyword arguments for mode {mode!r}: {set(kwargs)}")


def _pairs(widths: Any, ndim: int, what: str) -> list[tuple[int, int]]:
    """NumPy's forms of pad_width: n, (n,), (before, after), one pair per axis, or {axis: width}."""
    if isinstance(widths, dict):
        full: list[Any] = [(0, 0)] * ndim
        for axis, width in widths.items():
            full[axis] = (width, width) if isinstance(width, (int, np.integer)) else tuple(width)
        widths = full
    numbers = require_static(widths, what)
    if numbers.dtype.kind not in "iu" and numbers.size:
        raise TypeError("`pad_width` must be of integral type.")
    try:
        pairs = np.broadcast_to(numbers, (ndim, 2)).tolist()
    except ValueError:
        raise ValueError(
            f"operands could not be broadcast together with remapped shapes [original->remapped]: "
            f"{numbers.shape} and requested shape ({ndim},2)"
        ) from None
    return [(int(low), int(high)) for low, high in pairs]


def _fills(values: Any, ndim: int) -> list[tuple[Any, Any]]:
    """One (before, after) per axis of constants, which may be traced."""
    if isinstance(values, Tracer) or not isinstance(values, (list, tuple, np.ndarray)):
        return [(values, values)] * ndim
    if isinstance(values, np.ndarray):
        values = values.tolist()
        if not isinstance(values, list):
            return [(values, values)] * ndim
    rows = list(values)
    if rows and not isinstance(rows[0], (list, tuple)):
        rows = [rows]
    pairs = [tuple(r) if len(r) == 2 else (r[0], r[0]) for r in rows]
    if len(pairs) == 1:
        (before, after) = pairs[0]
        pair = (before, before) if before is after else (before, after)
        return [pair] * ndim
    if len(pairs) != ndim:
        raise ValueError(f"constant_values has {len(pairs)} pairs for {ndim} axes")
    return pairs
