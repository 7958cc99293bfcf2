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

from . import latency, machine, report
from .frameworks import NAMES
from .rows import ROWS
from .worker import Worker


def main() -> int:
    options = parse()
    frameworks = choose(options.frameworks, options.default_frameworks)
    rows = choose(options.rows, [*ROWS, "latency"])
    run = describe(options)
    print(f"{run['machine']}, {run['threads']} CPUs, {time.ctime()}")

    calls = [row for row in rows if row != "latency"]
    workers = {f: Worker(f, options.threads, options.realtime) for f in frameworks if calls}
    for framework, worker in workers.items():
        print(f"  {framework:14} {worker.version or worker.reason}")
    run["versions"] = {f: w.version for f, w in workers.items()}
    wrong = False
    try:
        for row in calls:
            run["rows"][row], limit = measure(row, workers, run["bounds"], options)
            if limit is not None:
                run["limits"][row] = limit
            wrong |= reject_wrong(row, run["rows"][row])
    finally:
        for worker in workers.values():
            worker.close()
    if "latency" in rows:
        run["latency"] = latency.compare(
            [f for f in frameworks if f in latency.FRAMEWORKS], options.repeats, options.realtime
        )
    print("\n" + report.everything(run, frameworks))
    if options.output:
        options.output.parent.mkdir(parents=True, exist_ok=True)
        options.output.write_text(json.dumps(run, indent=1) + "\n")
    return int(wrong)


def describe(options: argparse.Namespace) -> dict[str, Any]:
    return {
        "machine": f"{cpu_name()}, {platform.system()}",
        "threads": options.threads or len(os.sched_getaffinity(0)),
        "date": time.strftime("%Y-%m-%d"),
        "python": platform.python_version(),
        "small": options.check,
        "bounds": None if options.check else machine.measure(options.threads),
        "rows": {},
        "limits": {},
    }


def cpu_name() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def measure(
    name: str, workers: dict[str, Worker], bounds: Any, options: argparse.Namespace
) -> tuple[report.Cells, float | None]:
    """One row: every framework prepares and is checked, then rounds in alternation. Also the least
    time that the machine allows."""
    row = ROWS[name]
    inputs = row.inputs(options.check)
    reference = row.reference(inputs)
    limit = None
    if bounds is not None:
        traffic = row.traffic(inputs, reference)
        working_set = (traffic or 0) / (row.passes or 1)
        flops = row.flops(row.size) if row.flops else None
        limit = machine.least_seconds(bounds, traffic, working_set, flops, row.dtype)
    cells: report.Cells = {}
    samples: dict[str, list[float]] = {}
    for framework, worker in workers.items():
        if worker.version is None:
            cells[framework] = {"reason": worker.reason}
            continue
        cells[framework] = worker.prepare(name, options.check, reference)
        if "reason" not in cells[framework]:
            samples[framework] = []
    for _ in range(options.rounds):
        for framework, collected in samples.items():
            collected += workers[framework].time(options.budget)
    for framework, collected in samples.items():
        cells[framework] = report.summarise(collected, cells[framework])
    times = "   ".join(f"{f} {report.seconds(cells[f]['median'])}" for f in samples)
    print(f"  {name:18} {times}", flush=True)
    return cells, limit


def reject_wrong(name: str, cells: report.Cells) -> bool:
    """A wrong answer has no time."""
    wrong = False
    for framework, cell in cells.items():
        if "error" in cell and not cell["error"] <= 1:
            wrong = True
            cell.pop("median", None)
            cell["reason"] = f"wrong answer, {cell['error']:.3g} times what is tolerated"
            print(f"  {name}: {framework} is wrong")
    return wrong


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="jitney beside other frameworks, in one run, answers checked.",
        epilog="rows: " + ", ".join([*ROWS, "latency"]),
    )
    parser.add_argument("-r", "--rows", help="which rows, comma-separated (all)")
    parser.add_argument("-f", "--frameworks", help=f"of {','.join(NAMES)} (all)")
    parser.add_argument("-t", "--threads", type=int, help="bind each process to so many CPUs")
    parser.add_argument("--rounds", type=int, default=5, help="of alternation (5)")
    parser.add_argument(
        "--budget", type=float, default=0.3, help="seconds per framework and round (0.3)"
    )
    parser.add_argument(
        "--quick", action="store_true", help="one short round, without torch.compile: two minutes"
    )
    parser.add_argument(
        "--check", action="store_true", help="small sizes: does every row run and agree?"
    )
    parser.add_argument(
        "--realtime", action="store_true", help="real-time scheduling (needs the right to it)"
    )
    parser.add_argument("-o", "--output", type=Path, help="write the results as JSON")
    options = parser.parse_args()
    options.default_frameworks, options.repeats = list(NAMES), 5
    if options.quick or options.check:
        options.rounds, options.repeats = 1, 1
        options.budget = 0.01 if options.check else 0.1
        options.default_frameworks.remove("torch_compile")
    return options


def choose(text: str | None, known: list[str]) -> list[str]:
    if text is None:
        return list(known)
    names = [name.strip() for name in text.split(",") if name.strip()]
    unknown = [name for name in names if name not in known and name not in NAMES]
    if unknown:
        sys.exit(f"unknown: {', '.join(unknown)}; there are {', '.join(known)}")
    return names


if __name__ == "__main__":
    sys.exit(main())
