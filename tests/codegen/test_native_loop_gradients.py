"""Gradients of loops, compiled, against the interpreter: every kind of loop, checkpoint and order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from loop_programs import PROGRAMS, instance, mixed
from loops import gradient, run

from jitney.codegen.program.compile import compile_graph
from jitney.ir.graph import Graph
from jitney.ir.passes import optimise
from jitney.runtime.executable import Executable
from jitney.runtime.native.host import current_target

rng = np.random.default_rng(11)


def native(graph: Graph) -> Executable:
    return Executable(compile_graph(optimise(graph), current_target(), None))


def cotangents(graph: Graph, start: int) -> list[np.ndarray]:
    return [rng.normal(size=v.shape) for v in graph.params[start:]]


@pytest.mark.parametrize("checkpoint", ["all", "sqrt", 3])
@pytest.mark.parametrize("f", PROGRAMS)
def test_gradient(f: Any, checkpoint: Any) -> None:
    graph, _ = instance(f, 1, checkpoint=checkpoint)
    backward = gradient(graph)
    compiled = native(backward)
    for trips in (0, 1, 2, 7):
        _, arrays = instance(f, trips)
        arrays = [np.asarray(a) for a in [*arrays, *cotangents(backward, len(arrays))]]
        for got, want in zip(compiled.run(arrays), run(backward, *arrays), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("f", PROGRAMS)
def test_gradient_of_gradient(f: Any) -> None:
    graph, arrays = instance(f, 3)
    second = gradient(gradient(graph))
    arrays = [np.asarray(a) for a in [*arrays, *cotangents(second, len(arrays))]]
    for got, want in zip(native(second).run(arrays), run(second, *arrays), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("checkpoint", ["all", "sqrt", 40])
def test_many_trips(checkpoint: Any) -> None:
    """100000 trips, against the closed form of a loop that is linear near its end."""
    graph, _ = instance(mixed, 1, checkpoint=checkpoint)
    compiled = native(gradient(graph))
    c, x, y = np.full(2, 0.5), np.full(2, 0.1), np.zeros(2)
    few, many = (
        compiled.run([np.asarray(n), c, x, y, np.ones(2), np.zeros(2)]) for n in (30, 100_000)
    )
    # x shrinks by half in each trip, and so does its derivative.
    np.testing.assert_allclose(few[1], 0.5**30, rtol=2e-2)
    assert all(np.isfinite(g).all() and (abs(g) < 1e-8).all() for g in many)
