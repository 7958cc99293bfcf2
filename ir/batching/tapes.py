"""Tapes of many examples: how records stay in step where examples part.

All examples share one tape. A record holds the batched tensors of one iteration for all of them,
and last a bool[size]: who was *idle*, because the iteration did not count for it. Example 0 makes
three iterations and example 1 one:

    forward     0 of both | 1 of example 0 | 2 of example 0     records, the last two with 1 idle
    backward    2 of example 0 | 1 of example 0 | 0 of both

The loop that pops goes on while any example wants to. What it pops says whose record it is, and
the others wait, with their carries unchanged, until their own comes up. As every example pops its
records in the reverse order of its pushes, that is all there is to it. The zeros that an empty tape
gives count for everyone.

A `cond` may push in one branch what the branch of another `cond` with the same index pops. There the
tape holds one record, of a tape per branch, so that it does not matter whether the index of either is
batched.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..graph import Graph, Op, Value
from ..types import BOOL, TAPE, TensorType
from .transform import BatchBuilder, Batched, Marks, batched_type


def batch_new(b: BatchBuilder, op: Op, operands: Sequence[Value], batched: Marks) -> Batched:
    """One tape serves all examples."""
    return [b.tape_new()], [True]


def batch_push(b: BatchBuilder, op: Op, operands: Sequence[Value], batched: Marks) -> Batched:
    """A record of all examples, and which of them do not take part."""
    idle = b.full((b.size,), False, BOOL) if b.active is None else b.invert(b.active)
    return [b.tape_push(*b.spread_all(operands, batched), idle)], [True]


def batch_pop(
    b: BatchBuilder, op: Op, operands: Sequence[Value], batched: Sequence[bool]
) -> Batched:
    """From here on, in this iteration, only those count whose record it is."""
    types = [batched_type(t, b.size) for t in op.attrs["types"]]
    *results, idle = b.tape_pop(*operands, types=(*types, TensorType((b.size,), BOOL)))
    if b.active is not None:
        b.active = b.bitwise_and(b.active, b.invert(idle))
    return results, [True] * len(results)


# The tapes of cond


def per_branch(b: BatchBuilder, tape: Value, count: int) -> tuple[Value, list[Value]]:
    """What is below the record of a tape per branch, and these tapes."""
    below, *tapes = b.tape_pop(tape, types=(TAPE,) * count)
    return below, tapes


def source_of(region: Graph, output: Value) -> Value | None:
    """The parameter of a branch that a tape among its outputs began as; None for a new tape."""
    value = output
    while value.op is not None and value.op.definition.family == "tape":
        value = value.op.operands[0]
    return value if value in region.params else None
