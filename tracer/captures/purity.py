"""Is the trace of a function decided by its arguments alone? Random numbers, and `jit(check=True)`."""

from __future__ import annotations

import os
import random
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from ...ir.forks import in_child, renewed
from ..core.traced import Traced
from ..messages import errors
from ..messages.errors import complain


def random_states() -> dict[str, Any]:
    """The states of the global random generators; "unused" for one that nothing was drawn from."""
    states: dict[str, Any] = {}
    module = sys.modules.get("random")
    if module is not None:
        states["Python's random module"] = _as_written(module.getstate)()
    legacy = sys.modules.get("numpy.random")  # imported by its first use
    if legacy is not None:
        name, key, position, *rest = _as_written(legacy.get_state)()
        fresh = position == len(key) and rest == [0, 0.0]
        states["np.random"] = "unused" if fresh else (key.tobytes(), position, *rest)
    return states


def _as_written(function: Any) -> Any:
    """The module's function: while something is traced another one stands for it."""
    return getattr(function, "__wrapped__", function)


_asked: ContextVar[list[int] | None] = ContextVar("jitney_entropy", default=None)
_watching = renewed(threading.RLock())
_watchers = 0


@contextmanager
def watched_entropy() -> Iterator[list[int]]:
    """Inside, what asks the operating system for random bytes in this context is noted in the list.

    That is where generators without a seed, `secrets` and UUIDs come from: `os.urandom`, and the name
    that the module `random` knows it by. Modules that are imported may ask, for purposes of their own.
    """
    global _watchers
    with _watching:
        _watchers += 1
        if _watchers == 1:
            os.urandom = random._urandom = _noted  # type: ignore[attr-defined]
    requests: list[int] = []
    reset = _asked.set(requests)
    try:
        yield requests
    finally:
        _asked.reset(reset)
        with _watching:
            _watchers -= 1
            if _watchers == 0:
                os.urandom = random._urandom = _urandom  # type: ignore[attr-defined]


@in_child
def _forget_others() -> None:
    """In a forked process no other thread is watching."""
    global _watchers
    if _watchers and _asked.get() is None:
        _watchers = 0
        os.urandom = random._urandom = _urandom  # type: ignore[attr-defined]


_urandom = os.urandom


def _noted(size: int, /) -> bytes:
    requests = _asked.get()
    if requests is not None and not _importing():
        requests.append(size)
    return _urandom(size)


def _importing() -> bool:
    frame = sys._getframe(2)
    while frame is not None:
        if frame.f_globals.get("__name__") == "importlib._bootstrap":
            return True
        frame = frame.f_back  # type: ignore[assignment]
    return False


def compare(first: Traced, second: Traced) -> None:
    """Raise ImpureFunctionError if two traces of the same call differ."""
    for a, b in zip(first.graph.ops, second.graph.ops, strict=False):
        if _print(a) != _print(b):
            complain(
                errors.ImpureFunctionError,
                "two traces of the same call differ: "
                f"first {a.name} {_attributes(a)}, then {b.name} {_attributes(b)}",
                "what this line computes depends on something other than the arguments (a counter, "
                "the time, random numbers, the order of a set): pass it as an argument.",
                line=b.loc or a.loc,
            )
    if len(first.graph.ops) != len(second.graph.ops) or len(first.results) != len(second.results):
        longer = max(first.graph, second.graph, key=lambda g: len(g.ops))
        extra = longer.ops[min(len(first.graph.ops), len(second.graph.ops)) :]
        complain(
            errors.ImpureFunctionError,
            "two traces of the same call differ: one has more operations than the other",
            "what this line does depends on something other than the arguments: pass it as one.",
            line=extra[0].loc if extra else None,
        )


def _print(op: Any) -> tuple[Any, ...]:
    attrs = tuple(
        (k, v.tobytes(), v.dtype, v.shape) if isinstance(v, np.ndarray) else (k, v)
        for k, v in sorted(op.attrs.items())
    )
    regions = tuple(str(region) for region in op.regions)
    return op.name, [v.type for v in op.operands], attrs, regions


def _attributes(op: Any) -> str:
    return ", ".join(f"{k}={v}" for k, v in op.attrs.items())
