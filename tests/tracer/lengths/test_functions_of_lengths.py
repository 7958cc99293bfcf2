"""Functions of arrays of any length: one program for all lengths, with NumPy's and SciPy's results."""

import numpy as np
import pytest
import scipy.special as sp
from test_lengths import rows_of, same

import jitney as jt

W = np.random.default_rng(5).standard_normal((6, 4)).astype(np.float32)
SIZES = (17, 0, 1, 2, 1000)


def softmaxes(x):
    return sp.softmax(x, axis=1), sp.log_softmax(x, axis=1), sp.logsumexp(x, axis=1)


def sums_of_exponentials(x):
    wide = sp.logsumexp(x, axis=1, b=np.float32(2), keepdims=True)
    return wide, sp.softmax(x[:, :2].astype(np.int64), axis=-1)


def softmaxes_along(x):
    return sp.softmax(x, axis=0), sp.log_softmax(x, axis=0), sp.logsumexp(x, axis=0), sp.softmax(x)


def softmaxes_of_nothing(x):
    """As `softmaxes_along`, where SciPy has no largest element."""
    return softmaxes_along(x) if len(x) else (x, x, np.full(6, -np.inf, x.dtype), x)


def errors(x):
    return sp.erf(x), sp.expit(x), sp.ndtr(x), sp.i0(x), sp.xlogy(np.abs(x), np.abs(x) + 1)


def by_loops_of_their_own(x):
    y = np.abs(x.astype(np.float64)) + 1
    return sp.gammaln(y), sp.gammainc(y, 2.0), sp.digamma(y[:, 0])


def steps_along_the_axis(x):
    first = x[:, 0]
    return np.diff(x, axis=0), np.diff(x, 2, axis=0), np.diff(first), np.trapezoid(first)


def chosen(x):
    some = np.select([x > 0.5, x < -0.5], [x, 2 * x], 0)
    parts = np.piecewise(x, [x < 0, x >= 1], [lambda v: -v, 3.0, lambda v: v * v])
    return some, np.select([x[:, 0] > 0], [x[:, 1]], 7.0), parts


def chosen_by_number(x):
    return np.choose((x > 0).astype(np.int64), [x, 2 * x])


def along(x):
    best = x.argmax(axis=1)
    columns = (x[:, :3] > 0) + 2 * (x[:, 3:] > 0)
    picked = np.take_along_axis(x, columns, axis=1)
    return np.take_along_axis(x, best[:, None], axis=1), picked


def along_the_first(x):
    return np.take_along_axis(x, np.where(x > 0, 0, -1), axis=0)


def spread(x):
    n, k = x.shape
    return (
        np.broadcast_to(x.sum(axis=0), x.shape) + x,
        np.broadcast_to(x[:, :1], (n, k)) + 1,
        np.broadcast_to(x, (3, n, k)).sum(axis=0),
        np.broadcast_to(np.float32(2), n) + 1,
    )


def binned(x):
    return np.digitize(x, np.array([-1.0, 0.0, 1.0])), np.digitize(x[:, 0], [1.0, 0.0], right=True)


def replaced(x):
    y = x.copy()
    y[:, 0] = 1
    z = x.copy()
    z[:, 1:3] += x[:, :2]
    return y, z, np.where(x > 0, np.float32(1), x), np.nanmean(x, axis=1)


def replaced_by_at(x):
    y, z = jt.at(x)[:, 0].set(1.0), jt.at(x)[:, 1:3].add(x[:, :2])
    return y, z, jt.at(x)[x > 0].set(1.0), np.nanmean(x, axis=1)


def slopes(x):
    def loss(x):
        return (np.tanh(x @ W) ** 2).sum() + (sp.softmax(x, axis=1) * x).mean()

    def scaled(p):
        return (p["x"] * p["s"]).sum()

    total, by = jt.value_and_grad(scaled)({"x": x, "s": np.float32(2)})
    return jt.grad(loss)(x), total, by["x"], by["s"]


def slopes_of_parts(x):
    def loss(x):
        return ((x[1:] - x[:-1]) ** 2).sum() + np.where(x > 0, x * x, 0).sum()

    return jt.grad(loss)(x), jt.grad(lambda x: x.max(axis=0).sum())(x)


def pulled_and_pushed(x):
    y, pull = jt.vjp(lambda x: np.tanh(x @ W), x)
    return y, pull(np.ones((x.shape[0], 4), np.float32))[0], *jt.jvp(np.tanh, (x,), (2 * x,))


def pulled_to_weights(x):
    _, pull = jt.vjp(lambda w: np.tanh(x @ w), W + 0)
    return pull(x[:, :4] + 1)[0]


def slope_of_each(x):
    return jt.vmap(jt.grad(lambda r: np.tanh(r @ W).sum()))(x), jt.vmap(np.tanh)(x)


DERIVATIVES = (slopes, slopes_of_parts, pulled_and_pushed, pulled_to_weights, slope_of_each)
CASES = (
    *(softmaxes, sums_of_exponentials, (softmaxes_along, softmaxes_of_nothing), errors),
    *(by_loops_of_their_own, steps_along_the_axis, chosen, chosen_by_number),
    *(along, along_the_first, spread, binned, (replaced_by_at, replaced)),
)


@pytest.mark.parametrize("case", CASES, ids=lambda c: (c if callable(c) else c[0]).__name__)
@pytest.mark.filterwarnings("ignore")  # NumPy's, of means of nothing
def test_one_program_for_all_lengths(case):
    function, model = case if isinstance(case, tuple) else (case, case)
    f = jt.jit(function, dynamic={"x": {0: "n"}})
    for n in SIZES:
        x = rows_of(n)
        try:
            wanted = model(x)
        except (ValueError, IndexError) as error:  # the largest, or the last, of nothing
            with pytest.raises(type(error)):
                f(x)
            continue
        same(f(x), wanted)
    # One of no row, or of one that NumPy would broadcast, may be compiled for itself.
    assert f.cache_info().misses <= 3, f.cache_info()
    assert "no axis of any length" not in f.explain_recompile(), f.explain_recompile()


@pytest.mark.parametrize("function", DERIVATIVES)
def test_derivatives_by_what_has_any_length(function):
    f, each = jt.jit(function, dynamic={"x": {0: "n"}}), jt.jit(function)
    for n in SIZES:
        x = rows_of(n)
        if function is slopes_of_parts and not n:  # which has no largest element
            for g in (f, each):
                with pytest.raises(ValueError, match="zero-size"):
                    g(x)
            continue
        same(f(x), each(x))
        if function is slopes:
            np.testing.assert_array_equal(f(x)[2], np.full_like(x, 2))
    assert f.cache_info().misses <= 3, f.cache_info()
    assert "no axis of any length" not in f.explain_recompile(), f.explain_recompile()


def test_cotangents_of_other_lengths():
    f = jt.jit(lambda x, ct: jt.vjp(np.sin, x)[1](ct)[0], dynamic={"x": {0: "n"}, "ct": {0: "m"}})
    x = np.arange(5.0)
    same(f(x, x), np.cos(x) * x)
    with pytest.raises((ValueError, jt.errors.JitneyError)):
        f(x, x[:3])


def test_cotangents_end_at_lengths_that_are_values():
    """What is behind is not summed: not with weights that all rows share."""
    f = jt.jit(lambda x, n: jt.vjp(lambda w: x[:n] @ w, W + 0)[1]((x[:n] @ W) * 0 + 1)[0])
    x = rows_of(9)
    same(f(x, 4), x[:4].T @ np.ones((4, 4), np.float32))
