"""Common subexpression elimination."""

from __future__ import annotations

from typing import Any

from ..graph import Graph, Op, Value
from ..types import TOKEN
from .dead import has_effect
from .hash import attributes_key, canonical_key
from .regions import map_regions, with_operands

# a op b and b op a are the same to the bit (not maximum: NumPy's choice among -0.0 and 0.0, and
# among NaNs, depends on the order).
_COMMUTATIVE = frozenset("add mul bitwise_and bitwise_or bitwise_xor eq ne gcd lcm".split())


def eliminate_common_subexpressions(graph: Graph) -> Graph:
    """Compute once what is computed twice from the same values.

        graph f(%x: f32[8]) -> f32[8] {          graph f(%x: f32[8]) -> f32[8] {
          %a = exp %x : f32[8]                     %a = exp %x : f32[8]
          %b = exp %x : f32[8]              ->     %c = mul %a, %a : f32[8]
          %c = mul %a, %b : f32[8]                 return %c
          return %c                              }
        }

    The first occurrence stays, with its source line. Ops with effects are never merged; small
    constants are merged by content.
    """
    graph = map_regions(graph, eliminate_common_subexpressions)
    seen: dict[Any, Op] = {}
    env: dict[Value, Value] = {}
    new = Graph(graph.name)
    for op in graph.ops:
        current = op
        if env and not env.keys().isdisjoint(op.operands):
            operands = tuple([env.get(v, v) for v in op.operands])
            current = with_operands(op, operands, op.regions)
        key = _key(current)
        first = current if key is None else seen.setdefault(key, current)
        if first is current:
            new.ops.append(current)
        if first is not op:
            env.update(zip(op.results, first.results, strict=True))
    if not env:
        return graph
    new.params = list(graph.params)
    new.outputs = [env.get(v, v) for v in graph.outputs]
    return new


def _key(op: Op) -> Any:
    """Ops with equal keys compute the same; None if `op` is to be left alone."""
    name = op.definition.name
    operands: Any = op.operands
    if len(operands) == 2 and name in _COMMUTATIVE and id(operands[0]) > id(operands[1]):
        operands = (operands[1], operands[0])
    if not op.attrs and not op.regions and operands and not op.definition.effect:
        return (name, operands)
    if has_effect(op) or any(v.type == TOKEN for v in op.results):
        return None
    regions = tuple([canonical_key(region) for region in op.regions])
    return (name, operands, attributes_key(op), regions)
