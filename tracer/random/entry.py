"""How the functions of `jt.random` run: traced where something is traced, else compiled and called.

Outside of compiled functions a sampler is a compiled function of its own: what it draws is then the same
to the last bit, eagerly and as a part of other compiled functions, on every machine.
"""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from ..functions.table import ArrayFunction
from ..trace import current_trace

F = TypeVar("F", bound=Callable[..., Any])

# Parameters that decide shapes, dtypes or algorithms: part of the program, not inputs of it.
_STATIC = frozenset(
    "axis bits dtype high_static independent method n_static num replace shape size".split()
)
_first_call = threading.Lock()


def sampler(*static: str) -> Callable[[F], F]:
    """The decorated function, written over tracers, as users call it.

    `static` names parameters that are no arrays, besides those that never are (shape, dtype, ...).
    """

    def decorate(traced: F) -> F:
        names = _STATIC.union(static) & set(inspect.signature(traced).parameters)
        eager = _Compiled(traced, tuple(sorted(names)))
        entry = ArrayFunction(f"random.{traced.__name__}", traced, eager, None, creates=True)

        @functools.wraps(traced)
        def call(*args: Any, **kwargs: Any) -> Any:
            if current_trace() is None:
                return entry(*args, **kwargs)
            return entry.trace(args, kwargs)

        call.__module__ = "jitney.random"
        call.traced = traced  # type: ignore[attr-defined]
        return call  # type: ignore[return-value]

    return decorate


class _Compiled:
    """A function, compiled at its first call."""

    def __init__(self, function: Callable[..., Any], static: tuple[str, ...]) -> None:
        self.function = function
        self.static = static
        self.jitted: Callable[..., Any] | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.jitted is None:
            from ..jit import jit

            with _first_call:
                self.jitted = self.jitted or jit(self.function, static_argnames=self.static)
        return self.jitted(*args, **kwargs)
