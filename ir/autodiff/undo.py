"""Undo: a region that updates an array in place gives it back, backwards, as it was at the beginning.

    forward:   old = x[i];  y = x with x[i] = v         saves one element
    backward:  x = y with y[i] = old                    in the memory of y

What a backward part reads of an array whole (a loop in it does, say) need not be kept whole for each
iteration then: the array that the loop leaves is taken back, write by write, while cotangents are.

A *trail* is how an output of a region comes from a parameter: by updates, through branches that
update, and through loops that undo their own updates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..build import Builder
from ..graph import Graph, Op, Value
from ..record import record
from ..types import TensorType

FEW = 4  # the part of an array from which the elements that an iteration writes are not few

Offers = Mapping[tuple[Op, int], int]


@record
class Trail:
    """The output, the parameter, and what lies between, from the last to the first: which result of
    each op comes from which operand."""

    output: int
    param: int
    steps: list[tuple[Op, int, int]]


def find_trail(graph: Graph, output: int, offers: Offers) -> Trail | None:
    """How the output comes from a parameter, None if in no such way.

    `offers` says of results of loops which operands their backward parts give back.
    """
    v = graph.outputs[output]
    steps = []
    while v.op is not None:
        operand = _before(v.op, v.index, offers)
        if operand is None:
            return None
        steps.append((v.op, v.index, operand))
        v = v.op.operands[operand]
    return Trail(output, v.index, steps)


def _before(op: Op, result: int, offers: Offers) -> int | None:
    """Which operand a result was before the op has updated it."""
    if op.definition.updates:
        return 0
    if op.name == "cond":
        trails = branch_trails(op, result)
        return trails[0].param + 1 if trails else None
    return offers.get((op, result))


def branch_trails(op: Op, result: int) -> list[Trail]:
    """How the branches of a `cond` update an operand, if they all update the same one."""
    trails = [find_trail(region, result, {}) for region in op.regions]
    found = [trail for trail in trails if trail is not None]
    same = len(found) == len(trails) and len({trail.param for trail in found}) == 1
    return found if same else []


def trails_worth(
    body: Graph, positions: Mapping[int, int], saved: Sequence[Value], offers: Offers
) -> list[Trail]:
    """Of the outputs whose parameters are at `positions` those that are better undone than `saved`."""
    kept = {v.type for v in saved}
    found = []
    for output, param in positions.items():
        type = body.params[param].type
        if type not in kept or not isinstance(type, TensorType):
            continue
        trail = find_trail(body, output, offers)
        if trail is None or trail.param != param or not trail.steps:
            continue
        if _written(trail) * FEW <= type.nbytes:
            found.append(trail)
    return found


def _written(trail: Trail) -> int:
    """How many bytes its updates write, those of loops not counted: loops have kept them already."""
    ops = [op for op, _, _ in trail.steps]
    inner = [i for op in ops if op.name == "cond" for region in op.regions for i in region.walk()]
    return sum(op.operands[1].nbytes for op in [*ops, *inner] if op.definition.updates)


class Undoing:
    """The arrays that a graph's backward part takes back, while it is built, from the last op to the
    first: `now` has those values of the forward part that are there again at this point."""

    def __init__(self, graph: Graph, new: Graph, trails: Sequence[Trail]) -> None:
        self.graph, self.trails = graph, trails
        self.offers: dict[tuple[Op, int], int] = {}
        self.now: dict[Value, Value] = {}
        self._ends = [new.add_param(graph.outputs[trail.output].type) for trail in trails]
        self._old: dict[Op, Value] = {}
        self._steps: dict[Op, dict[int, int]] = {}
        for trail in trails:
            for op, result, operand in trail.steps:
                self._steps.setdefault(op, {})[result] = operand

    def concerns(self, op: Op) -> bool:
        """Whether the op updates an array that is asked back."""
        return op in self._steps

    # The forward part.

    def asked(self, op: Op) -> tuple[dict[int, int], ...]:
        """What a forward rule is told: results, and the operands that the backward part is to give."""
        return (self._steps[op],) if op in self._steps else ()

    def offer(self, op: Op, residuals: Any) -> None:
        """Note what the backward part of an op with regions gives back."""
        for result, operand in getattr(residuals, "undone", {}).items():
            self.offers[op, result] = operand

    def keep(self, b: Builder, op: Op, here: Op) -> None:
        """Before an update: read what it replaces."""
        if op in self._steps and op.definition.overwritten is not None:
            b.loc = op.loc
            self._old[op] = op.definition.overwritten(b, here)

    # The backward part. `here` is the op as it stands in the new graph.

    def begin(self, env: Mapping[Value, Value]) -> None:
        """All ops have run."""
        for trail, end in zip(self.trails, self._ends, strict=True):
            v = self.graph.outputs[trail.output]
            self.now[env.get(v, v)] = end

    def take_back(self, b: Builder, op: Op, here: Op) -> None:
        """Make the operand of an update that is asked back in place of its result."""
        if op in self._old:
            attrs = {**op.attrs, "combine": "set"} if "combine" in op.attrs else op.attrs
            after = self.now[here.result]
            self.now[here.operands[0]] = b.op(
                op.name, after, self._old[op], *here.operands[2:], **attrs
            )

    def seen(self, here: Op) -> Op:
        """The op over the values that are there now."""
        if self.now.keys().isdisjoint(here.operands):
            return here
        view = here.with_operands([self.now.get(v, v) for v in here.operands])
        view.results = here.results
        return view

    def after(self, op: Op, results: Sequence[Value]) -> tuple[dict[int, Value], ...]:
        """What a backward rule is told that gives operands back: its results, where they are now."""
        indices = [result for asked, result in self.offers if asked is op]
        there = {i: self.now[results[i]] for i in indices if results[i] in self.now}
        return (there,) if there else ()

    def given(self, op: Op, here: Op, parts: Sequence[Value | None]) -> None:
        """Note what a backward rule has given back, behind the cotangents of the operands."""
        operands = [operand for (of, _), operand in self.offers.items() if of is op]
        for operand, v in zip(operands, parts[len(op.operands) :], strict=True):
            if v is not None:
                self.now[here.operands[operand]] = v

    def beginnings(self) -> list[Value]:
        """The arrays where the trails begin."""
        return [self.now[self.graph.params[trail.param]] for trail in self.trails]
