"""Times as a chart: bars for one size, lines over several, as SVG that needs nothing beside it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .table import Row

_WIDTH, _HEIGHT, _LEFT, _BELOW, _RIGHT = 560, 260, 64, 36, 130
# One after the other, told apart by those who see no colours as well: dashes differ, too.
_COLOURS = ("#3b7dd8", "#d9772b", "#3c9d5b", "#b24fb0", "#c23b48", "#7a6b4f")
_DASHES = ("none", "6 3", "2 3", "9 3 2 3", "12 4", "1 4")


def chart(rows: Sequence[Row]) -> str:
    """The chart of a table; "" if there is nothing to compare."""
    sizes = list(dict.fromkeys(row.size for row in rows))
    if len(sizes) < 2:
        return _bars(rows) if len(rows) > 1 else ""
    return _lines(rows, sizes)


def _bars(rows: Sequence[Row]) -> str:
    longest = max(row.high for row in rows)
    height, parts = 26 * len(rows) + 8, []
    for k, row in enumerate(rows):
        y = 26 * k + 4
        width, low, high = (360 * t / longest for t in (row.seconds, row.low, row.high))
        parts.append(_text(4, y + 14, row.name[:24]))
        parts.append(
            f"<rect x='170' y='{y}' width='{width:.1f}' height='18' fill='{_COLOURS[k % 6]}'/>"
            f"<path d='M{170 + low:.1f} {y + 9}H{170 + high:.1f}' stroke='currentColor'/>"
        )
    return _svg(_WIDTH, height, parts)


def _lines(rows: Sequence[Row], sizes: list[Any]) -> str:
    """Time over size, both by their logarithms where sizes are numbers."""
    numbers = all(isinstance(s, (int, float)) and s > 0 for s in sizes)
    at = [math.log(s) if numbers else float(k) for k, s in enumerate(sizes)]
    first, span = min(at), max(at) - min(at) or 1.0
    low = math.floor(math.log10(min(row.seconds for row in rows)))
    high = max(math.ceil(math.log10(max(row.seconds for row in rows))), low + 1)
    across, up = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _BELOW - 10
    x = [_LEFT + across * (a - first) / span for a in at]

    def y(seconds: float) -> float:
        return 10 + up * (high - math.log10(seconds)) / (high - low)

    parts = []
    for power in range(low, high + 1):
        level = y(10.0**power)
        parts.append(
            f"<path d='M{_LEFT} {level:.1f}h{across}' stroke='currentColor' opacity='.2'/>"
            + _text(_LEFT - 6, level + 4, _power(power), "end")
        )
    step = max(1, len(sizes) // 6)
    parts += [
        _text(p, _HEIGHT - 14, str(s), "middle")
        for p, s in list(zip(x, sizes, strict=True))[::step]
    ]
    parts.append(
        _text(_LEFT + 4, 9, "time of a call") + _text(_WIDTH - _RIGHT, _HEIGHT - 2, "size", "end")
    )
    for k, name in enumerate(dict.fromkeys(row.name for row in rows)):
        own = [row for row in rows if row.name == name]
        points = [(x[sizes.index(row.size)], y(row.seconds)) for row in own]
        colour = _COLOURS[k % 6]
        path = "L".join(f"{a:.1f} {b:.1f}" for a, b in points)
        parts.append(
            f"<path d='M{path}' fill='none' stroke='{colour}' stroke-width='2' "
            f"stroke-dasharray='{_DASHES[k % 6]}'/>"
        )
        parts += [f"<circle cx='{a:.1f}' cy='{b:.1f}' r='3' fill='{colour}'/>" for a, b in points]
        parts.append(
            f"<path d='M{_WIDTH - _RIGHT + 10} {22 + 18 * k}h22' stroke='{colour}' "
            f"stroke-width='2' stroke-dasharray='{_DASHES[k % 6]}'/>"
            + _text(_WIDTH - _RIGHT + 38, 26 + 18 * k, name[:16])
        )
    return _svg(_WIDTH, _HEIGHT, parts)


def _power(power: int) -> str:
    unit, base = next(p for p in (("s", 0), ("ms", -3), ("us", -6), ("ns", -30)) if power >= p[1])
    base = -9 if unit == "ns" else base
    return f"{10 ** (power - base):g} {unit}"


def _text(x: float, y: float, text: str, anchor: str = "start") -> str:
    return (
        f"<text x='{x:.1f}' y='{y:.1f}' text-anchor='{anchor}' fill='currentColor'>"
        f"{escape(text)}</text>"
    )


def _svg(width: int, height: int, parts: Sequence[str]) -> str:
    return (
        f"<svg viewBox='0 0 {width} {height}' style='max-width:{width}px;width:100%' "
        f"font-family='sans-serif' font-size='12' role='img'>{''.join(parts)}</svg>"
    )
