"""Random programs by the whole way to the emulated GPU, against the interpreter.

Each runs three times with the same memory: launched step by step, recorded as a CUDA graph where it
can be one, and replayed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from graphs import random_graphs, smooth_graphs
from hypothesis import given, settings
from programs import expected, same
from test_complex_graphs import close, complex_graphs
from test_scalar_loops import loops, random_loop

import jitney as jt
from jitney.ir.autodiff.transform import vjp_graph
from jitney.ir.graph import Graph
from jitney.ir.types import C128


@pytest.fixture(scope="module", autouse=True)
def on_gpu() -> Iterator[None]:
    with jt.config(cuda="emulate"):
        yield


def results(graph: Graph, arrays: list[np.ndarray]) -> Iterator[list[np.ndarray]]:
    client = jt.device_put(0.0, "cuda").client
    program = client.compile(graph)
    given = [client.put(a) for a in arrays]
    for _ in range(3):
        yield [np.asarray(y) for y in program.run(given)]


def check(graph: Graph, arrays: list[np.ndarray]) -> None:
    try:
        want = expected(graph, arrays)
    except (IndexError, AssertionError) as error:
        with pytest.raises(type(error)):
            next(results(graph, arrays))
        return
    for got in results(graph, arrays):
        same(got, want)


@settings(max_examples=12, deadline=None)
@given(random_graphs(max_ops=25, exact=True))
def test_graphs(case: Any) -> None:
    check(*case)


@settings(max_examples=15, deadline=None)
@given(smooth_graphs())
def test_derivatives(case: Any) -> None:
    graph, arrays = case
    rng = np.random.default_rng(0)
    arrays = [*arrays, *(np.asarray(rng.normal(size=v.shape)) for v in graph.outputs)]
    check(vjp_graph(graph, range(len(graph.params))), arrays)


@settings(max_examples=15, deadline=None)
@given(complex_graphs(dtypes=(C128,)))
def test_complex_graphs(case: Any) -> None:
    graph, arrays = case
    want = expected(graph, arrays)
    for found in results(graph, arrays):
        for got, right in zip(found, want, strict=True):
            close(got, right)


@settings(max_examples=15, deadline=None)
@given(loops())
def test_loops_of_numbers(case: Any) -> None:
    rules, others, trips, start, form = case
    f = random_loop(rules, others, trips, form)
    args = np.int64(trips), tuple(start)
    want, got = jt.jit(f, backend="interpreter")(*args), jt.jit(f, device="cuda")(*args)
    pairs = zip(jt.tree.leaves(got), jt.tree.leaves(want), strict=True)
    same(*zip(*((np.asarray(g), np.asarray(w)) for g, w in pairs), strict=True))
