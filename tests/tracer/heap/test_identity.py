"""What functions return of what they were given, and what they make: the very objects, as in Python."""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from state_cases import Box
from stateful import portrait
from support import misses

import jitney as jt

SHARED = {"w": np.arange(3.0)}
Pair = namedtuple("Pair", "first second")


@dataclass
class Point:
    x: float
    y: float


class Vector:
    """Changes by operators, and makes others of its kind."""

    def __init__(self, x: Any, y: Any = 0.0) -> None:
        self.x, self.y = x, y

    def __add__(self, other: Any) -> Any:
        return Vector(self.x + other.x, self.y + other.y)

    def __iadd__(self, other: Any) -> Any:
        self.x += other.x
        return self

    def __call__(self, x: Any) -> Any:
        self.x = x
        return self

    def scaled(self, k: Any) -> Any:
        return Vector(self.x * k, self.y * k)


class Slotted:
    __slots__ = ("u", "v")

    def __init__(self, u: Any) -> None:
        self.u = u


def sort(a: Any) -> Any:
    a.sort()
    return a


def several_places(a: Any) -> Any:
    return [a], {"k": (a, a)}


def bubbles(a: Any) -> Any:
    for i in range(len(a)):
        for j in range(len(a) - 1 - i):
            if a[j] > a[j + 1]:
                a[j], a[j + 1] = a[j + 1], a[j]
    return a


def the_inner(d: Any) -> Any:
    d["n"] = d["n"] + 1
    return d["inner"]


def put(d: Any, x: Any) -> Any:
    d["x"] = x
    return d


def owner(p: Any, q: Any) -> Any:
    p.other, q.other = q, p
    return [q, p]


def augmented(p: Any, q: Any) -> Any:
    p += q
    return p


def of_all_kinds(x: Any) -> Any:
    table = defaultdict(list)
    table[1].append(x)
    return {1, 2}, frozenset([3]), Counter({"a": 2}), deque([x], maxlen=2), table, OrderedDict(a=x)


def made(x: Any) -> Any:
    v = Vector(x)
    return {"v": v, "again": v, "other": v.scaled(2.0), "slots": Slotted(x), "pair": Pair(x, {1})}


def until_sorted(a: Any) -> Any:
    swapped = True
    while swapped:
        swapped = False
        for i in range(1, len(a)):
            if a[i - 1] > a[i]:
                a[i - 1], a[i] = a[i], a[i - 1]
                swapped = True
        if not swapped:
            return a
    return a


def early(a: Any, x: Any) -> Any:
    for i in range(len(a)):
        if a[i] > x:
            a[i] = x
            return a
    a[0] = x
    return a


def unless_nothing(n: Any, m: Any, a: Any) -> Any:
    if n <= 0:
        return None
    if m == 0:
        return None
    if m == 1:
        for i in range(n):
            a[i] = a[i] + 1
    else:
        a[:n] *= 2
    return a


def one_of_two(a: Any, b: Any, x: Any) -> None:
    c = a if x > 0 else b
    c[0] = 9


def one_of_two_made(x: Any) -> Any:
    a, b = [1, 2], [1, 2]
    if x > 0:
        c = a
    else:
        c = b
    c.append(3)
    return a, b


CASES: dict[str, tuple[Callable[..., Any], Callable[[], list[Any]]]] = {
    "list": (lambda a: a, lambda: [[3.0, 1.0]]),
    "sorted list": (sort, lambda: [[3.0, 1.0, 2.0]]),
    "list in several places": (several_places, lambda: [[3.0, 1.0]]),
    "bubble sort": (bubbles, lambda: [[3, 1, 2]]),
    "sorted until it is": (until_sorted, lambda: [[3, 1, 2]]),
    "returned early": (early, lambda: [[3, 1, 2], 2]),
    "returned late": (early, lambda: [[3, 1, 2], 7]),
    "array, or nothing": (unless_nothing, lambda: [2, 1, np.arange(3.0)]),
    "nothing, or an array": (unless_nothing, lambda: [2, 0, np.arange(3.0)]),
    "array, or nothing, as a whole": (unless_nothing, lambda: [2, 2, np.arange(3.0)]),
    "one of two that are equal": (one_of_two, lambda: [[1, 2], [1, 2], -1.0]),
    "one of two that are made": (one_of_two_made, lambda: [-1.0]),
    "list of arrays": (lambda a: a[::-1], lambda: [[np.zeros(2), np.ones(3)]]),
    "list in a tuple": (lambda t: t[0], lambda: [([1.0], 2.0)]),
    "list by name": (lambda x, *, a: [a, x], lambda: [1.0]),
    "dict": (lambda d: d, lambda: [{"a": 1.0, "b": [2.0]}]),
    "inner dict": (the_inner, lambda: [{"n": 1, "inner": {"k": 2.0}}]),
    "array into a dict": (put, lambda: [{"x": 1.0}, np.arange(3.0)]),
    "deque": (lambda q: (q, q), lambda: [deque([1.0, 2.0], maxlen=3)]),
    "dataclass": (lambda p: p, lambda: [Point(1.0, 2.0)]),
    "object": (lambda p, x: (p, p.x * x), lambda: [Vector(np.ones(2)), 2.0]),
    "objects of objects": (owner, lambda: [Vector(1.0), Vector(2.0)]),
    "added objects": (lambda p, q: p + q, lambda: [Vector(1.0), Vector(2.0)]),
    "augmented object": (augmented, lambda: [Vector(1.0), Vector(2.0)]),
    "called object": (lambda p, x: p(x), lambda: [Vector(1.0), 3.0]),
    "list of objects": (lambda v: v[1:], lambda: [[Vector(1.0), Vector(2.0)]]),
    "of all kinds": (of_all_kinds, lambda: [2.0]),
    "made": (made, lambda: [2.0]),
    "global": (lambda x: [SHARED, SHARED["w"] * x], lambda: [2.0]),
}


