"""Under `fastmath` loops over elements add in any order; else in Python's, to the bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitney as jt


def product(x: Any, y: Any) -> Any:
    s = 0.0
    for i in range(x.shape[0]):
        s += x[i] * y[i]
    return s


def two_terms(x: Any, y: Any) -> Any:
    s, t = 1.5, 0.0
    for i in range(x.shape[0]):
        s = s + x[i] - y[i]
        t = y[i] + t
    return s * t


def rows(x: Any, y: Any) -> Any:
    out = np.zeros(30)
    for k in range(30):
        s = 0.0
        for i in range(100):
            s += x[100 * k + i] * y[i]
        out[k] = s
    return out


def running(x: Any, y: Any) -> Any:
    out = np.zeros_like(x)
    s = 0.0
    for i in range(x.shape[0]):
        s += x[i]
        out[i] = s
    return out


@pytest.mark.parametrize("function", [product, two_terms, rows, running], ids=lambda f: f.__name__)
def test_sums_in_any_order(function: Callable[..., Any]) -> None:
    rng = np.random.default_rng(0)
    for size in (3000, 3001, 20_000):
        x, y = rng.standard_normal((2, size))
        wanted = function(x, y)
        np.testing.assert_array_equal(jt.jit(function)(x, y), wanted)
        np.testing.assert_allclose(jt.jit(function, fastmath=True)(x, y), wanted, rtol=1e-9)


def test_only_where_it_is_asked_for() -> None:
    x = np.random.default_rng(0).standard_normal(3000)
    assert "fadd contract reassoc" in jt.jit(product, fastmath=True).lower(x, x).llvm()
    assert "reassoc" not in jt.jit(product).lower(x, x).llvm()
