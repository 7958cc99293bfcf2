"""Arrays that loops make, as long as values say: a bound of the length is computed before the call."""

import numpy as np
import pytest

import jitney as jt

RANDOM = np.random.default_rng(0)
ROWS, COUNTS = RANDOM.integers(0, 6, (20, 15)), RANDOM.integers(0, 6, 20)


def entropies(x):
    out = np.zeros(len(x))
    for i in range(len(x)):
        counts = np.bincount(x[i])
        p = counts[counts > 0] / len(x[i])
        out[i] = -np.sum(p * np.log2(p)) + np.argmax(counts)
    return out


def tables(x):
    out = np.zeros((len(x), 6), int)
    for i in range(len(x)):
        out[i] = np.bincount(x[i], minlength=6)
    return out


def weighted(x, w):
    total = 0.0
    for i in range(len(x)):
        total += (np.bincount(x[i], weights=w[i]) ** 2).sum()
    return total


def filled(counts):
    out = np.zeros(len(counts))
    for i in range(len(counts)):
        z = np.zeros(counts[i])
        for k in range(counts[i]):
            z[k] = k * i
        out[i] = z.sum() + z.size
    return out


def made(counts):
    total = 0.0
    for i in range(len(counts)):
        n = counts[i] + 1
        total += np.sum(np.arange(n) ** 2) + np.full(n, i).sum() + np.zeros((n, 3)).size
        total += np.dot(np.ones(n), np.repeat(0.5, n))
    return total


def squares(counts):
    total = 0.0
    for i in range(len(counts)):
        n = counts[i] + 1
        total += np.eye(n).sum() + np.trace(np.full((n, n), 1.5), 1)
    return total


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (entropies, (ROWS,)),
        (tables, (np.sort(ROWS),)),
        (weighted, (ROWS, RANDOM.random(ROWS.shape))),
        (filled, (COUNTS,)),
        (made, (COUNTS,)),
        (squares, (COUNTS // 4,)),
    ],
    ids=lambda x: getattr(x, "__name__", ""),
)
def test_results_are_numpys(function, arguments):
    compiled = jt.jit(function)
    for args in (arguments, tuple(x[::-1].copy() for x in arguments)):
        np.testing.assert_allclose(compiled(*args), function(*args))
    assert compiled.cache_info().misses == 1


def test_larger_values_are_another_entry():
    compiled = jt.jit(filled)
    for counts in (COUNTS, 10 * COUNTS, COUNTS, COUNTS + 1):
        np.testing.assert_array_equal(compiled(counts), filled(counts))
    info = compiled.cache_info()
    assert info.misses == 2
    assert "test_lengths_in_loops.py:" in info.entries[1].reason


def test_errors_are_numpys():
    with pytest.raises(ValueError, match="negative dimensions are not allowed"):
        jt.jit(filled)(COUNTS - 3)
    with pytest.raises(ValueError, match="no negative elements"):
        jt.jit(entropies)(ROWS - 3)


def test_rows_that_are_as_long_as_a_value_says():
    def first(out, x, n):
        out[0] = x[:n]
        return out

    compiled = jt.jit(first)
    x = np.arange(5.0)
    np.testing.assert_array_equal(compiled(np.zeros((2, 3)), x, np.int64(3))[0], x[:3])
    with pytest.raises(ValueError, match="could not broadcast"):
        compiled(np.zeros((2, 3)), x, np.int64(2))


def test_a_bound_that_cannot_be_computed():
    def grown(x):
        n, total = 1, 0.0
        while total < x[0]:
            n = n * 2 + 1
            total += np.ones(n).sum()
        return total

    with pytest.raises(jt.errors.TracerIndexError, match=r"np\.ones\(n\)"):
        jt.jit(grown)(np.array([50.0]))


def test_what_else_stands_in_the_way_is_what_is_said():
    def determinants(counts):
        out = np.zeros(len(counts))
        for i in range(len(counts)):
            out[i] = np.linalg.det(np.ones((counts[i], counts[i])))
        return out

    with pytest.raises(jt.errors.DynamicShapeError, match="det of an array whose length"):
        jt.jit(determinants)(COUNTS)
