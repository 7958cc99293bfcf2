"""The garbage collector rests while much is made and nothing is dropped."""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from .forks import in_child

_resting: int | None = None  # the thread that switched it off


@contextmanager
def resting_collector() -> Iterator[None]:
    """No collections inside. Imports and compilation make objects by the ten thousand, and keep
    them: looking through them, and all that the program has, takes up to a fifth of their time.

    The switch is one for all threads; where several come here at once, the first to leave ends it.
    """
    global _resting
    if not gc.isenabled():
        yield
        return
    gc.disable()
    _resting = threading.get_ident()
    try:
        yield
    finally:
        _resting = None
        gc.enable()


@contextmanager
def loading() -> Iterator[None]:
    """As `resting_collector`, around imports. What they make stays until the process ends, so it counts
    as old at once: looking through it the first time would take longer than a cached call."""
    before = len(sys.modules)
    with resting_collector():
        yield
        # What users froze stays that. To count it takes time, so only where something was imported.
        if len(sys.modules) > before and not gc.get_freeze_count():
            gc.freeze()
            gc.unfreeze()


@in_child
def _wake() -> None:
    """Who switched it off is not here to switch it on."""
    if _resting not in (None, threading.get_ident()):
        gc.enable()
