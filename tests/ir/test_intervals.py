"""What is known of integers without running anything: `ir.integers.intervals`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from programs import build

import jitney as jt
from jitney.ir.build import Builder
from jitney.ir.integers.intervals import fits, interval, of_loop
from jitney.ir.interpreter import evaluate
from jitney.ir.types import I32, I64

U8 = np.dtype(np.uint8)


def three(b: Builder, x: Any) -> Any:
    return b.full_like(x, 3)


PROGRAMS: dict[str, tuple[Any, tuple[int, int]]] = {
    "whole": (lambda b, x: x, (-(2**31), 2**31 - 1)),
    "constant": (three, (3, 3)),
    "masked": (lambda b, x: b.bitwise_and(x, three(b, x)), (0, 3)),
    "remainder": (lambda b, x: b.remainder(x, three(b, x)), (0, 2)),
    "quotient": (
        lambda b, x: b.floor_divide(b.remainder(x, b.full_like(x, 10)), three(b, x)),
        (0, 3),
    ),
    "clipped": (
        lambda b, x: b.minimum(b.maximum(x, b.full_like(x, -7)), three(b, x)),
        (-7, 3),
    ),
    "sum": (
        lambda b, x: b.add(b.iota(shape=x.shape, dtype=I32, axis=0), three(b, x)),
        (3, 12),
    ),
    "difference": (
        lambda b, x: b.sub(three(b, x), b.iota(shape=x.shape, dtype=I32, axis=0)),
        (-6, 3),
    ),
    "choice": (
        lambda b, x: b.select(b.lt(x, three(b, x)), three(b, x), b.full_like(x, 9)),
        (3, 9),
    ),
    "wraps": (lambda b, x: b.mul(x, three(b, x)), (-(2**31), 2**31 - 1)),
    "order": (lambda b, x: b.argsort(x, axis=0, stable=True), (0, 9)),
    "narrow": (lambda b, x: b.convert(b.convert(x, dtype=U8), dtype=I64), (0, 255)),
    "truth": (lambda b, x: b.lt(x, three(b, x)), (0, 1)),
    "wraps around": (
        lambda b, x: b.add(b.convert(x, dtype=U8), b.full(x.shape, 1, U8)),
        (0, 255),
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_bounds_hold(name: str) -> None:
    f, bounds = PROGRAMS[name]
    ends = [-(2**31), 2**31 - 1, 0, -1, 1, 255, 256]
    x = np.array([*ends, 3, -7, 12], np.int32)
    graph = build(f, x)
    assert interval(graph.outputs[0]) == bounds
    (found,) = evaluate(graph, [x])
    assert bounds[0] <= found.min() and found.max() <= bounds[1]


def test_deep_graphs() -> None:
    def deep(b: Builder, x: Any) -> Any:
        for _ in range(3000):
            x = b.minimum(x, b.full_like(x, 5))
        return x

    low, high = interval(build(deep, np.zeros(3, np.int32)).outputs[0])
    assert low <= 0 and high >= 5


def test_what_may_be_out_of_range_is_still_checked() -> None:
    f = jt.jit(lambda x, i: x[i % 11])
    x = np.arange(10.0)
    assert f(x, np.array([12, -2])).tolist() == [1.0, 9.0]
    with pytest.raises(IndexError):
        f(x, np.array([10]))
    g = jt.jit(lambda x, i: x[i % 10])
    assert g(x, np.array([-1, 10, 2**62])).tolist() == [9.0, 0.0, float(2**62 % 10)]
    wrapped = jt.jit(lambda x, i: x[(i + np.uint8(1))])
    assert wrapped(np.arange(256.0), np.array([255], np.uint8)).tolist() == [0.0]


def test_what_loops_carry() -> None:
    def search(x: Any, w: Any) -> Any:
        low, high = 0, 40
        while low < high:
            middle = (low + high) // 2
            if x[middle] < w:
                low = middle + 1
            else:
                high = middle
        return low, high

    graph = jt.jit(search).trace(np.arange(40.0), 7.5)
    (loop,) = [op for op in graph.ops if op.name == "while"]
    known = of_loop(loop, {})
    first = loop.attrs["consts"]
    numbers = [k for k, v in enumerate(loop.operands[first:]) if v.type == loop.results[0].type]
    assert [known.results[loop.results[k]] for k in numbers] == [(0, 40)] * 2
    body = loop.regions[1].params[first:]
    assert sorted(known.body[body[k]] for k in numbers) == [(0, 39), (1, 40)]


def test_what_surely_fits() -> None:
    def ops(b: Builder, x: Any) -> Any:
        small = b.remainder(x, b.full_like(x, 100))
        return b.add(small, small), b.mul(small, x), b.sub(x, three(b, x)), b.neg(small)

    outputs = build(ops, np.zeros(3, np.int32)).outputs
    assert [fits(v, {}) for v in outputs] == [True, False, False, True]


def test_counters_of_loops() -> None:
    def f(x: Any, n: Any) -> Any:
        a = jt.fori_loop(2, 12, lambda i, y: y + i, x)
        b = jt.while_loop(lambda s: s[0] < 50, lambda s: (s[0] + 3, s[1] * 2), (1, x))
        c = jt.while_loop(lambda s: (s[1] > 0) & (n > s[0]), lambda s: (s[0] + 1, s[1]), (0, x))
        return a, b, c

    graph = jt.jit(f).trace(np.int64(1), np.int64(9))
    loops = [op for op in graph.ops if op.regions]
    found = [of_loop(op, {}).body[op.regions[-1].params[op.attrs["consts"]]] for op in loops]
    assert found == [(2, 11), (1, 49), (0, 2**63 - 2)]
    assert interval(loops[0].results[0]) == (2, 12)
