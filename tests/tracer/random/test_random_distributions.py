"""The distributions of `jt.random` against SciPy's: tests of fit with fixed seeds, moments, derivatives.

The seeds are fixed, so a p-value is a number that does not change. A right sampler gives less than
1e-3 for one seed in a thousand; a test at the end shows that slightly wrong ones are found out.
"""

from __future__ import annotations

import functools
import warnings

import numpy as np
import pytest
from scipy import stats

import jitney as jt

R = jt.random
KEY = R.key(2024)
COUNT = 20_000
ENOUGH = 1e-3
interpreted = functools.partial(jt.jit, backend="interpreter")

# name -> (sampler of (key, shape), distribution of SciPy's)
CONTINUOUS = {
    "uniform": (lambda k, s: R.uniform(k, s), stats.uniform()),
    "uniform f4": (lambda k, s: R.uniform(k, s, np.float32, -2, 3), stats.uniform(-2, 5)),
    "normal": (lambda k, s: R.normal(k, s), stats.norm()),
    "normal f4": (lambda k, s: R.normal(k, s, np.float32, 1.0, 3.0), stats.norm(1, 3)),
    "truncated": (lambda k, s: R.truncated_normal(k, -1.0, 2.5, s), stats.truncnorm(-1, 2.5)),
    "truncated far": (lambda k, s: R.truncated_normal(k, 8.0, 9.0, s), stats.truncnorm(8, 9)),
    "truncated tail": (
        lambda k, s: R.truncated_normal(k, -np.inf, -6.0, s), stats.truncnorm(-np.inf, -6)),
    "truncated f4": (
        lambda k, s: R.truncated_normal(k, np.full(s, 5.0), np.full(s, 6.0), s, np.float32),
        stats.truncnorm(5, 6)),
    "exponential": (lambda k, s: R.exponential(k, s, None, 2.0), stats.expon(scale=2)),
    "laplace": (lambda k, s: R.laplace(k, s, None, 1.0, 0.5), stats.laplace(1, 0.5)),
    "logistic": (lambda k, s: R.logistic(k, s, None, 1.0, 0.5), stats.logistic(1, 0.5)),
    "gumbel": (lambda k, s: R.gumbel(k, s, loc=1.0, scale=0.5), stats.gumbel_r(1, 0.5)),
    "cauchy": (lambda k, s: R.cauchy(k, s), stats.cauchy()),
    "lognormal": (lambda k, s: R.lognormal(k, 0.7, s, None, 0.3), stats.lognorm(0.7, 0, np.exp(0.3))),
    "rayleigh": (lambda k, s: R.rayleigh(k, 2.0, s), stats.rayleigh(scale=2)),
    "maxwell": (lambda k, s: R.maxwell(k, s), stats.maxwell()),
    "double maxwell": (lambda k, s: abs(R.double_sided_maxwell(k, 0, 2.0, s)), stats.maxwell(0, 2)),
    "weibull": (lambda k, s: R.weibull(k, 1.7, s, None, 2.0), stats.weibull_min(1.7, scale=2)),
    "weibull_min": (lambda k, s: R.weibull_min(k, 2.0, 0.8, s), stats.weibull_min(0.8, scale=2)),
    "pareto": (lambda k, s: R.pareto(k, 2.5, s), stats.pareto(2.5)),
    "power": (lambda k, s: R.power(k, 2.5, s), stats.powerlaw(2.5)),
    "triangular": (lambda k, s: R.triangular(k, -1, 0.5, 3, s), stats.triang(0.375, -1, 4)),
    "wald": (lambda k, s: R.wald(k, 2.0, s, None, 3.0), stats.invgauss(2 / 3, scale=3)),
    "gamma small": (lambda k, s: R.gamma(k, 0.2, s), stats.gamma(0.2)),
    "gamma": (lambda k, s: R.gamma(k, 3.5, s, None, 2.0), stats.gamma(3.5, scale=2)),
    "gamma large": (lambda k, s: R.gamma(k, 5e4, s), stats.gamma(5e4)),
    "gamma f4": (lambda k, s: R.gamma(k, 1.5, s, np.float32), stats.gamma(1.5)),
    "loggamma": (lambda k, s: R.loggamma(k, 0.7, s), stats.loggamma(0.7)),
    "beta": (lambda k, s: R.beta(k, 0.5, 2.0, s), stats.beta(0.5, 2)),
    "dirichlet": (lambda k, s: R.dirichlet(k, np.array([1.0, 2, 4]), s)[:, 1], stats.beta(2, 5)),
    "chisquare": (lambda k, s: R.chisquare(k, 3, s), stats.chi2(3)),
    "noncentral chisquare": (lambda k, s: R.noncentral_chisquare(k, 3, 2.5, s), stats.ncx2(3, 2.5)),
    "noncentral f": (lambda k, s: R.noncentral_f(k, 5, 9, 2.0, s), stats.ncf(5, 9, 2)),
    "f": (lambda k, s: R.f(k, 5, 9, s), stats.f(5, 9)),
    "t": (lambda k, s: R.t(k, 4.0, s), stats.t(4)),
    "generalized normal": (lambda k, s: R.generalized_normal(k, 3.0, s), stats.gennorm(3)),
    "von mises": (lambda k, s: R.vonmises(k, 0.3, 2.5, s), stats.vonmises(2.5, 0.3)),
    "von mises flat": (lambda k, s: R.vonmises(k, 0.0, 0.0, s), stats.uniform(-np.pi, 2 * np.pi)),
    "multivariate": (
        lambda k, s: R.multivariate_normal(k, [1.0, 2.0], [[2.0, 0.6], [0.6, 1.0]], s)[:, 1],
        stats.norm(2, 1),
    ),
    "ball": (lambda k, s: (R.ball(k, 3, 2, s) ** 2).sum(1) ** 1.5, stats.uniform()),
}  # fmt: skip

