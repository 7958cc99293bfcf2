"""How many bytes a kernel moves: the elements that it touches, each counted once.

    before: for i in 1..n-1: y[i] = x[i - 1] + x[i + 1]        x: 8 * n bytes, y: 8 * (n - 2)

Exact for accesses that are affine and repeat each other at another place, as those of stencils do,
but for corners; never more than an array has, nor more than an index has values at the points of its
loops, as where it is read from memory.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

from ..loop_ir.index import Index, variables
from ..loop_ir.kernel import Access, Array, Kernel, Stage
from .regions import Region, Step, region


def bytes_moved(kernel: Kernel) -> tuple[int, int]:
    """Bytes that a kernel reads and writes in memory; arrays that live inside it only are not."""
    reads: dict[Array, list[Index]] = {}
    writes: dict[Array, list[Index]] = {}
    made: set[Array] = (
        set()
    )  # what is there before it is read is in a register, or was just written
    for stage in kernel.stages:
        for access in _read(stage):
            if access.array not in made:
                reads.setdefault(access.array, []).append(access.flat)
        writes.setdefault(stage.array, []).append(stage.write.flat)
        if stage.whole and stage.action in ("store", "reduce", "scan"):
            made.add(stage.array)
    read = sum(a.dtype.itemsize * touched(a, at) for a, at in reads.items())
    written = (
        a.dtype.itemsize * touched(a, at) for a, at in writes.items() if a not in kernel.local
    )
    return read, sum(written)


def _read(stage: Stage) -> Iterable[Access]:
    yield from stage.reads
    if stage.action in ("update", "scatter") and stage.op != "set":
        yield stage.write


def touched(array: Array, indices: Iterable[Index]) -> int:
    """How many elements of an array are at these positions."""
    parts: dict[tuple[Step, ...], list[int]] = {}  # where regions of one form begin
    total = 0
    for index in dict.fromkeys(indices):
        found = region(index)
        if index.affine and _size(found) == array.size:
            return array.size
        if index.affine:
            parts.setdefault(found.steps, []).append(found.low)
        else:
            points = prod(v.extent for v in variables(index))
            total += min(points, _size(found))
    total += sum(_union(steps, lows) for steps, lows in parts.items())
    return min(total, array.size)


def _size(found: Region) -> int:
    return prod(n for _, n in found.steps)


def _union(steps: tuple[Step, ...], lows: list[int]) -> int:
    """Elements of regions of one form that begin at `lows`: of the box that holds them all, if they lie
    as neighbours do."""
    apart = len(lows) * prod(n for _, n in steps)
    if len(lows) == 1:
        return apart
    shifts = [_shift(low - lows[0], steps) for low in lows]
    if any(rest for _, rest in shifts):
        return apart
    spread = [max(along) - min(along) for along in zip(*(s for s, _ in shifts), strict=True)]
    return min(apart, prod(n + more for (_, n), more in zip(steps, spread, strict=True)))


def _shift(distance: int, steps: tuple[Step, ...]) -> tuple[tuple[int, ...], int]:
    """A distance as numbers of steps of each kind, the nearest ones, and what is left."""
    shift = []
    for stride, _ in steps:
        count = (2 * distance + stride) // (2 * stride)
        shift.append(count)
        distance -= count * stride
    return tuple(shift), distance
