"""Ranges whose step is known at run time only: where they lie, and what need not be checked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitney as jt


def sieve(x):
    for i in range(2, 40):
        for j in range(i * i, x.shape[0], i):
            x[j] += i


def from_the_start(x):
    for i in range(1, 50):
        for j in range(0, x.shape[0], i):
            x[j] += i


def from_the_place(x):
    for i in range(1, 50):
        for j in range(i, x.shape[0], i + 2):
            x[j] += j


def down(x):
    for i in range(1, 50):
        for j in range(x.shape[0] - 1, i, -i):
            x[j] += i


def down_to_the_end(x):
    for i in range(-30, -3):
        for j in range(x.shape[0] - 1, -1, i):
            x[j] += j


def short(x):
    for i in range(1, 50):
        for j in range(0, x.shape[0] - i, i):
            x[j] += x[j + i]


@pytest.mark.parametrize("f", [sieve, from_the_start, from_the_place, down, down_to_the_end, short])
def test_they_lie_in_the_range(f: Callable[..., Any]) -> None:
    want, got = np.arange(1700), np.arange(1700)
    f(want)
    compiled = jt.jit(f)
    assert "checked against" not in str(compiled.stages(got)["fuse"])
    compiled(got)
    np.testing.assert_array_equal(got, want)


def beyond(x):
    for i in range(2, 40):
        for j in range(i * i, x.shape[0] + 1, i):
            x[j] += i


def before(x):
    for i in range(2, 40):
        for j in range(5 - i, 3, i):
            x[j - 1700] += i


def any_step(x):
    for i in range(-3, 4):
        for j in range(1650, 1750, x[5] + i):
            x[j] += i


def moved(x):
    for i in range(2, 40):
        for j in range(i * i, x.shape[0], i):
            x[j + 2] += i


@pytest.mark.parametrize("f", [beyond, before, any_step, moved])
def test_what_may_lie_outside_is_checked(f: Callable[..., Any]) -> None:
    with pytest.raises(IndexError):
        f(np.arange(1700))
    with pytest.raises(IndexError):
        jt.jit(f)(np.arange(1700))
