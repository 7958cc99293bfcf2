"""Equality that tells apart what Python's `==` does not, for values that are part of a key."""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable
from types import FunctionType
from typing import Any

from .closures import closure_key, number_key


class Exact:
    """A hashable value, equal to its like alone.

    1, 1.0 and True differ, and so do 0.0 and -0.0, also inside of tuples, frozensets and frozen
    dataclasses; a NaN is equal to a NaN. Functions that do the same are equal, see `closures`. Other
    objects are of one type and equal by their `==`.
    """

    __slots__ = ("value", "_key")

    def __init__(self, value: Any) -> None:
        self.value = value
        self._key = exact_key(value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Exact) and self._key == other._key

    def __hash__(self) -> int:
        try:
            return hash(self._key)
        except TypeError:  # fields that cannot be hashed, in an object with a hash of its own
            return hash(self.value)

    def __repr__(self) -> str:
        return repr(self.value)


def exact_key(value: Any) -> Hashable:
    """Something to compare in place of `value`; hashable if `value` and all its parts are."""
    cls = type(value)
    number = number_key(value)
    if number is not None:
        return number
    if isinstance(value, tuple):
        return cls, tuple(map(exact_key, value))
    if cls is FunctionType:
        return cls, closure_key(value) or value
    if cls is slice:
        return cls, tuple(map(exact_key, (value.start, value.stop, value.step)))
    if isinstance(value, frozenset):
        return cls, frozenset(map(exact_key, value))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        compared = [f.name for f in dataclasses.fields(value) if f.compare and f.hash is not False]
        return cls, value, tuple(exact_key(getattr(value, name)) for name in compared)
    return cls, value
