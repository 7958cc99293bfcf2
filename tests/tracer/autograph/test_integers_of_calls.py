"""Operators of Python's integers that a function does for the user: what passes 64 bits raises."""

import functools
import math
import operator

import numpy as np
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


def test_powers_in_a_loop():
    def order(a, n):
        for i in range(1, n):
            if pow(a, i) % n == 1:
                return i
        return -1

    compiled = jt.jit(order)
    assert [compiled(a, 7) for a in range(1, 7)] == [order(a, 7) for a in range(1, 7)]
    with pytest.raises(OverflowError, match="needs more than 64 bits"):
        compiled(10, 23)


def test_an_int_that_no_number_of_64_bits_is():
    def least(x):
        return min(1 << 63, int(x[0]))

    with pytest.raises(OverflowError, match="keeps ints of 64 bits. Write a bound that fits"):
        jt.jit(least)(np.arange(3))


def test_loops_are_looked_through_once_for_all_sums_after_them(monkeypatch):
    """What a loop carries is found out by going through its body several times."""
    from jitney.ir.integers import intervals

    looked, of_loop = [], intervals._of_loop
    monkeypatch.setattr(
        intervals, "_of_loop", lambda *given: looked.append(given[0]) or of_loop(*given)
    )

    def f(x, n):
        k = 0
        while k < n:
            k += len(x)
        total = 0
        for v in (3, 5, 7, 9, 11, 13, 15, 17):
            total = total + k % v + 1
        return total

    assert jt.jit(f)(np.zeros(3), 50) == f(np.zeros(3), 50)
    assert len(looked) < 8
