"""Which code runs while a function is traced: of what could run, only that counts."""

from __future__ import annotations

import sys
from _lsprof import Profiler
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import CodeType, FrameType, FunctionType
from typing import Any

Position = tuple[str, int, str]


def position_of(code: CodeType) -> Position:
    """Where a function is written. What autograph makes of its code has the same position."""
    return code.co_filename, code.co_firstlineno, code.co_name


class Ran:
    """The code that ran in this thread while it was watched. `everything`: nobody could watch."""

    def __init__(self) -> None:
        self.everything = False
        # By id: a code object's hash is that of all that is in it, made anew for each call.
        self.codes: dict[int, CodeType] = {}
        self._positions: set[Position] = set()
        self._placed = 0  # how many of them have theirs there

    def any(self, codes: set[CodeType]) -> bool:
        if self.everything:
            return True
        if self._placed != len(self.codes):
            self._positions = {position_of(code) for code in self.codes.values()}
            self._placed = len(self.codes)
        return any(position_of(code) in self._positions for code in codes)


@contextmanager
def watched_code(wanted: bool) -> Iterator[Ran]:
    """Notes which code runs. A profiler that is at work goes on; one that is no Python function cannot
    be asked to share, and then everything counts as having run."""
    ran = Ran()
    before: Any = sys.getprofile()
    watch = _watch(ran, before) if wanted else None
    if watch is None:
        ran.everything = True
        yield ran
        return
    watch.begin()
    try:
        yield ran
    finally:
        watch.end()


class _PythonWatch:
    """A profiler in Python, called at each call and return: tracing takes twice the time under it."""

    def __init__(self, ran: Ran, before: Callable[..., Any] | None) -> None:
        self.ran, self.before = ran, before
        codes = ran.codes

        def profile(frame: FrameType, event: str, argument: Any) -> None:
            if event == "call":
                code = frame.f_code
                codes[id(code)] = code
            if before is not None:
                before(frame, event, argument)

        self.profile = profile
        if before is None:
            profile.__dict__["watch"] = self

    def begin(self) -> None:
        sys.setprofile(self.profile)

    resume = begin

    def pause(self) -> None:
        sys.setprofile(None)

    def end(self) -> None:
        if sys.getprofile() is self.profile:
            sys.setprofile(self.before)
        else:
            self.ran.everything = True  # the function has set one of its own


class _Profile(Profiler):
    watch: _Watch


class _Watch:
    """Python's own profiler, in C, at a third of the cost. Before 3.12 each thread has one."""

    def __init__(self, ran: Ran, around: _Watch | None) -> None:
        self.ran, self.around = ran, around
        self.profile = _Profile()
        self.profile.watch = self

    def begin(self) -> None:
        if self.around is not None:
            self.around.pause()
        self.resume()

    def resume(self) -> None:
        self.profile.enable(subcalls=False, builtins=False)

    def pause(self) -> None:
        self.profile.disable()

    def end(self) -> None:
        now: Any = sys.getprofile()
        if now is not self.profile:
            self.ran.everything = True  # the function has set one of its own
            return
        self.pause()
        codes = (entry.code for entry in self.profile.getstats())
        self.ran.codes.update((id(code), code) for code in codes if isinstance(code, CodeType))
        if self.around is not None:
            self.around.ran.codes.update(self.ran.codes)
            self.around.resume()


def _watch(ran: Ran, before: Any) -> _Watch | _PythonWatch | None:
    """What notes code in `ran`, beside a profiler that is at work; None where nothing can."""
    if sys.version_info < (3, 12) and (before is None or isinstance(before, _Profile)):
        return _Watch(ran, getattr(before, "watch", None))
    return _PythonWatch(ran, before) if isinstance(before, (FunctionType, type(None))) else None


def without_watching(codes: set[CodeType], function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, of which is known which code it may run: no profiler slows it down."""
    watch = getattr(sys.getprofile(), "watch", None)
    if watch is None:
        return function

    def run(*args: Any, **kwargs: Any) -> Any:
        watch.ran.codes.update((id(code), code) for code in codes)
        watch.pause()
        try:
            return function(*args, **kwargs)
        finally:
            watch.resume()

    return run
