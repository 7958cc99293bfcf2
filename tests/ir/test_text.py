"""The text form: what is printed parses back to the same graph, and errors name line and column."""

from __future__ import annotations

import inspect
import math
from typing import Any

import numpy as np
import pytest
from graphs import random_graphs
from hypothesis import given, settings
from hypothesis import strategies as st

from jitney.ir.build import Builder
from jitney.ir.graph import Graph, SourceLine
from jitney.ir.text import print_graph
from jitney.ir.text_parser import ParseError, _number, parse_graph
from jitney.ir.types import DTYPE_NAMES, F32, TensorType
from jitney.ir.verify import verify


def assert_same_graph(a: Graph, b: Graph) -> None:
    """Structure, types, attributes to the bit, source lines, names of params, regions."""
    assert a.name == b.name
    assert a.input_types == b.input_types
    numbers_a = {v: i for i, v in enumerate(a.values())}
    numbers_b = {v: i for i, v in enumerate(b.values())}
    assert [numbers_a[v] for v in a.outputs] == [numbers_b[v] for v in b.outputs]
    assert len(a.ops) == len(b.ops)
    for x, y in zip(a.ops, b.ops, strict=True):
        assert x.definition is y.definition
        assert x.loc == y.loc
        assert [v.type for v in x.results] == [v.type for v in y.results]
        assert [numbers_a[v] for v in x.operands] == [numbers_b[v] for v in y.operands]
        assert x.attrs.keys() == y.attrs.keys()
        for name, value in x.attrs.items():
            assert_same_attribute(value, y.attrs[name])
        for left, right in zip(x.regions, y.regions, strict=True):
            assert_same_graph(left, right)


def assert_same_attribute(a: Any, b: Any) -> None:
    assert type(a) is type(b)
    if isinstance(a, np.ndarray):
        assert (a.dtype, a.shape, a.tobytes()) == (b.dtype, b.shape, b.tobytes())
        assert not b.flags.writeable
    else:
        assert a == b or a != a


@settings(max_examples=30)
@given(random_graphs(library=True))
def test_round_trip(case: Any) -> None:
    graph, _ = case
    text = print_graph(graph)
    parsed = parse_graph(text)
    verify(parsed)
    assert_same_graph(graph, parsed)
    assert print_graph(parsed) == text


def of_constant(array: np.ndarray) -> Graph:
    graph = Graph("c")
    graph.outputs = [Builder(graph).const(array)]
    return graph


@pytest.mark.parametrize("dtype", DTYPE_NAMES.values(), ids=str)
@pytest.mark.parametrize("size", [0, 1, 64, 65, 3000])
@given(data=st.data())
@settings(max_examples=8)
def test_constants_round_trip_to_the_bit(dtype: Any, size: int, data: Any) -> None:
    seed = data.draw(st.integers(0, 2**32 - 1))
    raw = np.random.default_rng(seed).bytes(size * dtype.itemsize)
    if dtype.kind == "b":
        array = np.frombuffer(raw, np.uint8) % 2 == 1
    else:
        array = np.frombuffer(raw, dtype)  # any bits: NaN payloads, subnormals, extremes
    graph = of_constant(array.reshape(data.draw(st.sampled_from([(size,), (1, size, 1)]))))
    assert_same_graph(graph, parse_graph(print_graph(graph)))


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_special_floats_round_trip(dtype: str) -> None:
    bits = {"f32": "u4", "f64": "u8"}[dtype]
    quiet = np.array([math.nan], DTYPE_NAMES[dtype]).view(bits)
    sign = quiet | (np.ones(1, bits) << (8 * int(bits[1]) - 1))
    nans = np.concatenate([quiet, quiet + 1, sign, sign + 5]).view(DTYPE_NAMES[dtype])
    info = np.finfo(DTYPE_NAMES[dtype])
    more = [0.0, -0.0, math.inf, -math.inf, 0.1, 1e16, 123456789.0, info.max, info.tiny / 8]
    array = np.concatenate([nans, np.array(more, DTYPE_NAMES[dtype])])
    graph = of_constant(array)
    assert_same_graph(graph, parse_graph(print_graph(graph)))
    assert "0.1" in print_graph(graph)  # the shortest text that is exact


@given(st.floats() | st.integers())
def test_numbers_in_attributes(x: Any) -> None:
    from jitney.ir.text import print_attribute

    assert_same_attribute(x, _number(print_attribute(x)))


@given(st.text(), st.text(max_size=5))
@settings(max_examples=25)
def test_any_string_and_any_name(message: str, name: str) -> None:
    graph = Graph(name)
    p = graph.add_param(TensorType((), DTYPE_NAMES["bool"]), name)
    q = graph.add_param(TensorType((2,), F32), name)
    b = Builder(graph, SourceLine("a dir/modél.py", 3, "<lambda> in f"))
    graph.outputs = [b.op("assert", p, b.op("create_token"), message=message), q]
    text = print_graph(graph)
    assert_same_graph(graph, parse_graph(text))
    assert print_graph(parse_graph(text)) == text


