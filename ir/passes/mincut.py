"""What is kept between the forward and the backward part of a program, chosen by a minimum cut.

The values of the forward part that the backward part reads must either be kept or be computed again
from kept ones. Values are nodes that weigh their bytes; an edge leads from each operand to the result
of an op that may run twice. A minimum cut between what can only be kept (parameters, which weigh
nothing, and results of dear ops: products, sorts, loops) and what the backward part reads is the
lightest set of values to keep. So do Yu, He et al. in PyTorch's compiler (functorch's "min-cut
rematerialization", 2022).

A cut alone forgets time: a long chain that is computed again from its start lies in memory as a whole,
as if it had been kept. So the forward part may be cut into segments first, where little crosses from
one to the next; what crosses is kept, and each segment is computed again when the backward part
comes there (as Chen et al. 2016 do for layers). With a budget of bytes dear ops may run twice, too, as
far as the predicted peak asks for it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from itertools import accumulate
from typing import Any

from ..autodiff.residuals import can_run_twice
from ..build import Builder
from ..cost import Cost
from ..graph import Graph, Op, Value, unspread
from ..record import record
from ..subgraphs import reached, readers
from .dead import eliminate_dead_code
from .inline_calls import inline_calls
from .peak import predicted_peak
from .simplify import simplify


@record
class SavePlan:
    """What was chosen.

    saved_bytes: what the backward part finds in memory, beside arguments and results
    peak_bytes:  the prediction for the peak of temporary memory
    recomputed:  how many ops run again
    segments:    into how many the forward part was cut; 0: everything is kept
    dear:        whether dear ops may run again
    """

    saved_bytes: int
    peak_bytes: int
    recomputed: int
    segments: int = 1
    dear: bool = False


def save_less(graph: Graph, budget: int | None = None) -> tuple[Graph, SavePlan]:
    """`graph`, as traced, with less kept between forward and backward part; and what was chosen.

    The backward part is that of the last derivative that the function takes (its cotangents carry
    names). With a budget, the plan that computes least again among those whose predicted peak is
    within the budget, or else the one with the lowest peak.
    """
    graph = inline_calls(graph, cotangents=True)
    graph = eliminate_dead_code(simplify(eliminate_dead_code(graph)))
    parts = _Parts.of(graph)
    if parts is None:
        return graph, SavePlan(0, predicted_peak(graph), 0, 0)
    best = parts.everything()
    for dear in (False, True) if budget is not None else (False,):
        for segments in _SEGMENTS:
            if budget is not None and best[1].peak_bytes <= budget:
                return best
            candidate = parts.plan(segments, dear)
            if candidate[1].peak_bytes < best[1].peak_bytes:
                best = candidate
            if segments > len(parts.path):
                break
    return best


_SEGMENTS = (1, 2, 4, 6, 8, 12, 16, 24, 32, 64)


class _Parts:
    """A graph whose backward part begins at `seeds`."""

    def __init__(self, graph: Graph, seeds: Sequence[Value]) -> None:
        self.graph = graph
        self.late = readers(graph.ops, seeds)
        self.early = [op for op in graph.ops if op not in self.late]
        made_early = {v for op in self.early for v in op.results}
        read = [v for op in graph.ops if op in self.late for v in op.operands]
        self.needed = [v for v in dict.fromkeys(read) if v in made_early and v not in seeds]
        self.free = {*graph.params, *graph.outputs}
        wanted, _ = reached(self.early, self.needed, stop=graph.params)
        # By depth, not in program order: derivatives put what they need of the forward part late.
        depth: dict[Op, int] = {}
        for op in self.early:
            depth[op] = 1 + max((depth.get(v.op, 0) for v in op.operands if v.op), default=0)
        self.path = sorted((op for op in self.early if op in wanted), key=depth.__getitem__)

    @classmethod
    def of(cls, graph: Graph) -> _Parts | None:
        labels = [op.attrs["label"] for op in graph.ops if op.name == "checkpoint_name"]
        if not labels:
            return None
        last = labels[-1]
        seeds = [
            op.result
            for op in graph.ops
            if op.name == "checkpoint_name" and op.attrs["label"] == last
        ]
        return cls(graph, seeds)

    def everything(self) -> tuple[Graph, SavePlan]:
        """The graph as it is, in which all that the backward part reads is kept."""
        stored = {v for v in self.needed if v.op is not None and v.op.operands}
        return self.graph, SavePlan(_weight(stored - self.free), predicted_peak(self.graph), 0, 0)

    def plan(self, segments: int, dear: bool) -> tuple[Graph, SavePlan]:
        """The graph that keeps what crosses between segments, and what the cut in each says."""
        saved = self.cut(self.crossing(segments), dear)
        graph, recomputed = self.rebuilt(saved)
        graph = eliminate_dead_code(simplify(graph))
        weight = _weight(saved - self.free)
        return graph, SavePlan(weight, predicted_peak(graph), recomputed, segments, dear)

    def crossing(self, segments: int) -> set[Value]:
        """What is alive between segments of the forward part, at the points where that is little."""
        count = len(self.path)
        weights, alive = self._frontiers()
        crossing: set[Value] = set()
        reach = count / (2 * segments)
        for k in range(1, segments):
            middle = k * count / segments
            positions = range(max(1, round(middle - reach)), min(count, round(middle + reach)))
            if positions:
                best = min(positions, key=lambda i: (weights[i], abs(i - middle)))
                crossing |= alive(best)
        return crossing

    def _frontiers(self) -> tuple[list[int], Callable[[int], set[Value]]]:
        """For each point in `path` the bytes of the values alive there, and a function for which."""
        last = {unspread(v): i for i, op in enumerate(self.path) for v in op.operands}
        constant: set[Value] = set()
        first: dict[Value, int] = {}
        for i, op in enumerate(self.path):
            if all(v in constant for v in op.operands):
                constant.update(op.results)
            else:
                ends = (v for v in op.results if unspread(v) is v and last.get(v, 0) > i)
                first.update((v, i) for v in ends)
        change = [0] * (len(self.path) + 1)
        for v, start in first.items():
            change[start + 1] += _weight([v])
            change[last[v] + 1 if last[v] + 1 < len(change) else -1] -= _weight([v])
        weights = list(accumulate(change))
        return weights, lambda i: {v for v, start in first.items() if start < i <= last[v]}

    def cut(self, anchors: Collection[Value], dear: bool) -> set[Value]:
        """The lightest values to keep, if `anchors` are not computed twice, nor what is dear."""
        import networkx as nx

        network: Any = nx.DiGraph()
        network.add_nodes_from(("source", "sink"))
        pending = list(self.needed)
        seen = set(pending)
        for v in self.needed:
            network.add_edge((v, "out"), "sink")
        while pending:
            v = pending.pop()
            weight = 0 if v in self.free else _weight([v])
            network.add_edge((v, "in"), (v, "out"), capacity=weight)
            op = v.op
            if op is None or v in anchors or not _may_run_twice(op, dear):
                network.add_edge("source", (v, "in"))
                continue
            for u in op.operands:
                network.add_edge((u, "out"), (v, "in"))
                if u not in seen:
                    seen.add(u)
                    pending.append(u)
        _, (reachable, _) = nx.minimum_cut(network, "source", "sink")
        return {v for v in seen if (v, "in") in reachable and (v, "out") not in reachable}

    def rebuilt(self, saved: set[Value]) -> tuple[Graph, int]:
        """The graph whose late ops read `saved`, and compute again, when they need it, the rest."""
        new = Graph(self.graph.name)
        new.params = list(self.graph.params)
        b = Builder(new)
        barriers: dict[Value, Value] = {}
        fresh: dict[Value, Value] = {}
        count = 0

        def behind_barrier(v: Value) -> Value:
            if v not in barriers:
                barriers[v] = b.op("optimization_barrier", v)
            return barriers[v]

        def again(end: Value) -> Value:
            """`end`, computed from what is kept. Its operands come first."""
            nonlocal count
            pending = [end]
            while pending:
                v = pending[-1]
                op = v.op
                if v in fresh:
                    pending.pop()
                elif v in saved or op is None:
                    fresh[v] = behind_barrier(v)
                elif not op.operands:
                    fresh[v] = v  # constants cost nothing
                else:
                    missing = [u for u in op.operands if u not in fresh]
                    if missing:
                        pending += missing
                    else:
                        b.copy(op, fresh)
                        count += 1
            return fresh[end]

        made_early = {v for op in self.early for v in op.results}
        env: dict[Value, Value] = {}
        for op in self.graph.ops:
            if op not in self.late:
                new.ops.append(op)
                continue
            b.loc = op.loc
            operands = []
            for v in op.operands:
                direct = v not in made_early or v in saved or v not in self.needed
                operands.append(env.get(v, v) if direct else again(v))
            copy = op.with_operands(operands)
            new.ops.append(copy)
            env.update(zip(op.results, copy.results, strict=True))
        new.outputs = [env.get(v, v) for v in self.graph.outputs]
        return new, count


def _may_run_twice(op: Op, dear: bool) -> bool:
    again = op.definition.cost < Cost.DEAR and op.name != "optimization_barrier"
    return can_run_twice(op) and (dear or again)


def _weight(values: Collection[Value]) -> int:
    return sum(v.nbytes for v in values)
