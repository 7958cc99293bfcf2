"""What runs, while somebody records it: the lower half of `jt.profile`.

    recording = start(most_events=1 << 20)
    ...                                     # functions compiled meanwhile tell of their steps
    stop(); recording.events, recording.spans

Compiled code writes events itself (`threads.recorder`). What Python does for it (tracing, compiling,
callbacks, runs of devices) are spans. While nobody records there is nothing of this but one question
for each span.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from ..ir.forks import renewed

if TYPE_CHECKING:
    from ..codegen.module import NativeModule
    from ..ir.graph import SourceLine
    from .threads.recorder import Events


class Span(NamedTuple):
    """Something that Python did: seconds of `time.perf_counter`, the thread's `get_ident`."""

    category: str
    name: str
    begin: float
    end: float
    thread: int
    leaf: bool = True  # not only what is around others
    function: str = ""
    loc: SourceLine | None = None


class Recording:
    """One recording: `events` of compiled code, `spans` of Python; `programs` are the modules that the
    events speak of, by what these call themselves, each with the name of its function."""

    def __init__(self, events: Events) -> None:
        self.events = events
        self.spans: list[Span] = []
        self.programs: dict[int, tuple[str, NativeModule]] = {}
        self.functions: weakref.WeakSet[Any] = weakref.WeakSet()  # that were compiled meanwhile
        self.begin = self.end = time.perf_counter()


_current: Recording | None = None
_lock = renewed(threading.Lock())


def current() -> Recording | None:
    """The recording that is under way."""
    return _current


def start(most_events: int) -> Recording:
    """Record from now on. Raises RuntimeError if that is done already."""
    global _current
    from .native import host  # these when they are asked for: no call needs them
    from .threads.recorder import Events

    with _lock:
        if _current is not None:
            raise RuntimeError("a profile is being made already: they can't be nested")
        events = Events(most_events)
        _current = Recording(events)
        events.start()
        host.probe = "record"
    return _current


def stop() -> None:
    """The end of the recording. Code that goes on running is not recorded any more."""
    global _current
    from .native import host

    with _lock:
        recording, _current = _current, None
        host.probe = ""
        if recording is not None:
            recording.events.stop()
            recording.end = time.perf_counter()


def note_program(module: NativeModule, name: str) -> None:
    """Code that tells of its steps was made of a function of that name."""
    if _current is not None and module.identity:
        _current.programs[module.identity] = name, module


def note_span(
    category: str,
    name: str,
    begin: float,
    end: float,
    leaf: bool = True,
    function: str = "",
    loc: SourceLine | None = None,
) -> None:
    """Something was done, if that is recorded."""
    if _current is not None:
        thread = threading.get_ident()
        _current.spans.append(Span(category, name, begin, end, thread, leaf, function, loc))


@contextmanager
def span(
    category: str,
    name: str,
    leaf: bool = True,
    function: str = "",
    loc: SourceLine | None = None,
) -> Iterator[None]:
    """What is done inside is a span, if that is recorded."""
    begin = time.perf_counter()
    try:
        yield
    finally:
        note_span(category, name, begin, time.perf_counter(), leaf, function, loc)
