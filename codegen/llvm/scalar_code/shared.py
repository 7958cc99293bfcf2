"""Nests that threads share: trips of the outermost loop that touch nothing of each other.

    void @name(ptr %ctx, i64 %lo, i64 %hi)      trips lo to hi - 1; the pool calls it for one chunk
                                                after the other, on any thread

What a trip does is the same on any thread and in any order, so results do not depend on threads.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from ...journal import Refusal, too_little
from ...limits import limits
from ...loop_ir.flags import only_flags, stops
from ...loop_ir.scalar_code import (
    Body,
    Choose,
    Let,
    Repeat,
    Write,
    blocks,
    calls,
    may_fail,
    specials,
    within,
)
from ...loop_ir.steps import ScalarCode
from .independence import are_apart
from .work import own_heft

OPERATION_NS = 0.05  # of a scalar operation, about: most loops become vectors
ALONE_NS = 0.3  # in a loop that may end in any iteration, which does not
CALL = 12  # operations that a call takes, about
FEW = 16  # trips of a loop that nobody can count
HALF = 512  # of one whose count is known when it begins, half of the most, but no more than this
CHUNKS = 64  # at the most: enough for threads that run at different speeds
NEIGHBOURS = 16  # trips that may write to one line of the cache, or be lanes of vectors


UNKNOWN = Refusal(
    "how often the outermost loop runs is known only at run time", "loop over range(x.shape[0])"
)
CARRIES = Refusal(
    "iterations of the outermost loop hand numbers on to each other",
    "write what each finds to an array of its own, and sum that afterwards; or use jt.prange",
)
MEETS = Refusal(
    "an iteration of the outermost loop may touch what another one writes, or may fail",
    "where iterations are independent, say so: for i in jt.prange(n)",
)
BESIDE = Refusal(
    "there is other code beside the outermost loop", "make the loop a function of its own"
)


def shared_loop(step: ScalarCode, lanes: Callable[[Repeat], int]) -> tuple[Repeat, int] | Refusal:
    """The loop whose trips threads share, and how many they take at a time; or why there is none.

    `lanes` tells how many trips run side by side: what a thread takes begins and ends between those.
    """
    loops = [s for s in step.body.statements if isinstance(s, Repeat)]
    loop = loops[0] if len(loops) == 1 else None
    place = 0 if loop is None else step.body.statements.index(loop)
    before, after = step.body.statements[:place], step.body.statements[place + 1 :]
    if loop is None or not all(isinstance(s, Let) for s in before) or not stops(after, loop):
        return CARRIES if any(s.carries for s in loops) else BESIDE
    if loop.counter is None or loop.trips is not None or loop.condition is not None:
        return UNKNOWN
    if not only_flags(loop):
        return CARRIES
    ns = loop.length * (_nanoseconds(loop.body) + OPERATION_NS * CALL * len(calls(loop.body)))
    chunks = min(int(ns / limits().chunk_ns), CHUNKS)
    if ns < limits().parallel_ns or chunks < 2:
        return too_little()
    multiple = math.lcm(NEIGHBOURS, lanes(loop) or 1)
    grain = -(-loop.length // (chunks * multiple)) * multiple
    if grain >= loop.length:
        return too_little()
    if not _may_be_anywhere(loop):
        return MEETS
    written = {s.array for b in blocks(loop.body) for s in b.statements if isinstance(s, Write)}
    lets = (value for s in before if isinstance(s, Let) for value in s.values)
    firsts = within([*lets, *loop.start])
    if any(node.op == "load" and node.attr.array in written for node in firsts):
        return MEETS
    return loop, grain


def _nanoseconds(block: Body, operation: float = OPERATION_NS) -> float:
    """What one run of a block takes, about, an operation outside of its loops taking so long."""
    total = operation * own_heft(block)
    for s in block.statements:
        if isinstance(s, Repeat):
            trips, each = s.length if s.counter is not None else FEW, operation
            if s.condition is not None:
                trips, each = min(trips, FEW), ALONE_NS
            elif s.trips is not None:
                trips = min(trips // 2 + 1, HALF)
            inner = (s.body,) if s.test is None else (s.body, s.test)
            total += trips * sum(_nanoseconds(b, each) for b in inner)
        elif isinstance(s, Choose):
            total += max(_nanoseconds(b, operation) for b in s.blocks)
    return total


def _may_be_anywhere(loop: Repeat) -> bool:
    """Whether no trip touches what another trip writes, or can fail; where the user says that trips are
    independent, it does not matter which of those fails that do."""
    if any(specials(loop.body)) or (not loop.independent and may_fail(loop.body)):
        return False
    return are_apart(loop)
