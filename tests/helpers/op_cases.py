"""Many cases of ops in one program, against the interpreter: a program of its own for each takes time.

A backend says how it compiles a graph for arrays, and how it runs what it compiled.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sampling import Case

from jitney.ir.build import Builder
from jitney.ir.graph import Graph
from jitney.ir.interpreter import evaluate
from jitney.ir.types import F32, finfo, is_float, is_small

Arrays = Sequence[np.ndarray[Any, Any]]
Compile = Callable[[Graph, Arrays], Any]
Run = Callable[[Any, Arrays], Arrays]

# Ops whose native form rounds as NumPy's; of others some units in the last place are allowed.
ROUNDED_ALIKE = {
    "add", "sub", "mul", "div", "neg", "abs", "sign", "sqrt", "floor", "ceil", "trunc", "rint",
    "maximum", "minimum", "fmax", "fmin", "copysign", "nextafter", "select", "convert", "fmod",
    "remainder", "floor_divide", "max", "min", "sort", "cummax", "cummin", "heaviside", "ldexp",
}  # fmt: skip
LAYOUTS = ["contiguous", "strided", "reversed", "transposed"]


def close(got: Any, want: Any, exact: bool, label: str) -> None:
    assert got.shape == want.shape and got.dtype == want.dtype, label
    rounding = 64 * finfo(want.dtype).eps if is_float(want.dtype) else 0
    if is_small(want.dtype):
        rounding = 2 * float(finfo(want.dtype).eps)
        got, want = got.astype(F32), want.astype(F32)
    if exact or not is_float(want.dtype):
        np.testing.assert_array_equal(got, want, err_msg=label)
    else:
        np.testing.assert_allclose(got, want, rtol=rounding, atol=rounding, err_msg=label)


def laid_out(array: np.ndarray[Any, Any], layout: str) -> np.ndarray[Any, Any]:
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


def layouts(case: Case) -> list[str]:
    """Those in which some operand of a case lies otherwise than in C order: a row has no transpose."""
    arrays = [a for a in case.sample(np.random.default_rng(0)) if a.size > 1]
    return [o for o in LAYOUTS[1:] if any(laid_out(a, o).strides != a.strides for a in arrays)]


def sampled(case: Case, layout: str, wild: bool) -> list[np.ndarray[Any, Any]]:
    rng = np.random.default_rng(len(str(case)))
    return [laid_out(a, layout) for a in case.sample(rng, wild)]


def wanted(graph: Graph, arrays: Arrays) -> list[np.ndarray[Any, Any]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return list(evaluate(graph, arrays))


def together(graphs: Sequence[Graph]) -> Graph:
    """One graph that computes all: their parameters and their outputs, one graph's after the other's."""
    whole = Graph("ops")
    b = Builder(whole)
    for graph in graphs:
        params = [whole.add_param(p.type) for p in graph.params]
        whole.outputs += b.inline(graph, params)
    return whole


def check_cases(
    cases: Sequence[Case], layout: str, compile: Compile, run: Run, wild: bool = False
) -> Any:
    """The cases in one program; with `wild` on extreme values as well. Returns the program."""
    graphs = [case.graph() for case in cases]
    program = None
    for extreme in (False, True) if wild else (False,):
        samples = [sampled(case, layout, extreme) for case in cases]
        given = [a for arrays in samples for a in arrays]
        program = program or compile(together(graphs), given)
        got = iter(run(program, given))
        for case, graph, arrays in zip(cases, graphs, samples, strict=True):
            for want in wanted(graph, arrays):
                label = f"{case} {layout}{' extreme' if extreme else ''}"
                close(next(got), want, case.definition.name in ROUNDED_ALIKE, label)
    return program
