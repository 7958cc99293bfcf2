"""Updates in loops cost what they write: no trip copies the array that it updates."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitney as jt
from jitney.codegen.loop_ir.kernel import Kernel
from jitney.codegen.loop_ir.steps import Branch, Copy, Loop, Program, Scan
from jitney.codegen.lowering.context import Context
from jitney.codegen.program.compile import lowered
from jitney.codegen.target import Target
from jitney.ir.passes import optimise, storable

TARGET = Target("x86_64-unknown-linux-gnu", "x86-64", "+avx2", 256)
PROGRAMS: dict[str, tuple[int, Callable[..., Any]]] = {}  # by how a trip's work grows with the size


def program(growth: int) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        PROGRAMS[function.__name__] = growth, function
        return function

    return register


@program(1)
def row_part(a: Any, w: Any) -> Any:
    for j in range(a.shape[0]):
        a[j, 1:-1] = a[j, 1:-1] * 2 + w[:-2]
    return a


@program(1)
def row_part_added_to(a: Any, w: Any) -> Any:
    for j in range(a.shape[0]):
        a[j, 1:-1] += w[2:]
        a[-1, : j % 2 + 3] *= 2
    return a


@program(1)
def column_part(a: Any, w: Any) -> Any:
    for j in range(1, a.shape[1]):
        a[2:, j] += a[:-2, j - 1] * w[j]
    return a


@program(1)
def parts_with_steps(a: Any, w: Any) -> Any:
    for j in range(a.shape[0]):
        a[j, ::-2] = w[::2]
        a[1::3, j] -= 1
        a[j, 4:2:-1] = 7
    return a


@program(1)
def three_axes(a: Any, w: Any) -> Any:
    b = np.zeros((a.shape[0], 3, a.shape[1]))
    for j in range(a.shape[0]):
        b[j, 1:, 2:] = a[j, 2:]
        b[j, ..., 0] += 1
        b[:, j % 3, 1] -= w
        b[j, None, 0, 3:5] = w[3:5]
    return b


@program(0)
def an_int_and_a_counter(a: Any, w: Any) -> Any:
    for j in range(a.shape[0]):
        a[2, j] = a[j, 1] + w[j]
        a[j, -1] += 1
    return a


@program(0)
def nested(a: Any, w: Any) -> Any:
    out = a * 0
    for i in range(1, a.shape[0] - 1):
        for j in range(1, a.shape[1] - 1):
            out[i, j] = a[i - 1, j] + a[i, j + 1] * w[j]
    return out


@program(0)
def nested_in_place_with_branches(a: Any, w: Any) -> Any:
    for i in range(1, a.shape[0]):
        k = i
        while k > 0 and a[k, 0] < w[i]:
            if a[k, 1] > 0.5:
                a[k, 0] = a[k - 1, 1] + 1
            else:
                a[k - 1, 1] += a[k, 0]
            k -= 2
        if w[i] > 0.5:
            a[i, 2] = 3
    return a


@program(1)
def nested_rows_with_branches(a: Any, w: Any) -> Any:
    for i in range(1, a.shape[0]):
        if w[i] > 0.3:
            a[i] -= a[i - 1] * w[i]
        for k in range(3):
            if w[k] > 0.6:
                a[i, 1:] += k
            else:
                a[i, :-1] *= w[k]
    return a


@program(1)
def a_row_dot_and_an_update(a: Any, w: Any) -> Any:
    total = 0.0
    for i in range(a.shape[0]):
        a[i] = a[i] * (a[i] @ w)
        total += a[i, 0]
    return a, total


@program(1)
def reads_of_the_old_value_after_the_update(a: Any, w: Any) -> Any:
    total = a[0, 0] * 0
    for i in range(a.shape[0]):
        old = a[i] @ w
        a[i] += w
        total += a[i] @ w + old
    return a, total


@program(1)
def rows_as_views(a: Any, w: Any) -> Any:
    for i in range(a.shape[0]):
        row = a[i]
        row[1:] += w[1:]
        row[0] = 5
    return a


@program(0)
def elements_of_views(a: Any, w: Any) -> Any:
    turned, flat, inside = a.T[::-1], a.reshape(-1), a[1:-1, ::2]
    for i in range(3, inside.shape[0]):
        turned[i, 2] = turned[2, i] + w[i]
        flat[3 * i] -= flat[i]
        inside[i, 0] *= 2
    return a


@program(0)
def two_arrays(a: Any, w: Any) -> Any:
    count = np.zeros(a.shape[1])
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            if a[i, j] > w[j]:
                count[j] += 1
                a[i, j] = -a[i, j]
    return a, count


def trips(program: Program, inside: bool = False) -> list[int]:
    """Bytes that one trip of each loop writes, inner loops apart: but for what it takes to begin one."""
    found, here = [], 0
    for step in program.steps:
        match step:
            case Kernel():
                for stage in step.stages:
                    points = stage.extents if stage.action in ("store", "update") else ()
                    here += math.prod(points) * stage.array.dtype.itemsize
            case Copy():
                here += step.source.nbytes
            case Loop() | Scan():
                here += sum(c.result.nbytes for c in step.carries if c.init is not c.result)
                found += trips(step.body, True)
            case Branch():
                for branch in step.branches:
                    *inner, own = trips(branch, True)
                    found, here = found + inner, here + own
    return [*found, here] if inside else found


def bytes_per_trip(function: Callable[..., Any], n: int) -> int:
    graph = jt.jit(function, autograph=True).trace(*arguments(n))
    graph = optimise(storable(graph))
    low = lowered(graph, lambda: Context(TARGET), None, None, ())
    return max(trips(low.program), default=0)


def arguments(n: int) -> tuple[np.ndarray, np.ndarray]:
    draw = np.random.default_rng(n)
    return draw.random((n, n)), draw.random(n)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_trip_writes_what_the_program_writes(name: str) -> None:
    growth, function = PROGRAMS[name]
    less, more = (bytes_per_trip(function, n) for n in (100, 200))
    assert more <= 1.05 * less * 2**growth + 64


@pytest.mark.parametrize("name", PROGRAMS)
def test_values_are_those_of_numpy(name: str) -> None:
    _, function = PROGRAMS[name]
    theirs, ours = arguments(70), arguments(70)
    want = function(*theirs)
    got = jt.jit(function, autograph=True)(*ours)
    for x, y in zip([*theirs, *_tuple(want)], [*ours, *_tuple(got)], strict=True):
        np.testing.assert_allclose(y, x, rtol=1e-9)


@pytest.mark.parametrize(
    "name", ["row_part", "column_part", "three_axes", "nested", "rows_as_views"]
)
def test_derivatives(name: str) -> None:
    """The gradient's product with a direction is the slope in that direction."""
    _, function = PROGRAMS[name]

    def loss(a: Any, w: Any) -> Any:
        return (function(a * 1.0, w) ** 2).sum()

    a, w = arguments(10)
    da, dw = (np.random.default_rng(1).standard_normal(x.shape) for x in (a, w))
    ga, gw = jt.jit(jt.grad(loss, argnums=(0, 1)), autograph=True)(a, w)
    h = 1e-6
    slope = (loss(a + h * da, w + h * dw) - loss(a - h * da, w - h * dw)) / (2 * h)
    np.testing.assert_allclose((ga * da).sum() + (gw * dw).sum(), slope, rtol=1e-5)


def _tuple(result: Any) -> tuple[Any, ...]:
    return result if isinstance(result, tuple) else (result,)
