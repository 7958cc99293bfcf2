"""Every op on the emulated GPU: all dtypes, layouts and values, against the interpreter; gradients too.

An emulated module takes its time to compile, so many ops go into one program. Each program is also
assembled: by LLVM to PTX, and by ptxas where there is one.
"""

from __future__ import annotations

import numpy as np
import pytest
from emulated import assembled, compiled, run
from op_cases import LAYOUTS, check_cases, close, sampled, together, wanted
from sampling import Case, parts
from test_codegen import CASES as ALL_CASES
from test_codegen import compiled as native

from jitney.ir.autodiff.transform import is_differentiable, vjp_graph
from jitney.ir.build import Builder
from jitney.ir.graph import Graph
from jitney.ir.interpreter import evaluate
from jitney.ir.passes import optimise
from jitney.ir.types import DTYPE_NAMES, F16, F32, is_small, type_of
from jitney.runtime.cuda.assemble import architecture_number

ARCHITECTURES = ("sm_75", "sm_80", "sm_90")
BY_OP: dict[tuple[str, str], list[Case]] = {}
CASES = [c for c in ALL_CASES if not is_small(c.dtype) or c.dtype == F16]
for _part, _cases in parts(CASES).items():
    for _case in _cases:
        BY_OP.setdefault((_case.definition.name, _part), []).append(_case)
NAMES = [name for name, part in BY_OP if part == "each"]


@pytest.mark.parametrize(("name", "part"), BY_OP)
def test_op(name: str, part: str) -> None:
    cases = BY_OP[name, part]
    wild = cases[0].definition.family == "elementwise"
    program = check_cases(cases, "contiguous", compiled, run, wild)
    assembled(
        program.ir, max(ARCHITECTURES[NAMES.index(name) % 3], program.arch, key=architecture_number)
    )


@pytest.mark.parametrize("layout", LAYOUTS[1:])
@pytest.mark.parametrize("part", range(3))
def test_ops_on_other_layouts(layout: str, part: int) -> None:
    check_cases(CASES[7 * part :: 33], layout, compiled, run)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_functions_have_the_bits_of_the_cpu(dtype: str) -> None:
    """Each is the same arithmetic there, down to the last rounding."""
    cases = [c for c in CASES if c.definition.family == "elementwise" and c.dtype == dtype]
    cases = [c for c in cases if c.definition.name != "convert"]
    names = [c.definition.name for c in cases for _ in c.graph().outputs]
    graph = together([case.graph() for case in cases])
    here, program = native(graph), None
    for wild in (False, True):
        given = [a for case in cases for a in sampled(case, "contiguous", wild)]
        program = program or compiled(graph, given)
        for name, got, want in zip(names, run(program, given), here.run(given), strict=True):
            np.testing.assert_array_equal(got, want, err_msg=name)


def gradients(case: Case) -> tuple[Graph, list[np.ndarray]] | None:
    """The vector-Jacobian product of an op of floats at a sample."""
    graph, arrays = case.graph(), sampled(case, "contiguous", False)
    wrt = [i for i, p in enumerate(graph.params) if is_differentiable(p.type)]
    outs = [v for v in graph.outputs if is_differentiable(v.type)]
    if case.definition.vjp is None or not wrt or not outs:
        return None
    rng = np.random.default_rng(1)
    return vjp_graph(graph, wrt), arrays + [rng.normal(size=v.shape).astype(v.dtype) for v in outs]


@pytest.mark.parametrize("part", range(12))
def test_gradients(part: int) -> None:
    cases = [c for c in CASES if c.dtype.kind == "f"][part::12]
    found = [pair for case in cases if (pair := gradients(case)) is not None]
    given = [a for _, arrays in found for a in arrays]
    program = compiled(optimise(together([graph for graph, _ in found])), given)
    got = iter(run(program, given))
    for graph, arrays in found:
        for want in wanted(graph, arrays):
            close(next(got), want, False, graph.name)


def test_small_floats() -> None:
    """All values of each, rounded from float32 and widened, in one program."""
    dtypes = [d for d in DTYPE_NAMES.values() if is_small(d)]
    graph = Graph("casts")
    b = Builder(graph)
    count = np.arange(1 << 16, dtype=np.uint16)
    arrays = [(count if d.itemsize == 2 else count[:256].astype(np.uint8)).view(d) for d in dtypes]
    hard = np.concatenate([(count.astype(np.uint32) << 16 | 0x8000).view(F32), count.astype(F32)])
    x = graph.add_param(type_of(hard))
    for dtype, array in zip(dtypes, arrays, strict=True):
        p = graph.add_param(type_of(array))
        graph.outputs += [b.convert(p, dtype=F32), b.convert(x, dtype=dtype)]
    program = compiled(graph, [hard, *arrays])
    for got, want in zip(
        run(program, [hard, *arrays]), evaluate(graph, [hard, *arrays]), strict=True
    ):
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(got.astype(np.float64), want.astype(np.float64))
    for arch in ARCHITECTURES:
        assembled(program.ir, arch)
