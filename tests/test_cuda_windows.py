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

from jitney.codegen.cuda.compile import compile_device
from jitney.codegen.cuda.target import CudaTarget
from jitney.ir.autodiff import vjp_graph
from jitney.ir.graph import Graph
from jitney.ir.ops.window_reductions import covered
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
