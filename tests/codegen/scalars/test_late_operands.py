"""Of the smallest of several integers, what the trip before has made is asked last."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitney as jt


def edits(a, b):
    d = np.zeros((a.shape[0], a.shape[1]), np.int64)
    for i in range(1, a.shape[0]):
        for j in range(1, a.shape[1]):
            d[i, j] = min(d[i - 1, j] + a[i, j], d[i, j - 1] + 1, d[i - 1, j - 1] + b[i, j])
    return d


def largest_first(a, b):
    d = np.zeros((a.shape[0], a.shape[1]), np.int64)
    for i in range(1, a.shape[0]):
        for j in range(1, a.shape[1]):
            d[i, j] = max(d[i, j - 1] - b[i, j], max(d[i - 1, j] + a[i, j], b[i, j]), a[i, j])
    return d


def down(a, b):
    for i in range(a.shape[0]):
        for j in range(a.shape[1] - 2, -1, -1):
            low = a[i, j + 1] + 1
            if b[i, j] < low:
                low = b[i, j]
            if a[i, j] < low:
                low = a[i, j]
            a[i, j] = low
    return a


def carried(a, b):
    least = a[0, 0]
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            least = min(least + b[i, j], a[i, j], b[i, j] - a[i, j])
            a[i, j] = least
    return least


def read_before_it_is_written(a, b):
    for i in range(a.shape[0]):
        for j in range(1, a.shape[1]):
            before = min(a[i, j], b[i, j])
            a[i, j] = before - 1
            a[i, j] = min(max(a[i, j - 1], before), b[i, j], a[i, j])
    return a


@pytest.mark.parametrize("f", [edits, largest_first, down, carried, read_before_it_is_written])
def test_integers_have_one_smallest_in_any_order(f: Callable[..., Any]) -> None:
    rng = np.random.default_rng(0)
    for dtype in (np.int64, np.int32):
        a = rng.integers(-50, 50, (40, 41)).astype(dtype)
        b = rng.integers(-50, 50, (40, 41)).astype(dtype)
        mine, theirs = a.copy(), a.copy()
        np.testing.assert_array_equal(jt.jit(f)(mine, b), f(theirs, b))
        np.testing.assert_array_equal(mine, theirs)


def test_a_trip_waits_for_one_operation() -> None:
    a = np.zeros((40, 41), np.int64)
    for f, of_the_trip_before in ((edits, "t4"), (down, "t1")):
        loops = jt.jit(f).stages(a, a)["fuse"]
        (line,) = [x for x in str(loops).splitlines() if "= min(min(" in x]
        assert line.endswith(f", {of_the_trip_before})"), line


def test_floats_keep_their_order() -> None:
    """NaN, and zeros with their signs, come out of Python's `min` as the order has them."""

    def f(a, b):
        d = np.zeros_like(a)
        for i in range(1, a.shape[0]):
            for j in range(1, a.shape[1]):
                d[i, j] = min(d[i - 1, j], d[i, j - 1], b[i, j]) + a[i, j]
        return d

    rng = np.random.default_rng(1)
    a, b = (rng.choice([0.0, -0.0, 1.0, -1.0, np.nan], (40, 41)) for _ in range(2))
    np.testing.assert_array_equal(jt.jit(f)(a, b), f(a, b))
