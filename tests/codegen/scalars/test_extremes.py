"""Loops that seek the largest or smallest element do so in lanes: against Python, to the bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitney as jt
from jitney.codegen.limits import TINY, limited
from jitney.codegen.llvm.scalar_code import extremes


def largest(x: Any, y: Any) -> Any:
    best = x[0]
    for i in range(1, x.shape[0]):
        if x[i] > best:
            best = x[i]
    return best


def smallest_and_place(x: Any, y: Any) -> Any:
    best, place = np.inf, -1
    for i in range(x.shape[0]):
        if x[i] < best:
            best = x[i]
            place = i
    return place, best


def beside(x: Any, y: Any) -> Any:
    best, other, last = x[0], y[0], 0
    for i in range(x.shape[0]):
        if best < x[i]:
            best, other, last = x[i], y[i] * 2.0, i * 3
    return other, last, best


def from_behind(x: Any, y: Any) -> Any:
    best, place = x[-1], -1
    for i in range(x.shape[0] - 1, -1, -1):
        if best > x[i]:
            best = x[i]
            place = i
    return best, place


def not_strict(x: Any, y: Any) -> Any:
    best, place = x[0], 0
    for i in range(x.shape[0]):
        if x[i] >= best:
            best = x[i]
            place = i
    return best, place


def rows(x: Any, y: Any) -> Any:
    found = np.zeros(3, np.int64)
    for k in range(3):
        best = y[k]
        for i in range(x.shape[0]):
            if x[i] * y[k] > best:
                best = x[i] * y[k]
                found[k] = i
    return (found,)


def products(x: Any, y: Any) -> Any:
    best, place = 0.0, -1
    for i in range(x.shape[0]):
        d = x[i] - y[i]
        d = d * d
        if d > best:
            best = d
            place = i
    return best, place


FUNCTIONS = [largest, smallest_and_place, beside, from_behind, not_strict, rows, products]


def inputs(size: int, dtype: Any) -> list[Any]:
    rng = np.random.default_rng(size)
    plain = rng.standard_normal(size).astype(dtype)
    ties = rng.integers(-2, 3, size).astype(dtype)
    zeros = np.where(rng.random(size) < 0.5, 0.0, -0.0).astype(dtype)
    zeros[0] = -1.0
    holes = plain.copy()
    holes[rng.integers(1, size, size // 3)] = np.nan
    first = plain.copy()
    first[0] = np.nan
    ends = plain.copy()
    ends[[5, size - 1]] = np.inf, -np.inf
    return [
        plain,
        ties,
        zeros,
        -zeros,
        holes,
        first,
        ends,
        np.full(size, np.nan, dtype),
        -np.sort(plain),
    ]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("size", [3, 129, 1024, 1500])
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_as_python_to_the_bit(function: Callable[..., Any], size: int, dtype: Any) -> None:
    compiled = jt.jit(function)
    with limited(TINY):  # so that short loops go through LLVM's passes
        for x in inputs(max(size, 8), dtype):
            y = np.linspace(-1, 1, x.size).astype(dtype)
            with np.errstate(invalid="ignore"):
                wanted = function(x, y)
            found = compiled(x, y)
            for a, b in zip(np.atleast_1d(found), np.atleast_1d(wanted), strict=True):
                np.testing.assert_array_equal(a, b)
                np.testing.assert_array_equal(np.signbit(a), np.signbit(b))


@pytest.mark.parametrize(
    ("function", "seeks"), [(largest, True), (beside, True), (not_strict, False)]
)
def test_which_loops_seek(
    function: Callable[..., Any], seeks: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    emitted: list[Any] = []
    first = extremes._Search.first
    monkeypatch.setattr(
        extremes._Search, "first", lambda self, *own: emitted.append(1) or first(self, *own)
    )
    x = np.random.default_rng(0).standard_normal(3000)
    jt.jit(function)(x, x)
    assert bool(emitted) == seeks
