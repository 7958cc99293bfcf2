"""A prediction of the memory that the temporaries of a graph take at the fullest moment.

It follows the rules by which code generation gives values memory: elementwise and movement ops are
computed where they are used, unless their result is dear and used more than once, or something reads
it that needs an array. Arguments and outputs do not count: they have memory of their own.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..cost import Cost, wants_memory
from ..graph import Graph, Op, Value
from ..types import TensorType


def predicted_peak(graph: Graph) -> int:
    """The bytes of temporaries that are alive at the fullest moment of `graph`, as optimised."""
    return _PeakWalk(graph).peak()


class _PeakWalk:
    """One walk in execution order, which keeps track of what would be stored."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.users = graph.users()
        self.outputs = set(graph.outputs)
        self.born: dict[Value, int] = {}  # stored values, and when
        self.last: dict[Value, int] = {}  # ... and when they are read last
        self.reads: dict[Value, frozenset[Value]] = {}  # what an inlined value is computed from
        self.cost: dict[Value, int] = {}
        self.inlined: dict[Value, int] = {}
        for i, op in enumerate(graph.ops):
            self.visit(i, op)
        for v in graph.outputs:
            self.read(len(graph.ops), v)

    def peak(self) -> int:
        change = [0] * (len(self.graph.ops) + 2)
        for v, start in self.born.items():
            if v not in self.outputs:
                change[start] += v.nbytes
                change[self.last.get(v, start) + 1] -= v.nbytes
        peak = now = 0
        for step in change:
            now += step
            peak = max(peak, now)
        return peak

    def visit(self, i: int, op: Op) -> None:
        if op.name == "optimization_barrier":
            for v, operand in zip(op.results, op.operands, strict=True):
                self.inline(v, [operand], 0, 0)
        elif op.definition.pointwise and not op.regions:
            v = op.result
            self.inline(v, op.operands, op.definition.cost.work, 1)
            if self.wants_memory(v):
                self.store(i, v)
        else:
            for v in op.operands:
                if op.definition.cost is not Cost.FOLD and self.cost.get(v, 0):
                    self.store(i, v)
                self.read(i, v)
            for v in op.results:
                if isinstance(v.type, TensorType):
                    self.born[v] = i
                    self.reads[v] = frozenset((v,))

    def inline(self, v: Value, operands: Sequence[Value], cost: int, count: int) -> None:
        self.reads[v] = frozenset(r for u in operands for r in self.reads.get(u, ()))
        open_ = [u for u in operands if u not in self.born]
        self.cost[v] = cost + sum(self.cost.get(u, 0) for u in open_)
        self.inlined[v] = count + sum(self.inlined.get(u, 0) for u in open_)

    def wants_memory(self, v: Value) -> bool:
        return v in self.outputs or wants_memory(
            v, self.users[v], self.cost[v], self.inlined[v], self.born
        )

    def store(self, i: int, v: Value) -> None:
        if v in self.born:
            return
        self.read(i, v)
        self.born[v] = i
        self.reads[v] = frozenset((v,))
        self.cost[v] = self.inlined[v] = 0

    def read(self, i: int, v: Value) -> None:
        for r in self.reads.get(v, ()):
            self.last[r] = i
