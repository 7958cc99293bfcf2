"""cond, while and assert: type rules, evaluation, derivatives."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from derivatives import Array, check_derivatives

from jitney.ir.autodiff.transform import jvp_graph, vjp_graph
from jitney.ir.build import Builder
from jitney.ir.graph import Graph
from jitney.ir.interpreter import evaluate
from jitney.ir.opdef import OPS, GraphError
from jitney.ir.ops.term import Term
from jitney.ir.types import BOOL, F64, I32, I64, TensorType


def counting(step: int) -> tuple[Graph, Graph]:
    """while i < limit: i, x = i + step, x * 2"""
    types = [TensorType((), I64), TensorType((), I64), TensorType((), F64)]
    test, body = Graph("test"), Graph("body")
    limit, i, _ = (test.add_param(t) for t in types)
    test.outputs = [Builder(test).op("lt", i, limit)]
    _, i, x = (body.add_param(t) for t in types)
    b = Builder(body)
    body.outputs = [b.op("add", i, b.const(step, I64)), b.op("mul", x, b.full_like(x, 2))]
    return test, body


@pytest.mark.parametrize("limit, trips", [(0, 0), (1, 1), (7, 7)])
def test_while(limit: int, trips: int) -> None:
    graph = Graph("f")
    params = [
        graph.add_param(t) for t in (TensorType((), I64), TensorType((), I64), TensorType((), F64))
    ]
    op = Builder(graph).append(OPS["while"], params, {"consts": 1}, counting(1))
    graph.outputs = list(op.results)
    i, x = evaluate(graph, [np.int64(limit), np.int64(0), np.float64(1)])
    assert (i, x) == (trips, 2.0**trips)


def test_while_refuses_a_changing_carry() -> None:
    test, body = counting(1)
    body.outputs = body.outputs[::-1]
    graph = Graph("f")
    params = [graph.add_param(v.type) for v in body.params]
    with pytest.raises(GraphError, match=r"\(f64\[\], i64\[\]\).*\(i64\[\], f64\[\]\)"):
        Builder(graph).append(OPS["while"], params, {"consts": 1}, (test, body))


def branches(*factors: float) -> list[Graph]:
    graphs = []
    for factor in factors:
        graph = Graph("branch")
        x = graph.add_param(TensorType((2,), F64))
        b = Builder(graph)
        graph.outputs = [b.op("mul", x, b.full_like(x, factor))]
        graphs.append(graph)
    return graphs


@pytest.mark.parametrize("index, factor", [(-3, 10), (0, 10), (1, 20), (2, 30), (9, 30)])
def test_cond_clamps_its_index(index: int, factor: float) -> None:
    graph = Graph("f")
    k, x = graph.add_param(TensorType((), I32)), graph.add_param(TensorType((2,), F64))
    op = Builder(graph).append(OPS["cond"], [k, x], {}, branches(10, 20, 30))
    graph.outputs = list(op.results)
    (y,) = evaluate(graph, [np.int32(index), np.array([1.0, 2.0])])
    assert y.tolist() == [factor, 2 * factor]


def test_cond_refuses_branches_that_differ() -> None:
    first, second = branches(1, 2)
    second.outputs = second.outputs * 2
    graph = Graph("f")
    k, x = graph.add_param(TensorType((), I32)), graph.add_param(TensorType((2,), F64))
    with pytest.raises(GraphError, match=r"branch 1 gives \(f64\[2\], f64\[2\]\)"):
        Builder(graph).append(OPS["cond"], [k, x], {}, [first, second])


def test_assert() -> None:
    graph = Graph("f")
    ok, n = graph.add_param(TensorType((), BOOL)), graph.add_param(TensorType((), I64))
    b = Builder(graph)
    token = b.op("assert", ok, n, b.op("create_token"), message="n is {0}")
    b.op("assert", ok, token, message="plain {text}")
    evaluate(graph, [np.True_, np.int64(3)])
    with pytest.raises(AssertionError, match="^n is 3$"):
        evaluate(graph, [np.False_, np.int64(3)])
    with pytest.raises(GraphError, match="must be a token"):
        b.op("assert", ok, message="m")


# Derivatives.


def branch(f: Callable[..., list[Term]], *types: TensorType) -> Graph:
    graph = Graph("region")
    b = Builder(graph)
    graph.outputs = [t.value for t in f(*(Term(b, graph.add_param(t)) for t in types))]
    return graph


def cond_graph() -> Graph:
    v = TensorType((3,), F64)
    graph = Graph("f")
    params = [graph.add_param(t) for t in (TensorType((), I32), v, v)]
    branches = [
        branch(lambda x, y: [x * y, x.gt(y)], v, v),
        branch(lambda x, y: [x.sin(), x.lt(y)], v, v),
        branch(lambda x, y: [y, y.lt(y)], v, v),
    ]
    graph.outputs = list(Builder(graph).append(OPS["cond"], params, {}, branches).results)
    return graph


@pytest.mark.parametrize("index", [-1, 0, 1, 2, 5])
def test_cond(index: int) -> None:
    rng = np.random.default_rng(6)
    arrays = [np.int32(index), rng.normal(size=3), rng.normal(size=3)]
    check_derivatives(cond_graph(), arrays, rng)
    backward = vjp_graph(cond_graph(), [1, 2])
    backward.outputs = backward.outputs[2:]
    check_derivatives(backward, [*arrays, rng.normal(size=3)], rng)


def while_graph() -> Graph:
    """i, x = 0, x; while i < n: i, x, y = i + 1, sin(x) * scale, y + x"""
    i64, vector = TensorType((), I64), TensorType((2,), F64)
    types = (i64, vector, i64, vector, vector)
    test = branch(lambda n, scale, i, x, y: [i < n], *types)
    body = branch(lambda n, scale, i, x, y: [i + 1, x.sin() * scale, y + x], *types)
    graph = Graph("f")
    params = [graph.add_param(t) for t in types]
    op = Builder(graph).append(OPS["while"], params, {"consts": 2}, [test, body])
    graph.outputs = list(op.results)
    return graph


@pytest.mark.parametrize("trips", [0, 1, 5])
def test_while_forward(trips: int) -> None:
    graph = while_graph()
    rng = np.random.default_rng(8)
    scale, x, y, *ds = (rng.normal(size=2) for _ in range(6))
    n, i = np.int64(trips), np.int64(0)
    got = evaluate(jvp_graph(graph, [1, 3, 4]), [n, scale, i, x, y, *ds])[3:]
    h = 1e-6

    def at(t: float) -> list[Array]:
        moved = [v + t * d for v, d in zip((scale, x, y), ds, strict=True)]
        return evaluate(graph, [n, moved[0], i, *moved[1:]])[1:]

    for a, p, m in zip(got, at(h), at(-h), strict=True):
        np.testing.assert_allclose(a, (p - m) / (2 * h), rtol=1e-7, atol=1e-8)
    only_x = evaluate(jvp_graph(graph, [3]), [n, scale, i, x, y, ds[1]])[3:]
    zero = np.zeros(2)
    both = evaluate(jvp_graph(graph, [1, 3, 4]), [n, scale, i, x, y, zero, ds[1], zero])[3:]
    np.testing.assert_allclose(only_x, both)


@pytest.mark.parametrize("trips", [0, 1, 5])
def test_while_backward(trips: int) -> None:
    rng = np.random.default_rng(9)
    scale, x, y = (rng.normal(size=2) for _ in range(3))
    check_derivatives(while_graph(), [np.int64(trips), scale, np.int64(0), x, y], rng)


def test_assert_lets_gradients_pass() -> None:
    graph = Graph("f")
    x = graph.add_param(TensorType((), F64))
    b = Builder(graph)
    ok = b.op("gt", x, b.const(0.0))
    b.op("assert", ok, x, b.op("create_token"), message="x is {0}")
    graph.outputs = [b.op("log", x)]
    assert evaluate(vjp_graph(graph, [0]), [np.float64(4), np.float64(1)])[1] == 0.25
    with pytest.raises(AssertionError, match=r"x is -4\.0"):
        evaluate(vjp_graph(graph, [0]), [np.float64(-4), np.float64(1)])
