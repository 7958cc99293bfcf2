"""Long loops over ordinary ranges become loop ops where that changes nothing."""

from __future__ import annotations

import collections
import math
from typing import Any

import numpy as np
import pytest

import jitney as jt

pytestmark = pytest.mark.usefixtures("traced_numbers")

N = 300
START = np.array([0.5, 2.0, 1.25, 0.1])


def logistic(x):
    for i in range(N):
        x = 0.9 * np.sin(3 * x) + 1e-3 * np.sin(i)
    return x


def nested(x):
    table = np.zeros((40, 4))
    table[0] = x
    for i in range(1, 40):
        for j in range(4):
            table[i, j] = table[i - 1, j - 1] * 0.9 + np.cos(x[j]) * (i + j)
    return table


def backwards_by_two(x):
    total = np.zeros(4)
    for i in reversed(range(3, N, 2)):
        total = total * 0.5 + x / i
        if i % 3 == 0:
            total[i % 4] += 1
    return total, i


def windows(x):
    y = np.linspace(0, 1, N)
    for k in range(N // 2 - 1):
        y[2 * k + 1 : 2 * k + 3] += np.tanh(y[k : k + 2] * x[:2]) - y[k + 1] ** 2
    return y


def stops(x):
    n = 0
    for k in range(1000):
        if x.sum() > 1e6:
            break
        if k % 7 == 3:
            continue
        x = x * 1.01 + np.sqrt(k)
        n += 2
    else:
        n = -1
    return x, n, k


def counted_by_while(x):
    k = 0
    while k < 500:
        x = np.sin(x) + 0.1 * k
        k += 1
    return x, k


def exact_integers(x):
    total, term, factor = 0.0, 1, 1
    for k in range(1, 90):
        term = term * k
        factor = factor * 3
        total = (
            total + x[0] ** k / term * factor + 2.0 ** -(2**k % 5) + np.sin(x[1] * k) * (3**k % 7)
        )
    return total


def fibonacci(x):
    a, b, n = 0, 1, 0
    for i in range(120):
        a, b = b, a + b
        if i % 2 == 0:
            n = n + b
        x = np.sin(x) + a / b + n / b
    return x


def python_objects(x):
    parts, names = [x, x * 2, x * 3], {f"w{i}": float(i) for i in range(N)}
    queue, items = collections.deque(range(N)), iter(range(N))
    for i in range(N):
        x = x * 0.99 + names[f"w{i}"] + parts[i % 3]
    for _ in range(N):
        x = x * 0.99 + queue.popleft()
    for _ in range(N):
        x = x * 0.99 + next(items)
    return x


def grows(x):
    path = [x]
    for i in range(N):
        x = np.cos(x) + 0.1 * x
        if i % 100 == 0:
            path.append(x)
    return np.array(path)


class Walker:
    def __init__(self, x):
        self.x, self.steps, self.log = x, 0, np.zeros(N)

    def step(self, dt):
        self.x = self.x + dt * np.sin(self.x)
        self.log[self.steps] = self.x[0]
        self.steps += 1


def objects(x):
    walker = Walker(x)
    for _ in range(N):
        walker.step(0.01)
    return walker.x, walker.log, walker.steps


PROGRAMS = [
    *(logistic, nested, backwards_by_two, windows, stops, counted_by_while, exact_integers),
    *(fibonacci, python_objects, grows, objects),
]


@pytest.mark.parametrize("function", PROGRAMS)
def test_same_as_python(function: Any) -> None:
    want = function(START.copy())
    got = jt.jit(function, autograph=True)(START.copy())
    pairs = zip(got, want, strict=True) if isinstance(want, tuple) else [(got, want)]
    for have, expected in pairs:
        np.testing.assert_allclose(have, expected, rtol=1e-11)


@pytest.mark.parametrize(
    "function", [logistic, nested, backwards_by_two, windows, stops, counted_by_while, objects]
)
def test_they_are_loops(function: Any) -> None:
    graph = jt.jit(function, autograph=True).trace(START.copy())
    assert len(str(graph).splitlines()) < 450


def test_a_hundred_thousand_steps() -> None:
    def f(x):
        for _ in range(100_000):
            x = 0.5 * (x + 2 / x)
        return x

    assert math.isclose(jt.jit(f, autograph=True)(1.0), math.sqrt(2))


def test_derivatives() -> None:
    for function in (nested, windows, objects):
        jt.check_grads(jt.jit(function, autograph=True), (START,), order=1, rtol=1e-4, atol=1e-4)


def test_short_loops_are_written_out() -> None:
    def f(x):
        for i in range(5):
            x = x * i + 1
        return x

    assert "scan" not in str(jt.jit(f, autograph=True).trace(START))


# Loops over traced arrays


def smoothed(x):
    mean, out = None, []
    for value in x:
        mean = value if mean is None else 0.9 * mean + 0.1 * value
        out.append(mean)
    return np.array(out)


def largest(x):
    best, where = None, None
    for i, value in enumerate(x):
        if best is None or value > best:
            best, where = value, i
    return best, where


def grouped(x):
    groups: dict[int, list[Any]] = {}
    for i, value in enumerate(x):
        groups.setdefault(i % 2, []).append(value)
    return sum(groups[0]), sum(groups[1]), min(x), max(x)


def rising(x):
    last = None
    for value in x:
        if last is not None and value < last:
            break
        last = value
    return last


@pytest.mark.parametrize("function", [smoothed, largest, grouped, rising])
def test_loops_over_arrays(function: Any) -> None:
    for x in (np.array([0.5, 2.0, 1.25, 7.0]), np.array([2.0, 1.0, 0.5])):
        want, got = function(x), jt.jit(function, autograph=True)(x)
        pairs = zip(got, want, strict=True) if isinstance(want, tuple) else [(got, want)]
        for have, expected in pairs:
            np.testing.assert_allclose(have, expected, rtol=1e-12)


def test_none_before_a_long_loop() -> None:
    x = np.random.default_rng(0).random(1000)
    got = jt.jit(largest, autograph=True)
    assert got(x) == largest(x)
    assert len(str(got.trace(x)).splitlines()) < 100
    np.testing.assert_allclose(jt.jit(smoothed, autograph=True)(x), smoothed(x))


def test_builtins_of_long_arrays() -> None:
    def f(x):
        return sum(x), sum(x > 0.5), min(x), max(x), sum(np.stack([x, x], 1), 1.0)

    x = np.random.default_rng(0).random(1000)
    for a, b in zip(jt.jit(f, autograph=True)(x), f(x), strict=True):
        np.testing.assert_allclose(a, b)
    nan = np.array([1.0, math.nan, 0.5])
    for y in (nan, nan[1:]):
        assert jt.jit(lambda x: min(x), autograph=True)(y) == min(y) or math.isnan(min(y))
