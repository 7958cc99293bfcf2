"""Strided views: what adds up into the operand is the matrix transposed; views of views are one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jitney as jt
from jitney.ir.autodiff.transform import vjp_graph
from jitney.ir.build import Builder
from jitney.ir.graph import Graph
from jitney.ir.interpreter import evaluate
from jitney.ir.ops.movement.strided import reach
from jitney.ir.passes import optimise
from jitney.ir.types import F64, TensorType
from jitney.ir.verify import verify

windows = np.lib.stride_tricks.sliding_window_view


def graph_of(x_shape, build):
    graph = Graph("f")
    x = graph.add_param(TensorType(x_shape, F64))
    graph.outputs = [build(Builder(graph), x)]
    return graph


def matrix(graph, pulled=False):
    """What a linear graph of one parameter does, or pulls back, as a matrix."""
    x = graph.params[-1]
    units = np.eye(x.tensor.size).reshape(-1, *x.shape)
    first = [np.zeros(graph.params[0].shape)] if pulled else []
    return np.stack([evaluate(graph, [*first, u])[-1].reshape(-1) for u in units], axis=1)


@st.composite
def views(draw, shape=None):
    """A shape, and a strided view of it."""
    result = tuple(draw(st.lists(st.integers(1, 3), min_size=1, max_size=3)))
    rank = len(shape) if shape is not None else draw(st.integers(1, 2))
    rows = [tuple(draw(st.integers(-2, 2)) for _ in result) for _ in range(rank)]
    ends = [reach(0, row, result) for row in rows]
    room = draw(st.integers(0, 2))
    start = tuple(room - low for low, _ in ends)
    shape = tuple(room + high - low + 1 + draw(st.integers(0, 1)) for low, high in ends)
    return shape, {"shape": result, "start": start, "steps": tuple(rows)}


@settings(max_examples=60)
@given(views())
def test_the_cotangent_is_the_transposed_matrix(view):
    shape, attrs = view
    graph = graph_of(shape, lambda b, x: b.strided(x, **attrs))
    pulled = vjp_graph(graph, [0])
    verify(pulled)
    np.testing.assert_array_equal(matrix(pulled, True), matrix(graph).T)
    for made in (graph, pulled):
        optimised = optimise(made)
        verify(optimised)
        np.testing.assert_array_equal(
            matrix(optimised, made is pulled), matrix(made, made is pulled)
        )


OTHERS = {
    "transpose": lambda b, x: b.transpose(x, perm=(1, 0)),
    "slice": lambda b, x: b.slice(x, start=(1, 0), stop=(5, 5), step=(2, 1)),
    "flip": lambda b, x: b.flip(x, axes=(1,)),
    "broadcast": lambda b, x: b.broadcast(x, shape=(5, 2, 6), dims=(0, 2)) if x.shape == (5, 6) else x,
    "strided": lambda b, x: b.strided(x, shape=(2, 3, 2), start=(0, 3), steps=((1, 0, 1), (1, -1, 0))),
}  # fmt: skip


@pytest.mark.parametrize("other", OTHERS)
def test_a_view_of_a_view_is_one(other):
    inner = graph_of((5, 6), lambda b, x: windowed(b, OTHERS[other](b, x)))
    outer = graph_of((9,), lambda b, x: OTHERS[other](b, windowed(b, x, 5)))
    for graph in (inner, outer) if other != "broadcast" else (inner,):
        optimised = optimise(graph)
        assert [op.name for op in optimised.ops] == ["strided"]
        np.testing.assert_array_equal(matrix(optimised), matrix(graph))


def windowed(b, x, count=None):
    """Windows along the last axis: of two elements, or so many of the rest."""
    n = x.shape[-1]
    width = 2 if count is None else n - count + 1
    rank = len(x.shape)
    rows = [
        tuple(int(d == axis) for d in range(rank)) + (int(axis == rank - 1),)
        for axis in range(rank)
    ]
    shape = (*x.shape[:-1], n - width + 1, width)
    return b.strided(x, shape=shape, start=(0,) * rank, steps=tuple(rows))


@pytest.mark.parametrize("reduce", [np.sum, np.max, np.mean, np.std, np.median])
def test_sliding_windows_of_any_width(reduce):
    x = np.random.default_rng(0).standard_normal((3, 700))
    for width in (1, 7, 300):

        def f(x, width=width):
            return reduce(windows(x, width, axis=1), axis=2)

        np.testing.assert_allclose(jt.jit(f)(x), f(x), rtol=1e-12)
        np.testing.assert_allclose(jt.jit(f)(x[:, ::-1]), f(x[:, ::-1]), rtol=1e-12)


def test_derivatives_of_windows_twice():
    x = np.random.default_rng(0).standard_normal((9, 8))
    k = np.random.default_rng(1).standard_normal((3, 2))

    def loss(x):
        return (np.sin(windows(x, (3, 2)) * k).sum(axis=(2, 3)) ** 2).sum()

    jt.check_grads(loss, (x,), order=2)


def test_windows_of_a_batch():
    x = np.random.default_rng(0).standard_normal((4, 50))
    got = jt.jit(jt.vmap(lambda row: (windows(row, 5) * np.arange(5)).sum(axis=1)))(x)
    np.testing.assert_allclose(got, (windows(x, 5, axis=1) * np.arange(5)).sum(axis=2), rtol=1e-12)


def test_a_window_makes_no_table_of_indices():
    """Of so many windows a table would be 8 GB."""
    x = np.ones(1_000_000, np.float32)
    graph = jt.jit(lambda x: windows(x, 1000).max(axis=1)).lower(x).graph
    assert all(op.result.tensor.size < 1e6 for op in graph.ops if op.name == "constant")


@pytest.mark.parametrize(
    ("f", "shapes"),
    [
        (lambda x, w: np.convolve(x, w, "same"), ((40,), (7,))),
        (lambda x, w: np.correlate(x, w, "full"), ((40,), (7,))),
        (lambda x, w: windows(x, 7)[::3] @ w, ((40,), (7, 2))),
        (lambda x, w: windows(x, 7, axis=1)[:, ::2] @ w, ((3, 30), (7,))),
        (lambda x, w: np.einsum("ijkl,kl->ij", windows(x, (3, 4)), w), ((9, 10), (3, 4))),
        (lambda x, w: np.einsum("ijkl,kl->ji", windows(x, (3, 4)), w), ((9, 10), (3, 4))),
        (lambda x, w: np.einsum("ijkl,klc->cij", windows(x, (3, 4)), w), ((9, 10), (3, 4, 5))),
        (lambda x, w: np.einsum("ijkl,lk->ij", windows(x, (3, 4)), w), ((9, 10), (4, 3))),
    ],
)
def test_cotangents_of_weighted_windows(f, shapes):
    rng = np.random.default_rng(0)
    x, w = (rng.standard_normal(shape) for shape in shapes)
    jt.check_grads(f, (x, w), order=1, modes=("rev",))


def test_the_cotangent_of_a_convolution_makes_no_table():
    x, w = np.ones(4000), np.ones(50)
    f = jt.jit(jt.grad(lambda x, w: np.sum(np.convolve(x, w, "same") ** 2), argnums=(0, 1)))
    f(x, w)
    assert all(k.bytes_written < 50_000 * 8 for k in f.lower(x, w).kernels)