def test_what_it_looks_like() -> None:
    text = inspect.cleandoc(
        """
        graph softmax(%x: f32[8,64], %k: i32[]) -> f32[8,64] {
          %m = max %x axes=[1]                   : f32[8]            # model.py:12
          %b = broadcast %m shape=[8,64] dims=[0] : f32[8,64]        # model.py:12 in softmax
          %0 = sub %x, %b                        : f32[8,64]
          %y, %z = cond %k, %0 : f32[8,64], f32[] {  # model.py:14
            graph no(%0: f32[8,64]) -> f32[8,64], f32[] {
              %0_1 = constant value={2.0} : f32[]
              return %0, %0_1
            }
            graph "<lambda>"(%a: f32[8,64]) -> f32[8,64], f32[] {
              %e = exp %a : f32[8,64]
              %s = sum %e axes=[0,1] : f32[]
              return %e, %s
            }
          }
          return %y
        }"""
    )
    printed = print_graph(parse_graph(text))
    assert printed == print_graph(parse_graph(printed))
    assert (
        printed
        == inspect.cleandoc(
            """
        graph softmax(%x: f32[8,64], %k: i32[]) -> f32[8,64] {
          %m = max %x axes=[1]                    : f32[8]            # model.py:12
          %b = broadcast %m shape=[8,64] dims=[0] : f32[8,64]         # model.py:12 in softmax
          %0 = sub %x, %b                         : f32[8,64]
          %y, %z = cond %k, %0                    : f32[8,64], f32[] {  # model.py:14
            graph no(%0: f32[8,64]) -> f32[8,64], f32[] {
              %1 = constant value={2.0} : f32[]
              return %0, %1
            }
            graph "<lambda>"(%a: f32[8,64]) -> f32[8,64], f32[] {
              %e = exp %a            : f32[8,64]
              %s = sum %e axes=[0,1] : f32[]
              return %e, %s
            }
          }
          return %y
        }
        """
        )
        + "\n"
    )


def test_equal_hints_are_told_apart() -> None:
    graph = Graph("f")
    for hint in ["x", "x", "x_1", "a.b[0]", "3d", "", "x"]:
        graph.add_param(TensorType((), F32), hint)
    head = print_graph(graph).splitlines()[0]
    names = [part.split(":")[0].strip() for part in head[8:-3].split(",")]
    assert names == ["%x", "%x_2", "%x_1", "%a_b_0_", "%_3d", "%0", "%x_3"]
    assert print_graph(parse_graph(print_graph(graph))) == print_graph(graph)


@pytest.mark.parametrize(
    ("text", "line", "column", "words"),
    [
        ("grap f() {\n}", 1, 1, "expected 'graph'"),
        ("graph f(%x: f32[2]) -> f32[2] {\n  %y = expp %x : f32[2]\n  return %y\n}", 2, 8, "no op"),
        ("graph f(%x: f32[2]) -> f32[2] {\n  %y = exp %q : f32[2]\n  return %y\n}", 2, 12, "%q is"),
        ("graph f(%x: f32[2]) -> f32[2] {\n  %y = exp %x : f32[3]\n  return %y\n}", 2, 15, "gives"),
        (
            "graph f(%x: i32[2]) -> i32[2] {\n  %y = exp %x : i32[2]\n  return %y\n}",
            2,
            8,
            "accepted",
        ),
        ("graph f(%x: f32[2]) -> f32[2] {\n  %y = exp : f32[2]\n  return %y\n}", 2, 8, "operand"),
        ("graph f(%x: f32[2]) -> f64[2] {\n  return %x\n}", 2, 10, "f64[2]"),
        ("graph f(%x: f31[2]) -> f32[2] {\n  return %x\n}", 1, 13, "a type such as"),
        ("graph f(%x: f32[2]) -> f32[2] {\n  return %x\n", 3, 1, "end of the text"),
        ("graph f(%x: f32[2], %x: f32[2]) {\n  return\n}", 1, 21, "defined twice"),
        ("graph f(%x: f32[2]) {\n  %x = exp %x : f32[2]\n  return\n}", 2, 3, "defined twice"),
        ("graph f() {\n  %c = constant value={1.0} : f32[2]\n  return\n}", 2, 23, "1 elements"),
        ("graph f() {\n  %c = constant value={300} : u8[]\n  return\n}", 2, 23, "u8"),
        ("graph f() {\n  %c = constant value={1.0}\n  return\n}", 2, 23, "type of the result"),
        ('graph f() {\n  %c = constant value={base64 "AA"} : u8[]\n  return\n}', 2, 23, "padding"),
        ("graph f(%x: f32[2]) {\n  %y = flip %x axes=] : f32[2]\n  return\n}", 2, 21, "value"),
        ("graph f(%x: f32[2]) {\n  %y = exp %x $ : f32[2]\n  return\n}", 2, 15, "unexpected '$'"),
        ("graph f(%x: f32[2]) {\n  %y = exp %x : f32[2] return\n}", 2, 24, "end of the line"),
        ("graph f(%x: f32[2]) {\n  %y, %z = exp %x : f32[2]\n  return\n}", 2, 3, "1 results"),
        ("graph f(%x: f32[2]) {\n  %y = exp %x\n}", 3, 1, "expected an op or 'return'"),
        ("graph f() {\n  return\n}\nmore", 4, 1, "'end'"),
    ],
)
def test_errors_name_line_and_column(text: str, line: int, column: int, words: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse_graph(text)
    message = str(caught.value)
    assert message.startswith(f"line {line}, column {column}: "), message
    assert words in message
