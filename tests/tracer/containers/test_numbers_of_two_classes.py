"""Ints of Python's among floats, in containers and from iteration to iteration: they stay ints."""

import heapq
from collections import deque
from typing import NamedTuple

import numpy as np
import pytest

import jitney as jt


def shortest(n, start):
    """Dijkstra: distances that are inf, or ints; sums, extremes and what loops hand on."""
    dist = [float("inf")] * n
    dist[start] = 0
    done = [False] * n
    total = 0
    for _ in range(n):
        least, u = float("inf"), -1
        for v in range(n):
            if not done[v] and dist[v] < least:
                least, u = dist[v], v
        if u < 0:
            break
        done[u] = True
        total += least
        for v in range(n):
            w = (u * 7 + v * 3) % 11
            if w and dist[u] + w < dist[v]:
                dist[v] = dist[u] + w
    return dist, total, max(dist), min(dist), sum(dist)


def heap(n):
    """Equal numbers of two classes do not decide what comes first."""
    queue, seen = [(0, 0), (0.0, 0), (1.0, 3), (1, 2)], []
    while queue and len(seen) < n:
        d, u = heapq.heappop(queue)
        seen.append((d, u))
        if u % 3:
            heapq.heappush(queue, (d + 0.5, u + 1))
        else:
            heapq.heappush(queue, (d + 1, u + 1))
    return seen, queue, heapq.heappushpop(queue, (0, 1)), heapq.heapreplace(queue, (3, 1))


def lists(n):
    a = []
    for i in range(n):
        a.append(i if i % 2 else i / 2)
    b = sorted(a, reverse=True)
    whole = a[1:4] + [7]
    a.sort()
    classes = []
    for x in whole:
        classes.append(1 if isinstance(x, int) else 0)
    asked = a.index(3), a.count(1.0), 5 in a, 0.25 in a
    return a, b, whole, classes, asked, max(a), min(a), sum(a), a[0], a[-1] + 1, a[n // 2] * 2


def tables(n):
    found, queue = {}, deque([(0, 1.5)])
    for i in range(n):
        found[i] = found.get(i - 1, 0) + (1 if i % 3 else 0.5)
        one, other = queue.popleft()
        queue.append((other, one))
        queue.append((one + 1, other))
    more = found.get(n, -1), found.get(1, -1), found.pop(0), found.setdefault(-1, 3)
    return found, queue, more, [*found.values()], min(found.values())


class Node:
    def __init__(self, value, after=None):
        self.value, self.after = value, after


def objects(n):
    head = None
    for i in range(n):
        head = Node(i if i % 2 else i * 0.5, head)
    return head


def values_of(node):
    return [] if node is None else [node.value, *values_of(node.after)]


@pytest.mark.parametrize("function", [heap, lists, tables])
@pytest.mark.parametrize("backend", ["native", "interpreter"])
def test_containers(function, backend):
    assert repr(jt.jit(function, backend=backend)(9)) == repr(function(9))


@pytest.mark.parametrize("n", [9, 20])  # written out, or not
def test_shortest_paths(n):
    assert repr(jt.jit(shortest)(n, 2)) == repr(shortest(n, 2))


def test_attributes_of_objects():
    assert repr(values_of(jt.jit(objects)(9))) == repr(values_of(objects(9)))


def test_an_int_that_no_float_is():
    def f(n):
        a = [0.5]
        for i in range(n):
            a.append(2**53 + i)
        return a

    with pytest.raises(OverflowError, match="among floats"):
        jt.jit(f)(3)


class Pair(NamedTuple):
    one: int
    other: float


def test_named_tuples():
    def f(n):
        made = []
        for i in range(n):
            if i % 2:
                made.append(Pair(i, i * 0.5))
        return made

    assert jt.jit(f)(5) == f(5)
    assert type(jt.jit(f)(5)[0]) is Pair


def least(xs):
    best, where = float("inf"), -1
    for i, x in enumerate(xs):
        if x < best:
            best, where = x, i
    return best, where


def last(n):
    x = 0.5
    for i in range(n):
        x = i
    return x


def falling(n):
    x = 1.5
    while n > 0:
        x = n if n % 2 else x
        n -= 1
    return x


@pytest.mark.parametrize(
    ("function", "args"),
    [(least, [list(range(40, 2, -2)), [0.5] * 20]), (last, [5, 0]), (falling, [6, 0])],
)
def test_loops(function, args):
    compiled = jt.jit(function)
    for arg in args:
        assert repr(compiled(arg)) == repr(function(arg))


def test_an_attribute_that_becomes_an_int():
    class Least:
        def __init__(self):
            self.best = float("inf")

        def feed(self, xs):
            for x in xs:
                if x < self.best:
                    self.best = x
            return self.best

    one, other = Least(), Least()
    feed = jt.jit(one.feed)
    for xs in (list(range(40, 2, -2)), [0.5] * 20, [-1] * 20):
        assert repr((feed(xs), one.best)) == repr((other.feed(xs), other.best))


def test_floats_that_are_added_up_stay_one_number():
    """No flag is carried where each iteration makes a float of it."""

    def f(xs):
        total = 0
        for x in xs:
            total += x
        return total

    graph = jt.jit(f).trace(np.ones(30))
    assert "bool" not in str(graph)


def rows_of_several_classes(x, k):
    """Numbers of NumPy's beside Python's, in rows and in one list: all stay what they are."""
    rows, floats, ints, found, either = [], [0.0], [0], {}, [7, 1.5]
    for i, v in enumerate(x):
        if v > 0:
            rows.append([v, 1, 0.5])
            rows[-1][1] += i
            rows[0][2] = floats[-1] * 2.0
            floats.append(v)
            either.append(k[i])
        else:
            floats.append(floats[-1] + 1.0)
            found[i] = -floats[-1]
        if k[i] > 4:
            ints.append(k[i])
            ints.append(ints[0] + 1)
            either.append(v)
    return rows, floats, ints, found, either, sum(floats), max(ints), floats[0] - 0.5


def test_numbers_of_numpy_beside_pythons() -> None:
    compiled = jt.jit(rows_of_several_classes)
    for sign in (1, -1):
        x = sign * np.array([0.5, -1.0, 2.0, 3.0, -2.0, 0.25])
        k = np.array([1, 7, 9, 2, 3, 5])
        assert repr(compiled(x, k)) == repr(rows_of_several_classes(x, k))
    slow = jt.jit(rows_of_several_classes, backend="interpreter")
    assert repr(slow(x, k)) == repr(rows_of_several_classes(x, k))


@pytest.mark.parametrize("rows", [[(0, 0), (1, 0.5), (2, 1)], [(1.0, True), (3, 2), (2, 7)]])
@pytest.mark.parametrize("backend", ["native", "interpreter"])
def test_rows_of_two_classes_in_a_column_that_are_given_back(rows, backend) -> None:
    def f(rows):
        return sorted(rows, key=lambda row: -row[0]), rows[0]

    compiled = jt.jit(f, backend=backend)
    for _ in range(2):
        assert repr(compiled(list(rows))) == repr(f(rows))
