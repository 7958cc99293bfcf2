"""Structured control flow whose course is known while compiling. All rules are exact."""

from __future__ import annotations

from ...graph import Op
from .loops import LOOPS
from .rewrite import Replacement, Rewriter, Rule, on, uniform


def _constant_branch(b: Rewriter, op: Op) -> Replacement:
    index = uniform(op.operands[0])
    branch = op.regions[min(max(int(index), 0), len(op.regions) - 1)]
    return b.inline(branch, op.operands[1:])


CONTROL: list[Rule] = [
    # cond with a constant index: that branch.
    on("cond", _constant_branch, of="uniform"),
    *LOOPS,
]
