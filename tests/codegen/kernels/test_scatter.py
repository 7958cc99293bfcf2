"""Scatters: one update for each row as a choice in place, additions shared among threads."""

from __future__ import annotations

from contextlib import contextmanager

import numpy as np
import pytest

import jitney as jt
from jitney.runtime.threads import pool


@contextmanager
def threads_limited(threads: int):
    before = pool.get_threads()
    pool.set_threads(threads)
    try:
        yield
    finally:
        pool.set_threads(before)


def kernels(f, *arrays) -> int:
    return sum(" nest" in kernel.note for kernel in f.lower(*arrays).kernels)


@pytest.mark.parametrize("combine", ["set", "add", "multiply", "min", "max"])
@pytest.mark.parametrize("shape", [(40, 33), (5, 1), (1, 7), (12, 9, 4)])
def test_one_update_for_each_row(shape, combine):
    rng = np.random.default_rng(3)
    rows, classes = shape[:2]
    y = rng.integers(-classes, classes, rows)
    u = rng.standard_normal((rows, *shape[2:]))

    def f(y, u):
        return getattr(jt.at(jt.full(shape, 0.5))[np.arange(rows), y], combine)(u) * 2

    want = np.full(shape, 0.5)
    at = np.arange(rows), y
    old = want[at]
    want[at] = {
        "set": lambda: u,
        "add": lambda: old + u,
        "multiply": lambda: old * u,
        "min": lambda: np.minimum(old, u),
        "max": lambda: np.maximum(old, u),
    }[combine]()
    compiled = jt.jit(f)
    np.testing.assert_array_equal(compiled(y, u), want * 2)
    if rows > 1:
        assert kernels(compiled, y, u) == 1
        for bad in (classes, -classes - 1):
            wrong = y.copy()
            wrong[-1] = bad
            with pytest.raises(IndexError, match=f"index {bad} is out of bounds"):
                compiled(wrong, u)


def test_rows_that_are_not_counted_are_scattered():
    """Equal rows, and rows in another order, take more than one update or none."""
    y = np.array([1, 0, 2, 1])

    def f(rows):
        return lambda y, u: jt.at(jt.zeros((4, 3)))[rows, y].add(u)

    u = np.arange(1.0, 5)
    for rows in (np.array([0, 0, 1, 0]), np.arange(4)[::-1].copy(), np.array([0, 1, 2, 2])):
        want = np.zeros((4, 3))
        np.add.at(want, (rows, y), u)
        np.testing.assert_array_equal(jt.jit(f(rows))(y, u), want)


def test_gradient_of_choosing_one_of_each_row_is_a_row_program():
    def loss(x, y):
        m = x.max(axis=1)
        total = m + np.log(np.exp(x - m[:, None]).sum(axis=1))
        return (total - x[np.arange(len(x)), y]).mean()

    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((60, 21)), rng.integers(0, 21, 60)
    f = jt.jit(jt.value_and_grad(loss))
    value, gradient = f(x, y)
    p = np.exp(x) / np.exp(x).sum(axis=1, keepdims=True)
    p[np.arange(60), y] -= 1
    np.testing.assert_allclose(value, loss(x, y), rtol=1e-14)
    np.testing.assert_allclose(gradient, p / 60, atol=1e-15)
    assert len(f.explain(x, y).split("nests")) == 3, "one kernel for the rows, one for the mean"


def test_counting_arrays_are_not_stored():
    f = jt.jit(lambda x: x[np.arange(4000), np.indices((4000, 2))[0][:, 1]])
    x = np.random.default_rng(0).standard_normal((4000, 4000))
    np.testing.assert_array_equal(f(x), np.diag(x))
    assert "iota" in str(f.trace(x)) and "constant" not in str(f.trace(x))


@pytest.mark.parametrize("dtype", ["f4", "f8", "i8", "u1"])
@pytest.mark.parametrize(("updates", "places"), [(100_003, 100), (70_001, 3000), (200_000, 1)])
def test_many_updates_are_shared(updates, places, dtype):
    """Any integers as indices, negative ones too; the same bits with any number of threads."""
    rng = np.random.default_rng(updates)
    i = rng.integers(-places, places, updates)
    u = (rng.standard_normal(updates) * 3).astype(dtype)
    start = (rng.standard_normal(places) * 3).astype(dtype)
    for name, ufunc in (("add", np.add), ("min", np.minimum), ("max", np.maximum)):
        f = jt.jit(lambda x, i, u: getattr(jt.at(x)[i], name)(u))  # noqa: B023
        want = start.astype("f8" if dtype == "f4" else dtype)
        ufunc.at(want, i, u)
        for kind in ("i8", "i4", "i2"):
            found = []
            for threads in (1, 3):
                with threads_limited(threads):
                    found.append(f(start, i.astype(kind), u))
            assert found[0].tobytes() == found[1].tobytes()
            np.testing.assert_allclose(found[0], want, rtol=2e-5, atol=1e-2)
    wrong = i.copy()
    wrong[-3] = places
    for kind in ("i8", "i4"):
        with pytest.raises(IndexError, match=f"index {places} is out of bounds"):
            f(start, wrong.astype(kind), u)


def test_rows_are_added_in_parts():
    rng = np.random.default_rng(1)
    i, u = rng.integers(0, 50, (300, 100)), rng.standard_normal((300, 100, 5))
    want = np.ones((50, 5))
    np.add.at(want, i, u)
    f = jt.jit(lambda i, u: jt.at(jt.ones((50, 5)))[i].add(u))
    np.testing.assert_allclose(f(i, u), want, atol=1e-10)
    assert "parallel" in f.explain(i, u)


@pytest.mark.parametrize("combine", ["set", "add", "multiply", "min", "max"])
@pytest.mark.parametrize("dtype", ["f2", "f8"])
def test_lanes_whose_places_meet_come_one_after_the_other(combine, dtype):
    def f(x, i, u):
        return getattr(jt.at(x)[i % 7 - 3], combine)(u * 2 - 1)

    rng = np.random.default_rng(5)
    compiled, law = jt.jit(f), jt.jit(f, backend="interpreter")
    for n in (37, 64):
        x, u = (rng.integers(-2, 3, m).astype(dtype) for m in (7, n))
        i = rng.integers(0, 100, n)
        np.testing.assert_array_equal(compiled(x, i, u), law(x, i, u))


def test_the_first_wrong_index_of_a_vector_is_told():
    x, i, u = np.zeros(9), np.arange(50) % 9, np.ones(50)
    i[[21, 22]] = 9, -10

    @jt.jit
    def f(x, i, u):
        np.add.at(x, i, np.exp(u))
        return x

    with pytest.raises(IndexError, match="index 9 is out of bounds"):
        f(x, i, u)


def test_what_an_update_uses_several_times_has_no_memory():
    def f(x):
        place = np.sqrt(np.abs(x) * 50).astype(int) % 90
        place = np.where(np.sin(place) < 0, place, 90 - place)
        return jt.at(jt.zeros(91))[place].add(np.cos(place))

    x = np.random.default_rng(0).standard_normal(1003)
    np.testing.assert_allclose(jt.jit(f)(x), jt.jit(f, backend="interpreter")(x))
    assert kernels(jt.jit(f), x) == 2  # zeros, the update
