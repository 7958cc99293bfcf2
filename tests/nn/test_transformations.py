"""Modules as arguments of every transformation, eagerly and compiled; copies of them."""

import copy
import pickle
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import jitney as jt
from jitney import nn


class Gain(nn.Module):
    """A parameter without axes, one with, a state, and a setting."""

    buffers = ("calls",)

    def __init__(self) -> None:
        self.a, self.w, self.calls, self.power = np.array(2.0), np.ones(3), np.zeros(1), 2

    def __call__(self, x: Any) -> Any:
        self.calls += 1
        return self.a * self.w**self.power * x


X = np.arange(3.0)


def arrays(gain: Any, x: Any) -> Any:
    return gain(x)


def plain(a: Any, w: Any, x: Any) -> Any:
    return a * w**2 * x


def number(gain: Any, x: Any) -> Any:
    return gain(x).sum() ** 2


def of(gain: Any) -> tuple[Any, Any]:
    return gain.a, gain.w


def eager_and_compiled(make: Any) -> list[Any]:
    return [make, jt.jit(make)]


def test_jacobians_and_products() -> None:
    want = jt.jacrev(plain, (0, 1))(np.array(2.0), np.ones(3), X)
    for make in (jt.jacrev, jt.jacfwd):
        for run in (make(arrays), jt.jit(make(arrays))):
            gain = Gain()
            for got, wanted in zip(of(run(gain, X)), want, strict=True):
                np.testing.assert_allclose(got, wanted)
            assert gain.calls == 1 and type(gain.w) is np.ndarray
    scalar = lambda a, w: plain(a, w, X).sum() ** 2  # noqa: E731
    start = (np.array(2.0), np.ones(3))
    wanted = jt.hvp(scalar, start, start)
    got = jt.hvp(lambda gain: number(gain, X), (Gain(),), (Gain(),))
    np.testing.assert_allclose(np.hstack(of(got)), np.hstack(wanted))
    hessian = jt.hessian(lambda gain: number(gain, X))(Gain())
    np.testing.assert_allclose(hessian.w.w, jt.hessian(scalar, 1)(*start))
    jt.check_grads(number, (Gain(), X), order=2)


def test_products_with_tangents_and_cotangents() -> None:
    one = Gain()
    push = jt.linearize(arrays, Gain(), X)[1]
    for tangent in (push(one, X), jt.jvp(arrays, (Gain(), X), (one, X))[1]):
        np.testing.assert_allclose(tangent, 2 * X + 4 * X + 2 * X)
    pull = jt.vjp(arrays, Gain(), X)[1]
    compiled = jt.jit(lambda gain, x, c: jt.vjp(arrays, gain, x)[1](c))
    for pulled, x in (pull(X), compiled(Gain(), X, X)):
        np.testing.assert_allclose(np.hstack(of(pulled)), [5.0, 0, 4, 16])
        np.testing.assert_allclose(x, 2 * X)
        assert pulled.calls is None


def test_examples_of_inputs_and_of_modules() -> None:
    xs = np.stack([X, 2 * X])
    ensemble = jt.tree.map(lambda p: np.stack([p, 2 * p]), Gain())
    gradients = [[5.0, 0, 4, 16]]

    def total(gain: Any, x: Any) -> Any:
        return (gain.a * gain.w**2 * x).sum()

    for wrap in (lambda f: f, jt.jit):
        np.testing.assert_allclose(wrap(jt.vmap(total, (None, 0)))(Gain(), xs), [6.0, 12.0])
        np.testing.assert_allclose(wrap(jt.vmap(total, (0, None)))(ensemble, X), [6.0, 48.0])
        each = wrap(jt.vmap(jt.grad(total), (None, 0)))(Gain(), xs)
        assert type(each) is Gain and each.w.shape == (2, 3) and each.calls is None
        np.testing.assert_allclose(each.a, [3.0, 6.0])
        each = wrap(jt.grad(jt.checkpoint(number)))(Gain(), X)
        np.testing.assert_allclose(each.a, jt.grad(number)(Gain(), X).a)
    assert len(gradients) == 1


def test_a_functional_step_keeps_what_has_no_axes() -> None:
    def step(gain: Any, x: Any) -> Any:
        gradient = jt.grad(number)(gain, x)
        return jt.tree.map(lambda p, g: p if g is None else p - 0.01 * g, gain, gradient)

    compiled = jt.jit(step)
    one, two = Gain(), Gain()
    for _ in range(3):
        one, two = step(one, X), compiled(two, X)
    np.testing.assert_allclose(np.hstack(of(one)), np.hstack(of(two)))
    assert compiled.cache_info().misses <= 2 and one.calls == two.calls == 3


def test_results_and_what_is_returned_beside() -> None:
    gain = Gain()
    (value, same), gradient = jt.value_and_grad(lambda g, x: (number(g, x), g), has_aux=True)(
        gain, X
    )
    assert same is gain and value == 36.0 and gradient.a == 36.0
    inner = jt.value_and_grad(lambda g, x: (number(g, x), jt.grad(number)(g, x)), has_aux=True)
    for run in eager_and_compiled(inner):
        (_, aux), gradient = run(Gain(), X)
        np.testing.assert_allclose(np.hstack(of(aux)), np.hstack(of(gradient)))


def test_what_raises_leaves_the_module_as_it_was() -> None:
    def fails(gain: Any, x: Any) -> Any:
        gain.w = gain.w * 2
        gain(x)
        raise KeyError("here")

    for run in eager_and_compiled(jt.grad(fails)):
        gain = Gain()
        held = gain.w
        with pytest.raises(KeyError, match="here"):
            run(gain, X)
        assert gain.w is held and gain.calls == 0


def test_an_attribute_that_is_differentiated_and_assigned_to_lands() -> None:
    def clipped(gain: Any, x: Any) -> Any:
        gain.w = np.clip(gain.w * 3, 0, 2)
        return number(gain, x)

    for run in eager_and_compiled(jt.value_and_grad(clipped)):
        gain = Gain()
        value, _ = run(gain, X)
        assert value == (2 * 4 * 3.0) ** 2
        np.testing.assert_array_equal(gain.w, [2.0, 2.0, 2.0])
        assert type(gain.w) is np.ndarray


def test_copies() -> None:
    gain = Gain()
    for other in (
        copy.deepcopy(gain),
        pickle.loads(pickle.dumps(gain)),
        jt.tree.map(np.copy, gain),
    ):
        other.w += 1
        assert (gain.w == 1).all() and (other(X) == 4 * gain(X)).all()
    assert gain.calls == 3


@dataclass
class Held(nn.Module):
    """A module that is a dataclass."""

    w: Any
    rate: float

    def __call__(self, x: Any) -> Any:
        return self.w * x * self.rate


def test_a_dataclass_may_be_a_module() -> None:
    gradient = jt.grad(lambda held, x: held(x).sum())(Held(np.ones(3), 0.5), X)
    np.testing.assert_allclose(gradient.w, X / 2)
    assert gradient.rate == 0.5
