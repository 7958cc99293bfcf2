"""The garbage collector rests while much is made and nothing is dropped."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def resting_collector() -> Iterator[None]:
    """No collections inside. Imports and compilation make objects by the ten thousand, and keep
    them: looking through them, and all that the program has, takes up to a fifth of their time.

    The switch is one for all threads; where several come here at once, the first to leave ends it.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
