"""L-BFGS: the rules of Optax and PyTorch, written out with NumPy; minima found in compiled code."""

import numpy as np
import pytest

import jitney as jt
from jitney import nn, optim

X, Y = np.random.default_rng(0).standard_normal((2, 20, 5))


def fresh():
    r = np.random.default_rng(1)
    return {"b": r.standard_normal(2), "w": r.standard_normal((2, 2))}


def loss(p):
    """Convex, so that rounding does not grow."""
    z = X[:, :2] @ p["w"] + p["b"]
    return np.logaddexp(0, z).mean() + 0.05 * (p["w"] ** 2).sum() + 0.1 * (p["b"] ** 2).sum()


def vector(p):
    return np.concatenate([p["b"], p["w"].ravel()])


def gradient(v):
    z = X[:, :2] @ v[2:].reshape(2, 2) + v[:2]
    inner = 1 / (1 + np.exp(-z)) / z.size
    return np.concatenate([inner.sum(0) + 0.2 * v[:2], (X[:, :2].T @ inner).ravel() + 0.1 * v[2:]])


def by_hand(steps, memory, rate, norm, least):
    """L-BFGS with lists: the latest pairs, the two loops over them, the scale of the newest."""
    x, pairs, scale, last = vector(fresh()), [], 1.0, None
    for _ in range(steps):
        g = gradient(x)
        if last is not None:
            s, y = x - last[0], g - last[1]
            if s @ y > least and s @ y != 0:
                pairs, scale = [*pairs, (s, y)][-memory:], s @ y / (y @ y)
        q, parts = g, []
        for s, y in reversed(pairs):
            parts.append(s @ q / (s @ y))
            q = q - parts[-1] * y
        q = q * (scale if last is not None else min(1.0, 1 / np.linalg.norm(g, norm)))
        for (s, y), part in zip(pairs, reversed(parts), strict=True):
            q = q + (part - y @ q / (s @ y)) * s
        last = x, g
        x = x - rate * q
    return x


@pytest.mark.parametrize(("rate", "memory"), [(0.1, 3), (None, 10)])
def test_functions_take_optaxs_steps(rate, memory):
    opt = optim.lbfgs(rate, memory)
    params = fresh()
    state = opt.init(params)

    @jt.jit
    def step(params, state):
        updates, state = opt.update(jt.grad(loss)(params), state, params)
        return optim.apply_updates(params, updates), state

    for _ in range(12):
        params, state = step(params, state)
    wanted = by_hand(12, memory, rate or 1.0, 2, -np.inf)
    np.testing.assert_allclose(vector(params), wanted, rtol=1e-10)


def test_the_class_takes_pytorchs_steps_one_by_one_and_together():
    wanted = by_hand(12, 3, 0.1, 1, 1e-10)
    params, together = fresh(), fresh()
    opt = optim.LBFGS(params, 0.1, history_size=3)
    step = jt.jit(lambda: opt.step(jt.grad(loss)(params)), inplace="require")
    for _ in range(12):
        step()
    np.testing.assert_allclose(vector(params), wanted, rtol=1e-10)
    opt = optim.LBFGS(together, lambda n: 0.1, max_iter=6, history_size=3)
    start = loss(together)
    first, second = map(jt.jit(lambda _: opt.minimize(loss)), range(2))
    np.testing.assert_allclose(vector(together), wanted, rtol=1e-10)
    assert np.isclose(first, start) and second < first and opt.state[0].count == 12


def rosenbrock(x):
    return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def test_searches_find_rosenbrocks_valley():
    x = np.full(6, -0.5)
    opt = optim.LBFGS(x, max_iter=200, tolerance_change=0, line_search_fn="strong_wolfe")
    fall = jt.jit(lambda: opt.minimize(lambda x: (rosenbrock(x), 7), has_aux=True))
    value, more = fall()
    np.testing.assert_allclose(x, 1, rtol=1e-8)
    assert value > 100 and more == 7 and opt.state[0].count < 80
    found = x.copy()
    fall()  # nothing is left to do
    np.testing.assert_array_equal(x, found)


def test_a_module_some_of_whose_parameters_are_frozen():
    class Net(nn.Module):
        buffers = ("seen",)

        def __init__(self):
            r = np.random.default_rng(0)
            self.w, self.v, self.seen = r.normal(size=(5, 4)), r.normal(size=4), np.zeros(())
            self.scale = np.ones(4, np.float32)
            self.frozen = ("v",)

        def __call__(self, x):
            self.seen += 1
            return np.tanh(x @ self.w * self.scale) @ self.v

    def error(net, y):
        return ((net(X) - y) ** 2).mean()

    net = Net()
    kept, y = net.v.copy(), Net()(X) * 0.5
    opt = optim.LBFGS(net, max_iter=40, line_search_fn="strong_wolfe")
    before = jt.jit(lambda y: opt.minimize(error, y))(y)
    after, seen = error(net, y), float(net.seen)
    np.testing.assert_array_equal(net.v, kept)
    assert after < 1e-2 * before and 10 < seen < 60 and net.scale.dtype == np.float32


def test_masks_and_complex_parameters():
    params = {"w": np.ones(2), "z": np.array([1.0 + 2.0j]), "n": np.arange(2)}
    grads = {"w": np.ones(2), "z": np.array([3.0 - 4.0j]), "n": None}
    opt = optim.masked(optim.lbfgs(), {"w": False, "z": True, "n": False})
    updates, _ = opt.update(grads, opt.init(params), params)
    np.testing.assert_array_equal(updates["w"], 1)
    np.testing.assert_allclose(updates["z"], [-0.6 + 0.8j])
    z = np.array([1.0 + 2.0j])
    opt = optim.LBFGS(z, line_search_fn="strong_wolfe")
    jt.jit(lambda: opt.minimize(lambda z: (abs(z - (3 - 1j)) ** 2).sum()))()
    np.testing.assert_allclose(z, 3 - 1j, rtol=1e-7)
