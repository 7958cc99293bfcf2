"""Objects that were there before the call and hold each other, trees and lists of nodes.

Results, and what the objects are afterwards, are as in plain Python; many trees compile once."""

from collections import deque
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import jitney as jt

Q = np.array([0.3, 0.7])


class Node:
    def __init__(self, v, left=None, right=None):
        self.v, self.left, self.right = v, left, right


class Point:
    def __init__(self, p, axis, left, right):
        self.p, self.axis, self.left, self.right = p, axis, left, right


class Link:
    def __init__(self, v, after):
        self.v, self.after = v, after


class Term:
    __slots__ = ("a", "b", "op", "v")

    def __init__(self, op, a=None, b=None, v=0):
        self.op, self.a, self.b, self.v = op, a, b, v


class Area:
    def __init__(self, x, y, s):
        self.x, self.y, self.s = x, y, s
        self.parts, self.points = [], []

    def insert(self, p):
        if self.parts:
            self.parts[(p[0] >= self.x) + 2 * (p[1] >= self.y)].insert(p)
            return
        self.points.append(p)
        if len(self.points) > 4:
            h = self.s / 2
            self.parts = [Area(self.x + a * h, self.y + b * h, h) for b in (-1, 1) for a in (-1, 1)]
            points, self.points = self.points, []
            for q in points:
                self.insert(q)


def attach(root, v):
    n = root
    while True:
        if v < n.v:
            if n.left is None:
                n.left = Node(v)
                return n.left
            n = n.left
        else:
            if n.right is None:
                n.right = Node(v)
                return n.right
            n = n.right


def grown(n, seed=0):
    first, *rest = np.random.default_rng(seed).permutation(n).tolist()
    root = Node(first)
    for v in rest:
        attach(root, v)
    return root


def points(n, seed=0):
    def build(some, axis):
        if not len(some):
            return None
        some, m = some[some[:, axis].argsort(kind="stable")], len(some) // 2
        return Point(some[m], axis, build(some[:m], 1 - axis), build(some[m + 1 :], 1 - axis))

    return build(np.random.default_rng(seed).integers(0, 64, (n, 2)) / 64, 0)


def nearest(root, q):
    best, found, stack = 1e300, root.p, [root]
    while stack:
        n = stack.pop()
        if n is None:
            continue
        d = ((n.p - q) ** 2).sum()
        if d < best:
            best, found = d, n.p
        diff = q[n.axis] - n.p[n.axis]
        near, far = (n.left, n.right) if diff < 0 else (n.right, n.left)
        if diff * diff < best:
            stack.append(far)
        stack.append(near)
    return found, best


def look_up(root, x):
    n = root
    while n is not None and n.v != x:
        n = n.left if x < n.v else n.right
    return n


def depth(n):
    return 0 if n is None else 1 + max(depth(n.left), depth(n.right))


def by_levels(root):
    total, k, queue = 0, 0, deque([root])
    while queue:
        n = queue.popleft()
        k += 1
        total += k * n.v
        if n.left is not None:
            queue.append(n.left)
        if n.right is not None:
            queue.append(n.right)
    return total


def evaluate(t, x):
    if t.op == "x":
        return x
    if t.op == "number":
        return t.v
    a, b = evaluate(t.a, x), evaluate(t.b, x)
    return a + b if t.op == "+" else a * b


def term(depth, rng):
    if not depth:
        return Term("number", v=float(rng.random())) if rng.random() < 0.5 else Term("x")
    return Term("+*"[rng.integers(2)], term(depth - 1, rng), term(depth - 1, rng))


def added(link):
    total = 0.0
    while link is not None:
        total += link.v
        link = link.after
    return total


def linked(n, last=None):
    for k in range(n):
        last = Link(k / 2, last)
    return last


def inside(area, x0, x1):
    if area.x + area.s < x0 or area.x - area.s > x1:
        return 0
    n = 0
    for p in area.points:
        if x0 <= p[0] <= x1:
            n += 1
    for part in area.parts:
        n += inside(part, x0, x1)
    return n


def predicted(root, rows):
    out = np.empty(len(rows))
    for i in range(len(rows)):
        n = root
        while n.left is not None:
            n = (
                n.left
                if rows[i, n.axis] <= n.p[n.axis]
                else n.right
                if n.right is not None
                else n.left
            )
        out[i] = n.p.sum()
    return out


def in_order(n):
    return [] if n is None else [*in_order(n.left), (n.v, type(n.v)), *in_order(n.right)]


