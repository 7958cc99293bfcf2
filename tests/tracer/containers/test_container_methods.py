"""Comparisons, slices, comprehensions, handlers: what native containers do as Python's."""

from __future__ import annotations

import heapq
import random
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitney as jt

X = np.array([3, -1, 2, 0, 3, 5])
PROGRAMS: list[Callable[..., Any]] = []


def program(f: Any) -> Any:
    PROGRAMS.append(f)
    return f


@program
def compared_lists(n, x):
    s, t = [], []
    for i in range(n):
        s.append(i)
        t.append(i * i)
    same = s == t, s != t, s == [0, 1, 2], s == (1,), s == s[:], s == None  # noqa: E711
    return same, s < t, s <= s, s > [0, 1], s >= [0, 1, 5], t > s[1:]


@program
def compared_sets(n, x):
    s, t = set(), set()
    for i in range(n):
        s.add(i)
        t.add(2 * i)
    tests = s <= t, s == t, {0} <= s, s >= {0, 1}, s.isdisjoint({9}), s.issubset(t), s != {0, 1, 2}
    return tests, s < s, s > {1}, s & {1, 2}, {1, 2} | s, s ^ {0}, s - t, {0, 9} - s


@program
def compared_dicts(n, x):
    d, e, o = {}, {}, OrderedDict()
    for i in range(n):
        d[i] = i * 3 % 5
        e[n - 1 - i] = (n - 1 - i) * 3 % 5
        o[n - 1 - i] = (n - 1 - i) * 3 % 5
    return d == e, d == {0: 0}, d != e, o == e, o == o.copy(), d == o, d == {0: 0.0, 1: 3, 2: 1}


@program
def by_value(n, x):
    d = {}
    for v in x:
        d[v] = d.get(v, 0) + n * v % 5
    by_value = sorted(d.items(), key=lambda pair: pair[1])
    return max(d, key=d.get), min(d, key=d.get), sorted(d, key=d.get), by_value


@program
def slices(n, x):
    s = []
    for i in range(n + 2):
        s.append(i)
    s[1:2] = [7, 8, 9]
    t, u, v = s[:], s[:], s[:]
    del t[::2]
    u[::2] = u[::-2] if len(u) % 2 else u[::2]
    del s[-2:], v[3::-1]
    v[len(v) :] = [n, n]
    v[5:2] = [1]
    return s, t, u, v, list(zip(s, t)), list(reversed(t)), list(enumerate(s, 1))  # noqa: B905


@program
def wrong_slice(n, x):
    s = []
    for i in range(n):
        s.append(i)
    s[::2] = [1, 2]
    return s


@program
def smallest(n, x):
    s = []
    for i in range(n):
        s.append(i * 7 % 5)
    least = heapq.nsmallest(2, s), heapq.nsmallest(n - 2, s), heapq.nsmallest(-1, s)
    return least, heapq.nlargest(3, s), heapq.nlargest(2, s, key=lambda v: -v)


@program
def comprehensions(n, x):
    s = []
    for i in range(n):
        s.append(i)
    some = [v for v in s if v != 2], [v * 2 for v in s if v > 1 and v < 4], [v for v in x if v]
    pairs = [(v, w) for v in x if v > 0 for w in range(2)]
    return some, {v for v in s if v % 2 == 0}, {v: v * v for v in s if v != 1}, pairs


@program
def displays(n, x):
    return {1, n, 2}, {n: x[0], 5: x[1]}, sorted({(n, 1), (5, 1)}), set(), Counter(), [{7}]


@program
def counters(n, x):
    c = Counter()
    for v in x:
        c[v] += n
    c.subtract([x[0], x[0]])
    c.update({x[1]: 2})
    return c, sorted(c.elements()), c.total()


@program
def shared(n, x):
    s = [[0] * n for _ in range(3)]
    t = [[0] * 3] * 3
    u = s
    for i in range(n):
        s[i % 3].append(i)
        t[i % 3][1] += 1
    if n > 2:
        u = t
    u[0][0] = 99
    return s, t, u


@program
def added_in_a_branch(n, x):
    seen = set()
    if n > 2:
        seen.add(5)
    seen.add(n)
    return seen


