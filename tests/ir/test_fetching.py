"""Values of graphs by name, and any of them from any others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from graphs import random_graphs
from hypothesis import given, settings
from hypothesis import strategies as st

import jitney as jt
from jitney.ir.interpreter import evaluate
from jitney.ir.opdef import GraphError
from jitney.ir.text import printed_names
from jitney.ir.types import TensorType
from jitney.ir.verify import verify

X, W = np.arange(6.0).reshape(3, 2), np.full((2, 2), 0.5)


def net(x: Any, w: Any) -> Any:
    with jt.name_scope("encoder"):
        h = jt.name(x @ w, "h")
        y = jt.name(np.tanh(h), "y\n/z")
    total = 0.0
    for i in range(1000):
        total = jt.name(total + y[0, 0] * i, "inside")
    return y.sum() + total


GRAPH = jt.jit(net).trace(X, W)


def test_values_have_names() -> None:
    h = GRAPH["encoder/h"]
    assert h.op is not None and h.op.name == "dot" and GRAPH["%encoder/h"] is h
    assert GRAPH["x"] is GRAPH.params[0] and GRAPH["encoder/y\n/z"] is GRAPH["encoder/y_/z"]
    assert GRAPH["inside"] is not None
    for value, text in printed_names(GRAPH).items():
        assert GRAPH[text] is value
    with pytest.raises(KeyError, match="did you mean 'encoder/h'"):
        GRAPH["encoder/g"]


def test_what_is_needed_and_no_more() -> None:
    np.testing.assert_array_equal(GRAPH.run("encoder/h", {"x": X, "w": W}), X @ W)
    part = GRAPH.between(["x", "w"], ["encoder/h"])
    assert [op.name for op in part.ops] == ["dot"]
    cut = GRAPH.run({"out": GRAPH.outputs, "h": ("encoder/h",)}, {"encoder/h": X})
    assert isinstance(cut["h"], tuple) and np.array_equal(cut["h"][0], X)
    np.testing.assert_allclose(cut["out"][0], np.tanh(X).sum() + np.tanh(X[0, 0]) * 499_500)
    assert GRAPH.run([], {}) == []


def test_what_is_wrong_is_said() -> None:
    with pytest.raises(GraphError, match=r"%w \(f64\[2,2\]\) must be given, too"):
        GRAPH.run("encoder/h", {"x": X})
    with pytest.raises(
        TypeError, match=r"w is f64\[2,2\]; what is given for it is float64\[3, 2\]"
    ):
        GRAPH.run("encoder/h", {"x": X, "w": X})
    with pytest.raises(TypeError, match="complex128"):
        GRAPH.run("encoder/h", {"x": X, "w": W * 1j})
    own = set(GRAPH.values())
    inner = next(v for v in GRAPH.all_values() if v.name and v not in own)
    with pytest.raises(GraphError, match="is not of net itself: of a region"):
        GRAPH.run(inner, {"x": X, "w": W})
    with pytest.raises(TypeError, match="is no name and no value"):
        GRAPH.run(3, {})
    with pytest.raises(GraphError, match="given twice"):
        GRAPH.between(["x", GRAPH["x"]], ["x"])


@settings(max_examples=20, deadline=None)
@given(random_graphs(effects=False), st.data())
def test_any_values_from_any_others(case: Any, data: Any) -> None:
    graph, arrays = case
    values = [v for v in graph.values() if isinstance(v.type, TensorType)]
    known = dict(zip(values, evaluate(graph.giving(values), arrays), strict=True))
    inner = [v for v in values if v.op is not None]
    cuts = data.draw(st.lists(st.sampled_from(inner), max_size=3, unique=True)) if inner else []
    feeds = {v: known[v] for v in [*graph.params, *cuts]}
    targets = data.draw(st.lists(st.sampled_from(values), min_size=1, max_size=3))
    verify(graph.between(feeds, targets))
    for value, result in zip(targets, graph.run(targets, feeds), strict=True):
        np.testing.assert_array_equal(result, known[value])


def test_a_graph_is_a_function() -> None:
    f = jt.parse_graph(str(GRAPH)).to_function()
    np.testing.assert_allclose(f(X, W), net(X, W))
    np.testing.assert_allclose(f(w=W, x=X), net(X, W))
    np.testing.assert_allclose(jt.grad(f)(X, W), jt.grad(net)(X, W))
    np.testing.assert_allclose(jt.jit(jt.grad(f, 1))(X, W), jt.grad(net, 1)(X, W))
    np.testing.assert_allclose(jt.vmap(f, (0, None))(X[None], W), [net(X, W)])
    np.testing.assert_allclose(f(X.astype(np.float32), W), net(X, W))
    assert "%encoder/h = dot" in str(jt.jit(f).trace(X, W))
    with pytest.raises(jt.errors.ShapeError, match=r"parameter w is f64\[2,2\]"):
        f(X, X)
    with pytest.raises(TypeError, match="missing a required argument: 'w'"):
        f(X)
    pair = GRAPH.between(["x", "w"], ["encoder/h", "x"]).to_function()
    assert isinstance(pair(X, W), tuple)


def test_functions_of_python_are_not_in_a_text() -> None:
    def f(x: Any) -> Any:
        jt.debug_print("x {}", x)
        return x * 2

    graph = jt.jit(f).trace(1.0)
    assert graph.to_function()(2.0) == 4.0
    with pytest.raises(ValueError, match="is a Python function, of which a text has but the name"):
        jt.parse_graph(str(graph))
