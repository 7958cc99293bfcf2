"""Generators that a function under vmap makes for itself: each example has the numbers of its own."""

import random

import numpy as np
import pytest

import jitney as jt

SEEDS = np.arange(3)


def of_a_constant(x):
    return np.random.default_rng(0).normal(size=2) * x


def of_a_seed(seed):
    return np.random.default_rng(seed).normal(seed * 1.0, 2.0, size=3)


def legacy(seed):
    return np.random.RandomState(seed).rand()


def of_python(x):
    generator = random.Random(3)
    return generator.random() * x + generator.random()


def until(seed):
    rng, count = np.random.default_rng(seed), 0
    while rng.random() < 0.7:
        count += 1
    return count


def in_branches(seed):
    rng, x = np.random.default_rng(seed), np.zeros(4)
    for i in range(4):
        if rng.random() < 0.5:
            x[i] = rng.normal()
    return x.sum()


def drawn(rng, n):
    return sum(rng.random() for _ in range(n))


def by_a_helper(seed):
    return drawn(np.random.default_rng(seed), 3)


FUNCTIONS = [of_a_constant, of_a_seed, legacy, of_python, until, in_branches, by_a_helper]


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("jit", [False, True])
def test_each_example_draws_what_python_draws(function, jit):
    wanted = np.stack([function(int(seed)) for seed in SEEDS])
    batched = jt.vmap(function)
    result = (jt.jit(batched) if jit else batched)(SEEDS)
    assert result.shape == wanted.shape and np.allclose(result, wanted, rtol=1e-15)
    nested = jt.vmap(lambda seeds: jt.vmap(function)(seeds))(np.stack([SEEDS, SEEDS]))
    assert np.array_equal(nested, np.stack([result, result]))


@pytest.mark.parametrize("function", [of_a_constant, of_python])
@pytest.mark.parametrize("jit", [False, True])
def test_the_numbers_are_constants_of_derivatives(function, jit):
    def loss(x):
        return (jt.vmap(function)(x) ** 2).sum()

    x, step = np.array([0.5, 1.0, -2.0]), 1e-6
    gradient = (jt.jit(jt.grad(loss)) if jit else jt.grad(loss))(x)
    wanted = [
        ((function(v + step) ** 2).sum() - (function(v - step) ** 2).sum()) / (2 * step) for v in x
    ]
    assert np.allclose(gradient, wanted, rtol=1e-6)
    per_example = jt.vmap(jt.grad(lambda v: (function(v) ** 2).sum()))
    assert np.allclose((jt.jit(per_example) if jit else per_example)(x), wanted, rtol=1e-6)


@pytest.mark.parametrize("jit", [False, True])
def test_a_generator_of_outside_is_shared_by_the_examples_and_refused(jit):
    rng = np.random.default_rng(5)
    before = rng.bit_generator.state
    batched = jt.vmap(lambda x: rng.random() * x)
    with pytest.raises(jt.errors.OuterMutationError, match="lives outside of it"):
        (jt.jit(batched) if jit else batched)(SEEDS)
    assert rng.bit_generator.state == before
