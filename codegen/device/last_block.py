"""Small kernels that follow another one, done by its last block in the same launch.

    before: p[c] = sum of chunk c, a block for each;     s = sum of p, a launch of one block
    after:  p[c] = ...; and the block that finds that all others are done sums p

What the last block does is the same whichever it is, so results are. Blocks count themselves in one word
of the program's counters, which the last one sets to 0 again.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...ir.record import replace
from ..cuda.emitter import GLOBAL, ThreadBuilder
from ..cuda.lanes import LaneEmitter
from ..cuda.program import Launch, Ref
from ..cuda.scan_plan import row_plan
from ..cuda.schedule import MOST_THREADS, Schedule, row_of, scatters, schedule
from ..cuda.target import CudaTarget
from ..llvm.builder import Value, constant
from ..loop_ir.kernel import Array, Kernel
from ..loop_ir.steps import touched
from ..program.entry import readable
from ..schedule.signature import Signature, signature
from ..schedule.sort_blocks import U32
from .emitters import emitter_for, ops_of

if TYPE_CHECKING:
    from .build import ProgramBuilder

SMALL = 64  # points for each thread that a block does alone
MOST = 8  # kernels that follow one


def with_tails(builder: ProgramBuilder, steps: Sequence[Any]) -> tuple[Launch | None, int]:
    """One launch for the first steps, and how many they are. None: the first step stands alone."""
    candidates = _followers(steps)
    if not candidates:
        return None, 1
    step = steps[0]
    own = signature(step)
    plan = builder.plan(step, own)
    kernels = [(step, own, plan)]
    for kernel in candidates:
        own = signature(kernel)
        small = _tail_plan(kernel, own, builder.aligned(own), builder.target, plan.threads)
        if small is None:
            break
        kernels.append((kernel, own, small))
    if len(kernels) == 1:
        return None, 1
    first, *others = (
        emitter_for(p)(k, s, p, builder.target, builder.definitions, builder.aligned(s))
        for k, s, p in kernels
    )
    first.body()
    _follow(first.b, others, plan.blocks)
    alignments = [n for _, s, _ in kernels for n in builder.aligned(s).values()]
    name = builder.emitted(first.b, readable(ops_of(step)), plan.threads, alignments)
    builder.report(step, plan, name, tuple(op for k, _, _ in kernels for op in ops_of(k)))
    arguments = [
        builder.ref(a, s.origins[a] * a.dtype.itemsize) for _, s, _ in kernels for a in s.arrays
    ]
    if plan.blocks > 1:
        builder.counter_words = 1
        arguments.append(Ref("counters"))
    if first.b.reports:
        arguments.append(Ref("status"))
    for kernel, *_ in kernels:
        kernel.name = name
    return Launch(name, (plan.blocks, 1, 1), tuple(arguments)), len(kernels)


def _followers(steps: Sequence[Any]) -> list[Kernel]:
    """Small kernels behind the first step, a kernel: each reads what one before it writes."""
    kernels: list[Kernel] = []
    if not isinstance(steps[0], Kernel):
        return kernels
    written = set(touched(steps[0])[1])
    for step in steps[1 : MOST + 1]:
        if not isinstance(step, Kernel) or step.ordered or _points(step) > SMALL * MOST_THREADS:
            break
        if any(s.action in ("update", "scatter") for s in step.stages):
            break
        reads, writes = touched(step)
        if written.isdisjoint(reads):
            break
        written.update(writes)
        kernels.append(step)
    return kernels


def _points(kernel: Kernel) -> int:
    return math.prod(kernel.extents) * max(math.prod(nest.extents) for nest in kernel.nests)


def _tail_plan(
    kernel: Kernel,
    own: Signature,
    alignments: Mapping[Array, int],
    target: CudaTarget,
    threads: int,
) -> Schedule | None:
    """How one block of so many threads does all of a kernel; None if it should not."""
    points = math.prod(kernel.extents)
    if _points(kernel) > SMALL * threads:
        return None
    plan = schedule(kernel, own, alignments, target)
    if scatters(plan) or plan.cross is not None:
        return None
    if plan.row is not None:
        team = threads if plan.row.team > target.WARP else min(plan.row.team, threads)
        row = row_of(kernel, target, team)
        if row is None or (row.held, row.passed) != (plan.row.held, plan.row.passed):
            return None
        if points > threads // team:
            return None
        return replace(plan, row=row, threads=threads, blocks=1)
    if plan.scan is not None and not plan.scan.down:
        scan = row_plan(kernel, plan.lanes, threads)
        return None if scan is None else replace(plan, scan=scan, threads=threads, blocks=1)
    if plan.scan is not None or plan.depth > 1:
        return plan if (plan.threads, plan.blocks) == (threads, 1) else None
    return replace(plan, threads=threads, blocks=1) if plan.units <= threads else None


def _follow(b: ThreadBuilder, tails: Sequence[LaneEmitter], blocks: int) -> None:
    """Let the last of so many blocks do what `tails` emit, once `b` has its own kernel."""
    if blocks == 1:
        _emit(b, tails)
    else:
        with b.when(_is_last(b, blocks)):
            _emit(b, tails)


def _is_last(b: ThreadBuilder, blocks: int) -> Value:
    """Whether all other blocks are done; what they wrote is seen then."""
    ticket = b.parameter(GLOBAL, "ticket", align=4)
    flag = b.in_shared(U32, b.shared(U32, 1), 0)
    b.barrier()
    with b.when(b.thread().eq(0)):
        b.nvvm("llvm.nvvm.membar.gl")
        done = b.update_atomic("add", ticket, constant("i32", 1), 'syncscope("device") monotonic')
        last = done.eq(blocks - 1)
        with b.when(last):
            b.store(constant("i32", 0), ticket, align=4)
        b.nvvm("llvm.nvvm.membar.gl")
        b.store(last.zext("i32"), flag, align=4)
    b.barrier()
    return b.load("i32", flag, align=4).ne(0)


def _emit(b: ThreadBuilder, tails: Sequence[LaneEmitter]) -> None:
    for tail in tails:
        tail.b.code, tail.b.globals = b.code, b.globals
        tail.b.declarations, tail.b.alone = b.declarations, True
        first = len(b.arrays)
        tail.b.pointers.update(
            {a: tail.b.named(GLOBAL, f"p{first + k}") for k, a in enumerate(tail.b.arrays)},
        )
        b.barrier()
        tail.body()
        b.reports = b.reports or tail.b.reports
        # Other blocks write what it reads, and it may write where the arrays of others were.
        b.arrays += tail.b.arrays
        b.passed |= {*tail.b.arrays}
        b.written |= tail.b.written