DISCRETE = {
    "integers": (lambda k, s: R.integers(k, -3, 4, s), stats.randint(-3, 4)),
    "integers wide": (
        lambda k, s: R.integers(k, -(2**61), 2**61, s) // 2**59, stats.randint(-4, 4)),
    "integers of an array": (
        lambda k, s: R.integers(k, np.full(s, 2), np.array(9), s), stats.randint(2, 9)),
    "integers u1": (lambda k, s: R.integers(k, 200, 256, s, np.uint8), stats.randint(200, 256)),
    "randint": (lambda k, s: R.randint(k, s, 0, 6), stats.randint(0, 6)),
    "bernoulli": (lambda k, s: R.bernoulli(k, 0.3, s), stats.bernoulli(0.3)),
    "rademacher": (lambda k, s: (R.rademacher(k, s) + 1) // 2, stats.bernoulli(0.5)),
    "geometric": (lambda k, s: R.geometric(k, 0.3, s), stats.geom(0.3)),
    "poisson small": (lambda k, s: R.poisson(k, 0.4, s), stats.poisson(0.4)),
    "poisson": (lambda k, s: R.poisson(k, 9.5, s), stats.poisson(9.5)),
    "poisson large": (lambda k, s: R.poisson(k, 10.5, s), stats.poisson(10.5)),
    "poisson larger": (lambda k, s: R.poisson(k, 400.0, s), stats.poisson(400)),
    "binomial small": (lambda k, s: R.binomial(k, 10, 0.3, s), stats.binom(10, 0.3)),
    "binomial few fail": (lambda k, s: R.binomial(k, 30, 0.9, s), stats.binom(30, 0.9)),
    "binomial": (lambda k, s: R.binomial(k, 40, 0.4, s), stats.binom(40, 0.4)),
    "binomial large": (lambda k, s: R.binomial(k, 5000, 0.7, s), stats.binom(5000, 0.7)),
    "multinomial": (lambda k, s: R.multinomial(k, 12, [0.2, 0.5, 0.3], s)[:, 1], stats.binom(12, 0.5)),
    "negative binomial": (lambda k, s: R.negative_binomial(k, 4, 0.4, s), stats.nbinom(4, 0.4)),
    "hypergeometric": (lambda k, s: R.hypergeometric(k, 30, 20, 15, s), stats.hypergeom(50, 30, 15)),
    "hypergeometric most": (
        lambda k, s: R.hypergeometric(k, 5, 40, 38, s), stats.hypergeom(45, 5, 38)),
    "hypergeometric large": (
        lambda k, s: R.hypergeometric(k, 4000, 9000, 2500, s), stats.hypergeom(13000, 4000, 2500)),
    "hypergeometric few": (lambda k, s: R.hypergeometric(k, 3, 4, 2, s), stats.hypergeom(7, 3, 2)),
    "zipf": (lambda k, s: R.zipf(k, 2.5, s), stats.zipf(2.5)),
    "logseries": (lambda k, s: R.logseries(k, 0.7, s), stats.logser(0.7)),
    "categorical": (
        lambda k, s: R.categorical(k, np.log([0.2, 0.5, 0.3]), shape=s),
        stats.rv_discrete(values=([0, 1, 2], [0.2, 0.5, 0.3])),
    ),
    "choice": (lambda k, s: R.choice(k, 5, s), stats.randint(0, 5)),
    "weighted choice": (
        lambda k, s: R.choice(k, 3, s, p=[0.2, 0.5, 0.3]),
        stats.rv_discrete(values=([0, 1, 2], [0.2, 0.5, 0.3])),
    ),
}  # fmt: skip


def fit(sample: np.ndarray, law) -> float:
    """Kolmogorov and Smirnov's p-value."""
    return float(stats.kstest(sample.astype(np.float64), law.cdf).pvalue)


def counts_fit(sample: np.ndarray, law) -> float:
    """Pearson's chi-squared p-value, over values of at least 20 expected occurrences."""
    values = np.arange(int(law.ppf(1e-4)), int(law.ppf(1 - 1e-4)) + 2)
    edges = [values[0]]
    for v in values[1:]:
        if (
            law.cdf(v - 1) - law.cdf(edges[-1] - 1) > 20 / sample.size
            and law.sf(v - 1) > 20 / sample.size
        ):
            edges.append(v)
    cuts = np.array([*edges[1:], np.inf])
    below = np.array([law.cdf(c - 1) if np.isfinite(c) else 1.0 for c in cuts])
    expected = np.diff(np.concatenate([[0.0], below])) * sample.size
    seen = np.histogram(np.searchsorted(edges[1:], sample, "right"), np.arange(len(cuts) + 1))[0]
    return float(stats.chisquare(seen, expected * (sample.size / expected.sum())).pvalue)


@pytest.mark.parametrize("name", CONTINUOUS)
def test_continuous_distributions(name):
    draw, law = CONTINUOUS[name]
    x = draw(KEY, (COUNT,))
    assert x.shape == (COUNT,) and np.isfinite(x).all()
    assert fit(x, law) > ENOUGH
    # Neighbours have nothing to do with each other.
    ranks = stats.rankdata(x)
    assert abs(np.corrcoef(ranks[1:], ranks[:-1])[0, 1]) < 4 / COUNT**0.5


@pytest.mark.parametrize("name", DISCRETE)
def test_discrete_distributions(name):
    draw, law = DISCRETE[name]
    x = draw(KEY, (COUNT,))
    assert x.shape == (COUNT,)
    assert counts_fit(x.astype(np.int64), law) > ENOUGH


def test_slightly_wrong_samplers_are_found_out():
    assert fit(1.03 * R.normal(KEY, (COUNT,)) + 0.02, stats.norm()) < ENOUGH
    assert fit(R.gamma(KEY, 3.6, (COUNT,)), stats.gamma(3.5)) < ENOUGH
    assert counts_fit(R.poisson(KEY, 10.2, (COUNT,)), stats.poisson(10)) < ENOUGH
    assert counts_fit(R.binomial(KEY, 40, 0.41, (COUNT,)), stats.binom(40, 0.4)) < ENOUGH
    assert counts_fit(R.integers(KEY, 0, 7, (COUNT,)) % 6, stats.randint(0, 6)) < ENOUGH


SOME = {
    **{
        name: CONTINUOUS[name][0]
        for name in ("truncated", "wald", "gamma", "dirichlet", "von mises")
    },
    **{
        name: DISCRETE[name][0]
        for name in ("integers wide", "poisson large", "binomial", "multinomial", "zipf", "choice")
    },
    "orthogonal": lambda k, s: R.orthogonal(k, 3, s),
    "permutation": lambda k, s: R.permutation(k, 20),
}


def test_compiled_as_a_part_and_interpreted():
    def program(key):
        return {name: draw(key, (17,)) for name, draw in SOME.items()}

    alone, parts = program(KEY), jt.jit(program)(KEY)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        by_hand = interpreted(program)(KEY)
    for name, part in parts.items():
        np.testing.assert_array_equal(alone[name], part, err_msg=name)
        np.testing.assert_allclose(part, by_hand[name], rtol=1e-10, err_msg=name)


def test_batches_of_keys_and_parameters():
    keys = R.split(KEY, 4)
    a = np.array([0.5, 1.0, 3.0, 20.0])
    for f in (lambda k, a: R.gamma(k, a, (3,)), lambda k, a: R.poisson(k, a, (3,))):
        each = [f(k, x) for k, x in zip(keys, a, strict=True)]
        np.testing.assert_allclose(jt.jit(jt.vmap(f))(keys, a), each, rtol=1e-12)
    assert R.gamma(KEY, a).shape == (4,)
    assert R.gamma(KEY, a[:, None], (4, 3)).shape == (4, 3)
    assert R.beta(KEY, a[:, None], np.ones(2)).shape == (4, 2)
    assert R.dirichlet(KEY, np.ones((4, 3))).shape == (4, 3)
    assert R.multinomial(KEY, np.array([5, 9]), np.full((2, 3), 1 / 3)).sum(-1).tolist() == [5, 9]
    assert R.gamma(KEY, a.astype(np.float32)).dtype == np.float32
    assert R.normal(KEY, None, None, a.astype(np.float32)).dtype == np.float32


def test_edges():
    nan = np.isnan
    assert R.gamma(KEY, np.inf) == np.inf == R.loggamma(KEY, np.inf)
    assert R.gamma(KEY, 0.0) == 0 and nan(R.gamma(KEY, -1.0)) and nan(R.gamma(KEY, np.nan))
    assert R.poisson(KEY, 0.0) == 0 and nan(R.poisson(KEY, -1.0, dtype=np.float64))
    assert R.binomial(KEY, 10, 0.0) == 0 and R.binomial(KEY, 10, 1.0) == 10
    assert R.binomial(KEY, 0, 0.5) == 0 and nan(R.binomial(KEY, 5, 1.5, dtype=np.float64))
    assert R.hypergeometric(KEY, 5, 0, 3) == 3 and R.hypergeometric(KEY, 0, 5, 3) == 0
    assert R.hypergeometric(KEY, 4, 5, 9) == 4 and R.hypergeometric(KEY, 4, 5, 0) == 0
    assert nan(R.hypergeometric(KEY, 4, 5, 10, dtype=np.float64))
    assert R.integers(KEY, 7, 8, (3,)).tolist() == [7, 7, 7]
    assert R.integers(KEY, 0, 2**64, (2,), np.uint64).dtype == np.uint64
    assert R.choice(KEY, 0, (0,)).shape == (0,) and R.permutation(KEY, 0).shape == (0,)
    assert R.gamma(KEY, np.ones((0, 3))).shape == (0, 3)
    assert (R.beta(KEY, 1e-3, 1e-3, (100,)) >= 0).all()  # no 0/0
    x = R.truncated_normal(KEY, -0.1, 0.1, (1000,), np.float32)
    assert (abs(x) < 0.1).all()
    for wrong in (
        lambda: R.integers(KEY, 5, 5),
        lambda: R.integers(KEY, 0, 300, (), np.uint8),
        lambda: R.choice(KEY, 3, (4,), replace=False),
        lambda: R.choice(KEY, 0, (4,)),
        lambda: R.choice(KEY, 3, (2,), p=[0.5, 0.5]),
        lambda: R.categorical(KEY, np.zeros(3), shape=(4,), replace=False),
        lambda: R.multivariate_normal(KEY, np.zeros(3), np.eye(2)),
    ):
        with pytest.raises(ValueError):
            wrong()
    with pytest.raises(TypeError, match="Python int"):
        jt.jit(lambda x: R.permutation(KEY, int(x[0])))(np.array([5]))
    assert jt.jit(lambda n: R.permutation(KEY, n))(5).tolist() == R.permutation(KEY, 5).tolist()


def test_permutations_and_choices():
    x = np.arange(24.0).reshape(4, 6)
    assert sorted(R.permutation(KEY, 1000).tolist()) == list(range(1000))
    rows = R.permutation(KEY, x)
    assert sorted(rows[:, 0].tolist()) == x[:, 0].tolist() and (np.diff(rows, axis=1) == 1).all()
    own = R.permutation(KEY, x, 1, independent=True)
    np.testing.assert_array_equal(np.sort(own, axis=1), x)
    assert len({tuple(np.argsort(r)) for r in own}) > 1
    assert len(set(R.choice(KEY, 50, (40,), replace=False).tolist())) == 40
    picked = R.choice(KEY, x, (2, 5), axis=1)
    assert picked.shape == (4, 2, 5) and (picked[1] - picked[0] == 6).all()
    few = R.choice(KEY, 4, (2,), replace=False, p=[0.5, 0.0, 0.5, 0.0])
    assert sorted(few.tolist()) == [0, 2]
    orders = jt.vmap(lambda k: R.permutation(k, 3))(R.split(KEY, 6000))
    seen = np.unique(orders @ [9, 3, 1], return_counts=True)[1]
    assert len(seen) == 6 and stats.chisquare(seen).pvalue > ENOUGH


def test_few_of_many_are_all_equally_likely():
    """Numbers that were there already are drawn again."""
    keys = R.split(KEY, 60_000)
    for n, count, base in ((8, 2, [8, 1]), (12, 3, [144, 12, 1])):
        draw = lambda k, n=n, count=count: R.choice(k, n, (count,), replace=False)  # noqa: E731
        found = jt.vmap(jt.jit(draw))(keys)
        seen = np.unique(found @ base, return_counts=True)[1]
        assert len(seen) == np.prod(np.arange(n, n - count, -1))
        assert stats.chisquare(seen).pvalue > ENOUGH
    many = R.choice(KEY, 2**60, (5000,), replace=False)
    assert len(set(many.tolist())) == 5000
    most = R.choice(KEY, 8000, (2000,), replace=False)
    assert len(set(most.tolist())) == 2000 and most.max() < 8000


def test_colours_of_an_urn():
    urn = np.array([20, 30, 5])
    x = R.multivariate_hypergeometric(KEY, urn, 12, (COUNT,))
    assert (x.sum(-1) == 12).all() and (x >= 0).all() and (x <= urn).all()
    law = stats.multivariate_hypergeom(urn, 12)
    for i, n in enumerate(urn):
        assert counts_fit(x[:, i], stats.hypergeom(55, n, 12)) > ENOUGH
    np.testing.assert_allclose(np.cov(x.T), law.cov(), atol=0.08)
    assert R.multivariate_hypergeometric(KEY, [[3, 4], [1, 0]], [7, 1]).tolist() == [[3, 4], [1, 0]]
    assert R.multivariate_hypergeometric(KEY, [3], 2).tolist() == [2]
    assert R.multivariate_hypergeometric(KEY, np.zeros((0,), int), 0).shape == (0,)


def test_rectangles_with_orthonormal_rows_or_columns():
    tall, wide = R.orthogonal(KEY, 5, (3,), m=2), R.orthogonal(KEY, 2, m=5)
    np.testing.assert_allclose(
        np.swapaxes(tall, 1, 2) @ tall, np.broadcast_to(np.eye(2), (3, 2, 2)), atol=1e-13
    )
    np.testing.assert_allclose(wide @ wide.T, np.eye(2), atol=1e-13)


def test_orthogonal_matrices_are_orthogonal_and_not_all_rotations():
    q = R.orthogonal(KEY, 4, (200,))
    np.testing.assert_allclose(
        q @ np.swapaxes(q, 1, 2), np.broadcast_to(np.eye(4), q.shape), atol=1e-13
    )
    assert 60 < (np.linalg.det(q) > 0).sum() < 140
    assert stats.kstest((q[:, 0, 0] + 1) / 2, stats.beta(1.5, 1.5).cdf).pvalue > ENOUGH


def test_truncated_normal_numbers_have_their_derivatives():
    """Against differences of the quantiles, in the middle and in both tails."""
    draw = jt.jit(lambda a, b: R.truncated_normal(KEY, a, b, (8,)))
    along = jt.jit(lambda *ends: jt.jvp(draw, ends[:2], ends[2:])[1])
    for low, high in ((-1.0, 2.0), (4.5, 5.0), (8.0, 9.0), (-9.0, -6.0)):
        for da, db in ((1.0, 0.0), (0.0, 1.0)):
            slope = along(low, high, da, db)
            h = 1e-5
            ends = [draw(low + s * h * da, high + s * h * db) for s in (1, -1)]
            np.testing.assert_allclose(slope, (ends[0] - ends[1]) / (2 * h), atol=1e-9)
    slope = jt.jvp(lambda a: R.truncated_normal(KEY, a, np.inf, (8,)), (7.0,), (1.0,))[1]
    assert np.isfinite(slope).all()


@pytest.mark.parametrize("a", [0.05, 0.7, 3.0, 30.0, 2000.0, 3e5])
def test_gamma_has_the_implicit_derivative(a):
    """The quantile of the same probability moves with a."""
    draw = lambda a: R.gamma(KEY, a, (20,))  # noqa: E731
    x, slope = jt.jvp(draw, (a,), (1.0,))
    h = 1e-5 * a
    law = stats.gamma
    lower, upper = law.cdf(x, a), law.sf(x, a)
    left = (law.ppf(lower, a + h) - law.ppf(lower, a - h)) / (2 * h)
    right = (law.isf(upper, a + h) - law.isf(upper, a - h)) / (2 * h)
    np.testing.assert_allclose(slope, np.where(lower < 0.5, left, right), rtol=1e-5, atol=1e-9)
    np.testing.assert_allclose(jt.jit(jt.grad(lambda a: draw(a).sum()))(a), slope.sum(), rtol=1e-9)


def test_means_have_the_derivatives_of_the_means():
    """E[beta(a, b)] = a / (a + b), E[dirichlet] likewise, E[normal] and its variance."""
    shape = (40_000,)
    mean = jt.jit(jt.grad(lambda a, b: R.beta(KEY, a, b, shape).mean(), (0, 1)))(2.0, 3.0)
    np.testing.assert_allclose(mean, [3 / 25, -2 / 25], rtol=0.03)
    first = jt.grad(lambda p: R.dirichlet(KEY, p, shape)[:, 0].mean())
    np.testing.assert_allclose(
        jt.jit(first)(np.array([1.0, 2.0, 3.0])), [5 / 36, -1 / 36, -1 / 36], rtol=0.05
    )
    square = jt.grad(lambda m, s: (R.normal(KEY, shape, None, m, s) ** 2).mean(), (0, 1))
    np.testing.assert_allclose(square(0.5, 2.0), [1.0, 4.0], rtol=0.03)
    entry = jt.grad(lambda c: (R.multivariate_normal(KEY, np.zeros(2), c, shape)[:, 0] ** 2).mean())
    np.testing.assert_allclose(entry(np.array([[2.0, 0.5], [0.5, 1.0]]))[0, 0], 1.0, rtol=0.05)
    tail = jt.grad(lambda df: (R.t(KEY, df, shape) ** 2).mean())
    np.testing.assert_allclose(tail(12.0), -2 / 100, rtol=0.15)


def test_numbers_of_jax():
    """Those whose formulas are `jax.random`'s: to within rounding."""
    k = R.key(42)
    for draw, want in (
        (R.exponential, [0.5563942243855916, 0.015123860720489336, 0.8536549993431988]),
        (R.laplace, [0.15846230602649014, 3.5058868215207473, -0.16050781878325354]),
        (R.logistic, [-0.29521526220084393, -4.183910141360207, 0.29878068416298553]),
        (R.cauchy, [-0.23434604341667786, -21.19070234669309, 0.23723777098183235]),
        (R.gumbel, [0.16062720630382138, -1.4348544993307841, 0.5890136500161952]),
        (functools.partial(R.gumbel, mode="high"), [0.5862782, 4.1914816, 0.15822815]),
    ):
        np.testing.assert_allclose(draw(k, (3,)), want, rtol=1e-7 if "mode" in str(draw) else 1e-14)
    want = [0.01998452592513169, -0.9504476695340623, 0.32827144083703297]
    np.testing.assert_allclose(R.truncated_normal(k, -1.0, 2.0, (3,)), want, rtol=1e-13)
    assert R.bernoulli(k, 0.3, (10,)).tolist() == [i in (1, 8, 9) for i in range(10)]
    logits = np.log([0.2, 0.5, 0.3])
    assert R.categorical(k, logits, shape=(8,)).tolist() == [2, 1, 1, 1, 1, 2, 1, 2]
    high = R.categorical(k, logits, shape=(8,), mode="high")
    assert high.tolist() == [1, 1, 2, 2, 2, 1, 0, 0]
    coins = R.bernoulli(k, 0.3, (10,), "high")
    assert coins.tolist() == [i in (1, 8, 9) for i in range(10)]
