"""Parts of a graph: what follows from values, what they need, and a graph of its own for either."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from .build import Builder
from .graph import Graph, Op, Value


def readers(ops: Iterable[Op], values: Iterable[Value]) -> set[Op]:
    """The ops that read `values`, directly or not."""
    dependent = set(values)
    ops_reading = set()
    for op in ops:
        if not dependent.isdisjoint(op.operands):
            dependent.update(op.results)
            ops_reading.add(op)
    return ops_reading


def reached(
    ops: Sequence[Op], ends: Iterable[Value], stop: Collection[Value] = (), effects: bool = False
) -> tuple[set[Op], set[Value]]:
    """The ops that `ends` depend on without looking beyond `stop`, and those of `stop` they read.

    With `effects` the ops that have effects, too.
    """
    values = set(ends)
    needed = set()
    for op in reversed(ops):
        if any(v in values and v not in stop for v in op.results) or (effects and op.has_effect):
            needed.add(op)
            values.update(op.operands)
    return needed, {v for v in values if v in stop}


def extract(
    name: str,
    params: Sequence[Value],
    ops: Iterable[Op],
    chosen: Collection[Op],
    outputs: Sequence[Value],
) -> Graph:
    """A graph of the `chosen` ones of `ops`, over `params` (values that it takes as they are)."""
    graph = Graph(name)
    env = {v: graph.add_param(v.type, v.name) for v in params}
    start = dict(env)
    b = Builder(graph)
    for op in ops:
        if op in chosen:
            b.copy(op, env)
            env.update(start)  # an op that runs for one result does not replace a given one
    graph.outputs = [env[v] for v in outputs]
    return graph
