"""`np.ndenumerate` and `np.nditer` of traced arrays: indices and elements as NumPy gives them."""

from __future__ import annotations

import numpy as np
import pytest

import jitney as jt


def written(x):
    s = 0.0
    out = np.zeros(x.shape)
    for (i, j, k), v in np.ndenumerate(x):
        out[i, j, k] = v * (i + 10 * j + 100 * k)
        s += v * i
    return s, out


def read(x):
    s = 0.0
    for v in np.nditer(x):
        s = s * 0.9 + v
    return s


def listed(x):
    return [v * at[0] for at, v in np.ndenumerate(x[0, 0])]


def place_of_largest(x):
    best, place = -1.0, (0, 0, 0)
    for at, v in np.ndenumerate(x):
        if v > best:
            best, place = v, at
    return best, *place


@pytest.mark.parametrize("f", [written, read, listed, place_of_largest], ids=lambda f: f.__name__)
@pytest.mark.parametrize("shape", [(2, 3, 4), (5, 6, 20), (1, 1, 3), (1, 2, 0)])
def test_as_in_numpy(f, shape):
    x = np.random.default_rng(0).random(shape)
    try:
        wanted = f(x)
    except ValueError as error:
        with pytest.raises(ValueError, match=str(error)):
            jt.jit(f)(x)
        return
    got = jt.jit(f)(x)
    assert len(jt.tree.leaves(got)) == len(jt.tree.leaves(wanted))
    for a, b in zip(jt.tree.leaves(got), jt.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-13)


def test_several_arrays_are_broadcast():
    def f(a, b):
        s, rows = 0.0, []
        for u, v in np.nditer([a, b]):
            s = s * 0.5 + u * v
        for u, v, w in np.nditer((a, b, np.arange(3))):
            rows.append((u.item(), v.item() + w.item()))
        return s, rows

    def empty(a):
        for u, v in np.nditer([a, a]):
            a = a + u * v
        return a

    for a, b in ((np.ones(3) * 2, np.arange(6.0).reshape(2, 3)), (np.ones((4, 1)), np.arange(3))):
        assert jt.jit(f)(a, b) == f(a, b)
    with pytest.raises(ValueError, match="zero-sized"):
        jt.jit(empty)(np.zeros((0, 2)))
    with pytest.raises(jt.errors.TransformError, match="order C"):
        jt.jit(f)(np.ones((2, 3)), np.ones((3, 2)).T)


def test_long_ones_are_loops():
    ops = jt.jit(written).trace(np.ones((5, 6, 20))).ops
    assert len(ops) < 100 and any(op.name == "scan" for op in ops)


def test_other_orders_and_options_are_refused():
    with pytest.raises(jt.errors.TransformError, match="order C"):
        jt.jit(lambda x: read(x.T))(np.ones((2, 3)))
    with pytest.raises(jt.errors.TransformError, match="without options"):
        jt.jit(lambda x: list(np.nditer(x, op_flags=["readwrite"])))(np.ones(3))


def largest_around(x):
    found = np.ones(x.shape, bool)
    for place in np.ndindex(x.shape):
        for step in np.ndindex(*x.shape):
            other = tuple((p + s) % n for p, s, n in zip(place, step, x.shape, strict=True))
            found[place] &= x[other] <= x[place]
    return found


def numbered(x, n):
    total, places = 0.0, []
    for i, j in np.ndindex(n, 3):
        if x[i, j] > 0.9:
            break
        total += x[i, j] * i
    for k in np.ndindex(2):
        places.append(k)
    return total, places, list(np.ndindex(2, n - n + 1)), list(np.ndindex(0, 3))


def test_ndindex_is_the_loops_that_it_stands_for():
    x = np.sin(np.arange(20.0)).reshape(4, 5)
    np.testing.assert_array_equal(jt.jit(largest_around)(x), largest_around(x))
    lines = [str(jt.jit(largest_around).trace(np.ones((n, n)))) for n in (20, 30)]
    assert len(lines[1].splitlines()) < 1.1 * len(lines[0].splitlines())
    for n in (1, 4):
        assert jt.jit(numbered)(x, n) == numbered(x, n)
    with pytest.raises(ValueError, match="negative dimensions"):
        jt.jit(lambda x: [x[p] for p in np.ndindex(-1, 2)])(x)
