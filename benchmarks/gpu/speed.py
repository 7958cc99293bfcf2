"""How fast: rows on all frameworks that see the GPU, in one process, in alternation.

An answer is checked at the row's small size before it is timed, and at its full size against the others'
(in poisoned memory: an element that nobody wrote is NaN).
"""

from __future__ import annotations

import gc
import math
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..rows import as_list
from . import peers, timing
from .process import Options, Writer, failure
from .rows import ELEMENTS, ROWS

COPY_BYTES = 1 << 29
SAMPLES_BYTES = 1 << 22  # of an answer that is compared with the others'


def stage(options: Options, writer: Writer) -> Iterator[tuple[str, Callable[[], Any]]]:
    bench = Bench(options)
    yield "ceilings", bench.ceilings
    for name in ROWS:
        if options.get("rows") is None or name in options["rows"]:
            yield name, lambda name=name: bench.row(name)  # type: ignore[misc]


class Bench:
    def __init__(self, options: Options) -> None:
        self.small = bool(options.get("small"))
        self.seconds = float(options.get("row_seconds", 0.05 if self.small else 0.7))
        self.clock = timing.Clock(peers.context())
        self.frameworks: dict[str, Any] = {}
        self.missing: dict[str, str] = {}  # not installed, or not for this GPU
        self.broken: dict[str, dict[str, Any]] = {}  # installed, and does not start
        for name in options.get("frameworks", peers.NAMES):
            try:
                self.frameworks[name] = peers.KINDS[name]()
            except ImportError as error:
                self.missing[name] = f"{type(error).__name__}: {error}"
            except Exception as error:
                self.broken[name] = failure(error)

    def ceilings(self) -> dict[str, Any]:
        """What the device can do: its copy, and cuBLAS where PyTorch brings it."""
        found: dict[str, Any] = {
            **next((f for name, f in self.broken.items() if name in peers.OWN), {}),
            "versions": {name: f.version for name, f in self.frameworks.items()},
            "missing": self.missing,
            "copy_bytes_per_second": self.clock.copy_rate(1 << 16 if self.small else COPY_BYTES),
        }
        if "torch" in self.frameworks:
            found["cublas_flops"] = self._cublas(self.frameworks["torch"])
        return found

    def _cublas(self, peer: Any) -> dict[str, float]:
        torch, found = peer.torch, {}
        for label, dtype, tf32 in (
            ("float32", torch.float32, False),
            ("tf32", torch.float32, True),
            ("float16", torch.float16, False),
            ("bfloat16", torch.bfloat16, False),
            ("float64", torch.float64, False),
        ):
            torch.backends.cuda.matmul.allow_tf32 = tf32
            for n in (1024, 4096, 8192):
                a, b = (torch.randn(n, n, device="cuda").to(dtype) for _ in range(2))
                call = peers.Call(lambda a=a, b=b: a @ b, peer.use.wait, None)  # type: ignore[misc,arg-type]
                call.wait(call())
                taken = self.clock.on_device(call, peer.stream, 3)
                found[f"{label} {n}"] = 2.0 * n**3 / taken
        torch.backends.cuda.matmul.allow_tf32 = False
        return found

    def row(self, name: str) -> dict[str, Any]:
        gc.collect()
        row = ROWS[name]
        small = row.inputs(True)
        inputs = small if self.small else row.inputs()
        with np.errstate(all="ignore"):
            reference = row.reference(small)
        cells: dict[str, dict[str, Any]] = {name: dict(f) for name, f in self.broken.items()}
        calls: dict[str, Any] = {}
        answers: dict[str, list[Any]] = {}
        for framework, peer in self.frameworks.items():
            try:
                cells[framework], call = prepare(peer, row, small, inputs, reference)
                with poisoned(framework):
                    answers[framework] = [_Part(a) for a in as_list(call.arrays(call()))]
                calls[framework] = call
                if unwritten := sum(a.nans for a in answers[framework]):
                    cells[framework] |= {
                        "error": f"{unwritten} elements are NaN",
                        "nans": unwritten,
                    }
            except peers.NotWrittenError:
                continue
            except Exception as error:
                cells[framework] = failure(error)
        self._time(cells, calls)
        if "jitney" in answers:
            cells["jitney"]["deviation"] = {
                other: deviation(answers["jitney"], found)
                for other, found in answers.items()
                if other != "jitney"
            }
        outputs = calls and next(iter(answers.values()))
        found = {
            "title": row.title,
            "dtype": row.dtype,
            "arithmetic": ELEMENTS.get(name, row.dtype),
            "size": row.size,
            "flops": row.flops(row.size) if row.flops else None,
            "traffic": row.traffic(inputs, outputs) if outputs else None,
            "cells": cells,
        }
        wrong = [f"{f}: {c['error']}" for f, c in cells.items() if f in peers.OWN and "error" in c]
        return found | ({"error": wrong[0]} if wrong else {})

    def _time(self, cells: dict[str, dict[str, Any]], calls: dict[str, Any]) -> None:
        right = {f: c for f, c in calls.items() if cells[f]["error_of_tolerated"] <= 1}
        queued = {f: lambda c=c: self.clock.queued(c) for f, c in right.items()}  # type: ignore[misc]
        rounds = 1 if self.small else 7
        for framework, samples in timing.alternate(queued, self.seconds, rounds).items():
            cells[framework] |= {"median": statistics.median(samples), "least": min(samples)}
        alone = {
            f: lambda c=c, f=f: self.clock.on_device(c, self.frameworks[f].stream)  # type: ignore[misc]
            for f, c in right.items()
            if self.frameworks[f].stream is not None
        }
        for framework, samples in timing.alternate(alone, self.seconds / 2, 3).items():
            cells[framework]["device"] = statistics.median(samples)


