"""np.pad: constants around an array, or its own elements continued past the edge."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core import Tracer, as_value, wrap
from .arranging import flip, repeat
from .common import array, build, require_static
from .movement import concatenate
from .table import function, refuse_option


@function("pad")
def pad(array_: Any, pad_width: Any, mode: Any = "constant", **kwargs: Any) -> Tracer:
    x = array(array_)
    widths = _pairs(pad_width, x.ndim, "pad_width")
    if any(w < 0 for pair in widths for w in pair):
        raise ValueError("index can't contain negative values")
    if mode in ("constant", "empty"):
        fills = _fills(kwargs.pop("constant_values", 0), x.ndim)
        _no_more(mode, kwargs)
        return _pad_constant(x, widths, fills)
    if mode in ("reflect", "symmetric") and kwargs.pop("reflect_type", "even") != "even":
        refuse_option("pad", reflect_type="odd")
    if mode not in ("edge", "reflect", "symmetric", "wrap"):
        refuse_option("pad", mode=mode)
    _no_more(mode, kwargs)
    from .selection import take

    for axis, (low, high) in enumerate(widths):
        n = x.shape[axis]
        if not low and not high:
            continue
        if n == 0:
            raise ValueError(f"can't extend empty axis {axis} using modes other than 'constant'")
        positions = np.pad(np.arange(n), (low, high), mode=mode)
        joined = _pieces(x, positions, axis, low, high)
        x = take(x, positions.tolist(), axis=axis) if joined is None else joined
    return x.copy()


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
    known = require_static(widths, what)
    if known.dtype.kind not in "iu" and known.size:
        raise TypeError("`pad_width` must be of integral type.")
    try:
        pairs = np.broadcast_to(known, (ndim, 2)).tolist()
    except ValueError:
        raise ValueError(
            f"operands could not be broadcast together with remapped shapes [original->remapped]: "
            f"{known.shape} and requested shape ({ndim},2)"
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
