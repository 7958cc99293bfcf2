"""Arrays that native containers hold, as they were when they were put in: who may assign into them.

A container has a copy of the numbers (`containers.boxes`), where Python keeps the array itself. An array
of which it is known where its copy lies, its box, is assigned into there, too, if no other array is
about that may be in a container. Else what is in one must not be assigned into. Of the array that a
storage stands for, that is noted there. Through branches and loops an array goes as a value, and who it
is is not followed: if one that is held is still there when a region begins, or is what it gives, it may
go through. From then on all arrays of its type are taken for it that come out of regions, or into them,
and so are those that were assigned into before.
"""

from __future__ import annotations

import weakref
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from ...ir.graph import Value
from ..messages import errors
from ..messages.errors import complain
from .trace import Trace, require_trace
from .tracers import Storage, Tracer


def keep(x: Tracer, box: Any = None) -> None:
    """A container holds the array from now on, in this box, if it can be assigned into there."""
    trace, storage = require_trace(), x._storage
    if box is not None and x._view is None and not _is_unknown(storage) and storage.box is None:
        storage.box = box
        trace.holding.append(weakref.ref(storage))
        return
    if x._view is not None:
        _spread_type(trace, x.type)
    part: Storage | None = storage
    while part is not None:
        part.kept = True
        part = part.part
    if _is_unknown(storage):
        _spread(trace, storage)
    else:
        trace.holding.append(weakref.ref(storage))


def settle(trace: Trace | None, given: Collection[Value] | None = None) -> None:
    """A region begins in a trace; or the trace is at its end, and gives these values."""
    if trace is None or not trace.holding:
        return
    alive = [storage for held in trace.holding if (storage := held()) is not None]
    trace.holding.clear()
    for storage in alive:
        if storage.box is None or given is None or storage.value in given:
            _spread(trace, storage)


def check_not_kept(x: Tracer) -> None:
    """Before an assignment into an array."""
    storage, trace = x._storage, x._storage.trace
    unknown = _is_unknown(storage)
    if storage.box is not None and not storage.kept:
        if storage.value.type in trace.kept or _others(require_trace(), storage):
            _refuse(x)
        trace.written.append(storage.value.type)
        return
    if storage.kept or (unknown and storage.value.type in trace.kept):
        _refuse(x)
    if unknown:
        trace.written.append(storage.value.type)


def _others(trace: Trace | None, storage: Storage) -> bool:
    """Whether another array that a container holds is about, which may be the same one."""
    while trace is not None:
        for held in trace.holding:
            other = held()
            if (
                other is not None
                and other is not storage
                and other.value.type == storage.value.type
            ):
                return True
        trace = trace.parent
    return False


def _is_unknown(storage: Storage) -> bool:
    """Whether an array comes into a region, or out of one: it may be any other one."""
    if storage.home is not require_trace():
        return True
    if storage.first is None:
        return False
    op = storage.first.op
    return op is None or bool(op.regions)


def _spread(trace: Trace, storage: Storage) -> None:
    _spread_type(trace, storage.value.type)


def _spread_type(trace: Trace, type: Any) -> None:
    if type in trace.written:
        _refuse(None)
    trace.kept.append(type)


@contextmanager
def apart() -> Iterator[None]:
    """Regions that begin here are no user's: nothing that is held goes through them."""
    trace = require_trace()
    holding, trace.holding = trace.holding, []
    try:
        yield
    finally:
        trace.holding = holding


def check_unwritten(type: Any) -> None:
    """An array is held that is not followed: none of this type has been assigned into so far, perhaps in
    a loop that comes to it again."""
    if type in require_trace().written:
        _refuse(None)


def refuse_seen() -> NoReturn:
    """Somebody else has an array that would be assigned into."""
    _refuse(None)


def _refuse(x: Tracer | None) -> NoReturn:
    complain(
        errors.OuterMutationError,
        "an array that is, or perhaps is, in a list, dict or deque that grows in compiled code is "
        "assigned into, which the container would have to see",
        "make a new array (x = x + y, not x += y), or put a copy there: append(x.copy()).",
        operands={} if x is None else {"destination": x},
    )