@contextmanager
def poisoned(framework: str) -> Iterator[None]:
    """Memory that jitney allocates in here is full of NaN."""
    context = peers.context()
    if framework not in peers.OWN:
        yield
        return
    peers.support("gpu").poison(context)
    try:
        yield
    finally:
        del context.allocate


def prepare(
    peer: Any, row: Any, small: Any, inputs: Any, reference: list[Any]
) -> tuple[dict[str, Any], Any]:
    """A framework's cell so far (error at the small size, seconds of the first call), and its call.

    torch.compile would compile once more for the small size: it is taken at its word.
    """
    trial = None if peer.name == "torch_compile" else peer.prepare(row, small)
    error = 0.0 if trial is None else row.error(trial.arrays(trial.wait(trial())), reference)
    cell: dict[str, Any] = {"error_of_tolerated": error}
    if not error <= 1:
        cell["reason"] = f"wrong answer, {error:.3g} times what is tolerated"
        if peer.name in peers.OWN:
            cell["error"] = cell["reason"]
    call = trial if trial and inputs is small else peer.prepare(row, inputs)
    start = time.perf_counter()
    call.wait(call())
    cell["first"] = time.perf_counter() - start
    call.wait(call())
    return cell, call


class _Part:
    """A sample of an array's elements, spread over all of it, its size, and whether any is NaN."""

    def __init__(self, a: Any) -> None:
        flat = a.reshape(-1)
        step = max(1, a.nbytes // SAMPLES_BYTES)
        self.shape, self.size, self.dtype = a.shape, a.size, a.dtype
        self.elements = np.concatenate([flat[: -1 - step : step], flat[-step:]]) if a.size else flat
        self.nans = int(np.isnan(flat).sum()) if a.dtype.kind == "f" else 0


def deviation(ours: list[_Part], theirs: list[_Part]) -> float | None:
    """The largest difference over the largest element; None where shapes differ."""
    worst = 0.0
    for a, b in zip(ours, theirs, strict=False):
        if a.shape != b.shape or a.nans != b.nans:
            return None
        if a.size:
            x, y = a.elements.astype(np.float64), b.elements.astype(np.float64)
            scale = float(np.nanmax(np.abs(y), initial=0)) or 1.0
            found = float(np.nanmax(np.abs(x - y), initial=0)) / scale
            worst = max(worst, found) if math.isfinite(found) else math.inf
    return worst
