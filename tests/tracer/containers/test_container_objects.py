"""Objects of users' classes that compiled loops make: lists, trees and queues of them, as in Python"""

from __future__ import annotations

import heapq
import math
from typing import Any

import numpy as np
import pytest

import jitney as jt


class Node:
    def __init__(self, key: Any, following: Any = None) -> None:
        self.key = key
        self.next = following


class Leaf:
    def __init__(self, key: Any) -> None:
        self.key, self.left, self.right = key, None, None
        self.count = 1


class Tree:
    def __init__(self) -> None:
        self.root: Any = None
        self.size = 0

    def insert(self, key: Any) -> Any:
        if self.root is None:
            self.root = Leaf(key)
            self.size += 1
            return True
        at = self.root
        while True:
            if key < at.key:
                if at.left is None:
                    at.left = Leaf(key)
                    self.size += 1
                    return True
                at = at.left
            elif key > at.key:
                if at.right is None:
                    at.right = Leaf(key)
                    self.size += 1
                    return True
                at = at.right
            else:
                at.count += 1
                return False

    def find(self, key: Any) -> Any:
        at = self.root
        while at is not None:
            if key == at.key:
                return at
            at = at.left if key < at.key else at.right
        return None

    def keys(self) -> Any:
        out: list[Any] = []
        stack: list[Any] = []
        at = self.root
        while stack or at is not None:
            while at is not None:
                stack.append(at)
                at = at.left
            at = stack.pop()
            out.append(at.key)
            at = at.right
        return out


class Vector:
    def __init__(self, x: Any, y: Any) -> None:
        self.x, self.y = x, y

    def __add__(self, other: Any) -> Any:
        return Vector(self.x + other.x, self.y + other.y)

    def __mul__(self, k: Any) -> Any:
        if k < 0:
            return Vector(self.y * k, self.x * k)
        return Vector(self.x * k, self.y * k)

    def __neg__(self) -> Any:
        if self.x > 0:
            return Vector(-self.x, self.y)
        return self

    @property
    def length(self) -> Any:
        return math.sqrt(self.x**2 + self.y**2)


class Job:
    def __init__(self, priority: Any, name: Any) -> None:
        self.priority, self.name = priority, name
        self.done = False

    def __lt__(self, other: Any) -> Any:
        return self.priority < other.priority


def reversed_list(x: Any) -> Any:
    head = None
    for i in range(len(x)):
        if x[i] > 2:
            head = Node(x[i], head)
    before = None
    while head:
        head.next, before, head = before, head, head.next
    return before


def folded(x: Any) -> Any:
    head = None
    for v in x:
        head = Node(v, head)
    total, n = 0.0, 0
    at = head
    while at is not None:
        total = total / 2 + at.key
        n += 1
        at = at.next
    return total, n


def tree(x: Any) -> Any:
    made = Tree()
    for v in x:
        made.insert(v)
    found = made.find(x[-1])
    return made, made.keys(), found is None, made.find(77.0) is None


def vectors(x: Any) -> Any:
    a, turns = Vector(0.0, 0.0), 0
    for v in x:
        a = a + Vector(float(v), 1.0)
        if a.length > 4:
            a = -a * 0.5
            turns += 1
    return a, turns


def chosen(x: Any) -> Any:
    a = Vector(1.0, 2.0)
    b = a if x[0] > 2 else Vector(3.0, 4.0)
    b.x = 10.0
    return a, b is a, b


def jobs(x: Any) -> Any:
    queue: list[Any] = []
    every: list[Any] = []
    for i in range(len(x)):
        if x[i] > 0:
            job = Job(x[i], i)
            heapq.heappush(queue, job)
            every.append(job)
    order = []
    while queue:
        job = heapq.heappop(queue)
        job.done = job.priority > 3
        order.append(job.name)
    return order, every


def ordered(x: Any) -> Any:
    jobs: list[Any] = []
    for i in range(len(x)):
        if x[i] > 0:
            jobs.append(Job(x[i], i))
    jobs.sort()
    backwards = sorted(jobs, reverse=True)
    by_name = sorted(jobs, key=lambda job: -job.name)
    return [[job.name for job in some] for some in (jobs, backwards, by_name)]


def content(x: Any, seen: dict[int, Any] | None = None) -> Any:
    """All that is in a result, with who is whom."""
    seen = {} if seen is None else seen
    if isinstance(x, (list, tuple)):
        return [content(part, seen) for part in x]
    if not hasattr(x, "__dict__"):
        return type(x), x
    if id(x) in seen:
        return seen[id(x)]
    seen[id(x)] = len(seen)
    parts = sorted(vars(x).items())
    return type(x), seen[id(x)], [(name, content(part, seen)) for name, part in parts]


PROGRAMS = [reversed_list, folded, tree, vectors, chosen, jobs, ordered]
VALUES = [[5.0, 3.0, 8.0, 1.0, 4.0, 3.0], [2.0, 2.0, -1.0, 7.0, 0.0, 9.0]]


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_as_in_python(f: Any) -> None:
    """Compiled; and interpreted, for another length."""
    compiled, interpreted = jt.jit(f), jt.jit(f, backend="interpreter")
    for g, values in [*((compiled, values) for values in VALUES), (interpreted, [1.0])]:
        x = np.array(values)
        assert content(g(x)) == content(f(x))


def test_interpreted() -> None:
    x = np.array(VALUES[0])
    assert content(jt.jit(jobs, backend="interpreter")(x)) == content(jobs(x))


def test_long_lists_leave() -> None:
    def f(x: Any) -> Any:
        head = None
        for v in x:
            head = Node(v, head)
        return head

    got, n = jt.jit(f)(np.arange(20_000.0)), 0
    while got is not None:
        got, n = got.next, n + 1
    assert n == 20_000


def test_errors_are_pythons() -> None:
    def f(x: Any) -> Any:
        head = None
        for v in x:
            head = Node(v, head) if v > 0 else head.next
        return head.key

    compiled = jt.jit(f)
    assert compiled(np.array([1.0, 2.0, -1.0])) == 1.0
    for values in ([-1.0, 2.0], [1.0, -1.0]):
        with pytest.raises(AttributeError, match="'NoneType' object has no attribute"):
            compiled(np.array(values))


def test_what_is_refused() -> None:
    class Late:
        def __init__(self, x: Any) -> None:
            if x > 1:
                self.x = x

    class Mixed:
        def __init__(self, x: Any) -> None:
            self.x = x

    def late(x: Any) -> Any:
        some = []
        for v in x:
            if v > 0:
                some.append(Late(v))
        return some[0].x

    def mixed(x: Any) -> Any:
        some = []
        for v in x:
            if v > 0:
                some.append(Mixed(v))
        some[0].x = np.float32(2)
        return len(some)

    with pytest.raises(jt.errors.CarryError, match=r"does not always set"):
        jt.jit(late)(np.ones(9))
    with pytest.raises(jt.errors.CarryError, match=r"'x' of several types"):
        jt.jit(mixed)(np.ones(9))
