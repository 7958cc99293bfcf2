"""Ctrl-C and SIGTERM while steps are made: the step is finished first."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def finishing_steps(stop: Callable[[str], None]) -> Iterator[None]:
    """A signal calls `stop(its name)` at once, and does what it always does when the block has
    ended.

    A second one does not wait. On other threads than the main one nothing is changed.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []

    def note(number: int, frame: Any) -> None:
        came.append(number)
        signal.signal(number, before[number])
        stop(signal.Signals(number).name)

    numbers = int(signal.SIGINT), int(signal.SIGTERM)
    found = {number: signal.getsignal(number) for number in numbers}
    before = {number: handler for number, handler in found.items() if handler is not None}
    for number in before:
        signal.signal(number, note)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if came:
        os.kill(os.getpid(), came[0])
