"""The roofline: each kernel's flops a second over its flops per byte, under what the machine can do."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from .steps import KernelCost

_WIDTH, _HEIGHT, _LEFT, _BELOW = 480, 240, 56, 32
_NAMED, _LONGEST = 0.1, 28  # the share from which a kernel's name is written; characters of it


def roofline(kernels: Sequence[KernelCost], bandwidth: float, peak: float) -> str:
    """The chart, as SVG; "" if nothing was measured. `bandwidth`: bytes a second, `peak`: flops."""
    points = [
        (k.flops / (k.bytes_read + k.bytes_written), k.runs * k.flops / k.seconds, k)
        for k in kernels
        if k.seconds and k.runs and k.flops and k.bytes_read + k.bytes_written
    ]
    if not points:
        return ""
    ridge = peak / bandwidth
    x0 = math.floor(math.log10(min(ridge / 10, *(x for x, _, _ in points))))
    x1 = math.ceil(math.log10(max(ridge * 10, *(x for x, _, _ in points))))
    y1 = math.ceil(math.log10(max(peak, *(y for _, y, _ in points))))
    y0 = math.floor(math.log10(min(peak / 1e3, *(y for _, y, _ in points))))
    across, up = _WIDTH - _LEFT - 12, _HEIGHT - _BELOW - 12

    def at(x: float, y: float) -> tuple[float, float]:
        return (
            _LEFT + across * (math.log10(x) - x0) / (x1 - x0),
            12 + up * (y1 - math.log10(y)) / (y1 - y0),
        )

    parts = []
    for power in range(y0, y1 + 1, max(1, (y1 - y0) // 4)):
        left, level = at(10.0**x0, 10.0**power)
        parts.append(
            f"<path d='M{left:.1f} {level:.1f}h{across}' stroke='currentColor' opacity='.15'/>"
            f"<text x='{left - 6:.1f}' y='{level + 4:.1f}' text-anchor='end' fill='currentColor'>"
            f"{10.0 ** (power - 9):g}</text>"
        )
    for power in range(x0, x1 + 1):
        x, _ = at(10.0**power, 10.0**y0)
        parts.append(
            f"<text x='{x:.1f}' y='{_HEIGHT - 14}' text-anchor='middle' fill='currentColor'>"
            f"{10.0**power:g}</text>"
        )
    low = max(10.0**x0, 10.0**y0 / bandwidth)
    corners = [at(low, low * bandwidth), at(ridge, peak), at(10.0**x1, peak)]
    roof = "L".join(f"{x:.1f} {y:.1f}" for x, y in corners)
    parts.append(f"<path d='M{roof}' fill='none' stroke='#d9772b' stroke-width='2'/>")
    for intensity, speed, kernel in points:
        x, y = at(intensity, speed)
        size = 3 + 7 * math.sqrt(min(max(kernel.share or 0, 0), 1))
        title = escape(f"{kernel.name}: {speed / 1e9:.3g} GFLOP/s, {intensity:.3g} flops a byte")
        parts.append(
            f"<circle cx='{x:.1f}' cy='{y:.1f}' r='{size:.1f}' fill='#3b7dd8' opacity='.8'>"
            f"<title>{title}</title></circle>"
        )
        if (kernel.share or 0) >= _NAMED:
            side, anchor = (-size - 4, "end") if x > _WIDTH / 2 else (size + 4, "start")
            parts.append(
                f"<text x='{x + side:.1f}' y='{y + 4:.1f}' text-anchor='{anchor}' "
                f"fill='currentColor'>{escape(kernel.name[:_LONGEST])}</text>"
            )
    names = (
        f"<text x='{_WIDTH - 12}' y='{_HEIGHT - 2}' text-anchor='end' fill='currentColor'>"
        f"flops a byte</text><text x='{_LEFT + 4}' y='10' fill='currentColor'>GFLOP/s</text>"
    )
    return (
        "<div>Roofline: each kernel, as large as its share of the time, below what the machine does at "
        f"most</div><svg viewBox='0 0 {_WIDTH} {_HEIGHT}' style='max-width:{_WIDTH}px;width:100%' "
        f"font-family='sans-serif' font-size='11' role='img'>"
        f"{''.join(parts)}{names}</svg>"
    )
