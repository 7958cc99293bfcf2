"""Functions that are made anew, by the same code of equal constants, and do the same."""

from __future__ import annotations

import functools
import types
from collections.abc import Hashable, Sequence
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

_PLAIN = (type(None), bool, int, str, bytes, type(Ellipsis), range)
# What is one object wherever it is found, and holds no arrays.
_NAMED = (type, ModuleType, BuiltinFunctionType, np.ufunc, type(np.sum), CodeType)


class Held:
    """Equal to the same object only, and hashable."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Held) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


class _Changes(Exception):
    """There is something that may change inside."""


def closure_key(function: FunctionType) -> Hashable | None:
    """What two functions have in common that do the same: their code, their module, and in their
    closures and defaults equal constants, or functions of this kind. None for a function that holds
    arrays, containers, objects, or assigns to what it closes over."""
    try:
        return _function(function, [])
    except _Changes:
        return None


def _function(function: FunctionType, around: list[FunctionType]) -> Hashable:
    if function in around:  # it calls itself
        return around.index(function)
    code = function.__code__
    own = {name: held for name, held in list(vars(function).items()) if name != "__wrapped__"}
    if own or _rebinds(code, frozenset(code.co_freevars)):
        raise _Changes
    inside = [*around, function]
    try:
        held = [cell.cell_contents for cell in function.__closure__ or ()]
    except ValueError:  # nothing is in it yet
        raise _Changes from None
    parts = [*held, function.__defaults__, vars(function).get("__wrapped__")]
    named = sorted((function.__kwdefaults__ or {}).items())
    names = names_of(function)
    return (Held(code), Held(function.__globals__), names, _all([*parts, *named], inside))


def names_of(function: FunctionType) -> Hashable:
    """What a function is called, and what is said of it."""
    said = Held(function.__module__), Held(function.__doc__)
    return function.__name__, function.__qualname__, *said


@functools.lru_cache(4096)
def _rebinds(code: CodeType, names: frozenset[str]) -> bool:
    """Whether code, or what is made in it, assigns to one of the variables of functions around it."""
    import dis

    stores = (op.argval for op in dis.get_instructions(code) if op.opname in _STORES)
    inner = (c for c in code.co_consts if isinstance(c, CodeType))
    return not names.isdisjoint(stores) or any(
        _rebinds(c, names.intersection(c.co_freevars)) for c in inner
    )


_STORES = ("STORE_DEREF", "DELETE_DEREF")


def _all(values: Sequence[Any], around: list[FunctionType]) -> Hashable:
    return tuple([_constant(value, around) for value in values])


def number_key(value: Any) -> Hashable | None:
    """What tells numbers apart that are equal, as 0.0 and -0.0 are; None for Python's ints and for
    what is no number."""
    cls = type(value)
    if cls is float:
        return cls, value.hex()
    if cls is complex:
        return cls, value.real.hex(), value.imag.hex()
    if isinstance(value, np.generic):
        return cls, value.dtype, value.tobytes()
    return None


def _constant(value: Any, around: list[FunctionType]) -> Hashable:
    cls = type(value)
    number = number_key(value)
    if number is not None:
        return number
    if cls in _PLAIN or isinstance(value, np.dtype):
        return cls, value
    if cls is FunctionType:
        return _function(value, around)
    if isinstance(value, tuple):
        return cls, _all(value, around)
    if cls is functools.partial:
        return cls, _all([value.func, value.args, *sorted(value.keywords.items())], around)
    if cls is types.BuiltinFunctionType and not isinstance(
        value.__self__, (ModuleType, type(None))
    ):
        raise _Changes  # a method of a container, say
    if isinstance(value, _NAMED):
        return Held(value)
    raise _Changes
