"""The backward loop of a `while`, which all ways of checkpointing share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...autodiff.cotangents import accumulated
from ...autodiff.residuals import Split
from ...autodiff.shared_tapes import with_shared_tape
from ...build import Builder
from ...graph import Graph, Op, Value
from ...opdef import OPS
from ...record import record
from ...types import I64
from .loops import Flow, counters, flow, invariant_carries, parted, tensors


@record
class Plan:
    """How a loop is differentiated, whatever is kept.

    `backward` of the parts takes the values at `free` of the op's operands and those of the carries
    that count, in the order of positions, what is saved, the cotangents of `flow.carries`, and the
    carries `undone` as the iteration has left them; it gives the cotangents of `flow.consts`, then of
    `flow.carries`, and those carries as they were before it.
    """

    flow: Flow
    first: int  # the position of the first carry
    free: list[int]
    counting: dict[int, int]  # carries that count and are read, and their steps
    undone: list[int]  # carries whose updates are taken back (see `autodiff.undo`)
    parts: Split

    @property
    def has_tape(self) -> bool:
        """Whether anything is kept of an iteration."""
        return bool(self.parts.saved) or self.parts.shares_tape


def make_plan(
    op: Op, wanted: Sequence[bool], needed: Sequence[bool], counting: bool = True
) -> Plan:
    """What a loop's forward part keeps and its backward part computes.

    With `counting` the backward loop counts back what the forward loop counts, and takes back updates.
    """
    consts, carries = op.attrs["consts"], len(op.results)
    body = op.regions[1]
    active = flow(body, consts, carries, wanted, needed)
    still = [consts + i for i in invariant_carries(body, consts, carries)]
    free = [*range(consts), *tensors(body.params, still)]
    wrt = active.consts + [consts + i for i in active.carries]
    steps = counters(body, consts, carries) if counting else {}
    known = [*free, *(consts + i for i in steps)]
    moving = {i: consts + i for i in range(carries) if counting and consts + i not in known}
    parts, undone, _ = parted(body, wrt, active.carries, known, free, moving)
    parts = with_shared_tape(parts) if counting else parts
    steps = {i: step for i, step in steps.items() if consts + i in parts.free}
    free = [i for i in free if i in parts.free]
    return Plan(active, consts, free, steps, undone, parts)


@record
class Residuals:
    """What the forward loop leaves behind. `memory` is as the way of checkpointing has it."""

    plan: Plan
    count: Value  # iterations
    memory: Any
    ends: Sequence[Value] = ()  # what the carries that count are after the loop
    left: Sequence[Value] = ()  # what those are whose updates are taken back

    @property
    def undone(self) -> dict[int, int]:
        """The results from which the backward part comes back to operands."""
        return {i: self.plan.first + i for i in self.plan.undone}


Test = Callable[[Builder, list[Value], list[Value]], Value]
Iteration = Callable[[Builder, list[Value], list[Value]], list[Value]]


def run_loop(
    b: Builder,
    fixed: Sequence[Value],
    state: Sequence[Value],
    test: Test,
    iteration: Iteration,
    name: str,
) -> list[Value]:
    """Append a `while`: `test` and `iteration` build its regions from the fixed values and the state."""
    regions = []
    for build, label in ((test, "test"), (iteration, name)):
        graph = Graph(label)
        params = [graph.add_param(v.type, v.name) for v in [*fixed, *state]]
        outputs = build(Builder(graph, b.loc), params[: len(fixed)], params[len(fixed) :])
        graph.outputs = [outputs] if isinstance(outputs, Value) else list(outputs)
        regions.append(graph)
    operands = [*fixed, *state]
    return list(b.append(OPS["while"], operands, {"consts": len(fixed)}, regions).results)


def unwind(
    b: Builder,
    plan: Plan,
    free: Sequence[Value],
    count: Value,
    tape: Value | None,
    cts: Sequence[Value],
    sums: Sequence[Value],
    ends: Sequence[Value] = (),
    left: Sequence[Value] = (),
) -> tuple[list[Value], list[Value], list[Value]]:
    """The backward loop: `count` iterations, a record of `tape` for each.

    Gives the cotangents of the carry before these iterations, and the sums with what the iterations
    add to the cotangents of the consts. `free` are the values at `plan.free`, `ends` those of the
    carries that count after these iterations, `left` those of `plan.undone`, of which it also gives
    what they were before.
    """
    types = tuple(v.type for v in plan.parts.saved)
    top = [] if tape is None else [tape]
    n = len(ends)

    def more(inner: Builder, of_free: list[Value], state: list[Value]) -> Value:
        return inner.op("gt", state[0], inner.const(0, I64))

    def iteration(inner: Builder, of_free: list[Value], state: list[Value]) -> list[Value]:
        still, *rest = state
        steps = plan.counting.values()
        counts = [
            inner.op("sub", v, inner.const(step, I64))
            for v, step in zip(rest[:n], steps, strict=True)
        ]
        rest = rest[n:]
        saved: list[Value] = []
        below: list[Value] = []
        if top:
            popped = inner.append(OPS["tape_pop"], [rest.pop(0)], {"types": types}).results
            below, saved = [*popped[:1]], [*popped[1:]]
        still = inner.op("sub", still, inner.const(1, I64))
        values = [*in_order(plan, of_free, counts), *saved]
        shared = below if plan.parts.shares_tape else []
        new = step_back(inner, plan, values, *grouped(rest), shared)
        if shared:
            below = [new.pop()]
        return [still, *counts, *below, *new]

    def grouped(values: list[Value]) -> tuple[list[Value], list[Value], list[Value]]:
        first, second = len(cts), len(cts) + len(sums)
        return values[:first], values[first:second], values[second:]

    state = [count, *ends, *top, *cts, *sums, *left]
    out = run_loop(b, free, state, more, iteration, plan.parts.backward.name)
    return grouped(out[1 + n + len(top) :])


def in_order(plan: Plan, free: Sequence[Value], counts: Sequence[Value]) -> list[Value]:
    """What the backward part takes first: the values at `plan.free`, and those of the counters."""
    first = plan.first
    at = dict(zip(plan.free, free, strict=True))
    at.update(zip((first + i for i in plan.counting), counts, strict=True))
    return [at[i] for i in sorted(at)]


def step_back(
    b: Builder,
    plan: Plan,
    values: Sequence[Value],
    cts: Sequence[Value],
    sums: Sequence[Value],
    left: Sequence[Value] = (),
    tape: Sequence[Value] = (),
) -> list[Value]:
    """The backward part of one iteration: the same of what was before it.

    `values` are the free and the saved values, `left` are the arrays that are taken back, `tape` is
    one that loops inside share.
    """
    grads = b.inline(plan.parts.backward, [*values, *cts, *left, *tape])
    before = grads[len(sums) :]
    return [*before[: len(cts)], *accumulated(b, sums, grads), *before[len(cts) :]]
