"""The rewriting engine: applies rules to each op of a graph, in one walk in execution order.

A `Rule` looks at one op whose operands are already rewritten, and gives the values that stand for
its results, or None. It builds with a `Rewriter`, whose every new op is offered to the rules in
turn, so one walk is enough for rules that feed each other. Each rule must lead to something
smaller or more canonical, never back.

A rule is filed under the op's name and, where it looks through an operand, under what it must find
there (its *anchor*), so an op only meets the rules that have a chance.

What no rule replaces is numbered: an op that was already computed from the same values is not
appended again. So an empty table of rules is common subexpression elimination.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

from ...build import Builder
from ...graph import Graph, Op, Value
from ...graph import uniform as uniform
from ...opdef import OPS, Commutes, OpDef
from ...record import record
from ...types import is_linear
from .hash import attributes_key, canonical_key

Replacement = Value | Sequence[Value] | None

# Anchors beside names of ops:
UNIFORM = "uniform"  # all elements of the operand are one known constant (see `literal_key`, too)
SAME = "same"  # operands 0 and 1 are the same value


_BITS = Commutes.BITS


@record
class Rule:
    """`apply(b, op)` is tried on ops called `op`, or of that family if it reads `family:name`.

    `anchor` is (operand position, what is there), or None: the name of the op that produces the
    operand, UNIFORM or SAME, or the `literal_key` of its one element.
    """

    op: str
    anchor: tuple[int, Hashable] | None
    apply: Callable[[Rewriter, Op], Replacement]


def on(op: str, apply: Callable[[Rewriter, Op], Replacement], *, of: str = "", at: int = 0) -> Rule:
    """A rule written as a function; `of` names the producer that operand `at` must have."""
    return Rule(op, (at, of) if of else None, apply)


class RuleTable:
    """Rules, filed by op and anchor. `table[name]` is (rules without anchor, rules by anchor)."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self.by_op: dict[str, tuple[list[Rule], dict[tuple[int, Hashable], list[Rule]]]] = {}
        for rule in rules:
            for name in _expand(rule.op):
                plain, anchored = self.by_op.setdefault(name, ([], {}))
                if rule.anchor is None:
                    plain.append(rule)
                else:
                    anchored.setdefault(rule.anchor, []).append(rule)


def _expand(name: str) -> list[str]:
    if not name.startswith("family:"):
        if name not in OPS:
            raise KeyError(f"a rule for an op that does not exist: {name!r}")
        return [name]
    family = name.removeprefix("family:")
    return [n for n, d in OPS.items() if d.family == family]


def rewrite(graph: Graph, table: RuleTable) -> Graph:
    """`graph` with the rules applied everywhere, regions included; itself if none applied."""
    b = Rewriter(Graph(graph.name), table)
    b.graph.params = list(graph.params)
    for op in graph.ops:
        b.visit(op)
    if not b.env and all(a is b for a, b in zip(graph.ops, b.graph.ops, strict=True)):
        return graph
    b.graph.outputs = [b.env.get(v, v) for v in graph.outputs]
    return b.graph


