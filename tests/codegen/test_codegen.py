"""Every op as native code against the interpreter: all dtypes, layouts, and values of all kinds."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sampling import Case, cases

import jitney.ir  # noqa: F401  (registers the ops)
from jitney.codegen.program.compile import compile_graph
from jitney.ir.build import Builder
from jitney.ir.graph import Graph
from jitney.ir.interpreter import evaluate
from jitney.ir.opdef import OPS
from jitney.ir.passes import storable
from jitney.ir.types import DTYPE_NAMES, F32, TensorType, dtype_name, finfo, is_float, is_small
from jitney.runtime.executable import Executable
from jitney.runtime.native.host import current_target

# Ops whose native form rounds otherwise than NumPy's: units in the last place that are allowed.
ROUNDED_ALIKE = {
    "add", "sub", "mul", "div", "neg", "abs", "sign", "sqrt", "floor", "ceil", "trunc", "rint",
    "maximum", "minimum", "fmax", "fmin", "copysign", "nextafter", "select", "convert", "fmod",
    "remainder", "floor_divide", "max", "min", "sort", "cummax", "cummin", "heaviside", "ldexp",
}  # fmt: skip


def is_complex(case: Case) -> bool:
    """Those are compiled in `test_complex_ops`."""
    graph = case.graph()
    types = [v.type for v in (*graph.params, *graph.outputs)]
    return any(isinstance(t, TensorType) and t.dtype.kind == "c" for t in types)


def is_left_out(case: Case) -> bool:
    """Two small floats stand for the others: they differ in conversions (`test_small_floats`)."""
    small = is_small(case.dtype) and dtype_name(case.dtype) not in ("f16", "bf16")
    return small or is_complex(case)


CASES = [case for definition in OPS.values() for case in cases(definition) if not is_left_out(case)]
LAYOUTS = ["contiguous", "strided", "reversed", "transposed"]


def compiled(graph, strides=None):
    signature = graph.input_types, graph.output_types
    return Executable(
        compile_graph(storable(graph), current_target(), strides, signature=signature)
    )


def close(got, want, exact: bool, label: str) -> None:
    assert got.shape == want.shape and got.dtype == want.dtype, label
    rounding = 64 * finfo(want.dtype).eps if is_float(want.dtype) else 0
    if is_small(want.dtype):
        rounding = 2 * float(finfo(want.dtype).eps)
        got, want = got.astype(F32), want.astype(F32)
    if exact or not is_float(want.dtype):
        np.testing.assert_array_equal(got, want, err_msg=label)
    else:
        np.testing.assert_allclose(got, want, rtol=rounding, atol=rounding, err_msg=label)


def laid_out(array: np.ndarray, layout: str) -> np.ndarray:
    """The same values in other memory."""
    if array.ndim == 0 or layout == "contiguous":
        return array
    if layout == "transposed":
        return np.asfortranarray(array)
    if layout == "reversed":
        return np.ascontiguousarray(np.flip(array))[(slice(None, None, -1),) * array.ndim]
    wide = np.zeros([2 * n + 1 for n in array.shape], array.dtype)
    view = wide[tuple(slice(0, 2 * n, 2) for n in array.shape)]
    view[...] = array
    return view


def run_case(case: Case, layout: str, wild: bool = False) -> None:
    """The op on a sample of tame values, and with `wild` on extreme ones too, by the same code."""
    executable = None
    for extreme in (False, True) if wild else (False,):
        graph = case.graph()
        rng = np.random.default_rng(len(str(case)))
        arrays = [laid_out(a, layout) for a in case.sample(rng, extreme)]
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                want = evaluate(graph, arrays)
        except (IndexError, AssertionError, ValueError) as error:
            with pytest.raises(type(error)):
                compiled(graph).run([np.asarray(a, order="C") for a in arrays])
            continue
        if executable is None:
            strides = [tuple(s // a.itemsize for s in a.strides) for a in arrays]
            executable = compiled(graph, strides)
        for g, w in zip(executable.run(arrays), want, strict=True):
            label = f"{case} {layout}{' extreme' if extreme else ''}"
            close(g, w, case.definition.name in ROUNDED_ALIKE, label)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_op(case):
    run_case(case, "contiguous", wild=case.definition.family == "elementwise")


def layouts(case: Case) -> list[str]:
    """Those in which some operand of a case lies otherwise than in C order: a row has no transpose."""
    arrays = [a for a in case.sample(np.random.default_rng(0)) if a.size > 1]
    return [o for o in LAYOUTS[1:] if any(laid_out(a, o).strides != a.strides for a in arrays)]


@pytest.mark.parametrize(
    ("case", "layout"), [(case, layout) for case in CASES[::7] for layout in layouts(case)], ids=str
)
def test_op_on_other_layouts(case, layout):
    run_case(case, layout)


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
