"""Graphs rebuilt with other ops instead of some, and passes run on the regions of ops."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..build import Builder
from ..graph import Graph, Op, Value, hand_names_on

Expand = Callable[[Builder, Op, Sequence[Value]], Sequence[Value] | None]


def substituted(graph: Graph, expand: Expand) -> Graph:
    """`graph` with what `expand(b, op, operands)` appends instead of `op`; itself if that is
    None for all ops.

    Ops of which it is None stay. They are copied only if they read what was replaced.
    """
    b = Builder(Graph(graph.name))
    b.graph.params = list(graph.params)
    env: dict[Value, Value] = {}
    changed = False
    for op in graph.ops:
        b.loc = op.loc
        operands = [env.get(v, v) for v in op.operands] if env else op.operands
        before = len(b.graph.ops)
        replacement = expand(b, op, operands)
        if replacement is None:
            b.graph.ops.append(op.rebased(env))
        else:
            changed = True
            env.update(zip(op.results, replacement, strict=True))
            hand_names_on(op.results, replacement, b.graph.ops[before:])
    b.graph.outputs = [env.get(v, v) for v in graph.outputs]
    return b.graph if changed else graph


def map_regions(graph: Graph, transform: Callable[[Graph], Graph]) -> Graph:
    """`graph` with `transform` applied to each region of its ops; itself if none changed."""

    def with_regions(b: Builder, op: Op, operands: Sequence[Value]) -> Sequence[Value] | None:
        if not op.regions:
            return None
        regions = tuple([transform(region) for region in op.regions])
        if all(a is b for a, b in zip(regions, op.regions, strict=True)):
            return None
        return b.put(op.with_operands(operands, regions))

    return substituted(graph, with_regions) if any(op.regions for op in graph.ops) else graph
