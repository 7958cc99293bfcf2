"""Values of several forms in attributes and containers, and objects that have several names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from alike import DOWN, NONE, UP, Node, alike, compare

import jitney as jt


class Record:
    def __init__(self):
        self.best, self.where, self.seen = None, None, 0

    def watch(self, x):
        for i in range(len(x)):
            self.seen += 1
            if x[i] > 2 and (self.best is None or x[i] < self.best):
                self.best, self.where = float(x[i]), i
        return self.where


def test_attributes_of_objects() -> None:
    for x in (DOWN, np.zeros(3), NONE):
        plain, compiled = Record(), Record()
        for _ in range(2):
            want, got = plain.watch(x), jt.jit(Record.watch)(compiled, x)
            assert alike(want, got)
            assert alike(
                [plain.best, plain.where, plain.seen],
                [compiled.best, compiled.where, compiled.seen],
            )

    def inside(x):
        record = Record()
        if x[0] > 2:
            record.watch(x)
        return record.best

    compare(inside, (DOWN,), (UP,))


def test_values_that_native_dicts_may_have() -> None:
    def two_sum(x, total):
        seen = {}
        for i in range(len(x)):
            j = seen.get(total - int(x[i]))
            if j is not None:
                return j, i
            seen[int(x[i])] = i
        return None

    def taken(x):
        d = {}
        for i in range(len(x)):
            d[int(x[i])] = i * 2
        return d.get(3), d.get(100), d.pop(4, None), d.pop(77, None)

    x = np.arange(40.0) % 9
    compare(two_sum, (x, 11), (x, 1000))
    compare(taken, (x,), backend="native")


def test_parts_of_containers() -> None:
    def pair(x):
        best, at = None, -1
        for i in range(len(x)):
            if x[i] > 2 and (best is None or x[i] < best):
                best, at = x[i], i
        return best, at

    def carried_pair(x):
        best = (None, -1)
        for i in range(len(x)):
            if x[i] > 2:
                best = (x[i], i)
        return best

    def filled(x):
        found = {"low": None, "high": None}
        if x[0] > 2:
            found["high"] = x[0]
        if x[1] < 2:
            found["low"] = (x[1],)
        return found

    def filled_in_a_loop(x):
        found = [None, 0]
        for i in range(len(x)):
            if x[i] > 2:
                found[0] = i
            found[1] += 1
        return found

    def appended(x):
        out = []
        for i in range(3):
            v = x[i] if x[i] > 2 else None
            out.append(v)
        return out

    def in_place(x):
        total = None
        for i in range(len(x)):
            row = x[i] * np.ones(2)
            if x[i] > 2:
                if total is None:
                    total = np.zeros(2)
                total += row
        return total

    for f in (pair, carried_pair, filled, filled_in_a_loop, appended, in_place):
        compare(f, (UP,), (DOWN,), (np.zeros(4),))


def test_options_that_have_other_names() -> None:
    def appended(x):
        xs = [1.0, 2.0]
        y = xs if x > 0 else None
        if y is not None:
            y.append(3.0)
        return xs

    def written(x):
        xs = [1.0, 2.0]
        y = xs if x > 0 else None
        if y is not None:
            y[0] = x
        return xs, y

    def of_a_dict(x):
        d = {"a": 1.0}
        y = d if x > 0 else None
        if y:
            y["a"] = x
        return d

    def array(x):
        a, b = np.zeros(2), np.ones(2)
        y = a if x > 1 else (b if x > 0 else None)
        if y is not None:
            y += 1
        a[1] = 7.0
        return a, b, y

    def arrays_of_numpy(x):
        a = np.arange(3.0)
        r = (a, a) if x > 0 else None
        if r is not None:
            r[0][1] = 9
        return a, r

    def attribute(x):
        a, b = Node(1.0), Node(2.0)
        y = a if x > 1 else b if x > 0 else None
        if y is not None:
            y.value = x * 10
        return a.value, b.value

    def nodes(x):
        a, b = Node(1.0), Node(2.0)
        a.following = b
        node, last = a, None
        while node is not None:
            if x > node.value:
                node.value += x
                last = node
            node = node.following
        return a.value, b.value, None if last is None else last.value

    def closed_over(x):
        seen = {"n": 0, "last": None}

        def step(v):
            seen["n"] += 1
            if seen["last"] is None or v > seen["last"]:
                seen["last"] = v

        for i in range(len(x)):
            step(x[i])
        return seen

    for f in (appended, written, of_a_dict, array, arrays_of_numpy, attribute, nodes):
        compare(f, (1.5,), (0.5,), (-1.5,))
    compare(closed_over, (UP,), (DOWN,), (NONE,))


def test_a_dict_asked_for_a_key_that_is_none_before() -> None:
    """None has no value in the dict: only where it is asked for is that an error."""
    sets = {"one": {4, 1, 3}, "two": {2, 5}, "three": {1, 4, 3, 2}}

    def f(n, sets):
        sizes = 0
        for i in range(n):
            best = None
            for name, elements in sets.items():
                if len(elements) + i > 3:
                    best = name
            sizes += len(sets[best])
        return sizes

    compiled = jt.jit(f)
    assert [compiled(n, sets) for n in (0, 4)] == [f(n, sets) for n in (0, 4)]
    with pytest.raises(KeyError, match="None"):
        compiled(1, {"one": {4}})


class _Link:
    def __init__(self, value: int, after: _Link | None = None) -> None:
        self.value, self.after = value, after


def _linked(values: list[int]) -> _Link | None:
    head = None
    for value in reversed(values):
        head = _Link(value, head)
    return head


def test_links_of_objects_that_a_branch_chooses() -> None:
    """What is read of one of several objects may again be one of several: that is no method."""

    def merged(one, other):
        found = []
        while one and other:
            if one.value < other.value:
                found.append(one.value)
                one = one.after
            else:
                found.append(other.value)
                other = other.after
        return found

    lists = [1, 3, 5, 9], [2, 3, 8]
    assert jt.jit(merged)(*map(_linked, lists)) == merged(*map(_linked, lists))


class Asked:
    """Counts how often a property is asked."""

    def __init__(self, x: Any) -> None:
        self.x, self.count = x, 0

    @property
    def twice(self) -> Any:
        self.count += 1
        return self.x * 2

    def more(self) -> Any:
        return self.x + 1

    def __len__(self) -> int:
        return 3


def truth_of_a_list(p: Any, x: Any, n: Any) -> Any:
    values = None
    if x > 0:
        values = []
        for _ in range(n):
            values.append(x)
    if values:
        return values[0]
    return -1.0


def truth_of_a_set(p: Any, x: Any, n: Any) -> Any:
    values = None
    if x > 0:
        values = set()
        for k in range(n):
            values.add(k % 3)
    if not values:
        return -1
    return len(values)


def an_attribute(p: Any, x: Any, n: Any) -> Any:
    if x > 0:
        p = Asked(x)
    p.x += 1
    return p.x


def a_property(p: Any, x: Any, n: Any) -> Any:
    if x > 0:
        p = Asked(x)
    return p.twice, p.count, p.more(), len(p)


@pytest.mark.parametrize("x", [2.0, -2.0])
@pytest.mark.parametrize("function", [truth_of_a_list, truth_of_a_set, an_attribute, a_property])
def test_what_an_option_is_like_is_asked_of_nobody(function: Callable[..., Any], x: float) -> None:
    """The program does not look into the list or object that is not there: that ended the process."""
    first, second, n = Asked(5.0), Asked(5.0), np.int64(4)
    assert jt.jit(function)(first, x, n) == function(second, x, n)
    assert vars(first) == vars(second)
