"""Operators, properties and special methods of users' classes, with branches in them: as in Python."""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest

import jitney as jt


class Signed:
    """Whatever is asked of it depends on its sign."""

    def __init__(self, x: Any) -> None:
        self.x = x

    def __add__(self, other: Any) -> Any:
        if self.x > 0:
            return self.x + (other.x if isinstance(other, Signed) else other)
        return 0.5

    def __radd__(self, other: Any) -> Any:
        if self.x > 0:
            return other * 2
        return 7.0

    def __sub__(self, other: Any) -> Any:
        return NotImplemented

    def __neg__(self) -> Any:
        if self.x > 0:
            return self.x
        return 9.0

    def __abs__(self) -> Any:
        return self.x if self.x > 0 else -self.x

    def __matmul__(self, other: Any) -> Any:
        return self.x if other.x > 0 else other.x

    def __eq__(self, other: object) -> Any:
        if self.x == other.x:  # type: ignore[attr-defined]  # noqa: SIM103
            return True
        return False

    def __lt__(self, other: Any) -> Any:
        if self.x < other.x:  # noqa: SIM103
            return True
        return False

    def __bool__(self) -> Any:
        if self.x > 0:  # noqa: SIM103
            return True
        return False

    def __contains__(self, v: Any) -> Any:
        for part in (self.x, 2.0):  # noqa: SIM110
            if part == v:
                return True
        return False

    def __call__(self, v: Any) -> Any:
        if self.x > 0:
            return v
        return -v

    def __float__(self) -> Any:
        if self.x > 0:
            return float(self.x)
        return 0.0

    __hash__ = None  # type: ignore[assignment]


class Sized:
    def __init__(self, x: Any) -> None:
        self.x = x

    def __len__(self) -> Any:
        if self.x > 0:
            return 2
        return 0


@functools.total_ordering
class Ordered:
    def __init__(self, x: Any) -> None:
        self.x = x

    def __eq__(self, other: object) -> Any:
        return True if self.x == other.x else False  # type: ignore[attr-defined]  # noqa: SIM210

    def __lt__(self, other: Any) -> Any:
        if self.x < other.x:  # noqa: SIM103
            return True
        return False

    __hash__ = None  # type: ignore[assignment]


@dataclass(order=True)
class Pair:
    a: Any
    b: Any


class Named(NamedTuple):
    a: Any
    b: Any

    def __mul__(self, k: Any) -> Any:
        if self.a > 0:
            return self.b * k
        return self.a


