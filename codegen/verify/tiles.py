"""Time tiles: iterations of a loop on blocks of rows read what they would read one after the other.

The blocks are walked in the mind: each row of each buffer bears the number of the kernel that wrote it
last, and what a kernel finds where it reads must be what it finds in the plain order of iterations.
Blocks run in any order, on threads, so they are walked from the first to the last and back.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ..loop_ir.kernel import Access, Array, Stage
from ..loop_ir.steps import Scan, TilePart, TimeTiles
from ..schedule.regions import distance
from .errors import StepError, name_of

Buffer = Array  # the array whose name stands for it in even iterations
Rows = np.ndarray  # for each row the number of its last writer, or 0
Look = tuple[int, int, Array]  # the number of a kernel, how many rows away it looks, and at what
LOOKS = 1 << 20  # rows that may be looked at; of more, fewer iterations


class _Run(NamedTuple):
    """A kernel on the rows begin..end of an iteration. `number` counts kernels in the plain order."""

    number: int
    iteration: int
    part: TilePart
    begin: int
    end: int


def check_tiles(scan: Scan, tiles: TimeTiles) -> None:
    """Compare the blocks and edges of a scan's tiles with its iterations one after the other."""
    looks = sum(len(s.reads) for p in tiles.parts for s in p.step.stages) + len(tiles.parts)
    iterations = min(tiles.iterations, max(LOOKS // (looks * tiles.rows), 2))
    plain = _Walk(scan, tiles, {})
    for run in _plain(tiles, iterations):
        plain.walk(run)
    for backwards in (False, True):
        tiled = _Walk(scan, tiles, plain.readings)
        for run in _tiled(tiles, iterations, backwards):
            _check_vectors(run)
            tiled.walk(run)
        for buffer, rows in plain.rows.items():
            if not np.array_equal(tiled.rows[buffer], rows):
                raise StepError(f"time tiles leave out rows of {buffer!r}")


def _check_vectors(run: _Run) -> None:
    """A kernel's last vector may move back, over what the kernel has done in this block."""
    plan, points = run.part.plan, (run.end - run.begin) * run.part.each
    if plan.split_last and 0 < points < plan.width:
        raise StepError(f"{name_of(run.part.step)} has vectors longer than a block has points")


def _plain(tiles: TimeTiles, iterations: int) -> Iterator[_Run]:
    for iteration in range(iterations):
        for k, part in enumerate(tiles.parts):
            number = 1 + iteration * len(tiles.parts) + k
            yield _Run(number, iteration, part, part.first, part.first + part.rows)


def _tiled(tiles: TimeTiles, iterations: int, backwards: bool) -> Iterator[_Run]:
    """The kernels of upright blocks, then those of the edges between them."""
    edges = [tiles.first + u * tiles.rows // tiles.units for u in range(tiles.units + 1)]
    order = -1 if backwards else 1
    for upright in (True, False) if tiles.reach else (True,):
        for u in range(tiles.units if upright else tiles.units - 1)[::order]:
            for iteration in range(iterations):
                for k, part in enumerate(tiles.parts):
                    by = iteration * tiles.shrink + tiles.reach * part.level + tiles.margin
                    by = by if tiles.reach else 0
                    begin, end = edges[u] + by, edges[u + 1] - by
                    if not upright:
                        begin, end = edges[u + 1] - by, edges[u + 1] + by
                    elif u == 0:
                        begin = tiles.first
                    if upright and u == tiles.units - 1:
                        end = tiles.first + tiles.rows
                    begin, end = max(begin, part.first), min(end, part.first + part.rows)
                    number = 1 + iteration * len(tiles.parts) + k
                    yield _Run(number, iteration, part, begin, max(begin, end))


def _row(stage: Stage, access: Access) -> int:
    """Which row an access is to in the first iteration of its stage's loop over rows."""
    row = distance(access.index, stage.dims[0])
    if row is None:
        raise StepError(f"{name_of(stage)} touches more than a row of {access!r} in time tiles")
    return row


class _Walk:
    """The rows of each buffer, and what kernels read there: `readings` are compared with,
    where it is known already."""

    def __init__(self, scan: Scan, tiles: TimeTiles, readings: dict[Look, Rows]) -> None:
        self.rows: dict[Buffer, Rows] = {}
        self.readings = readings
        self.pairs = {c.now: c.next for c in scan.carries if c.spare is not None}
        self.pairs |= {other: array for array, other in self.pairs.items()}
        written = {
            s.array for p in tiles.parts for s in p.step.stages if s.array not in p.step.local
        }
        self.changing = written | self.pairs.keys()

    def walk(self, run: _Run) -> None:
        """Look at what a kernel reads, then let it write its rows."""
        kernel = run.part.step
        moving = self.changing - kernel.local
        for stage in kernel.stages:
            for access in stage.reads:
                if access.array in moving:
                    self._look(run, access.array, _row(stage, access) - run.part.first)
        for stage in kernel.stages:
            if stage.array not in kernel.local:
                if _row(stage, stage.write) != run.part.first:
                    raise StepError(f"{name_of(stage)} writes other rows than its time tiles say")
                self._rows(run, stage.array)[run.begin : run.end] = run.number

    def _look(self, run: _Run, array: Array, offset: int) -> None:
        rows = self._rows(run, array)
        look = run.number, offset, array
        seen = self.readings.get(look)
        if seen is None:
            seen = self.readings[look] = rows.copy()
        here = slice(run.begin + offset, run.end + offset)
        if not np.array_equal(rows[here], seen[here]):
            raise StepError(
                f"{name_of(run.part.step)} reads rows of {array!r} in time tiles before they are "
                f"written, or when they are written again"
            )

    def _rows(self, run: _Run, array: Array) -> Rows:
        """The rows of the buffer that an array's name stands for in this iteration."""
        other = self.pairs.get(array, array)
        buffer = other if run.iteration % 2 else array
        return self.rows.setdefault(buffer, np.zeros(array.shape[0], np.int32))
