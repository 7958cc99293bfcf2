"""Algebraic simplification: all rules in one walk, which also merges common subexpressions."""

from __future__ import annotations

import functools

from ..graph import Graph
from .rules.algebra import ALGEBRA, INEXACT
from .rules.control import CONTROL
from .rules.fold import FOLDING
from .rules.loops import LAST
from .rules.movement import MOVEMENT
from .rules.parts import PARTS
from .rules.reductions import REDUCTIONS
from .rules.rewrite import RuleTable, rewrite
from .rules.scatters import SCATTERS


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


def last_of_loops(graph: Graph) -> Graph:
    """Take what the last iteration of a loop has stacked from what the loop ends with, where that is the
    same: of this derivatives are better made.

        %c, %ys = scan %h, %xs ... { ... return %y, %y }            %c, %ys = scan ...
        %l = slice %ys start=[9,0] stop=[10,4] step=[1,1]    ->     %l = reshape %c shape=[1,4]
    """
    stacks = any(op.name == "scan" and len(op.results) > op.attrs["carries"] for op in graph.walk())
    return rewrite(graph, _last()) if stacks else graph


@functools.cache
def _last() -> RuleTable:
    return RuleTable(LAST)


@functools.cache
def exact_rules() -> RuleTable:
    """All rules that keep every bit of the results."""
    return RuleTable([*ALGEBRA, *MOVEMENT, *PARTS, *SCATTERS, *REDUCTIONS, *FOLDING, *CONTROL])


@functools.cache
def _all() -> RuleTable:
    return RuleTable(
        [*ALGEBRA, *INEXACT, *MOVEMENT, *PARTS, *SCATTERS, *REDUCTIONS, *FOLDING, *CONTROL]
    )
