"""Batching of graphs: a batched graph computes what the graph computes for each example."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest
from graphs import arrays_of, random_graphs
from hypothesis import given, settings
from hypothesis import strategies as st

from jitney.ir.batching import batch_graph
from jitney.ir.build import Builder
from jitney.ir.graph import Graph
from jitney.ir.interpreter import evaluate
from jitney.ir.opdef import OPS
from jitney.ir.ops.sampling import cases
from jitney.ir.types import F64, TensorType
from jitney.ir.verify import verify

SOURCES = {"constant", "iota", "create_token"}  # no operands, so nothing to batch


def compare(
    graph: Graph,
    batched: Sequence[bool],
    size: int,
    arrays: Sequence[np.ndarray],
    exact: bool = False,
) -> Graph:
    """Assert that `graph`, batched, gives for each row what `graph` gives for that example."""
    new, flags = batch_graph(graph, batched, size)
    verify(new)
    results = evaluate(new, arrays)
    for i in range(size):
        own = [a[i] if flag else a for a, flag in zip(arrays, batched, strict=True)]
        wanted = evaluate(graph, own)
        for got, flag, want, v in zip(results, flags, wanted, graph.outputs, strict=True):
            if not isinstance(v.type, TensorType):
                continue
            row = got[i] if flag else got
            assert row.dtype == want.dtype and row.shape == want.shape
            if exact or want.dtype.kind != "f":
                np.testing.assert_array_equal(row, want)
            else:
                tolerance = 1e-5 if want.dtype == np.float32 else 1e-11
                np.testing.assert_allclose(row, want, rtol=tolerance, atol=tolerance)
    return new


def stacked(rng: np.random.Generator, case: Any, batched: Sequence[bool], size: int) -> list[Any]:
    rows = [case.sample(rng) for _ in range(max(size, 1))]
    return [
        np.stack([row[i] for row in rows])[:size] if flag else rows[0][i]
        for i, flag in enumerate(batched)
    ]


@pytest.mark.parametrize("name", sorted(OPS))
def test_every_op_has_a_rule(name: str) -> None:
    assert (OPS[name].batch is not None) == (name not in SOURCES)


@pytest.mark.parametrize("name", [n for n in sorted(OPS) if OPS[n].extra["examples"]])
def test_each_combination_of_batched_operands(name: str) -> None:
    rng = np.random.default_rng(len(name))
    for case in cases(OPS[name]):
        graph = case.graph()
        count = len(graph.params)
        for batched in product([False, True], repeat=count):
            for size in (3, 1, 0) if case.dtype == F64 else (2,):
                compare(graph, batched, size, stacked(rng, case, batched, size))


def test_what_is_not_batched_stays_as_it_is() -> None:
    graph = Graph("f")
    x, w = (graph.add_param(TensorType((3,), F64)) for _ in range(2))
    b = Builder(graph)
    graph.outputs = [b.add(x, b.exp(w)), b.sum(w, axes=(0,))]
    new, flags = batch_graph(graph, [True, False], 5)
    assert flags == [True, False]
    assert [(op.name, op.result.shape) for op in new.ops] == [
        ("exp", (3,)),
        ("broadcast", (5, 3)),
        ("add", (5, 3)),
        ("sum", ()),
    ]


def test_a_matrix_times_many_vectors_needs_no_transpose() -> None:
    graph = Graph("f")
    w, x = graph.add_param(TensorType((4, 3), F64)), graph.add_param(TensorType((3,), F64))
    graph.outputs = [Builder(graph).dot(w, x, contract=((1,), (0,)), batch=((), ()))]
    new, _ = batch_graph(graph, [False, True], 5)
    assert [op.name for op in new.ops] == ["dot"]


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_random_graphs(data: st.DataObject) -> None:
    graph, arrays = data.draw(random_graphs(max_ops=20, exact=True, effects=False))
    batched = [data.draw(st.booleans()) for _ in graph.params]
    size = data.draw(st.sampled_from([1, 2, 3]))
    given = [
        np.stack([array, *(data.draw(arrays_of(v.tensor)) for _ in range(size - 1))])
        if flag
        else array
        for v, array, flag in zip(graph.params, arrays, batched, strict=True)
    ]
    compare(graph, batched, size, given, exact=True)
