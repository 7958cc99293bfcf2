"""The functions that transformations are given: that they are functions, and what messages call them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from ..messages import errors
from ..messages.errors import complain, describe

Function = Callable[..., Any]


def check_callable(fun: Any, what: str) -> None:
    """TransformError unless `fun` can be called."""
    if not callable(fun):
        complain(
            errors.TransformError,
            f"jt.{what} takes a callable, the function to transform, not {describe(fun)}",
            f"write jt.{what}(f), with f and not f(x).",
        )


def function_name(fun: Function) -> str:
    """What messages call a function."""
    return getattr(fun, "__qualname__", None) or type(fun).__name__


def parameter_name(fun: Function, position: int) -> str:
    """What messages call the parameter at a position."""
    try:
        names = list(inspect.signature(fun).parameters.values())
    except (TypeError, ValueError):
        return f"args[{position}]"
    if position < len(names) and names[position].kind not in (
        inspect.Parameter.VAR_POSITIONAL,
        inspect.Parameter.VAR_KEYWORD,
    ):
        return names[position].name
    return f"args[{position}]"
