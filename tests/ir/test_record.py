"""Records behave as dataclasses do."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from typing import Any, ClassVar

import pytest

from jitney.ir.record import field, fields, record, replace


@record
class Point:
    x: int
    y: Any = 0
    origin: ClassVar[int] = 7


@record
class Named(Point):
    name: str = field(default="", kw_only=True)
    y: Any = 5
    parts: list[int] = field(default_factory=list)


@record(frozen=False)
class Mutable:
    values: list[int]


@record(frozen=False, eq=False)
class Identity:
    value: int = 1


@record
class Nothing:
    """No fields."""


@record
class Checked:
    x: int

    def __post_init__(self) -> None:
        if self.x < 0:
            raise ValueError("negative")

    def __repr__(self) -> str:
        return "own"


@record
class OneOfItsOwn:
    x: int
    y: int

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OneOfItsOwn) and self.x == other.x

    def __hash__(self) -> int:
        return self.x


def test_arguments() -> None:
    point = Point(1, y=2)
    assert (point.x, point.y, point.origin) == (1, 2, 7)
    assert Point(1).y == 0
    named = Named(1, parts=[3], name="n")
    assert (named.x, named.y, named.parts, named.name) == (1, 5, [3], "n")
    assert Named(1).parts is not Named(1).parts
    for wrong in (lambda: Point(), lambda: Point(1, 2, 3), lambda: Named(1, 2, [], "n")):
        with pytest.raises(TypeError, match="__init__"):
            wrong()
    with pytest.raises(TypeError, match=r"Point.__init__\(\) .*'z'"):
        Point(1, z=2)  # type: ignore[call-arg]


def test_the_signature_is_that_of_a_dataclass() -> None:
    plain = dataclasses.make_dataclass("P", [("x", int), ("y", Any, 0)])
    assert Point(1) and Named(1)  # made at first use
    ours = inspect.signature(Point).parameters.values()
    theirs = inspect.signature(plain).parameters.values()
    assert [(p.name, p.kind, p.default) for p in ours] == [
        (p.name, p.kind, p.default) for p in theirs
    ]
    assert list(inspect.signature(Named).parameters) == ["x", "y", "parts", "name"]


def test_equality_hash_and_repr() -> None:
    assert Point(1, (2,)) == Point(1, (2,))
    assert hash(Point(1, (2,))) == hash(Point(1, (2,)))
    assert Point(1) != Point(2)
    assert Point(1) != (1, 0)
    assert Point(1, 5) != Named(1, 5)
    nan = float("nan")
    assert Point(1, nan) == Point(1, nan)  # the same object, as in a tuple
    assert repr(Point(1, "a")) == "Point(x=1, y='a')"
    assert repr(Named(1)) == "Named(x=1, y=5, name='', parts=[])"
    assert Nothing() == Nothing() and hash(Nothing()) == hash(()) and repr(Nothing()) == "Nothing()"
    assert Mutable([1]) == Mutable([1])
    with pytest.raises(TypeError, match="unhashable"):
        hash(Mutable([1]))
    assert Identity() != Identity()
    assert len({Identity(), Identity()}) == 2


def test_what_a_class_defines_stays() -> None:
    assert repr(Checked(1)) == "own"
    with pytest.raises(ValueError, match="negative"):
        Checked(-1)
    assert OneOfItsOwn(1, 2) == OneOfItsOwn(1, 3)
    assert hash(OneOfItsOwn(4, 2)) == 4


def test_replace_and_fields() -> None:
    named = Named(1, parts=[3], name="n")
    assert replace(named, name="m") == Named(1, parts=[3], name="m")
    assert replace(named).parts is named.parts
    assert fields(Named) == fields(named) == ("x", "y", "name", "parts")
    with pytest.raises(ValueError, match="negative"):
        replace(Checked(1), x=-1)
    with pytest.raises(TypeError):
        replace(named, other=1)


@pytest.mark.parametrize("one", [Point(1, (2,)), Named(1, parts=[1]), Nothing(), Mutable([2])])
def test_copies(one: Any) -> None:
    assert pickle.loads(pickle.dumps(one)) == one
    assert copy.deepcopy(one) == one == copy.copy(one)


def test_patterns() -> None:
    match Named(1, 2, [3]):
        case Named(x, y, parts):
            assert (x, y, parts) == (1, 2, [3])
        case _:
            raise AssertionError


def test_first_instances_are_like_later_ones() -> None:
    """The first ones of a class are made without code of their own."""

    @record
    class Pair:
        a: int
        b: list[int] = field(default_factory=list)
        c: int = field(default=3, kw_only=True)

        def __post_init__(self) -> None:
            self.sum = self.a + self.c

    for _ in range(20):
        assert list(vars(Pair(1, c=2)).items()) == [("a", 1), ("b", []), ("c", 2), ("sum", 3)]
        assert Pair(1) == Pair(a=1, b=[]) and Pair(1).b is not Pair(1).b
    for wrong in (
        lambda: Pair(),
        lambda: Pair(1, [], 2),
        lambda: Pair(1, a=1),
        lambda: Pair(1, d=1),
    ):

        @record
        class Pair:  # type: ignore[no-redef]
            a: int
            b: int = 1
            c: int = field(default=3, kw_only=True)

        with pytest.raises(TypeError, match="__init__"):
            wrong()