def check(f, compiled, *args):
    got, want = compiled(*args), f(*args)
    for a, b in zip(*(x if isinstance(x, tuple) else (x,) for x in (got, want)), strict=True):
        assert type(a) is type(b)
        np.testing.assert_allclose(a, b, rtol=1e-15)


@pytest.mark.parametrize("n", [12, 50], ids=["few", "many"])
def test_walks_with_a_stack_and_a_deque(n):
    f, g = jt.jit(nearest), jt.jit(by_levels)
    for seed in range(3):  # trees of other forms
        check(nearest, f, points(n + seed, seed), Q)
        check(by_levels, g, grown(n + seed, seed))
    if n == 50:
        assert f.cache_info().misses == 1 == g.cache_info().misses


def test_descents_give_the_very_node():
    root = grown(50)
    f = jt.jit(look_up)
    for x in (7, 33, 400):
        assert f(root, x) is look_up(root, x)


def test_recursive_walks():
    check(depth, jt.jit(depth), grown(60))
    check(evaluate, jt.jit(evaluate), term(6, np.random.default_rng(1)), 0.7)
    area, rng = Area(0.5, 0.5, 0.5), np.random.default_rng(2)
    for p in rng.random((120, 2)).tolist():
        area.insert(tuple(p))
    check(inside, jt.jit(inside), area, 0.2, 0.6)


def test_long_lists_and_rows():
    f = jt.jit(added)
    check(added, f, linked(40))
    assert f(linked(30_000)) == sum(k / 2 for k in range(30_000))
    check(predicted, jt.jit(predicted), points(60), np.random.default_rng(4).random((20, 2)))


def test_nodes_are_attached_to_nodes_of_outside():
    a, b = grown(50), grown(50)
    f = jt.jit(attach)
    held = a.left
    for v in (70, 300, -5):
        new = f(a, v)
        assert attach(b, v).v == v and type(new) is Node and new is look_up(a, v)
    assert in_order(a) == in_order(b) and a.left is held


class Index:
    def __init__(self, root):
        self.root, self.asked = root, 0

    def nearest(self, q):
        self.asked += 1
        return nearest(self.root, q)


def test_nodes_in_an_object_and_in_a_global():
    index = Index(points(50))
    f = jt.jit(index.nearest)
    for k in range(3):
        check(nearest, lambda root, q: f(q), index.root, Q)
        assert index.asked == k + 1
        index.root = points(40, k)


def test_what_changed_meanwhile_is_seen():
    root = grown(50)
    f = jt.jit(by_levels)
    check(by_levels, f, root)
    root.left.v, root.right.left = 1000, None
    check(by_levels, f, root)
    root.left.v = 0.5  # another class: it compiles once more
    check(by_levels, f, root)


def test_one_node_in_two_places_is_one():
    def mark(root, k):
        n = root
        while n.left is not None and k > 0:
            n = n.left
            k -= 1
        n.v = 77
        return root.right.v

    shared = grown(40)
    root = Node(1, shared, shared)
    assert jt.jit(mark)(root, 1) == 77 == shared.v and root.left is root.right is shared


def test_the_interpreter_does_the_same():
    check(nearest, jt.jit(nearest, backend="interpreter"), points(40), Q)
    check(evaluate, jt.jit(evaluate, backend="interpreter"), term(5, np.random.default_rng(1)), 0.7)


def test_numbers_of_another_class_are_refused():
    def spread(root, x):
        stack = [root]
        while stack:
            n = stack.pop()
            if n is None:
                continue
            if x[0] > n.v:
                n.v = x[0]
                stack.append(n.left)
            stack.append(n.right)

    root = grown(40)
    with pytest.raises(jt.errors.JitneyError):
        jt.jit(spread)(root, np.array([4.5]))
    assert in_order(root) == in_order(grown(40))


class Base:
    scale = 2

    def __init__(self, v, after):
        self.v, self.after = v, after


@dataclass
class Entry:
    v: float
    after: Any = None


def scaled(n):
    total = 0.0
    while n is not None:
        total += n.v * n.scale
        n = n.after
    return total


def test_data_of_the_class_and_defaults():
    entries = base = None
    for k in range(40):
        entries, base = Entry(k / 2, entries), Base(k / 2, base)
    assert jt.jit(added)(entries) == added(entries)
    f = jt.jit(scaled)
    assert f(base) == scaled(base)
    base.scale = 7
    assert f(base) == scaled(base)


