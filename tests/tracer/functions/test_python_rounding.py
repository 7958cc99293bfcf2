"""`round`, `math.floor` and their kin of Python's own numbers, as Python has them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import jitney as jt

DIGITS = (0, 1, 2, 3, 7, 15, 22, -1, -2, -5, -22)
AT_ONCE = jt.jit(lambda x: tuple(round(x, n) for n in DIGITS))
# Halves of decimal numbers, which are ties or nearly so
NEAR_TIES = st.builds(
    lambda m, n: (m + 0.5) / 10**n, st.integers(-(10**6), 10**6), st.integers(0, 9)
)


@settings(max_examples=130, deadline=None)
@given(st.one_of(st.floats(), NEAR_TIES, st.floats(-1e6, 1e6), st.floats(2.0**48, 2.0**56)))
@example(2.675)
@example(0.35)
@example(-0.04)
@example(2.0**50 + 0.25)
@example(1e300)
@example(250.0)
def test_floats_are_rounded_to_digits_as_by_python(x: float) -> None:
    np.testing.assert_array_equal(AT_ONCE(x), [round(x, n) for n in DIGITS])
    assert all(type(r) is float for r in AT_ONCE(x))
    np.testing.assert_array_equal(np.signbit(AT_ONCE(x)), [np.signbit(round(x, n)) for n in DIGITS])


@settings(max_examples=50, deadline=None)
@given(st.one_of(st.integers(-(10**6), 10**6), st.integers(-(2**62), 2**62)))
@example(15)
@example(25)
@example(-15)
def test_ints_are_rounded_to_digits_as_by_python(x: int) -> None:
    found = ROUND_INT(x)
    assert found == [round(x, n) for n in (2, -1, -2, -9, -30)]
    assert all(type(r) is int for r in found)


ROUND_INT = jt.jit(lambda x: [round(x, n) for n in (2, -1, -2, -9, -30)])


def test_numbers_of_numpys_are_rounded_as_by_numpy() -> None:
    def f(x: Any) -> Any:
        return round(x, 2), round(x)

    x = np.float64(2.675)
    assert jt.jit(f)(x) == f(x) == (2.68, 3)
    assert type(jt.jit(f)(x)[0]) is np.float64


@pytest.mark.parametrize("function", [round, math.floor, math.ceil, math.trunc])
def test_what_is_no_integer_raises_as_in_python(function: Callable[[float], int]) -> None:
    def f(x: float) -> int:
        return function(x)

    assert jt.jit(f)(2.5) == f(2.5)
    with pytest.raises(ValueError, match="cannot convert float NaN to integer"):
        jt.jit(f)(math.nan)
    for x in (math.inf, -1e300):
        with pytest.raises(OverflowError, match="cannot convert float infinity to integer"):
            jt.jit(f)(x)


def test_more_digits_than_floats_have() -> None:
    assert jt.jit(lambda x: round(x, 30))(0.3) == 0.3
