"""`jt.prange`: sums over independent iterations are made in parts, which threads share."""

import math

import numpy as np
import pytest

import jitney as jt
from jitney.codegen.limits import DEFAULT, TINY, limited

N = 60_001
X = np.random.default_rng(0).normal(size=N)
SHARED = "iterations on several threads"


def sums(x):
    total = -1.0
    for i in jt.prange(x.size):
        total += math.exp(-x[i] * x[i])
    return total


def several(x):
    product, least, count, bits, size = 1.0, np.inf, 0, 1, 3
    for i in jt.prange(2, x.size - 5):
        v = x[i]
        product *= 1 + v * 1e-6
        least = min(least, v)
        if v > 0.5:
            count += 1
        bits |= int(abs(v) * 8)
        size += 2
    return product, least, count, bits, size


def differences(x):
    total = 100.0
    for i in jt.prange(0, x.size, 3):
        total -= math.exp(math.sin(x[i])) * math.exp(x[i] / 9)
    return total, i


def beside_elements(x):
    out = np.zeros(x.size)
    total = 0.0
    for i in jt.prange(x.size):
        out[i] = math.sqrt(abs(x[i]))
        total += out[i] * x[i]
    return total, out


def rows(x):
    total = 0.0
    for i in jt.prange(300):
        own = 0.0
        for j in range(200):
            v = x[i * 200 + j]
            own += math.exp(v) * math.exp(v / 3)
        total += math.sqrt(own)
    return total


def whole_rows(x):
    total = 0.0
    for i in jt.prange(300):
        for j in range(200):
            v = x[i * 200 + j]
            total += math.exp(v) * math.exp(v / 3)
    return total


def few(x):
    total = 0.0
    for i in jt.prange(37):
        for j in range(1500):
            v = x[i * 1500 + j]
            total += math.exp(v) * math.exp(v / 3)
    return total


def side_by_side(x):
    """Sums, products and extremes by way of one inner loop or two, and flags of `exp` in both."""
    total, product, least, most = 0.5, 1.0, np.inf, -np.inf
    for i in jt.prange(150):
        for j in range(200):
            v = x[i * 400 + j]
            total += math.exp(v) + math.exp(v / 3)
            product *= 1 + v * 1e-6
            least = min(least, v)
        for j in range(200):
            v = x[i * 400 + j + 200]
            total += math.sqrt(v * v)
            most = max(most, math.exp(v))
    return total, product, least, most


def largest(x):
    most = x[0]
    for i in jt.prange(x.size):
        v = x[i] * x[i] / (1 + abs(x[i]))
        if most < v:
            most = v
    return most


@pytest.mark.parametrize(
    "f",
    [sums, several, differences, beside_elements, rows, whole_rows, few, side_by_side, largest],
)
def test_parts_of_sums_are_shared_and_do_not_depend_on_threads(f):
    compiled = jt.jit(f)
    assert SHARED in str(compiled.explain(X))
    found = []
    for threads in (1, 2):
        with jt.threads(threads):
            found.append(jt.tree.leaves(compiled(X)))
    for a, b, expected in zip(*found, jt.tree.leaves(f(X)), strict=True):
        np.testing.assert_array_equal(a, b)
        np.testing.assert_allclose(a, expected, rtol=1e-11)


