"""Files of events: who writes them, and which one a summary goes to."""

from __future__ import annotations

import os
import time
import weakref
from collections.abc import Callable
from contextvars import ContextVar
from pathlib import Path
from types import TracebackType
from typing import Any

import jitney as jt

_current: ContextVar[tuple[Writer, ...]] = ContextVar("summary_writers", default=())

Build = Callable[..., Any]  # values and a tag to a `Summary`


class Writer:
    """A file of events in the folder `logdir`, which is made if it is not there.

        with jt.summary.Writer("runs/first") as writer:
            jt.summary.scalar("loss", 0.5, step=1)

    Events are written by a thread, at the latest after `flush_secs` seconds. Within its `with` block it
    is where summaries go; leaving the block writes all that is pending, and the writer can be entered
    again. `close()` ends it, as does the end of the program. In a forked child it goes on in another
    file of the same folder.

    Raises ImportError without the `tensorboard` package, OSError where the folder or file can't be
    written; what goes wrong on the thread is raised by the next summary, `flush` or `close`.
    """

    def __init__(self, logdir: str | os.PathLike[str], *, flush_secs: float = 120) -> None:
        self.logdir = Path(logdir)
        self.flush_secs = flush_secs
        self._closed = False
        self._open()

    def _open(self) -> None:
        module = tensorboard("summary.writer.event_file_writer")
        self.logdir.mkdir(parents=True, exist_ok=True)
        self._events = module.EventFileWriter(str(self.logdir), flush_secs=self.flush_secs)
        self._process = os.getpid()
        weakref.finalize(self, _end, self._events, self._process)

    def add(self, event: Any) -> None:
        """Write an `Event`, or a `Summary`'s values, as TensorBoard's protos have them."""
        if self._closed:
            raise ValueError(f"the summary writer of {str(self.logdir)!r} is closed")
        if os.getpid() != self._process:  # the thread that writes is not in this process
            self._open()
        self._events.add_event(event)

    def flush(self) -> None:
        """Return when all that was added is in the file."""
        if not self._closed and os.getpid() == self._process:
            self._events.flush()

    def close(self) -> None:
        """Write what is pending, and close the file. Closing again does nothing."""
        if not self._closed:
            self._closed = True
            _end(self._events, self._process)

    def __enter__(self) -> Writer:
        _current.set((*_current.get(), self))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        _current.set(_current.get()[:-1])
        self.flush()

    def __repr__(self) -> str:
        return f"jt.summary.Writer({str(self.logdir)!r})"


def record(writer: Writer | None, step: Any, build: Build, *values: Any) -> None:
    """Write `build(*values)`, a `Summary`, where the program comes here: now, or from compiled code."""

    def happen(step: Any, *values: Any) -> None:
        to = writer or current()
        if to is not None:
            to.add(event(step, summary=build(*values)))

    jt.io_callback(happen, None, step, *values)


def current() -> Writer | None:
    """The writer of the innermost `with` block."""
    return next(reversed(_current.get()), None)


def event(step: Any, **what: Any) -> Any:
    """An `Event` of now."""
    pb = tensorboard("compat.proto.event_pb2")
    return pb.Event(wall_time=time.time(), step=int(step), **what)


def tensorboard(module: str) -> Any:
    """A module of the `tensorboard` package."""
    from importlib import import_module  # its first import takes 0.2 s

    try:
        return import_module(f"tensorboard.{module}")
    except ImportError as error:
        raise ImportError(
            f"jt.summary writes with TensorBoard's package, which can't be imported ({error}): "
            'pip install "jitney[summary]"'
        ) from error


def _end(events: Any, process: int) -> None:
    if os.getpid() == process:
        events.close()
