"""Results as a table: medians, and jitney's time as a share of each other framework's."""

from __future__ import annotations

import math
import statistics
from typing import Any

Cell = dict[str, Any]  # median, least, first, error, or reason


def summarise(samples: list[float], first: float, error: float) -> Cell:
    return {
        "median": statistics.median(samples),
        "least": min(samples),
        "samples": len(samples),
        "first": first,
        "error": error,
    }


def seconds(value: float) -> str:
    """Three digits and a unit: 2.41 ms."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if value >= scale:
            return f"{value / scale:.3g} {unit}"
    return f"{value / 1e-9:.3g} ns"


def table(header: list[str], lines: list[list[str]]) -> str:
    """A Markdown table, aligned so that it also reads well in a terminal."""
    widths = [max(len(line[i]) for line in [header, *lines]) for i in range(len(header))]

    def join(cells: list[str]) -> str:
        first, *others = (c.ljust(w) for c, w in zip(cells, widths, strict=True))
        return "| " + " | ".join([first, *(o.strip().rjust(len(o)) for o in others)]) + " |"

    rule = "|" + "|".join("-" * (w + 2) for w in widths) + "|"
    return "\n".join([join(header), rule, *map(join, lines)])


def calls_table(results: dict[str, dict[str, Cell]], frameworks: list[str]) -> str:
    """Rows of medians; beside a framework's time how many times faster jitney is than it."""
    lines = []
    for row, cells in results.items():
        own = cells.get("jitney", {}).get("median", math.nan)
        line = [row]
        for framework in frameworks:
            cell = cells.get(framework, {})
            if "median" not in cell:
                line.append("-")
                continue
            text = seconds(cell["median"])
            if framework != "jitney" and not math.isnan(own):
                text += f" ({cell['median'] / own:.2f}x)"
            line.append(text)
        lines.append(line)
    return table(["row", *frameworks], lines)


def startup_table(results: dict[str, Any]) -> str:
    lines = []
    for framework, found in results.items():
        if isinstance(found, str):
            lines.append([framework, "-", "-"])
        else:
            lines.append([framework, seconds(found["import"]), seconds(found["first_call"])])
    return table(["fresh process", "import", "first call of x * 2 + 1"], lines)


def reasons(results: dict[str, dict[str, Cell]]) -> list[str]:
    """Why each dash is a dash, each reason once."""
    found: dict[str, list[str]] = {}
    for row, cells in results.items():
        for framework, cell in cells.items():
            if "reason" in cell:
                found.setdefault(f"{framework}: {cell['reason']}", []).append(row)
    return [f"{reason} [{', '.join(rows)}]" for reason, rows in found.items()]
