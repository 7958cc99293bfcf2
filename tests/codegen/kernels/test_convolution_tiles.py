"""Convolutions by micro-kernels: small problems cut as if they were large, on every kind of vector."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from native import avx2_target, has_avx2

from jitney.codegen.limits import TINY, limited
from jitney.codegen.program.compile import compile_graph
from jitney.codegen.schedule.conv_plan import axis, reach
from jitney.ir.autodiff.transform import vjp_graph
from jitney.ir.build import Builder
from jitney.ir.graph import Graph
from jitney.ir.interpreter import evaluate
from jitney.ir.opdef import GraphError
from jitney.ir.ops.products.convolution import Window, tap_positions
from jitney.ir.passes import optimise
from jitney.ir.types import DTYPE_NAMES, TensorType
from jitney.runtime.executable import Executable
from jitney.runtime.native.host import current_target
from jitney.runtime.threads.pool import get_threads, set_threads

rng = np.random.default_rng(0)
SETTINGS = settings(max_examples=20, deadline=None)


@pytest.fixture(scope="module", autouse=True)
def small_blocks() -> Any:
    """Everything is large enough for tiles, and too large for one block, run or chunk."""
    with limited(TINY):
        yield


@st.composite
def graphs(draw: Any) -> Graph:
    rank = draw(st.integers(0, 3))
    dtype = DTYPE_NAMES[draw(st.sampled_from(["f32", "f32", "f64", "i32", "u8"]))]
    groups, images = draw(st.sampled_from([(1, 1), (1, 3), (2, 2)]))
    channels = draw(st.integers(1, 12))
    features = draw(st.sampled_from([2, 5, 16, 17, 33, 70]))
    most = 14 if rank < 3 else 6
    sizes = [draw(st.integers(1, most)) for _ in range(rank)]
    taps = [draw(st.integers(1, 4)) for _ in range(rank)]
    graph = Graph("f")
    x = graph.add_param(TensorType((groups, images, *sizes, channels), dtype))
    w = graph.add_param(TensorType((groups, *taps, channels, features), dtype))
    one_to_three = st.sampled_from([1, 1, 2, 3])
    attrs = {
        "strides": tuple(draw(one_to_three) for _ in range(rank)),
        "low": tuple(draw(st.integers(-1, 4)) for _ in range(rank)),
        "high": tuple(draw(st.integers(-1, 4)) for _ in range(rank)),
        "lhs_dilation": tuple(draw(one_to_three) for _ in range(rank)),
        "rhs_dilation": tuple(draw(one_to_three) for _ in range(rank)),
    }
    graph.outputs = [Builder(graph).op("conv", x, w, **attrs)]
    return graph


def sample(graph: Graph) -> list[np.ndarray]:
    def one(type: Any) -> np.ndarray:
        if type.dtype.kind == "f":
            return rng.standard_normal(type.shape).astype(type.dtype)
        return rng.integers(0, 20, type.shape).astype(type.dtype)

    return [one(v.tensor) for v in graph.params]


def check(graph: Graph, target: Any = None) -> None:
    arrays = sample(graph)
    with np.errstate(all="ignore"):
        wanted = evaluate(graph, arrays)
    got = Executable(compile_graph(optimise(graph), target or current_target())).run(arrays)
    for g, w in zip(got, wanted, strict=True):
        assert g.dtype == w.dtype and g.shape == w.shape
        if w.dtype.kind == "f":
            slack = (1e-3 if w.dtype == np.float32 else 1e-10) * (1 + np.abs(w).max(initial=0))
            np.testing.assert_allclose(g, w, rtol=0, atol=slack)
        else:
            np.testing.assert_array_equal(g, w)


@SETTINGS
@given(graphs())
def test_forward(graph: Graph) -> None:
    check(graph)


@SETTINGS
@given(graphs())
def test_gradients(graph: Graph) -> None:
    if graph.params[0].dtype.kind == "f":
        check(vjp_graph(graph, [0, 1]))


@pytest.mark.skipif(not has_avx2(), reason="needs AVX2")
@settings(max_examples=15, deadline=None)
@given(graphs())
def test_avx2(graph: Graph) -> None:
    check(graph, avx2_target())


@settings(max_examples=15, deadline=None)
@given(graphs())
def test_operands_in_other_memory(graph: Graph) -> None:
    """Transposed and reversed operands, a result that goes on."""
    shape = graph.params[0].shape
    new = Graph("g")
    x = new.add_param(TensorType(shape[::-1], graph.params[0].dtype))
    w = new.add_param(graph.params[1].tensor)
    b = Builder(new)
    turned = b.transpose(x, perm=tuple(reversed(range(len(shape)))))
    flipped = b.flip(w, axes=tuple(range(len(shape))))
    (op,) = graph.ops
    y = b.op("conv", turned, flipped, **op.attrs)
    moved = b.transpose(y, perm=tuple(reversed(range(len(shape)))))
    new.outputs = [moved, b.neg(y)]
    check(new)


@settings(max_examples=10, deadline=None)
@given(graphs())
def test_results_do_not_depend_on_threads(graph: Graph) -> None:
    if graph.params[0].dtype.kind != "f" or 0 in graph.outputs[0].shape:
        return
    graph = optimise(vjp_graph(graph, [0, 1]))
    arrays = sample(graph)
    run = Executable(compile_graph(graph, current_target())).run
    before = get_threads()
    try:
        set_threads(1)
        alone = run(arrays)
        set_threads(2)
        for _ in range(3):
            for a, b in zip(alone, run(arrays), strict=True):
                np.testing.assert_array_equal(a, b)
    finally:
        set_threads(before)


windows = st.builds(
    Window,
    st.integers(1, 9),
    st.integers(1, 5),
    st.integers(1, 4),
    st.integers(-2, 6),
    st.integers(-2, 6),
    st.integers(1, 4),
    st.integers(1, 4),
)


@settings(max_examples=12, deadline=None)
@given(windows)
def test_phases_and_reaches_are_the_meetings(d: Window) -> None:
    """Both ways of walking a dim meet each tap with the same elements at the same positions."""
    wanted = {
        (p, k, at // d.lhs_dilation)
        for p in range(d.positions)
        for k in range(d.taps)
        if (at := p * d.stride + k * d.rhs_dilation - d.low) % d.lhs_dilation == 0
    }
    by_tap = set()
    for k in range(d.taps):
        t = tap_positions(d, k)
        if t is not None:
            positions = range(t.first, d.positions, t.step)
            by_tap |= {(p, k, t.source + i * t.source_step) for i, p in enumerate(positions)}
    assert by_tap == wanted
    if not d.positions:
        return
    a, gaps = axis(d)
    met = {
        (
            f.first + i * a.step,
            f.tap + j * a.tap_step,
            f.source + i * a.source_step + j * a.source_tap,
        )
        for f in a.phases
        for i in range(f.positions)
        for j in range(f.taps)
    }
    assert met == wanted
    assert gaps == (len({p for p, _, _ in wanted}) < d.positions)
    if a.phases:
        assert a.inside == all(0 <= e < d.size for _, _, e in wanted)
        block = [e for p, _, e in wanted if p // a.step < 2]
        assert min(block) >= a.base and max(block) < a.base + a.extent(min(2, a.positions))
    r = reach(d)
    inside = {
        (p, m.tap + i * r.tap_step, m.source + i * r.source_step)
        for p, m in enumerate(r.positions)
        for i in range(m.count)
    }
    assert inside == {m for m in wanted if 0 <= m[2] < d.size}


def test_refused() -> None:
    graph = Graph("f")
    f64 = DTYPE_NAMES["f64"]
    x, w = (graph.add_param(TensorType(s, f64)) for s in ((1, 1, 4, 2), (1, 3, 3, 2)))
    attrs = dict.fromkeys(("strides", "low", "high", "lhs_dilation", "rhs_dilation"), (1,))
    with pytest.raises(GraphError, match=r"f64\[1,1,4,2\]"):
        Builder(graph).op("conv", x, w, **attrs)
