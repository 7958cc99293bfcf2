"""Native calls with objects: dataclasses of every kind, classes with functions of their own."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pytest
from native_calls import X, native_hits, same, warm

import jitney as jt


@dataclass
class Plain:
    x: Any
    y: Any = None


@dataclass(frozen=True)
class Frozen:
    x: Any
    y: Any = None


@dataclass(slots=True)
class Slots:
    x: Any
    y: Any = None


@dataclass
class Inherits(Plain):
    z: Any = 0.0


@dataclass
class Computes:
    x: Any
    y: Any = None
    z: Any = field(init=False)

    def __post_init__(self) -> None:
        self.x = self.x * 2.0  # twice would be seen
        self.z = self.x + 1.0


@dataclass(init=False)
class OwnInit:
    x: Any
    y: Any

    def __init__(self, both: Any, y: Any = None) -> None:
        self.x, self.y = both * 2.0, y


@dataclass
class OwnSetting:
    x: Any
    y: Any = None

    def __setattr__(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value * 2.0 if name == "x" else value)


@functools.partial(jt.register_pytree, static_fields=("power", "how"))
@dataclass(frozen=True)
class Fixed:
    x: Any
    power: int = 2
    y: Any = None
    how: Any = ("a", 1.0)


log: list[Any] = []
DATACLASSES = [Plain, Frozen, Slots, Inherits, Computes, OwnInit, OwnSetting, Fixed]


@pytest.mark.parametrize("cls", DATACLASSES)
def test_dataclasses_come_and_go_without_their_constructors(cls: Any) -> None:
    @jt.jit
    def f(given: Any) -> Any:
        return {"made": cls(given.x * 2.0), "same": given, "inner": Plain(cls(given.x.sum()))}

    first = f(cls(X))
    argument = cls(X)
    got = warm(f, argument)
    python = f.__wrapped__(cls(X))
    for name in got:
        _alike(got[name], python[name])
        _alike(got[name], first[name])
    assert got["same"] is argument


def _alike(got: Any, want: Any) -> None:
    assert type(got) is type(want)
    if type(want) not in DATACLASSES:
        same(got, want)
        return
    names = list(type(want).__dataclass_fields__)
    assert hasattr(got, "__dict__") == hasattr(want, "__dict__")
    assert set(getattr(got, "__dict__", names)) == set(getattr(want, "__dict__", names))
    for name in names:
        _alike(getattr(got, name), getattr(want, name))


# Classes with functions of their own


class Calls:
    """A class whose objects are taken apart and made by functions that keep a record."""

    def __init__(self, children: Any, static: Any = None) -> None:
        self.children, self.static = children, static


def _flatten(it: Calls) -> tuple[Any, Any]:
    log.append(("flatten", it))
    return tuple(it.children), it.static


def _unflatten(static: Any, children: Any) -> Calls:
    log.append(("unflatten", static, children))
    return Calls(list(children), static)


jt.register_pytree(Calls, _flatten, _unflatten)


def test_functions_of_classes_are_called_in_each_call() -> None:
    key = "a static value"
    f = jt.jit(
        lambda it, s: {
            "b": Calls([it.children[0] + s, None], it.static),
            "a": Calls(list(it.children), it.static),
        }
    )
    given = Calls([X, X[:2]], key)
    warm(f, given, 1.0)
    log.clear()
    got = f(given, 2.0)
    (flattened, argument), (_, first, children), (_, second, others) = log
    assert flattened == "flatten" and argument is given
    # As in the first call: in the order of the keys, the arrays themselves in a tuple.
    assert first is key and type(children) is tuple and children[0] is X
    assert second is key and type(others) is tuple and others[1] is None
    same(got["b"].children, [X + 2.0, None])
    assert list(got) == ["b", "a"]


def test_nested_in_containers_and_in_each_other() -> None:
    @jt.jit
    def f(tree: Any) -> Any:
        inner = tree["k"][0].children[1]
        return [Calls([Plain(inner.children[0] * 2, Calls([])), 3, tree["p"].x.children[0]]), None]

    for shift in (0.0, 1.0, 2.0):
        tree = {"k": (Calls([2.0, Calls([X + shift], 5)]),), "p": Plain(Calls([7]))}
        got = f(tree)
        made = got[0].children
        same(made[0].x, (X + shift) * 2)
        assert made[0].y.children == [] and made[1:] == [3, 7] and got[1] is None
    assert native_hits(f) == 2


def _as_lists(it: Any) -> Any:
    return list(it.children), it.static


def _as_generators(it: Any) -> Any:
    return (child for child in it.children), it.static


def _with_names(it: Any) -> Any:
    return tuple(it.children), it.static, tuple(map(str, range(len(it.children))))


@pytest.mark.parametrize("flatten", [_as_lists, _as_generators, _with_names])
def test_what_flatten_functions_may_give(flatten: Callable[[Any], Any]) -> None:
    class Other(Calls):
        pass

    jt.register_pytree(Other, flatten, lambda static, children: Other(list(children), static))
    f = jt.jit(lambda it: Other([it.children[1], it.children[0] + 1], it.static))
    for given in (X, X * 2):
        got = warm(f, Other([given, 2.5], ("s", 1)))
        assert got.static == ("s", 1) and got.children[0] == 2.5
        same(got.children[1], given + 1)
    assert native_hits(f) == 3


class Reversed(NamedTuple):
    first: Any
    second: Any


with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # that it is a container anyway
    jt.register_pytree(
        Reversed,
        lambda it: ((it.second, it.first), None),
        lambda _, parts: Reversed(parts[1], parts[0]),
    )


def test_a_named_tuple_with_functions_of_its_own() -> None:
    f = jt.jit(lambda it: Reversed(it.first * 2, it.second + 1))
    for _ in range(3):
        same(f(Reversed(X, X * 10)), Reversed(X * 2, X * 10 + 1))
    same(warm(f, Reversed(X, X * 10)), Reversed(X * 2, X * 10 + 1))
    outside = Reversed(X, X * 10)
    g = jt.jit(lambda x: x + outside.first - outside.second)
    for _ in range(3):
        same(g(X), X + X - X * 10)


class Setting:
    """A static value that can change inside."""

    def __init__(self, number: float) -> None:
        self.number = number

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Setting) and self.number == other.number

    def __hash__(self) -> int:
        return hash(self.number)


def _statics() -> Iterator[Any]:
    yield from (2, 3.5, 1, 0.0, 2, (3, "a"), (4.0, "a"))


def test_static_values_tell_calls_apart() -> None:
    @jt.jit
    def f(it: Any) -> Any:
        static = it.static[0] if isinstance(it.static, tuple) else it.static
        return it.children[0] * static

    whole = np.arange(3)
    for _ in range(3):
        for static in _statics():
            number = static[0] if isinstance(static, tuple) else static
            got = f(Calls([whole], static))
            same(got, whole * number)
            same(np.signbit(got), np.signbit(whole * number))
    setting = Setting(2.0)
    g = jt.jit(lambda it: it.children[0] * it.static.number)
    same(warm(g, Calls([X], setting)), X * 2.0)
    same(warm(g, Calls([X], Setting(2.0))), X * 2.0)
    setting.number = 3.0
    same(g(Calls([X], setting)), X * 3.0)
    same(g(Calls([X], setting)), X * 3.0)
    same(g(Calls([X], Setting(2.0))), X * 2.0)


def test_children_are_assigned_to_in_place() -> None:
    @jt.jit
    def f(it: Any, x: Any) -> Any:
        it.children[0][1:] += x[1:]

    kept = np.zeros(6)
    for n in (1, 2, 3):
        f(Calls([kept]), X)
        same(kept, np.r_[0.0, X[1:]] * n)
    f(Calls([kept]), kept)  # they share memory
    same(kept, np.r_[0.0, X[1:]] * 6)


def test_flatten_functions_that_raise_or_change_other_arguments() -> None:
    class Rude(Calls):
        pass

    behaviour: list[Callable[[], Any]] = [lambda: None]

    def flatten(it: Any) -> Any:
        behaviour[0]()
        return (it.children[0],), None

    jt.register_pytree(Rude, flatten, lambda _, children: Rude(children))
    f = jt.jit(lambda arrays, it: arrays[0] + it.children[0])
    for _ in range(3):
        same(f([X], Rude([X])), X + X)
    assert native_hits(f) == 2
    behaviour[0] = lambda: 1 // 0
    with pytest.raises(ZeroDivisionError):
        f([X], Rude([X]))
    arrays = [np.full(6, 3.0)]
    behaviour[0] = arrays.clear
    same(f(arrays, Rude([X])), X + 3.0)  # with the leaves that were there before
    assert arrays == []


def test_a_dataclass_may_get_functions_of_its_own_later() -> None:
    @dataclass
    class Late:
        x: Any
        y: Any

    same(jt.jit(lambda it: it.x - it.y)(Late(X, 1.0)), X - 1.0)
    jt.register_pytree(Late, lambda it: ((it.y, it.x), None), lambda _, c: Late(c[1], c[0]))
    f = jt.jit(lambda it: Late(it.x - it.y, it.y))
    for _ in range(3):
        got = f(Late(X, 1.0))
        same([got.x, got.y], [X - 1.0, 1.0])
    warm(f, Late(X, 1.0))


def test_one_array_in_several_places_of_a_result() -> None:
    def f(x: Any) -> Any:
        y = x + 1
        return [(y,), y, {"b": [y], "a": Calls([y])}, Plain((y,), y), y]

    def places(got: Any) -> list[Any]:
        inner = got[2]
        whole = [got[0][0], got[1], inner["b"][0], inner["a"].children[0]]
        return [*whole, got[3].x[0], got[3].y, got[4]]

    got = places(warm(jt.jit(f), X))
    for array in got:
        assert array is got[0]
        same(array, X + 1)
