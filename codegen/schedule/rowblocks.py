"""Row blocks: steps that follow one another on one part of their rows while it is in the cache.

    before: z = x @ w           (all rows)         after: for each block of rows, shared among threads:
            y = gelu(z + b)     (all rows)                    z[block] = x[block] @ w
                                                              y[block] = gelu(z[block] + b)

A *pivot* fixes the blocks: a matrix product by its blocks of rows, or a reduction that goes by chunks
by its chunks (so `X @ w`, what is computed from it, and `X.T @ r` walk X once). Kernels before and
after it, and other products, join if each block of theirs touches nothing of what the others write but
the same block's part. Steps are not changed, only run in another order.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Sequence
from itertools import chain
from typing import Any

from ...ir.record import field, record, replace
from ..loop_ir.footprints import footprints
from ..loop_ir.kernel import Array, Kernel
from ..loop_ir.steps import Matmul, Part, RowBlocks, outside, touched
from ..target import Target
from .blocking import Blocking, blocking
from .regions import slab
from .schedule import Schedule, schedule

WINDOW = 12  # steps looked at on either side of a pivot
LOCAL_BYTES = 1 << 19  # what one unit may have of its own, on the stack

# How many elements of an array one step along the rows touches; None: not only its own.
Spans = dict[Array, int | None]


@record(frozen=False, eq=False)
class _Group:
    """Parts in order, and how many elements of each array one unit touches."""

    units: int
    parts: list[Part]
    target: Target
    reads: Spans = field(default_factory=dict)
    writes: Spans = field(default_factory=dict)


def row_blocks(steps: Sequence[Any], target: Target, keep: Collection[Array] = ()) -> list[Any]:
    """Group what can run block by block; the other steps stay in order. `keep` is read outside."""
    result = list(steps)
    position = 0
    while position < len(result):
        pivot = _pivot(result[position], target)
        if pivot is not None:
            position = _gather(result, position, pivot)
        position += 1
    uses = Counter(a for step in result for arrays in touched(step) for a in arrays)
    for step in result:
        if isinstance(step, RowBlocks):
            _reuse(step, uses, keep)
            _keep_local(step, uses, keep)
    return result


def _reuse(step: RowBlocks, uses: Counter[Array], keep: Collection[Array]) -> None:
    """Let a product go straight to where the kernel that reads it writes its result.

    before: c[block] = a[block] @ b; y[block] = c[block] + d
    after:  y[block] = a[block] @ b; y[block] = y[block] + d

    That is so if one stage alone reads the product, at the very point that it writes. `uses` counts
    what the steps touch, as they are afterwards too.
    """
    for k, part in enumerate(step.parts):
        if not isinstance(part.step, Matmul):
            continue
        c = part.step.c
        later = [p.step for p in step.parts[k + 1 :]]
        stages = [s for q in later if isinstance(q, Kernel) for s in q.stages]
        readers = [s for s in stages if any(a.array is c for a in s.reads)]
        if c.kind != "temp" or c in keep or len(readers) != 1:
            continue
        (stage,) = readers
        y = stage.array
        reads = [a for a in stage.reads if a.array is c]
        kernel = next(q for q in later if isinstance(q, Kernel) and stage in q.stages)
        plan = next(p.plan for p in step.parts if p.step is kernel)
        before = [p.step for p in step.parts[: k + 1]] + later[: later.index(kernel)]
        if (
            plan.tile  # tiles may do points at their ends twice, which is harmless where c is not y
            or uses[c] != 1 + len(reads)
            or stage.action != "store"
            or not stage.whole
            or (y.dtype, y.size) != (c.dtype, c.size)
            or y in kernel.local
            or any(a.array is y for s in kernel.stages for a in s.reads)
            or any(y in arrays for q in before for arrays in touched(q))
        ):
            continue
        if any(a.flat != stage.write.flat for a in reads):
            continue
        part.step.c = y
        for access in reads:
            access.array, access.index = y, stage.index
        uses[y] += uses.pop(c)


def _keep_local(step: RowBlocks, uses: Counter[Array], keep: Collection[Array]) -> None:
    """Find the arrays that live within one unit, and give them memory of a unit's size."""
    own = Counter(a for arrays in touched(step) for a in arrays)
    room = LOCAL_BYTES
    for array in sorted(dict.fromkeys(outside(step)[1]), key=lambda a: a.nbytes):
        unit = step.spans.get(array)
        if array.kind != "temp" or array in keep or own[array] != uses[array] or not unit:
            continue
        room -= unit * array.dtype.itemsize
        if room >= 0:
            step.local[array] = unit