@pytest.mark.parametrize("at", [0, 1, N // 2, N - 1])
def test_an_extreme_over_nan_is_pythons(at):
    x = X.copy()
    x[at] = np.nan
    np.testing.assert_array_equal(jt.jit(largest)(x), largest(x))


def test_negative_zero_is_kept():
    def f(x):
        total = -0.0
        for i in jt.prange(x.size):
            total += x[i] * 0.0 * math.sqrt(1.0)
        return total

    zeros = jt.jit(f)(np.full(N, -1.0))
    assert zeros == 0 and math.copysign(1, zeros) == -1


def saturating(x):
    total = 0.0
    for i in jt.prange(x.size):
        if total < 10:
            total += math.exp(-x[i])
    return total


def handed_out(x):
    best, seen = -np.inf, 0
    for i in jt.prange(x.size):
        v = math.sin(x[i])
        if v > best:
            seen += 1
        best = max(best, v)
    return best, seen


def crossed(x):
    total = 1.0
    for i in jt.prange(300):
        other = 0.0
        for j in range(200):
            total += other * 1e-5
            other = other * 0.5 + total * math.sqrt(abs(x[i * 200 + j]))
    return total


def until_enough(x):
    total = 0.0
    for i in jt.prange(300):
        j, enough = 0, False
        while j < 200 and not enough:
            total += math.sqrt(abs(x[i * 200 + j]))
            enough = total > 1e4
            j += 1
    return total


@pytest.mark.parametrize("f", [saturating, handed_out, crossed, until_enough])
def test_what_asks_for_the_running_value_stays_whole(f):
    try:
        got = jt.jit(f)(X)
    except jt.errors.ConflictError:
        return
    np.testing.assert_allclose(got, f(X), rtol=1e-11)


def relaxed(u, steps):
    v = u.copy()
    for _ in range(steps):
        error = 0.0
        for i in jt.prange(1, u.size - 1):
            v[i] = math.sqrt(u[i - 1] * u[i - 1] + u[i + 1] * u[i + 1])
            error = max(error, abs(v[i] - u[i]))
        for i in jt.prange(1, u.size - 1):
            u[i] = v[i]
    return u, error


@pytest.mark.parametrize("steps", [0, 1, 4])
def test_threads_share_independent_loops_in_the_steps_of_another(steps):
    def f(u, steps):
        error = 0.0
        if steps > 0:
            u, error = relaxed(u, steps)
        return u, error

    compiled = jt.jit(f)
    expected = f(X.copy(), steps)
    for threads in (1, 2):
        with jt.threads(threads):
            got = compiled(X.copy(), steps)
            jt.tree.map(np.testing.assert_array_equal, got, expected)
    assert SHARED in str(jt.jit(relaxed).explain(X.copy(), 4))


def test_what_exp_cannot_give_in_an_inner_loop_is_raised():
    x = X.copy()
    x[31_234] = 800.0
    with pytest.raises(OverflowError):
        jt.jit(whole_rows)(x)


def test_an_error_in_a_part_is_raised():
    def f(x, places):
        total = 0.0
        for i in jt.prange(places.size):
            total += math.sqrt(abs(x[places[i]]))
        return total

    places = np.arange(N)
    np.testing.assert_allclose(jt.jit(f)(X, places), f(X, places), rtol=1e-11)
    places[N // 3] = N
    with pytest.raises(IndexError, match=f"index {N} is out of bounds"):
        jt.jit(f)(X, places)


def test_gradients_of_sums_in_parts():
    def f(x):
        total = 0.0
        for i in jt.prange(x.size):
            total += math.exp(-x[i] * x[i])
        return total

    x = X[:5000]
    np.testing.assert_allclose(jt.jit(jt.grad(f))(x), -2 * x * np.exp(-x * x), rtol=1e-12)


def bells(x, out):
    for i in jt.prange(out.size):
        out[i] = math.exp(-0.5 * x[i] * x[i])


def columns(x, out):
    for j in range(out.size):
        total = 0.0
        for k in range(40):
            total += x[j + k] * x[k]
        out[j] = out[j] * 0.5 + total


@pytest.mark.parametrize("f", [bells, columns])
@pytest.mark.parametrize("size", [30_000, 32 * 21])
def test_what_threads_take_ends_where_lanes_do(f, size):
    """Iterations run 8 or 32 at a time: never those of another thread, nor some behind the last."""
    x, around = X[: size + 40].copy(), np.full(size + 4096, 7.0)
    out = around[2048:-2048]
    wanted = out.copy()
    f(x, wanted)
    with jt.threads(2), limited(TINY if size < 1000 else DEFAULT):
        jt.jit(f)(x, out)
    np.testing.assert_allclose(out, wanted, rtol=1e-12)
    assert (around[:2048] == 7.0).all() and (around[-2048:] == 7.0).all()
