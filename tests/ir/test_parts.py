"""Assignments to windows of views: what passes make of them is right, and touches the window only."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jitney as jt
from jitney.ir.interpreter import evaluate
from jitney.ir.passes import optimise

VIEWS = ("transpose", "flip", "slice", "flat", "window", "row", "new axis")


@st.composite
def programs(draw: Any) -> tuple[tuple[int, ...], list[Any], tuple[Any, ...], int]:
    """A shape, views of views, an index with Nones for traced ints, and where these ints point."""
    shape = tuple(draw(st.lists(st.integers(1, 4), min_size=1, max_size=3)))
    a = np.zeros(shape)
    steps: list[Any] = []
    place = draw(st.integers(-1, 1))
    for kind in draw(st.lists(st.sampled_from(VIEWS), max_size=3)):
        if a.ndim == 0:
            break
        axis = draw(st.integers(0, a.ndim - 1))
        step = (kind, axis, draw(st.integers(0, 1)))
        try:
            after = viewed(a, step, place)
        except IndexError:
            break
        if not after.size:
            break
        a = after
        steps.append(step)
    index = tuple(
        draw(
            st.sampled_from(
                [None, None, 0, -1, slice(None), slice(-2, None), slice(None, None, -2)]
            )
        )
        for _ in range(draw(st.integers(0, a.ndim)))
    )
    return shape, steps, index, place


def viewed(a: Any, step: tuple[str, int, int], i: Any) -> Any:
    kind, axis, start = step
    before = (slice(None),) * axis
    if kind == "transpose":
        return a.T
    if kind == "flat":
        return a.reshape(-1)
    if kind == "new axis":
        return a[(*before, None)]
    if kind == "row":
        return a[(*before, i, ...)]
    if kind == "window":
        return a[(*before, i, slice(start, None))] if axis + 1 < a.ndim else a
    return a[(*before, slice(None, None, -1) if kind == "flip" else slice(start, None, start + 1))]


@settings(max_examples=60, deadline=None)
@given(programs())
def test_random_windows_of_views(drawn: Any) -> None:
    shape, steps, index, place = drawn

    def program(x: Any, i: Any) -> Any:
        v = x
        for step in steps:
            v = viewed(v, step, i)
        at = tuple(i if k is None else k for k in index)
        v[at] = v[at] * 2 + 100
        v[at] += 1
        return x * 1

    x = np.arange(np.prod(shape), dtype=float).reshape(shape)
    want = x.copy()
    try:
        program(want, place)
    except IndexError:
        with pytest.raises(IndexError):
            evaluate(optimise(jt.jit(program).trace(x, place)), [x, np.int64(place)])
        return
    graph = jt.jit(program).trace(x, place)
    for result in (graph, optimise(graph, verify=True)):
        np.testing.assert_array_equal(evaluate(result, [x, np.int64(place)])[-1], want)


@pytest.mark.parametrize(
    "view",
    [
        lambda a: a.T,
        lambda a: a[::-1],
        lambda a: a[1:, ::2],
        lambda a: a[2:-1, 1:].T[::-1],
        lambda a: a.reshape(-1)[3:].reshape(3, -1),
        lambda a: a[:, None, 1:].transpose(2, 1, 0)[:, 0],
    ],
)
def test_an_element_of_a_view_is_one_update(view: Any) -> None:
    def program(x: Any, i: Any) -> Any:
        v = view(x)
        v[i, 0] = v[0, i] + 1
        return x

    x = np.random.default_rng(0).random((7, 9))
    graph = optimise(jt.jit(program).trace(x, 1))
    updates = [op for op in graph.ops if "update" in op.name or op.name == "scatter"]
    assert [op.operands[1].tensor.size for op in updates] == [1]
    want = x.copy()
    program(want, 1)
    np.testing.assert_array_equal(evaluate(graph, [x, np.int64(1)])[-1], want)


@pytest.mark.parametrize("index", [np.s_[1:-1], np.s_[::-1], np.s_[..., 2:], np.s_[:]])
def test_an_augmented_assignment_stores_once(index: Any) -> None:
    def program(x: Any, i: Any) -> Any:
        x[(i, *index)] += 1
        return x

    index = index if isinstance(index, tuple) else (index,)
    x = np.zeros((5, 6))
    graph = optimise(jt.jit(program).trace(x, 1))
    assert sum("update" in op.name or op.name == "scatter" for op in graph.ops) == 1
