"""Everything that NumPy and Python draw, drawn by compiled functions bit for bit."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from streams import check, metropolis

import jitney as jt

# Everything that there is to draw


def everything(r: Any, x: float) -> Any:
    a = np.arange(12.0).reshape(4, 3) * x
    b = a.copy()
    r.shuffle(a)
    r.shuffle(b, axis=1)
    shuffled = (
        *(a, b, r.permutation(6), r.permutation(a), r.permutation(a, axis=1)),
        *(r.permuted(a), r.permuted(a, axis=1), r.permuted(b, axis=0)),
    )
    chosen = (
        *(r.choice(5), r.choice(5, 3), r.choice(5, 3, replace=False), r.choice(a[:, 0])),
        *(r.choice([1, 2, 3], p=[0.2, 0.3, 0.5], size=4), r.choice(a, 2, axis=1)),
        *(r.choice(5, 2, replace=False, p=[0.1, 0.2, 0.3, 0.2, 0.2]), r.choice([1.5, 2.5])),
        r.choice(9, 3, replace=False, shuffle=False),
    )
    whole = (
        *(r.integers(5), r.integers(5, 9, 3), r.integers(0, 5, (2, 2), np.int8)),
        *(r.integers(3, endpoint=True), r.integers(0, 2, 4, bool), r.integers(5, dtype=np.uint64)),
        *(r.integers(np.array([3, 4, 5])), r.integers([1, 2], [[4], [5]])),
    )
    floats = (
        *(r.random(), r.random(3), r.random((2, 2), np.float32), r.random(dtype=np.float32)),
        *(r.uniform(x, np.array([2.0, 3.0])), r.normal(), r.normal(x, [1.0, 2.0], (3, 2))),
        *(r.standard_normal(3, np.float32), r.standard_exponential(3), r.exponential(x, 2)),
        *(r.standard_exponential(3, method="inv"), r.gamma(2.0, x, 3), r.standard_gamma(x)),
        *(r.beta(x, 2.0), r.chisquare(x, 2), r.f(2.0, x), r.laplace(x, 2.0, 2), r.logistic(x)),
        *(r.gumbel(x, 2.0), r.lognormal(x), r.weibull(x), r.pareto(x), r.power(x), r.wald(x, 1.0)),
        *(r.rayleigh(x), r.vonmises(0.0, x), r.triangular(0.0, x, 2 * x), r.standard_t(x, 2)),
        *(r.standard_cauchy(), r.noncentral_chisquare(x, 2.0), r.noncentral_f(2.0, x, 1.0)),
    )
    counts = (
        *(r.poisson(x), r.poisson([1.0, 20.0]), r.binomial(10, 0.3, 3), r.geometric(0.3)),
        *(r.negative_binomial(3, 0.4, 2), r.zipf(x), r.logseries(0.4), r.hypergeometric(5, 6, 7)),
    )
    vectors = (
        *(r.multivariate_normal([0.0, x], np.eye(2)), r.dirichlet([1.0, x], 3)),
        *(r.multinomial(10, [0.2, 0.3, 0.5]), r.multivariate_hypergeometric([3, 4], 5)),
    )
    return shuffled, chosen, whole, floats, counts, vectors


def everything_legacy(r: Any, x: float) -> Any:
    a = np.arange(12.0).reshape(4, 3) * x
    r.shuffle(a)
    some = (
        *(a, r.permutation(6), r.permutation(a), r.choice(5), r.choice(5, 3, False)),
        *(
            r.choice(a[:, 0], 2),
            r.choice([1.0, 2.0], p=[0.3, 0.7]),
            r.choice(5, 2, False, [0.2] * 5),
        ),
        *(
            r.randint(5),
            r.randint(1, 7, 9),
            r.randint(0, 2, 5, np.int8),
            r.randint(5, dtype=np.int32),
        ),
        *(
            r.rand(),
            r.rand(2, 3),
            r.randn(),
            r.randn(3),
            r.random_sample(3),
            r.random(2),
            r.tomaxint(),
        ),
    )
    floats = (
        *(r.uniform(x, 3.0, 2), r.normal(x, 2.0, 3), r.standard_normal(), r.exponential(x, 3)),
        *(r.standard_exponential(), r.gamma(x, 2.0), r.standard_gamma(x, 2), r.beta(x, 2.0)),
        *(
            r.chisquare(x),
            r.f(2.0, x),
            r.laplace(x, 2.0),
            r.logistic(x),
            r.gumbel(x),
            r.lognormal(x),
        ),
        *(r.weibull(x), r.pareto(x), r.power(x), r.wald(x, 1.0), r.rayleigh(x), r.vonmises(0.0, x)),
        *(r.triangular(0.0, x, 2 * x), r.standard_t(x), r.standard_cauchy()),
    )
    counts = (
        *(r.poisson(x, 3), r.binomial(10, 0.3), r.binomial(0, 0.3), r.geometric(0.3)),
        *(r.negative_binomial(3, 0.4), r.zipf(x), r.logseries(0.4), r.hypergeometric(5, 6, 7)),
    )
    vectors = (
        *(r.multivariate_normal([0.0, x], np.eye(2), 2), r.dirichlet([1.0, x])),
        r.multinomial(10, [0.2, 0.3, 0.5], 2),
    )
    return some, floats, counts, vectors


def everything_in_python(r: Any, x: float) -> Any:
    cards = [1, 2, 3, 4, 5]
    r.shuffle(cards)
    sample = r.sample(range(50), 4), r.sample([1.5, 2.5, 3.5], 2)
    return (
        *(cards, sample, r.random(), r.uniform(1, x), r.randint(1, 6), r.randrange(9)),
        *(r.randrange(0, 100, 7), r.randrange(10, 0, -3), r.choice([1, 5, 7]), r.choice(range(9))),
        *(r.getrandbits(20), r.gauss(0, 1), r.gauss(x, 2), r.normalvariate(x, 2), r.expovariate(x)),
        *(r.choices([1, 2, 3], k=3), r.betavariate(x, 1), r.gammavariate(x, 1), r.paretovariate(x)),
        *(r.triangular(0, 2, x), r.vonmisesvariate(0, x), r.weibullvariate(x, 1)),
        r.lognormvariate(0, 1),
    )


@pytest.mark.parametrize("backend", ["native", "interpreter"])
def test_everything(backend: str) -> None:
    check(everything, np.random.default_rng(3), 1.5, backend=backend)
    check(everything_legacy, np.random.RandomState(3), 1.5, backend=backend)
    check(everything_in_python, random.Random(3), 1.5, backend=backend)


@pytest.mark.parametrize("bits", ["MT19937", "Philox", "SFC64", "PCG64DXSM"])
def test_other_bit_generators(bits: str) -> None:
    make = getattr(np.random, bits)
    check(everything, np.random.Generator(make(3)), 1.5)
    check(everything_legacy, np.random.RandomState(make(3)), 1.5)
    check(metropolis, np.random.Generator(make(3)), 100, autograph=True)


def test_out() -> None:
    def f(r: Any, x: Any) -> Any:
        r.random(out=x)
        return x + r.standard_normal(out=x.copy())

    check(f, np.random.default_rng(1), np.zeros(4))


class Replay:
    def __init__(self) -> None:
        self.items: list[Any] = []
        self.rng = random.Random(1)

    def run(self, xs: Any, k: int) -> Any:
        total = 0.0
        for x in xs:
            self.items.append((float(x), 2))
            if len(self.items) >= k:
                for a, b in self.rng.sample(self.items, k):
                    total += a * b
                total += self.rng.choice(self.items)[0]
        return total


def test_draws_from_a_list_that_grows() -> None:
    plain, replay, run = Replay(), Replay(), jt.jit(Replay.run)
    xs = np.random.default_rng(0).normal(size=50)
    for _ in range(2):
        assert run(replay, xs, 4) == plain.run(xs, 4)
        assert replay.items == plain.items and replay.rng.getstate() == plain.rng.getstate()


def test_as_many_as_an_argument_says_with_weights() -> None:
    def draw(xs: Any, weights: Any, k: int, array: Any) -> Any:
        return (
            random.choices(xs, weights=weights, k=k),
            random.choices(range(3), weights)[0],
            random.choices([10, 20, 30], cum_weights=[1, 2, 5], k=4),
            random.choices(array, [2 * v for v in array], k=3),
            random.choices(range(100), weights=np.arange(100.0) + xs[0], k=3),
            random.sample(range(10), k),
            random.random(),
        )

    arguments = [1.5, 2.5, 3.5], [1, 0.5, 3], 3, np.array([0.2, 0.3, 0.5])
    random.seed(3)
    wanted = draw(*arguments)
    random.seed(3)
    assert repr(jt.jit(draw)(*arguments)) == repr(wanted)
    chosen = jt.jit(lambda xs, weights: random.choices(xs, weights))
    for weights, text in (([0.0, 0.0, 0.0], "greater than zero"), ([1.0, 2.0], "does not match")):
        with pytest.raises(ValueError, match=text):
            chosen([1.0, 2.0, 3.0], weights)


def test_too_few_to_draw_from() -> None:
    def grown(n: int, k: int) -> Any:
        items = []
        for i in range(n):
            if i > 3:
                items.append(i)
        return random.sample(items, k) if k else random.choice(items)

    with pytest.raises(ValueError, match="Sample larger than population"):
        jt.jit(grown)(40, 100)
    with pytest.raises(IndexError, match="Cannot choose from an empty sequence"):
        jt.jit(grown)(np.int64(2), 0)
