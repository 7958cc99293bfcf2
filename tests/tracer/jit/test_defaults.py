"""Defaults that a call changes: objects, arrays and containers, as arguments that are given."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

import jitney as jt


def test_what_a_call_changes() -> None:
    state = SimpleNamespace(n=np.zeros(3))
    other = SimpleNamespace(n=np.zeros(3))

    @jt.jit
    def add(g: Any, state: Any = state) -> Any:
        state.n = state.n + g
        return state.n.sum()

    assert [add(np.ones(3)), add(np.ones(3))] == [3, 6]
    assert add(np.ones(3), other) == add(np.ones(3), state=SimpleNamespace(n=np.zeros(3))) == 3
    assert state.n.tolist() == [2, 2, 2] and other.n.tolist() == [1, 1, 1]

    total = np.zeros(3)

    @jt.jit
    def into(g: Any, total: Any = total) -> None:
        total += g

    @jt.jit
    def to_out(g: Any, total: Any = total) -> None:
        np.add(total, g, out=total)

    for function in (into, into, to_out):
        function(np.ones(3))
    assert total.tolist() == [3, 3, 3]
    assert len(into.lower(np.ones(3)).graph.params) == 2


def test_containers_and_names() -> None:
    seen = {"last": np.zeros(2)}

    @jt.jit
    def keep(x: Any, *, seen: Any = seen) -> Any:
        before = seen["last"]
        seen["last"] = x
        return before + x

    class Counter:
        @jt.jit
        def count(self, x: Any, log: Any = seen) -> Any:
            log["last"] = log["last"] + x
            return log["last"]

    one, two = np.array([1.0, 2.0]), np.array([3.0, 4.0])
    assert keep(one).tolist() == [1, 2]
    assert keep(two).tolist() == [4, 6]
    assert Counter().count(1.0).tolist() == [4, 5]
    assert seen["last"].tolist() == [4, 5]


def test_what_is_only_read_is_known() -> None:
    """Sizes and axes in containers stay settings; arrays are read at each call."""
    weights = np.arange(3.0)

    @jt.jit
    def read(x: Any, axes: Any = [0], weights: Any = weights) -> Any:  # noqa: B006
        return (x * weights).sum(tuple(axes))

    assert read(np.ones(3)) == 3
    weights[0] = 10
    assert read(np.ones(3)) == 13

    @jt.jit
    def outer(x: Any) -> Any:
        return read(x) + read(x, weights=x)

    assert outer(np.ones(3)) == 16


def test_what_a_default_object_holds_is_not_compared_with_itself():
    class Holder:
        def __init__(self):
            self.a, self.k = np.ones(3), 2.0

    holder = Holder()

    @jt.jit
    def f(x, o=holder, power=2):
        return x * o.k + o.a**power

    x = np.ones(3)
    f(x)
    (entry,) = [entry for bucket in f._buckets.values() for entry in bucket.entries]
    of_defaults = [guard for guard in entry.captured.guards if "__defaults__" in str(guard.path)]
    assert [guard.how for guard in of_defaults] == ["is"]
    holder.a[:], holder.k = 2.0, 3.0
    assert f(x).tolist() == [7.0] * 3 and f(x, power=1).tolist() == [5.0] * 3
    f._function.__defaults__ = (Holder(), 2)
    assert f(x).tolist() == [3.0] * 3
