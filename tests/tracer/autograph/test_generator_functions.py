"""Generator functions with conditions on traced values: the loop over one is a loop around its own."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import jitney as jt


def positive(x: Any) -> Iterator[Any]:
    for v in x:
        if v > 0:
            yield v


def halved(x: Any) -> Iterator[Any]:
    while x > 1:
        yield x
        x = x / 2
        if x < 3:
            return
    yield -1.0


def pairs(x: Any) -> Iterator[Any]:
    before = None
    for v in x:
        if before is not None and v != before:
            yield before, v
        before = v


def nested(x: Any) -> Iterator[Any]:
    for v in positive(x):
        for k in range(3):
            if k * v < 5:
                yield k, v


def chained(x: Any) -> Iterator[Any]:
    yield x[0]
    yield from positive(x)
    yield from (v for v in x if v < 0)
    yield x[-1]


def fibonacci() -> Iterator[int]:
    a, b = 0, 1
    while True:
        yield a
        a, b = b, a + b


class Walker:
    def __init__(self, x: Any) -> None:
        self.x, self.n = x, 0

    def steps(self, limit: Any, factor: float = 1.5) -> Iterator[Any]:
        place = self.x
        while place < limit:
            self.n += 1
            yield place
            place = place * factor + 1


def with_breaks(x: Any) -> Any:
    total, n, last = x[0] * 0, 0, None
    for v in halved(x[0]):
        total += v
        n += 1
        last = v
        if total > 50:
            break
    else:
        n += 100
    return total, n, last


def returned_from(x: Any) -> Any:
    out = []
    for i, v in enumerate(positive(x)):
        if i > 2:
            return out, i
        out.append(v * i)
    return out, -1


def of_pairs(x: Any) -> Any:
    rises = []
    for a, b in pairs(x):
        rises.append(b - a)
    s = x[0] * 0
    for k, v in nested(x):
        if k == 2:
            continue
        s += k * v
    return rises, s, [v for _, v in nested(x)], dict(nested(x)), max(k for k, _ in nested(x))


def all_at_once(x: Any) -> Any:
    whole = list(chained(x)), sum(chained(x)), sorted(chained(x)), tuple(positive(x))
    return whole, max(positive(x), default=-1.0), any(v > 3 for v in positive(x)), next(positive(x))


def of_a_method(x: Any) -> Any:
    walker, total = Walker(abs(x[0])), x[0] * 0
    for place in walker.steps(60.0, factor=2.0):
        total += place
    return total, walker.n


def in_each_other(x: Any) -> Any:
    n, v = 0, 5.0
    for a in positive(x):
        for b in positive(x):
            if a < b:
                n += 1
    table = np.zeros(4)
    for v in positive(x):
        table[int(v) % 4] += v
        x[0] = 100.0
    return n, v, table, x


def without_end(x: Any) -> Any:
    total = 0
    for f in fibonacci():
        if f > x[1]:
            break
        if f % 2 == 0:
            total += f
    return total, list(itertools.takewhile(lambda f: f < x[1], fibonacci()))


@pytest.mark.parametrize(
    "function",
    [with_breaks, returned_from, of_pairs, all_at_once, of_a_method, in_each_other, without_end],
)
def test_loops_over_them(function: Callable[..., Any]) -> None:
    compiled = jt.jit(function)
    for values in ([9.0, -2, 3, 4, 4, 1], [2.0, 60, -3, 4, -1, 4], [1.0, 8, 8, 8, 8, 2]):
        x, y = np.array(values), np.array(values)
        assert repr(compiled(x)) == repr(function(y))
        np.testing.assert_array_equal(x, y)


def test_gradients_go_through() -> None:
    def f(x: Any) -> Any:
        s = 0.0
        for v in positive(x):
            s = s * 0.5 + v**2
        return s

    x = np.array([1.0, -2, 3])
    np.testing.assert_allclose(jt.jit(jt.grad(f))(x), [1.0, 0, 6])


def test_what_is_refused_and_what_is_pythons() -> None:
    def closing(x: Any) -> Iterator[Any]:
        try:
            for v in x:
                if v > 0:
                    yield v
        finally:
            x[0] = 0

    def answered(x: Any) -> Iterator[Any]:
        for v in x:
            if (yield v) or v > 3:
                return

    for function in (closing, answered):
        with pytest.raises(jt.errors.TransformError, match="in a generator"):
            jt.jit(lambda x, function=function: sum(function(x)))(np.ones(3))

    def taken(x: Any) -> Any:
        items = fibonacci()
        first, second, third = next(items), next(items), next(items)
        return x * [next(items) for _ in range(4)], first + second + third

    assert repr(jt.jit(taken)(np.ones(4))) == repr(taken(np.ones(4)))
    with pytest.raises(TypeError, match="positive"):
        jt.jit(lambda x: sum(positive(x, x)))(np.ones(3))
