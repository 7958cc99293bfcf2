"""`python -m benchmarks`: rows on frameworks in alternation, answers checked, ratios printed."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from pathlib import Path
from typing import Any

from . import report, startup
from .frameworks import NAMES
from .rows import ROWS
from .worker import Worker

ROUNDS, BUDGET = 5, 0.3


def main() -> int:
    options = parse()
    frameworks, rows = choose(options.frameworks, NAMES), choose(options.rows, [*ROWS, "startup"])
    print(f"{platform.machine()}, {options.threads or os.cpu_count()} CPUs, {time.ctime()}")
    run: dict[str, Any] = {"platform": platform.platform(), "rows": {}, "quick": options.quick}

    workers = {f: Worker(f, options.threads) for f in frameworks} if rows != ["startup"] else {}
    for framework, worker in workers.items():
        print(f"  {framework:8} {worker.version or worker.reason}")
    wrong = False
    try:
        for row in rows:
            if row == "startup":
                continue
            cells = measure(row, workers, options)
            run["rows"][row] = cells
            for framework, cell in cells.items():
                if "error" in cell and not cell["error"] <= ROWS[row].tolerance:
                    wrong = True
                    cell["reason"] = f"wrong answer, error {cell['error']:.1e}"
                    cell.pop("median", None)
                    print(f"  {row}: {framework} is wrong, error {cell['error']:.1e}")
    finally:
        for worker in workers.values():
            worker.close()
    run["versions"] = {f: w.version for f, w in workers.items()}

    if run["rows"]:
        print("\nMedian time of a call (in brackets: over jitney's, so above 1 jitney wins)\n")
        print(report.calls_table(run["rows"], frameworks))
        for line in report.reasons(run["rows"]):
            print("  -", line)
    if "startup" in rows:
        names = [f for f in frameworks if f in startup.FRAMEWORKS]
        run["startup"] = startup.compare(names, repeats=1 if options.quick else 5)
        print("\n" + report.startup_table(run["startup"]))
        for framework, found in run["startup"].items():
            if isinstance(found, str):
                print(f"  - {framework}: {found}")
    if options.output:
        options.output.write_text(json.dumps(run, indent=1) + "\n")
    return int(wrong)


def measure(row: str, workers: dict[str, Worker], options: argparse.Namespace) -> dict[str, Any]:
    """One row: every framework prepares and is checked, then rounds in alternation."""
    reference = ROWS[row].reference(ROWS[row].inputs(options.quick))
    cells: dict[str, Any] = {}
    samples: dict[str, list[float]] = {}
    for framework, worker in workers.items():
        if worker.version is None:
            cells[framework] = {"reason": worker.reason}
            continue
        cells[framework] = worker.prepare(row, options.quick, reference)
        if "reason" not in cells[framework]:
            samples[framework] = []
    rounds, budget = (1, 0.01) if options.quick else (options.rounds, options.budget)
    for _ in range(rounds):
        for framework, collected in samples.items():
            collected += workers[framework].time(budget)
    for framework, collected in samples.items():
        cell = cells[framework]
        cells[framework] = report.summarise(collected, cell["first"], cell["error"])
    times = "   ".join(f"{f} {report.seconds(cells[f]['median'])}" for f in samples)
    print(f"  {row:14} {times}", flush=True)
    return cells


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="jitney beside other frameworks, in one run, answers checked.",
        epilog="rows: " + ", ".join([*ROWS, "startup"]),
    )
    parser.add_argument("-r", "--rows", help="which rows, comma-separated (all)")
    parser.add_argument("-f", "--frameworks", help=f"of {','.join(NAMES)} (all)")
    parser.add_argument("-t", "--threads", type=int, help="bind each process to so many CPUs")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"of alternation ({ROUNDS})")
    parser.add_argument(
        "--budget", type=float, default=BUDGET, help=f"seconds per framework and round ({BUDGET})"
    )
    parser.add_argument("--quick", action="store_true", help="small sizes, one short round")
    parser.add_argument("-o", "--output", type=Path, help="write the results as JSON")
    return parser.parse_args()


def choose(text: str | None, known: Any) -> list[str]:
    if text is None:
        return list(known)
    names = [name.strip() for name in text.split(",") if name.strip()]
    unknown = [name for name in names if name not in known]
    if unknown:
        sys.exit(f"unknown: {', '.join(unknown)}; there are {', '.join(known)}")
    return names


if __name__ == "__main__":
    sys.exit(main())
