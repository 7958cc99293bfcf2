"""Running over whatever can be run over: native containers in a loop, Python's in Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.tracers import Tracer
from .stand_ins import for_each

Walked = tuple[Any, Callable[[Any], Any]]


class Numbered:
    """Items that are known by their numbers."""

    def __init__(self, length: Any, item: Callable[[Any], Any]) -> None:
        self._both = length, item

    def walked(self) -> Walked:
        return self._both


def walked(items: Any) -> Walked | None:
    """How many items there are, an int or traced, and what gives one by its number; None for what Python
    runs over."""
    if hasattr(type(items), "walked"):
        found: Walked = items.walked()
        return found
    if isinstance(items, Tracer) and items.ndim:
        return items.shape[0], lambda i: items[i]
    return None


def walk(items: Any, function: Callable[[Any], None]) -> None:
    """`for item in items: function(item)`"""
    found = walked(items)
    if found is None:
        for item in items:
            function(item)
        return
    length, item = found
    if isinstance(length, int) and length == 0:
        return
    for_each(length, lambda i: function(item(i)))
