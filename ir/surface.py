"""Modules that give a class its operators, methods and functions lie above it, and are loaded late.

    @provides("trace")              # in `tracer/__init__`, which may know everybody
    def _functions() -> None:
        from . import functions

    ensure("trace")                 # in `trace`, which may not: before the first graph is recorded

So a process that traces nothing, because the disk cache has its programs, imports none of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

Load = Callable[[], None]
L = TypeVar("L", bound=Load)

_loads: dict[str, list[Load]] = {}


def provides(surface: str) -> Callable[[L], L]:
    """Register a function that imports what belongs to a surface."""

    def register(load: L) -> L:
        _loads.setdefault(surface, []).append(load)
        return load

    return register


def ensure(surface: str) -> None:
    """Import what belongs to a surface, unless it is there."""
    for load in _loads.get(surface, ()):
        load()
