"""Arrays that native containers hold, as they were when they were put in: who may assign into them.

A container has a copy of the numbers (`containers.boxes`), where Python keeps the array itself. So what
is in one must not be assigned into. Of the array that a storage stands for, that is noted there. Through
branches and loops an array goes as a value, and who it is is not followed: if one that is held is still
there when a region begins or ends, it may go through. From then on all arrays of its type are taken for
it that come out of regions, or into them, and so are those that were assigned into before.
"""

from __future__ import annotations

import weakref
from typing import NoReturn

from ..messages import errors
from ..messages.errors import complain
from .trace import Trace, require_trace
from .tracers import Storage, Tracer


def keep(x: Tracer) -> None:
    """A container holds the array from now on."""
    trace, storage = require_trace(), x._storage
    part: Storage | None = storage
    while part is not None:
        part.kept = True
        part = part.part
    if _is_unknown(storage):
        _spread(trace, storage)
    else:
        trace.holding.append(weakref.ref(storage))


def settle(trace: Trace | None) -> None:
    """A region begins in a trace, or the trace is at its end."""
    if trace is None or not trace.holding:
        return
    alive = [storage for held in trace.holding if (storage := held()) is not None]
    trace.holding.clear()
    for storage in alive:
        _spread(trace, storage)


def check_not_kept(x: Tracer) -> None:
    """Before an assignment into an array."""
    storage, trace = x._storage, x._storage.trace
    unknown = _is_unknown(storage)
    if storage.kept or (unknown and storage.value.type in trace.kept):
        _refuse(x)
    if unknown:
        trace.written.append(storage.value.type)


def _is_unknown(storage: Storage) -> bool:
    """Whether an array comes into a region, or out of one: it may be any other one."""
    if storage.home is not require_trace():
        return True
    if storage.first is None:
        return False
    op = storage.first.op
    return op is None or bool(op.regions)


def _spread(trace: Trace, storage: Storage) -> None:
    if storage.value.type in trace.written:
        _refuse(None)
    trace.kept.append(storage.value.type)


def _refuse(x: Tracer | None) -> NoReturn:
    complain(
        errors.OuterMutationError,
        "an array that is, or perhaps is, in a list, dict or deque that grows in compiled code is "
        "assigned into, which the container would have to see",
        "make a new array (x = x + y, not x += y), or put a copy there: append(x.copy()).",
        operands={} if x is None else {"destination": x},
    )
