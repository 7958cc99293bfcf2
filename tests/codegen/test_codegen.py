"""Every op as native code against the interpreter: all dtypes, layouts, and values of all kinds."""

from __future__ import annotations

import numpy as np
import pytest
from op_cases import check_cases, layouts
from sampling import Case, cases, parts

import jitney.ir  # noqa: F401  (registers the ops)
from jitney.codegen.program.compile import compile_graph
from jitney.ir.build import Builder
from jitney.ir.graph import Graph
from jitney.ir.interpreter import evaluate
from jitney.ir.opdef import OPS
from jitney.ir.ops.collectives.records import ALONG_AXES
from jitney.ir.passes import storable
from jitney.ir.types import DTYPE_NAMES, TensorType, dtype_name, is_small
from jitney.runtime.executable import Executable
from jitney.runtime.native.host import current_target


def is_complex(case: Case) -> bool:
    """Those are compiled in `test_complex_ops`."""
    graph = case.graph()
    types = [v.type for v in (*graph.params, *graph.outputs)]
    return any(isinstance(t, TensorType) and t.dtype.kind == "c" for t in types)


def is_left_out(case: Case) -> bool:
    """Two small floats stand for the others: they differ in conversions (`test_small_floats`). What goes
    along a named axis is other ops before code is made."""
    small = is_small(case.dtype) and dtype_name(case.dtype) not in ("f16", "bf16")
    return small or is_complex(case) or case.definition.name in ALONG_AXES


CASES = [case for definition in OPS.values() for case in cases(definition) if not is_left_out(case)]
# The examples of an op at a dtype are one program, so vectors are as wide as those of that dtype are.
ALIKE: dict[tuple[str, str], list[Case]] = {}
for _part, _cases in parts(CASES).items():
    for _case in _cases:
        _name = f"{_case.definition.name} at {dtype_name(_case.dtype)}"
        ALIKE.setdefault((_name, _part), []).append(_case)
ELSEWHERE: dict[str, list[Case]] = {}
for _case in CASES[::9]:
    for _layout in layouts(_case):
        ELSEWHERE.setdefault(f"{_layout} {dtype_name(_case.dtype)}", []).append(_case)


def compiled(graph, strides=None):
    signature, target = (graph.input_types, graph.output_types), current_target()
    module = compile_graph(storable(graph), target, strides, signature=signature)
    return Executable(module, target)


def compiled_for(graph, arrays):
    return compiled(graph, [tuple(s // a.itemsize for s in a.strides) for a in arrays])


@pytest.mark.parametrize(("name", "part"), ALIKE)
def test_op(name, part):
    cases = ALIKE[name, part]
    wild = cases[0].definition.family == "elementwise"
    check_cases(cases, "contiguous", compiled_for, Executable.run, wild)


@pytest.mark.parametrize("where", ELSEWHERE)
def test_op_on_other_layouts(where):
    """Eight cases in each program."""
    alike = ELSEWHERE[where]
    for part in range(0, len(alike), 8):
        check_cases(alike[part : part + 8], where.split()[0], compiled_for, Executable.run)


@pytest.mark.parametrize("index", [-9, -2, 0, 2, 9])
def test_clipping_clamps_constant_indices(index):
    """Negative ones do not count from the end in this mode."""
    graph = Graph("clip")
    x = graph.add_param(TensorType((3,), DTYPE_NAMES["i16"]))
    b = Builder(graph)
    graph.outputs = [b.gather(x, b.const([index], "int64"), axes=(0,), mode="clip")]
    array = np.array([5, 6, 7], np.int16)
    (got,) = compiled(graph).run([array])
    np.testing.assert_array_equal(got, evaluate(graph, [array])[0])


def test_lowerings_are_where_they_are_looked_for():
    from importlib import import_module

    from jitney.codegen.lowering import lower

    for module, names in lower.MODULES.items():
        rules = {id(rule) for rule in vars(import_module(f"jitney.codegen.{module}")).values()}
        assert all(id(lower.LOWERINGS[name]) in rules for name in names)
    assert set(lower.HOMES) == set(lower.LOWERINGS)
