"""Texts, members of enumerations and None among what containers hold, chosen under traced conditions."""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict, deque
from collections.abc import Callable
from enum import Enum
from typing import Any

import numpy as np
import pytest

import jitney as jt

RNG = np.random.default_rng(0)
X = RNG.normal(size=50)
INTS = RNG.integers(0, 12, 40)
CODES = np.frombuffer(b"foo + 12*bar 3(x)", np.uint8).astype(int)
GRAPH = RNG.random((10, 10)) < 0.25

Program = tuple[Callable[..., Any], tuple[Any, ...]]
PROGRAMS: list[Program] = []


def program(*args: Any) -> Callable[[Any], Any]:
    def add(f: Any) -> Any:
        PROGRAMS.append((f, args))
        return f

    return add


class Light(Enum):
    RED = 1
    GREEN = 2
    YELLOW = 3


@program(X)
def counts(x):
    there, new, counter = {"neg": 0, "pos": 0, "zero": 0}, {}, Counter()
    for v in x:
        if v > 0.3:
            key = "pos"
        elif v < -0.3:
            key = "neg"
        else:
            key = "zero"
        there[key] += 1
        new[key] = new.get(key, 0) + 1
        counter[key] += 1
    return there, new, counter, counter.most_common(), sorted(new.items()), max(new, key=new.get)


@program(CODES)
def tokens(codes):
    found, state, start = [], "none", 0
    for i in range(len(codes)):
        c = codes[i]
        if 48 <= c < 58:
            kind = "number"
        elif 97 <= c < 123:
            kind = "name"
        elif c == 32:
            kind = "space"
        else:
            kind = "operator"
        if kind != state:
            if state != "none" and state != "space":
                found.append((state, start, i))
            state, start = kind, i
    return found, state


@program(X)
def transitions(x):
    seen, before = defaultdict(int), "low"
    for v in x:
        now = "high" if v > 0.7 else ("middle" if v > -0.2 else "low")
        seen[before, now] += 1
        before = now
    total = 0
    for (a, b), n in seen.items():
        if a == b:
            total += n
    return seen, total, ("high", "low") in seen


@program(X)
def members(x):
    s, log = set(), []
    for v in x:
        name = "big" if abs(v) > 1 else "small"
        log.append(name in s)
        s.add(name)
        if v > 1.5:
            s.discard("small")
    return sorted(s), len(s), "big" in s, "other" in s, log


@program(INTS)
def groups(x):
    lists, made = {"even": [], "odd": []}, defaultdict(list)
    for v in x:
        lists["even" if v % 2 == 0 else "odd"].append(v)
        made["third" if v % 3 == 0 else "other"].append(v)
    return lists, made, {name: len(found) for name, found in made.items()}


@program(X)
def lights(x):
    light, seen, log = Light.RED, {}, []
    for v in x:
        if light is Light.RED:
            if v > 0:
                light = Light.GREEN
        elif light is Light.GREEN:
            if v < 0:
                light = Light.YELLOW
        else:
            light = Light.RED
        seen[light] = seen.get(light, 0) + 1
        log.append(light)
    return light, seen, log


@program(GRAPH, 0, 7)
def path(graph, start, goal):
    parent, queue = {start: None}, deque([start])
    while queue:
        u = queue.popleft()
        for v in range(len(graph)):
            if graph[u, v] and v not in parent:
                parent[v] = u
                queue.append(v)
    if goal not in parent:
        return None
    found, here = [], goal
    while here is not None:
        found.append(here)
        here = parent[here]
    return found[::-1]


@program(X)
def best_of_each(x):
    best = [None] * 5
    for v in x:
        k = int(abs(v) * 10) % 5
        if best[k] is None or v > best[k]:
            best[k] = v
    return best


@program(np.sort(RNG.random(6) * 3))
def events(times):
    heap, log, n = [], [], 0
    for t in times:
        heapq.heappush(heap, (t, "arrive"))
        heapq.heappush(heap, (t, "announce"))
    while heap:
        t, kind = heapq.heappop(heap)
        log.append((kind, n))
        if kind == "arrive" and n < 5:
            n += 1
            heapq.heappush(heap, (t + 0.7, "leave"))
    return log


@program(INTS)
def undone(codes):
    done, found = [], []
    for c in codes:
        if c % 3 == 0 and done:
            what, v = done.pop()
            if what == "push":
                found.pop()
            else:
                found.append(v)
        elif c % 3 == 1:
            found.append(c)
            done.append(("push", c))
        elif found:
            done.append(("pop", found.pop()))
    return found, done


