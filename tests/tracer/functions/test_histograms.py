"""Counts: bincount and histograms, compiled, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jitney as jt

DTYPES = ["f4", "f8", "i4", "i8", "u1", "u8", "f2"]


def data(dtype: str, n: int) -> np.ndarray:
    rng = np.random.default_rng(n)
    if dtype[0] == "f":
        return (rng.standard_normal(n) * 5).astype(dtype)
    return rng.integers(0, 200, n).astype(dtype)


def check(f: Any, *arrays: Any) -> None:
    for got, want in zip(jt.jit(f)(*arrays), f(*arrays), strict=True):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("n", [1, 700, 150_000])
@pytest.mark.parametrize("dtype", DTYPES)
def test_histograms(dtype, n):
    x = data(dtype, n)
    if dtype != "f2":  # whose edges NumPy rounds
        check(lambda x: np.histogram(x, 13), x)
    check(lambda x: np.histogram(x, 40, (-3.0, 7.0)), x)
    check(lambda x: np.histogram(x, np.array([-4.0, -1.5, 0.0, 0.1, 3.0, 100.0])), x)


@settings(max_examples=20, deadline=None)
@given(
    st.lists(
        st.floats(-1e3, 1e3, width=32) | st.sampled_from([0.1, 0.2, 0.3, 0.7, 1.0]), max_size=30
    ),
    st.integers(1, 30),
)
def test_edges_decide(values, bins):
    """Elements on edges, which arithmetic alone would put to the wrong side."""
    x = np.array([*values, *np.linspace(0, 1, bins + 1)])
    check(lambda x: np.histogram(x, bins, (0.0, 1.0)), x)
    check(lambda x: np.histogram(x, bins), x)


def test_weights_of_what_is_outside_do_not_count():
    x, w = np.array([0.5, 7.0, np.nan, -1.0, 1.0]), np.array([2.0, np.nan, np.nan, np.inf, 3.0])
    with np.errstate(invalid="ignore"):
        got, _ = jt.jit(lambda x, w: np.histogram(x, 2, (0.0, 1.0), weights=w))(x, w)
    assert got.tolist() == [0.0, 5.0]


@pytest.mark.parametrize("dtype", ["bool", "i1", "u1", "i4", "u4", "i8"])
@pytest.mark.parametrize("n", [0, 9, 200_003])
def test_counts(dtype, n):
    """What is outside of the counts is left out, below them and above."""
    rng = np.random.default_rng(n)
    x = rng.integers(-3 if dtype[0] == "i" else 0, 2 if dtype == "bool" else 100, n).astype(dtype)
    w = rng.standard_normal(n)
    lengths = (0, 1, 50, 300)
    counts = jt.jit(lambda x: [jt.bincount(x, length=k) for k in lengths])(x)
    f = jt.jit(lambda x, w: [jt.bincount(x, w, length=k) for k in lengths])
    found = []
    for threads in (1, 3):
        with jt.threads(threads):
            found.append(f(x, w))
    for length, count, one, three in zip(lengths, counts, *found, strict=True):
        inside = (x >= 0) & (x < length)
        np.testing.assert_array_equal(count, np.bincount(x[inside], minlength=length)[:length])
        sums = np.bincount(x[inside], w[inside], length)[:length]
        np.testing.assert_array_equal(one, three)
        np.testing.assert_allclose(one, sums, rtol=1e-12, atol=1e-9)


def test_the_largest_integers():
    x = np.array([0, 2**63, 2**64 - 1, 1], np.uint64)
    assert jt.jit(lambda x: jt.bincount(x, length=2))(x).tolist() == [1, 1]
    y = np.array([-(2**63), 2**63 - 1, 1])
    assert jt.jit(lambda x: jt.bincount(x, length=2))(y).tolist() == [0, 1]


def test_gradients_of_weights():
    x, w = np.array([0, 2, 5, 2, -1]), np.arange(5.0)
    loss = jt.jit(lambda w: (jt.bincount(x, w, length=4) * np.array([1.0, 2.0, 3.0, 4.0])).sum())
    assert jt.grad(loss)(w).tolist() == [1.0, 3.0, 0.0, 3.0, 0.0]
