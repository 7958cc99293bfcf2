"""The work of compiling grows with the program and no faster, and what repeats is compiled once.

Counted in lines of LLVM and in functions, never in time.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitney as jt


def text(function: Callable[..., Any], *arguments: Any) -> str:
    return str(jt.jit(function).lower(*arguments).llvm())


def lines(function: Callable[..., Any], *arguments: Any) -> int:
    return text(function, *arguments).count("\n")


def defined(llvm: str) -> list[str]:
    """The names of the functions in a module."""
    return re.findall(r"^define .*?@([\w.]+)\(", llvm, re.MULTILINE)


def f32(*shape: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def sines(count: int) -> Callable[[Any], Any]:
    def chain(x: Any) -> Any:
        for _ in range(count):
            x = np.sin(x) * 1.01
        return x

    return chain


def test_a_function_used_many_times_is_emitted_once() -> None:
    few, many = text(sines(2), f32(100)), text(sines(12), f32(100))
    assert not any(name.startswith("sin.") for name in defined(few))  # written out
    assert sum(name.startswith("sin.") for name in defined(many)) == 1
    assert many.count("fma") < 2 * few.count("fma")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(), (1,), (37,), (3, 50)])
def test_called_functions_give_the_same_bits(dtype: Any, shape: tuple[int, ...]) -> None:
    """Values that do not depend on the lane are called with scalars, others with vectors."""

    def one(x: Any, y: Any) -> Any:
        return np.arctan2(np.sin(x), np.exp(y)) ** 2.5 + np.tanh(np.sin(y))

    def many(x: Any, y: Any) -> Any:
        results = []
        for _ in range(12):
            x = one(x, y)
            results.append(x)
        return results

    x = np.linspace(-3, 1e6, int(np.prod(shape)), dtype=dtype).reshape(shape)
    y = np.array(0.3, dtype)
    expected = x
    for got in jt.jit(many)(x, y):
        expected = jt.jit(one)(expected, y)
        np.testing.assert_array_equal(got, expected)
