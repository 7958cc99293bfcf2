"""Python's stack while a function is traced: a call of the user's takes several of Python's then."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from ...ir.forks import renewed

DEPTH = 10_000  # calls inside of each other that compiled code makes, if Python allows no more
MOST = 1_000_000
_FRAMES = 4  # of helpers, for each of the user's
_lock = renewed(threading.Lock())
_limits: list[int] = []  # the limit before, for each trace in progress


def most_calls() -> int:
    """How many calls of a function by itself may be inside of each other in compiled code: as many as
    Python allows (`sys.setrecursionlimit`), and some thousands at the least."""
    limit = _limits[0] if _limits else sys.getrecursionlimit()
    return min(max(limit, DEPTH), MOST)


@contextmanager
def deep_stack() -> Iterator[None]:
    """Let functions call themselves as deep as they could if they were not traced."""
    with _lock:
        _limits.append(_limits[0] if _limits else sys.getrecursionlimit())
        sys.setrecursionlimit(_limits[0] * _FRAMES)
    try:
        yield
    finally:
        with _lock:
            limit = _limits.pop()
            if not _limits:
                sys.setrecursionlimit(limit)
