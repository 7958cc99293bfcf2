"""The thread pool that generated kernels run on: a fork-join pool written in LLVM IR.

    void jitney_parallel_for(ptr fn, ptr ctx, i64 n, i64 grain)
    fn: void(ptr ctx, i64 lo, i64 hi)

covers 0..n with calls of `fn`, on the pool's workers and the calling thread. It calls `fn(ctx,
0, n)` inline when `n <= grain`, when one thread is asked for, and when the pool is busy: a
second caller and a nested call never wait. Chunks of `grain` are claimed from a shared counter,
so threads that the system takes a core from hold nobody up. Python is not involved, so no call
needs the GIL.

    void jitney_watched_for(ptr fn, ptr ctx, i64 n, i64 grain, ptr watch, ptr what)
    watch: i1(ptr what, ptr clock)

is the same for work that may take long. While the caller waits for workers it calls `watch` now and
then, which lets Python handle signals, and may leave word for the workers in `what`; `clock` is memory
of its own, the cycle counter from when the waiting began.

The protocol is described, and written, in `pool_ir`.

Workers are started by the first call that wants them, with all signals blocked, and are
detached. After fork() the child starts with an empty pool. Where there is no futex (not Linux
on x86-64 or AArch64) `jitney_parallel_for` runs everything inline.

    JITNEY_NUM_THREADS=n    the number of threads, caller included (default: the cores that this
                            process may use, by its affinity mask and its cgroup's quota)
"""

from __future__ import annotations

import ctypes
import math
import os
from pathlib import Path
from typing import ClassVar

from ...codegen.target import Target
from ...ir.record import record
from ..config import serve
from ..native.host import host_target
from ..native.image import call_in_child
from ..native.llvm import lock
from ..native.support import load_support
from .futex import supported

MAX_THREADS = 1024
POOL_EXPORTS = (
    *(Target.PARALLEL_FOR, Target.WATCHED_FOR, Target.RECORD, "clock", "recorder"),
    *("reset", "limit", "started", "forks", "joins", "inlines"),  # of a pool with workers
)


def _cgroup_cpus() -> float:
    """How many CPUs' worth of time this process's control group may use; inf without a quota."""
    quota = math.inf
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return quota
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers == "":  # version 2
            root = Path("/sys/fs/cgroup")
        elif "cpu" in controllers.split(","):
            root = Path("/sys/fs/cgroup") / controllers
        else:
            continue
        group = root / path.lstrip("/")
        # A container may see its own group as the root; the nearest limits all count.
        for folder in (group, *group.parents):
            quota = min(quota, _folder_quota(folder))
            if folder == root or folder == folder.parent:
                break
    return quota


def _folder_quota(folder: Path) -> float:
    try:
        if (folder / "cpu.max").exists():
            limit, period = (folder / "cpu.max").read_text().split()
        else:
            limit = (folder / "cpu.cfs_quota_us").read_text().strip()
            period = (folder / "cpu.cfs_period_us").read_text().strip()
        return math.inf if limit == "max" or int(limit) < 0 else int(limit) / int(period)
    except (OSError, ValueError, ZeroDivisionError):
        return math.inf


def default_threads() -> int:
    """JITNEY_NUM_THREADS, or the number of cores that this process may use."""
    setting = os.environ.get("JITNEY_NUM_THREADS", "").strip()
    if setting:
        try:
            return _checked(int(setting))
        except ValueError:
            raise ValueError(
                f"JITNEY_NUM_THREADS is a number from 1 to {MAX_THREADS}, not {setting!r}"
            ) from None
    if hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    else:
        cores = os.cpu_count() or 1
    return max(1, min(cores, math.ceil(min(_cgroup_cpus(), MAX_THREADS)), MAX_THREADS))


def _checked(threads: int) -> int:
    if isinstance(threads, bool) or not isinstance(threads, int):
        raise TypeError(f"the number of threads is an int, not {type(threads).__name__}")
    if not 1 <= threads <= MAX_THREADS:
        raise ValueError(f"the number of threads is from 1 to {MAX_THREADS}, not {threads}")
    return threads


