"""What this machine can do at most: bytes a second from caches and memory, flops a second in products.

Measured by kernels of ours, with the threads that kernels get, and remembered on disk. Other programs
that run meanwhile make limits too low: whoever sees more than a limit asks for another measurement.
"""

from __future__ import annotations

import json
import math
import time
from typing import Any

import numpy as np

from ..ir.build import Builder
from ..ir.graph import Graph
from ..ir.record import record
from ..ir.types import TensorType
from .cache.disk import disk_cache
from .cache.installation import digest, installation
from .compile import compile
from .config import config
from .executable import Executable
from .native.host import host_identity

# Bytes that are moved: within the first cache, the second, the last, and none of them.
_FOOTPRINTS = (24 << 10, 384 << 10, 8 << 20, 192 << 20)
_SECONDS = 0.03  # for each measurement
_SIDE = 768  # of the matrices


@record
class MachineLimits:
    """`bandwidths`: bytes a second, by bytes that a call touches. `flops`: a second, by float size."""

    bandwidths: tuple[tuple[int, float], ...]
    flops: tuple[tuple[int, float], ...]

    def bandwidth(self, footprint: int) -> float:
        """Bytes a second for a kernel whose call touches so many bytes; between two that were measured,
        by the logarithm of the size."""
        sizes, speeds = zip(*self.bandwidths, strict=True)
        logs = [math.log(speed) for speed in speeds]
        return math.exp(float(np.interp(math.log(max(footprint, 1)), np.log(sizes), logs)))

    def peak_flops(self, itemsize: int) -> float:
        """Flops a second of floats of so many bytes."""
        return dict(self.flops).get(itemsize, self.flops[0][1])


_known: dict[str, MachineLimits] = {}  # of this process


def machine_limits(again: bool = False) -> MachineLimits:
    """Of this machine with `config.threads` threads, as far as measured: at the first call, which takes
    half a second. `again`: measure once more, and keep the higher figures.

    >>> limits = machine_limits()
    >>> limits.bandwidth(1 << 20) > 1e6, limits.peak_flops(8) > 1e6
    (True, True)
    """
    key = digest("machine limits", installation(), repr(host_identity()), str(config.threads))
    known = _known.get(key) or _stored(key)
    if known is None or again:
        measured = _measured()
        known = measured if known is None else _higher(known, measured)
        disk_cache().put(key, json.dumps([known.bandwidths, known.flops]).encode())
    _known[key] = known
    return known


def _stored(key: str) -> MachineLimits | None:
    """What an earlier process has measured."""
    data = disk_cache().get(key)
    if data is None:
        return None
    bandwidths, flops = json.loads(data)
    return MachineLimits(tuple(map(tuple, bandwidths)), tuple(map(tuple, flops)))


def _measured() -> MachineLimits:
    return MachineLimits(
        tuple([(size, _bandwidth(size)) for size in _FOOTPRINTS]),
        tuple([(dtype.itemsize, _flops(dtype)) for dtype in map(np.dtype, ("f4", "f8"))]),
    )


def _higher(a: MachineLimits, b: MachineLimits) -> MachineLimits:
    return MachineLimits(
        tuple(map(max, a.bandwidths, b.bandwidths)), tuple(map(max, a.flops, b.flops))
    )


def _bandwidth(footprint: int) -> float:
    """Of y = x + 1: one array read, one written."""
    count = footprint // 8
    b = Builder(Graph("stream"))
    x = b.graph.add_param(TensorType((count,), np.dtype("f4")), "x")
    b.graph.outputs = [b.add(x, b.full_like(x, 1.0))]
    executable = compile(b.graph)
    return footprint / _best(executable, [np.zeros(count, np.float32)])


def _flops(dtype: np.dtype[np.generic]) -> float:
    """Of a product of square matrices."""
    b = Builder(Graph("product"))
    type = TensorType((_SIDE, _SIDE), dtype)
    x, y = (b.graph.add_param(type, name) for name in "xy")
    b.graph.outputs = [b.dot(x, y, contract=((1,), (0,)), batch=((), ()))]
    ones = np.ones(type.shape, dtype)
    return 2 * _SIDE**3 / _best(compile(b.graph), [ones, ones])


def _best(executable: Executable, arrays: list[np.ndarray[Any, Any]]) -> float:
    """Seconds of the fastest call."""
    best, end = math.inf, time.perf_counter() + _SECONDS
    executable.run(arrays)
    while True:
        start = time.perf_counter()
        executable.run(arrays)
        now = time.perf_counter()
        best = min(best, now - start)
        if now > end:
            return best
