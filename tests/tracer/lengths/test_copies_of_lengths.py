"""Loops that cannot end at a length: programs for copies of arguments with rows to spare."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_lengths import rows_of, same

import jitney as jt

DYNAMIC = {"x": {0: "n"}}
SIZES = (3, 17, 0, 64, 1, 65, 200)


def ordered(x):
    order = np.argsort(x[:, 0])
    return np.sort(x, axis=0), x[order], np.unique(np.floor(x[:, 1])), np.sort(x[:, ::2], axis=1)


def grown(x):
    return np.concatenate([x, 2 * x]), np.stack([x, x + 1]), np.append(x[:, 0], np.float32(3))


def chosen(x):
    return x[x[:, 0] > 0], x[:, 1][x[:, 1] > 0].sum(), np.flatnonzero(x[:, 2] > 0)


def in_both(x):
    distances = ((x[:, None] - x[None]) ** 2).sum(axis=2)
    return x @ x.T, np.outer(x[:, 0], x[:, 1]), distances, x.T * 2, np.eye(len(x)) + 1


def walked(x):
    best, total, out = np.float32(0), 0.5, np.zeros(len(x))
    for i in range(x.shape[0]):
        total = 0.9 * total + x[i, 0]
        out[i] = total
    for row in x:
        best = np.maximum(best, row[0] * row[1])
    i, steps = 0, 0
    while i < len(x):
        steps += x.shape[0] - i
        i += 2
    return out, best, steps


def nested(x):
    n, out = len(x), x[:, 0].copy()
    for i in range(n):
        for j in range(n - 1 - i):
            if out[j] > out[j + 1]:
                out[j], out[j + 1] = out[j + 1], out[j]
    return out


def placed_in_numpy(x):
    y = x.copy()
    y[1:] += x[:-1]
    y[x[:, 0] > 1] = 0
    y[x[:, 1] > 0] *= 2
    y[x[:, 2] > 1] = x[x[:, 2] > 1] - 1
    sums = np.zeros((4, 6), np.float32)
    np.add.at(sums, np.arange(len(x)) // 2 % 4, x)
    return y, sums, np.delete(x[:, 0], 0)


def placed(x):
    return *placed_in_numpy(x), jt.at(x)[::2].set(0)


def shifted(x):
    return np.roll(x, 1, axis=0), np.median(x[:, 0]), np.linalg.norm(x @ x.T)


FUNCTIONS = (ordered, grown, chosen, in_both, walked, nested, shifted)


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.filterwarnings("ignore")  # NumPy's, of means of nothing
def test_one_program_for_many_sizes(function):
    f = jt.jit(function, dynamic=DYNAMIC)
    for n in SIZES:
        x = rows_of(n)
        wanted = function(x)
        same(f(x), wanted)
        same(f(np.repeat(x, 2, axis=0)[::2]), wanted)
    # One of no row, or of one, may be compiled for itself.
    assert f.cache_info().misses <= 4, f.cache_info()
    assert "in a copy" in f.explain_recompile()


@pytest.mark.filterwarnings("ignore")
def test_many_sizes_have_few_programs():
    f = jt.jit(lambda x: np.sort(x, axis=0), dynamic="auto")
    numbers = np.random.default_rng(3).integers(2, 250, 200)
    for n in numbers:
        same(f(rows_of(n)), np.sort(rows_of(n), axis=0))
    assert f.cache_info().misses <= 4


_compiled = [jt.jit(f, dynamic=DYNAMIC) for f in (ordered, walked, placed)]


@given(n=st.integers(2, 80), seed=st.integers(0, 99), fortran=st.booleans())
@settings(max_examples=25, deadline=None)
def test_any_size_is_as_for_itself(n, seed, fortran):
    x = rows_of(n, seed=seed)
    wanted = [ordered(x), walked(x)]
    given = np.asfortranarray(x) if fortran else x
    for f, own in zip(_compiled, wanted, strict=False):
        same(f(given), own)
    same(_compiled[2](given)[:3], placed_in_numpy(x))
    assert all(f.cache_info().misses <= 2 for f in _compiled)


def test_nothing_behind_the_last_row_matters():
    f = jt.jit(lambda x: (np.sort(x, axis=0), x @ x.T, *chosen(x)), dynamic=DYNAMIC)
    for n in (3, 17, 64):
        whole = np.full((n + 40, 6), np.nan, np.float32)
        whole[20 : 20 + n] = rows_of(n)
        x = whole[20 : 20 + n]
        same(f(x), (np.sort(x, axis=0), x @ x.T, *chosen(x)))
    assert f.cache_info().misses == 1


def test_derivatives():
    def loss(x):
        down = np.sort(x, axis=0)[::-1]
        return (down * np.arange(len(x))[:, None]).sum() + np.tanh(x @ x.T).sum()

    f, each = jt.jit(jt.grad(loss), dynamic=DYNAMIC), jt.jit(jt.grad(loss))
    for n in (5, 2, 40):
        x = rows_of(n, np.float64)
        same(f(x), each(x))
    assert f.cache_info().misses == 1


def test_two_lengths():
    f = jt.jit(
        lambda x, y: (x @ y.T, np.concatenate([x, y])), dynamic={"x": {0: "n"}, "y": {0: "m"}}
    )
    for n, m in ((3, 4), (9, 2), (50, 60), (5, 100)):
        x, y = rows_of(n), rows_of(m)
        same(f(x, y), (x @ y.T, np.concatenate([x, y])))
    assert f.cache_info().misses == 2


class Kept:
    last = None


KEPT = Kept()


def kept(x):
    KEPT.last = x
    return np.tanh(x)


def kept_part(x):
    KEPT.last = x[1:]
    return np.sort(x, axis=0)


@pytest.mark.parametrize("function", [kept, kept_part])
def test_arguments_that_are_kept_are_these(function):
    f = jt.jit(function, dynamic=DYNAMIC)
    for n in (3, 4):
        x = rows_of(n)
        same(f(x), function(x))
        f(x)
        assert np.shares_memory(KEPT.last, x)
        assert (KEPT.last is x) == (function is kept)
    assert "keeping a view" in f.explain_recompile()


def parts(x):
    return x[1:], x[::-1, 2], x[:, 0], x.T, x[1], x[None, -2:].T[0], x[1:][:2], x[-1:, ::2]


@pytest.mark.parametrize("function", [parts, lambda x: (*parts(x), np.sort(x, axis=0))])
def test_views_of_arguments_are_views(function):
    f, each = jt.jit(function, dynamic=DYNAMIC), jt.jit(function)
    for n in (3, 4, 9):
        x = rows_of(n)
        for got, wanted, own in zip(f(x), function(x), each(x), strict=True):
            same(got, wanted)
            assert got.strides == wanted.strides
            assert np.shares_memory(got, x) == np.shares_memory(own, x)
            assert np.shares_memory(got, x) == np.shares_memory(wanted, x)
    assert f.cache_info().misses == 1


def test_elements_of_arguments_are_no_views():
    f = jt.jit(lambda x, i: (x[0], x[0, ...], x[i], x[-1:]), dynamic=DYNAMIC)
    for n in (3, 4):
        x = np.arange(n) / 2
        one, array, other, part = f(x, 1)
        assert type(one) is type(other) is np.float64 and one == 0 and other == 0.5
        assert array.shape == () and np.shares_memory(array, x) and np.shares_memory(part, x)


def test_what_is_done_to_arguments():
    def change(x):
        x[0] = 7
        return np.sort(x, axis=0)

    f = jt.jit(change, dynamic=DYNAMIC)
    whole = jt.jit(lambda x: (x, np.sort(x, axis=0)), dynamic=DYNAMIC)
    for n in (3, 4):
        x, y = rows_of(n), rows_of(n)
        same(f(x), change(y))
        same(x, y)
        assert whole(x)[0] is x
    assert whole.cache_info().misses == 1
