"""Containers that change while a loop runs over them: seen where Python sees it, and not elsewhere."""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict, deque
from typing import Any

import numpy as np
import pytest

import jitney as jt

TABLES = {"dict": dict, "Counter": Counter, "defaultdict": lambda: defaultdict(int)}
TABLES["OrderedDict"] = OrderedDict


def dicts(made: Any, what: str) -> Any:
    def f(n, at, how):
        d = made()
        for i in range(n):
            d[i] = i
        steps = 0
        for _ in d if what == "keys" else d.items() if what == "items" else d.values():
            steps += 1
            if steps == at:
                if how == 0:
                    d[n + 5] = 1
                elif how == 1:
                    del d[0]
                elif how == 2:
                    d[0] = 7
                elif how == 3:
                    d[n + 5] = 1
                    break
                elif how == 4:
                    d.clear()
        return d, steps

    return f


def sets(n, at, how):
    s = set()
    for i in range(n):
        s.add(i)
    steps = 0
    for _ in s:
        steps += 1
        if steps == at:
            if how == 0:
                s.add(n + 5)
            elif how == 1:
                s.remove(0)
            elif how == 2:
                s.add(0)
            elif how == 3:
                s.add(n + 5)
                break
            elif how == 4:
                s.clear()
    return sorted(s), steps


def queues(n, at, how):
    q = deque()
    for i in range(n):
        q.append(i)
    steps = 0
    for _ in q:
        steps += 1
        if steps == at:
            if how == 0:
                q.append(n)
            elif how == 1:
                q.popleft()
                q.append(5)
            elif how == 2:
                q[0] = 8
                q.reverse()
            elif how == 3:
                q.rotate(1)
                break
            elif how == 4:
                q.rotate(1)
    return q, steps


def zipped(n, at, how):
    q, d = deque(), {}
    for i in range(n):
        q.append(i)
        d[i] = i
    steps = 0
    for _ in zip(d, q) if how < 2 else zip(q, d):  # noqa: B905
        steps += 1
        if steps == at:
            if how == 0:
                d[-1] = 0
            elif how == 1:
                q.append(1)
            elif how == 2:
                d[-1] = 0
            elif how == 3:
                q.append(1)
    return steps


def outcome(f: Any, *args: Any) -> Any:
    try:
        return repr(f(*args))
    except RuntimeError as error:
        return str(error).splitlines()[0]


FUNCTIONS = {
    f"{name}-{what}": dicts(made, what) for name, made in TABLES.items() for what in ["keys"]
}
FUNCTIONS |= {"values": dicts(dict, "values"), "items": dicts(dict, "items")}
FUNCTIONS |= {"sets": sets, "queues": queues, "zipped": zipped}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_changes_are_seen_where_python_sees_them(name: str) -> None:
    f = FUNCTIONS[name]
    compiled = jt.jit(f)
    for how in range(5):
        for at in range(1, 5):  # with 4 only after the end
            assert outcome(compiled, 3, at, how) == outcome(f, 3, at, how), (at, how)


@pytest.mark.parametrize("backend", ["native", "interpreter"])
def test_another_key_in_the_place_of_one_is_an_error(backend: str) -> None:
    """Python goes on with the other one or raises, as its memory has it."""

    def f(x, first):
        d = {}
        for v in x:
            d[v] = v
        total = 0
        for k in d:
            total += k
            if k == first:
                del d[k]
                d[k + 100] = 1
        return total

    x = np.array([3, 1, 2])
    compiled = jt.jit(f, backend=backend)
    assert compiled(x, 9) == 6
    with pytest.raises(RuntimeError, match="keys changed"):
        compiled(x, 1)


def test_generators_that_are_read_at_once() -> None:
    def chosen(x):
        queue = deque(i for i in range(len(x)) if x[i] > 2)
        squares = dict((v, v * v) for v in x if v > 2)  # noqa: C402
        rests = Counter(v % 3 for v in x if v > 1)
        return len(queue), queue.popleft(), squares, rests.most_common(1)

    x = np.array([1, 5, 3, 2, 8])
    assert jt.jit(chosen)(x) == chosen(x)


def sorted_of_anything(x):
    """What is no list of the function's own is listed before it is ordered."""
    rows = x.tolist()
    pairs = sorted((a, b) for a, b in rows if a > 3)
    by_key = sorted(map(tuple, rows), key=lambda t: -t[1])[:2]
    of_zip = sorted(zip(x[0], x[1], strict=True))
    return (
        sorted(map(tuple, rows)),
        pairs,
        by_key,
        of_zip,
        sorted((x[0, 0], x[1, 0])),
        sorted(rows[0]),
    )


def test_what_is_run_over_once_is_sorted():
    compiled = jt.jit(sorted_of_anything)
    for seed in (0, 1):
        x = np.random.RandomState(seed).randint(0, 10, (6, 2))
        assert repr(compiled(x)) == repr(sorted_of_anything(x))