def test_attributes_are_found_however_an_object_keeps_them():
    links = linked(40)
    f = jt.jit(added)
    assert f(links) == added(links)
    other, last = links.after, links.after.after
    links.__dict__ = {"after": links.after, "v": 100.0}  # which has keys of its own
    del other.v
    other.v = 200.0
    new = Link.__new__(Link)
    new.more, new.after, new.v = 5, last.after, 300.0
    last.after = new
    vars(new)
    assert f(links) == added(links)
    del new.v
    with pytest.raises((AttributeError, jt.errors.JitneyError)):
        f(links)


def test_attributes_that_only_some_have():
    def marked(n):
        k = 0
        while n is not None:
            k += getattr(n, "mark", 0)
            n = n.after
        return k

    links = linked(40)
    f = jt.jit(marked)
    assert f(links) == 0
    links.after.mark = 3
    assert f(links) == 3


def test_arrays_that_change_beside_nodes_that_hold_them():
    def raise_all(root, x):
        total = 0.0
        for i in range(len(x)):
            x[i] += 1.0
            total += root.p[0] + root.left.p[0]
        return total

    def tree():
        x = np.random.default_rng(0).random((40, 2))
        root = None
        for row in x:
            root = Point(row, 0, root, None)
        return root, x

    assert jt.jit(raise_all)(*tree()) == pytest.approx(raise_all(*tree()), rel=1e-14)


def test_only_what_is_asked_for_is_read():
    """A walk from the root costs what it visits: what lies elsewhere is not even looked at."""
    root = grown(300)
    f = jt.jit(look_up)
    for x in (7, 33):
        assert f(root, x) is look_up(root, x)
    far = root
    while far.right is not None:
        far = far.right
    far.v = "no number, and nobody comes here"
    assert f(root, -1) is None and f(root, 7) is look_up(root, 7)
    assert f.cache_info().misses == 1
    far = root
    while far.left is not None:
        far = far.left
    far.v = -0.5  # found where the walk comes to it, and seen as it is
    assert f(root, -7) is None
    assert f(root, -0.5) is far


def test_objects_that_several_hold_are_one_whoever_is_asked_first():
    def both(root, k):
        a, b = root.left, root.right
        n = a if k > 0 else b
        n.v += 5
        return a.v, b.v, a is b

    shared = grown(30)
    for k in (0, 1):
        for root in (Node(1, shared, shared), Node(1, grown(30), grown(40))):
            other = root if root.left is root.right else Node(1, grown(30), grown(40))
            got = jt.jit(both)(root, k)
            shared.v -= 5 if other is root else 0
            assert got == both(other, k)
            shared.v -= 5 if other is root else 0


def test_walks_that_fail_change_nothing_and_release_what_they_read():
    def walk(root, x, k):
        n = root
        while n is not None:
            n.v += 1
            k += x[k]
            n = n.left
        return k

    root, x = grown(40), np.ones(3, np.int64)
    before = in_order(root)
    f = jt.jit(walk)
    for _ in range(3):
        with pytest.raises(IndexError):
            f(root, x, 0)
        assert in_order(root) == before
    assert f(root, np.ones(300, np.int64), 0) > 0 and in_order(root) != before


def test_lists_and_arrays_of_nodes_come_with_them():
    area, rng = Area(0.5, 0.5, 0.5), np.random.default_rng(2)
    for p in rng.random((120, 2)).tolist():
        area.insert(tuple(p))
    f = jt.jit(inside)
    for x in (0.1, 0.3):
        check(inside, f, area, x, x + 0.05)
        area.insert((x + 0.01, 0.5))
        check(inside, f, area, x, x + 0.05)
    assert f.cache_info().misses == 1


class Kin:
    def __init__(self, v, up=None):
        self.v, self.up, self.left, self.right = v, up, None, None


def raised(root):
    total, stack = 0.0, [root]
    while stack:
        n = stack.pop()
        if n is None:
            continue
        n.v += 1.0
        if n.up is not None:  # which is the very node, and has been raised
            total += n.up.v - n.v
        stack.append(n.left)
        stack.append(n.right)
    return total


@pytest.mark.parametrize("backend", ["native", "interpreter"])
def test_nodes_that_know_what_they_hang_from(backend):
    def family(n):
        nodes = [Kin(0.5)]
        for k in range(1, n):
            up = nodes[(k - 1) // 2]
            nodes.append(Kin(float(k), up))
            setattr(up, "left" if k % 2 else "right", nodes[-1])
        return nodes

    f = jt.jit(raised, backend=backend)
    for n in (40, 300) if backend == "native" else (40,):
        mine, plain = family(n), family(n)
        for _ in range(2):
            assert f(mine[0]) == raised(plain[0])
            assert [x.v for x in mine] == [x.v for x in plain]
            assert all(x.up is mine[(k - 1) // 2] for k, x in enumerate(mine) if k)
