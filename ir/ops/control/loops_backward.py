"""The backward loop of a `while`, which all ways of checkpointing share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...autodiff.cotangents import accumulate
from ...autodiff.residuals import Split, split
from ...autodiff.transform import vjp_graph
from ...build import Builder
from ...graph import Graph, Op, Value
from ...opdef import OPS
from ...record import record
from ...types import I64
from .loops import Flow, flow, invariant_carries, tensors


@record
class Plan:
    """How a loop is differentiated, whatever is kept.

    `backward` of the parts takes the values at `free` of the op's operands, what is saved, and the
    cotangents of `flow.carries`; it gives the cotangents of `flow.consts`, then of `flow.carries`.
    """

    flow: Flow
    free: list[int]
    parts: Split


def make_plan(op: Op, wanted: Sequence[bool], needed: Sequence[bool]) -> Plan:
    """What a loop's forward part keeps and its backward part computes."""
    consts, carries = op.attrs["consts"], len(op.results)
    body = op.regions[1]
    active = flow(body, consts, carries, wanted, needed)
    still = [consts + i for i in invariant_carries(body, consts, carries)]
    free = [*range(consts), *tensors(body.params, still)]
    joint = vjp_graph(body, active.consts + [consts + i for i in active.carries], active.carries)
    return Plan(active, free, split(joint, consts + carries, carries, free, free))


@record
class Residuals:
    """What the forward loop leaves behind. `memory` is as the way of checkpointing has it."""

    plan: Plan
    count: Value  # iterations
    memory: Any


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
) -> tuple[list[Value], list[Value]]:
    """The backward loop: `count` iterations, a record of `tape` for each.

    Gives the cotangents of the carry before these iterations, and the sums with what the iterations
    add to the cotangents of the consts. `free` are the values at `plan.free`.
    """
    types = tuple(v.type for v in plan.parts.saved)
    top = [] if tape is None else [tape]

    def more(inner: Builder, of_free: list[Value], state: list[Value]) -> Value:
        return inner.op("gt", state[0], inner.const(0, I64))

    def iteration(inner: Builder, of_free: list[Value], state: list[Value]) -> list[Value]:
        left, *rest = state
        saved: list[Value] = []
        below: list[Value] = []
        if top:
            tape, *saved = inner.op("tape_pop", rest.pop(0), types=types)
            below = [tape]
        left = inner.op("sub", left, inner.const(1, I64))
        new_cts, new_sums = step_back(
            inner, plan, [*of_free, *saved], rest[: len(cts)], rest[len(cts) :]
        )
        return [left, *below, *new_cts, *new_sums]

    out = run_loop(b, free, [count, *top, *cts, *sums], more, iteration, plan.parts.backward.name)
    out = out[1 + len(top) :]
    return out[: len(cts)], out[len(cts) :]


def step_back(
    b: Builder,
    plan: Plan,
    values: Sequence[Value],
    cts: Sequence[Value],
    sums: Sequence[Value],
) -> tuple[list[Value], list[Value]]:
    """The backward part of one iteration; `values` are the free and the saved values."""
    grads = b.inline(plan.parts.backward, [*values, *cts])
    added = grads[: len(sums)]
    totals = [accumulate(b, s, g) for s, g in zip(sums, added, strict=True)]
    return grads[len(sums) :], totals
