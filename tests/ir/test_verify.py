"""The verifier finds each way in which a graph can be broken, and says where."""

from __future__ import annotations

import inspect
from collections.abc import Callable

import numpy as np
import pytest

from jitney.ir.build import Builder
from jitney.ir.graph import Graph, Op, Value
from jitney.ir.opdef import OPS, GraphError, OpDef
from jitney.ir.text_parser import parse_graph
from jitney.ir.types import F32, F64, TOKEN, TensorType
from jitney.ir.verify import verify

TEXT = """
    graph f(%x: f32[2], %p: bool[], %i: i32[]) -> f32[2], token {
      %t = create_token : token                    # m.py:1
      %u = assert %p, %t message="no" : token      # m.py:2
      %c = constant value={1.0, 2.0} : f32[2]      # m.py:3
      %y = add %x, %c : f32[2]                     # m.py:4
      %z = cond %i, %y : f32[2] {                  # m.py:5
        graph a(%q: f32[2]) -> f32[2] {
          %r = exp %q : f32[2]
          return %r
        }
        graph b(%q: f32[2]) -> f32[2] {
          return %q
        }
      }
      %w = flip %z axes=[0] : f32[2]               # m.py:6
      return %w, %u
    }"""


def sample() -> Graph:
    return parse_graph(inspect.cleandoc(TEXT))


def test_the_sample_is_fine() -> None:
    verify(sample())


def _swap(g: Graph) -> None:
    g.ops[2], g.ops[3] = g.ops[3], g.ops[2]


def _foreign_output(g: Graph) -> None:
    g.outputs = [Value(g.outputs[0].type, None, 0)]


def _wrong_type(g: Graph) -> None:
    g.ops[3].results[0].type = TensorType((2,), F64)


def _arity(g: Graph) -> None:
    g.ops[3].operands = g.ops[3].operands[:1]


def _capture(g: Graph) -> None:
    g.ops[4].regions[0].ops[0].operands = (g.params[0],)


def _region_output(g: Graph) -> None:
    g.ops[4].regions[1].outputs = [g.params[0]]


def _region_signature(g: Graph) -> None:
    region = g.ops[4].regions[1]
    region.params = []
    region.add_param(TensorType((3,), F32))
    region.outputs = region.params


def _token_twice(g: Graph) -> None:
    b = Builder(g)
    b.op("assert", g.params[1], g.ops[0].result, message="again")


def _token_out_twice(g: Graph) -> None:
    g.outputs.append(g.outputs[1])


def _writeable(g: Graph) -> None:
    g.ops[2].attrs["value"] = np.array([1.0, 2.0], np.float32)


def _constant_type(g: Graph) -> None:
    value = np.array([1.0, 2.0])
    value.setflags(write=False)
    g.ops[2].attrs["value"] = value


def _unknown_attribute(g: Graph) -> None:
    g.ops[5].attrs["keepdims"] = True


def _missing_attribute(g: Graph) -> None:
    g.ops[5].attrs.clear()


def _unhashable(g: Graph) -> None:
    g.ops[5].attrs["axes"] = [0]


def _bad_attribute(g: Graph) -> None:
    g.ops[5].attrs["axes"] = (1,)


def _defined_twice(g: Graph) -> None:
    g.ops.append(g.ops[5])


def _stolen_result(g: Graph) -> None:
    op = Op(OPS["exp"], (g.params[0],), {})
    op.results = g.ops[5].results
    g.ops[5] = op


def _param_twice(g: Graph) -> None:
    g.params[1] = g.params[0]


def _param_order(g: Graph) -> None:
    g.params.reverse()


def _token_first(g: Graph) -> None:
    g.ops[1].operands = g.ops[1].operands[::-1]


def _copied_definition(g: Graph) -> None:
    old = g.ops[5].definition
    g.ops[5].definition = OpDef(old.name, old.family, old.infer, old.reference)


def _regions_for_nothing(g: Graph) -> None:
    g.ops[5].regions = g.ops[4].regions


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (_swap, "op 2, add (m.py:4): operand 1"),
        (_foreign_output, "output 0"),
        (_wrong_type, "op 3, add (m.py:4): its results are (f64[2])"),
        (_arity, "op 3, add (m.py:4)"),
        (_capture, "cond (m.py:5): region 0: op 0, exp: operand 0"),
        (_region_output, "cond (m.py:5): region 1: output 0"),
        (_region_signature, "op 4, cond (m.py:5)"),
        (_token_twice, "op 6, assert: operand 1 is a token that was already used"),
        (_token_out_twice, "output 2 is a token that was already used"),
        (_writeable, "op 2, constant (m.py:3): attribute 'value': the array is writeable"),
        (_constant_type, "op 2, constant (m.py:3): its results are (f32[2])"),
        (_unknown_attribute, "op 5, flip (m.py:6): unknown attribute 'keepdims'; it has axes"),
        (_missing_attribute, "op 5, flip (m.py:6)"),
        (_unhashable, "op 5, flip (m.py:6): attribute 'axes': [0] is not hashable"),
        (_bad_attribute, "op 5, flip (m.py:6): operands (f32[2]) are refused"),
        (_defined_twice, "op 6, flip (m.py:6): result 0 is defined twice"),
        (_stolen_result, "op 5, exp: result 0"),
        (_param_twice, "parameter 1 is listed twice"),
        (_param_order, "parameter 0 is"),
        (_token_first, "op 1, assert (m.py:2): an effectful op takes a token as its last"),
        (_copied_definition, "op 5, flip (m.py:6): its definition is not the registered one"),
        (_regions_for_nothing, "op 5, flip (m.py:6): it has regions"),
    ],
    ids=lambda x: x.__name__.strip("_") if callable(x) else "",
)
def test_damage_is_found(damage: Callable[[Graph], None], words: str) -> None:
    graph = sample()
    damage(graph)
    with pytest.raises(GraphError) as caught:
        verify(graph)
    assert words in str(caught.value)
    assert "graph f" in str(caught.value)


def test_tokens_are_values() -> None:
    graph = Graph("g")
    token = graph.add_param(TOKEN)
    graph.outputs = [token]
    verify(graph)
