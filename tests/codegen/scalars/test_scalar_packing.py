"""Equal operations on several numbers of a loop become one on a vector: the same answers, less code."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitney as jt

FUNCTIONS = {
    "div": lambda x: (x + 0.5) / (np.abs(x) + 1),
    "div by one": lambda x: x / (x[0] * x[0] + 1),
    "one by": lambda x: 0.25 / (x * x + 0.5) - 0.2,
    "sqrt": lambda x: np.sqrt(np.abs(x)) - 0.4,
    "tanh": lambda x: np.tanh(x * 1.5 - 0.2),
    "sin": lambda x: np.sin(x * 1e5) * 0.5,  # some lanes need the rare part
    "arctan2": lambda x: np.arctan2(x, x[::-1] + 2),
    "pow": lambda x: (np.abs(x) + 0.3) ** 1.7 * 0.4,
    "many": lambda x: np.exp(-np.sin(np.tanh(np.cos(np.exp(-x * x))))) - np.tanh(x),
}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_packed_operations_agree_with_numpy(name: str, dtype: Any) -> None:
    f = FUNCTIONS[name]

    def looped(x: Any) -> Any:
        if name == "sin":  # a rounding at 1e5 is large in the next sine
            return jt.scan(lambda c, i: (f(c), c), x, np.arange(2))[1][1]
        return jt.fori_loop(0, 3, lambda i, x: f(x).astype(x.dtype), x)

    arrays = [np.linspace(-1.3, 1.1, n).astype(dtype) for n in (1, 2, 3, 4, 5, 8, 9, 17)]
    found = jt.jit(lambda arrays: list(map(looped, arrays)))(arrays)
    for x, got in zip(arrays, found, strict=True):
        want = f(x) if name == "sin" else x.astype(np.float64)
        for _ in range(0 if name == "sin" else 3):
            want = f(want).astype(want.dtype)
        tolerance = 1e-12 if dtype == np.float64 else 2e-5
        np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_special_values_in_lanes(dtype: Any) -> None:
    """Each lane is its own: infinities, NaNs and zeros of one do nothing to the others."""

    @jt.jit
    def program(one, x, y):
        def step(k, _):
            return k * k, (x * k / y, np.sqrt(x * k), np.sin(x * y * k))

        return jt.scan(step, one, np.arange(2))[1]

    x = np.array([1, -1, 0, np.inf, np.nan, 2.5, -0.0], dtype)
    y = np.array([0, 0, 0, np.inf, 1, 1e30, -3], dtype)
    with np.errstate(all="ignore"):
        want = x / y, np.sqrt(x), np.sin(x * y)
    for got, expected in zip(program(dtype(1), x, y), want, strict=True):
        assert got.shape == (2, 7)
        np.testing.assert_allclose(got, np.stack([expected] * 2), rtol=1e-6)


def test_what_is_packed() -> None:
    def count(f: Any, x: Any) -> list[int]:
        text = jt.jit(lambda x: jt.fori_loop(0, 20, lambda i, x: f(x), x)).lower(x).llvm()
        return [text.count(f"fdiv {ty}double") for ty in ("", "<2 x ", "<4 x ")]

    def reciprocal(x: Any) -> Any:
        return 1 / (x + 2)

    copies = count(reciprocal, np.ones(1))[0]
    assert copies > 0
    scalars, pairs, fours = count(reciprocal, np.ones(9))
    assert pairs == 4 * scalars > 0 and fours == 0
