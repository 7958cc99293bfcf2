"""Under `fastmath` sums of loops go in any order, else in Python's to the bit; roots are estimated."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitney as jt
from jitney.runtime.native.host import host_target


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


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_reciprocal_roots_are_estimated_in_float32(dtype):
    x = np.random.default_rng(0).uniform(1e-3, 1e3, 1000).astype(dtype)
    for f in (lambda x: 1 / np.sqrt(x), lambda x: x / (x * np.sqrt(x)), lambda x: np.sqrt(x) / x):
        exact = f(x.astype("f8"))
        error = np.abs(jt.jit(f, fastmath=True)(x) / exact - 1).max()
        assert error < (5e-7 if dtype == "f4" else 1e-15)
        np.testing.assert_array_equal(jt.jit(f)(x), f(x))
    if host_target().has("avx512f") and dtype == "f4":
        fast, plain = (jt.jit(lambda x: 1 / np.sqrt(x), fastmath=fast) for fast in (True, False))
        assert "vrsqrt14ps" in fast.lower(x).asm() and "vrsqrt14ps" not in plain.lower(x).asm()
