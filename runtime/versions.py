"""Where CPython counts changes: the version of a dict, and of a class with its bases; and where it keeps
what no count covers, the names of classes and functions and the dict of an object.

A version is a number that no later state has again, so one comparison tells that nothing was assigned
to any name since it was read. The offsets are CPython's own; they are verified on live objects, and None
where this Python keeps no such count or keeps it elsewhere.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from types import FunctionType
from typing import Any

_DICT_VERSION = object.__basicsize__ + 8  # after `ma_used`
_DICT_VALUES = object.__basicsize__ + 24  # `ma_values`: of an object's dict only
_CLASS_VERSION = object.__basicsize__ + 8 + 45 * 8  # `tp_version_tag`, 0: it has none now


def dict_version(names: dict[str, Any]) -> int | None:
    """The address of the 64-bit version of a dict."""
    counts = _dicts_count() and (_attributes_count() or not _word(id(names) + _DICT_VALUES))
    return id(names) + _DICT_VERSION if counts else None


def class_version(cls: type) -> tuple[int, int] | None:
    """The address of the 32-bit version of a class, and what it is now."""
    if not _classes_count():
        return None
    version = _read_class(cls)
    return (id(cls) + _CLASS_VERSION, version) if version else None


def name_places(value: type | FunctionType) -> list[tuple[int, Any]] | None:
    """The addresses where a user's class, or a function, keeps its names, and what they are."""
    kind = type if isinstance(value, type) else FunctionType
    places = _names_of(kind)
    if places is None:
        return None
    return [(id(value) + offset, getattr(value, name)) for name, offset in places]


def dict_place(value: Any) -> int | None:
    """The address where an object keeps its dict; None where it keeps it elsewhere than most do."""
    place = id(value) - 24  # before the header of the garbage collector
    return place if _word(place) == id(vars(value)) else None


def _word(address: int) -> int:
    return ctypes.c_uint64.from_address(address).value


@lru_cache(maxsize=2)
def _names_of(kind: type) -> list[tuple[str, int]] | None:
    """Where objects of a kind keep their names: found in one that has others than any other object."""
    names = ["__name__", "__qualname__"]
    probe: Any = type("Probe", (), {})
    if kind is FunctionType:
        names += "__doc__", "__module__"
        probe = eval("lambda: None")
    for name in names:
        setattr(probe, name, f"{name} of a probe")
    words = [_word(id(probe) + offset) for offset in range(0, kind.__basicsize__, 8)]
    found = [id(getattr(probe, name)) for name in names]
    if any(words.count(name) != 1 for name in found):
        return None
    return [(name, 8 * words.index(word)) for name, word in zip(names, found, strict=True)]


def _read_class(cls: type) -> int:
    with suppress(AttributeError):
        type.__getattribute__(cls, "_")  # a class gets a version when a name is looked up
    return _tag(cls)


def _tag(cls: type) -> int:
    return ctypes.c_uint32.from_address(id(cls) + _CLASS_VERSION).value


def _all_new(read: Callable[[], int], changes: list[Callable[[], Any]]) -> bool:
    seen = [read()]
    for change in changes:
        change()
        seen.append(read())
    return all(seen) and len(set(seen)) == len(seen)


@lru_cache(maxsize=1)
def _dicts_count() -> bool:
    probe: dict[str, Any] = {"a": 1}
    return not _word(id(probe) + _DICT_VALUES) and _all_new(
        lambda: _word(id(probe) + _DICT_VERSION),
        [
            lambda: probe.__setitem__("a", 2),
            lambda: probe.__setitem__("b", 3),
            lambda: probe.__delitem__("b"),
            lambda: probe.update(a=4, c=5),
            lambda: probe.pop("c"),
            lambda: probe.setdefault("d", 6),
            lambda: exec("a = 7", probe),
            lambda: probe.clear(),
        ],
    )


@lru_cache(maxsize=1)
def _attributes_count() -> bool:
    """Whether assignments to attributes of an object count as changes of its dict: not on 3.13."""

    class Probe:
        a = 1

    probe = Probe()
    probe.a = 2
    attributes = vars(probe)
    return _all_new(
        lambda: _word(id(attributes) + _DICT_VERSION),
        [lambda: setattr(probe, "a", 3), lambda: delattr(probe, "a")],
    )


@lru_cache(maxsize=1)
def _classes_count() -> bool:
    class Base:
        a = 1

    class Derived(Base):
        b = 2

    size: Any = type.__basicsize__
    if size < _CLASS_VERSION + 4:
        return False
    old = _read_class(Derived)
    Base.a = 3
    if _tag(Derived) == old:
        return False  # it must be seen at once, before anybody looks a name up
    return _all_new(
        lambda: _read_class(Derived),
        [
            lambda: setattr(Derived, "b", 4),
            lambda: setattr(Base, "c", 5),
            lambda: delattr(Base, "c"),
            lambda: setattr(Derived, "__init__", lambda self: None),
            lambda: setattr(Derived, "__bases__", (type("Other", (Base,), {}),)),
        ],
    )
