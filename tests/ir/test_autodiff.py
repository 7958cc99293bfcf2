"""Derivatives of graphs: reverse against forward against central differences, and what is skipped."""

from __future__ import annotations

import inspect
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from graphs import random_graphs, smooth_graphs
from hypothesis import assume, given, settings

from jitney.ir.autodiff.transform import jvp_graph, vjp_graph
from jitney.ir.build import Builder
from jitney.ir.graph import Graph
from jitney.ir.interpreter import evaluate
from jitney.ir.opdef import DerivativeError, GraphError
from jitney.ir.passes import eliminate_dead_code, optimise
from jitney.ir.text import print_graph
from jitney.ir.text_parser import parse_graph
from jitney.ir.verify import verify


def parsed(text: str) -> Graph:
    return parse_graph(inspect.cleandoc(text))


def directions(arrays: list[np.ndarray], seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.normal(size=a.shape) for a in arrays]


def pullback(graph: Graph, arrays: list[Any], cts: list[Any]) -> list[np.ndarray]:
    """The cotangents of all parameters."""
    vjp = vjp_graph(graph, range(len(graph.params)))
    verify(vjp)
    return evaluate(vjp, [*arrays, *cts])[len(graph.outputs) :]


def pushforward(graph: Graph, arrays: list[Any], tangents: list[Any]) -> list[np.ndarray]:
    jvp = jvp_graph(graph, range(len(graph.params)))
    verify(jvp)
    return evaluate(jvp, [*arrays, *tangents])[len(graph.outputs) :]


def inner(xs: list[np.ndarray], ys: list[np.ndarray]) -> float:
    return float(sum((x * y).sum() for x, y in zip(xs, ys, strict=True)))


def difference(graph: Graph, arrays: list[Any], tangents: list[Any], h: float = 1e-4) -> list[Any]:
    """Central differences of fourth order along `tangents`.

    An example that is too steep for them (they change with the step) is not one.
    """

    def at(s: float) -> list[np.ndarray]:
        return evaluate(graph, [a + s * t for a, t in zip(arrays, tangents, strict=True)])

    def slope(h: float) -> list[np.ndarray]:
        steps = zip(at(h), at(-h), at(2 * h), at(-2 * h), strict=True)
        return [(8 * (p - m) - (pp - mm)) / (12 * h) for p, m, pp, mm in steps]

    fine, coarse = slope(h), slope(2 * h)
    for a, b in zip(fine, coarse, strict=True):
        assume(np.allclose(a, b, rtol=1e-6, atol=1e-6))
    return fine


@settings(max_examples=30)
@given(smooth_graphs())
def test_forward_reverse_and_differences_agree(case: Any) -> None:
    graph, arrays = case
    tangents = directions(arrays, 1)
    cts = directions(evaluate(graph, arrays), 2)
    forward = pushforward(graph, arrays, tangents)
    reverse = pullback(graph, arrays, cts)
    scale = 1 + max(float(np.abs(t).max(initial=0)) for t in [*forward, *reverse])
    assert abs(inner(cts, forward) - inner(reverse, tangents)) < 1e-9 * scale
    for t, d in zip(forward, difference(graph, arrays, tangents), strict=True):
        np.testing.assert_allclose(t, d, rtol=1e-6, atol=1e-6 * scale)


@settings(max_examples=15)
@given(smooth_graphs(max_ops=8))
def test_gradient_of_gradient(case: Any) -> None:
    """Reverse over reverse, forward over reverse and differences of the gradient: one Hessian."""
    graph, arrays = case
    scalar = _summed(graph)
    n = len(arrays)
    gradient = eliminate_dead_code(_only(vjp_graph(scalar, range(n)), slice(1, None)))
    one = np.ones(())
    tangents = directions(arrays, 3)
    weights = directions(arrays, 4)
    reverse = vjp_graph(gradient, range(n))
    forward = jvp_graph(gradient, range(n))
    verify(reverse)
    verify(optimise(reverse, verify=True))
    hv = evaluate(forward, [*arrays, one, *tangents])[n:]
    wh = evaluate(reverse, [*arrays, one, *weights])[n:]
    scale = 1 + max(float(np.abs(t).max(initial=0)) for t in [*hv, *wh])
    assert abs(inner(weights, hv) - inner(wh, tangents)) < 1e-8 * scale
    difference_of_gradient = difference(gradient, [*arrays, one], [*tangents, np.zeros(())])
    for t, d in zip(hv, difference_of_gradient, strict=True):
        np.testing.assert_allclose(t, d, rtol=1e-5, atol=1e-5 * scale)


@settings(max_examples=15)
@given(smooth_graphs(max_ops=12))
def test_optimised_derivatives_are_the_same(case: Any) -> None:
    graph, arrays = case
    vjp = vjp_graph(graph, range(len(arrays)))
    cts = directions(evaluate(graph, arrays), 5)
    for a, b in zip(
        evaluate(vjp, [*arrays, *cts]),
        evaluate(optimise(vjp, verify=True), [*arrays, *cts]),
        strict=True,
    ):
        np.testing.assert_allclose(b, a, rtol=1e-9, atol=1e-9)


