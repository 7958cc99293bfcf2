"""`jt.vectorize` of scalar functions with branches and loops of their own, as Numba's users write."""

import math

import numpy as np
import pytest

import jitney as jt

rng = np.random.default_rng(0)


def clip(x, low, high):
    if x < low:
        return low
    if x > high:
        return high
    return x


def newton(a):
    x = a
    for _ in range(60):
        following = 0.5 * (x + a / x)
        if abs(following - x) < 1e-12:
            break
        x = following
    return x


def gcd(a, b):
    while b:
        a, b = b, a % b
    return a


def series(x):
    term, total, k = 1.0, 1.0, 1
    while abs(term) > 1e-17 and k < 100:
        term = term * x / k
        total += term
        k += 1
    return total


CASES = [
    (clip, (rng.random((3, 4)), 0.25, rng.random(4))),
    (clip, (np.arange(5), np.int64(1), np.int64(3))),
    (newton, (rng.random(5) + 1,)),
    (newton, (np.ones(0),)),
    (gcd, (np.arange(1, 7)[:, None], np.arange(1, 5))),
    (series, (rng.random((2, 1, 3)),)),
    (lambda x, y: math.hypot(x, y) if x > y else max(x, y), (rng.random(6), rng.random(6))),
]


@pytest.mark.parametrize(("f", "args"), CASES)
def test_each_element_goes_its_own_way(f, args):
    got = jt.vectorize(f)(*args)
    if np.size(args[0]):
        expected = np.vectorize(f)(*args)
        assert got.dtype == expected.dtype
        np.testing.assert_allclose(got, expected, rtol=1e-14)
    inside = jt.jit(lambda *args: jt.vectorize(f)(*args))(*args)
    np.testing.assert_array_equal(got, inside)


def test_derivatives_are_those_of_the_way_that_was_taken():
    x = np.array([0.1, 0.5, 0.9])
    slopes = jt.grad(lambda x: jt.vectorize(clip)(x, 0.25, 0.75).sum())(x)
    np.testing.assert_array_equal(slopes, [0.0, 1.0, 0.0])
    roots = jt.jit(jt.grad(lambda a: jt.vectorize(newton)(a).sum()))(x + 1)
    np.testing.assert_allclose(roots, 0.5 / np.sqrt(x + 1), rtol=1e-6)


def test_results_go_where_they_are_wanted():
    x, out = np.arange(4.0), np.zeros(4)
    assert jt.vectorize(clip)(x, 1.0, 2.0, out=out) is out
    np.testing.assert_array_equal(out, [1, 1, 2, 2])

    two = jt.vectorize(lambda x: (x + 1, x * 2))
    first = np.zeros(4)
    made = two(x, out=(first, None))
    assert made[0] is first
    np.testing.assert_array_equal(made, [x + 1, x * 2])
    with pytest.raises(jt.errors.ShapeError, match="does not fit into out="):
        jt.vectorize(clip)(x, 1.0, 2.0, out=np.zeros(3))

    def own(x, out):
        return x + out

    np.testing.assert_array_equal(jt.vectorize(own, excluded={"out"})(x, out=1.0), x + 1)

    @jt.jit
    def inside(x, out):
        jt.vectorize(clip)(x, 1.0, 2.0, out=out)

    inside(x + 1, out)
    np.testing.assert_array_equal(out, [1, 2, 2, 2])


def test_lists_are_arrays():
    np.testing.assert_array_equal(jt.vectorize(clip)([1, 2, 3], 2, (2, 3, 2)), [2, 2, 2])


def test_numba_users_are_told_what_to_write():
    with pytest.raises(jt.errors.TransformError, match="(?s)no list of types.*write @jt.vectorize"):
        jt.vectorize(["float64(float64)"])
