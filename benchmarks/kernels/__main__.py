"""`python -m benchmarks.kernels`: time each kernel, check its answers, print ratios and means."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import numba
import numpy as np

import jitney as jt

from . import KERNELS, Kernel

SECONDS = 0.06  # of timing, for each framework, kernel and size


def copied(args: Sequence[Any]) -> list[Any]:
    return [a.copy() if isinstance(a, np.ndarray) else a for a in args]


def same(a: Any, b: Any) -> bool:
    """Whether two results agree but for rounding."""
    if a is None or b is None:
        return a is b
    return bool(np.allclose(np.asarray(a), np.asarray(b), rtol=1e-9, atol=1e-12, equal_nan=True))


def seconds(call: Callable[[], Any], repeats: int) -> float:
    start = time.perf_counter()
    for _ in range(repeats):
        call()
    return (time.perf_counter() - start) / repeats


def best(calls: Sequence[Callable[[], Any]]) -> list[float]:
    """The best time of each, in alternation."""
    found = [seconds(call, 1) for call in calls]
    repeats = [max(1, min(10_000, int(SECONDS / 10 / max(t, 1e-7)))) for t in found]
    for _ in range(10):
        for k, call in enumerate(calls):
            found[k] = min(found[k], seconds(call, repeats[k]))
    return found


def measure(kernel: Kernel) -> list[float]:
    """Print a line for each size; gives jitney's time over Numba's for each."""
    ratios = []
    compiled = numba.njit(kernel.function)
    ours = jt.jit(kernel.function, autograph=True, static_argnums=kernel.static)
    for size in kernel.sizes:
        args = kernel.make(np.random.default_rng(0), size)
        mine, theirs = copied(args), copied(args)
        start = time.process_time()
        result = ours(*mine)
        first = time.process_time() - start
        start = time.process_time()
        wanted = compiled(*theirs)
        other = time.process_time() - start
        fine = same(result, wanted) and all(map(same, mine, theirs))
        a, b = best([lambda x=mine: ours(*x), lambda x=theirs: compiled(*x)])
        ratios.append(a / b)
        note = "" if fine else "  DIFFERS"
        print(
            f"{kernel.name:20s} {size:8d} {a * 1e3:10.4f} {b * 1e3:10.4f} {a / b:7.2f}"
            f"   first {first * 1e3:6.0f} {other * 1e3:6.0f} ms{note}",
            flush=True,
        )
    return ratios


def mean(values: Sequence[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values)) if values else math.nan


def main(names: Sequence[str]) -> None:
    numba.njit(lambda x: x)(1)
    jt.jit(lambda x: x * 2)(np.zeros(3))
    print(f"{'kernel':20s} {'size':>8s} {'jitney ms':>10s} {'numba ms':>10s} {'ratio':>7s}")
    found = []
    for kernel in KERNELS:
        if not names or kernel.name in names:
            try:
                found.append(measure(kernel))
            except Exception as error:
                text = " | ".join(str(error).splitlines())[:200]
                print(f"{kernel.name:20s} {type(error).__name__}: {text}", flush=True)
    print(f"{len(found)} kernels; jitney's time over Numba's, geometric means:")
    for k, size in enumerate(("small", "middle", "large")):
        print(f"  {size:8s} {mean([r[k] for r in found]):.2f}")


if __name__ == "__main__":
    main(sys.argv[1:])
