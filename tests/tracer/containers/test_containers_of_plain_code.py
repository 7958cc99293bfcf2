"""Containers that functions make to which nothing traced is given, `__init__` above all.

Those run as Python, and what they have made grows in compiled loops and branches as what is written down
there does.
"""

import copy
from collections import Counter, deque

import numpy as np
import pytest

import jitney as jt
from jitney.errors import JitneyError

SHARED = [0.0]


class Stack:
    def __init__(self):
        self.items = []

    def push(self, x):
        self.items.append(x)

    def pop(self):
        return self.items.pop()

    def __len__(self):
        return len(self.items)


class Sets:
    def __init__(self, n):
        self.parent = list(range(n))
        self.count = n

    def find(self, a):
        while self.parent[a] != a:
            self.parent[a] = self.parent[self.parent[a]]
            a = self.parent[a]
        return a

    def union(self, a, b):
        a, b = self.find(a), self.find(b)
        if a != b:
            self.parent[a] = b
            self.count -= 1


class Everything:
    def __init__(self):
        self.seen, self.order, self.counts, self.queue = set(), {}, Counter(), deque()


class Holder:
    def __init__(self):
        self.items = SHARED


def made():
    return []


def shared():
    return SHARED


def branches(codes):
    stack = Stack()
    for code in codes:
        if code == 0:
            stack.push(1.0)
        elif len(stack) > 0:
            stack.pop()
    return len(stack), stack.items


def union_find(edges):
    sets = Sets(50)
    for a, b in edges:
        sets.union(a, b)
    return sets.count


def returned(codes):
    items = made()
    for code in codes:
        if code == 0:
            items.append(2.0)
    return items


def two_of_them(codes):
    a, b = Stack(), Stack()
    for code in codes:
        if code == 0:
            a.push(1.0)
        else:
            b.push(2.0)
    return a.items, b.items


def all_classes(codes):
    e = Everything()
    for i, code in enumerate(codes):
        c = int(code)
        if c not in e.seen:
            e.seen.add(c)
        e.order[c] = i
        e.counts[c] += 1
        if c > 0:
            e.queue.append(i)
    return len(e.seen), e.order, e.counts, e.queue


class Graph:
    def __init__(self, n):
        self.n, self.neighbours = n, [[] for _ in range(n)]

    def add(self, a, b):
        self.neighbours[a].append(b)
        self.neighbours[b].append(a)

    def distances(self, start):
        found = [-1] * self.n
        found[start] = 0
        queue = deque([start])
        while queue:
            u = queue.popleft()
            for v in self.neighbours[u]:
                if found[v] < 0:
                    found[v] = found[u] + 1
                    queue.append(v)
        return found


def breadth_first(codes):
    graph = Graph(12)
    for i, code in enumerate(codes):
        graph.add(i % 12, int(code) * 3)
    return graph.distances(0)


class Robot:
    directions = ((0, 1), (1, 0), (0, -1), (-1, 0))

    def __init__(self):
        self.x = self.y = self.heading = 0
        self.seen = {(0, 0)}

    def do(self, code):
        if code == 0:
            self.heading = (self.heading + 1) % 4
        elif code == 1:
            self.heading = (self.heading - 1) % 4
        else:
            dx, dy = self.directions[self.heading]
            self.x += dx
            self.y += dy
            self.seen.add((self.x, self.y))


def robot(codes):
    r = Robot()
    for code in codes:
        r.do(code)
    return r.x, r.y, r.heading, len(r.seen)


def grouped(codes):
    table = {}
    for i, code in enumerate(codes):
        table.setdefault(int(code), []).append(i)
    return {key: sum(group) for key, group in sorted(table.items())}


def set_by_branch(codes):
    seen = {0}
    if len(codes) and codes[0] > 0:
        seen.add(1)
    return len(seen), seen


def of_outside(codes):
    items = shared()
    for code in codes:
        if code == 0:
            items.append(1.0)


def held_of_outside(codes):
    holder = Holder()
    for code in codes:
        if code == 0:
            holder.items.append(1.0)


PROGRAMS = [branches, returned, two_of_them, all_classes, breadth_first, robot, grouped]
PROGRAMS += [set_by_branch]


@pytest.mark.parametrize("function", PROGRAMS)
@pytest.mark.parametrize("n", [0, 5, 300])
def test_they_grow(function, n):
    codes = np.random.default_rng(n).integers(0, 3, n)
    assert repr(jt.jit(function)(codes)) == repr(function(codes))


def test_union_find():
    edges = np.random.default_rng(1).integers(0, 50, (60, 2))
    assert jt.jit(union_find)(edges) == union_find(edges)


@pytest.mark.parametrize("function", [of_outside, held_of_outside])
def test_what_others_have_is_theirs(function):
    codes = np.array([0, 1, 0])
    SHARED[:] = [0.0]
    function(codes)
    want = copy.copy(SHARED)
    SHARED[:] = [0.0]
    before = SHARED
    try:
        jt.jit(function)(codes)
    except JitneyError:
        assert SHARED == [0.0]  # refused, and nothing done
    else:
        assert want == SHARED and SHARED is before
