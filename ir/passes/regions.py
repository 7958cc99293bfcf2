"""Running a pass on the regions of a graph's ops."""

from __future__ import annotations

from collections.abc import Callable

from ..graph import Graph, Op, Value


def map_regions(graph: Graph, transform: Callable[[Graph], Graph]) -> Graph:
    """`graph` with `transform` applied to each region of its ops; itself if none changed.

    Ops are shared with the input as far as possible: an op is copied if its regions changed or if
    it reads a result of a copied op.
    """
    changed: dict[Op, tuple[Graph, ...]] = {}
    for op in graph.ops:
        if op.regions:
            regions = tuple([transform(region) for region in op.regions])
            if any(a is not b for a, b in zip(regions, op.regions, strict=True)):
                changed[op] = regions
    if not changed:
        return graph
    new = Graph(graph.name)
    new.params = list(graph.params)
    env: dict[Value, Value] = {}
    for op in graph.ops:
        if op in changed or not env.keys().isdisjoint(op.operands):
            operands = tuple([env.get(v, v) for v in op.operands])
            copy = op.with_operands(operands, changed.get(op))
            env.update(zip(op.results, copy.results, strict=True))
            op = copy
        new.ops.append(op)
    new.outputs = [env.get(v, v) for v in graph.outputs]
    return new
