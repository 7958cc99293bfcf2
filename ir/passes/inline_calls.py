"""Ops that only speak of derivatives, and compositions that are ops for their sake, are dissolved:
what remains is what runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..build import Builder
from ..graph import Graph, Op, Value
from .regions import map_regions

_DISSOLVED = frozenset({"custom_vjp", "custom_jvp", "checkpoint_name", "remat"})
COTANGENT = "cotangent:"  # the names of where backward parts begin, for `ir.mincut`


def inline_calls(graph: Graph, *, cotangents: bool = False) -> Graph:
    """Put the body in place of `remat`, and the values in place of ops that give them on.

        graph f(%x: f32[8]) -> f32[8] {          graph f(%x: f32[8]) -> f32[8] {
          %y = remat %x policy="nothing" {         %e = exp %x : f32[8]
              graph body(%x: f32[8]) ...   ->      return %e
                %e = exp %x : f32[8]             }
                return %e
              }
          }
          return %y
        }

    Barriers stay: the recomputation of a remat in a backward pass reads its operands behind one, and
    so is not merged with the first computation. With `cotangents` the names of cotangents stay, too.
    """
    graph = map_regions(graph, inline_calls)

    def dissolves(op: Op) -> bool:
        kept = cotangents and op.attrs.get("label", "").startswith(COTANGENT)
        return (op.name in _DISSOLVED or op.definition.family == "composition") and not kept

    return substituted(graph, dissolves, _inside)


def substituted(
    graph: Graph,
    chosen: Callable[[Op], bool],
    expand: Callable[[Builder, Op, list[Value]], Sequence[Value]],
) -> Graph:
    """`graph` with what `expand(b, op, operands)` appends in the place of each chosen op; itself if
    there is none."""
    if not any(map(chosen, graph.ops)):
        return graph
    new = Graph(graph.name)
    new.params = list(graph.params)
    b = Builder(new)
    env: dict[Value, Value] = {v: v for v in graph.params}
    for op in graph.ops:
        if chosen(op):
            with b.at(op.loc):
                found = expand(b, op, [env[v] for v in op.operands])
            env.update(zip(op.results, found, strict=True))
        elif all(env[v] is v for v in op.operands):
            new.ops.append(op)
            env.update((v, v) for v in op.results)
        else:
            copy = op.with_operands([env[v] for v in op.operands])
            new.ops.append(copy)
            env.update(zip(op.results, copy.results, strict=True))
    new.outputs = [env[v] for v in graph.outputs]
    return new


def _inside(b: Builder, op: Op, operands: list[Value]) -> list[Value]:
    if op.definition.family == "composition":
        return list(op.definition.extra["compose"](b, *operands, **op.attrs))
    if op.name == "remat":
        return b.inline(op.regions[0], operands)
    start = op.attrs.get("inputs", 0)
    return operands[start : start + len(op.results)]