@pytest.mark.parametrize("name", CASES)
def test_the_very_objects(name: str) -> None:
    function, make = CASES[name]
    compiled, pictures = jt.jit(function), []
    for f in (function, compiled, compiled, compiled):
        args, names = make(), {"a": [7.0]} if name == "list by name" else {}
        result = f(*args, **names)
        pictures.append(portrait(SHARED, args, names, result))
    assert all(picture == pictures[0] for picture in pictures[1:])
    assert misses(compiled) == 1


def test_other_content_runs_the_same_code() -> None:
    compiled = jt.jit(bubbles)
    for values in ([3.0, 1.0, 2.0], [1.0, 5.0, 4.0], [9.0, 8.0, 7.0]):
        items = list(values)
        assert compiled(items) is items and items == sorted(values)
    assert misses(compiled) == 1


def test_methods_that_return_their_object() -> None:
    def chained(box: Any, x: Any) -> Any:
        box.n = box.n + x
        return box

    compiled, box = jt.jit(chained), Box(n=1.0)
    assert compiled(compiled(box, 2.0), 3.0) is box and box.n == 6.0


def test_a_dataclass_beside_other_results_is_the_argument_and_compiles_once() -> None:
    f = jt.jit(lambda p: {"sum": p.x + p.y, "same": p, "made": Point(p.y, p.x * 2)})
    for k in range(4):
        point = Point(np.arange(3.0) + k, np.ones(3))
        got = f(point)
        assert got["same"] is point and got["made"].x is point.y
        assert np.array_equal(got["sum"], point.x + 1) and np.array_equal(
            got["made"].y, point.x * 2
        )
    assert misses(f) == 1


class Net:
    def __init__(self) -> None:
        self.layer, self.output, self.weights = np.ones(3), np.zeros(3), np.ones(3)

    def forward(self, x: Any) -> Any:
        self.layer = np.tanh(x * self.weights)
        return self.layer

    def train(self, x: Any, n: Any) -> None:
        for _ in range(n):
            self.output = self.forward(x)
            self.weights = self.weights + self.output

    def choose(self, x: Any, n: Any) -> None:
        if n > 2:
            self.output = self.layer = x * 2
        else:
            self.output, self.layer = x * 3, x * 2

    def meet(self, x: Any, n: Any) -> None:
        for i in range(n):
            if x[i] > 0:
                self.output = self.layer = x * 2
            else:
                self.output = x * 3


@pytest.mark.parametrize("name", ["train", "choose", "meet"])
def test_what_loops_and_branches_give_two_names_is_one_array_afterwards(name: str) -> None:
    plain, compiled = Net(), Net()
    f = jt.jit(getattr(Net, name))
    for x, n in [
        (np.ones(3), 3),
        (np.arange(3.0), 2),
        (np.arange(3.0), 0),
        (np.arange(-1.0, 2), 3),
    ]:
        getattr(plain, name)(x, n)
        f(compiled, x, n)
        assert portrait(compiled) == portrait(plain)
        assert (compiled.output is compiled.layer) == (plain.output is plain.layer)


class Drawer:
    def __init__(self, rng: Any) -> None:
        self.rng, self.w = rng, np.ones(2)

    def __repr__(self) -> str:
        return str(vars(self))  # so all attributes are read


def test_two_objects_share_a_generator() -> None:
    """As a network and what an optimiser keeps for it do."""
    one, other = Drawer(np.random.default_rng(1)), [Drawer(None)]

    @jt.jit
    def f(x: Any) -> Any:
        return one.rng.random(2) * other[0].w + x

    plain = np.random.default_rng(1)
    other[0].rng = one.rng
    for _ in range(4):
        assert np.array_equal(f(1.0), plain.random(2) + 1)
    assert misses(f) == 1
    other[0].rng = np.random.default_rng(2)
    assert np.array_equal(f(1.0), plain.random(2) + 1)
