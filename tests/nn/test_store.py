"""Variables by name: scopes, reuse, templates, stores as arguments of compiled functions."""

from typing import Any

import numpy as np
import pytest
from notebook_cells import notebook

import jitney as jt
from jitney import nn

X = np.ones((3, 2), np.float32)


def layer(x: Any, n: int) -> Any:
    w = nn.get_variable("w", (x.shape[-1], n), regularizer=lambda v: (v * v).sum())
    return x @ w + nn.get_variable("b", (n,), init=0)


def model(x: Any) -> Any:
    with nn.variable_scope("first"):
        x = np.tanh(layer(x, 4))
    with nn.variable_scope("second"):
        return layer(x, 1)


NAMES = ["first/w", "first/b", "second/w", "second/b"]


def loss(store: Any, x: Any) -> Any:
    with store.reusing():
        return (model(x) ** 2).sum() + 0.1 * store.regularization()


def test_variables_are_made_once_and_stores_are_apart() -> None:
    one, two = nn.Store(0), nn.Store(1)
    with one:
        y = model(X)
    assert list(one.variables) == NAMES and len(one) == 4 and "first/w" in one
    with one.reusing():
        np.testing.assert_array_equal(model(X), y)
    with two:
        assert (model(X) != y).all()
    assert (one["first/w"] != two["first/w"]).any()


def test_compiled_functions_make_and_change_them() -> None:
    @jt.jit
    def first(store: Any, x: Any) -> Any:
        with store.reusing(nn.AUTO_REUSE):
            return model(x)

    @jt.jit(inplace="require")
    def step(store: Any, x: Any) -> Any:
        value, gradient = jt.value_and_grad(loss)(store, x)
        for name, variable in store.variables.items():
            variable -= 0.05 * gradient[name]
        return value

    store, plain = nn.Store(0), nn.Store(0)
    with plain:
        want = model(X)
    np.testing.assert_allclose(first(store, X), want, rtol=1e-6)
    assert list(store.variables) == NAMES and store.scope.name == ""
    np.testing.assert_allclose(first(store, X), want, rtol=1e-6)
    np.testing.assert_allclose(store["second/w"], plain["second/w"], rtol=1e-6)
    gradient = jt.grad(loss)(plain, X)
    np.testing.assert_allclose(
        gradient["first/w"], jt.jit(jt.grad(loss))(store, X)["first/w"], rtol=1e-5
    )
    w = store["first/w"].value
    values = [step(store, X) for _ in range(4)]
    assert values == sorted(values, reverse=True) and values[3] < 0.5 * values[0]
    assert store["first/w"].value is w


def test_cells_of_notebooks_are_named_as_notebooks_show_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cell = notebook(monkeypatch)
    cell.run_cell("def make(nn):\n    return nn.get_variable('w', (2, 3))\n")
    with nn.Store(), pytest.raises(ValueError, match=r"In\[1\]:2: .* made at In\[1\]:2"):
        cell.user_ns["make"](nn), cell.user_ns["make"](nn)


def test_names_that_are_taken_and_names_that_are_not_there() -> None:
    with nn.Store(), nn.variable_scope("a") as scope:
        nn.get_variable("w", (2, 3))
        with pytest.raises(
            ValueError, match=r"test_store.py:\d+: the variable 'a/w' is there.*test_store.py:\d+\n"
        ):
            nn.get_variable("w", (2, 3))
        scope.reuse_variables()
        assert nn.get_variable_scope().reuse is True and nn.get_variable("w").shape == (2, 3)
        with pytest.raises(ValueError, match=r"has the shape \(2, 3\), made at .* shape \(3,\)"):
            nn.get_variable("w", (3,))
        with pytest.raises(ValueError, match="no variable 'a/b' to reuse; there are: a/w"):
            nn.get_variable("b", (3,))
        with nn.variable_scope("inner"), pytest.raises(ValueError, match="a/inner/b"):
            nn.get_variable("b", (3,))
    with nn.Store():
        with pytest.raises(ValueError, match="the new variable 'w' has no shape"):
            nn.get_variable("w")
        with pytest.raises(ValueError, match="was given no name"):
            nn.variable_scope()


def test_scopes_of_default_names_and_templates() -> None:
    with nn.Store() as store:
        for _ in range(2):
            with nn.variable_scope(default_name="block", init=1.0) as scope:
                nn.get_variable("w", ())
        with nn.variable_scope("else"), nn.variable_scope(scope, reuse=nn.AUTO_REUSE):
            nn.get_variable("w", ())
            nn.get_variable("v", init=np.arange(3.0), trainable=False, tags="own")
        assert list(store.variables) == ["block/w", "block_1/w", "block_1/v"]
        assert nn.select(store, nn.tag("own") & ~nn.trainable).paths == ["variables['block_1/v']"]
        assert nn.select(store, "block_1").paths == nn.select(store, "variables/block_1/*").paths
        assert nn.select({"net": store}, nn.path("*_1/v")).paths == [
            "['net'].variables['block_1/v']"
        ]
        with pytest.raises(ValueError, match="selects nothing of .*block_1/v"):
            nn.select(store, "block_9/*")
        templates = [nn.make_template("net", layer, n=2) for _ in range(2)]
        first = [template(X) for template in (*templates, *templates)]
    np.testing.assert_array_equal(first[:2], first[2:])
    assert (first[0] != first[1]).any() and list(store.variables)[3:] == [
        *("net/w", "net/b", "net_1/w", "net_1/b")
    ]
    with nn.Store() as other:
        templates[0](X)
    assert list(other.variables) == ["net/w", "net/b"]
