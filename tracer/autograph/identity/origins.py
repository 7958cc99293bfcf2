"""Which array is it that comes out of a branch or a loop? Followed where the caller can tell.

    if better:
        self.best = x           # else it stays the array that it was, which others may hold, too

The op gives a value that is equal to one array or the other. Beside it goes a number that says which one
it is: arrays that come from outside of branches are numbered (`Trace.origins`), 0 is a new one.
"""

from __future__ import annotations

from typing import Any

from ...core.trace import Trace, require_trace
from ...core.tracers import Storage, Tracer
from ..variables import Undefined


def are_followed() -> bool:
    """Whether it matters which array a result is: where state is written back."""
    return require_trace().origins is not None


def number_of(storage: Storage) -> int:
    """The number of an array from outside."""
    origins = require_trace().origins
    assert origins is not None
    if storage not in origins:
        origins.append(storage)
    return origins.index(storage) + 1


def which_outside(x: Any) -> Any:
    """Which array `x` of an enclosing trace is."""
    if not isinstance(x, Tracer) or x.scalar or x._view is not None:
        return 0
    return number_of(x._storage) if x._storage.which is None else x._storage.which


def which_inside(x: Any, trace: Trace) -> Any:
    """Which array `x` is at the end of a region: one from outside, or a new one."""
    if not isinstance(x, Tracer) or x.scalar or x._view is not None:
        return 0
    storage = x._storage
    if storage.which is not None:
        return storage.which
    adopted = trace.adoption is not None and any(s is storage for s, _, _ in trace.adoption.owners)
    return number_of(storage) if adopted or storage.trace is not trace else 0


def refuse_lost(name: str, value: Any) -> None:
    """Raise UndefinedVariableError for an attribute that perhaps has a value now, and is kept."""
    if "." in name and type(value) is Undefined and value.why and are_followed():
        value.refuse()
