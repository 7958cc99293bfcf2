"""Shapes that depend on numbers which are computed of the arguments: each call asks for these first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitney as jt

X = np.random.default_rng(0).normal(size=(6, 2))
LABELS = np.array([0, 2, 1, 2, 2, 0])


def centroids(y, x):
    k = y.max() + 1
    out = np.zeros((k, x.shape[1]))
    for i in range(k):
        out[i] = x[y == i].mean(axis=0)
    return out


def confusion(y):
    n = len(np.unique(y))
    table = np.zeros((n, n), int)
    for a, b in zip(y, y[::-1], strict=True):
        table[a, b] += 1
    return table


def bayes(y, x):
    classes = np.unique(y)
    mean = np.zeros((len(classes), x.shape[1]))
    for i, c in enumerate(classes):
        mean[i] = x[y == c].mean(axis=0)
    return mean


def adjacency(edges):
    n = edges.max() + 1
    near = np.zeros((n, n))
    for i, j in edges:
        near[i, j] = near[j, i] = 1
    return near, near.sum(0)


def moving_average(x):
    n = int(np.ceil(x.max() / 2))
    return np.convolve(x, np.ones(n) / n, "same")


def drawn(y):
    rng = np.random.default_rng(0)
    return rng.permutation(y.max() + 3), rng.normal(size=y.max())


PROGRAMS: dict[str, tuple[Callable[..., Any], list[tuple[Any, ...]]]] = {
    "centroids": (centroids, [(LABELS, X), (LABELS % 2, X), (LABELS, X + 1)]),
    "confusion": (confusion, [(LABELS,), (LABELS // 2,)]),
    "bayes": (bayes, [(LABELS, X), (LABELS // 2, X)]),
    "adjacency": (adjacency, [(np.array([[0, 1], [1, 2], [2, 4]]),), (np.array([[0, 1]] * 3),)]),
    "moving average": (moving_average, [(np.array([1.0, 5, 2, 8]),), (np.array([4.0, 3, 2, 1]),)]),
    "drawn": (drawn, [(LABELS,), (LABELS + 1,)]),
    "bincount": (np.bincount, [(LABELS,), (LABELS + 3,), (LABELS[:0],)]),
    "one hot": (lambda y: np.eye(y.max() + 1)[y], [(LABELS,), (LABELS * 2,)]),
    "repeat": (lambda r: np.repeat(np.arange(6.0), r), [(LABELS,), (LABELS[::-1],)]),
    "arange": (lambda t, dt: np.arange(t[0], t[1], dt), [(X[0] * [0, 9], 0.25), ([0.0, 1], 0.3)]),
    "linspace": (lambda t: np.linspace(t[0], t[1], int(9 * t[1])), [(np.array([0, 1.0]),)]),
    "shape": (lambda s: np.ones(s), [(np.array([2, 3]),), (np.array([3, 0]),)]),
    "chosen": (lambda x: x[x[:, 0] > 0].reshape(2, -1), [(X * [1, 0],), (np.abs(X),)]),
    "split": (lambda x: np.array_split(x[x[:, 0] > 0], 2), [(X,), (-X,)]),
    "list": (lambda x: np.zeros(max(x) + 1), [([1, 2, 3] * 10,), ([1, 2, 5] * 10,)]),
    "beside a constant": (lambda r: np.repeat(r, r + np.array([1, 0] * 3)), [(LABELS,)]),
    "groups": (lambda y: [np.sum(y == i) for i in range(int(y.max()) + 1)], [(LABELS,)]),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_whose_shapes_are_computed(name: str) -> None:
    function, calls = PROGRAMS[name]
    compiled = jt.jit(function)
    for _ in range(2):
        for args in calls:
            given = [np.array(a) if isinstance(a, np.ndarray) else a for a in args]
            got, want = compiled(*given), function(*args)
            if not isinstance(want, (tuple, list)):
                got, want = [got], [want]
            assert len(got) == len(want)
            for a, b in zip(got, want, strict=True):
                assert np.shape(a) == np.shape(b) and np.asarray(a).dtype == np.asarray(b).dtype
                np.testing.assert_allclose(a, b)
    assert compiled.cache_info().misses <= len(calls)  # what was compiled is found again


def test_a_call_asks_whether_the_number_is_the_same() -> None:
    f = jt.jit(lambda y: np.bincount(y).sum() + 0 * y)
    f(LABELS), f(LABELS[::-1].copy()), f(LABELS)
    assert (f.cache_info().misses, f.cache_info().hits) == (1, 2)
    f(LABELS + 1)
    assert "another number decides a shape at" in f.explain_recompile()
    assert __file__ in f.explain_recompile()
    assert "max %y" in str(f.trace(LABELS)) and f.lower(LABELS) and f.explain(LABELS)


def test_numbers_that_depend_on_numbers_are_asked_in_their_order() -> None:
    @jt.jit
    def f(x):
        first = np.zeros(x[0])
        first[:] = x[1]
        return np.ones(int(first[x[2]]))  # out of range where the first is another

    for x in ([3, 2, 2], [1, 4, 0], [3, 2, 1]):
        assert f(np.array(x)).shape == (x[1],)


def test_derivatives_and_state() -> None:
    def loss(w, x, y):
        return np.sum(np.eye(y.max() + 1)[y] * (x @ w))

    w = np.ones((2, 3))
    want = X.T @ np.eye(3)[LABELS]
    np.testing.assert_allclose(jt.jit(jt.grad(loss))(w, X, LABELS), want)
    inner = jt.jit(lambda w, x, y: jt.grad(lambda w: loss(w, x, y))(w))
    np.testing.assert_allclose(inner(w, X, LABELS), want)

    class Counts:
        @jt.jit
        def fit(self, y):
            self.k = y.max() + 1
            self.counts = np.bincount(y)
            y += 1
            return self.counts.sum()

    counts = Counts()
    for shift in (0, 3):
        y = LABELS + shift
        assert counts.fit(y) == 6 and counts.k == shift + 3
        np.testing.assert_array_equal(counts.counts, np.bincount(LABELS + shift))
        np.testing.assert_array_equal(y, LABELS + shift + 1)


def test_effects_and_draws_happen_once(capsys: pytest.CaptureFixture[str]) -> None:
    rng, same = np.random.default_rng(1), np.random.default_rng(1)

    @jt.jit
    def f(y):
        jt.debug_print("seen {}", y[0])
        return rng.normal(size=y.max())

    for shift in (0, 0, 1):
        np.testing.assert_array_equal(f(LABELS + shift), same.normal(size=2 + shift))
    assert capsys.readouterr().out.split() == ["seen", "0", "seen", "0", "seen", "1"]


def test_what_numpy_raises() -> None:
    count = jt.jit(np.bincount)
    assert count(LABELS).sum() == 6
    with pytest.raises(ValueError, match="no negative elements"):
        count(LABELS - 1)
    with pytest.raises(ValueError, match="negative dimensions"):
        jt.jit(lambda y: np.zeros(y.min()))(LABELS - 1)


def test_what_cannot_be_known_before_the_call() -> None:
    def growing(y):
        n, total = 1, 0.0
        while total < y[-1]:
            n = n * 2 + 1
            total += np.ones(n).sum()
        return total

    many = np.arange(40)
    with pytest.raises(jt.errors.TracerIndexError, match="needs an integer here"):
        jt.jit(growing)(many)
    with pytest.raises(jt.errors.DynamicShapeError, match="bincount"):
        jt.jit(jt.vmap(np.bincount))(many.reshape(4, 10))
    rng = np.random.default_rng(0)
    with pytest.raises(jt.errors.TracerIndexError):  # it would have to be drawn twice
        jt.jit(lambda y: y[0] + np.zeros(rng.integers(1, 5)))(LABELS)
    with pytest.raises(jt.errors.TracerIndexError):  # no values to compute it of
        jt.jit(lambda y: np.zeros(y.max())).trace(jt.ShapeDtype((3,), np.int64))


def test_arguments_that_share_memory() -> None:
    @jt.jit
    def f(a, b):
        a[0] += 1
        return np.zeros(b.max()), a + b

    for one, other in ((slice(4), slice(4)), (slice(4), slice(2, 6)), (slice(4), slice(4, 8))):
        x = np.arange(8)
        zeros, total = f(x[one], x[other])
        y = np.arange(8)
        y[0] += 1
        assert zeros.shape == (y[other].max(),)
        np.testing.assert_array_equal(total, y[one] + y[other])
        np.testing.assert_array_equal(x, y)
