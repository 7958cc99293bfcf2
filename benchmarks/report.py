"""Results as tables: times, and how many times faster jitney is than the best of the others.

python -m benchmarks.report benchmarks/results/NAME.json          print the tables
python -m benchmarks.report benchmarks/results/NAME.json --page   write docs/reference/speed.md's
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from .rows import ROWS

Cell = dict[str, Any]  # median, least, first, error, memory, or reason
Cells = dict[str, Cell]

ROOT = Path(__file__).resolve().parent.parent
BEGIN, END = "<!-- benchmarks: begin -->", "<!-- benchmarks: end -->"
PEERS = ("numpy", "numba", "jax", "torch", "torch_compile")


def summarise(samples: list[float], prepared: Cell) -> Cell:
    return {
        "median": statistics.median(samples),
        "least": min(samples),
        "samples": len(samples),
        **{key: prepared[key] for key in ("first", "error", "memory")},
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


def median(cells: Cells, framework: str) -> float | None:
    found: float | None = cells.get(framework, {}).get("median")
    return found


def best_peer(cells: Cells) -> tuple[str, float] | None:
    """The fastest of the others, and its median."""
    times = [(t, f) for f in PEERS if (t := median(cells, f)) is not None]
    return (min(times)[1], min(times)[0]) if times else None


def ratio(cells: Cells) -> float | None:
    """The best peer's time over jitney's: above 1, jitney is the fastest."""
    own, best = median(cells, "jitney"), best_peer(cells)
    return None if own is None or best is None else best[1] / own


def geometric_mean(run: dict[str, Any]) -> float | None:
    ratios = [r for cells in run["rows"].values() if (r := ratio(cells)) is not None]
    return mean(ratios) if ratios else None


def mean(ratios: Iterable[float]) -> float:
    """The geometric one."""
    return math.exp(statistics.fmean(map(math.log, ratios)))


def calls_table(run: dict[str, Any], frameworks: list[str]) -> str:
    """Medians of all; the best peer's over jitney's beside the goal; the share of the machine's
    limit (bandwidth or arithmetic) that jitney reaches."""
    lines = []
    for name, cells in run["rows"].items():
        own, found, row = median(cells, "jitney"), ratio(cells), ROWS[name]
        least = run.get("limits", {}).get(name)
        lines.append(
            [
                name,
                *(seconds(t) if (t := median(cells, f)) is not None else "-" for f in frameworks),
                "-" if found is None else f"{found:.2f}x",
                "-" if row.goal is None else f"{row.goal:g}x",
                "-" if own is None or least is None else f"{100 * least / own:.0f}%",
            ]
        )
    return table(["row", *frameworks, "best peer / jitney", "goal", "of limit"], lines)


def short_table(run: dict[str, Any]) -> str:
    """What docs/reference/speed.md shows: jitney, the best of the others and who it is."""
    lines = []
    for name, cells in run["rows"].items():
        own, best, found = median(cells, "jitney"), best_peer(cells), ratio(cells)
        if own is None or best is None or found is None:
            continue
        who = best[0].replace("torch_compile", "torch.compile")
        lines.append(
            [ROWS[name].title, seconds(own), f"{seconds(best[1])} ({who})", f"{found:.2f}"]
        )
    return table(["", "jitney", "best other", "times faster"], lines)


def latency_table(latency: dict[str, Any]) -> str:
    frameworks = [f for f in latency if isinstance(latency[f], dict)]
    cases = list(dict.fromkeys(case for f in frameworks for case in latency[f]["cases"]))
    lines = []
    for case in cases:
        for kind in ("first", "cached", "second"):
            line = [f"{case}, {kind}"]
            for framework in frameworks:
                value = latency[framework]["cases"].get(case, {}).get(kind)
                line.append("-" if value is None else seconds(value))
            lines.append(line)
    for kind, show in (("import", seconds), ("installed", lambda b: f"{b / 1e6:.0f} MB")):
        line = [kind]
        for framework in frameworks:
            value = latency[framework].get(kind)
            line.append("-" if value is None else show(value))
        lines.append(line)
    return table(["fresh process", *frameworks], lines)


def reasons(rows: dict[str, Cells]) -> list[str]:
    """Why each dash is a dash, each reason once."""
    found: dict[str, list[str]] = {}
    for row, cells in rows.items():
        for framework, cell in cells.items():
            if "reason" in cell:
                found.setdefault(f"{framework}: {cell['reason']}", []).append(row)
    return [f"{reason} [{', '.join(names)}]" for reason, names in found.items()]


def everything(run: dict[str, Any], frameworks: list[str]) -> str:
    """All tables of a run, with what one has to know to read them."""
    parts = []
    if run["rows"]:
        parts += [
            "Median time of a call. Above 1x jitney is faster than the fastest of the others.\n",
            calls_table(run, frameworks),
        ]
        if (mean := geometric_mean(run)) is not None:
            parts.append(f"\nGeometric mean: {mean:.2f}x")
        parts += [f"  - {line}" for line in reasons(run["rows"])]
    if run.get("latency"):
        parts += [
            "\nFresh processes. first: from the function to its first result; cached: the same with"
            "\na filled disk cache; second: x * 3 + 2 compiled after it. Imports are not counted"
            "\nin these.\n",
            latency_table(run["latency"]),
        ]
    return "\n".join(parts)


def page_section(run: dict[str, Any]) -> str:
    mean = geometric_mean(run)
    versions = ", ".join(
        f"{name} {version}"
        for name, version in run["versions"].items()
        if version and name not in ("jitney", "torch_compile")
    )
    return "\n".join(
        [
            BEGIN,
            f"{run['machine']}, {run['threads']} threads, {run['date']}; {versions}. Geometric mean: "
            f"{mean:.2f} times faster than the fastest of the others in each row.",
            "",
            short_table(run),
            END,
        ]
    )


def with_section(page: str, section: str) -> str:
    """The page with what stands between the markers replaced; raises ValueError if there are none."""
    start, end = page.index(BEGIN), page.index(END) + len(END)
    return page[:start] + section + page[end:]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.report")
    parser.add_argument("results", type=Path)
    parser.add_argument(
        "--page", action="store_true", help="rewrite docs/reference/speed.md's table"
    )
    options = parser.parse_args()
    run = json.loads(options.results.read_text())
    if options.page:
        path = ROOT / "docs" / "reference" / "speed.md"
        path.write_text(with_section(path.read_text(), page_section(run)))
    else:
        print(everything(run, [f for f, version in run["versions"].items() if version]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