@settings(max_examples=20)
@given(random_graphs(max_ops=25, library=True))
def test_derivatives_of_any_graph_are_well_formed(case: Any) -> None:
    """Control flow, tokens, integers, zero-size arrays: the derivative verifies, runs, optimises."""
    graph, arrays = case
    wrt = [i for i, p in enumerate(graph.params) if p.dtype.kind == "f"]
    outputs = [v for v in evaluate(graph, arrays) if v is not None and v.dtype.kind == "f"]
    for make, extra in ((jvp_graph, [arrays[i] for i in wrt]), (vjp_graph, outputs)):
        try:
            derivative = make(graph, wrt)
        except DerivativeError as error:
            assert make is vjp_graph and "while" in str(error), error
            continue
        verify(derivative)
        results = evaluate(derivative, [*arrays, *extra])
        optimised = evaluate(optimise(derivative, verify=True), [*arrays, *extra])
        assert [np.shape(a) for a in results] == [np.shape(a) for a in optimised]


def _summed(graph: Graph) -> Graph:
    """The sum of tanh of all elements of all outputs."""
    new = Graph("scalar")
    new.params, new.ops = list(graph.params), list(graph.ops)
    b = Builder(new)
    total = b.const(0.0)
    for v in graph.outputs:
        total = b.add(total, b.sum(b.tanh(v), axes=tuple(range(len(v.shape)))))
    new.outputs = [total]
    return new


def _only(graph: Graph, which: slice) -> Graph:
    new = Graph(graph.name)
    new.params, new.ops, new.outputs = list(graph.params), list(graph.ops), graph.outputs[which]
    return new


# Signatures, and what carries a derivative.

MIXED = """
    graph f(%x: f32[2], %n: i32[2], %y: f64[2]) -> f32[2], i32[2], f64[2] {
      %a = exp %x                 : f32[2]  # m.py:1
      %m = neg %n                 : i32[2]  # m.py:2
      %b = convert %x dtype=f64   : f64[2]  # m.py:3
      %c = mul %b, %y             : f64[2]  # m.py:4
      return %a, %m, %c
    }"""


def test_signatures() -> None:
    graph = parsed(MIXED)
    vjp = vjp_graph(graph, [2, 0])
    assert [str(t) for t in vjp.input_types] == ["f32[2]", "i32[2]", "f64[2]", "f32[2]", "f64[2]"]
    assert [str(t) for t in vjp.output_types] == ["f32[2]", "i32[2]", "f64[2]", "f64[2]", "f32[2]"]
    assert [p.name for p in vjp.params[3:]] == ["d_a", "d_c"]
    jvp = jvp_graph(graph, [0])
    assert [str(t) for t in jvp.input_types] == ["f32[2]", "i32[2]", "f64[2]", "f32[2]"]
    assert [str(t) for t in jvp.output_types] == ["f32[2]", "i32[2]", "f64[2]", "f32[2]", "f64[2]"]
    for derivative in (vjp, jvp):
        verify(derivative)


def test_the_graph_is_not_touched() -> None:
    graph = parsed(MIXED)
    text = print_graph(graph)
    vjp_graph(graph, [0, 2])
    jvp_graph(graph, [0, 2])
    assert print_graph(graph) == text


def test_derivative_ops_carry_the_line_of_their_op() -> None:
    graph = parsed(MIXED)
    vjp = vjp_graph(graph, [0, 2])
    lines = [op.loc.line for op in vjp.ops[len(graph.ops) :] if op.loc]
    assert lines == sorted(lines, reverse=True)
    assert {4, 3, 1} == set(lines)
    assert all(op.loc is not None for op in vjp.ops)


def test_accumulation_in_one_place() -> None:
    """Three uses: two additions, no zeros."""
    graph = parsed(
        """
        graph f(%x: f64[2]) -> f64[2] {
          %a = add %x, %x : f64[2]
          %y = add %a, %x : f64[2]
          return %y
        }"""
    )
    vjp = vjp_graph(graph, [0])
    assert [op.name for op in vjp.ops[2:]] == ["add", "add"]
    assert pullback(graph, [np.ones(2)], [np.ones(2)])[0].tolist() == [3.0, 3.0]


def test_same_output_twice_and_a_parameter_as_output() -> None:
    graph = parsed("graph f(%x: f64[]) -> f64[], f64[] {\n  return %x, %x\n}")
    assert pullback(graph, [np.array(2.0)], [np.array(3.0), np.array(4.0)]) == [7.0]
    assert pushforward(graph, [np.array(2.0)], [np.array(3.0)]) == [3.0, 3.0]


@pytest.mark.parametrize("make", [vjp_graph, jvp_graph])
def test_no_path_is_zero_and_costs_nothing(make: Any) -> None:
    graph = parsed(
        """
        graph f(%x: f64[2], %y: f64[2]) -> f64[2] {
          %n = convert %x dtype=i64 : i64[2]
          %b = convert %n dtype=f64 : f64[2]
          %d = sin %x               : f64[2]
          %z = mul %b, %b           : f64[2]
          return %z
        }"""
    )
    derivative = make(graph, [0, 1])
    verify(derivative)
    assert {op.name for op in derivative.ops[len(graph.ops) :]} <= {"constant", "broadcast"}
    extra = [np.ones(2)] * (len(derivative.params) - 2)
    for zero in evaluate(derivative, [np.ones(2), np.ones(2), *extra])[1:]:
        assert zero.tolist() == [0.0, 0.0]


