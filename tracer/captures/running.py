"""Which code runs while a function is traced: of what could run, only that counts."""

from __future__ import annotations

import sys
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
    if not wanted or not isinstance(before, (FunctionType, type(None))):
        ran.everything = True
        yield ran
        return
    profile = _profile(ran, before)
    if before is None:
        profile.__dict__["ran"] = ran
    sys.setprofile(profile)
    try:
        yield ran
    finally:
        if sys.getprofile() is profile:
            sys.setprofile(before)
        else:
            ran.everything = True  # the function has set one of its own


def _profile(ran: Ran, before: Callable[..., Any] | None) -> Callable[..., Any]:
    codes = ran.codes

    def profile(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call":
            code = frame.f_code
            codes[id(code)] = code
        if before is not None:
            before(frame, event, argument)

    return profile


def without_watching(codes: set[CodeType], function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, of which is known which code it may run: no profiler slows it down."""
    profile = sys.getprofile()
    ran: Ran | None = getattr(profile, "ran", None)
    if ran is None:
        return function

    def run(*args: Any, **kwargs: Any) -> Any:
        ran.codes.update((id(code), code) for code in codes)
        sys.setprofile(None)
        try:
            return function(*args, **kwargs)
        finally:
            sys.setprofile(profile)

    return run
