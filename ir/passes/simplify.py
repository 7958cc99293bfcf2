"""Algebraic simplification: all rules in one walk, which also merges common subexpressions."""

from __future__ import annotations

import functools

from ..graph import Graph
from .rules.algebra import ALGEBRA, INEXACT
from .rules.control import CONTROL
from .rules.fold import FOLDING
from .rules.movement import MOVEMENT
from .rules.parts import PARTS
from .rules.reductions import REDUCTIONS
from .rules.rewrite import RuleTable, rewrite


def simplify(graph: Graph) -> Graph:
    """Apply the exact rules of algebra, movement, reductions, constants and control flow.

        graph f(%x: f32[8]) -> f32[8] {          graph f(%x: f32[8]) -> f32[8] {
          %a = neg %x : f32[8]                     %a = neg %x : f32[8]
          %y = neg %a : f32[8]              ->     %z = exp %x : f32[8]
          %z = exp %y : f32[8]                     return %z
          return %z                              }
        }

    What became unused stays, for dead code elimination to drop.
    """
    return rewrite(graph, exact_rules())


def simplify_fast(graph: Graph) -> Graph:
    """`simplify`, and the rules that are not exact: for `fastmath` only.

    graph f(%x: f32[]) -> f32[] {            graph f(%x: f32[]) -> f32[] {
      %a = log %x : f32[]                      %a = log %x : f32[]
      %b = exp %a : f32[]               ->     %y = neg %x : f32[]
      %y = neg %b : f32[]                      return %y
      return %y                              }
    }
    """
    return rewrite(graph, _all())


@functools.cache
def exact_rules() -> RuleTable:
    """All rules that keep every bit of the results."""
    return RuleTable([*ALGEBRA, *MOVEMENT, *PARTS, *REDUCTIONS, *FOLDING, *CONTROL])


@functools.cache
def _all() -> RuleTable:
    return RuleTable([*ALGEBRA, *INEXACT, *MOVEMENT, *PARTS, *REDUCTIONS, *FOLDING, *CONTROL])
