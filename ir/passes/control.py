"""Structured control flow whose course is known while compiling. All rules are exact."""

from __future__ import annotations

from ..graph import Op
from .rewrite import Replacement, Rewriter, on, uniform


def _known_branch(b: Rewriter, op: Op) -> Replacement:
    index = uniform(op.operands[0])
    branch = op.regions[min(max(int(index), 0), len(op.regions) - 1)]
    return b.inline(branch, op.operands[1:])


def _never_entered(b: Rewriter, op: Op) -> Replacement:
    test = op.regions[0]
    entered = uniform(test.outputs[0])
    if entered is None or entered:
        return None
    return op.operands[op.attrs["consts"] :]


CONTROL = [
    # cond with a constant index: that branch.
    on("cond", _known_branch, of="uniform"),
    # while false: the initial carry.
    on("while", _never_entered),
]