class Least:
    """A descriptor."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = "_" + name

    def __get__(self, holder: Any, owner: Any = None) -> Any:
        value = getattr(holder, self.name)
        if value < 1:
            return 1.0
        return value

    def __set__(self, holder: Any, value: Any) -> None:
        if value > 5:
            value = 5.0
        setattr(holder, self.name, value)


class Held:
    low = Least()

    def __init__(self, x: Any) -> None:
        self.low = x
        self.log = 0.0

    @property
    def twice(self) -> Any:
        return self._low * 2  # type: ignore[attr-defined]

    @twice.setter
    def twice(self, value: Any) -> None:
        if value > 2:
            self._low = value
        else:
            self.log = value

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if self.log > 0:
            return self.log
        return 3.0

    def __enter__(self) -> Any:
        if self.low > 2:
            self.log = 4.0
        return self

    def __exit__(self, *error: Any) -> None:
        if self.low > 3:
            self.log += 1


def arithmetic(x: Any) -> Any:
    a, b = Signed(x[0]), Signed(x[1])
    total = 1.5
    total += b
    return a + b, a + 2.0, 2.0 + b, -a, abs(b), a @ b, total, x[1] + a, operator.add(a, b)


def comparisons(x: Any) -> Any:
    a, b = Signed(x[0]), Signed(x[1])
    c, d = Ordered(x[0]), Ordered(x[1])
    first = a == b, a != b, a < b, b > a
    return (*first, c <= d, c > d, c >= d, c == d, max(c, d).x, min(a, b).x, a in [b, Signed(1.0)])


def questions(x: Any) -> Any:
    a, b = Signed(x[0]), Signed(x[1])
    n = 0
    if a:
        n += 1
    if not b or Sized(x[1]):
        n += 2
    while a:
        a.x = -1.0
    return n, bool(b), x[1] in b, 5.0 not in b, len(Sized(x[0])), b(3.0), float(b), 1 if a else 2


def generated(x: Any) -> Any:
    p, q = Pair(x[0], x[1]), Pair(x[1], x[0])
    m = Named(x[0], x[1])
    return p == q, p != q, p == Pair(x[0], x[1]), m * 2.0, m == Named(x[0], 0.0), p is q


def attributes(x: Any) -> Any:
    a, b = Held(x[0]), Held(x[1])
    a.twice = x[1]
    with b as entered:
        b.low += 1
    return a.low, a.log, a.missing, b.low, entered.log, b.missing


def sums(x: Any) -> Any:
    return sum([Signed(x[0])], 3.0), functools.reduce(operator.add, [x[0], Signed(x[1])])


POINTS = [(1.0, 2.0), (-1.0, 2.0), (3.0, -2.5), (2.0, 2.0), (6.0, 5.5), (0.0, 0.0)]


@pytest.mark.parametrize(
    "f", [arithmetic, comparisons, questions, generated, attributes, sums], ids=lambda f: f.__name__
)
def test_special_methods_may_branch(f: Any) -> None:
    compiled = jt.jit(f)
    for point in POINTS:
        got, want = compiled(np.array(point)), f(np.array(point))
        assert [*map(float, got)] == [*map(float, want)], point


def test_errors_of_operators_are_pythons() -> None:
    def differ(x: Any) -> Any:
        return Signed(x[0]) - 1

    def order(x: Any) -> Any:
        return Sized(x[0]) < 1

    def unlike(x: Any) -> Any:
        return Pair(x[0], x[1]) < Named(x[0], x[1])

    for f in (differ, order, unlike):
        with pytest.raises(TypeError) as want:
            f(np.ones(2))
        with pytest.raises(TypeError, match=".") as got:
            jt.jit(f)(np.ones(2))
        assert str(got.value).splitlines()[0] == str(want.value)


def test_what_iterates() -> None:
    class Count:
        def __init__(self, n: int) -> None:
            self.n = n

        def __iter__(self) -> Iterator[int]:
            return iter(range(self.n))

    def f(x: Any) -> Any:
        total = 0.0
        for k in Count(4):
            total += x[k] if x[k] > 0 else k
        return total

    x = np.array([1.0, -2.0, 3.0, -4.0])
    assert jt.jit(f)(x) == f(x)


class Private:
    def __init__(self) -> None:
        self.__gain = 2.0

    @property
    def gain(self) -> Any:
        if self.__gain > 1.0:
            __found = self.__gain
        else:
            __found = 1.0
        return __found

    def run(self, x: Any, __least: Any) -> Any:
        import math as __m

        if x[0] > 0:
            __sum = x[0]
        else:
            __sum = -x[0]
        for __i in range(len(x)):
            __sum += x[__i] * self.gain
            if __sum > __least:
                __sum = __m.sqrt(__sum)
        while __sum > 1:
            __sum = __sum / 2

            def __less(__y: Any) -> Any:
                return __y - 0.125

            __sum = __less(__sum)
        try:
            __root = __m.sqrt(__sum)
        except ValueError as __error:
            __root = 0.0
        self.__gain, __rest = __sum, [__x + __root for __x in x]
        return __sum, __root, __rest


def test_private_names_are_those_of_the_class() -> None:
    results = []
    for run in (Private.run, jt.jit(Private.run)):
        one = Private()
        results.append([*run(one, np.array([2.0, -1.0, 3.0]), 5.0), vars(one)])
    np.testing.assert_equal(*results)
