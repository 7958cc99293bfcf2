"""Other schedules of a kernel than the model's, for who measures which one is fastest.

Blocks of other sizes, and fewer neighbours for a thread, change no result. Other teams for a row, and
fewer threads for a column, fold in another order: sums change by rounding.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from ...ir.record import replace
from ..cuda.scan_plan import ScanTile
from ..cuda.schedule import MOST_THREADS, Schedule, row_lanes, row_of, scatters
from ..cuda.target import CudaTarget
from ..loop_ir.kernel import Array, Kernel
from ..schedule.signature import Signature

BLOCKS = (128, 256, 64, 512)  # threads of a block


def variants(
    kernel: Kernel,
    own: Signature,
    alignments: Mapping[Array, int],
    target: CudaTarget,
    best: Schedule,
) -> Iterator[Schedule]:
    """Schedules that do the same as `best`.

    None where iterations of loops, or indices, depend on what is in memory: what a trial finds there may
    keep it busy for ever, or all of it at one element.
    """
    if best.cross is not None or scatters(best) or any(v.loops for v in best.surveys.values()):
        return
    if best.scan is not None:
        yield from _scans(kernel, target, best, best.scan)
    elif best.row is not None:
        yield from _rows(kernel, own, alignments, target, best)
    elif best.depth > 1:
        if best.depth > 2:
            depth = best.depth // 2
            yield _laid(replace(best, depth=depth, threads=depth * target.WARP))
    else:
        for threads in BLOCKS:
            if threads != best.threads and threads < 2 * best.units:
                yield _laid(replace(best, threads=threads))
        if best.lanes > 1:
            yield _laid(replace(best, lanes=best.lanes // 2))


def _laid(plan: Schedule) -> Schedule:
    """With as many blocks as its points need."""
    return replace(plan, blocks=-(-plan.units // (plan.threads // plan.depth)))


def _scans(
    kernel: Kernel, target: CudaTarget, best: Schedule, scan: ScanTile
) -> Iterator[Schedule]:
    """Blocks of more or fewer teams: how a row or a column is cut is not for choice."""
    points = best.units if scan.down else math.prod(kernel.extents)
    least = scan.team * (target.WARP if scan.down else 1)
    for threads in BLOCKS if scan.down or least <= target.WARP else ():
        teams = threads // scan.team
        if threads % least == 0 and threads != best.threads and teams < 2 * points:
            other = replace(scan, threads=threads)
            yield replace(best, scan=other, threads=threads, blocks=-(-points // teams))


def _rows(
    kernel: Kernel,
    own: Signature,
    alignments: Mapping[Array, int],
    target: CudaTarget,
    best: Schedule,
) -> Iterator[Schedule]:
    points = math.prod(kernel.extents)
    row = best.row
    assert row is not None
    for team in (row.team, 2 * row.team, row.team // 2, 4 * row.team, row.team // 4):
        if not 1 <= team <= MOST_THREADS:
            continue
        other = row_of(kernel, target, team)
        # What passes from nest to nest through memory has memory of its own already.
        if other is None or (other.held, other.passed) != (row.held, row.passed):
            continue
        plan = replace(best, row=other)
        plan.lanes = row_lanes(kernel, own, plan, alignments)
        for threads in (team,) if team > target.WARP else BLOCKS:
            fits = team > target.WARP or threads // team < 2 * points
            if fits and (team, threads) != (row.team, best.threads):
                yield replace(plan, threads=threads, blocks=-(-points // (threads // team)))
