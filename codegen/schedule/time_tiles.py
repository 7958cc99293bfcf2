"""Time tiles: a loop over stencils makes several iterations on a block of rows while it is in the cache.

    before: for iteration in range(n): u' = stencil(u); u, u' = u', u
    after:  for a few iterations at a time:
                for block of rows (shared among threads):    an upright trapezoid
                    for iteration: rows from + iteration .. to - iteration of u'
                for edge between blocks (shared among threads):    what is left: a trapezoid on its head
                    for iteration: rows edge - iteration .. edge + iteration of u'

An iteration on a block needs the rows around it, as far as the stencil reaches, as they were after the
iteration before; so a block's rows become fewer from iteration to iteration, and what is missing is made
up at the edges. Nothing is computed twice, and each element by the same code as without tiles: results
are the same bits. A body may be several kernels, and write in place; each of them is a step to be made
up then.

Kernels that do not depend on each other within an iteration are of one level. Why the edges still find
what they need: at the q-th level since the tile began, `q * reach` rows are left out at each side. What
an edge reads at level q lies at most `(q + 1) * reach` away from it; a level p > q that would overwrite
it in a block leaves at least as much out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..limits import limits
from ..loop_ir.index import Var
from ..loop_ir.kernel import Access, Array, Kernel, Nest
from ..loop_ir.steps import Carry, Program, TilePart, TimeTiles, outside
from ..target import Target
from .regions import distance
from .schedule import Schedule, schedule
from .survey import survey

MOST_ITERATIONS = 256  # at a time
LEAST_ITERATIONS = 4
MOST_PARTS = 16


def time_tiles(
    carries: Sequence[Carry], body: Program, length: int, target: Target
) -> TimeTiles | None:
    """How to run a loop of `length` iterations in tiles; None if it cannot be, or need not be."""
    if length < LEAST_ITERATIONS or not all(isinstance(step, Kernel) for step in body.steps):
        return None
    kernels = [part for step in body.steps for part in _by_rows(step)]
    if not 0 < len(kernels) <= MOST_PARTS:
        return None
    changing = {a for k in kernels for a in outside(k)[1]}
    changing |= {a for c in carries if c.spare is not None for a in (c.now, c.next)}
    reaches = [_reach(k, changing) for k in kernels]
    parts = [_part(*pair, target) for pair in zip(kernels, _levels(kernels), strict=True)]
    if None in reaches or None in parts:
        return None
    reach = max(r for r in reaches if r is not None)
    return _cut([p for p in parts if p is not None], reach, length)


def _by_rows(kernel: Kernel) -> list[Kernel]:
    """The kernel, or one kernel for each of its stages if they write different rows."""
    stages = kernel.stages
    firsts = {distance(s.index, s.dims[0]) for s in stages if s.dims and s.action == "store"}
    reads, writes = outside(kernel)
    alone = not kernel.local and set(writes).isdisjoint(reads)
    if len(firsts) < 2 or not alone or kernel.ordered:
        return [kernel]
    return [Kernel(kernel.extents, [Nest([s], n.outer)]) for n in kernel.nests for s in n.stages]


def _levels(kernels: Sequence[Kernel]) -> list[int]:
    """Numbers from 0 on: kernels of one level do not read what others of that level write."""
    levels: list[int] = []
    level, read, written = 0, set[Array](), set[Array]()
    for kernel in kernels:
        reads, writes = map(set, outside(kernel))
        if reads & written or writes & read:
            level, read, written = level + 1, set(), set()
        read |= reads
        written |= writes
        levels.append(level)
    return levels


def _cut(parts: list[TilePart], reach: int, length: int) -> TimeTiles | None:
    """Blocks whose rows fit in the cache, and as many iterations at a time as their height allows."""
    first = min(p.first for p in parts)
    rows = max(p.first + p.rows for p in parts) - first
    margin = max(_margin(p) for p in parts)
    if any(_margin(p) and abs(p.first - first) + abs(p.rows - rows) > margin for p in parts):
        return None
    nbytes = max(sum(_row_bytes([p.step for p in parts]).values()), 1)
    shrink = reach * (1 + parts[-1].level)
    least = max(2 * LEAST_ITERATIONS * shrink + 4 * margin, 1)
    wanted = max(
        min(limits().time_tile_bytes // nbytes, -(-rows // limits().time_tile_units)), least
    )
    units = min(-(-rows // wanted), rows // least)
    if units < 2 or wanted * nbytes > 2 * limits().time_tile_bytes:
        return None
    iterations = (rows // units - 4 * margin) // (2 * shrink) if shrink else MOST_ITERATIONS
    iterations = -(-length // -(-length // min(iterations, MOST_ITERATIONS)))
    unit_ns = sum(p.plan.nanoseconds for p in parts) * iterations / units
    shared = unit_ns * units > 4 * limits().chunk_ns
    if not shared and rows * nbytes <= limits().time_tile_bytes:
        return None  # all is in the cache, and for one thread
    grain = max(int(limits().chunk_ns // max(unit_ns, 1.0)), 1) if shared else units
    return TimeTiles(parts, first, rows, units, iterations, reach, shrink, margin, grain)


def _part(kernel: Kernel, level: int, target: Target) -> TilePart | None:
    """The kernel with a schedule that goes by rows; None if there is none."""
    first = _first_row(kernel)
    if first is None:
        return None
    rows = kernel.extents[0]
    plan = schedule(kernel, target)
    if plan.mode != "outer" or plan.cross is not None or plan.tile:
        return None
    plan.split_last = len(plan.outer.vars) == 1
    each = plan.each(rows)
    if each is None:
        return None
    if plan.split_last:
        while each > 1 and each % plan.width and plan.width > each:
            plan.width //= 2
        plan.grain = each
    plan.parallel = True  # its function does a part of the range
    return TilePart(kernel, plan, first, rows, each, level)


def _margin(part: TilePart) -> int:
    """Rows to leave at each side of an edge, so that each call fills a vector at least: the last
    vector of a call moves back over what the call has done."""
    plan: Schedule = part.plan
    if not plan.split_last or part.each % plan.width == 0 or part.each >= plan.width:
        return 0
    return -(-plan.width // (2 * part.each))


def _first_row(kernel: Kernel) -> int | None:
    """The first row that the kernel writes, of all arrays the same; None if it does not go by rows."""
    if kernel.ordered or not kernel.extents:
        return None
    stages = kernel.stages
    if any(s.action != "store" or len(s.dims) != len(kernel.extents) for s in stages):
        return None
    if any(survey(s).checks for s in stages):
        return None
    distances = {distance(s.index, s.dims[0]) for s in stages if s.array not in kernel.local}
    return distances.pop() if len(distances) == 1 else None


def _reach(kernel: Kernel, changing: set[Array]) -> int | None:
    """How many rows away the kernel reads what changes from iteration to iteration; None if anywhere."""
    first = _first_row(kernel)
    if first is None:
        return None
    reach = 0
    own = set(outside(kernel)[1])
    for access, loop in _walked(kernel):
        if access.array in changing:
            row = distance(access.index, loop)
            if row is None or (access.array in own and row != first):
                return None
            reach = max(reach, abs(row - first))
    return reach


def _row_bytes(kernels: Sequence[Kernel]) -> dict[Array, int]:
    """The bytes of a row of each array that the kernels walk by rows."""
    return {
        access.array: access.array.nbytes // access.array.shape[0]
        for kernel in kernels
        for access, loop in _walked(kernel)
        if distance(access.index, loop) is not None
    }


def _walked(kernel: Kernel) -> Iterator[tuple[Access, Var]]:
    """The accesses to arrays outside of a kernel, each with its stage's loop over rows."""
    for stage in kernel.stages:
        for access in stage.accesses:
            if access.array not in kernel.local:
                yield access, stage.dims[0]
