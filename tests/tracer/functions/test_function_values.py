"""Every call of the table gives what NumPy gives: dtypes, shapes, layouts and edge values are drawn.

JITNEY_EXAMPLES=200 draws that many for each call; CI takes the same few each time.
"""

from __future__ import annotations

import pytest
from calls import Call
from drawn_calls import EXAMPLES, Drawn, agree, arguments
from function_calls import CALLS
from hypothesis import given, settings


@pytest.mark.parametrize("call", CALLS, ids=str)
def test_traced_calls_are_numpys(call: Call) -> None:
    slow = "special" in call.expression  # hundreds of ops, interpreted

    @settings(max_examples=EXAMPLES or (1 if slow else 2), derandomize=not EXAMPLES)
    @given(arguments(call))
    def check(drawn: Drawn) -> None:
        agree(call, drawn)

    check()


@pytest.mark.parametrize("call", CALLS, ids=str)
def test_compiled_calls_are_numpys(call: Call) -> None:
    agree(call, Drawn({}, call.arguments(), "none"), backend="native")
