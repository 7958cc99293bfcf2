"""Nests that threads share: trips of the outermost loop that touch nothing of each other.

    void @name(ptr %ctx, i64 %lo, i64 %hi)      trips lo to hi - 1; the pool calls it for one chunk
                                                after the other, on any thread

What a trip does is the same on any thread and in any order, so results do not depend on threads.
"""

from __future__ import annotations

from ...journal import Refusal
from ...limits import limits
from ...loop_ir.scalar_code import (
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
from .work import heft

OPERATION_NS = 0.05  # of a scalar operation, about: most loops become vectors
CALL = 12  # operations that a call takes, about
FEW = 16  # trips of a loop that nobody can count
CHUNKS = 64  # at the most: enough for threads that run at different speeds
NEIGHBOURS = 16  # trips that may write to one line of the cache, or be lanes of vectors


UNKNOWN = Refusal(
    "how often the outermost loop runs is known only at run time", "loop over range(x.shape[0])"
)
CARRIES = Refusal(
    "iterations of the outermost loop hand numbers on to each other",
    "write what each finds to an array of its own, and sum that afterwards; or use jt.prange",
)
LITTLE = Refusal("it takes less time than handing it to threads", "nothing: it would be slower")
MEETS = Refusal(
    "an iteration of the outermost loop may touch what another one writes, or may fail",
    "where iterations are independent, say so: for i in jt.prange(n)",
)
BESIDE = Refusal(
    "there is other code beside the outermost loop", "make the loop a function of its own"
)


def shared_loop(step: ScalarCode) -> tuple[Repeat, int] | Refusal:
    """The loop whose trips threads share, and how many they take at a time; or why there is none."""
    *before, loop = step.body.statements
    if not isinstance(loop, Repeat) or not all(isinstance(s, Let) for s in before):
        loops = [s for s in step.body.statements if isinstance(s, Repeat)]
        return CARRIES if any(s.carries for s in loops) else BESIDE
    if loop.counter is None or loop.trips is not None or loop.condition is not None:
        return UNKNOWN
    if loop.carries:
        return CARRIES
    ns = OPERATION_NS * loop.length * (heft(loop.body, FEW) + CALL * len(calls(loop.body)))
    chunks = min(int(ns / limits().chunk_ns), CHUNKS)
    if ns < limits().parallel_ns or chunks < 2:
        return LITTLE
    grain = -(-loop.length // (chunks * NEIGHBOURS)) * NEIGHBOURS
    if grain >= loop.length:
        return LITTLE
    if not _may_be_anywhere(loop):
        return MEETS
    written = {s.array for b in blocks(loop.body) for s in b.statements if isinstance(s, Write)}
    firsts = within(value for s in before if isinstance(s, Let) for value in s.values)
    if any(node.op == "load" and node.attr.array in written for node in firsts):
        return MEETS
    return loop, grain


def _may_be_anywhere(loop: Repeat) -> bool:
    """Whether no trip touches what another trip writes, or can fail; where the user says that trips are
    independent, it does not matter which of those fails that do."""
    if any(specials(loop.body)) or (not loop.independent and may_fail(loop.body)):
        return False
    return are_apart(loop)
