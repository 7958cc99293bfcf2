"""Defaults of parameters that a call may change: they are arguments like those that are given."""

from __future__ import annotations

import dis
import inspect
from collections import deque
from collections.abc import Callable, Container, Sequence
from types import CodeType
from typing import Any

import numpy as np

from ..captures.mentions import mentions_of
from ..captures.subjects import is_object

_CONTAINERS = (np.ndarray, list, dict, set, deque)
_STORES = ("STORE_FAST", "STORE_DEREF")


class Defaults:
    """What stands in the place of arguments that a call leaves out, by name: objects, and arrays and
    containers if the code changes any. What only is read is a value that the function has."""

    __slots__ = ("values",)

    def __init__(
        self,
        function: Callable[..., Any],
        signature: inspect.Signature | None,
        static: Container[str],
    ) -> None:
        code = getattr(function, "__code__", None)
        self.values: list[tuple[str, int, Any]] = []  # with how many arguments tell it by position
        if signature is None or not isinstance(code, CodeType):
            return
        for position, p in enumerate(signature.parameters.values()):
            by_name = p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)
            if by_name and p.name not in static and _may_change(code, p.name, p.default):
                least = position if p.kind is p.POSITIONAL_OR_KEYWORD else len(signature.parameters)
                self.values.append((p.name, least, p.default))

    def missing(self, args: Sequence[Any], kwargs: dict[str, Any]) -> dict[str, Any]:
        """Those of a call."""
        return {
            name: value
            for name, position, value in self.values
            if len(args) <= position and name not in kwargs
        }


def _may_change(code: CodeType, name: str, default: Any) -> bool:
    if is_object(default):
        return True
    if not isinstance(default, _CONTAINERS):
        return False
    assigned = any(op.opname in _STORES and op.argval == name for op in dis.get_instructions(code))
    to_out = any(isinstance(names, tuple) and "out" in names for names in code.co_consts)
    codes = [code, *(c for c in code.co_consts if isinstance(c, CodeType))]
    return assigned or to_out or mentions_of(codes).writes
