"""Operators of Python's integers that a function does for the user: what passes 64 bits raises."""

import functools
import math
import operator

import pytest

import jitney as jt

LARGE = 1 << 61

FUNCTIONS = [
    lambda x, y: pow(x, y),
    lambda x, y: functools.reduce(operator.mul, [x] * 16),
    lambda x, y: x.__mul__(LARGE),
    lambda x, y: list(map(operator.mul, [x], [LARGE])),
    lambda x, y: math.lcm(x * 10**8 + 7, y * 10**9 + 1),
    lambda x, y: (x * LARGE ^ 3) % 7,
    lambda x, y: (x * LARGE + y * 1.5) % 7,
]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_integers_that_pass_64_bits(function):
    compiled = jt.jit(function)
    assert compiled(1, 1) == function(1, 1)
    assert compiled(2, 1) == function(2, 1)
    with pytest.raises(OverflowError, match="needs more than 64 bits"):
        compiled(20, 22)
