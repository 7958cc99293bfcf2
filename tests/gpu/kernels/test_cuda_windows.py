"""Windows on GPUs: what neighbouring points read is read once, large windows go by parts."""

from __future__ import annotations

import emulated
import numpy as np
import pytest
from emulated import assembled, compiled
from emulated import run as run_program
from hypothesis import given, settings
from hypothesis import strategies as st
from programs import build, expected, same, sample

from jitney.codegen.cuda.target import CudaTarget
from jitney.codegen.device.compile import compile_device
from jitney.ir.autodiff.transform import vjp_graph
from jitney.ir.graph import Graph
from jitney.ir.ops.folds.window_reductions import covered
from jitney.ir.passes import optimise
from jitney.runtime.cuda.emulator.machine import FORWARDS, ORDERS

TARGETS = [CudaTarget(75, 65), CudaTarget(80, 70), CudaTarget(90, 78)]


@pytest.fixture(autouse=True)
def small_device(monkeypatch):
    """One multiprocessor: few threads are enough for it, so that each takes several points."""
    monkeypatch.setattr(emulated, "TARGET", CudaTarget(sms=1))


def check(graph, arrays, order=FORWARDS):
    graph = graph if isinstance(graph, Graph) else optimise(build(graph, *arrays))
    program = compiled(graph, arrays)
    same(run_program(program, arrays, order), expected(graph, arrays))
    return program


def attributes(window, strides=None, low=None, high=None, dilation=None):
    ones, zeros = (1,) * len(window), (0,) * len(window)
    return {
        "window": window,
        "strides": strides or ones,
        "low": low or zeros,
        "high": high or zeros,
        "dilation": dilation or ones,
    }


def pool(name, *args, **kwargs):
    def pooled(b, x):
        return b.op(f"window_{name}", x, **attributes(*args, **kwargs))

    return pooled


def loads(program):
    return program.ir.count("= load ")


def blur(b, x):
    """A stencil: each element and its neighbours."""
    rows, columns = x.shape
    parts = [
        b.slice(x, start=(i, j), stop=(rows - 2 + i, columns - 2 + j), step=(1, 1))
        for i in range(3)
        for j in range(3)
    ]
    total = parts[0]
    for part in parts[1:]:
        total = b.add(total, part)
    return total


@pytest.mark.parametrize("order", ORDERS, ids=str)
@pytest.mark.parametrize("rows", [66, 67])
def test_neighbours_share_what_they_read(rows, order):
    """Eight rows of points read ten rows, not twenty-four; the last ones are done one by one."""
    program = check(blur, [sample((rows, 70), "f4")], order)
    assert "16 points" in program.reports[0].note
    assert loads(program) == 40 + (12 if rows == 67 else 0)


SHAPES = {
    "plain": ((2, 9, 12, 6), ((1, 3, 3, 1), (1, 1, 1, 1))),
    "strides": ((2, 9, 12, 6), ((1, 3, 3, 1), (1, 2, 2, 1), (0, 1, 1, 0), (0, 1, 0, 0))),
    "holes": ((20, 19), ((3, 4), (2, 1), (2, 3), (1, 4), (3, 2))),
    "by parts": ((2, 16, 18, 3), ((1, 7, 8, 1), (1, 1, 2, 1), (0, 3, 2, 0), (0, 3, 4, 0))),
    "long": ((3, 90), ((1, 43), (1, 2), (0, 20), (0, 1))),
    "very long": ((2, 1300), ((1, 1100),)),
    "apart": ((2, 60, 5), ((1, 40, 1), (1, 30, 1), (0, 3, 0), (0, 20, 0))),
    "whole": ((3, 8, 8, 5), ((1, 8, 8, 1),)),
}


@pytest.mark.parametrize("name", ["sum", "max", "min", "prod"])
@pytest.mark.parametrize("case", SHAPES)
def test_windows(case, name):
    shape, attrs = SHAPES[case]
    x = sample(shape, "i4" if name == "min" else "f4")
    check(pool(name, *attrs), [x / 16 + 1 if name == "prod" else x])


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_no_number_reaches_its_windows_only(value):
    x = sample((2, 9, 40), "f4")
    x[1, 4, 17] = value
    for name in ("sum", "max", "min"):
        check(pool(name, (1, 3, 13), (1, 1, 1), (0, 1, 6), (0, 1, 6)), [x])


def gradients(name, shape, attrs, dtype="f4"):
    arrays = [sample(shape, dtype)]
    graph = build(pool(name, *attrs), *arrays)
    return optimise(vjp_graph(graph, [0])), [*arrays, sample(graph.outputs[0].shape, dtype, 1)]


@pytest.mark.parametrize("name", ["sum", "max", "min"])
@pytest.mark.parametrize("case", ["plain", "strides", "holes", "by parts"])
def test_gradients_of_windows(case, name):
    check(*gradients(name, *SHAPES[case], dtype="f8"))


def test_what_reaches_back_is_known_where_strides_divide():
    """Each element is in one window, found by division: a quarter of what would be asked otherwise."""
    graph, arrays = gradients("max", (2, 16, 24, 8), ((1, 2, 2, 1), (1, 2, 2, 1)))
    program = check(graph, arrays)
    (report,) = [r for r in program.reports if "window_put" in r.ops]
    assert "8 points" in report.note or "16 points" in report.note


@pytest.mark.parametrize("order", ORDERS, ids=str)
@pytest.mark.parametrize("case", ["strides", "long"])
def test_windows_in_any_order_of_threads(case, order):
    check(pool("max", *SHAPES[case][1]), [sample(SHAPES[case][0], "f4")], order)


@st.composite
def windows(draw):
    rank = draw(st.integers(1, 3))

    def each(low, high):
        return tuple(draw(st.integers(low, high)) for _ in range(rank))

    window, shape = each(1, {1: 50, 2: 9, 3: 4}[rank]), each(1, {1: 60, 2: 14, 3: 6}[rank])
    attrs = window, each(1, 3), each(0, 3), each(0, 3), each(1, 2)
    return shape, attrs


@settings(max_examples=15, deadline=None)
@given(windows(), st.sampled_from(["sum", "max"]), st.booleans())
def test_any_window(case, name, differentiated):
    shape, attrs = case
    if 0 in covered(shape, attributes(*attrs)):
        return
    if differentiated:
        check(*gradients(name, shape, attrs))
    else:
        check(pool(name, *attrs), [sample(shape, "f4")])


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: t.name)
def test_windows_are_assembled_without_spills(target):
    for name, case in (("max", "strides"), ("sum", "by parts")):
        shape, attrs = SHAPES[case]
        graph, _ = gradients(name, (32, *(4 * n for n in shape[1:])), attrs)
        assembled(compile_device(graph, target).ir, target.name)
