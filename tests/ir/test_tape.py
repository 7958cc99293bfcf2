"""Tapes: pushing and popping, linearity, derivatives, and what passes leave alone."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
from derivatives import check_derivatives
from hypothesis import given, settings
from hypothesis import strategies as st

from jitney.ir.autodiff.transform import jvp_graph, vjp_graph
from jitney.ir.build import Builder
from jitney.ir.graph import Graph
from jitney.ir.interpreter import evaluate
from jitney.ir.opdef import OPS, GraphError
from jitney.ir.passes import canonical_key, eliminate_common_subexpressions, optimise
from jitney.ir.text import print_graph
from jitney.ir.text_parser import parse_graph
from jitney.ir.types import F64, I64, TAPE, TOKEN, TensorType, Type, is_linear, parse_type
from jitney.ir.verify import verify

WORD, VECTOR, COUNT = TensorType((), F64), TensorType((3,), F64), TensorType((), I64)


def parsed(text: str) -> Graph:
    graph = parse_graph(inspect.cleandoc(text))
    verify(graph)
    return graph


def test_the_type() -> None:
    assert parse_type("tape") is TAPE and str(TAPE) == "tape"
    assert is_linear(TAPE) and is_linear(TOKEN) and not is_linear(WORD)
    with pytest.raises(ValueError, match="tape"):
        parse_type("tap")


LAST_IN_FIRST_OUT = """
    graph f(%x: f64[3], %n: i64[]) -> f64[3], i64[], f64[3], f64[3] {
      %t = tape_new : tape
      %a = tape_push %t, %x, %n : tape
      %s = sin %x : f64[3]
      %b = tape_push %a, %s : tape
      %c, %p = tape_pop %b types=[f64[3]] : tape, f64[3]
      %d, %q, %m = tape_pop %c types=[f64[3],i64[]] : tape, f64[3], i64[]
      %e, %z = tape_pop %d types=[f64[3]] : tape, f64[3]
      return %q, %m, %p, %z
    }"""


def test_last_in_first_out_and_zeros_at_the_bottom() -> None:
    graph = parsed(LAST_IN_FIRST_OUT)
    assert print_graph(parse_graph(print_graph(graph))) == print_graph(graph)
    x = np.array([1.0, 2.0, 3.0])
    for each in (graph, optimise(graph, verify=True)):
        q, m, p, z = evaluate(each, [x, np.int64(7)])
        np.testing.assert_array_equal(q, x)
        np.testing.assert_array_equal(p, np.sin(x))
        assert m == 7 and not z.any() and z.shape == (3,)


def test_derivatives_of_pushes_and_pops() -> None:
    graph = parsed(LAST_IN_FIRST_OUT)
    rng = np.random.default_rng(1)
    arrays = [rng.normal(size=3), np.int64(7)]
    check_derivatives(graph, arrays, rng)
    backward = vjp_graph(graph, [0])
    backward.outputs = backward.outputs[4:]
    verify(backward)
    check_derivatives(backward, [*arrays, *(rng.normal(size=3) for _ in range(3))], rng)


@pytest.mark.parametrize("kept", [0, 1, 2])
def test_records_that_are_not_popped_or_not_used_have_no_cotangent(kept: int) -> None:
    """Two records, of which `kept` are popped; what stays behind has the cotangent zero."""
    graph = Graph("f")
    x, y = graph.add_param(VECTOR), graph.add_param(VECTOR)
    b = Builder(graph)
    tape = b.tape_push(b.tape_push(b.tape_new(), b.sin(x)), y)
    graph.outputs = [b.exp(x)]
    for _ in range(kept):
        tape, value = b.tape_pop(tape, types=(VECTOR,))
        graph.outputs.append(value)
    rng = np.random.default_rng(2)
    arrays = [rng.normal(size=3), rng.normal(size=3)]
    check_derivatives(graph, arrays, rng)
    # The same with the popped values ignored, so that zeros stand in for their cotangents.
    graph.outputs = graph.outputs[:1] + graph.outputs[2:]
    check_derivatives(graph, arrays, rng)


def test_records_that_do_not_vary() -> None:
    """Below and above a varying record are others; the tangent tape lines up with the tape."""
    graph = Graph("f")
    x, c, n = graph.add_param(VECTOR), graph.add_param(VECTOR), graph.add_param(COUNT)
    b = Builder(graph)
    tape = b.tape_new()
    for record in ((c,), (n,), (x, n, c), (n, n), (c,), (x,)):
        tape = b.tape_push(tape, *record)
    tape, top = b.tape_pop(tape, types=(VECTOR,))
    tape, fifth = b.tape_pop(tape, types=(VECTOR,))
    tape, *_ = b.tape_pop(tape, types=(COUNT, COUNT))
    tape, first, number, third = b.tape_pop(tape, types=(VECTOR, COUNT, VECTOR))
    tape, _ = b.tape_pop(tape, types=(COUNT,))
    tape, bottom = b.tape_pop(tape, types=(VECTOR,))
    graph.outputs = [b.sin(first), b.mul(top, fifth), third, b.mul(bottom, first)]
    verify(graph)
    rng = np.random.default_rng(3)
    arrays = [rng.normal(size=3), rng.normal(size=3), np.int64(4)]
    check_derivatives(graph, arrays, rng)
    ct = [rng.normal(size=3) for _ in range(4)]
    only_x = evaluate(vjp_graph(graph, [0]), [*arrays, *ct])[4:]
    both = evaluate(vjp_graph(graph, [0, 1]), [*arrays, *ct])[4:]
    np.testing.assert_array_equal(only_x[0], both[0])
    forward = evaluate(jvp_graph(graph, [0]), [*arrays, ct[0]])[4:]
    whole = evaluate(jvp_graph(graph, [0, 1]), [*arrays, ct[0], np.zeros(3)])[4:]
    for a, w in zip(forward, whole, strict=True):
        np.testing.assert_array_equal(a, w)


def test_tapes_on_tapes() -> None:
    graph = parsed(
        """
        graph f(%x: f64[], %y: f64[]) -> f64[], f64[], f64[] {
          %a = tape_new : tape
          %b = tape_push %a, %x : tape
          %o = tape_new : tape
          %p = tape_push %o, %b, %y : tape
          %q = tape_push %p, %x : tape
          %r, %x2 = tape_pop %q types=[f64[]] : tape, f64[]
          %s, %c, %y2 = tape_pop %r types=[tape,f64[]] : tape, tape, f64[]
          %d, %x3 = tape_pop %c types=[f64[]] : tape, f64[]
          return %x2, %x3, %y2
        }"""
    )
    rng = np.random.default_rng(4)
    arrays = [np.float64(2), np.float64(3)]
    assert evaluate(graph, arrays) == [2, 2, 3]
    check_derivatives(graph, arrays, rng)
    backward = vjp_graph(graph, [0, 1])
    verify(optimise(backward, verify=True))
    assert evaluate(backward, [*arrays, 1.0, 10.0, 100.0])[3:] == [11, 100]


def test_an_empty_tape_holds_empty_tapes() -> None:
    graph = parsed(
        """
        graph f() -> f64[] {
          %t = tape_new : tape
          %u, %inner = tape_pop %t types=[tape] : tape, tape
          %v, %x = tape_pop %inner types=[f64[]] : tape, f64[]
          return %x
        }"""
    )
    assert evaluate(graph, []) == [0]


def test_a_record_must_have_the_types_asked_for() -> None:
    graph = Graph("f")
    x = graph.add_param(VECTOR)
    b = Builder(graph)
    graph.outputs = [b.tape_pop(b.tape_push(b.tape_new(), x), types=(WORD,))[1]]
    with pytest.raises(GraphError, match="the top of the tape holds"):
        evaluate(graph, [np.zeros(3)])


@pytest.mark.parametrize(
    ("name", "types", "attrs", "message"),
    [
        ("tape_push", (WORD, WORD), {}, "not a tape"),
        ("tape_push", (TAPE, TOKEN), {}, "token"),
        ("tape_pop", (WORD,), {"types": (WORD,)}, "not a tape"),
        ("tape_pop", (TAPE,), {"types": (TOKEN,)}, "types="),
        ("tape_pop", (TAPE,), {"types": [WORD]}, "types="),
    ],
)
def test_type_rules(name: str, types: tuple[Type, ...], attrs: Any, message: str) -> None:
    graph = Graph("f")
    params = [graph.add_param(t) for t in types]
    with pytest.raises(GraphError, match=message):
        Builder(graph).append(OPS[name], params, attrs)


# Linearity


def used_twice() -> list[Graph]:
    graphs = []
    for again in ("push", "pop", "output", "same op", "loop"):
        graph = Graph(again)
        x = graph.add_param(WORD)
        b = Builder(graph)
        tape = b.tape_new()
        first = b.tape_push(tape, x)
        graph.outputs = [first]
        if again == "push":
            b.tape_push(tape, x)
        elif again == "pop":
            b.tape_pop(tape, types=(WORD,))
        elif again == "output":
            graph.outputs = [tape]
        elif again == "same op":
            b.tape_push(first, first)
        else:
            body = Graph("body")
            t = body.add_param(TAPE)
            inner = Builder(body)
            inner.tape_push(t)
            body.outputs = [t]
            attrs = {"consts": 0, "carries": 1, "length": 2, "reverse": False}
            graph.outputs = [b.op("scan", first, regions=[body], **attrs)]
        graphs.append(graph)
    return graphs


@pytest.mark.parametrize("graph", used_twice(), ids=lambda g: g.name)
def test_a_tape_is_read_once(graph: Graph) -> None:
    with pytest.raises(GraphError, match="tape that was already used"):
        verify(graph)


def test_branches_may_each_use_a_tape() -> None:
    graph = parsed(
        """
        graph f(%k: i32[], %x: f64[]) -> f64[] {
          %t = tape_new : tape
          %u = cond %k, %x, %t : tape {
            graph none(%x: f64[], %t: tape) -> tape {
              return %t
            }
            graph one(%x: f64[], %t: tape) -> tape {
              %s = sin %x : f64[]
              %u = tape_push %t, %s : tape
              return %u
            }
          }
          %v, %y = tape_pop %u types=[f64[]] : tape, f64[]
          return %y
        }"""
    )
    rng = np.random.default_rng(5)
    for k in (0, 1):
        arrays = [np.int32(k), np.float64(0.5)]
        assert evaluate(graph, arrays) == [np.sin(0.5) if k else 0]
        check_derivatives(graph, arrays, rng)
        better = optimise(vjp_graph(graph, [1]), verify=True)
        (dx,) = evaluate(better, [*arrays, np.float64(2)])[1:]
        assert dx == (2 * np.cos(0.5) if k else 0)


# Passes


def test_two_tapes_are_never_one() -> None:
    graph = parsed(
        """
        graph f(%x: f64[]) -> f64[], f64[] {
          %a = tape_new : tape
          %b = tape_new : tape
          %c = tape_push %a, %x : tape
          %d = tape_push %b, %x : tape
          %e, %p = tape_pop %c types=[f64[]] : tape, f64[]
          %f, %q = tape_pop %d types=[f64[]] : tape, f64[]
          return %p, %q
        }"""
    )
    for run in (eliminate_common_subexpressions, optimise):
        found = run(graph)
        verify(found)
        assert sum(op.name == "tape_new" for op in found.ops) == 2


def test_a_tape_that_nobody_pops_goes() -> None:
    """Also from a loop that fills it, and what was computed for it alone."""
    graph = parsed(
        """
        graph f(%x: f64[]) -> f64[] {
          %t = tape_new : tape
          %y, %u = scan %x, %t consts=0 carries=2 length=3 reverse=false : f64[], tape {
            graph body(%x: f64[], %t: tape) -> f64[], tape {
              %c = cos %x : f64[]
              %u = tape_push %t, %c : tape
              %y = sin %x : f64[]
              return %y, %u
            }
          }
          return %y
        }"""
    )
    found = optimise(graph, verify=True)
    assert [op.name for op in found.walk()] == ["scan", "sin"]
    assert evaluate(found, [np.float64(1)]) == evaluate(graph, [np.float64(1)])


def test_types_count_for_caches() -> None:
    def popping(type: Type) -> Graph:
        graph = Graph("f")
        b = Builder(graph)
        b.tape_pop(graph.add_param(TAPE), types=(type,))
        return graph

    assert canonical_key(popping(WORD)) == canonical_key(popping(WORD))
    assert canonical_key(popping(WORD)) != canonical_key(popping(VECTOR))


# Any program of pushes and pops


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_random_pushes_and_pops(data: st.DataObject) -> None:
    """Values go through tapes, or beside them: the same derivatives to second order."""
    seed = data.draw(st.integers(0, 99))
    records: list[int] = []
    through, beside = Graph("through"), Graph("beside")
    stacks: list[Any] = []
    for graph in (through, beside):
        params = [graph.add_param(VECTOR) for _ in range(2)]
        stacks.append((Builder(graph), list(params), []))
    tape = stacks[0][0].tape_new()
    for _ in range(data.draw(st.integers(1, 12))):
        step = data.draw(st.sampled_from(["push", "pop", "sin", "mul"]))
        choices = [data.draw(st.integers(0, len(stacks[0][1]) - 1)) for _ in range(2)]
        if step == "push":
            count = data.draw(st.integers(0, 2))
            records.append(count)
            tape = stacks[0][0].tape_push(tape, *(stacks[0][1][k] for k in choices[:count]))
            stacks[1][2].append([stacks[1][1][k] for k in choices[:count]])
        elif step == "pop" and records:
            count = records.pop()
            popped = stacks[0][0].op("tape_pop", tape, types=(VECTOR,) * count)
            tape, *values = popped if isinstance(popped, tuple) else (popped,)
            stacks[0][1].extend(values)
            stacks[1][1].extend(stacks[1][2].pop())
        else:
            for b, values, _ in stacks:
                operands = [values[k] for k in choices]
                values.append(b.sin(operands[0]) if step != "mul" else b.mul(*operands))
    picked = data.draw(st.integers(0, len(stacks[0][1]) - 1))
    for graph, (_, values, _) in zip((through, beside), stacks, strict=True):
        graph.outputs = [values[picked], values[-1]]
        verify(graph)
    rng = np.random.default_rng(seed)
    arrays = [rng.normal(size=3) for _ in range(2)]
    for make in (lambda g: g, _gradient, lambda g: _gradient(_gradient(g)), _tangent):
        a, b = make(through), make(beside)
        verify(a)
        more = [rng.normal(size=3) for _ in a.params[2:]]
        for x, y in zip(evaluate(a, [*arrays, *more]), evaluate(b, [*arrays, *more]), strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-12, atol=1e-13)


def _gradient(graph: Graph) -> Graph:
    found = vjp_graph(graph, [0, 1])
    found.outputs = found.outputs[len(graph.outputs) :]
    return found


def _tangent(graph: Graph) -> Graph:
    return jvp_graph(graph, [0, 1])
