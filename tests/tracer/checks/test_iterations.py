"""Errors of compiled code name the iterations of the loops in which they happened."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitney as jt

X = np.arange(50.0)


def nested(x: Any, n: Any) -> Any:
    s = 0.0
    for i in range(3, n, 4):
        for j in range(90, 0, -1):
            assert x[i] < 30 or j > 80, f"too large: {x[i]}"
            s += x[i] * j
    return s


def until(x: Any) -> Any:
    i = 0
    while x[i] > -5:
        i += 1
    return i


def fori(x: Any) -> Any:
    def body(i: Any, c: Any) -> Any:
        return c + x[i * 2]

    return jt.fori_loop(0, 40, body, 0.0)


def scan(x: Any) -> Any:
    def body(c: Any, row: Any) -> Any:
        jt.check(row < 33.0, "row {}", row)
        return c + row, None

    return jt.scan(body, 0.0, x)[0]


def shared(x: Any, n: Any) -> Any:
    out = np.zeros(200)
    for i in jt.prange(200):
        if x[i % 50] + i > n:
            raise ValueError("no")
        out[i] = x[i % 50]
    return out


def at(function: Callable[..., Any], line: int) -> str:
    return f"at test_iterations.py:{function.__code__.co_firstlineno + line}"


FAILING: list[Any] = [
    (nested, (X, 47), AssertionError, [f"7 of the loop {at(nested, 2)} (i = 31)", "(j = 80)"]),
    (until, (X,), IndexError, [f"50 of the loop {at(until, 2)}"]),
    (fori, (X,), IndexError, [f"25 of the loop {at(fori, 4)}"]),
    (scan, (X,), AssertionError, [f"33 of the loop {at(scan, 5)}"]),
    (shared, (X, 150), ValueError, [f"iteration 0 of the loop {at(shared, 2)} (i = 0)"]),
]
FAILING[-1] = (shared, (X, -1), *FAILING[-1][2:])


@pytest.mark.parametrize(("function", "args", "kind", "says"), FAILING)
def test_iterations_are_told(function: Any, args: Any, kind: Any, says: list[str]) -> None:
    compiled = jt.jit(function)
    for _ in range(3):  # the last call is a native one
        with pytest.raises(kind) as caught:
            compiled(*args)
        notes = "\n".join(caught.value.__notes__)
        assert all(said in notes for said in says), notes
        assert notes.count("in iteration") == (2 if function is nested else 1)


def test_nothing_is_told_where_nothing_is_known() -> None:
    plain = jt.jit(lambda x, i: x[i])
    with pytest.raises(IndexError) as caught:
        plain(X, 77)
    assert "in iteration" not in "".join(caught.value.__notes__)

    def drawn(g: Any, n: Any) -> Any:  # a second run would draw other numbers
        s = 0.0
        for _ in range(n):
            s += g.random()
            assert s < 2.0, "much"
        return s

    g, other = np.random.default_rng(1), np.random.default_rng(1)
    compiled = jt.jit(drawn)
    for _ in range(3):
        with pytest.raises(AssertionError) as caught:
            compiled(g, 1000)
        with pytest.raises(AssertionError):
            drawn(other, 1000)
        assert "in iteration" not in "".join(caught.value.__notes__)
    assert g.random() == other.random()


def test_functions_that_fail_often_are_not_looked_into_for_ever() -> None:
    compiled, notes = jt.jit(until), 0
    for _ in range(14):
        with pytest.raises(IndexError) as caught:
            compiled(X)
        notes += "in iteration" in "".join(caught.value.__notes__)
    assert notes == 10
    assert compiled(-X * 10) == 1
