"""Arrays to differentiate at, and derivatives by differences: for test_grad*.py."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from typing import Any

import numpy as np

import jitney as jt

Point = namedtuple("Point", "x y")


def interpreted(f: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    return jt.jit(f, backend="interpreter", **options)


def numerical_gradient(f: Callable[..., Any], x: np.ndarray, eps: float = 1e-6) -> np.ndarray:
    x = np.asarray(x, np.float64)
    result = np.zeros_like(x)
    for index in np.ndindex(x.shape):
        high, low = x.copy(), x.copy()
        high[index] += eps
        low[index] -= eps
        result[index] = (float(f(high)) - float(f(low))) / (2 * eps)
    return result


def check_compiled(f: Callable[..., Any], x: np.ndarray, rtol: float = 1e-5) -> None:
    """The compiled gradient of a function of one array to a number is the interpreter's; along a
    direction it is that of forward mode, and that of differences of the plain function."""
    direction, step = np.random.default_rng(0).normal(size=x.shape), 6e-6

    def both(x: Any) -> Any:
        return jt.grad(f)(x), jt.jvp(f, (x,), (direction,))[1]

    gradient, tangent = jt.jit(both)(x.copy())
    slope = (f(x + step * direction) - f(x - step * direction)) / (2 * step)
    np.testing.assert_allclose(np.sum(gradient * direction), slope, rtol=rtol, atol=1e-5)
    np.testing.assert_allclose(tangent, slope, rtol=rtol, atol=1e-5)
    wanted = interpreted(jt.grad(f))(x.copy())
    np.testing.assert_allclose(gradient, wanted, rtol=1e-11, atol=1e-12)


A = np.random.default_rng(0).normal(size=(3, 4))
B = np.random.default_rng(1).normal(size=(4, 5))
V = np.random.default_rng(2).normal(size=4)
SPD = A @ A.T + np.eye(3)
