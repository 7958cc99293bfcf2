"""Draws in loops and branches of differentiated functions: one stream, compiled and in Python."""

from __future__ import annotations

import functools
from types import SimpleNamespace

import numpy as np
import pytest

import jitney as jt

R = jt.random
interpreted = functools.partial(jt.jit, backend="interpreter")
autograph = functools.partial(jt.jit, autograph=True)
rng, other = R.default_rng(0), R.default_rng(1)


@pytest.fixture(autouse=True)
def fresh():
    for generator in (rng, other):
        generator.state = R.default_rng(5).state


def agree(f, *args, wrap=jt.jit) -> None:
    """Two calls in a row give the same in Python and compiled, and leave the same states."""
    starts = rng.state, other.state
    plain = [f(*args), f(*args)]
    after = rng.state, other.state
    assert after[0][1] > starts[0][1]
    rng.state, other.state = starts
    g = wrap(f)
    compiled = [g(*args), g(*args)]
    np.testing.assert_array_equal([rng.state, other.state], after)
    for a, b in zip(jt.tree.leaves(plain), jt.tree.leaves(compiled), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


def power(w):
    return jt.fori_loop(0, 3, lambda i, c: c * rng.random() * w, w)


def in_a_counted_loop(x):
    return jt.value_and_grad(power)(x), rng.random()


def before_between_and_after(x):
    def loss(w):
        a = rng.normal()
        w = jt.fori_loop(0, 3, lambda i, c: c * rng.random(), w) * a
        b = rng.normal()
        w = jt.cond(w > 0, lambda w: w * rng.random() * rng.random(), lambda w: w * 2, w)
        return w * b * w

    return jt.grad(loss)(x), rng.random(), jt.grad(jt.grad(loss))(x), rng.random()


def in_a_loop_of_unknown_length(x):
    def loss(w):
        step = lambda c: (c[0] + 1, c[1] + w * rng.exponential())  # noqa: E731
        return jt.while_loop(lambda c: c[1] < 6.0, step, (0, w))[1]

    return jt.value_and_grad(loss)(x), rng.random()


def in_the_condition_of_a_loop(x):
    def loss(w):
        step = lambda c: (c[0] + 1, c[1] * w)  # noqa: E731
        return jt.while_loop(lambda c: rng.random() < 0.8, step, (0, w))[1]

    return jt.value_and_grad(loss)(x), loss(x), rng.random()


def in_a_scan(x):
    def loss(w):
        def step(total, x):
            return total + rng.random() * w * x, total * rng.normal()

        total, ys = jt.scan(step, 0.0, np.arange(4.0))
        return total + ys.sum()

    return jt.value_and_grad(loss)(x), rng.random(), jt.jvp(loss, (x,), (1.0,)), rng.random()


def in_a_switch(x):
    ways = [lambda w: w, lambda w: w * rng.random(), lambda w: w * rng.normal() * rng.normal()]
    loss = lambda w: sum(jt.switch(rng.integers(0, 3), ways, w) for _ in range(4))  # noqa: E731
    return jt.value_and_grad(loss)(x), rng.random()


def pulled_back_and_pushed_forward(x):
    out, pull = jt.vjp(power, x)
    between = rng.random()
    value, push = jt.linearize(power, x)
    return out, between, pull(1.0), rng.random(), value, push(2.0), push(1.0)


def twice(x):
    return jt.hvp(power, (x,), (1.0,)), rng.random(), jt.grad(jt.grad(power))(x), rng.random()


def under_a_checkpoint(x):
    layer = jt.checkpoint(power)
    return jt.value_and_grad(lambda w: layer(w) * layer(w) * rng.random())(x), rng.random()


def a_derivative_in_a_loop(x):
    def loss(w):
        def inner(u):
            return jt.fori_loop(0, 2, lambda j, d: d * u * rng.random(), u)

        return jt.fori_loop(0, 3, lambda i, c: c + jt.grad(inner)(w), w)

    return jt.value_and_grad(loss)(x), rng.random()


def in_an_inner_function(x):
    inner = jt.jit(power)
    return jt.grad(lambda w: inner(w) * inner(w))(x), rng.random()


@jt.custom_vjp
def scaled(x):
    return jt.fori_loop(0, 3, lambda i, c: c * rng.random(), x)


def scaled_forward(x):
    noise = jt.fori_loop(0, 3, lambda i, c: c * rng.random(), 1.0)
    return x * noise, noise


scaled.defvjp(scaled_forward, lambda noise, ct: (2 * noise * ct,))


def with_a_rule_of_its_own(x):
    return scaled(x), rng.random(), jt.grad(lambda x: scaled(x) * x)(x), rng.random()


def several_generators(x):
    own = R.default_rng(3)

    def loss(w):
        w = jt.fori_loop(0, 3, lambda i, c: c * rng.random() + other.normal() * own.normal(), w)
        return jt.fori_loop(0, 2, lambda i, c: c * rng.spawn(2)[1].random(), w) * own.random()

    return jt.value_and_grad(loss)(x), rng.random(), other.random(), own.random()


PROGRAMS = [
    in_a_counted_loop, before_between_and_after, in_a_loop_of_unknown_length,
    in_the_condition_of_a_loop, in_a_scan, in_a_switch, pulled_back_and_pushed_forward, twice,
    under_a_checkpoint, a_derivative_in_a_loop, in_an_inner_function, with_a_rule_of_its_own,
    several_generators,
]  # fmt: skip


@pytest.mark.parametrize("f", PROGRAMS)
def test_compiled_functions_go_on_with_the_stream(f):
    agree(f, 1.3)


@pytest.mark.parametrize("f", [before_between_and_after, in_a_loop_of_unknown_length])
def test_interpreted(f):
    agree(f, 1.3, wrap=interpreted)


def walk(x, n):
    def loss(w):
        for _ in range(n):
            if rng.random() < 0.5:
                w = w * rng.random()
            else:
                w = w * 2
        while w < 3.0:
            w = w + rng.random() * w
        while rng.random() < 0.7:
            w = w * rng.random()
        return w

    return jt.value_and_grad(loss)(x), rng.random()


def test_python_control_flow():
    agree(walk, 1.3, 7, wrap=autograph)


@pytest.mark.parametrize("jacobian", [jt.jacfwd, jt.jacrev])
@pytest.mark.parametrize("wrap", [lambda f: f, jt.jit])
def test_a_jacobian_is_of_one_function(jacobian, wrap):
    """All columns are computed with the same numbers."""
    compiled = jt.jit(lambda x: x * rng.random())
    for f in (lambda x: x * rng.random(), power, compiled):
        found = wrap(jacobian(f))(np.ones(3))
        np.testing.assert_allclose(found, np.eye(3) * found[0, 0])
    found = wrap(jt.hessian(lambda x: (x * x).sum() * rng.random()))(np.ones(3))
    np.testing.assert_allclose(found, np.eye(3) * found[0, 0])


holder = SimpleNamespace(rng=rng, scale=2.0)
rngs = [rng, 3]
named = {"rng": rng, "other": other}


def default(x, r=rng, *, q=other):
    return x + r.random() + q.random()


def test_generators_are_found_wherever_they_are():
    calls = [
        lambda x: x + holder.rng.random() * holder.scale,
        lambda x: x + rngs[0].random() * rngs[1],
        lambda x: x + named["rng"].random() + named["other"].random(),
        default,
        functools.partial(lambda g, x: x + g.random(), rng),
        lambda x: x + holder.rng.random() + rng.random(),  # one generator by two names
    ]
    for f in calls:
        agree(f, 1.0)
    g = jt.jit(calls[1])
    g(1.0)
    rngs[0], start = other, rng.state
    g(1.0)
    rngs[0] = rng
    np.testing.assert_array_equal(rng.state, start)


def test_attributes_of_namespaces_are_not_frozen():
    f = jt.jit(lambda x: x * holder.scale)
    assert f(1.0) == 2.0
    holder.scale = 3.0
    assert f(1.0) == 3.0
    holder.scale = 2.0
