"""`python -m benchmarks.solving`: answers checked, times in alternation on one CPU, ratios printed."""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

SECONDS, ROUNDS = 1.0, 300  # of timing, for each solver: of the CPU, which may have other work
PEERS = ("lineax", "optimistix", "diffrax")


def on_one_cpu() -> None:
    """Before anybody makes threads."""
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    flags = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {flags}"
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"
    # first calls are first calls: nothing is recalled
    os.environ["JITNEY_CACHE_DIR"] = tempfile.mkdtemp()


def tried(call: Callable[[], Any], problem: Any) -> dict[str, Any]:
    """What the first call says: the error of its answer, and its seconds."""
    start = time.process_time()
    try:
        answer = call()
    except Exception as error:
        return {"reason": str(error).splitlines()[0][:60]}
    return {"error": problem.error(answer), "first": time.process_time() - start}


def repeated(call: Callable[[], Any]) -> Callable[[int], None]:
    def run(times: int) -> None:
        for _ in range(times):
            call()

    return run


def measure(name: str, problem: Any) -> dict[str, Any]:
    """By solver: error, the first call's seconds, and those of the best of many calls. `exact` is jitney
    with a tolerance at which its error is no larger than that of the fastest other."""
    from ..kernels.__main__ import best
    from . import use_jitney, use_peers
    from .problems import TOLERANCE

    calls = use_peers.ready(name, problem.inputs)
    cells = {solver: tried(call, problem) for solver, call in calls.items()}
    right = [s for s in calls if cells[s].get("error", math.inf) <= problem.allowed]
    ours = calls["jitney"] = use_jitney.ready(name, problem.inputs, TOLERANCE)
    cells["jitney"] = tried(ours, problem)

    def time_all(names: list[str]) -> None:
        times = best([repeated(calls[s]) for s in names], time.process_time, SECONDS, ROUNDS)
        for solver, seconds in zip(names, times, strict=True):
            cells[solver]["seconds"] = min(seconds, cells[solver].get("seconds", math.inf))

    time_all([*right, "jitney"])
    fastest = min(right, key=lambda s: cells[s]["seconds"])
    cells["exact"], tolerance = cells["jitney"], TOLERANCE
    while cells["exact"]["error"] > max(cells[fastest]["error"], 1e-13) and tolerance > 1e-13:
        tolerance /= 10
        calls["exact"] = use_jitney.ready(name, problem.inputs, tolerance)
        cells["exact"] = {**tried(calls["exact"], problem), "tolerance": tolerance}
    if tolerance < TOLERANCE:
        time_all([fastest, "exact"])
    return {"fastest": fastest, "solvers": cells}


def line(problem: Any, row: dict[str, Any]) -> list[str]:
    """A row of the table."""
    from ..report import seconds

    cells = row["solvers"]
    ours, theirs, exact = cells["jitney"], cells[row["fastest"]], cells["exact"]
    if not ours.get("error", math.inf) <= problem.allowed:
        return [problem.title, ours.get("reason", "wrong"), *[""] * (len(HEADER) - 2)]
    return [
        problem.title,
        seconds(ours["seconds"]),
        f"{seconds(theirs['seconds'])} ({row['fastest']})",
        f"{theirs['seconds'] / ours['seconds']:.2f}",
        f"{ours['error']:.0e}",
        f"{theirs['error']:.0e}",
        f"{theirs['seconds'] / exact['seconds']:.2f}",
        f"{theirs['first'] / ours['first']:.1f}",
    ]


HEADER = ["", "jitney", "fastest other", "ratio", "error", "theirs"]
HEADER += ["ratio at their error", "first call"]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.solving")
    parser.add_argument("names", nargs="*", help="problems; all of them if there is none")
    parser.add_argument("-o", "--output", type=Path, help="write the results as JSON")
    given = parser.parse_args()
    on_one_cpu()
    import jitney as jt

    from ..__main__ import cpu_name
    from ..report import table
    from .problems import problems

    jt.threads(1)
    rows: dict[str, Any] = {}
    lines = []
    for name, problem in problems().items():
        if not given.names or name in given.names:
            rows[name] = measure(name, problem)
            lines.append(line(problem, rows[name]))
            print("   ".join(lines[-1]), flush=True)
    print("\n" + table(HEADER, lines))
    if given.output:
        versions = {name: sys.modules[name].__version__ for name in ("jax", *PEERS)}
        run = {"machine": cpu_name(), "date": time.strftime("%Y-%m-%d"), "versions": versions}
        given.output.parent.mkdir(parents=True, exist_ok=True)
        given.output.write_text(json.dumps({**run, "rows": rows}, indent=1) + "\n")
    return int(any(not cells[3] for cells in lines))


if __name__ == "__main__":
    sys.exit(main())
