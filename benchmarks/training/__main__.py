"""`python -m benchmarks.training`: every step by everybody, losses compared, times in alternation."""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import sys
from pathlib import Path
from typing import Any

from .. import report
from ..worker import Worker
from .columns import COLUMNS, load, prepare
from .steps import STEPS

OURS = ("jitney", "by hand")
TOLERANCE = 1e-3  # relative; float32 and five steps of Adam leave 1e-5
Cells = dict[str, dict[str, Any]]


def measure(name: str, workers: dict[str, Worker], options: argparse.Namespace) -> Cells:
    """A row: what each column says of itself, with `median` and `least` if its losses are right."""
    cells: Cells = {}
    for column, worker in workers.items():
        absent = {"reason": worker.reason}
        cells[column] = absent if worker.version is None else worker.prepare(name, options.check)
    judge(cells)
    right = [column for column, cell in cells.items() if "reason" not in cell]
    samples: dict[str, list[float]] = {column: [] for column in right}
    for _ in range(options.rounds):
        for column in right:
            samples[column] += workers[column].time(options.budget, options.cpu)
    for column, times in samples.items():
        cells[column] |= {"median": statistics.median(times), "least": min(times)}
    return cells


def judge(cells: Cells) -> None:
    """Give a `reason` to those whose losses differ from the median of all, or do not fall."""
    told = {column: cell["losses"] for column, cell in cells.items() if "losses" in cell}
    usual = [statistics.median(losses) for losses in zip(*told.values(), strict=True)]
    for column, losses in told.items():
        off = max(abs(a - b) / abs(b) for a, b in zip(losses, usual, strict=True))
        cells[column]["error"] = off
        if not (off < TOLERANCE and losses[-1] < losses[0]):
            cells[column]["reason"] = f"losses {losses}, where others have {usual}"


def ratios(cells: Cells) -> tuple[float, float]:
    """The fastest other's time over that of jitney's modules, and theirs over that by hand."""
    least = {column: cell["least"] for column, cell in cells.items() if "least" in cell}
    ours = least.get("jitney", math.nan)
    others = [t for column, t in least.items() if column not in OURS]
    return min(others, default=math.nan) / ours, ours / least.get("by hand", math.nan)


def table(rows: dict[str, Cells]) -> str:
    """Least times, ratios, and their geometric means."""
    lines, found = [], []
    for name, cells in rows.items():
        times = [report.seconds(c["least"]) if "least" in c else "-" for c in cells.values()]
        found.append(ratios(cells))
        lines.append([STEPS[name].title, *times, *(f"{r:.2f}" for r in found[-1])])
    means = [report.mean(column) for column in zip(*found, strict=True)]
    blank = [""] * len(next(iter(rows.values())))
    lines.append(["geometric mean", *blank, *(f"{r:.2f}" for r in means)])
    header = ["step", *next(iter(rows.values())), "best peer / jitney", "jitney / by hand"]
    return report.table(header, lines)


def run(threads: int, options: argparse.Namespace) -> dict[str, Any]:
    """All rows with so many threads for everybody."""
    os.environ["OMP_NUM_THREADS"] = os.environ["JITNEY_THREADS"] = str(threads)
    columns = options.columns.split(",") if options.columns else list(COLUMNS)
    workers = {c: Worker(c, threads, load=load, prepare=prepare) for c in columns}
    rows: dict[str, Cells] = {}
    try:
        for name in options.rows.split(",") if options.rows else STEPS:
            rows[name] = measure(name, workers, options)
            print(f"  {name}", flush=True)
            for column, cell in rows[name].items():
                if "reason" in cell:
                    print(f"  {name}: {column}: {cell['reason']}", flush=True)
    finally:
        for worker in workers.values():
            worker.close()
    unit = "CPU time" if options.cpu else "time"
    print(f"\nLeast {unit} of a step, {threads} thread{'s' * (threads > 1)}\n\n{table(rows)}")
    return {"versions": {c: w.version for c, w in workers.items()}, "rows": rows}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.training")
    parser.add_argument("-r", "--rows", help=f"of {','.join(STEPS)} (all)")
    parser.add_argument("-c", "--columns", help=f"of {','.join(COLUMNS)} (all)")
    parser.add_argument("-t", "--threads", default="1,2", help="one table for each (1,2)")
    parser.add_argument("--rounds", type=int, default=5, help="of alternation (5)")
    parser.add_argument("--budget", type=float, default=0.3, help="seconds of a turn (0.3)")
    parser.add_argument("--cpu", action="store_true", help="CPU seconds, where others compute, too")
    parser.add_argument("--check", action="store_true", help="small sizes: do all agree?")
    parser.add_argument("-o", "--output", type=Path, help="write the results as JSON")
    options = parser.parse_args()
    if options.check:
        options.rounds, options.budget = 1, 0.01
    found = {threads: run(int(threads), options) for threads in options.threads.split(",")}
    if options.output:
        options.output.write_text(json.dumps(found, indent=1) + "\n")
    cells = [
        cell for table in found.values() for row in table["rows"].values() for cell in row.values()
    ]
    return int(any("losses" in cell and "reason" in cell for cell in cells))


if __name__ == "__main__":
    sys.exit(main())
