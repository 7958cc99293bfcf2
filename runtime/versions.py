"""Where CPython counts changes: the version of a dict, and of a class with its bases.

A version is a number that no later state has again, so one comparison tells that nothing was assigned
to any name since it was read. The offsets are CPython's own; they are verified on live objects, and None
where this Python keeps no such count or keeps it elsewhere.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from typing import Any

_DICT_VERSION = object.__basicsize__ + 8  # after `ma_used`
_CLASS_VERSION = object.__basicsize__ + 8 + 45 * 8  # `tp_version_tag`, 0: it has none now


def dict_version(module: dict[str, Any]) -> int | None:
    """The address of the 64-bit version of a dict."""
    return id(module) + _DICT_VERSION if _dicts_count() else None


def class_version(cls: type) -> tuple[int, int] | None:
    """The address of the 32-bit version of a class, and what it is now."""
    if not _classes_count():
        return None
    version = _read_class(cls)
    return (id(cls) + _CLASS_VERSION, version) if version else None


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
    return _all_new(
        lambda: ctypes.c_uint64.from_address(id(probe) + _DICT_VERSION).value,
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
