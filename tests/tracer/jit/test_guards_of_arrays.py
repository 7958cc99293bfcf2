"""Arrays of outside: their values are read at each call, other shapes and containers trace anew."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from support import misses

import jitney as jt

pytestmark = pytest.mark.usefixtures("calls")

X = np.arange(3.0)

# Globals of this module that the tests change.
factor: Any = 2.0
weights: Any = np.array([1.0, 2.0, 3.0])
table: Any = {"w": np.ones(3), "scale": 2.0}


@dataclass
class Config:
    lr: float = 0.5
    w: Any = None


config = Config(w=np.ones(3))


@pytest.fixture(autouse=True)
def _restore():
    global weights, table
    before, values = (weights, table), weights.copy()
    yield
    weights, table = before
    weights[:] = values


def test_a_closed_over_array_is_read_at_each_call() -> None:
    w = np.ones(3)
    f = jt.jit(lambda x: x + w)
    np.testing.assert_array_equal(f(X), X + 1)
    w[1] = 10
    np.testing.assert_array_equal(f(X), X + w)
    assert misses(f) == 1


@pytest.mark.parametrize(
    "read",
    [
        lambda x: x * np.sum(np.sin(weights)),
        lambda x: x * weights[0],
        lambda x: x * float(len(weights)) + weights.sum(),
        lambda x: x @ np.outer(weights, weights),
        lambda x: sum((w * x for w in weights), 0.0 * x),
        lambda x: [x + w for w in weights][1],
        lambda x: x + weights.astype(np.float32),
    ],
)
def test_plain_numpy_of_a_global_array_is_not_frozen(read: Any) -> None:
    global weights
    f = jt.jit(read)
    np.testing.assert_allclose(f(X), read(X), rtol=1e-15)
    weights[:] = [5.0, 7.0, 9.0]
    np.testing.assert_allclose(f(X), read(X), rtol=1e-15)
    assert misses(f) == 1
    old, weights = weights, np.array([-1.0, 0.0, 1.0])  # another array of the same type
    np.testing.assert_allclose(f(X), read(X), rtol=1e-15)
    assert misses(f) == 1
    weights = old


@pytest.mark.parametrize(
    "read",
    [
        lambda x: x if weights[0] > 3 else -x,
        lambda x: x + float(weights[1]),
        lambda x: sum((x for _ in range(int(weights[1]))), x),
        lambda x: x + np.asarray(weights).sum(),
        lambda x: x * len(set(weights.tolist())) + weights,
    ],
)
def test_python_may_ask_for_the_values_of_a_global_array(read: Any) -> None:
    f = jt.jit(read, autograph=False)
    np.testing.assert_allclose(f(X), read(X), rtol=1e-15)
    f(X)
    assert misses(f) == 1
    weights[:] = [5.0, 5.0, 9.0]
    np.testing.assert_allclose(f(X), read(X), rtol=1e-15)
    assert misses(f) == 2


def test_another_shape_or_dtype_of_a_global_array_traces_anew() -> None:
    global weights
    f = jt.jit(lambda x: x + weights.sum())
    f(X)
    old, weights = weights, np.ones(4)
    assert f(X)[0] == 4.0
    weights = np.ones(4, np.float32)
    assert f(X)[0] == 4.0
    assert misses(f) == 3
    assert "`weights`" in f.cache_info().entries[-1].reason
    weights = old


def test_a_container_of_arrays() -> None:
    global table
    f = jt.jit(lambda x: x * table["w"] * table["scale"])
    np.testing.assert_array_equal(f(X), X * 2)
    table["w"][0] = 5
    np.testing.assert_array_equal(f(X), X * table["w"] * 2)
    table = {"w": np.full(3, 3.0), "scale": 2.0}
    np.testing.assert_array_equal(f(X), X * 6)
    assert misses(f) == 1
    table = {"w": np.full(3, 3.0), "scale": 4.0}
    np.testing.assert_array_equal(f(X), X * 12)
    assert misses(f) == 2


def test_arrays_in_attributes() -> None:
    f = jt.jit(lambda x: x * config.w[0] + np.sum(config.w))
    np.testing.assert_array_equal(f(X), X + 3)
    config.w[0] = 2.0
    np.testing.assert_array_equal(f(X), X * 2 + 4)
    assert misses(f) == 1
    config.w = np.ones(3)


def test_arrays_in_objects_in_a_list_are_guarded_by_content() -> None:
    layers = [Config(w=np.ones(3)), Config(w=np.ones(3))]

    @jt.jit
    def f(x):
        for layer in layers:
            x = x * layer.w[0] + layer.lr
        return x

    want = f.__wrapped__
    np.testing.assert_array_equal(f(X), want(X))
    layers[1].w[0] = 4.0
    np.testing.assert_array_equal(f(X), want(X))
    layers[0].lr = 0.0
    np.testing.assert_array_equal(f(X), want(X))


def test_arrays_in_class_attributes() -> None:
    class Constants:
        w = np.ones(3)
        c = 1.0

    f = jt.jit(lambda x: x * Constants.w[0] + Constants.c)
    np.testing.assert_array_equal(f(X), X + 1)
    Constants.w[0] = 3.0
    np.testing.assert_array_equal(f(X), X * 3 + 1)
    Constants.c = 0.0
    np.testing.assert_array_equal(f(X), X * 3)


def test_arrays_in_class_attributes_by_an_object() -> None:
    class Base:
        w = np.ones(3)

    class Derived(Base):
        pass

    for cls in (Base, Derived):
        thing = cls()
        f, g = jt.jit(lambda m, x: m.w * x), jt.jit(lambda x: thing.w * x)  # noqa: B023
        for value in (1.0, 3.0):
            Base.w[:] = value
            np.testing.assert_array_equal(f(thing, X), X * value)
            np.testing.assert_array_equal(g(X), X * value)


def test_arrays_seen_through_methods_and_properties() -> None:
    class Model:
        def __init__(self) -> None:
            self.w = np.ones(3)
            self.gain = 2.0

        @property
        def total(self) -> Any:
            return self.w.sum() * self.gain

        def apply(self, x: Any) -> Any:
            return self.inner(x) + self.total

        def inner(self, x: Any) -> Any:
            return x * self.w[0] * factor

    model = Model()
    f = jt.jit(lambda x: model.apply(x))
    np.testing.assert_array_equal(f(X), model.apply(X))
    model.w[0] = 5.0
    np.testing.assert_array_equal(f(X), model.apply(X))
    assert misses(f) == 1
    model.gain = 1.0
    np.testing.assert_array_equal(f(X), model.apply(X))
    assert misses(f) == 2


def test_local_numpy_buffers_are_constants() -> None:
    @jt.jit
    def f(x):
        a = np.zeros(3)
        y = x + a
        a[0] = 1.0
        return y, x * a

    first, second = f(X)
    np.testing.assert_array_equal(first, X)
    np.testing.assert_array_equal(second, X * [1.0, 0, 0])
    assert len(f.trace(X).params) == 1


def test_the_array_of_a_closure_is_returned_itself() -> None:
    w = np.ones(3)
    f = jt.jit(lambda x: (w, w[1:], x + 1))
    same, tail, _ = f(X)
    assert same is w
    assert np.shares_memory(tail, w)


gradient = jt.grad(lambda p: np.sum((np.sin(weights) * p) ** 2))


def test_arrays_behind_a_derivative_are_inputs() -> None:
    def loss(p):
        return np.sum(np.cos(weights) * p)

    f = jt.jit(lambda p: (gradient(p), jt.grad(loss)(p), jt.value_and_grad(loss)(p)[1]))
    for scale in (1.0, 2.0):
        weights[:] *= scale
        a, b, c = f(X)
        np.testing.assert_allclose(a, 2 * np.sin(weights) ** 2 * X, rtol=1e-14)
        np.testing.assert_allclose(b, np.cos(weights), rtol=1e-14)
        np.testing.assert_allclose(c, b)
    assert misses(f) == 1


def test_arrays_behind_decorators_are_inputs() -> None:
    def decorate(g):
        @functools.wraps(g)
        def wrapper(*args):
            return g(*args) + weights[0]

        return wrapper

    @decorate
    def inner(x):
        return x * weights[1]

    f = jt.jit(lambda x: inner(x))
    np.testing.assert_array_equal(f(X), X * 2 + 1)
    weights[:] = 5.0
    np.testing.assert_array_equal(f(X), X * 5 + 5)
    assert misses(f) == 1


def test_callable_objects_and_partials() -> None:
    class Scale:
        def __init__(self) -> None:
            self.w, self.c = np.ones(3), 2.0

        def __call__(self, x: Any) -> Any:
            return x * self.c + np.sum(np.sin(self.w)) * factor

    scale = Scale()
    partial = functools.partial(lambda w, x, *, c: x * np.sum(np.sin(w)) + c, np.ones(3), c=1.0)
    f, g = jt.jit(scale), jt.jit(partial)
    for value in (2.0, 3.0):
        scale.c = scale.w[0] = partial.args[0][1] = value
        np.testing.assert_array_equal(f(X), scale(X))
        np.testing.assert_array_equal(f(X), scale(X))
        np.testing.assert_array_equal(g(X), partial(X))
    assert misses(f) == 2 and misses(g) == 2
