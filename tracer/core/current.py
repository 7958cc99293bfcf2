"""Which trace is in progress: all that lies around traces asks, in processes that trace nothing, too.

So nothing is loaded here that traces (`trace`).
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from ...ir.forks import in_child, renewed
from ...ir.record import record

if TYPE_CHECKING:
    from .trace import Trace

# NumPy calls the table of array functions, not we: what is traced can't be a parameter there.
CURRENT: ContextVar[Trace | None] = ContextVar("jitney_trace", default=None)
# Where traces number forms that are to have the same numbers in all of them (`control.unions`).
FORMS: ContextVar[list[Any] | None] = ContextVar("jitney_forms", default=None)
# What native calls ask, in one look: whether this context traces, or chose a device.
HELD: ContextVar[bool | None] = ContextVar("jitney_held", default=None)
ACTIVE = ctypes.c_int64(0)  # contexts of the process where `HELD` is set; native calls read it
_active_lock = renewed(threading.RLock())


def current_trace() -> Trace | None:
    """The trace that this thread (or context) is recording, or None outside of tracing."""
    return CURRENT.get()


@record
class TraceOptions:
    """What `jit` asks of a trace; the traces nested in it have the same.

    boundscheck       indices that are known only when the code runs are checked
    mark_cotangents   the seeds of backward parts get a name, which `jit(save=...)` looks for
    autograph         Python's own control flow may depend on traced values
    python_errors     Python's own numbers raise as they do in Python (1 / 0)
    on_cpu            the program is for a CPU
    explicit_ranks    arrays of different ranks are not broadcast together, but for numbers
    """

    boundscheck: bool = True
    mark_cotangents: bool = False
    autograph: bool = True
    python_errors: bool = True
    on_cpu: bool = True
    explicit_ranks: bool = False


@contextmanager
def native_calls_held() -> Iterator[None]:
    """Inside, calls of jitted functions come to Python, which knows what is special here."""
    with _active_lock:
        ACTIVE.value += 1
    try:
        reset = HELD.set(True)
        try:
            yield
        finally:
            HELD.reset(reset)
    finally:
        with _active_lock:
            ACTIVE.value -= 1


@in_child
def _forget_others() -> None:
    """In a forked process no other thread is in there."""
    if HELD.get() is None:
        ACTIVE.value = 0