class Rewriter(Builder):
    """A Builder whose new ops are simplified by the rules before they are appended."""

    def __init__(self, graph: Graph, table: RuleTable) -> None:
        super().__init__(graph)
        self.table = table
        self.env: dict[Value, Value] = {}  # values of the input graph that were replaced
        self.seen: dict[Hashable, Op] = {}  # the ops appended so far, by what they compute
        self.notes: dict[str, Any] = {}  # what rules remember in one walk

    def visit(self, op: Op) -> None:
        """Take over one op of the input graph, rewritten."""
        new = op
        env = self.env
        if env and not env.keys().isdisjoint(op.operands):
            new = op.with_operands([env.get(v, v) for v in op.operands])
        if op.regions:
            regions = tuple(rewrite(region, self.table) for region in op.regions)
            if any(a is not b for a, b in zip(regions, op.regions, strict=True)):
                new = op.with_operands(new.operands, regions)
        self.loc = op.loc
        before = len(self.graph.ops)
        for old, value in zip(op.results, self.settle(new), strict=True):
            if value is not old:
                env[old] = value
                built_here = len(self.graph.ops) > before and value.op is self.graph.ops[-1]
                if old.name and built_here and not value.name:
                    value.name = old.name

    def settle(self, op: Op) -> Sequence[Value]:
        """The values that stand for op's results: by a rule, or else by appending it."""
        replacement = self._apply_rules(op)
        if replacement is None:
            key = _key(op)
            first = op if key is None else self.seen.setdefault(key, op)
            if first is op:
                self.graph.ops.append(op)
            return first.results
        values = (replacement,) if isinstance(replacement, Value) else replacement
        for old, value in zip(op.results, values, strict=True):
            assert old.type == value.type, f"a rule for {op!r} changed its type to {value.type}"
        return values

    def _apply_rules(self, op: Op) -> Replacement:
        rules = self.table.by_op.get(op.definition.name)
        if rules is None:
            return None
        plain, anchored = rules
        if anchored:
            for anchor in _anchors(op):
                for rule in anchored.get(anchor, ()):
                    replacement = rule.apply(self, op)
                    if replacement is not None:
                        return replacement
        for rule in plain:
            replacement = rule.apply(self, op)
            if replacement is not None:
                return replacement
        return None

    def op(self, name: str, *operands: Value, regions: Sequence[Graph] = (), **attrs: Any) -> Any:
        results = self.settle(self.make(OPS[name], operands, attrs, regions))
        return results[0] if len(results) == 1 else results

    def append(
        self,
        definition: OpDef,
        operands: Sequence[Value],
        attrs: dict[str, Any] | None = None,
        regions: Sequence[Graph] = (),
    ) -> Op:
        raise TypeError("a rule builds with b.op(...), which may give back an existing value")

    def copy(self, op: Op, env: dict[Value, Value]) -> Op:
        """Append a simplified copy of `op`, and record what stands for its results in `env`."""
        new = op.with_operands([env[v] for v in op.operands])
        with self.at(op.loc):
            env.update(zip(op.results, self.settle(new), strict=True))
        return new


def _anchors(op: Op) -> list[tuple[int, Hashable]]:
    """What rules can hold on to in `op`'s operands."""
    operands = op.operands
    anchors: list[tuple[int, Hashable]] = []
    for i, operand in enumerate(operands):
        if operand.op is not None:
            name = operand.op.definition.name
            anchors.append((i, name))
            if name == "constant" or name == "broadcast":
                element = uniform(operand)
                if element is not None:
                    anchors += [(i, literal_key(element.item())), (i, UNIFORM)]
    if len(operands) == 2 and operands[0] is operands[1]:
        anchors.append((0, SAME))
    return anchors


def literal_key(element: bool | int | float) -> Hashable:
    """Equal for two elements only if they are the same number; bools and -0.0 are on their own."""
    if isinstance(element, bool):
        return ("bool", element)
    return ("zero", -1) if element == 0 and math.copysign(1.0, element) < 0 else element


def _key(op: Op) -> Hashable:
    """Ops with equal keys compute the same; None if `op` is to be left alone."""
    name = op.definition.name
    if name == "optimization_barrier":
        return None
    operands: Any = op.operands
    if op.definition.commutative is _BITS and id(operands[0]) > id(operands[1]):
        operands = (operands[1], operands[0])
    if not op.regions and not op.definition.effect and not is_linear(op.results[0].type):
        if op.attrs:
            return (name, operands, attributes_key(op))
        if operands:
            return (name, operands)
    if op.has_effect or any(is_linear(v.type) for v in op.results):
        return None  # two tapes are never one
    regions = tuple([canonical_key(region) for region in op.regions])
    return (name, operands, attributes_key(op), regions)


# What rules ask about values.


def producer(value: Value, name: str) -> Op | None:
    """The op that produces `value`, if it is called `name`."""
    op = value.op
    return op if op is not None and op.definition.name == name else None


def constant(value: Value) -> Any:
    """The array of a `constant`, or None."""
    op = value.op
    return op.attrs["value"] if op is not None and op.definition.name == "constant" else None
