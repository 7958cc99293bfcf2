"""Arrays with different fastest axes in one kernel: transposes, permutations, layouts of inputs."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jitney as jt

DTYPES = ("f4", "f8", "i1", "i2", "i4", "i8", "?")


def numbers(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    rng = np.random.default_rng(sum(shape))
    return rng.random(shape) < 0.5 if dtype == "?" else (rng.random(shape) * 90).astype(dtype)


def check(f, *arrays):
    got, want = jt.jit(f)(*arrays), f(*arrays)
    for g, w in zip(jt.tree.leaves(got), jt.tree.leaves(want), strict=True):
        np.testing.assert_array_equal(g, w)
        assert g.dtype == w.dtype


@pytest.mark.parametrize("dtype", DTYPES)
def test_squares(dtype):
    """Whole squares, squares that overlap at the ends, and arrays too narrow for any."""

    def turned(x, y):
        return x ^ y.T if dtype == "?" else (x + y.T, x.T * y - y[::-1])

    shapes = ((64, 64), (100, 37), (16, 16), (17, 33), (8, 9), (3, 200), (301, 150))
    pairs = [(numbers(shape, dtype), numbers(shape[::-1], dtype)) for shape in shapes]
    check(lambda pairs: [turned(*pair) for pair in pairs], pairs)


@pytest.mark.parametrize("dtype", DTYPES)
def test_squares_over_an_edge(dtype):
    """Vectors that lie beyond the edge of what is padded are not read."""
    edges = (((0, 20), (0, 0)), ((0, 0), (3, 9)), ((1, 2), (17, 0)))
    for shape in ((64, 64), (100, 37), (17, 33)):
        check(
            lambda x: [(np.pad(x, edge).T, np.pad(x[::-1], edge).T) for edge in edges],
            numbers(shape, dtype),
        )


@given(
    perm=st.permutations(range(4)),
    shape=st.tuples(*[st.sampled_from([1, 3, 8, 17, 20])] * 4),
    reverse=st.booleans(),
)
@settings(max_examples=12, deadline=None)
def test_permutations(perm, shape, reverse):
    x = numbers(shape, "f4")
    if reverse:
        x = x[:, ::-1]
    view = x.transpose(perm)
    check(lambda x: x.transpose(perm) * 2, x)
    check(lambda v: v * 2, view)
    check(lambda v, x: v + x.reshape(v.shape), view, x)


def test_in_place_with_its_own_transpose():
    """What is written is read by other squares: the old values count."""

    def f(x):
        x = x.copy()
        x += x.T
        x[:20] += x[:, :20].T
        return x

    for n in (48, 50):
        check(f, numbers((n, n), "f8"))


def test_loops_carry_transposes():
    def f(x, y):
        for _ in range(3):
            x, y = y.T + 1, x * 0.5
        return x - y

    check(f, numbers((40, 40), "f4"), numbers((40, 40), "f4"))
    step = jt.jit(lambda x: jt.fori_loop(0, 4, lambda i, x: x + x.T * 0.5, x))
    x = numbers((37, 37), "f8")
    want = x
    for _ in range(4):
        want = want + want.T * 0.5
    np.testing.assert_allclose(step(x), want, rtol=1e-14)


@pytest.mark.parametrize("shape", [(700, 700), (40, 300, 120)])
def test_reductions_of_mixed_layouts(shape):
    x = numbers(shape, "i8")
    y = np.asfortranarray(numbers(shape, "i8"))
    last = np.moveaxis(numbers((shape[-1], *shape[:-1]), "i8"), 0, -1)
    for axis in (None, 0, len(shape) - 1):
        check(lambda x, y, z: (x * y + z).sum(axis=axis), x, y, last)  # noqa: B023
        check(lambda x, y, z: (x * y - z).argmax(axis=axis), x, y, last)  # noqa: B023
    if len(shape) == 2:
        check(lambda x: (x * x.T).sum(), x)
        check(lambda x, y: (x.T * y + x).max(axis=1), x, y)


def test_every_order_of_axes_is_a_whole_vector_load():
    x = numbers((32, 48, 64), "f4")
    for perm in permutations(range(3)):
        text = jt.jit(lambda x: x.transpose(perm) + 1).lower(x).llvm()  # noqa: B023
        assert "gather" not in text


@pytest.mark.parametrize("n", [1, 2, 8, 9, 16, 17])
@pytest.mark.parametrize("target", ["native", "avx2"])
def test_division_of_padded_arrays(n: int, target: str) -> None:
    """Where one lane of the last vector is the array's and others are padding, LLVM must not take
    `x / select(c, 1, y)` for zero in those that are."""
    x = np.arange(1.0, n + 1) * 3

    def ratio(x: Any, pad: tuple[int, int]) -> Any:
        y = np.pad(x, pad)
        z = y / np.maximum(np.abs(y), 1)
        return z, z.sum(), (y / np.where(y == 0, 1, y)).prod()

    pads = [(0, 1), (0, 6), (1, 1), (1, 6), (7, 3), (8, 1)]
    with jt.config(cpu=target):
        check(lambda x: [ratio(x, pad) for pad in pads], x)
