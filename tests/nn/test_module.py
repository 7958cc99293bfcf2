"""Modules: trees for transformations, objects for compiled code."""

from typing import Any

import numpy as np
import pytest

import jitney as jt
from jitney import nn


class Linear(nn.Module):
    """An affine map, whose inputs' size may be left out."""

    def __init__(self, n_out: int, n_in: int | None = None) -> None:
        self.rng = np.random.default_rng(0)
        self.n_out = n_out
        self.w = self.b = None
        if n_in is not None:
            self.build(np.empty((0, n_in)))

    def build(self, x: Any) -> None:
        self.w = self.rng.normal(size=(x.shape[-1], self.n_out))
        self.b = np.zeros(self.n_out)

    def __call__(self, x: Any) -> Any:
        return x @ self.w + self.b


class Norm(nn.Module):
    """Batch normalisation, whose state is changed in place or replaced."""

    buffers = ("mean",)

    def __init__(self, n: int, replaces: bool) -> None:
        self.scale, self.mean, self.replaces = np.ones(n), np.zeros(n), replaces

    def __call__(self, x: Any) -> Any:
        mean = x.mean(0) if self.training else self.mean
        if self.training and self.replaces:
            self.mean = 0.9 * self.mean + 0.1 * mean
        elif self.training:
            self.mean *= 0.9
            self.mean += 0.1 * mean
        return (x - mean) * self.scale


class Net(nn.Module):
    """Layers, a function among them, and a counter."""

    def __init__(self, replaces: bool = False) -> None:
        self.layers = [Linear(4, 3), Norm(4, replaces), np.tanh]
        self.heads = {"a": Linear(2, 4)}
        self.name, self.calls = "net", 0

    def __call__(self, x: Any) -> Any:
        self.calls += 1
        for layer in self.layers:
            x = layer(x)
        return self.heads["a"](x)


X = np.random.default_rng(1).normal(size=(5, 3))


def loss(net: Any, x: Any) -> Any:
    return (net(x) ** 2).sum() + 0.1 * sum((p**2).sum() for p in jt.tree.leaves(net))


@pytest.mark.parametrize("replaces", [False, True])
def test_gradients_and_state_are_those_of_a_plain_call(replaces: bool) -> None:
    plain, eager, compiled = Net(replaces), Net(replaces), Net(replaces)
    want = loss(plain, X)
    value, gradient = jt.value_and_grad(loss)(eager, X)
    jitted = jt.jit(jt.value_and_grad(loss))
    again, same = jitted(compiled, X)
    np.testing.assert_allclose([value, again], want)
    for net in (eager, compiled):
        np.testing.assert_allclose(net.layers[1].mean, plain.layers[1].mean)
        assert net.calls == 1 and type(net.layers[0].w) is np.ndarray
    assert type(gradient) is type(same) is Net
    assert gradient.layers[1].mean is None and same.layers[1].mean is None
    for path, g in jt.tree.leaves_with_path(gradient):
        np.testing.assert_allclose(dict(jt.tree.leaves_with_path(same))[path], g)
        array = dict(jt.tree.leaves_with_path(plain))[path]
        changed = []
        for step in (1e-6, -1e-6):
            other = Net(replaces)
            dict(jt.tree.leaves_with_path(other))[path].flat[-1] += step
            changed.append(loss(other, X))
        assert array.shape == g.shape
        np.testing.assert_allclose((changed[0] - changed[1]) / 2e-6, g.flat[-1], rtol=1e-5)


def test_a_tree_of_arrays() -> None:
    net = Net()
    paths = [path for path, _ in jt.tree.leaves_with_path(net)]
    assert paths == [
        *("layers[0].w", "layers[0].b", "layers[1].scale", "layers[1].mean"),
        *("heads['a'].w", "heads['a'].b"),
    ]
    doubled = jt.tree.map(lambda p: 2 * p, net)
    assert (
        type(doubled) is Net and doubled.layers[2] is np.tanh and doubled.layers is not net.layers
    )
    np.testing.assert_array_equal(doubled.layers[0].w, 2 * net.layers[0].w)
    assert jt.tree.structure(doubled) == jt.tree.structure(net)
    gradient = jt.grad(loss)(net, X)
    stepped = jt.tree.map(lambda p, g: p if g is None else p - 0.1 * g, net, gradient)
    np.testing.assert_array_equal(stepped.layers[1].mean, net.layers[1].mean)
    assert (stepped.layers[0].w != net.layers[0].w).all()


def test_a_step_in_place_copies_nothing() -> None:
    @jt.jit(inplace="require")
    def step(net: Any, x: Any) -> Any:
        value, gradient = jt.value_and_grad(lambda net, x: (net.heads["a"](x) ** 2).sum())(net, x)
        for path, module in nn.modules(net):
            if path == "heads['a']":
                module.w -= 0.01 * gradient.heads["a"].w
        return value

    net, x = Net(), np.ones((2, 4))
    w = net.heads["a"].w
    values = [step(net, x) for _ in range(3)]
    assert values[2] < values[1] < values[0] and net.heads["a"].w is w


def test_sizes_come_with_the_first_call() -> None:
    lazy, net = Linear(4), Net()
    with pytest.raises(jt.errors.ArgumentError, match="nothing has built layers"):
        other = Net()
        other.layers[0] = Linear(4)
        jt.grad(loss)(other, X)
    np.testing.assert_array_equal(jt.jit(lambda m, x: m(x))(lazy, X), net.layers[0](X))
    assert type(lazy.w) is np.ndarray and nn.unbuilt(lazy) == []
    assert nn.unbuilt(Linear(2)) == ["Linear"]


def test_modes_and_what_is_shown() -> None:
    net = Net().eval()
    assert not net.layers[1].training and net.train().layers[1].training
    assert repr(net).splitlines()[:4] == [
        "Net(",
        "  name='net', calls=0,",
        "  layers=[",
        "    Linear(rng=Generator, n_out=4, w=float64[3, 4], b=float64[4]),",
    ]
