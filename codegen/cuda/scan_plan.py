"""How the kernel of a scan is laid over threads: along rows, or down columns.

Decided by the shape alone, since it decides in which order floats are added.
"""

from __future__ import annotations

import math

from ...ir.record import record
from ..loop_ir.kernel import Kernel, Stage
from .target import CudaTarget

FULL = 1 << 15  # threads that keep any device busy
HELD_BYTES = 64  # of a row or a column that a thread has in registers,
HELD = 16  # and elements
BLOCK = 256  # threads that go along a row together, where there is enough to do for several such
MOST_THREADS = 1024
DEEPEST = 8  # threads down a column
LEAST = 128  # threads in a block
MANY_ROWS = 128  # rows that each have a block of their own,
ROW_CHUNK = 1 << 12  # and the shortest pieces of longer ones
MOST_CHUNKS = 1 << 13
MANY_COLUMNS = FULL // DEEPEST
COLUMN_CHUNK = 1 << 8


@record
class ScanTile:
    """`team` threads go along a row together (`down`: down a column), `items` accesses each.

    That is a tile; a row of `tiles` tiles is walked by its team, which carries the value that it has
    come to.
    """

    down: bool
    team: int
    items: int
    tiles: int
    threads: int


def scan_stage(kernel: Kernel) -> Stage | None:
    """The stage of a kernel that is a scan; it has no other."""
    stage = kernel.stages[0]
    return stage if stage.action == "scan" else None


def chunk_of(n: int, rows: int, along: bool) -> int:
    """How long the pieces are that `rows` rows of n elements are cut into, or 0: not at all.

    `along`: the rows lie along memory, so that a block can walk one; otherwise they are columns.
    """
    if along:
        if rows >= MANY_ROWS or n < 2 * ROW_CHUNK:
            return 0
        return max(ROW_CHUNK, _power_of_two(-(-n * rows // MOST_CHUNKS)))
    if rows >= MANY_COLUMNS or n < 2 * COLUMN_CHUNK:
        return 0
    return max(COLUMN_CHUNK, _power_of_two(-(-n * rows // (FULL // 2))))


def _power_of_two(n: int) -> int:
    return 1 << max(n - 1, 0).bit_length()


def items_of(stage: Stage, lanes: int) -> int:
    """Accesses whose elements a thread has room for, if one takes `lanes` elements."""
    return max(min(HELD_BYTES // stage.array.dtype.itemsize, HELD) // lanes, 1)


def row_plan(kernel: Kernel, lanes: int, threads: int = 0) -> ScanTile | None:
    """A team for each row: lanes of a warp while they have room for it and there are many rows.

    `threads`: how many there are to do all rows together; None if they are too few.
    """
    stage = kernel.stages[0]
    rows, units = math.prod(kernel.extents), stage.dims[-1].extent // lanes
    most = min(items_of(stage, lanes), HELD // 2)
    warp = CudaTarget.WARP
    team = 1
    while team < warp and team < units:
        team *= 2
    while team < BLOCK and units > team and (units > most * team or rows * team < FULL):
        team *= 2
    while team < MOST_THREADS and most * team < units <= most * MOST_THREADS:
        team *= 2
    if threads:
        team = threads if team > warp else min(team, threads)
        if rows > threads // team:
            return None
    items = min(-(-units // team), most)
    if threads:
        return ScanTile(False, team, items, -(-units // (team * items)), threads)
    threads = team if team > warp else LEAST
    while threads > max(team, warp) and threads // team > rows:
        threads //= 2
    return ScanTile(False, team, items, -(-units // (team * items)), threads)


def column_plan(kernel: Kernel, lanes: int) -> ScanTile:
    """Threads side by side take columns side by side; several go down each, where columns are few."""
    stage = kernel.stages[0]
    n, columns = stage.dims[-1].extent, math.prod(kernel.extents)
    most = items_of(stage, lanes)
    depth = 1
    while depth < DEEPEST and n > depth * most and columns // lanes * depth < FULL:
        depth *= 2
    items = min(-(-n // depth), most)
    threads = max(depth * CudaTarget.WARP, LEAST)
    while threads > depth * CudaTarget.WARP and threads // depth > columns // lanes:
        threads //= 2
    return ScanTile(True, depth, items, -(-n // (depth * items)), threads)
