"""Ops that only speak of derivatives, and compositions that are ops for their sake, are dissolved:
what remains is what runs."""

from __future__ import annotations

from collections.abc import Sequence

from ..build import Builder
from ..graph import Graph, Op, Value
from .regions import map_regions, substituted

_IDENTITIES = ("custom_vjp", "custom_jvp", "implicit", "checkpoint_name")
COTANGENT = "cotangent:"  # the names of where backward parts begin, for `ir.passes.mincut`


def inline_calls(graph: Graph, *, cotangents: bool = False) -> Graph:
    """Put the body instead of `remat`, and operands instead of ops that are the identity.

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

    def inside(b: Builder, op: Op, operands: Sequence[Value]) -> Sequence[Value] | None:
        if cotangents and op.attrs.get("label", "").startswith(COTANGENT):
            return None
        return _inside(b, op, operands)

    return substituted(graph, inside)


def _inside(b: Builder, op: Op, operands: Sequence[Value]) -> Sequence[Value] | None:
    if op.definition.family == "composition":
        return list(op.definition.extra["compose"](b, *operands, **op.attrs))
    if op.name == "remat":
        return b.inline(op.regions[0], operands)
    if op.name not in _IDENTITIES:
        return None
    start = op.attrs.get("inputs", 0)
    return operands[start : start + len(op.results)]
