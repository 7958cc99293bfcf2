"""Every parameter of the table of calls, other than usual: axes of all forms, numbers that are traced.

A call gives what NumPy gives, or raises what NumPy raises. What only tracing cannot do is refused by an
error of ours, which says so.
"""

from __future__ import annotations

import ast
import copy
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from calls import Call
from drawn_calls import same
from function_calls import CALLS
from samples import by_eights, chosen, told

import jitney as jt
from jitney.tracer.messages.errors import JitneyError

AXIS_CHOICES = ("axis", "axes", "one")
AXES = [
    *((1, 0), (-1, 0), (0, -1), (-2, 1), (0, 0), (0, -2), (0,), (), [0], [1, 0], (1, 5), (None,)),
    *(np.int64(1), np.array(1), (np.int64(-1), 0), 1.0, 5, -3, "0"),
]


class _Traced(ast.NodeTransformer):
    """One number of a call, or one of its choices, becomes the argument `traced`."""

    def __init__(self, place: int | str) -> None:
        self.place, self.count, self.value = place, -1, None

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        return node  # of what is computed, not of how

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        if type(node.value) not in (int, float):
            return node
        self.count += 1
        if self.count != self.place:
            return node
        self.value = node.value
        return ast.Name("traced", ast.Load())

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return ast.Name("traced", ast.Load()) if node.id == self.place else node


def numbers(call: Call) -> list[tuple[str, Any]]:
    """The call with one of its numbers traced, and that number: for each of them."""
    tree, found = ast.parse(call.expression, mode="eval"), []
    for choice, (value, *_) in call.choices.items():
        if type(value) in (int, float, bool):
            text = ast.unparse(_Traced(choice).visit(copy.deepcopy(tree)))
            found.append((text, value))
    for place in range(20):
        change = _Traced(place)
        text = ast.unparse(change.visit(copy.deepcopy(tree)))
        if change.value is None:
            return found
        found.append((text, change.value))
    return found


def agree(call: Call, f: Callable[..., Any], *args: Any) -> None:
    """Compiled, `f` gives or raises what NumPy does, or is refused."""
    theirs, mine = copy.deepcopy(args), copy.deepcopy(args)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            want = f(*theirs)
        except Exception as error:
            with pytest.raises((type(error), JitneyError)):
                jt.jit(f, backend="interpreter")(*mine)
            return
        try:
            got = jt.jit(f, backend="interpreter")(*mine)
        except JitneyError:
            return
    same(call, got, want, args)
    same(call, mine, theirs, args, "argument")


@by_eights([c for c in CALLS if numbers(c)])
def test_traced_numbers(calls: list[Call]) -> None:
    for call in calls:
        usual = {name: choice[0] for name, choice in call.choices.items()}
        for text, value in numbers(call):
            space = {"jt": jt, "np": np, **usual}
            f = eval(f"lambda {', '.join([*call.operands, 'traced'])}: {text}", space)
            f.__name__ = "call"
            with told(call):
                agree(call, f, *call.arguments(), value)


@by_eights([c for c in CALLS if {*c.choices} & {*AXIS_CHOICES}])
def test_axes(calls: list[Call], all_cases: bool) -> None:
    """Each call with a quarter of the axes, each axis with a quarter of the calls; or all."""
    for call in calls:
        (name,) = {*call.choices} & {*AXIS_CHOICES}
        for axis in AXES:
            if all_cases or chosen(f"{call} {axis!r}"):
                f = call.bind({name: axis})
                with told(call):
                    agree(call, f, *call.arguments())
