"""Modules in what loops carry and go over: new ones in each step, of the arrays that it is given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitney as jt
from jitney import nn

ROWS = np.random.default_rng(0).random((5, 2, 3)).astype(np.float32)


def plain(function: Any) -> Any:
    return function


either = pytest.mark.parametrize("compiled", [plain, jt.jit])


@either
def test_a_step_that_trains(compiled: Callable[[Any], Any]) -> None:
    model = nn.Sequential(nn.Linear(3, 3, rng=0), nn.tanh)
    before = model.layers[0].w.copy()

    def step(model: Any, x: Any) -> tuple[Any, Any]:
        loss, g = jt.value_and_grad(lambda model: (model(x) ** 2).sum())(model)
        return jt.tree.map(lambda p, g: p - 0.1 * g, model, g), loss

    trained, losses = compiled(lambda model, rows: jt.scan(step, model, rows))(model, ROWS)
    expected = []
    one: Any = model
    for x in ROWS:
        one, loss = step(one, x)
        expected.append(loss)
    np.testing.assert_allclose(losses, expected, 1e-5)
    np.testing.assert_allclose(trained.layers[0].w, one.layers[0].w, 1e-5)
    assert trained.layers[1] is nn.tanh
    np.testing.assert_array_equal(model.layers[0].w, before)


@either
def test_what_a_step_assigns(compiled: Callable[[Any], Any]) -> None:
    """Running means, and a module as carry and as a result of each step."""
    norm = nn.BatchNorm(3)

    def step(norm: Any, x: Any) -> tuple[Any, Any]:
        norm(x)
        return norm, norm

    last, each = compiled(lambda norm: jt.scan(step, norm, ROWS))(norm)
    assert not norm.mean.any()
    for x in ROWS:
        norm(x)
    np.testing.assert_allclose(last.mean, norm.mean, 1e-6)
    np.testing.assert_allclose(each.mean[-1], norm.mean, 1e-6)
    assert each.mean.shape == (5, 3)


@either
def test_stacked_layers(compiled: Callable[[Any], Any]) -> None:
    """A scan over layers is the layers one after the other, and so is its gradient."""
    layers = [nn.Linear(3, 3, rng=i) for i in range(4)]
    stacked = jt.tree.map(lambda *rows: np.stack(rows), *layers)

    def through(stacked: Any, x: Any) -> Any:
        return jt.scan(lambda h, layer: (np.tanh(layer(h)), None), x, stacked)[0].sum()

    def one_by_one(layers: Any, x: Any) -> Any:
        for layer in layers:
            x = np.tanh(layer(x))
        return x.sum()

    value, g = compiled(jt.value_and_grad(through))(stacked, ROWS[0])
    wanted, each = jt.value_and_grad(one_by_one)(layers, ROWS[0])
    np.testing.assert_allclose(value, wanted, 1e-5)
    np.testing.assert_allclose(g.w, np.stack([one.w for one in each]), 1e-4, 1e-6)
    total = compiled(lambda s: jt.foldl(lambda a, b: jt.tree.map(np.add, a, b), s))(stacked)
    np.testing.assert_allclose(total.b, stacked.b.sum(0))


@either
def test_other_loops(compiled: Callable[[Any], Any]) -> None:
    model = nn.Linear(3, 3, rng=0)

    def half(model: Any) -> Any:
        return jt.tree.map(lambda p: 0.5 * p, model)

    three = compiled(lambda m, n: jt.fori_loop(0, n, lambda _, m: half(m), m))(model, 3)
    np.testing.assert_array_equal(three.w, model.w / 8)
    small = compiled(lambda m: jt.while_loop(lambda m: abs(m.w).max() > 0.1, half, m))(model)
    assert 0.05 < abs(small.w).max() <= 0.1
    cell = jt.Variable(1.0)
    after = compiled(lambda v: jt.fori_loop(0, 3, lambda _, v: jt.tree.map(lambda x: x + 1, v), v))(
        cell
    )
    assert after.value == 4 and cell.value == 1
    named = {"name": "a", "w": np.ones(2)}
    again = compiled(lambda c: jt.fori_loop(0, 2, lambda _, c: {**c, "w": 2 * c["w"]}, c))(named)
    assert again["name"] == "a" and again["w"].tolist() == [4, 4]


@either
def test_generators_stay(compiled: Callable[[Any], Any]) -> None:
    """Copies of a module draw from the generator that it has at the call."""
    dropped = []
    for run in (plain, compiled):
        model = nn.Dropout(0.5, rng=1)
        same, ys = run(lambda m: jt.scan(lambda m, x: (m, m(x)), m, ROWS))(model)
        assert same.rng is model.rng
        dropped.append(ys)
    np.testing.assert_array_equal(*dropped)
    copied = compiled(lambda m: jt.tree.map(lambda p: p, m))
    for seed in (1, 2):
        model = nn.Sequential(nn.Linear(3, 3, rng=0), nn.Dropout(0.5, rng=seed))
        assert copied(model).layers[1].rng is model.layers[1].rng


@either
def test_errors(compiled: Callable[[Any], Any]) -> None:
    class Counting(nn.Module):
        def __init__(self) -> None:
            self.n, self.w = 0, np.zeros(3)

    def count(one: Any, _: Any) -> Any:
        one.n += 1
        return one, None

    with pytest.raises(
        jt.errors.CarryError, match=r"(?s)changes its n, .* from 0 to 1.*np.asarray"
    ):
        compiled(lambda one: jt.scan(count, one, None, length=3))(Counting())
    model = nn.Linear(3, 3, rng=0)
    other = jt.jit(lambda m: jt.scan(lambda m, _: (m.w, None), m, None, length=2))
    with pytest.raises(jt.errors.CarryError, match=r"(?s)structure.*Linear"):
        other(model)
    wider = jt.jit(
        lambda m: jt.fori_loop(0, 2, lambda i, m: jt.tree.map(lambda p: p.astype(float), m), m)
    )
    with pytest.raises(jt.errors.CarryError, match=r"m\.w.*\n.*f32\[3,3\]"):
        wider(model)