@program(X)
def removed(x):
    d = {"a": 1, "b": 2, "c": 3}
    for v in x:
        key = "a" if v > 0 else "b"
        d.pop(key, None)
    return d, d.pop("a", None), d.pop("c", 0), d.setdefault("e", 4)


class Item:
    def __init__(self, name, size):
        self.name, self.size = name, size


@program(X)
def attributes(x):
    items = []
    for v in x:
        if v > 1:
            items.append(Item("large", v))
        elif v < -1:
            items.append(Item("negative", v))
    found = 0.0
    for item in items:
        if item.name == "large":
            found += item.size
    return found, [item.name for item in items]


@pytest.mark.parametrize("f,args", PROGRAMS, ids=[f.__name__ for f, _ in PROGRAMS])
def test_programs(f: Any, args: Any) -> None:
    assert repr(jt.jit(f)(*args)) == repr(f(*args))


@pytest.mark.parametrize("f", [counts, transitions, members, best_of_each, events])
def test_interpreter(f: Any) -> None:
    args = next(args for g, args in PROGRAMS if g is f)
    assert repr(jt.jit(f, backend="interpreter")(*args)) == repr(f(*args))


def test_a_set_of_texts_leaves() -> None:
    def f(x):
        s = set()
        for v in x:
            s.add(("a" if v > 0 else "b", int(v * 2)))
        return s

    found = jt.jit(f)(X)
    assert type(found) is set
    assert found == f(X)


def test_questions_of_numbers_and_texts() -> None:
    def f(x):
        d = {}
        for i in range(len(x)):
            d[i % 5, "a" if x[i] > 0 else "b"] = i
        found = 0
        for i in range(7):
            if (i, "a") in d:
                found += d[i, "a"]
            if (float(i), "b") in d:
                found += 100
            if (i + 0.5, "b") in d or (i, "c") in d or i in d or ("a", i) in d:
                found += 1000
        return found

    assert jt.jit(f)(X) == f(X)


def test_keys_that_are_missing() -> None:
    def f(x, limit):
        d = {}
        for v in x:
            if v > limit:
                d["a" if v > 1 else "b"] = v
        return d["b" if x[0] > 0 else "none"]

    for x in (np.array([0.5, 2.0]), np.array([-0.5, 2.0]), np.array([0.5])):
        for limit in (0.0, 1.0):
            try:
                wanted: Any = f(x, limit)
            except KeyError as error:
                wanted = error
            if not isinstance(wanted, KeyError):
                assert jt.jit(f)(x, limit) == wanted
                continue
            with pytest.raises(KeyError) as caught:
                jt.jit(f)(x, limit)
            assert caught.value.args == wanted.args


def test_the_order_of_a_set_of_texts_is_not_known() -> None:
    def f(x):
        s = set()
        for v in x:
            s.add("a" if v > 0 else "b")
        return [name.upper() for name in s]

    with pytest.raises(jt.errors.UnsupportedFunctionError, match="the order of a set"):
        jt.jit(f)(X)


def test_derivatives_and_batches_of_tables_with_texts() -> None:
    def f(x):
        weights = {"low": 0.5, "high": 2.0}
        total = {"low": 0.0, "high": 0.0}
        for v in x:
            name = "high" if v > 0 else "low"
            total[name] += weights[name] * v * v
        return total["low"] + 3 * total["high"]

    wanted = np.where(X > 0, 12.0, 1.0) * X
    np.testing.assert_allclose(jt.jit(jt.grad(f))(X), wanted)
    rows = X.reshape(10, 5)
    np.testing.assert_allclose(jt.jit(jt.vmap(f))(rows), [f(row) for row in rows])


def test_lists_of_many_texts_are_compared_text_by_text():
    def counted(words, flag, other):
        counts = {}
        for w in words:
            counts[w] = counts.get(w, 0) + 1
        return counts, flag, other

    f = jt.jit(counted)
    for n in (3, 7, 8, 9, 40):
        words = [f"w{k % 5}" for k in range(n)]
        for _ in range(3):
            assert f(words, "a", "b") == counted(words, "a", "b")
        for k in {0, n // 2, n - 1}:
            changed = [*"".join(w + " " for w in words).split()]  # equal texts, other objects
            assert f(changed, "a", "b") == counted(changed, "a", "b")
            changed[k] = "é" * k
            assert f(changed, "a", "b") == counted(changed, "a", "b")
            assert f(words[:k], "a", "b") == counted(words[:k], "a", "b")
        assert f(words, "a", "c") == counted(words, "a", "c")
        assert f(words, "b", "b") == counted(words, "b", "b")
    words[3] = 5
    assert f(words, "a", "b") == counted(words, "a", "b")
