"""Sets of the interpreter's: Python's own, so that their order is Python's.

A *form* says how a key is made of numbers: `.` is a number, `(..)` a pair of them, `N` is None, and `?`
something else that all keys have there, of whose hash nothing is known.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from . import python_sets


class Members:
    """A set of the interpreter's. `made_of` is what it was made of, if that was there before."""

    made_of: Any = None

    def __init__(self, keys: set[Any] | None = None) -> None:
        self._keys: set[Any] = set() if keys is None else keys
        self._laid_out: python_sets.Entries | None = None  # which the keys are to be made of
        self._listed: list[Any] | None = None
        self.changes = 0

    @property
    def keys(self) -> set[Any]:
        if self._laid_out is not None:
            self._keys, self._laid_out = python_sets.made(self._laid_out), None
        return self._keys

    def __len__(self) -> int:
        return len(self.keys)

    def entry(self, position: Any) -> tuple[Any, ...]:
        if self._listed is None:
            self._listed = list(self.keys)
        return words(self._listed[int(position)]) if position >= 0 else ()

    def _changed(self, grows: bool = False) -> None:
        self._listed = None
        self.changes += grows

    def put(self, key: Any) -> None:
        self._changed(key not in self.keys)
        self.keys.add(key)

    def remove(self, key: Any) -> bool:
        self._changed()
        there = key in self.keys
        self.keys.discard(key)
        return there

    def pop(self) -> tuple[Any, ...]:
        self._changed()
        return words(self.keys.pop()) if self.keys else ()

    def update(self, other: Any) -> None:
        self._changed(True)
        self.keys.update(other)

    def take_out(self, other: Iterable[Any]) -> None:
        self._changed()
        self.keys.difference_update(other)

    def clear(self) -> None:
        self._changed()
        self.keys.clear()

    def toggle(self, other: Members) -> None:
        self._changed(True)
        self.keys.symmetric_difference_update(other.keys)

    def swap(self, other: Members) -> None:
        """Another set's keys in the place of these, as they lie there."""
        self._changed(True)
        other._changed()
        python_sets.swap(self.keys, other.keys)

    def lay_out(self, size: Any, finger: Any) -> None:
        self._laid_out = python_sets.Entries(int(size), int(finger), [])

    def write(self, place: Any, live: Any, key: Any) -> None:
        assert self._laid_out is not None
        self._laid_out.entries.append((int(place), key if live else python_sets.GONE))


def assembled(numbers: Iterable[Any], form: str) -> Any:
    """The key of these numbers."""
    return _part(iter(numbers), iter(form))


def _part(numbers: Iterator[Any], rest: Iterator[str]) -> Any:
    head = next(rest)
    if head == "(":
        parts: list[Any] = []
        while True:
            part = _part(numbers, rest)
            if part is _END:
                return tuple(parts)
            parts.append(part)
    if head == ")":
        return _END
    if head != ".":
        return None
    number = next(numbers)
    return number.item() if hasattr(number, "item") else number


_END: Any = object()


def words(key: Any) -> tuple[Any, ...]:
    """The numbers in a key."""
    if isinstance(key, tuple):
        return tuple(x for part in key for x in words(part))
    return () if key is None else (key,)
