"""Arguments that are views with steps are written in place, whatever is done to them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitney as jt

Array = np.ndarray[Any, Any]


def sample(shape: tuple[int, ...]) -> Array:
    return np.random.default_rng(0).integers(-8, 9, shape).astype(np.float64)


def column(n: int) -> tuple[Array, Array]:
    whole = sample((n, 3))
    return whole, whole[:, 1]


def every_other_backwards(n: int) -> tuple[Array, Array]:
    whole = sample((2 * n,))
    return whole, whole[::-2]


def transposed(n: int) -> tuple[Array, Array]:
    whole = sample((n, n))
    return whole, whole.T


def block(n: int) -> tuple[Array, Array]:
    whole = sample((n + 2, 2 * n))
    return whole, whole[1:-1, ::2][::-1]


def columns(n: int) -> tuple[Array, Array]:
    whole = sample((n, n, 2))
    return whole, whole[..., 0]


def add(x):
    x += 2 * x + 1


def shifted(x):
    x[1:] += x[:-1]
    x[0] = 7


def reversed_(x):
    x[:] = x[::-1]


def swapped(x):
    a = x[0].copy()
    x[0] = x[-1]
    x[-1] = a


def places(x):
    x[np.array([1, 3, 1])] = 5
    x[[0, 2]] += 1


def masked(x):
    x[x > 2] = 0
    x[x < 0] *= -1


def sorted_(x):
    x.sort()


def running(x):
    x[...] = np.cumsum(x, axis=0)


def filled(x):
    x.fill(3)


def elements(x):
    for i in range(1, x.shape[0]):
        x[i] = 0.5 * x[i] + x[i - 1]
    return x.sum()


def with_condition(x):
    for i in range(x.shape[0]):
        if np.sum(x[i]) > 0:
            x[i] -= 1


def until(x):
    n = 0
    while x.sum() > -50:
        x -= 1
        n += 1
    return n


def steps(x):
    for _ in range(20):
        x[1:-1] = (x[:-2] + x[2:]) / 2


def in_a_branch(x):
    if x.sum() > 0:
        x[0] = 1
    else:
        x *= 2


def at_a_place(x):
    i = np.argmax(x) % x.shape[0]
    x[i] = -1


def fails_half_way(x):
    for i in range(x.shape[0] + 1):
        x[i] = 0


PROGRAMS = [
    *(add, shifted, reversed_, swapped, places, masked, sorted_, running, filled, elements),
    *(with_condition, until, steps, in_a_branch, at_a_place),
]


@pytest.mark.parametrize("program", PROGRAMS)
def test_views_are_written(program: Callable[[Array], Any], all_cases: bool) -> None:
    """Each layout with a short or a long one, the other for half of the programs; or with both."""
    layouts = (column, every_other_backwards, transposed, block, columns)
    for k, layout in enumerate(layouts, len(program.__name__)):
        compiled = jt.jit(program)
        for n in (5, 40) if all_cases else (5, 40)[k % 2 :][:1]:
            (whole, x), (other, y) = layout(n), layout(n)
            for _ in range(2):
                np.testing.assert_array_equal(compiled(x), program(y))
                np.testing.assert_array_equal(whole, other)


def test_a_call_that_fails_leaves_views_alone() -> None:
    whole, x = column(40)
    before = whole.copy()
    with pytest.raises(IndexError):
        jt.jit(fails_half_way)(x)
    np.testing.assert_array_equal(whole, before)


def test_columns_of_one_matrix_are_written_natively() -> None:
    def mix(a, b):
        a += b
        b *= 2

    ours, theirs = sample((50, 3)), sample((50, 3))
    compiled = jt.jit(mix)
    for _ in range(4):
        compiled(ours[:, 0], ours[:, 2])
        mix(theirs[:, 0], theirs[:, 2])
        np.testing.assert_array_equal(ours, theirs)
    assert compiled.cache_info().misses == 1
    compiled(ours[:, 0], ours[:, 0])
    mix(theirs[:, 0], theirs[:, 0])
    np.testing.assert_array_equal(ours, theirs)