@pytest.mark.parametrize("make", [vjp_graph, jvp_graph])
def test_inactive_ops_need_no_rule(make: Any) -> None:
    """An argsort off the path, a dead while, and an assert are all left alone."""
    graph = parsed(
        """
        graph f(%x: f64[3], %y: f64[3]) -> f64[3], i64[3], token {
          %t = create_token : token
          %i = argsort %x axis=0 stable=true : i64[3]
          %m = sum %x axes=[0] : f64[]
          %c = constant value={0.0} : f64[]
          %p = gt %m, %c : bool[]
          %u = assert %p, %m, %t message="sum {}" : token
          %w = while %y consts=0 : f64[3] {
            graph test(%a: f64[3]) -> bool[] {
              %f = constant value={false} : bool[]
              return %f
            }
            graph body(%a: f64[3]) -> f64[3] {
              return %a
            }
          }
          %z = mul %x, %w : f64[3]
          return %z, %i, %u
        }"""
    )
    derivative = make(graph, [0])
    verify(derivative)
    assert sum(op.name == "assert" for op in derivative.ops) == 1
    verify(optimise(derivative))


def test_missing_rule_names_op_and_line() -> None:
    graph = parsed(
        """
        graph f(%x: f64[]) -> f64[] {
          %y = while %x consts=0 : f64[] {  # train.py:7 in step
            graph test(%a: f64[]) -> bool[] {
              %one = constant value={1.0} : f64[]
              %t = lt %a, %one : bool[]
              return %t
            }
            graph body(%a: f64[]) -> f64[] {
              %b = add %a, %a : f64[]
              return %b
            }
          }
          return %y
        }"""
    )
    if graph.ops[0].definition.vjp is None:
        with pytest.raises(
            DerivativeError, match=r"^train\.py:7: while\(f64\[\]\): has no reverse"
        ):
            vjp_graph(graph, [0])
    (tangent,) = pushforward(graph, [np.array(0.3)], [np.array(1.0)])
    assert tangent == 4.0


def test_a_rule_may_refuse() -> None:
    """A DerivativeError of a rule gets the op and the line, whichever rule it is."""
    graph = parsed("graph f(%x: f64[]) -> f64[] {\n  %y = exp %x : f64[]  # a.py:3\n  return %y\n}")
    op = graph.ops[0]

    def refuse(*args: Any) -> Any:
        raise DerivativeError("not today")

    class Definition:
        name, jvp, vjp = "exp", staticmethod(refuse), staticmethod(refuse)
        forward = None
        remembers = False
        extra = MappingProxyType({})

    op.definition = Definition()  # type: ignore[assignment]
    for make in (vjp_graph, jvp_graph):
        with pytest.raises(DerivativeError, match=r"^a\.py:3: exp\(f64\[\]\): not today$"):
            make(graph, [0])


def test_wrt_must_be_floats_and_distinct() -> None:
    graph = parsed(MIXED)
    with pytest.raises(DerivativeError, match=r"parameter n of type i32\[2\]; only float and"):
        vjp_graph(graph, [1])
    with pytest.raises(GraphError, match="twice"):
        jvp_graph(graph, [0, 0])


def test_where_does_not_leak_nan() -> None:
    """where(x > 0, sqrt(x), 0): the branch not taken contributes nothing, at second order too."""
    graph = parsed(
        """
        graph f(%x: f64[3]) -> f64[3] {
          %c = constant value={0.0} : f64[]
          %0 = broadcast %c shape=[3] dims=[] : f64[3]
          %p = gt %x, %0 : bool[3]
          %s = sqrt %x : f64[3]
          %y = select %p, %s, %0 : f64[3]
          return %y
        }"""
    )
    x, one = np.array([4.0, 0.0, -1.0]), np.ones(3)
    assert pullback(graph, [x], [one])[0].tolist() == [0.25, 0.0, 0.0]
    assert pushforward(graph, [x], [one])[0].tolist() == [0.25, 0.0, 0.0]
    gradient = _only(vjp_graph(graph, [0]), slice(1, None))
    second = evaluate(vjp_graph(gradient, [0]), [x, one, one])[-1]
    assert second.tolist() == [-1 / 32, 0.0, 0.0]


def test_long_chain() -> None:
    """A chain deeper than Python's stack."""
    graph = Graph("f")
    b = Builder(graph)
    x = graph.add_param(parsed("graph g(%x: f64[]) {\n  return\n}").params[0].type)
    y = x
    for _ in range(3000):
        y = b.sin(y)
    graph.outputs = [y]
    assert len(pullback(graph, [np.array(0.5)], [np.array(1.0)])) == 1
    assert len(optimise(vjp_graph(graph, [0])).ops) < 12_000
