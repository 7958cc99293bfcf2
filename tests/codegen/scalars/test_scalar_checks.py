"""Checks of scalar code take one jump where all is well: what they let through, and what they stop."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitney as jt


def halves(m: int) -> int:
    """`3 * m + 1` is computed at each trip, taken or not."""
    trips = 0
    while m > 7:
        if m % 2 == 0:
            m = m // 2
        else:
            m = 3 * m + 1
        trips += 1
    return trips


def sums(a: int, b: int) -> int:
    total = 0
    for i in range(2):
        total = a + b * i
    return total


def products(a: int, b: int) -> int:
    total = 0
    for i in range(2):
        total = a * b - i
    return total


EDGES = (
    0,
    1,
    -1,
    2,
    3,
    -3,
    1 << 31,
    -(1 << 32),
    (1 << 62) - 1,
    -(1 << 62),
    (1 << 63) - 1,
    -(1 << 63),
)


@pytest.mark.parametrize("function", [sums, products])
def test_what_python_gives_or_an_error(function: Any) -> None:
    compiled = jt.jit(function)
    for a in EDGES:
        for b in EDGES:
            steps = [a * b, a * b - 1] if function is products else [a, b, a + b]
            if all(-(1 << 63) <= n < 1 << 63 for n in steps):
                assert compiled(a, b) == function(a, b)
            else:
                with pytest.raises(OverflowError):
                    compiled(a, b)


def test_what_is_not_taken_is_not_checked() -> None:
    compiled = jt.jit(halves)
    for m in (1 << 62, 5 << 60, 27, 1):
        assert compiled(m) == halves(m)
    with pytest.raises(OverflowError, match="needs more than 64 bits"):
        compiled((1 << 62) + 1)


def counted(x: Any, counts: Any) -> Any:
    for i in range(x.shape[0]):
        counts[int(x[i])] += 1
    return counts


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_places_from_floats(dtype: Any) -> None:
    compiled = jt.jit(counted)
    x = np.random.default_rng(0).uniform(-5, 5, 4000).astype(dtype)
    wanted = counted(x, np.zeros(5, np.int64))
    np.testing.assert_array_equal(compiled(x, np.zeros(5, np.int64)), wanted)
    for bad in (5.0, -6.0, 1e30, -np.inf, np.nan):
        x[7] = bad
        with pytest.raises((IndexError, ValueError, OverflowError)):
            compiled(x, np.zeros(5, np.int64))


def ticks(n: Any, k: Any) -> Any:
    """A `while` that polls by its own counter."""
    t, s = k, 0.0
    while s < n:
        s += 1.0
        t -= 1
    return t


def test_a_counter_of_any_start() -> None:
    for k in (0, -1, 65535, 65536, 1 << 40):
        assert jt.jit(ticks)(200_000.0, k) == k - 200_000
