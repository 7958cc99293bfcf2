"""Compiling in several processes at a time, which hand on what they made by the cache on disk."""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress

from .cache.disk import disk_cache

_IDLE = 20  # seconds without work after which a child waits for something that will not come


def cannot_share(processes: int) -> str:
    """Why so many processes cannot compile for this one; "" if they can."""
    if isinstance(processes, bool) or not isinstance(processes, int) or processes < 1:
        return f"processes is a number from 1, not {processes!r}"
    if sys.platform != "linux":
        return "processes are forked, which is done on Linux only"
    cache = disk_cache()
    if not cache.enabled or not cache.writable:
        return f"processes hand on code by the cache on disk, which is not used: {cache.reason}"
    return ""


def in_processes(jobs: Sequence[Callable[[], object]], processes: int) -> None:
    """Run jobs in children of this process, the k-th one in number k modulo `processes`.

    What they raise is lost: the caller does again what is not on disk afterwards. A child that waits for
    what a thread of the user's held when it was forked is ended.
    """
    import multiprocessing  # 20 ms, for those who ask

    def work(own: Sequence[Callable[[], object]]) -> None:
        with suppress(BaseException), open(os.devnull, "w") as nowhere:
            sys.stderr = sys.stdout = nowhere  # the caller warns and complains itself
            for job in own:
                with suppress(Exception):
                    job()
        os._exit(0)

    context = multiprocessing.get_context("fork")
    shares = [jobs[k::processes] for k in range(processes)]
    children = [context.Process(target=work, args=(own,), daemon=True) for own in shares if own]
    try:
        with warnings.catch_warnings():
            # Of threads beside this one: ours, and what we hold, are ready for it (`ir.forks`).
            warnings.simplefilter("ignore", DeprecationWarning)
            for child in children:
                child.start()
        idle = {child: (time.monotonic(), -1) for child in children}
        while alive := [child for child in children if child.is_alive()]:
            alive[0].join(0.5)
            for child in alive:
                since, before = idle[child]
                now = _cpu_time(child.pid)
                if now != before:
                    idle[child] = time.monotonic(), now
                elif time.monotonic() - since > _IDLE:
                    child.kill()
    finally:
        for child in children:
            if child.pid is not None and child.is_alive():
                child.terminate()


def _cpu_time(pid: int | None) -> int:
    """Ticks that a process has computed; -2 if that is not to be known."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()
        return int(fields[11]) + int(fields[12])
    except (OSError, ValueError, IndexError):
        return -2
