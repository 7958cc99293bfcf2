"""What this machine can do at most: bytes a second from caches and memory, flops a second in products,
operations a second in chains of elementwise functions, elements a second that indices name, sorting.

Measured by kernels of ours and remembered on disk. Others that run meanwhile make figures too low, so
each is the best of several rounds, which go through all of them one after the other; and whoever sees
more than a limit says so.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np

from ..ir.graph import Graph
from ..ir.record import fields, record, replace
from .cache.disk import disk_cache
from .cache.installation import digest, installation
from .compile import compile
from .config import config
from .native.host import current_target, host_identity
from .options import CompileOptions
from .probing import outlined
from .yardsticks import Yardstick, chain, product, reads, sort, stream

# Bytes that are moved: within the first cache, the second, the last, and none of them.
_FOOTPRINTS = (24 << 10, 384 << 10, 8 << 20, 48 << 20, 192 << 20)
_TABLES = (32 << 10, 512 << 10, 4 << 20, 64 << 20)  # bytes of an array that is read at random
_FLOATS = {4: "f32", 8: "f64"}
_SCALARS = 1.2  # times as many operations a second as vectors: less of them wait
_ROUNDS = 4
_SECONDS = 2.5e-3  # for each figure in each round, if one call does not take longer

Figures: TypeAlias = "tuple[tuple[int, float], ...]"  # a rate by bytes


@record
class MachineLimits:
    """What some threads do in a second, of most things by bytes.

    bandwidths    bytes moved, by bytes that a call touches
    flops         in matrix products, by the size of floats
    operations    in chains of elementwise functions, by the size of floats: of vectors' elements, a
                  division and a root counted as often as they keep others waiting
    accesses      elements read where indices say, by bytes of the array
    sorting       bytes of keys sorted by one digit, of eight bits
    scalars       operations of scalar code
    """

    bandwidths: Figures
    flops: Figures
    operations: Figures
    accesses: Figures
    sorting: float
    scalars: float

    def bandwidth(self, footprint: int) -> float:
        """Bytes a second for a kernel whose call touches so many bytes; between two that were measured,
        by the logarithm of the size."""
        return _between(self.bandwidths, footprint)

    def access_rate(self, nbytes: int) -> float:
        """Elements a second that are read of an array of so many bytes, where indices say."""
        return _between(self.accesses, nbytes)

    def peak_flops(self, itemsize: int) -> float:
        """Flops a second of floats of so many bytes."""
        return dict(self.flops).get(itemsize, self.flops[0][1])

    def operation_rate(self, itemsize: int) -> float:
        """Operations a second on numbers of so many bytes."""
        return dict(self.operations).get(itemsize, self.operations[0][1])


# Of one core of a machine of 2022, roughly: what to compare steps by where nothing was measured.
TYPICAL = MachineLimits(
    bandwidths=((24 << 10, 2e11), (384 << 10, 1e11), (8 << 20, 5e10), (48 << 20, 2e10)),
    flops=((4, 1e11), (8, 5e10)),
    operations=((4, 4e10), (8, 2e10)),
    accesses=((32 << 10, 1.5e9), (4 << 20, 5e8), (64 << 20, 1e8)),
    sorting=1e9,
    scalars=3e9,
)


def _between(figures: Figures, size: int) -> float:
    sizes, speeds = zip(*figures, strict=True)
    logs = [math.log(speed) for speed in speeds]
    return math.exp(float(np.interp(math.log(max(size, 1)), np.log(sizes), logs)))


_known: dict[str, MachineLimits] = {}  # of this process


def machine_limits(
    again: bool = False,
    threads: int = 0,
    moved: Mapping[int, float] | None = None,
    flops: Mapping[int, float] | None = None,
) -> MachineLimits:
    """Of this machine with `threads` threads, 0: `config.threads`, as far as measured: at the first
    call, which takes a second. `again`: measure once more, and keep the higher figures.

    `moved` and `flops` are what a function was seen to do, bytes a second by bytes that it touches,
    flops a second by the size of floats: limits that are below it are raised, for good.

    >>> limits = machine_limits()
    >>> limits.bandwidth(1 << 20) > 1e6, limits.peak_flops(8) > 1e6
    (True, True)
    """
    key = _key(threads)
    known = _known.get(key) or _stored(key)
    if known is None or again:
        measured = _measured(threads)
        known = measured if known is None else _higher(known, measured)
        _store(key, known)
    _known[key] = _raised(key, known, moved or {}, flops or {})
    return _known[key]


def _raised(
    key: str, known: MachineLimits, moved: Mapping[int, float], flops: Mapping[int, float]
) -> MachineLimits:
    bandwidths, peaks = known.bandwidths, dict(known.flops)
    for footprint, rate in moved.items():
        bandwidths = _lifted(bandwidths, footprint, rate)
    for itemsize, rate in flops.items():
        if itemsize in peaks:
            peaks[itemsize] = max(rate, peaks[itemsize])
    made = replace(known, bandwidths=bandwidths, flops=tuple(peaks.items()))
    if made == known:
        return known
    _store(key, made)
    return made


def _lifted(figures: Figures, size: int, rate: float) -> Figures:
    """Figures with which `size` has at least this rate: those next to it grow."""
    more = rate / _between(figures, size)
    if more <= 1:
        return figures
    below = [s for s, _ in figures if s <= size][-1:]
    above = [s for s, _ in figures if s >= size][:1]
    return tuple([(s, speed * more if s in below + above else speed) for s, speed in figures])


def _key(threads: int) -> str:
    count = str(threads or config.threads)
    return digest("machine limits", installation(), repr(host_identity()), count)


def _stored(key: str) -> MachineLimits | None:
    """What an earlier process has measured."""
    data = disk_cache().get(key)
    if data is None:
        return None
    values = [_figures(value) for value in json.loads(data)]
    return MachineLimits(*values)


def _figures(value: Any) -> Any:
    return tuple(map(tuple, value)) if isinstance(value, list) else value


def _store(key: str, limits: MachineLimits) -> None:
    values = [getattr(limits, name) for name in fields(limits)]
    disk_cache().put(key, json.dumps(values).encode())


def _higher(a: MachineLimits, b: MachineLimits) -> MachineLimits:
    return MachineLimits(*(_highest(getattr(a, name), getattr(b, name)) for name in fields(a)))


def _highest(a: Any, b: Any) -> Any:
    return tuple(map(max, a, b)) if isinstance(a, tuple) else max(a, b)


def _measured(threads: int) -> MachineLimits:
    options = CompileOptions(threads=threads)
    chains = {4: chain("f32"), 8: chain("f64")}
    runs: dict[tuple[str, int], _Run] = {
        ("nothing", 0): _Run(stream(64), options),
        ("sorting", 0): _Run(sort(), options),
        **{("bandwidths", size): _Run(stream(size), options) for size in _FOOTPRINTS},
        **{("flops", size): _Run(product(name), options) for size, name in _FLOATS.items()},
        **{("operations", size): _Run(made, options) for size, made in chains.items()},
        **{("accesses", size): _Run(reads(size), options) for size in _TABLES},
    }
    for _ in range(_ROUNDS):
        for run in runs.values():
            run.round()
    call = runs["nothing", 0].best
    rates = {name: run.rate(call) for name, run in runs.items()}
    for size, made in chains.items():
        rates["operations", size] *= _slots(made.graph, options)
    tables = {
        kind: tuple([(name[1], rate) for name, rate in rates.items() if name[0] == kind])
        for kind in ("bandwidths", "flops", "operations", "accesses")
    }
    lanes = current_target().lanes(8)
    return MachineLimits(
        **tables, sorting=rates["sorting", 0], scalars=_SCALARS * rates["operations", 8] / lanes
    )


def _slots(graph: Graph, options: CompileOptions) -> float:
    """Operations that the one kernel of a graph does for an element."""
    (step,) = outlined(graph, options, [(1,)]).outline
    assert step.kernel is not None
    return step.kernel.work.slots / step.kernel.extents[0]


class _Run:
    """A yardstick that is called, and the seconds of its fastest call."""

    def __init__(self, made: Yardstick, options: CompileOptions) -> None:
        self._made = made
        self._executable = compile(made.graph, options)
        self.best = math.inf

    def round(self) -> None:
        """Some calls, after one that brings the data near."""
        self._executable.run(self._made.arrays)
        end = time.perf_counter() + _SECONDS
        while True:
            start = time.perf_counter()
            self._executable.run(self._made.arrays)
            now = time.perf_counter()
            self.best = min(self.best, now - start)
            if now > end:
                return

    def rate(self, call: float) -> float:
        """The amount that is done in a second, beside what a call takes that does nothing."""
        return self._made.amount / max(self.best - call, self.best / 8)
