"""Who writes into a folder of checkpoints: one process at a time, and it says so to the others.

A lock of the system's on `.lock` goes with its process, however that ends; processes forked from it
do not have it. Within a process the folder belongs to one owner: a save, or a whole training.
"""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from .checkpoint_file import TEMPORARY

_PATIENCE = 30.0  # seconds that a save waits for another one
_held: dict[
    Path, tuple[int, int]
] = {}  # of folders: the descriptor of the lock, and how many hold it
_guard = threading.RLock()


def _forget() -> None:
    """A forked child holds nothing, and its parent's threads aren't there."""
    global _guard
    _held.clear()
    _guard = threading.RLock()


os.register_at_fork(after_in_child=_forget)


@contextmanager
def writing(folder: Path, what: str = "saves") -> Iterator[None]:
    """The right to write into a folder, which is made; BlockingIOError if another process has it.

    `what` its holder does is what that one reads.
    """
    folder.mkdir(parents=True, exist_ok=True)
    folder = folder.resolve()
    _acquire(folder, what)
    try:
        yield
    finally:
        _release(folder)


def _acquire(folder: Path, what: str) -> None:
    until = time.monotonic() + _PATIENCE
    while True:
        with _guard:
            if folder in _held:
                descriptor, count = _held[folder]
                _held[folder] = descriptor, count + 1
                return
            holder = _lock(folder, what)
            if holder is None:
                return
        if holder.get("what") != "saves" or time.monotonic() > until:
            raise BlockingIOError(
                f"{str(folder)!r} belongs to process {holder.get('process', 'unknown')} on "
                f"{holder.get('host', 'this machine')}, which {holder.get('what', 'writes')} there: "
                "end it, or give another path"
            )
        time.sleep(0.02)


def _lock(folder: Path, what: str) -> dict[str, Any] | None:
    """Take the lock, or say who has it."""
    import fcntl

    descriptor = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT, 0o666)
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.pread(descriptor, 4096, 0)
        os.close(descriptor)
        return _holder(holder)
    except OSError:  # a file system without locks
        os.close(descriptor)
        _held[folder] = -1, 1
        return None
    says = {"process": os.getpid(), "host": socket.gethostname(), "what": what}
    with suppress(OSError):  # a full disk takes no name
        os.truncate(descriptor, 0)
        os.pwrite(descriptor, json.dumps(says).encode(), 0)
    _held[folder] = descriptor, 1
    _clean(folder)
    return None


def _clean(folder: Path) -> None:
    """Remove what writers left that ended in the middle. There is no other writer now."""
    for path in folder.glob(f"{TEMPORARY}*"):
        with suppress(OSError):
            path.unlink()


def _release(folder: Path) -> None:
    with _guard:
        if folder not in _held:  # in a forked child
            return
        descriptor, count = _held[folder]
        if count > 1:
            _held[folder] = descriptor, count - 1
            return
        del _held[folder]
        if descriptor >= 0:
            os.close(descriptor)


def _holder(text: bytes) -> dict[str, Any]:
    with suppress(ValueError):
        said = json.loads(text)
        if isinstance(said, dict):
            return said
    return {"what": "saves"}
