"""Values and uses at the edge of what functions promise."""

from __future__ import annotations

import math
import secrets
import threading
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import jitney as jt

INF = math.inf


@pytest.mark.parametrize("function", [np.logaddexp, np.logaddexp2])
@pytest.mark.parametrize(
    "x, want",
    [
        ([-INF, -INF], [0.5, 0.5]),
        ([INF, INF], [0.5, 0.5]),
        ([-INF, 0.0], [0, 1]),
        ([1.0, INF], [0, 1]),
        ([3.0, 3.0], [0.5, 0.5]),
        ([1e300, 1e300], [0.5, 0.5]),
    ],
)
def test_shares_of_a_logarithm_of_a_sum(function: Any, x: list[float], want: list[float]) -> None:
    gradient = jt.grad(lambda x: function(x[0], x[1]))
    for g in (gradient, jt.jit(gradient)):
        np.testing.assert_allclose(g(np.array(x)), want)


def test_fractions_have_a_slope_at_whole_numbers() -> None:
    x = np.array([1.5, -2.5, 3.0, -3.0, 0.0, -0.0, INF, -INF, math.nan])
    for got, want in zip(jt.jit(np.modf)(x), np.modf(x), strict=True):
        np.testing.assert_array_equal(got, want)
        np.testing.assert_array_equal(np.signbit(got), np.signbit(want))
    slope = jt.grad(lambda x: np.modf(x)[0].sum())(x[:6])
    np.testing.assert_array_equal(slope, np.ones(6))


def test_spacing_of_floats_without_infinities() -> None:
    x = np.arange(256, dtype=np.uint8).view(ml_dtypes.float8_e4m3fn)
    x = x[(x != 0) | ~np.signbit(x)]
    got, want = jt.jit(np.spacing)(x), np.spacing(x)
    np.testing.assert_array_equal(got.astype(np.float32), want.astype(np.float32))


def test_nothing_deleted_and_nothing_applied() -> None:
    x = np.arange(6.0)
    np.testing.assert_array_equal(jt.jit(lambda x: np.delete(x, []))(x), x)
    rows = jt.jit(lambda x: np.apply_along_axis(np.sum, 0, x))
    np.testing.assert_array_equal(rows(np.zeros((0, 3))), np.zeros(3))


def test_random_numbers_of_other_threads_are_theirs() -> None:
    stop = threading.Event()

    def draw() -> None:
        while not stop.wait(0.02):
            np.random.rand(3)

    thread = threading.Thread(target=draw)
    thread.start()
    try:
        for k in range(10):
            assert jt.jit(lambda x, k=k: np.sin(x) + k)(0.0) == k
        with pytest.raises(jt.errors.ImpureFunctionError, match="operating system"):
            jt.jit(lambda x: x + secrets.randbelow(3))(1.0)
    finally:
        stop.set()
        thread.join()


@pytest.mark.parametrize("shape", [(3, 0), (0,), (4, 0, 0), (0, 2)])
def test_empty_indices_are_checked_without_loops(shape: tuple[int, ...]) -> None:
    x, places = np.ones((1, 2, 2)), np.zeros(shape, np.int64)
    got = jt.jit(lambda x, i: x[i % 1])(x, places)
    np.testing.assert_array_equal(got, x[places % 1])
    assert got.shape == (*shape, 2, 2)
