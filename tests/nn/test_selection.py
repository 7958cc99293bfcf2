"""Selections of a model's arrays, masks, freezing, and the parts of trees."""

from typing import Any, ClassVar

import numpy as np
import pytest

import jitney as jt
from jitney import nn


class Part(nn.Module):
    """Two parameters and a state."""

    buffers = ("mean",)
    tags: ClassVar = {"b": "own"}

    def __init__(self) -> None:
        self.w, self.b, self.mean = np.ones((2, 2)), np.zeros(2), np.full(2, 5.0)

    def __call__(self, x: Any) -> Any:
        return (x - self.mean) @ self.w + self.b


class Special(Part):
    """A part of another class."""


class Pair(nn.Module):
    """Two parts, a gain, a counter, and a matrix that stands in two places."""

    def __init__(self) -> None:
        self.encoder, self.heads = Part(), {"a": [Special(), np.tanh]}
        self.gain = jt.Variable(np.ones(2), name="gain", tags=("gains",))
        self.count = jt.Variable(0.0, trainable=False)
        self.tied = self.encoder.w

    def __call__(self, x: Any) -> Any:
        self.count += 1
        head, act = self.heads["a"]
        return act(head(self.encoder(x)) * self.gain) @ self.tied


X = np.random.default_rng(0).normal(size=(3, 2))


def loss(pair: Any, x: Any) -> Any:
    return (pair(x) ** 2).sum()


@pytest.mark.parametrize(
    "selection, paths",
    [
        (nn.trainable, "encoder.w encoder.b heads['a'][0].w heads['a'][0].b gain"),
        (~nn.trainable, "encoder.mean heads['a'][0].mean count"),
        (nn.trainable & ~nn.type(Special) & ~nn.tag("gains"), "encoder.w encoder.b"),
        (nn.path("heads['a'][0].w") | nn.path("gain"), "heads['a'][0].w gain"),
        (nn.path("encoder") & ~nn.path("encoder.mean"), "encoder.w encoder.b"),
        (
            nn.type(Special) & nn.path("heads/a/0/*"),
            "heads['a'][0].w heads['a'][0].b heads['a'][0].mean",
        ),
        (nn.tag("biases", "own") | nn.path("count"), "encoder.b heads['a'][0].b count"),
        ("*/w", "encoder.w heads['a'][0].w"),
        (nn.where(lambda path, array: array.ndim == 0), "count"),
    ],
)
def test_what_is_selected(selection: Any, paths: str) -> None:
    assert nn.select(Pair(), selection).paths == paths.split()


def test_masks_leave_none_in_the_place_of_the_others() -> None:
    pair = Pair()
    mask = nn.select(pair, "encoder")
    gradient = mask(jt.grad(loss)(pair, X))
    assert gradient.gain is None and gradient.encoder.w.shape == (2, 2)
    assert gradient.heads["a"][0].w is None and gradient.encoder.mean is None
    chosen, rest = jt.tree.partition(pair, mask)
    assert len(jt.tree.leaves(chosen)) == 3 and len((~mask).paths) == len(jt.tree.leaves(rest))
    whole = jt.tree.combine(chosen, rest)
    assert jt.tree.structure(whole) == jt.tree.structure(pair) and whole.tied is whole.encoder.w
    np.testing.assert_array_equal(whole(X), Pair()(X))
    with pytest.raises(
        ValueError, match=r"path\('decoder'\) selects nothing of encoder/w, encoder/b"
    ):
        nn.select(pair, "decoder")


def test_what_is_frozen_has_no_gradient() -> None:
    pair = nn.freeze(Pair(), nn.path("encoder") | nn.tag("gains"))
    for gradient in (jt.grad(loss)(pair, X), jt.jit(jt.grad(loss))(pair, X)):
        assert gradient.encoder.w is gradient.gain is gradient.tied is None
        assert gradient.heads["a"][0].w.shape == (2, 2)
    nn.requires_grad(pair, True, "encoder/b")
    assert jt.tree.leaves_with_path(jt.grad(loss)(pair, X))[0][0] == "encoder.b"


def test_one_array_in_two_places_is_one_parameter() -> None:
    def apart(w: Any, tied: Any, x: Any) -> Any:
        pair = Pair()
        pair.encoder.w, pair.tied = w, tied
        return loss(pair, x)

    first, second = jt.grad(apart, argnums=(0, 1))(np.ones((2, 2)), np.ones((2, 2)), X)
    for grad in (jt.grad(loss), jt.jit(jt.grad(loss))):
        pair = Pair()
        gradient = grad(pair, X)
        np.testing.assert_allclose(gradient.encoder.w, first + second)
        assert gradient.tied is gradient.encoder.w
        jt.tree.map(lambda p, g: None if g is None else np.subtract(p, g, out=p), pair, gradient)
        np.testing.assert_allclose(pair.tied, 1 - first - second)


def test_trees_of_other_things() -> None:
    tree = {"b": [np.ones((2, 2), np.float32), 3.0], "a": np.arange(2)}
    assert [path for path, _ in jt.tree.leaves_with_path(tree)] == ["['a']", "['b'][0]", "['b'][1]"]
    for ravel in (jt.tree.ravel(tree)[0], jt.jit(lambda t: jt.tree.ravel(t)[0])(tree)):
        np.testing.assert_array_equal(ravel, [0.0, 1.0, 1.0, 1.0, 1.0, 1.0, 3.0])
    again = jt.tree.ravel(tree)[1](np.arange(7.0))
    assert [x.dtype for x in jt.tree.leaves(again)] == [np.int64, np.float32, np.float64]
    np.testing.assert_array_equal(again["b"][0], [[2, 3], [4, 5]])
    with pytest.raises(ValueError, match="8 elements, and the tree 7"):
        jt.tree.ravel(tree)[1](np.zeros(8))
    first, second = jt.tree.partition(tree, {"a": False, "b": True})
    assert first["a"] is None and second["b"] == [None, None]
    assert jt.tree.combine(first, second)["b"] is not tree["b"]
    assert jt.tree.reduce(lambda a, b: a + b, {"a": 1, "b": [2]}, 10) == 13
    assert jt.tree.reduce(max, ()) is None
    np.testing.assert_allclose(jt.linalg.global_norm(Pair()), np.sqrt(10 + 100))


def test_texts_functions_and_none_are_settings() -> None:
    tree: Any = {"x": X, "f": np.tanh, "name": "text", "none": None}

    def value(t: Any) -> Any:
        return (t["f"](t["x"]) * len(t["name"])).sum()

    want = 4 * (1 - np.tanh(X) ** 2)
    for run in (jt.grad, lambda f: jt.jit(jt.grad(f)), jt.jacrev, jt.jacfwd):
        gradient = run(value)(tree)
        np.testing.assert_allclose(gradient["x"], want)
        assert gradient["f"] is gradient["name"] is None
    np.testing.assert_allclose(jt.vjp(value, tree)[1](1.0)[0]["x"], want)
    tangent = {"x": X, "f": None, "name": None, "none": None}
    np.testing.assert_allclose(jt.jvp(value, (tree,), (tangent,))[1], (want * X).sum())
    np.testing.assert_allclose(jt.vmap(value)(tree), 4 * np.tanh(X).sum(1))
    with pytest.raises(jt.errors.ArgumentError, match="cannot trace"):
        jt.grad(lambda f: 1.0)("text")
