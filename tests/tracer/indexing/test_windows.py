"""`x[i : i + 3]` with a traced i: a window of a length that is known, read, written, as a view."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitney as jt


def reads(x, i, j):
    return x[:, i : i + 2, None, j - 1 : j + 2], x[2, 2 * i : 3 + 2 * i : 2], x[i * 1 : i, j]


def writes(x, i, j):
    x[0, i : i + 2, j - 1 : j + 2] = -1
    x[1:, i : i + 2][..., j : j + 1] += 5
    x[[0, 1], i : i + 2, 0] *= 3
    part = x[:, j : 1 + j]
    part -= 1
    part[0] = part[1]
    return x


@pytest.mark.parametrize("function", [reads, writes])
@pytest.mark.parametrize("i, j", [(1, 2), (0, 1), (0, 3)])
def test_windows(function: Any, i: int, j: int) -> None:
    x = np.arange(75.0).reshape(3, 5, 5)
    want, got = function(x.copy(), i, j), jt.jit(function)(x.copy(), i, j)
    for have, expected in zip(got, want, strict=True):
        np.testing.assert_array_equal(have, expected)


@pytest.mark.parametrize("i", [-1, 4, 100])
def test_windows_lie_inside(i: int) -> None:
    with pytest.raises(IndexError, match=f"starts at {i}, 3 long, leaves axis 0 of size 6"):
        jt.jit(lambda x, i: x[i : i + 3])(np.arange(6.0), i)


@pytest.mark.usefixtures("traced_numbers")
def test_lengths_that_are_not_known() -> None:
    for wrong in (lambda x, i: x[:i], lambda x, i: x[i : 2 * i], lambda x, i: x[i : i - 2 : -1]):
        with pytest.raises(TypeError, match=r"x\[i : i \+ 3\]"):
            jt.jit(wrong)(np.arange(6.0), 2)
    with pytest.raises(IndexError, match="a window of 9 rows"):
        jt.jit(lambda x, i: x[i : i + 9])(np.arange(6.0), 2)


def test_derivatives_and_batches() -> None:
    def f(x, i):
        y = x * 2
        y[i : i + 3] *= x[3 - i : 6 - i]
        return (y[i : i + 3] ** 2).sum()

    x = np.linspace(1, 2, 6)
    jt.check_grads(lambda x: jt.jit(f)(x, 2), (x,), order=2)
    batched = jt.jit(jt.vmap(f, in_axes=(None, 0)))(x, np.arange(4))
    np.testing.assert_allclose(batched, [f(x, i) for i in range(4)])


def test_in_loops_and_branches() -> None:
    def f(x, n):
        def trip(i, x):
            low, x = 2 * i, x.copy()
            high = low + 2
            x = jt.cond(i > 0, lambda x: x + x[low:high].sum(), lambda x: x, x)
            x[i * 2 : i * 2 + 2] += x[i : i + 2]
            return x

        return jt.fori_loop(0, n, trip, x)

    np.testing.assert_array_equal(jt.jit(f)(np.arange(6.0), 3), f(np.arange(6.0), 3))


@pytest.mark.usefixtures("traced_numbers")
def test_parts_of_arrays_from_outside_of_a_branch() -> None:
    def rows(x, k):
        if k > 0:
            row = x[k]
            row[:] = 5
            window = x[k - 1 : k + 1]
            window[1:] -= 2
        return x

    def in_a_loop(x, k):
        while x.sum() < 40:
            row = x[k]
            row += 1
        return x

    for function in (rows, in_a_loop):
        for k in (0, 1, 2):
            want = function(np.zeros((3, 2)), k)
            compiled = jt.jit(function, autograph=True)
            np.testing.assert_array_equal(compiled(np.zeros((3, 2)), k), want)

    def outer(x, k):
        def then():
            row = x[k]
            row[:] = 5
            return row

        return jt.cond(k > 0, then, lambda: x[0])

    with pytest.raises(jt.errors.OuterMutationError, match="into a part of an array"):
        jt.jit(outer)(np.zeros((3, 2)), 1)


@pytest.mark.parametrize("i", [0, 1, 2, 5, 7, -1, -3])
def test_a_slice_that_ends_where_it_starts_or_before(i: int) -> None:
    """It is empty, but for an end that counts from behind: x[1:-1]."""

    def read(x: Any, i: Any) -> Any:
        return x[i : i - 2], x[i:i], x[i : i - 1 : 2]

    def write(x: Any, i: Any) -> Any:
        x[i : i - 2] = 7
        x[i:i] += 1
        return x

    for f in (read, write):
        got, wanted = jt.jit(f)(np.arange(6.0), np.int64(i)), f(np.arange(6.0), np.int64(i))
        for a, b in zip(got, wanted, strict=True):
            np.testing.assert_array_equal(a, b)
