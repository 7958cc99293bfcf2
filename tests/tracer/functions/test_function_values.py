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

import jitney as jt


@pytest.mark.parametrize("call", CALLS, ids=str)
def test_traced_calls_are_numpys(call: Call) -> None:
    slow = "special" in call.expression  # hundreds of ops, interpreted

    @settings(max_examples=EXAMPLES or (1 if slow else 2), derandomize=not EXAMPLES)
    @given(arguments(call))
    def check(drawn: Drawn) -> None:
        agree(call, drawn)

    check()


TOGETHER = 16  # calls of one program, which is compiled in less time than one for each


@pytest.mark.parametrize("first", range(0, len(CALLS), TOGETHER))
def test_compiled_calls_are_numpys(first: int) -> None:
    calls = CALLS[first : first + TOGETHER]
    functions = [call.function for call in calls]

    def program(given: list[list[Array]]) -> Any:
        return [f(*arrays) for f, arrays in zip(functions, given, strict=True)], given

    mine, theirs = ([call.arguments() for call in calls] for _ in range(2))
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        results = zip(calls, *jt.jit(program)(mine), *program(theirs), strict=True)
    for call, got, changed, want, after in results:
        same(call, got, want, call.arguments(), f"{call}: result")
        same(call, changed, after, call.arguments(), f"{call}: argument")
