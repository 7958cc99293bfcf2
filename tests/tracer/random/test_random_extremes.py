"""The distributions of `jt.random` where parameters are extreme, in their tails, over whole ranges.

Seeds are fixed, as in test_random_distributions: a p-value is a number that does not change.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special, stats

import jitney as jt

R = jt.random
KEY = R.key(11)
COUNT = 200_000
ENOUGH = 1e-3

CONTINUOUS = {
    **{f"gamma {a}": (lambda k, s, a=a: R.gamma(k, a, s), stats.gamma(a)) for a in (0.3, 1.0, 1e6)},
    **{
        f"gamma f4 {a}": (lambda k, s, a=a: R.gamma(k, a, s, np.float32), stats.gamma(a))
        for a in (0.3, 1e3)
    },
    "loggamma tiny": (lambda k, s: R.loggamma(k, 1e-2, s), stats.loggamma(1e-2)),
    "beta": (lambda k, s: R.beta(k, 2.0, 300.0, s), stats.beta(2, 300)),
    "beta large": (lambda k, s: R.beta(k, 1e5, 1e5, s), stats.beta(1e5, 1e5)),
    **{
        f"von mises {kappa}": (lambda k, s, kappa=kappa: R.vonmises(k, 0.0, kappa, s), law)
        for kappa, law in (
            (1e-9, stats.uniform(-np.pi, 2 * np.pi)),
            *((kappa, stats.vonmises(kappa)) for kappa in (1e-3, 1e3, 2e6)),
        )
    },
    "t heavy": (lambda k, s: R.t(k, 0.1, s), stats.t(0.1)),
    "wald": (lambda k, s: R.wald(k, 1e3, s, None, 1.0), stats.invgauss(1e3, scale=1.0)),
    "generalized normal": (lambda k, s: R.generalized_normal(k, 0.3, s), stats.gennorm(0.3)),
    "weibull": (lambda k, s: R.weibull(k, 0.2, s), stats.weibull_min(0.2)),
    "noncentral": (lambda k, s: R.noncentral_chisquare(k, 3.0, 0.0, s), stats.chi2(3)),
}

# name -> (sampler, probability of k); the k that are looked at
COUNTS = {
    **{
        f"poisson {lam}": (lambda k, s, lam=lam: R.poisson(k, lam, s), stats.poisson(lam).pmf)
        for lam in (0.1, 9.99, 11.0, 400.0)
    },
    **{
        f"binomial {n} {p}": (lambda k, s, n=n, p=p: R.binomial(k, n, p, s), stats.binom(n, p).pmf)
        for n, p in ((10**9, 1e-8), (100, 0.11), (1000, 0.999), (21, 0.5))
    },
    **{
        f"zipf {a}": (
            lambda k, s, a=a: R.zipf(k, a, s),
            lambda k, a=a: np.maximum(k, 1) ** -a / (special.zeta(a) - special.zeta(a, 2.0**63)),
        )
        for a in (1.05, 1.2, 5.0)
    },
    "logseries": (lambda k, s: R.logseries(k, 0.9999, s), stats.logser(0.9999).pmf),
    "geometric": (lambda k, s: R.geometric(k, 0.99, s), stats.geom(0.99).pmf),
    "negative binomial": (lambda k, s: R.negative_binomial(k, 0.1, 0.5, s), stats.nbinom(0.1, 0.5).pmf),
    "hypergeometric": (
        lambda k, s: R.hypergeometric(k, 3, 10**6, 10**5, s), stats.hypergeom(10**6 + 3, 3, 10**5).pmf),
}  # fmt: skip


@pytest.mark.parametrize("name", CONTINUOUS)
def test_extreme_parameters(name):
    draw, law = CONTINUOUS[name]
    x = draw(KEY, (COUNT,)).astype(np.float64)
    assert stats.kstest(x[:50_000], law.cdf).pvalue > ENOUGH
    for p in (1e-3, 1e-4):
        for seen in ((x < law.ppf(p)).sum(), (x > law.isf(p)).sum()):
            assert stats.binomtest(int(seen), COUNT, p).pvalue > 1e-5


@pytest.mark.parametrize("name", COUNTS)
def test_extreme_counts(name):
    draw, probability = COUNTS[name]
    x = draw(KEY, (COUNT,))
    places = np.arange(1 if name.startswith("zipf") else 0, 1200)
    expected = probability(places.astype(np.float64)) * COUNT
    seen = np.bincount(x[x < 1200], minlength=1200)[places]
    often = expected > 25
    rest = COUNT - expected[often].sum(), COUNT - seen[often].sum()
    terms = (seen[often] - expected[often]) ** 2 / expected[often]
    total = terms.sum() + (rest[1] - rest[0]) ** 2 / max(rest[0], 25.0)
    assert stats.chi2.sf(total, often.sum()) > ENOUGH and (x >= 0).all()


@pytest.mark.parametrize(
    ("lam", "n"), [(1e4, 40_000), (1e6, 4_000_000), (1e10, 40_000_000_000), (4e13, 10**14)]
)
def test_large_counts_have_their_moments_and_quantiles(lam, n):
    for x, law in (
        (R.poisson(KEY, lam, (COUNT,)), stats.poisson(lam)),
        (R.binomial(KEY, n, 0.3, (COUNT,)), stats.binom(n, 0.3)),
        (R.hypergeometric(KEY, n // 40, n // 10, n // 20, (COUNT,)), None),
    ):
        if law is None:
            good, bad, drawn = n // 40, n // 10, n // 20
            mean = drawn * good / (good + bad)
            variance = mean * bad / (good + bad) * (good + bad - drawn) / (good + bad - 1)
        else:
            mean, variance = law.mean(), law.var()
        z = (x - mean) / variance**0.5
        assert abs(z.mean()) < 4 / COUNT**0.5
        assert abs(z.var() - 1) < 4 * (2 / COUNT) ** 0.5
        between = np.random.default_rng(0).uniform(-0.5, 0.5, 20_000) / variance**0.5
        assert stats.kstest(z[:20_000] + between, "norm").pvalue > ENOUGH


def test_parameters_next_to_nothing():
    """Numbers that are no floats are 0, proportions are not NaN, and what is likely is likely."""
    x = R.gamma(KEY, 1e-3, (COUNT,))
    assert np.isfinite(x).all()
    assert (
        stats.binomtest(int((x == 0).sum()), COUNT, stats.gamma(1e-3).cdf(5e-324)).pvalue > ENOUGH
    )
    b = R.beta(KEY, 0.01, 0.01, (COUNT,))
    assert ((b >= 0) & (b <= 1)).all()
    assert stats.binomtest(int((b < 0.5).sum()), COUNT).pvalue > ENOUGH
    between = stats.beta(0.01, 0.01)
    inside = float(between.cdf(0.9) - between.cdf(0.1))
    assert stats.binomtest(int(((b > 0.1) & (b < 0.9)).sum()), COUNT, inside).pvalue > ENOUGH
    d = R.dirichlet(KEY, np.full(4, 1e-5), (1000,))
    np.testing.assert_allclose(d.sum(-1), 1.0)
    assert ((d > 0.999).sum(0) > 200).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_tails_of_normal_and_uniform_numbers(dtype):
    z = R.normal(KEY, (4_000_000,), dtype)
    for far in (3.0, 4.0, 4.5):
        for seen in ((z > far).sum(), (z < -far).sum()):
            assert stats.binomtest(int(seen), z.size, stats.norm.sf(far)).pvalue > 1e-4
    assert np.isfinite(z).all()
    u = R.uniform(KEY, (4_000_000,), dtype)
    assert (u >= 0).all() and (u < 1).all()
    for small in (1e-3, 1e-5):
        for seen in ((u < small).sum(), (u >= 1 - small).sum()):
            assert stats.binomtest(int(seen), u.size, small).pvalue > 1e-4
    for draw in (R.exponential, R.gumbel, R.logistic, R.laplace, R.cauchy):
        assert np.isfinite(draw(KEY, (4_000_000,), dtype)).all()


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32,
                                   np.int64, np.uint64])  # fmt: skip
def test_whole_ranges_of_integers(dtype):
    info = np.iinfo(dtype)
    low, high = int(info.min), int(info.max) + 1
    x = R.integers(KEY, low, high, (COUNT,), dtype)
    assert x.dtype == dtype
    share = (x.astype(np.float64) - low) / (high - low)
    if info.bits > 16:
        assert stats.kstest(share[:50_000], "uniform").pvalue > ENOUGH
    bits = np.unpackbits(x.view(np.uint8).reshape(COUNT, -1), axis=1)
    counts = bits.sum(axis=0, dtype=np.int64)
    assert min(stats.binomtest(int(c), COUNT).pvalue for c in counts) > 1e-5
    edge = R.integers(KEY, high - 2, high, (1000,), dtype)
    assert set(edge.tolist()) == {high - 2, high - 1}
    whole = R.integers(KEY, low, high - 1, (1000,), dtype, endpoint=True)
    np.testing.assert_array_equal(whole, x[:1000])
    assert R.default_rng(0).integers(low, high, 3, dtype).dtype == dtype


def test_streams_are_independent():
    keys = R.split(KEY, 1000)
    rows = jt.vmap(lambda k: R.normal(k, (200,)))(keys)
    c = np.corrcoef(rows[:200]) - np.eye(200)
    assert abs(c).max() < 5.5 / 200**0.5
    assert stats.kstest(rows.mean(axis=1) * 200**0.5, "norm").pvalue > ENOUGH
    assert stats.kstest(rows.mean(axis=0) * 1000**0.5, "norm").pvalue > ENOUGH
    folded = jt.vmap(lambda i: R.normal(R.fold_in(R.key(5), i), (200,)))(np.arange(1000))
    assert abs(np.corrcoef(rows.ravel(), folded.ravel())[0, 1]) < 4 / 200_000**0.5
    children = [g.normal(size=20_000) for g in R.default_rng(3).spawn(5)]
    assert abs(np.corrcoef(children) - np.eye(5)).max() < 4 / 20_000**0.5