@record
class PoolStats:
    """Counters since the process began."""

    threads: int  # the caller included
    started: int  # worker threads that exist
    forks: int  # jobs shared with workers
    joins: int  # workers that took part, summed over jobs
    inline: int  # jobs that found the pool busy


def _text() -> str:
    from .pool_ir import pool_ir  # with the first compilation: it imports the builder

    return pool_ir(host_target())


class ThreadPool:
    """The process's pool. Loading its code starts no thread; the first parallel call does."""

    def __init__(self, threads: int) -> None:
        self.parallel = supported()
        exports = POOL_EXPORTS if self.parallel else POOL_EXPORTS[:5]
        # Workers run this code until the process ends.
        library = load_support("pool", _text, exports).keep()
        self.parallel_for = library.address(Target.PARALLEL_FOR)
        self.watched_for = library.address(Target.WATCHED_FOR)
        self.record = library.address(Target.RECORD)
        self.clock = ctypes.CFUNCTYPE(ctypes.c_int64)(library.address("clock"))  # ticks
        self.recorder = ctypes.c_void_p.from_address(library.address("recorder"))
        self._threads = 1
        if self.parallel:
            self._limit = ctypes.c_int32.from_address(library.address("limit"))
            self._started = ctypes.c_int32.from_address(library.address("started"))
            self._counters = [
                ctypes.c_int64.from_address(library.address(name))
                for name in ("forks", "joins", "inlines")
            ]
            call_in_child(library.address("reset"))
            self.set_threads(threads)

    @property
    def threads(self) -> int:
        return self._threads

    def set_threads(self, threads: int) -> None:
        """Use at most `threads` threads from now on. Extra workers stay asleep."""
        threads = _checked(threads)
        if self.parallel:
            self._limit.value = threads - 1
            self._threads = threads

    def stats(self) -> PoolStats:
        if not self.parallel:
            return PoolStats(1, 0, 0, 0, 0)
        forks, joins, inline = (counter.value for counter in self._counters)
        return PoolStats(self._threads, self._started.value, forks, joins, inline)


_pool: ThreadPool | None = None
_asked: int | None = None  # set_threads() before the pool exists


def thread_pool() -> ThreadPool:
    """The process's pool, loaded on first use."""
    global _pool
    if _pool is None:
        with lock:
            if _pool is None:
                _pool = ThreadPool(default_threads() if _asked is None else _asked)
    return _pool


def set_threads(threads: int) -> None:
    """Run kernels on at most `threads` threads, the caller included, from now on."""
    global _asked
    _asked = _checked(threads)
    if _pool is not None:
        _pool.set_threads(threads)


class threads:
    """`jt.threads(n)`: kernels run on at most `n` threads, the caller included, from now on.

        jt.threads(2)
        with jt.threads(1):         until the end of the block
            ...

    The setting is the process's. Blocks may nest, and those of several Python threads may overlap: the
    one entered last counts, and after all of them what was set before the first.
    """

    _open: ClassVar[list[threads]] = []
    _outside: ClassVar[int] = 1

    def __init__(self, n: int) -> None:
        self.n = _checked(n)
        self._before = get_threads()
        set_threads(n)

    def __enter__(self) -> threads:
        with lock:
            if not threads._open:
                threads._outside = self._before
            threads._open.append(self)
            set_threads(self.n)
        return self

    def __exit__(self, *exception: object) -> None:
        with lock:
            threads._open.remove(self)
            set_threads(threads._open[-1].n if threads._open else threads._outside)

    def __repr__(self) -> str:
        return f"jt.threads({self.n})"


def get_threads() -> int:
    """How many threads a kernel may use, the caller included."""
    if _pool is not None:
        return _pool.threads
    if not supported():
        return 1
    return default_threads() if _asked is None else _asked


def pool_stats() -> PoolStats:
    """Counters of the pool; all zero while no compiled function has needed it."""
    return PoolStats(get_threads(), 0, 0, 0, 0) if _pool is None else _pool.stats()


serve("threads", set_threads, get_threads)
