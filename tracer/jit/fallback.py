"""`jit(fallback="python")`: what cannot be compiled runs as Python, after a warning that says why."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from typing import Any

from ..messages import errors
from ..messages.source import user_level

_MARK = "_jitney_refused"


def note_refusal(error: Exception) -> None:
    """The error comes of compiling a function, not of running it."""
    with suppress(AttributeError):  # of exceptions with slots
        setattr(error, _MARK, True)


class Fallback:
    """Which calls of one function run as Python, by their keys."""

    def __init__(self, function: Callable[..., Any], name: str) -> None:
        self.function, self.name = function, name
        self.refused: set[Hashable] = set()

    def call(
        self,
        compiled: Callable[[], Any],
        key: Callable[[], Hashable],
        args: Sequence[Any],
        kwargs: dict[str, Any],
    ) -> Any:
        """`compiled()`, or what the function gives as Python if it cannot be compiled for such
        arguments. Tracing has left everything as it was."""
        if self.refused and _found(key) in self.refused:
            return self.function(*args, **kwargs)
        try:
            return compiled()
        except Exception as error:
            if not getattr(error, _MARK, False):
                raise
            refusal = error
        result = self.function(*args, **kwargs)  # what Python raises itself is no reason to warn
        self.refused.add(_found(key))
        reason = str(refusal) or type(refusal).__name__
        warnings.warn(
            f"{self.name} cannot be compiled for these arguments, and runs as Python: {reason}",
            errors.FallbackWarning,
            stacklevel=user_level(),
        )
        return result


def _found(key: Callable[[], Hashable]) -> Hashable:
    """The key of a call; None of arguments that nothing is compiled for."""
    try:
        return key()
    except Exception:
        return None