@program
def missing_keys(n, x):
    d, e, c = {}, {}, 0
    for v in x:
        try:
            d[v] += 1
        except KeyError:
            d[v] = n
        try:
            del e[v]
        except KeyError:
            e[v] = v * n
            c += 1
        finally:
            c += 2
    return d, e, c


@program
def missing_elements(n, x):
    q, s, c = deque([1]), [], 0
    while c < 10 + n:
        try:
            c += q.popleft()  # may overflow, too, but then it is known that there was one
        except IndexError:
            q.append(n)
            c += 1
        try:
            s[c] = 5
        except IndexError:
            s.append(c)
    for v in x:
        try:
            c += s.index(v)
        except ValueError:
            s.append(0)
        else:
            c += 100
    return q, s, c


@program
def emptied(n, x):
    s, o, c = set(), OrderedDict(), 0
    for v in x:
        try:
            c += s.pop()
        except KeyError:
            s.add(v)
        try:
            o.move_to_end(v)
        except KeyError:
            o[v] = n
    return s, o, c


@program
def full_deque(n, x):
    q = deque(maxlen=3)
    for i in range(n):
        q.insert(0, i)
    return q


@program
def groups(n, x):
    g, d = defaultdict(list), {}
    for i in range(len(x)):
        g[x[i] % 3].append(i + n)
        d.setdefault(i % 2, []).append(x[i])
    return g, d, {k: len(v) for k, v in g.items()}, Counter(v % 2 for v in x), Counter(x)


@program
def exchanged(n, x):
    a, b = [], []
    for i in range(n):
        a, b = b, a
        a.append(i)
    s = [[i] * 2 for i in range(n)]
    t = list(s)
    t[-1].append(5)
    return a, b, s, t, s[0] is t[0]


@program
def of_several_forms(n, x):
    s, d, r, last = [], {}, None, None
    for i in range(n):
        s.append(i)
        d[i] = i
        if i == 3:
            r = s
        last = d
    return r, last, s if n > 2 else d


def outcome(f: Callable[..., Any], *args: Any) -> str:
    try:
        return repr(f(*args))
    except Exception as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0]}"


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_methods(f: Any) -> None:
    compiled = jt.jit(f)
    for n in (5, 3, 2):
        assert outcome(compiled, n, X) == outcome(f, n, X), n


def test_arrays_are_sorted_as_lists() -> None:
    functions = [
        lambda a: sorted(a),
        lambda a: sorted(a, reverse=True)[0],
        lambda a: sorted(a, key=lambda v: (v % 3, -v)),
        lambda a: (heapq.nlargest(2, a), heapq.nsmallest(3, a, key=lambda v: -v)),
    ]
    for f in functions:
        for x in (np.array([3.0, 1.0, 2.0, 1.0]), np.arange(50)[::-1] % 7, np.zeros(0, np.int8)):
            if x.size or f is functions[0]:
                got = jt.jit(f)(x)
                assert repr(got) == repr(f(x))


def rows_of(n):
    rng = random.Random(5)
    return [[rng.randint(0, 9) for _ in range(4)] for _ in range(n)]


def sorted_by_builtins(n):
    rows = rows_of(n)
    rows.sort(key=sum)
    return rows, sorted(rows_of(n), key=max, reverse=True), min(rows, key=sum), max(rows, key=len)


def mapped_builtins(n):
    rows = rows_of(n)
    return max(map(sum, rows)), sum(map(max, rows)), list(map(len, rows)), any(map(sum, rows))


@pytest.mark.parametrize("function", [sorted_by_builtins, mapped_builtins])
def test_builtins_are_called_with_native_lists(function):
    assert jt.jit(function)(6) == function(6)


def test_a_few_integers_in_order_are_a_list_of_known_length() -> None:
    def f(rows):
        found = {}
        for i in range(len(rows)):
            found.setdefault(tuple(sorted(rows[i])), []).append(i)
        first, *_, last = sorted(rows[0], reverse=True)
        return list(found.values()), first, last

    rows = np.random.default_rng(0).integers(0, 2, (8, 3))
    assert repr(jt.jit(f)(rows)) == repr(f(rows))
