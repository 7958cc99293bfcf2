"""Memory of a device: buffers that free themselves in the order of their stream, and who holds it all.

    pool = context_pool(context)
    buffer = pool.allocate(nbytes, stream, "f32[4096,4096], result of attention")
    buffer.address                                # until `buffer` dies

The driver's own pool recycles what is freed. Drivers without one get free lists here. When memory runs
out, everything that nobody needs is given back first; then the error names the largest buffers.
"""

from __future__ import annotations

import gc
import heapq
import itertools
import sys
import threading
import weakref
from typing import Any

from .driver import Context
from .library import OUT_OF_MEMORY, DeviceError

_SMALL = (
    512  # sizes in the free lists are multiples of this, and of an eighth of their power of two
)
_NAMED = 5  # buffers that an error names


class OutOfMemoryError(DeviceError, MemoryError):
    """The device's memory is full."""


class Buffer:
    """Memory of a device, freed when this dies, after the work that its streams then have."""

    __slots__ = ("address", "nbytes", "label", "stream", "_pool", "_others", "__weakref__")

    def __init__(self, pool: Pool, address: int, nbytes: int, stream: int, label: str) -> None:
        self.address = address
        self.nbytes = nbytes
        self.label = label
        self.stream = stream
        self._pool = pool
        self._others: set[int] = set()

    def used_on(self, stream: int) -> None:
        """Work on another stream than its own reads or writes it."""
        if stream != self.stream:
            self._others.add(stream)

    def __repr__(self) -> str:
        return f"<Buffer {size_text(self.nbytes)} at {self.address:#x}: {self.label}>"

    def __del__(self) -> None:
        pool = getattr(self, "_pool", None)
        if pool is not None:
            pool._give(self)


class Pool:
    """All buffers of a context."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self._lock = threading.RLock()
        self._live: weakref.WeakSet[Buffer] = weakref.WeakSet()
        self._kept: dict[tuple[int, int], list[int]] = {}  # by stream and size
        self._reclaimable: weakref.WeakSet[Any] = weakref.WeakSet()

    def allocate(self, nbytes: int, stream: int, label: str = "") -> Buffer:
        """Memory for work on `stream`. `label` says what it is for when memory runs out."""
        size = self._size(nbytes)
        with self._lock:
            kept = self._kept.get((stream, size))
            address = kept.pop() if kept else self._ask(size, nbytes, stream, label)
            buffer = Buffer(self, address, nbytes, stream, label)
            self._live.add(buffer)
        return buffer

    def reclaimable(self, holder: Any) -> None:
        """`holder.release_memory()` is called before memory is said to be full."""
        self._reclaimable.add(holder)

    def live(self) -> list[Buffer]:
        """The buffers that are alive, largest first."""
        with self._lock:
            return heapq.nlargest(len(self._live), list(self._live), key=lambda b: b.nbytes)

    def _size(self, nbytes: int) -> int:
        """What is asked of the driver: with free lists, a size that others will ask for too."""
        if self.context.stream_ordered:
            return nbytes
        step = max(_SMALL, 1 << max(nbytes.bit_length() - 4, 0))
        return -(-max(nbytes, 1) // step) * step

    def _ask(self, size: int, nbytes: int, stream: int, label: str) -> int:
        for attempt in itertools.count():
            try:
                return self.context.allocate(size, stream)
            except DeviceError as error:
                if error.code != OUT_OF_MEMORY:
                    raise
                if attempt:
                    raise self._full(nbytes, label) from None
                self._release_everything()
        raise AssertionError

    def _release_everything(self) -> None:
        """Give back what nobody needs: garbage, idle scratch memory, free lists, the driver's pool."""
        gc.collect()
        for holder in list(self._reclaimable):
            holder.release_memory()
        for (stream, _), addresses in self._kept.items():
            while addresses:
                self.context.free(addresses.pop(), stream)
        self.context.trim()

    def _full(self, nbytes: int, label: str) -> OutOfMemoryError:
        free, total = self.context.memory()
        live = self.live()
        named = [f"  {size_text(b.nbytes)}: {b.label or 'no name'}" for b in live[:_NAMED]]
        held = sum(b.nbytes for b in live)
        rest = [f"  and {len(live) - _NAMED} more"] if len(live) > _NAMED else []
        what = f" for {label}" if label else ""
        return OutOfMemoryError(
            f"{self.context.info} has no {size_text(nbytes)} left{what}: {size_text(free)} of "
            f"{size_text(total)} are free, {len(live)} live arrays of this process hold "
            f"{size_text(held)}. The largest:\n" + "\n".join([*named, *rest]),
            OUT_OF_MEMORY,
        )

    def _give(self, buffer: Buffer) -> None:
        """A buffer has died: its stream waits for the others that used it, then frees."""
        if sys.is_finalizing():
            return
        try:
            context = self.context
            for other in buffer._others:
                event = context.create_event()
                context.record_event(event, other)
                context.wait_event(buffer.stream, event)
                context.destroy_event(event)
            if context.stream_ordered:
                context.free(buffer.address, buffer.stream)
            else:
                with self._lock:
                    key = (buffer.stream, self._size(buffer.nbytes))
                    self._kept.setdefault(key, []).append(buffer.address)
        except Exception:  # the device is lost, or the process was forked: nobody could be told
            pass


def size_text(nbytes: int) -> str:
    """`3.2 MiB`."""
    for unit, shift in (("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if nbytes >= 1 << shift:
            return f"{nbytes / (1 << shift):.1f} {unit}"
    return f"{nbytes} B"


_pools: weakref.WeakKeyDictionary[Context, Pool] = weakref.WeakKeyDictionary()
_making = threading.Lock()


def context_pool(context: Context) -> Pool:
    """The one pool of a context."""
    with _making:
        return _pools.setdefault(context, Pool(context))
