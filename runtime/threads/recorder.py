"""Events of compiled code: memory for them while they are recorded, and what is in it afterwards."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from .events import EVENT_BYTES, HEAD_BYTES
from .pool import thread_pool

Array = np.ndarray[Any, Any]
_WORDS, _HEAD = EVENT_BYTES // 8, HEAD_BYTES // 8


class Events:
    """At most `most` events; the others are counted.

    rows     an int64 row each: program, slot of the step, thread, begin, end
    dropped  how many events found no room
    """

    def __init__(self, most: int) -> None:
        self.rows: Array = np.zeros((0, _WORDS), np.int64)
        self.dropped = 0
        self._memory = _memory(_HEAD + _WORDS * most)
        self._memory[:_HEAD] = 0, most
        self._clocks: list[tuple[float, int]] = []

    def start(self) -> None:
        pool = thread_pool()
        self._clocks.append(_clocks())
        pool.recorder.value = self._memory.ctypes.data

    def stop(self) -> None:
        thread_pool().recorder.value = None
        self._clocks.append(_clocks())
        count, room = map(int, self._memory[:_HEAD])
        kept = min(count, room)
        self.dropped = count - kept
        self.rows = self._memory[_HEAD : _HEAD + kept * _WORDS].reshape(-1, _WORDS).copy()

    def seconds(self, ticks: Array) -> Array:
        """Ticks as seconds of `time.perf_counter`."""
        (first, tick), (last, final) = self._clocks
        period = (last - first) / max(final - tick, 1)
        seconds: Array = first + (ticks - tick) * period
        return seconds


_given: list[Array] = []  # never freed: a thread may be about to write its last event


def _memory(words: int) -> Array:
    """Memory for a recording, which is used again by the next one."""
    if not _given or _given[-1].size < words:
        _given.append(np.empty(words, np.int64))  # pages come when they are written
    return _given[-1]


def _clocks() -> tuple[float, int]:
    """Both clocks at one time."""
    return time.perf_counter(), thread_pool().clock()
