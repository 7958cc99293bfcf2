"""Convolutions and windows on GPUs: products of addresses, sums written out, shared rows."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest
from emulated import assembled, compiled
from emulated import run as run_program
from hypothesis import given, settings
from hypothesis import strategies as st
from programs import build, expected, same, sample
from test_cuda_ops import together

from jitney.codegen.cuda.target import CudaTarget
from jitney.codegen.device.compile import compile_device
from jitney.ir.autodiff.transform import vjp_graph
from jitney.ir.graph import Graph
from jitney.ir.ops.products.convolution import windows
from jitney.ir.passes import optimise
from jitney.runtime.cuda.emulator.machine import FORWARDS, ORDERS

TARGETS = [CudaTarget(75, 65), CudaTarget(80, 70), CudaTarget(90, 78)]


def attributes(rank, **changes):
    ones, zeros = (1,) * rank, (0,) * rank
    plain = {"strides": ones, "low": zeros, "high": zeros}
    return plain | {"lhs_dilation": ones, "rhs_dilation": ones} | changes


def conv(**attrs):
    def convolved(b, x, w):
        return b.op("conv", x, w, **attrs)

    return convolved


def check(graph, arrays, order=FORWARDS):
    """The program, whose results are those of the interpreter."""
    graph = graph if isinstance(graph, Graph) else optimise(build(graph, *arrays))
    program = compiled(graph, arrays)
    same(run_program(program, arrays, order), expected(graph, arrays))
    return program


def kernels(program):
    return [step.kernel.rsplit("_", 1)[0] for step in program.steps]


SAME = {"low": (1, 1), "high": (1, 1)}
CASES = {
    "padded": ((1, 2, 9, 7, 8), (1, 3, 3, 8, 24), attributes(2, **SAME)),
    "odd channels": ((1, 1, 12, 11, 3), (1, 3, 3, 3, 40), attributes(2)),
    "strides": ((1, 2, 11, 9, 4), (1, 3, 2, 4, 32), attributes(2, strides=(2, 3), low=(1, 0))),
    "holes": ((1, 1, 12, 10, 8), (1, 3, 3, 8, 16), attributes(2, rhs_dilation=(2, 3), **SAME)),
    "spread": ((1, 2, 5, 6, 8), (1, 3, 3, 8, 16), attributes(2, lhs_dilation=(2, 2), **SAME)),
    "gaps": ((1, 2, 5, 6, 8), (1, 1, 2, 8, 40), attributes(2, lhs_dilation=(3, 2))),
    "groups": ((3, 2, 6, 6, 8), (3, 3, 3, 8, 12), attributes(2, **SAME)),
    "sequence": ((1, 3, 40, 5), (1, 7, 5, 24), attributes(1, low=(6,))),
    "volume": (
        (1, 1, 4, 5, 6, 4),
        (1, 3, 2, 3, 4, 20),
        attributes(3, low=(1, 0, 1), high=(1, 1, 1)),
    ),
    "cropped": ((1, 1, 12, 12, 8), (1, 3, 3, 8, 16), attributes(2, low=(-1, 1), high=(2, -3))),
    "one by one": ((1, 2, 7, 9, 16), (1, 1, 1, 16, 24), attributes(2)),
    "no dims": ((1, 40, 24), (1, 24, 40), attributes(0)),
    "few results": ((1, 8, 34, 30, 4), (1, 32, 29, 4, 16), attributes(2, low=(1, 0))),
    "parts of groups": ((2, 8, 22, 20, 4), (2, 21, 20, 4, 16), attributes(2)),
}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_products_of_pixels(case):
    x, w, attrs = CASES[case]
    dtype = "i4" if case in ("strides", "groups") else "f4"
    arrays = [sample(x, dtype), sample(w, dtype, 1)]
    assert "conv" in kernels(check(conv(**attrs), arrays))


@pytest.mark.parametrize("order", ORDERS, ids=str)
def test_pixels_in_any_order_of_threads(order):
    x, w, attrs = CASES["padded"]
    check(conv(**attrs), [sample(x, "f4"), sample(w, "f4", 1)], order)


@pytest.mark.parametrize("layout", ["channels first", "turned", "reversed", "every other"])
def test_images_that_lie_otherwise(layout):
    x, w, attrs = CASES["padded"]
    images, kernel = sample(x, "f4"), sample(w, "f4", 1)
    match layout:
        case "channels first":
            images = np.moveaxis(np.moveaxis(images, -1, 2).copy(), 2, -1)
            kernel = np.moveaxis(np.moveaxis(kernel, -1, 1).copy(), 1, -1)
        case "turned":
            images, kernel = np.asfortranarray(images), np.asfortranarray(kernel)
        case "reversed":
            images, kernel = images[:, :, ::-1], kernel[:, ::-1, :, ::-1]
        case "every other":
            images = np.repeat(images, 2, -1)[..., ::2]
    check(conv(**attrs), [images, kernel])


def gradients(x, w, attrs, dtype="f4"):
    """The result's and both operands' cotangents as one graph, and its arguments."""
    arrays = [sample(x, dtype), sample(w, dtype, 1)]
    graph = build(conv(**attrs), *arrays)
    return optimise(vjp_graph(graph, [0, 1])), [*arrays, sample(graph.outputs[0].shape, dtype, 2)]


DEPTHWISE = (5, 2, 40, 9, 1), (5, 3, 3, 1, 1), attributes(2, **SAME)


@pytest.mark.parametrize("case", ["padded", "strides", "holes", "groups", "sequence", "depthwise"])
def test_gradients_are_products_of_pixels_too(case):
    check(*gradients(*(DEPTHWISE if case == "depthwise" else CASES[case]), dtype="f8"))


@pytest.mark.parametrize("features", [1, 3])
def test_few_features_are_written_out(features):
    x, w, attrs = DEPTHWISE
    program = check(conv(**attrs), [sample(x, "f4"), sample((*w[:-1], features), "f4", 1)])
    assert len(program.steps) == 1


def test_what_follows_a_sum_that_is_written_out_is_part_of_it():
    def depthwise(b, x, w):
        y = b.op("conv", x, w, **DEPTHWISE[2])
        return b.tanh(b.transpose(y, perm=(1, 2, 3, 0, 4)))

    def used_twice(b, x, w):
        y = b.op("conv", x, w, **DEPTHWISE[2])
        return b.add(y, b.flip(y, axes=(2,))), b.op("sum", y, axes=(0, 1))

    arrays = [sample(DEPTHWISE[0], "f4"), sample(DEPTHWISE[1], "f4", 1)]
    assert len(check(depthwise, arrays).steps) == 1
    check(used_twice, arrays)


def layer(b, x, w, bias):
    """What is done before the convolution, and after it, needs no kernel of its own."""
    h = b.maximum(b.mul(x, b.broadcast(bias, shape=x.shape, dims=(4,))), b.full_like(x, 0))
    y = b.op("conv", h, w, **attributes(2, **SAME))
    return b.tanh(b.add(y, b.broadcast(bias, shape=y.shape, dims=(4,))))


@pytest.mark.parametrize("order", ORDERS, ids=str)
@pytest.mark.parametrize("channels", [8, 9])
def test_elementwise_neighbours_are_part_of_the_convolution(channels, order):
    shapes = (1, 2, 9, 7, channels), (1, 3, 3, channels, channels), (channels,)
    program = check(layer, [sample(s, "f4", k) for k, s in enumerate(shapes)], order)
    assert len(program.steps) == 1


def test_what_is_dear_is_computed_once():
    def dear(b, x, w):
        return b.op("conv", b.tanh(x), w, **attributes(2, **SAME))

    x, w, _ = CASES["padded"]
    assert len(check(dear, [sample(x, "f4"), sample(w, "f4", 1)]).steps) == 2


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16], ids=lambda t: t.__name__)
@pytest.mark.parametrize("case", ["padded", "odd channels", "groups", "few results", "spread"])
def test_small_floats_are_summed_by_tensor_cores_and_rounded_once(case, dtype):
    x, w, attrs = CASES[case]
    arrays = [sample(x, "f4").astype(dtype), sample(w, "f4", 1).astype(dtype)]
    graph = optimise(build(conv(**attrs), *arrays))
    program = compiled(graph, arrays)
    notes = [r.note for r in program.reports if "conv" in r.ops]
    assert notes and all("on tensor cores" in note for note in notes)
    (found,), (want,) = run_program(program, arrays), expected(graph, arrays)
    ulp = float(ml_dtypes.finfo(dtype).eps)
    np.testing.assert_allclose(found.astype("f4"), want.astype("f4"), 2 * ulp, 1e-4)


@pytest.mark.parametrize("order", ORDERS, ids=str)
def test_small_floats_are_computed_on_the_way_too(order):
    def layer(b, x, w):
        h = b.maximum(b.flip(x, axes=(2,)), b.full_like(x, 0))
        return b.op("conv", h, w, **ones)

    x, w, ones = CASES["one by one"]
    arrays = [sample(x, "f4").astype(np.float16), sample(w, "f4", 1).astype(np.float16)]
    graph = optimise(build(layer, *arrays))
    program = compiled(graph, arrays)
    assert len(program.steps) == 1 and "on tensor cores" in program.reports[0].note
    (found,), (want,) = run_program(program, arrays, order), expected(graph, arrays)
    np.testing.assert_allclose(found.astype("f4"), want.astype("f4"), 2e-3, 1e-4)


@st.composite
def convolutions(draw):
    """Any convolution that is large enough to be a product."""
    rank = draw(st.integers(1, 3))
    small = st.integers(1, 3)

    def each(strategy):
        return tuple(draw(strategy) for _ in range(rank))

    groups, images = draw(st.integers(1, 2)), draw(st.integers(1, 3))
    channels, features = draw(st.sampled_from([1, 3, 4, 8])), draw(st.sampled_from([8, 13, 20]))
    attrs = {
        "strides": each(small),
        "low": each(st.integers(-1, 3)),
        "high": each(st.integers(-1, 3)),
    }
    attrs |= {"lhs_dilation": each(small), "rhs_dilation": each(small)}
    least = {1: 60, 2: 8, 3: 4}[rank]
    x = (groups, images, *each(st.integers(least, least + 4)), channels)
    w = (groups, *each(small), channels, features)
    positions = math.prod(d.positions for d in windows(x, w, attrs))
    if groups * images * positions * features * math.prod(w[1:-1]) <= 1 << 14:
        w = (*w[:-1], features + -(-(1 << 14) // max(positions, 1)))
    return x, w, attrs


@settings(max_examples=12, deadline=None)
@given(convolutions(), st.sampled_from(ORDERS))
def test_any_convolution(case, order):
    x, w, attrs = case
    check(conv(**attrs), [sample(x, "f4"), sample(w, "f4", 1)], order)


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: t.name)
def test_convolutions_are_assembled_without_spills(target):
    graphs = []
    for case in ("padded", "odd channels"):
        x, w, attrs = CASES[case]
        graphs.append(gradients((*x[:2], *(4 * n for n in x[2:-1]), x[-1]), w, attrs)[0])
    assembled(compile_device(together(graphs), target).ir, target.name)
