"""200 steps of each function and chain end where Optax's do, and schedules give the same numbers."""

import numpy as np
import pytest

import jitney as jt
from jitney import optim

optax = pytest.importorskip("optax")
jax = pytest.importorskip("jax")
jax.config.update("jax_enable_x64", True)
STEPS = 200
X, Y = np.random.default_rng(0).standard_normal((2, 20, 5))
MASK = {"w": True, "v": False, "b": True}
OPTIMISERS = [
    lambda m: m.sgd(0.05),
    lambda m: m.sgd(0.05, 0.9, nesterov=True),
    lambda m: m.adam(0.01),
    lambda m: m.adam(0.01, nesterov=True, eps_root=1e-6),
    lambda m: m.adamw(m.cosine_decay_schedule(0.01, 150), weight_decay=0.1, mask=MASK),
    lambda m: m.amsgrad(0.01),
    lambda m: m.adagrad(0.1),
    lambda m: m.adadelta(1.0, weight_decay=0.1, weight_decay_mask=MASK),
    lambda m: m.rmsprop(1e-3),
    lambda m: m.rmsprop(1e-3, eps=1e-3, centered=True, momentum=0.9, nesterov=True),
    lambda m: m.lion(1e-3),
    lambda m: m.chain(m.clip_by_global_norm(0.3), m.adam(0.01)),
    lambda m: m.chain(m.clip(0.1), m.add_decayed_weights(0.01), m.sgd(0.05, 0.9)),
    lambda m: m.apply_if_finite(m.adam(0.01), *[10] * (m is optax)),
]
SCHEDULES = [
    ("piecewise_constant_schedule", (0.1, {10: 0.5, 50: 0.1}), {}),
    ("exponential_decay", (0.1, 20, 0.5), {"transition_begin": 7}),
    ("exponential_decay", (0.1, 20, 0.5), {"staircase": True, "end_value": 0.02}),
    ("polynomial_schedule", (0.1, 0.01, 2, 50, 5), {}),
    ("linear_schedule", (0.1, 0.01, 50), {}),
    ("cosine_decay_schedule", (0.1, 100, 0.1, 1.5), {}),
    ("warmup_cosine_decay_schedule", (0.0, 0.1, 10, 110, 0.01), {}),
    ("cosine_onecycle_schedule", (100, 0.1), {}),
]


def fresh():
    r = np.random.default_rng(1)
    return {"w": r.standard_normal((5, 4)), "v": r.standard_normal(4), "b": r.standard_normal(1)}


def trained(library, jit, grad, numpy, apply):
    def loss(p):
        return ((numpy.tanh(X @ p["w"]) @ p["v"] + p["b"] - Y[:, 0]) ** 2).mean()

    params = fresh()
    state = library.init(params)

    @jit
    def step(params, state):
        updates, state = library.update(grad(loss)(params), state, params)
        return apply(params, updates), state

    for _ in range(STEPS):
        params, state = step(params, state)
    return params


@pytest.mark.parametrize("make", OPTIMISERS)
def test_optimisers(make):
    ours = trained(make(optim), jt.jit, jt.grad, np, optim.apply_updates)
    theirs = trained(make(optax), jax.jit, jax.grad, jax.numpy, optax.apply_updates)
    for name, array in ours.items():
        np.testing.assert_allclose(array, theirs[name], rtol=1e-9)


@pytest.mark.parametrize(("name", "args", "options"), SCHEDULES)
def test_schedules(name, args, options):
    ours = getattr(optim, name)(*args, **options)
    theirs = getattr(optax, name)(*args, **options)
    for step in range(0, 130, 3):
        wanted = float(theirs(jax.numpy.asarray(step)))
        assert float(ours(step)) == pytest.approx(wanted, rel=1e-9, abs=1e-12)