def _pivot(step: Any, target: Target) -> _Group | None:
    """The group that a step opens, if it fixes blocks."""
    if isinstance(step, Matmul):
        cut = blocking(step, target)
        if cut.groups(step) > 1 or (step.batch > 1 and cut.blocks(step) > 1):
            return None
        length = step.m if step.batch > 1 else cut.block
        total = step.batch * step.m
    elif isinstance(step, Kernel) and _by_chunks(step):
        length, total = 1, math.prod(step.extents[: _rank(step)])
    else:
        return None
    if total <= length:
        return None
    spans = _spans(step, total)
    if spans is None:
        return None
    group = _Group(-(-total // length), [], target)
    plan = _plan(group, step, length, total)
    if plan is None:
        return None
    group.parts.append(Part(step, length, total, plan))
    _add(group, spans, length)
    return group


def _by_chunks(kernel: Kernel) -> bool:
    """Whether a kernel makes partial results, one per chunk of the rows."""
    return not kernel.ordered and any(s.partial for s in kernel.stages)


def _rank(kernel: Kernel) -> int:
    """How many of a chunked kernel's loops count chunks."""
    return next(s.partial for s in kernel.stages if s.partial)


def _gather(steps: list[Any], position: int, group: _Group) -> int:
    """Draw neighbours of the pivot at `position` into its group; returns the group's position."""
    taken: set[int] = set()
    before = range(position - 1, max(position - WINDOW, -1), -1)
    after = range(position + 1, min(position + WINDOW, len(steps)))
    for positions in (before, after):
        passed: list[Any] = []
        for k in positions:
            step = steps[k]
            if not isinstance(step, Kernel | Matmul):
                break
            if not _conflicts(step, passed) and _join(group, step, before=k < position):
                taken.add(k)
            else:
                passed.append(step)
    if not taken:
        return position
    spans = {a: n for a, n in group.writes.items() if n is not None and n == group.reads.get(a)}
    steps[position] = RowBlocks(group.units, group.parts, _grain(group), spans)
    for k in sorted(taken, reverse=True):
        del steps[k]
    return position - sum(1 for k in taken if k < position)


def _conflicts(step: Any, others: Sequence[Any]) -> bool:
    """Whether a step may not be exchanged with one of `others`."""
    reads, writes = touched(step)
    for other in others:
        read, written = touched(other)
        if not set(written).isdisjoint([*reads, *writes]) or not set(writes).isdisjoint(read):
            return True
    return False


def _join(group: _Group, step: Kernel | Matmul, *, before: bool) -> bool:
    """Make `step` part of the group, first or last, if its blocks can be the group's."""
    if any(a.apart and (a in group.writes or a in group.reads) for a in chain(*touched(step))):
        return False
    for total in _totals(step):
        spans = _spans(step, total)
        if spans is None:
            continue
        length = _length(group, spans, before)
        if isinstance(step, Matmul) and step.batch > 1 and length != step.m:
            continue
        if length and -(-total // length) == group.units and _fits(group, spans, length):
            plan = _plan(group, step, length, total)
            if plan is None:
                continue
            part = Part(step, length, total, plan)
            if before:
                group.parts.insert(0, part)
            else:
                group.parts.append(part)
            _add(group, spans, length)
            return True
    return False


def _plan(
    group: _Group, step: Kernel | Matmul, length: int, total: int
) -> Blocking | Schedule | None:
    """How a step is done unit by unit; None if its loops do not go by rows."""
    if isinstance(step, Matmul):
        cut = blocking(step, group.target)
        return replace(cut, block=min(length, step.m), group=cut.group * cut.groups(step))
    plan = schedule(step, group.target)
    if plan.mode == "outer":
        plan.split_last = len(plan.outer.vars) == 1
    each = plan.each(total)
    if each is None:
        return None
    if plan.split_last:  # each unit fills a vector, for the last vector of one moves back
        last = total - (group.units - 1) * length
        while plan.width > min(length, last) * each:
            plan.width //= 2
        plan.grain = length * each
    return plan


def _grain(group: _Group) -> int:
    """Units that a thread takes at a time; all of them if no part is worth sharing."""
    worth = False
    for part in group.parts:
        if isinstance(part.step, Matmul):
            worth = worth or part.plan.grain(part.step) < part.plan.units(part.step)
        else:
            worth = worth or part.plan.parallel
            part.plan.parallel = True  # its function does a part of the range
    return max(group.units // 64, 1) if worth else group.units


def _totals(step: Kernel | Matmul) -> list[int]:
    """The numbers of rows that a step may be said to have."""
    if isinstance(step, Matmul):
        return [step.batch * step.m] if step.batch == 1 or step.m > 1 else []
    if step.ordered or any(s.action not in ("store", "reduce") for s in step.stages):
        return []
    totals = [math.prod(step.extents[: d + 1]) for d in range(len(step.extents))]
    return list(dict.fromkeys(t for t in totals if t > 1))


def _length(group: _Group, spans: tuple[Spans, Spans], before: bool) -> int:
    """How many of the step's rows make a unit: what links it to the group says so. 0: nothing."""
    reads, writes = spans
    mine, theirs = (writes, group.reads) if before else (reads, group.writes)
    for array, span in mine.items():
        unit = theirs.get(array)
        if span and unit and unit % span == 0:
            return unit // span
    return 0


def _fits(group: _Group, spans: tuple[Spans, Spans], length: int) -> bool:
    """Whether units share no element that one of them writes."""
    reads, writes = spans

    def same(array: Array, span: int | None, others: Spans) -> bool:
        return array not in others or (span is not None and others[array] == span * length)

    return all(same(a, s, group.writes) for a, s in reads.items()) and all(
        same(a, s, group.writes) and same(a, s, group.reads) for a, s in writes.items()
    )


def _add(group: _Group, spans: tuple[Spans, Spans], length: int) -> None:
    for new, of_group in zip(spans, (group.reads, group.writes), strict=True):
        for array, span in new.items():
            unit = span * length if span is not None else None
            of_group[array] = unit if of_group.get(array, unit) == unit else None


def _spans(step: Kernel | Matmul, total: int) -> tuple[Spans, Spans] | None:
    """What one of `total` rows of a step reads and writes; None if it has no such rows."""
    accesses = footprints(step, total)
    if accesses is None:
        return None
    reads, writes = Spans(), Spans()
    for access in accesses:
        spans, span = writes if access.writes else reads, slab(access.flat, access.rows)
        spans[access.array] = span if spans.get(access.array, span) == span else None
    return reads, writes
