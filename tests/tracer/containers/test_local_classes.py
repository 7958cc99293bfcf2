"""Classes that the compiled function defines, and lists that dataclasses make for their objects."""

from dataclasses import dataclass, field

import numpy as np
import pytest

import jitney as jt

X = np.array([5.0, 3.0, 8.0, 1.0, 9.0, 2.0])


def tree(xs):
    class Node:
        def __init__(self, v):
            self.v, self.left, self.right = v, None, None

    root = None
    for x in xs:
        new = Node(x)
        if root is None:
            root = new
            continue
        at = root
        while True:
            if x < at.v:
                if at.left is None:
                    at.left = new
                    break
                at = at.left
            else:
                if at.right is None:
                    at.right = new
                    break
                at = at.right
    found = []

    def walk(node):
        if node is not None:
            walk(node.left)
            found.append(node.v)
            walk(node.right)

    walk(root)
    return found


def of_one_name(xs):
    def make():
        class Node:
            def __init__(self, v, behind):
                self.v, self.behind = v, behind

        return Node

    large, small, a, b = make(), make(), None, None
    for x in xs:
        if x > 3:
            a = large(x, a)
        else:
            b = small(x, b)
    total = 0.0
    while a is not None:
        total, a = 2 * total + a.v, a.behind
    return total, b.v, large.__qualname__


def account(xs):
    class Account:
        def __init__(self, balance):
            self.balance, self.history = balance, []

        def apply(self, x):
            if self.balance + x >= 0:
                self.balance += x
                self.history.append(("deposit" if x > 0 else "withdrawal", x))
            else:
                self.history.append(("refused", x))

    own = Account(0.5)
    for x in xs:
        own.apply(x - 4)
    return own.balance, own.history


@dataclass
class Trader:
    cash: float = 100.0
    shares: int = 0
    log: list = field(default_factory=list)


def trades(prices, kind=Trader):
    a = kind()
    for i, p in enumerate(prices):
        if p < 3 and a.cash >= p:
            a.shares += 1
            a.cash -= p
            a.log.append(("buy", i))
        elif p > 6 and a.shares > 0:
            a.cash += p * a.shares
            a.shares = 0
            a.log.append(("sell", i))
    return a.cash, a.shares, a.log


def trades_of_local_class(prices):
    @dataclass
    class Own:
        cash: float = 100.0
        shares: int = 0
        log: list = field(default_factory=list)

    return trades(prices, Own)


PROGRAMS = (tree, of_one_name, account, trades, trades_of_local_class)


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_objects_are_as_in_python(f):
    jitted = jt.jit(f)
    for x in (X, X[::-1].copy()):
        assert repr(jitted(x)) == repr(f(x))


@dataclass
class Point:
    x: float
    y: float = 1.0

    def norm(self):
        return self.x**2 + self.y**2


class Near:
    def __init__(self, v):
        self.v = v

    def __eq__(self, other):
        return abs(self.v - other.v) < 0.5


def changed_later(xs):
    points, one, ones = [], Point(xs[0]), []
    for x in xs:
        if x > 3:
            points.append(Point(x))
            ones.append(one)
        one.x += 1.0
    points[0].x = xs[1]
    for p in points:
        p.y += p.x
    return [(p.x, p.y) for p in points], [p.x for p in ones], points[0].norm()


def of_local_dataclass(xs):
    @dataclass
    class Job:
        at: float
        names: dict = field(default_factory=dict)

        def note(self, key, value):
            self.names[key] = value

        def __post_init__(self):
            self.late = self.at > 4

    jobs = []
    first = Job(xs[0])
    for i, x in enumerate(xs):
        if x > 2:
            jobs.append(Job(x))
            first.note(i, x)
    return [(j.at, bool(j.late)) for j in jobs], first.names


def begun_with_a_condition(xs):
    @dataclass
    class Large:
        xs: list
        found: list = field(default_factory=list)

        def __post_init__(self):
            for x in self.xs:
                if x > 4:
                    self.found.append(x)

    return Large(xs).found


def searched(xs):
    points, near, rows = [], [], []
    for x in xs:
        if x > 2:
            points.append(Point(x))
            near.append(Near(x))
            rows.append([int(x), 1])
    points.remove(Point(8.0))
    found = Point(5.0) in points, points.index(Point(3.0)), len(points), Point(7.0) in points
    return found, Near(8.2) in near, Near(7.0) in near, [9, 1] in rows, rows.count([9, 2])


@pytest.mark.parametrize(
    "f",
    [changed_later, of_local_dataclass, begun_with_a_condition, searched],
    ids=lambda f: f.__name__,
)
def test_objects_of_dataclasses_are_objects(f):
    jitted = jt.jit(f)
    for x in (X, X[::-1].copy()):
        assert repr(jitted(x)) == repr(f(x))
