"""Defaults of parameters that a call may change: they are arguments like those that are given."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Container, Sequence
from types import CodeType
from typing import Any

import numpy as np

from ..captures.loads import instructions_of
from ..captures.mentions import ITEM_STORES
from ..captures.subjects import is_object

_STORES = ("STORE_FAST", "STORE_DEREF")


class Defaults:
    """What stands in the place of arguments that a call leaves out, by name: objects, and arrays, lists
    and dicts if the code assigns to any. What only is read is a value that the function has."""

    __slots__ = ("_function", "_of_function", "_static", "values")

    def __init__(
        self,
        function: Callable[..., Any],
        signature: inspect.Signature | None,
        static: Container[str],
    ) -> None:
        code = getattr(function, "__code__", None)
        self._function, self._static = function, static
        self._of_function = getattr(function, "__defaults__", None)
        self.values: list[tuple[str, int, Any]] = []  # with how many arguments tell it by position
        if signature is None or not isinstance(code, CodeType) or hasattr(function, "__wrapped__"):
            return  # what wraps another function hands on what it is given
        for position, p in enumerate(signature.parameters.values()):
            by_name = p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)
            if by_name and p.name not in static and _may_change(code, p.name, p.default):
                least = position if p.kind is p.POSITIONAL_OR_KEYWORD else len(signature.parameters)
                self.values.append((p.name, least, p.default))

    def missing(self, args: Sequence[Any], kwargs: dict[str, Any]) -> dict[str, Any]:
        """Those of a call."""
        if getattr(self._function, "__defaults__", None) is not self._of_function:
            self.__init__(self._function, inspect.signature(self._function), self._static)  # type: ignore[misc]
        return {
            name: value
            for name, position, value in self.values
            if len(args) <= position and name not in kwargs
        }


def _may_change(code: CodeType, name: str, default: Any) -> bool:
    """Whether a call may assign to an object, or to what is in an array, list or dict. Lists to which
    one only adds are logs, which are seen to where they are."""
    if is_object(default):
        return True
    if not isinstance(default, (np.ndarray, list, dict)):
        return False
    to_out = any(isinstance(names, tuple) and "out" in names for names in code.co_consts)
    codes = [code, *(c for c in code.co_consts if isinstance(c, CodeType))]
    return to_out or any(
        op.opname in ITEM_STORES or (op.opname in _STORES and op.argval == name)
        for own in codes
        for op in instructions_of(own)
    )
