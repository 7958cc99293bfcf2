"""Common subexpression elimination."""

from __future__ import annotations

from ..graph import Graph
from .rules.rewrite import RuleTable, rewrite


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
    return rewrite(graph, RuleTable(()))
