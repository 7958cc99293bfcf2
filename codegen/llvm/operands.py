"""Operands as instructions take them: arguments of calls, masks, numbers that get the type of others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from .types import bools
from .values import Number, Value, as_operand, constant


class Callee(Protocol):
    """A function of the module that a builder writes into."""

    @property
    def result(self) -> str:
        """The type of what it gives."""

    @property
    def types(self) -> Sequence[str]:
        """The types of what it takes."""

    @property
    def address(self) -> Value:
        """Where it is."""


def as_taken(function: Callee, args: Sequence[Value | Number]) -> list[Value]:
    """Operands with the types that a function takes."""
    return [as_operand(t, a) for t, a in zip(function.types, args, strict=True)]


def arguments_text(values: Iterable[Value]) -> str:
    """Operands as they stand in a call."""
    return ", ".join([f"{v.type} {v.text}" for v in values])


def check_mask(type: str, mask: Value) -> None:
    """TypeError if that is no mask of the lanes of such a vector."""
    if type[0] != "<":
        raise TypeError(f"{mask!r} where lanes are wanted: {type} has none, `when` goes around it")
    as_operand(bools(type), mask)


def type_of(a: Value | Number, b: Value | Number) -> str:
    """The type of two operands, of which one may be a number."""
    for value in (a, b):
        if isinstance(value, Value):
            return value.type
    raise TypeError(f"neither {a} nor {b} has a type")


def as_typed(type: str, value: Value | Number) -> Value:
    """Flags of intrinsics are bools, other numbers have the type."""
    if isinstance(value, Value):
        return value
    return constant("i1" if isinstance(value, bool) else type, value)
