"""Every call of the table gives what NumPy gives: dtypes, shapes, layouts and edge values are drawn.

JITNEY_EXAMPLES=200 draws that many for each call; CI takes the same few each time.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from calls import Array, Call
from drawn_calls import EXAMPLES, Drawn, agree, arguments, same
from function_calls import CALLS
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import by_eights, told

import jitney as jt

LONG = [call for call in CALLS if "special" in call.expression]
SHORT = [call for call in CALLS if call not in LONG]


@by_eights(SHORT)
def test_traced_calls_are_numpys(calls: list[Call]) -> None:
    check_drawn(calls, EXAMPLES or 2)


@by_eights(LONG)
def test_traced_special_functions_are_numpys(calls: list[Call]) -> None:
    check_drawn(calls, EXAMPLES or 1)  # hundreds of ops, interpreted


def check_drawn(calls: list[Call], examples: int) -> None:
    @settings(max_examples=examples, derandomize=not EXAMPLES)
    @given(st.tuples(*map(arguments, calls)))
    def check(drawn: tuple[Drawn, ...]) -> None:
        for call, own in zip(calls, drawn, strict=True):
            with told(call):
                agree(call, own)

    check()


# Programs of several calls are compiled in less time than one for each.
PROGRAMS = [[call] for call in LONG] + [SHORT[i : i + 8] for i in range(0, len(SHORT), 8)]


@pytest.mark.parametrize("calls", PROGRAMS, ids=lambda calls: str(calls[0]))
def test_compiled_calls_are_numpys(calls: list[Call]) -> None:
    functions = [call.function for call in calls]

    def program(operands: list[list[Array]]) -> Any:
        return [f(*arrays) for f, arrays in zip(functions, operands, strict=True)]

    mine, theirs = ([call.arguments() for call in calls] for _ in range(2))
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        found, wanted = jt.jit(program)(mine), program(theirs)
    for call, got, want, changed, after in zip(calls, found, wanted, mine, theirs, strict=True):
        same(call, got, want, call.arguments(), f"{call}: result")
        same(call, changed, after, call.arguments(), f"{call}: argument")
