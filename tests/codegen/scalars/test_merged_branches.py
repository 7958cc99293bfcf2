"""Branches that write the same elements, as selections: which place is written last still counts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitney as jt


def bubbles(x: Any, p: Any) -> None:
    for i in range(x.shape[0]):
        for j in range(x.shape[0] - 1 - i):
            if x[j] > x[j + 1]:
                t = x[j]
                x[j] = x[j + 1]
                x[j + 1] = t


def swaps_places(x: Any, p: Any) -> None:
    for k in range(3):
        for i in range(x.shape[0]):
            if x[p[i]] > x[i]:
                t = x[i]
                x[i] = x[p[i]]
                x[p[i]] = t + k


def either_order(x: Any, p: Any) -> None:
    for k in range(3):
        for i in range(x.shape[0]):
            if x[i] > k:
                x[i] = 1.0
                x[p[i]] = 2.0
            else:
                x[p[i]] = 3.0
                x[i] = 4.0


def one_or_the_other(x: Any, p: Any) -> None:
    for k in range(3):
        for i in range(x.shape[0]):
            if x[i] > k:
                x[i] = 1.0
            else:
                x[p[i]] = 3.0


def reads_what_it_wrote(x: Any, p: Any) -> None:
    for k in range(3):
        for i in range(x.shape[0]):
            if x[i] > x[p[i]]:
                x[i] = x[p[i]] - k
                x[p[i]] = x[i] + 1.0


SHUFFLED = np.random.default_rng(1).permutation(60)
CLOSE = np.minimum(np.arange(60) + np.arange(60) % 2, 59)


@pytest.mark.parametrize(
    "f", [bubbles, swaps_places, either_order, one_or_the_other, reads_what_it_wrote]
)
@pytest.mark.parametrize("dtype", [np.float64, np.int64])
def test_branches_write_what_python_writes(f: Any, dtype: Any) -> None:
    compiled = jt.jit(f)
    for places in (SHUFFLED, CLOSE, np.arange(60)):
        x = (np.random.default_rng(2).normal(size=60) * 5).astype(dtype)
        if dtype is np.float64:
            x[[3, 30, 31]] = np.nan
            x[[4, 5, 40]] = 0.0, -0.0, np.inf
        found, wanted = x.copy(), x.copy()
        f(wanted, places)
        compiled(found, places)
        assert found.tobytes() == wanted.tobytes()


def test_a_sort_guesses_nothing() -> None:
    text = jt.jit(bubbles).lower(np.zeros(500), SHUFFLED).llvm()
    (swap,) = [block for block in text.split("\nbody") if "fcmp ogt" in block]
    assert "label" not in swap.split("store double")[0]
