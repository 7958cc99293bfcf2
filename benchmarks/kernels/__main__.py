"""`python -m benchmarks.kernels`: time each kernel, check its answers, print ratios and means."""

from __future__ import annotations

import argparse
import inspect
import math
import os
import sys
import textwrap
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import jitney as jt

from . import KERNELS, Kernel
from .in_c import FAST, PLAIN, Library, library

SECONDS = 0.06  # of timing, for each framework, kernel and size
ROUNDS = 10


def copied(args: Sequence[Any]) -> list[Any]:
    return [a.copy() if isinstance(a, np.ndarray) else a for a in args]


def same(a: Any, b: Any) -> bool:
    """Whether two results agree but for rounding."""
    if a is None or b is None:
        return a is b
    return bool(np.allclose(np.asarray(a), np.asarray(b), rtol=1e-9, atol=1e-12, equal_nan=True))


def best(
    calls: Sequence[Callable[[int], Any]],
    clock: Callable[[], float],
    budget: float = SECONDS,
    rounds: int = ROUNDS,
) -> list[float]:
    """The best time of each, in alternation. A call takes how often it shall run."""

    def seconds(call: Callable[[int], Any], times: int) -> float:
        start = clock()
        call(times)
        return (clock() - start) / times

    found = [seconds(call, 1) for call in calls]
    times = [max(1, min(10_000, int(budget / rounds / max(t, 1e-7)))) for t in found]
    for _ in range(rounds):
        for k, call in enumerate(calls):
            found[k] = min(found[k], seconds(call, times[k]))
    return found


def repeated(function: Callable[..., Any], args: Sequence[Any]) -> Callable[[int], None]:
    def run(times: int) -> None:
        for _ in range(times):
            function(*args)

    return run


def shared(kernel: Kernel) -> Callable[..., Any]:
    """A kernel with `numba.prange` where its iterations are independent."""
    import numba

    _, text = textwrap.dedent(inspect.getsource(kernel.function)).split("\ndef ", 1)
    text = text.replace(f"for {kernel.parallel} in range(", f"for {kernel.parallel} in prange(")
    space = {**kernel.function.__globals__, "prange": numba.prange}
    exec(compile("def " + text, f"<{kernel.name}>", "exec"), space)
    compiled: Callable[..., Any] = numba.njit(parallel=True)(space[kernel.name])
    return compiled


class Row:
    """What was measured of one kernel at one size: jitney's time over the others'."""

    def __init__(self, times: dict[str, float]) -> None:
        ours = times.pop("jitney")
        in_c = [times[name] for name in times if name.startswith("C ")]
        self.numba = ours / times["numba"]
        self.plain = ours / in_c[0] if in_c else math.nan
        self.c = ours / min(in_c) if in_c else math.nan
        self.all = ours / min(times.values())


def measure(kernel: Kernel, libraries: dict[str, Library], threads: int) -> list[Row]:
    """Print a line for each size; gives jitney's time over the others' for each."""
    import numba

    rows = []
    clock = time.thread_time if threads == 1 else time.perf_counter
    compiled = numba.njit(kernel.function)
    if threads > 1 and kernel.parallel:
        compiled = shared(kernel)
    ours = jt.jit(kernel.function, static_argnums=kernel.static)
    for size in kernel.sizes:
        args = kernel.make(np.random.default_rng(0), size)
        mine, theirs = copied(args), copied(args)
        start = time.process_time()
        result = ours(*mine)
        first = time.process_time() - start
        start = time.process_time()
        wanted = compiled(*theirs)
        other = time.process_time() - start
        wrong = [] if same(result, wanted) and all(map(same, mine, theirs)) else ["jitney"]
        calls = {"jitney": repeated(ours, mine), "numba": repeated(compiled, theirs)}
        for name, compiled_c in libraries.items():
            native = copied(args)
            run, out = compiled_c.prepared(kernel.name, native, wanted)
            run(1)
            if not (same(out, wanted) and all(map(same, native, theirs))):
                wrong.append(name)
            calls[name] = run
        times = dict(zip(calls, best([*calls.values()], clock), strict=True))
        columns = "".join(f"{t * 1e3:10.4f}" for t in times.values())
        row = Row(times)
        rows.append(row)
        note = f"  DIFFERS: {', '.join(wrong)}" if wrong else ""
        print(
            f"{kernel.name:20s} {size:8d} {columns} {row.numba:7.2f} {row.c:6.2f}"
            f"   first {first * 1e3:6.0f} {other * 1e3:6.0f} ms{note}",
            flush=True,
        )
    return rows


def mean(values: Sequence[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values)) if values else math.nan


def main(names: Sequence[str], threads: int) -> None:
    os.environ["NUMBA_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = str(threads)
    import numba

    jt.threads(threads)
    flags = {"C -O3": PLAIN, "C -Ofast": FAST}
    if threads > 1:
        flags["C OpenMP"] = (*FAST, "-fopenmp")
    found = {name: library(*own) for name, own in flags.items()}
    libraries = {name: own for name, own in found.items() if own is not None}
    numba.njit(lambda x: x)(1)
    jt.jit(lambda x: x * 2)(np.zeros(3))
    columns = "".join(f"{name:>10s}" for name in ("jitney", "numba", *libraries))
    print(f"milliseconds on {threads} threads; jitney's time over Numba's, and over the best C's")
    print(f"{'kernel':20s} {'size':>8s} {columns} {'/ numba':>7s} {'/ C':>6s}")
    rows = []
    for kernel in KERNELS:
        if not names or kernel.name in names:
            try:
                rows.append(measure(kernel, libraries, threads))
            except Exception as error:
                text = " | ".join(str(error).splitlines())[:200]
                print(f"{kernel.name:20s} {type(error).__name__}: {text}", flush=True)
    print(f"{len(rows)} kernels; jitney's time over that of others, geometric means:")
    print(f"  {'':8s} {'numba':>7s} {'C -O3':>7s} {'best C':>7s} {'best of all':>12s}")
    for k, size in enumerate(("small", "middle", "large")):
        column = [r[k] for r in rows]
        print(
            f"  {size:8s} {mean([r.numba for r in column]):7.2f} {mean([r.plain for r in column]):7.2f}"
            f" {mean([r.c for r in column]):7.2f} {mean([r.all for r in column]):12.2f}"
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.kernels")
    parser.add_argument("names", nargs="*", help="kernels; all of them if there is none")
    parser.add_argument("--threads", type=int, default=1, help="for each framework")
    given = parser.parse_args(sys.argv[1:])
    main(given.names, given.threads)
