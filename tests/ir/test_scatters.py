"""What is added at indices that are known is taken from there, with the same bits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pass_checks import same

import jitney as jt
from jitney.ir.build import Builder
from jitney.ir.graph import Graph
from jitney.ir.interpreter import evaluate
from jitney.ir.passes import optimise
from jitney.ir.types import F32, TensorType


def scattered(shape, axis, index, mode):
    graph = Graph("f")
    rest = tuple(n for d, n in enumerate(shape) if d != axis)
    x = graph.add_param(TensorType(shape, F32))
    u = graph.add_param(TensorType((*np.shape(index), *rest), F32))
    b = Builder(graph)
    graph.outputs = [b.op("scatter", x, u, b.const(index), axes=(axis,), mode=mode, combine="add")]
    return graph


@settings(max_examples=40)
@given(st.data())
def test_known_places_take_what_is_added_to_them(data):
    shape = data.draw(st.sampled_from([(5,), (4, 3), (2, 5, 3), (1, 4)]))
    axis = data.draw(st.integers(0, len(shape) - 1))
    n, mode = shape[axis], data.draw(st.sampled_from(["check", "clip"]))
    count = data.draw(st.integers(2, 12))
    places = st.integers(-n, n - 1) if mode == "check" else st.integers(-2, n + 1)
    index = np.array(data.draw(st.lists(places, min_size=count, max_size=count)))
    index = index.reshape(2, -1) if count % 2 == 0 else index
    graph = scattered(shape, axis, index, mode)
    random = np.random.default_rng(data.draw(st.integers(0, 99)))
    pool = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-3, 1.0, 1e8, -3.7], np.float32)
    inputs = [random.choice(pool, p.shape) for p in graph.params]
    with np.errstate(invalid="ignore"):
        want, got = evaluate(graph, inputs), evaluate(optimise(graph), inputs)
    assert same(got[0], want[0])


@pytest.mark.parametrize(
    ("index", "mode"),
    [(np.arange(12) % 4, "check"), (np.arange(-2, 6), "clip"), (np.arange(4), "clip")],
)
def test_no_scatter_is_left(index, mode):
    ops = [op.name for op in optimise(scattered((4, 3), 0, index, mode)).ops]
    assert "gather" in ops and "scatter" not in ops


@pytest.mark.parametrize(
    ("shape", "index"),
    [((4, 3), np.array([0, 4])), ((1000,), np.arange(20)), ((2,), np.zeros(99, int))],
)
def test_a_scatter_stays_where_it_may_fail_or_takes_less(shape, index):
    graph = optimise(scattered(shape, 0, index, "check"))
    assert "scatter" in [op.name for op in graph.ops]


def test_derivatives_of_resizing_scatter_nothing():
    x = np.random.default_rng(0).standard_normal((40, 3))
    for size, method in ((80, "bilinear"), (37, "bicubic"), (13, "bilinear"), (160, "nearest")):

        def loss(x, size=size, method=method):
            return (jt.image.resize(x, (size, 3), method) ** 2).sum()

        jt.check_grads(loss, (x,), order=1)
    f = jt.jit(jt.grad(lambda x: (jt.image.resize(x, (80, 3), "bilinear") ** 2).sum()))
    assert not any("scatter" in kernel.ops for kernel in f.lower(x).kernels)
