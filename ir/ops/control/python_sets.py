"""How CPython's sets lie in memory, verified: read, and made, entry by entry.

Where a key lies decides a set's order, and follows from all that was ever done to the set. A set that is
to be like another one has its keys in the same entries, and notes of keys that are gone where they are.
"""

from __future__ import annotations

import ctypes
import sys
from functools import cache
from typing import Any

from ...record import record

GONE: Any = object()
_LEAST = 8  # entries, which lie in the set itself
_WORD = 8


@record
class Entries:
    """The size of the table, where `pop` looks first, and what is in entries: keys, or `GONE`."""

    size: int
    finger: int
    entries: list[tuple[int, Any]]


@record
class SetLayout:
    """Byte offsets from the address of a set; an entry is the address of a key and its hash. `gone` is
    the address that stands for a key that is not there any more."""

    fill: int
    used: int
    mask: int
    table: int
    finger: int
    least: int
    gone: int


@cache
def layout() -> SetLayout | None:
    """The layout; None if this Python keeps sets in another way."""
    head = object.__basicsize__
    if ctypes.sizeof(ctypes.c_void_p) != _WORD or "free-threading" in sys.version:
        return None
    try:
        gone = ctypes.c_void_p.in_dll(ctypes.pythonapi, "_PySet_Dummy").value
    except (AttributeError, ValueError):
        return None
    fill, used, mask, table, finger, least = (head + k * _WORD for k in (0, 1, 2, 3, 5, 6))
    if set.__basicsize__ < least + 2 * _LEAST * _WORD or gone is None:
        return None
    found = SetLayout(fill, used, mask, table, finger, least, gone)
    return found if all(_agrees(found, probe) for probe in _probes()) else None


def _probes() -> list[set[Any]]:
    large, popped, removed = set(range(0, 700, 7)), set(range(20, 50)), {1, 3, 11, 19, "x"}
    for _ in range(5):
        popped.pop()
    removed -= {3}
    return [set(), removed, large, popped]


def _agrees(where: SetLayout, probe: set[Any]) -> bool:
    at = id(probe)
    size, count = _word(at + where.mask) + 1, len(probe)
    if _word(at + where.used) != count or not count <= _word(at + where.fill) < size:
        return False
    if size < _LEAST or size & (size - 1) or size > 1 << 12:
        return False
    if (size == _LEAST) != (_word(at + where.table) == at + where.least):
        return False
    found = _read(where, probe)
    keys = [key for _, key in found.entries if key is not GONE]
    same = len(keys) == count and all(a is b for a, b in zip(keys, probe, strict=True))
    return same and len(found.entries) == _word(at + where.fill)


def _word(address: int) -> int:
    value: int = ctypes.c_int64.from_address(address).value
    return value


def read(found: set[Any] | frozenset[Any]) -> Entries | None:
    """How a set lies; None if this Python does not tell."""
    where = layout()
    return None if where is None else _read(where, found)


def _read(where: SetLayout, found: Any) -> Entries:
    at = id(found)
    size, table = _word(at + where.mask) + 1, _word(at + where.table)
    words = (ctypes.c_int64 * (2 * size)).from_address(table)
    keys = iter(found)
    entries = [
        (i, GONE if words[2 * i] == where.gone else next(keys)) for i in range(size) if words[2 * i]
    ]
    return Entries(size, _word(at + where.finger), entries)


def made(how: Entries) -> set[Any]:
    """A set that lies so; if this Python does not tell how its sets lie, one with these keys."""
    new: set[Any] = set()
    write(new, how)
    return new


def write(into: set[Any], how: Entries) -> None:
    """Let a set have these keys alone, lying so."""
    where = layout()
    into.clear()
    if where is None:
        into.update(key for _, key in how.entries if key is not GONE)
        return
    at, table = id(into), id(into) + where.least
    if how.size > _LEAST:
        table = _allocated(2 * _WORD * how.size)
        ctypes.c_int64.from_address(at + where.table).value = table
        ctypes.c_int64.from_address(at + where.mask).value = how.size - 1
    words = (ctypes.c_int64 * (2 * how.size)).from_address(table)
    for i, key in how.entries:
        words[2 * i + 1] = -1 if key is GONE else hash(key)
        if key is not GONE:
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(key))
        words[2 * i] = where.gone if key is GONE else id(key)
    live = sum(key is not GONE for _, key in how.entries)
    ctypes.c_int64.from_address(at + where.fill).value = len(how.entries)
    ctypes.c_int64.from_address(at + where.used).value = live
    ctypes.c_int64.from_address(at + where.finger).value = how.finger


def _allocated(nbytes: int) -> int:
    allocate = ctypes.pythonapi.PyMem_Calloc
    allocate.restype, allocate.argtypes = ctypes.c_void_p, [ctypes.c_size_t, ctypes.c_size_t]
    address = allocate(1, nbytes)
    if address is None:
        raise MemoryError
    found: int = address
    return found


def swap(one: set[Any], two: set[Any]) -> None:
    """Let two sets have each other's keys, lying as they do. Where `pop` looks first stays."""
    first, second = read(one), read(two)
    if first is None or second is None:
        keys = list(one)
        one.clear()
        one.update(two)
        two.clear()
        two.update(keys)
        return
    write(one, Entries(second.size, first.finger, second.entries))
    write(two, Entries(first.size, second.finger, first.entries))
