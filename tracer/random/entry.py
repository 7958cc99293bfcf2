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

import numpy as np

from ..functions.table import ArrayFunction
from ..trace import current_trace

F = TypeVar("F", bound=Callable[..., Any])

# Parameters that decide shapes, dtypes or algorithms: part of the program, not inputs of it.
_STATIC = frozenset("axis dtype endpoint independent method num replace shape".split())
_first_call = threading.Lock()


def sampler(*, static: tuple[str, ...] = (), counts: tuple[str, ...] = ()) -> Callable[[F], F]:
    """The decorated function, written over tracers, as users call it.

    `static` names parameters that are no arrays, besides those that never are (shape, dtype, ...);
    `counts` those that may be arrays or Python ints, which are lengths.
    """

    def decorate(traced: F) -> F:
        signature = inspect.signature(traced)
        names = _STATIC.union(static) & set(signature.parameters)
        eager = _Compiled(traced, signature, frozenset(names), counts)
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

    def __init__(
        self,
        function: Callable[..., Any],
        signature: inspect.Signature,
        static: frozenset[str],
        counts: tuple[str, ...],
    ) -> None:
        self.function = function
        self.signature = signature
        self.static = static
        self.counts = counts
        self.jitted: dict[frozenset[str], Callable[..., Any]] = {}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        given = self.signature.bind(*args, **kwargs).arguments
        lengths = (n for n in self.counts if isinstance(given.get(n), (int, np.integer)))
        static = self.static.union(lengths)
        for name, value in given.items():
            if name in static:
                given[name] = _hashable(value)
            elif isinstance(value, (list, tuple)):
                given[name] = np.asarray(value)
        return self._function(static)(**given)

    def _function(self, static: frozenset[str]) -> Callable[..., Any]:
        found = self.jitted.get(static)
        if found is None:
            from ..jit import jit

            with _first_call:
                made = jit(self.function, static_argnames=tuple(sorted(static)))
                found = self.jitted.setdefault(static, made)
        return found


def _hashable(value: Any) -> Any:
    if isinstance(value, (list, np.ndarray)):
        return tuple(np.asarray(value).tolist()) if np.ndim(value) else int(value)
    return value
