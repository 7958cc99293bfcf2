"""Dead code elimination."""

from __future__ import annotations

from ..graph import Graph, Op, Value
from .regions import map_regions


def eliminate_dead_code(graph: Graph) -> Graph:
    """Drop ops whose results nothing reads, except those with an effect.

        graph f(%x: f32[8]) -> f32[8] {          graph f(%x: f32[8]) -> f32[8] {
          %y = exp %x : f32[8]                     %z = sin %x : f32[8]
          %z = sin %x : f32[8]              ->     return %z
          return %z                              }
        }

    The bounds check of a gather whose result nobody reads goes with it. Loop carries stay.
    """
    graph = map_regions(graph, eliminate_dead_code)
    live: set[Value] = set(graph.outputs)
    kept: list[Op] = []
    for op in reversed(graph.ops):
        for result in op.results:
            if result in live:
                break
        else:
            if not op.has_effect:
                continue
        live.update(op.operands)
        kept.append(op)
    if len(kept) == len(graph.ops):
        return graph
    kept.reverse()
    new = Graph(graph.name)
    new.params, new.ops, new.outputs = list(graph.params), kept, list(graph.outputs)
    return new
