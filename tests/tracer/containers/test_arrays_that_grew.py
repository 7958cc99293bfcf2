"""Arrays made of lists that grew: computed with, indexed, sorted, put into other arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitney as jt

RNG = np.random.default_rng(4)
X = RNG.normal(size=50)
INTS = RNG.integers(0, 30, 50)
ROWS = RNG.normal(size=(10, 3))
INPUTS = (X, X - 9, np.abs(X) + 1, np.array([0.5]), np.array([2.0, np.nan, 1.0, 2.0, np.nan]))


def chosen(x):
    found = []
    for v in x:
        if v > 0 or v != v:
            found.append(v)
    return found


def elements(x):
    a = np.array(chosen(x))
    return a * 2 + 1, 1 - a, a[a > 1], np.sqrt(np.abs(a)), -a, a > 1, np.where(a > 1, a, 0.0), a**2


def orders(x):
    s = chosen(x)
    return np.sort(s), np.unique(s), np.cumsum(s), np.diff(s), np.flip(np.array(s)), np.cumprod(s)


def numbers(x):
    s, a = chosen(x), np.array(chosen(x))
    return (
        np.median(s),
        np.percentile(s, 30),
        np.quantile(a, [0.1, 0.9]),
        np.dot(s, a),
        np.count_nonzero(a),
    )


def sizes(x):
    a = np.array(chosen(x))
    return len(a), a.shape[0], a.size, a.ndim, a.dtype == np.float64


def parts(x):
    a = np.array(chosen(x))
    b = a[1:] if len(a) > 1 else a
    return (
        a[::-1],
        b[:2],
        np.concatenate([a, [1.0, 2.0]]),
        np.append(a, 3.0),
        np.isin(x, a),
        a.tolist(),
    )


def columns(x):
    xs, ys = [], []
    for i in range(len(x)):
        if x[i] > 0:
            xs.append(float(i))
            ys.append(x[i])
    return np.column_stack((xs, ys)), np.array(xs) - np.array(ys), np.sum(np.array(xs) * ys)


def places(x):
    found = []
    for i in range(len(x)):
        if x[i] > 0:
            found.append(i)
    y, z, w = x.copy(), x.copy(), x.copy()
    y[found] = 0.0
    z[found] += 5.0
    w[np.array(found)] = x[found] * 2
    return x[found], y, z, w, x[np.array(found)], np.delete(x, found), np.sum(x[found])


def through_branches_and_loops(x):
    a, i = np.array(chosen(x)), 0
    if x[0] > 0.2:
        a = a * 2
    b = a
    while len(b) > 3:
        b = b[b > np.median(b)]
    while i < 2:
        a = np.sort(a)[::-1]
        i += 1
    return a, b, a.sum()


FUNCTIONS = (through_branches_and_loops, elements, orders, numbers, sizes, parts, columns, places)


def same(a: Any, b: Any) -> None:
    assert type(a) is type(b), (a, b)
    if isinstance(a, (list, tuple)):
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            same(x, y)
    else:
        assert np.asarray(a).dtype == np.asarray(b).dtype
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("f", FUNCTIONS)
@pytest.mark.filterwarnings("ignore")
def test_functions(f: Any) -> None:
    compiled = jt.jit(f)
    for x in INPUTS:
        if f not in (places, numbers) or (x > 0).any():  # NumPy raises IndexErrors for none
            same(compiled(x), f(x))


def integers(x):
    s = []
    for v in x:
        if v % 3:
            s.append(v)
    counts = np.unique(s, return_counts=True)
    a = np.array(s)
    a += 1
    return (
        counts,
        np.bincount(s, minlength=30),
        np.sort(s),
        a,
        a / 2,
        np.argsort(np.array(s) * 100)[:1],
    )


def rows(x):
    keep = []
    for i in range(len(x)):
        if x[i].sum() > 0:
            keep.append(i)
    y = x.copy()
    y[keep] = 0.0
    y[keep, 1] = 4.0
    return x[keep], x[keep].mean(axis=0), x[np.array(keep)] * 2, y, x[keep, 1], x[keep] - x[0]


def rows_of_a_matrix(x):
    keep, points = [], []
    for i in range(len(x)):
        if x[i].sum() > 0.1:
            keep.append(i)
            points.append(x[i])
    p = np.array(points)
    a, b = p[:, 0], p[:, 1]
    area = np.dot(a, np.roll(b, -1)) - np.dot(b, np.roll(a, -1))
    parts = x[keep, :], x[keep, 1:], x[keep, 1], x[keep, -1:0:-1]
    mask = []
    for row in x:
        mask.append(bool(row[0] > 0))
    return area, np.roll(a, 2), p[::-1], np.roll(p, 4, axis=0), parts, x[mask, :2]


@pytest.mark.parametrize("f,x", [(integers, INTS), (rows, ROWS), (rows_of_a_matrix, ROWS)])
def test_integers_and_rows(f: Any, x: Any) -> None:
    same(jt.jit(f)(x), f(x))
    same(jt.jit(f, backend="interpreter")(x), f(x))


def test_errors_are_numpys() -> None:
    @jt.jit
    def lengths(x):
        return np.array(chosen(x)) + np.array([v for v in x if v > 1])

    @jt.jit
    def element(x):
        return np.array(chosen(x))[3]

    @jt.jit
    def outside(x):
        found = []
        for v in x:
            if v > 0:
                found.append(int(v))
        return x[found]

    with pytest.raises(ValueError, match="could not be broadcast together"):
        lengths(np.array([0.5, 2.0]))
    with pytest.raises(IndexError, match="index 3 is out of bounds for axis 0 with size 2"):
        element(np.array([0.5, 2.0]))
    with pytest.raises(IndexError):
        outside(np.array([0.5, 2.0]))


def views(x):
    a = np.array(chosen(x))
    b = a[1:]
    b += 1
    return a, b


def reshaped(x):
    return np.array(chosen(x)).reshape(2, -1)


def written(x):
    a = np.array(chosen(x))
    a[0] = 5.0
    return a


@pytest.mark.parametrize("f", [views, reshaped, written])
def test_what_is_refused(f: Any) -> None:
    with pytest.raises(jt.errors.DynamicShapeError, match="a list that grows"):
        jt.jit(f)(X)
