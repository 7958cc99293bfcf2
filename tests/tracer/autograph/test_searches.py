"""`any`, `all`, `next` of generator expressions, and long comprehensions: loops, not written out."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitney as jt

X = np.random.RandomState(0).rand(60)
M = X.reshape(15, 4)


def _ops(graph: Any) -> int:
    return sum(1 + sum(map(_ops, op.regions)) for op in graph.ops)


def _same(got: Any, want: Any) -> None:
    assert type(got) is type(want)
    if isinstance(want, (tuple, list)):
        assert len(got) == len(want)
        for a, b in zip(got, want, strict=True):
            _same(a, b)
    elif isinstance(want, np.ndarray):
        assert got.dtype == want.dtype
        np.testing.assert_allclose(got, want, rtol=1e-12)
    else:
        assert got == want or abs(got - want) < 1e-12 * abs(want)


def compare(function: Callable[..., Any], *args: Any) -> Any:
    compiled = jt.jit(function)
    want = function(*args)
    for _ in range(2):
        _same(compiled(*args), want)
    return compiled


SEARCHES: dict[str, Callable[..., Any]] = {
    "any": lambda x, t: (any(v > t for v in x), any(v > 2 * t for v in x)),
    "all": lambda x, t: (all(v < t for v in x), all(v < 2 * t for v in x)),
    "next": lambda x, t: next(i for i in range(len(x)) if x[i] > t),
    "the default": lambda x, t: (next((v for v in x if v > 9 * t), None), next((v for v in x), 1)),
    "two loops": lambda x, t: any(a * b > t for a in x[:20] for b in x[20:] if a != b),
    "of all": lambda x, t: [sum(1 for v in x if all(abs(v - w) < t for w in x[:9]))],
    "in a comprehension": lambda x, t: [
        next((i for i in range(60) if x[i] > s), -1) for s in (0.5, t)
    ],
    "one name": lambda x, t: any(x > t for x in x),
    "in a lambda": lambda x, t: (lambda s: all(v < s for v in x))(t),
    "plain data": lambda x, t: x[0] if any(n % 13 == 12 for n in range(1000)) else t,
    "a tuple": lambda x, t: any(a < x[0] < b for a, b in ((0.1, 0.2), (0.2, t))),
}


@pytest.mark.parametrize("name", SEARCHES)
def test_searches_end_where_python_does(name: str) -> None:
    compare(SEARCHES[name], X, 0.9)


def test_what_comes_after_the_end_is_not_asked() -> None:
    def f(x: Any, n: int) -> Any:
        return any(1 / (n - i) > 0.2 for i in range(60)), next(
            i for i in range(60) if x[n + i] > 0.5
        )

    g = compare(f, X, 30)
    with pytest.raises(ZeroDivisionError):
        f(X, -1 + 1)
    with pytest.raises(ZeroDivisionError):
        g(X, -1 + 1)
    with pytest.raises(StopIteration):
        jt.jit(lambda x: next(v for v in x if v > 2))(X)


def test_in_conditions_of_loops_with_state() -> None:
    class Count:
        def __init__(self) -> None:
            self.n = 0

        def above(self, x: Any, t: Any) -> Any:
            self.n += 1
            return x > t

    def f(x: Any, t: Any) -> Any:
        c, k = Count(), 0
        while any(c.above(v, t) for v in x):
            t, k = t * 1.5, k + 1
            if all(v < t for v in x if v > 0.5):
                break
        return t, k, c.n

    compare(f, X, 0.1)


def test_another_function_of_that_name() -> None:
    def f(x: Any, any: Any) -> Any:
        return any(v > 0.5 for v in [1.0, 0.1])

    _same(jt.jit(f)(X, list), [True, False])


LISTS: dict[str, Callable[..., Any]] = {
    "numbers": lambda x, m: [np.sin(v) * v + v * v - 1 / (v + 1) + v**3 - v * 2 for v in x],
    "of a range": lambda x, m: sum([x[i] * i + x[i] ** 2 - abs(x[i]) + 1.5 for i in range(60)]),
    "of Python's": lambda x, m: [float(v) * 2 + int(v * 10) if v > 0.3 else -1.0 for v in x],
    "rows": lambda x, m: np.array([np.exp(r - r.max()) / np.exp(r - r.max()).sum() for r in m]),
    "sums": lambda x, m: np.mean([(r * r).sum() for r in m]) + max([r.argmax() for r in m]),
    "a table": lambda x, m: np.array([[np.sum((a - b) ** 2) for a in m] for b in m]),
    "of two classes": lambda x, m: [1 if v > 0.5 else v * 2 for v in x],
    "filtered": lambda x, m: [v * 2 for v in x if v > 0.5],
    "of two loops": lambda x, m: [x[0] * i * j for i in range(20) for j in range(3)],
    "of two loops, filtered": lambda x, m: (
        [(i, j) for i in range(20) if x[i] > 0.5 for j in range(i % 3) if x[i] > x[j]],
        {i + j for i in range(3) for j in range(20) if x[i] > x[j]},
        {(i, j): x[i] for i in range(20) for j in range(2) if x[i] > x[j]},
        [v for row in m for v in row if v > 0.5],
        np.array([v * w for v in m[0] for w in m[1]]).sum(),
    ),
}


@pytest.mark.parametrize("name", LISTS)
def test_comprehensions(name: str) -> None:
    compare(LISTS[name], X, M)


def test_lists_stay_lists() -> None:
    def f(x: Any) -> Any:
        xs = [np.sin(x[i]) * np.cos(x[i]) + np.exp(x[i]) * x[i] ** 2 for i in range(60)]
        xs[3] = 1.0  # a float among NumPy's
        ys = [v * np.sin(v) + np.cos(v) * np.exp(v) - np.sqrt(v + 3) for v in xs]
        ys.append(2.0)
        rows = [x[i : i + 3] * 2 for i in range(40)]
        rows[0][:] = 0
        return xs, ys, rows[0], rows[1]

    compare(f, X)


def test_state_goes_through_comprehensions() -> None:
    def f(x: Any, seed: int) -> Any:
        rng, total = np.random.default_rng(7), []
        seen = [rng.random() * v + np.sin(v) * np.cos(v) * np.exp(v) for v in x]
        total.append(rng.random())
        return seen, total

    compare(f, X, 1)


def test_programs_are_as_long_as_the_source() -> None:
    x = np.random.rand(500)
    for f in (
        lambda x: any(v > 2 for v in x),
        lambda x: sum([np.sin(v) * v for v in x]),
        lambda x: np.array([[np.sin(a * b) for a in x] for b in x]),
    ):
        assert _ops(jt.jit(f).trace(x)) < 100


# itertools' iterators


def _product(x: Any, n: int) -> Any:
    s = 0.0
    for i, j in itertools.product(range(len(x)), repeat=2):
        if x[i] > x[j]:
            continue
        s += x[i] * x[j] - i
        if s < -200:
            break
    return s, i, j


def _product_of_arrays(x: Any, n: int) -> Any:
    s = 0.0
    for a, b, c in itertools.product(x, x[:10], (1, 2)):
        s += a * b - c
    return s


def _neighbours(x: Any, n: int) -> Any:
    m = x[:49].reshape(7, 7)
    out = np.zeros_like(m)
    for i, j in itertools.product(range(1, 6), range(1, 6)):
        for di, dj in itertools.product((-1, 0, 1), repeat=2):
            if di or dj:
                out[i, j] += m[i + di, j + dj]
    return out


def _combinations(x: Any, n: int) -> Any:
    best, where = 9.0, (-1, -1)
    for i, j in itertools.combinations(range(len(x)), 2):
        if abs(x[i] - x[j]) < best:
            best, where = abs(x[i] - x[j]), (i, j)
    return best, where


def _triples(x: Any, n: int) -> Any:
    s, count = 0.0, 0
    for a, b, c in itertools.combinations(x[:20], 3):
        s, count = s + a * b - c, count + 1
    for a, b in itertools.combinations_with_replacement(x, 2):
        s += a * b
        if s > 50:
            return s, count, a
    return s, count, 0.0


def _repeat(x: Any, n: int) -> Any:
    for _ in itertools.repeat(None, n):
        x = x * 0.999 + 0.001
    return x


def _count(x: Any, n: int) -> Any:
    y = 3.0
    for k in itertools.count(5, 3):
        y = y / 2 + 1 / y
        if k * x[1] > n:
            break
    for down in itertools.count(0, -2):
        if down * x[1] < -n:
            return y, k, down
    return 0.0, 0, 0


def _zip(x: Any, n: int) -> Any:
    s = 0.0
    for i, v, w in zip(range(10, 10 + len(x)), x, np.linspace(0, 1, len(x)), strict=False):
        if v > 0.5:
            s += i * v * w
    for t in np.linspace(0, 1, 50):
        s += np.sin(x[0]) * t
    return s


def _elements(x: Any, n: int) -> Any:
    pairs = itertools.product(range(2), (x[0], 1))
    first = next(pairs)
    return first, list(pairs), [a + b for a, b in itertools.combinations([1, 2, 3], 2)]


ITERATIONS = [
    *(_product, _product_of_arrays, _neighbours, _combinations, _triples, _repeat, _count, _zip),
    _elements,
]


@pytest.mark.parametrize("function", ITERATIONS)
@pytest.mark.parametrize("n", [0, 3000])
def test_iterators_are_loops(function: Any, n: int) -> None:
    compare(function, X, n)


def test_iterators_are_not_written_out() -> None:
    for function in ITERATIONS[:-1]:
        assert _ops(jt.jit(function).trace(X, 3000)) < 1000
    for k in (0, 1, 2):
        compare(_triples, X[:k], 0)
