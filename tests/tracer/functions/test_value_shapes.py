"""Functions whose result is as long as the values say: with `size=`, compiled and eager."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jitney as jt

Array = np.ndarray[Any, Any]


def padded(found: Array, size: int, fill: Any, axis: int = 0) -> Array:
    """The first `size` entries, filled up."""
    found = np.moveaxis(found, axis, 0)[:size]
    rest = np.full((size - len(found), *found.shape[1:]), fill, found.dtype)
    return np.moveaxis(np.concatenate([found, rest]), 0, axis)


def check(f: Any, arrays: tuple[Array, ...], expected: Any) -> None:
    """Eagerly and compiled, `f` gives what is expected, dtypes included."""
    check_all((f, arrays, expected))


def check_all(*calls: tuple[Any, tuple[Array, ...], Any]) -> None:
    """`check` of each, compiled as one program."""

    def program(arrays: Any) -> Any:
        return [f(*given) for (f, *_), given in zip(calls, arrays, strict=True)]

    arrays = [given for _, given, _ in calls]
    for results in (program(arrays), jt.jit(program)(arrays)):
        for found, (_, _, expected) in zip(results, calls, strict=True):
            several = isinstance(expected, tuple)
            pairs = zip(found, expected, strict=True) if several else [(found, expected)]
            for have, want in pairs:
                assert have.dtype == want.dtype
                np.testing.assert_array_equal(have, want)


elements = st.sampled_from([0.0, -0.0, 1.0, 2.0, -1.0, np.nan, np.inf])
vectors = st.lists(elements, max_size=12).map(lambda v: np.array(v, np.float64))


@settings(max_examples=12, deadline=None)
@given(vectors, st.integers(0, 14))
def test_places(x: Array, size: int) -> None:
    want = padded(np.flatnonzero(x), size, 0)
    check_all(
        (lambda x: jt.nonzero(x, size=size), (x,), (want,)),
        (
            lambda x: jt.flatnonzero(x, size=size, fill_value=-1),
            (x,),
            padded(np.flatnonzero(x), size, -1),
        ),
        (lambda x: jt.where(x > 0, size=size), (x,), (padded(np.flatnonzero(x > 0), size, 0),)),
        (lambda x: jt.extract(x > 0, x, size=size, fill_value=9), (x,), padded(x[x > 0], size, 9)),
        (lambda x: jt.trim_zeros(x, size=size), (x,), padded(np.trim_zeros(x), size, 0)),
    )


@pytest.mark.parametrize("n", [1, 63, 64, 65, 1000, 70_001, 200_003])
def test_places_of_long_masks(n: int) -> None:
    """Words, blocks and their ends; by one thread and by several."""
    rng = np.random.default_rng(n)
    for share in (0.0, 0.001, 0.5, 1.0):
        mask = rng.random(n) < share
        want = np.flatnonzero(mask)
        for size in (0, 1, len(want), len(want) + 13, n):
            f = jt.jit(lambda m, size=size: jt.flatnonzero(m, size=size, fill_value=-1))
            for threads in (1, 3):
                with jt.threads(threads):
                    np.testing.assert_array_equal(f(mask), padded(want, size, -1))


def test_places_in_batches() -> None:
    masks = np.random.default_rng(1).random((5, 3, 90)) < 0.3
    f = jt.vmap(jt.vmap(lambda m: jt.flatnonzero(m, size=40, fill_value=90)))
    want = [[padded(np.flatnonzero(m), 40, 90) for m in rows] for rows in masks]
    np.testing.assert_array_equal(f(masks), want)
    np.testing.assert_array_equal(jt.jit(f)(masks), want)


def test_places_in_several_dims() -> None:
    x = np.arange(24).reshape(2, 3, 4) % 5 - 1
    for size in (0, 3, 24, 30):
        check(
            lambda x, n=size: jt.nonzero(x, size=n, fill_value=7),
            (x,),
            tuple(padded(i, size, 7) for i in np.nonzero(x)),
        )
        check(lambda x, n=size: jt.argwhere(x, size=n), (x,), padded(np.argwhere(x), size, 0))
    check(lambda x: jt.nonzero(x, size=9, fill_value=(1, 2, 3))[2], (x * 0,), np.full(9, 3))
    mask = np.array([True, False])
    want = padded(np.compress(mask, x, axis=1), 4, 0, axis=1)
    check(lambda m, x: jt.compress(m, x, axis=1, size=4), (mask, x), want)
    check(lambda m, x: jt.compress(m, x, size=2), (mask, x), padded(np.compress(mask, x), 2, 0))


@settings(max_examples=12, deadline=None)
@given(vectors, vectors, st.integers(1, 14), st.booleans())
def test_sets(x: Array, y: Array, size: int, equal_nan: bool) -> None:
    values, index, inverse, counts = np.unique(x, True, True, True, equal_nan=equal_nan)
    fill = 5.0

    def unique(x: Any) -> Any:
        return jt.unique(x, True, True, True, equal_nan=equal_nan, size=size, fill_value=fill)

    got = jt.jit(unique)(x)
    eager = unique(x)
    for a, b in zip(got, eager, strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(got[0], padded(values, size, fill))
    np.testing.assert_array_equal(got[1][: len(index)], index[:size])
    np.testing.assert_array_equal(got[2], inverse)
    if len(counts) <= size:
        np.testing.assert_array_equal(got[3], padded(counts, size, 0))
    calls = [
        (
            lambda x: jt.unique_values(x, size=size, fill_value=0),
            (x,),
            padded(np.unique_values(x), size, 0),
        )
    ]
    for name in ("union1d", "intersect1d", "setdiff1d", "setxor1d"):
        want = padded(getattr(np, name)(x, y), size, fill)
        if np.isnan(x).any() or np.isnan(y).any():
            continue  # NumPy's set functions differ among themselves about NaN
        f = lambda x, y, n=name: getattr(jt, n)(x, y, size=size, fill_value=fill)  # noqa: E731
        calls.append((f, (x, y), want))
    check_all(*calls)


def test_unique_rows_and_named_tuples() -> None:
    x = np.array([[1, 2], [0, 5], [1, 2], [0, 4]])
    for axis in (0, 1):
        values, inverse = np.unique(x, axis=axis, return_inverse=True)
        found = jt.jit(lambda x, a=axis: jt.unique(x, False, True, axis=a, size=4))(x)
        count = values.shape[axis]
        np.testing.assert_array_equal(np.take(found[0], range(count), axis), values)
        np.testing.assert_array_equal(found[1], inverse)
    for name in ("unique_all", "unique_inverse", "unique_counts"):
        expected = getattr(np, name)(x)
        found = jt.jit(lambda x, n=name: getattr(jt, n)(x, size=5))(x)
        assert found._fields == expected._fields
        for field in found._fields:
            np.testing.assert_array_equal(getattr(found, field), getattr(expected, field))


def test_counts() -> None:
    x, w = np.array([1, 5, 1, -2, 9]), np.arange(5.0)
    check(lambda x: jt.bincount(x, length=4), (x,), np.array([0, 2, 0, 0]))
    check(lambda x, w: jt.bincount(x, w, length=6), (x, w), np.array([0, 2.0, 0, 0, 0, 1.0]))


def test_derivatives_go_to_the_elements() -> None:
    x = np.array([3.0, -1.0, 2.0, -5.0])
    g = jt.grad(lambda x: (jt.extract(x > 0, x, size=3) ** 2).sum())(x)
    np.testing.assert_array_equal(g, [6.0, 0.0, 4.0, 0.0])
    g = jt.jit(jt.grad(lambda x: (jt.unique(x, size=2) * np.array([1.0, 10.0])).sum()))(x)
    np.testing.assert_array_equal(g, [0.0, 10.0, 0.0, 1.0])


def test_a_length_without_a_bound_is_asked_for() -> None:
    x = np.ones(3)
    with pytest.raises(TypeError, match="length=n"):
        jt.jit(jt.vmap(lambda x: np.bincount(x.astype(int))))(x[None])
    with pytest.raises(ValueError, match="goes with size="):
        jt.jit(lambda x: jt.nonzero(x, fill_value=1))(x)
    with pytest.raises(ValueError, match="negative"):
        jt.jit(lambda x: jt.nonzero(x, size=-1))(x)


@settings(max_examples=8, deadline=None)
@given(vectors, vectors, st.sampled_from(["f4", "f8", "c16", "i8"]))
def test_sets_of_two_arrays(x: Array, y: Array, dtype: str) -> None:
    """With duplicates, zeros of both signs and NaN in one array, in both or in none."""
    if dtype == "i8":
        x, y = np.nan_to_num(x, posinf=9), np.nan_to_num(y, posinf=9)
    x, y = x.astype(dtype), y.astype(dtype)
    names = ("intersect1d", "setdiff1d", "setxor1d", "union1d")
    size = len(x) + len(y) + 2
    f = jt.jit(lambda x, y: [getattr(jt, n)(x, y, size=size, fill_value=5) for n in names])
    for name, found in zip(names, f(x, y), strict=True):
        np.testing.assert_array_equal(found, padded(getattr(np, name)(x, y), size, 5), name)


@pytest.mark.parametrize("few", [0, 3, 300])
def test_sets_of_long_arrays(few: int) -> None:
    rng = np.random.default_rng(few)
    x, y = (rng.standard_normal(n) for n in (50_001, 40_000))
    y[::2] = x[:20_000]
    if few:
        x, y = np.floor(x * few), np.floor(y * few + few)
    for name in ("intersect1d", "setdiff1d", "setxor1d", "union1d"):
        want = getattr(np, name)(x, y)
        size = len(want) + 1
        f = jt.jit(
            lambda x, y, name=name, size=size: getattr(jt, name)(x, y, size=size, fill_value=7)
        )
        np.testing.assert_array_equal(f(x, y), padded(want, size, 7), name)
