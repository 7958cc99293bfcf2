"""Functions that somebody asks about: compiled or not, bound to an object or not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .binding import BoundJitFunction
from .decorator import jit
from .function import JitFunction


def unbound(
    function: Callable[..., Any], args: Sequence[Any]
) -> tuple[JitFunction[..., Any], tuple[Any, ...]]:
    """The compiled form of a function, and the arguments that it takes: of a method the object, too."""
    if isinstance(function, BoundJitFunction):
        method: JitFunction[..., Any] = function._child
        return method, (function.__self__, *args)
    return function if isinstance(function, JitFunction) else jit(function), tuple(args)
