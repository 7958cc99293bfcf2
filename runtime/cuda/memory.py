"""Memory of a device: buffers that free themselves in the order of their stream, and who holds it all.

    pool = context_pool(context)
    buffer = pool.allocate(nbytes, stream, "f32[4096,4096], result of attention")
    buffer.address                                # until `buffer` dies

What has been freed is kept in free lists, so that small arrays come and go without the driver: all of it
where the driver has no pool of its own, else so much as is soon wanted again. When memory runs out,
everything that nobody needs is given back first; then the error names the largest buffers.
"""

from __future__ import annotations

import gc
import itertools
import sys
import threading
import weakref
from typing import Any, Protocol

from ...ir.forks import renewed
from .driver import Context
from .library import OUT_OF_MEMORY, DeviceError

# Sizes in the free lists are multiples of this, and of an eighth of their power of two.
_SMALL = 512
_RECYCLED = 1 << 20  # bytes of a buffer, up to which it is kept although the driver has a pool
_KEPT = 4 << 20  # bytes of such buffers of one size and stream,
_SIZES = 32  # of which there are not more
_NAMED = 5  # buffers that an error names


class OutOfMemoryError(DeviceError, MemoryError):
    """The device's memory is full."""


class PendingRun(Protocol):
    """A run of a program whose checks may complain."""

    def wait(self) -> None: ...

    def succeeded(self) -> bool: ...


class DeviceMemory:
    """Memory of a device at `address`, the runs whose checks its contents depend on, and the streams
    besides its own that use it."""

    __slots__ = ("__weakref__", "address", "nbytes", "others", "runs")

    def __init__(self, address: int, nbytes: int) -> None:
        self.address = address
        self.nbytes = nbytes
        self.runs: tuple[PendingRun, ...] = ()
        self.others: tuple[int, ...] = ()

    def used_on(self, stream: int) -> None:
        """Work on another stream than its own reads or writes it."""
        if stream not in self.others:
            self.others += (stream,)

    def check(self) -> None:
        """Raise what a run that the contents depend on has complained of. Waits for such runs."""
        for run in self.runs:
            run.wait()
        self.runs = ()

    def pending(self) -> list[PendingRun]:
        """The runs of which is not known yet whether they went well."""
        return [run for run in self.runs if not run.succeeded()]


class DeviceBuffer(DeviceMemory):
    """Memory of a device, freed when this dies, after the work that its streams then have."""

    __slots__ = ("label", "stream", "_pool", "_home")

    def __init__(
        self, pool: Pool, address: int, nbytes: int, stream: int, label: str, home: _Home | None
    ) -> None:
        self.address = address
        self.nbytes = nbytes
        self.runs = ()
        self.label = label
        self.stream = stream
        self._pool = pool
        self.others = ()
        self._home = home

    def used_on(self, stream: int) -> None:
        if stream != self.stream:
            super().used_on(stream)

    def __repr__(self) -> str:
        return f"<Buffer {size_text(self.nbytes)} at {self.address:#x}: {self.label}>"

    def __del__(self) -> None:
        home = self._home
        if home is not None and not self.others and len(home.addresses) < home.most:
            home.addresses.append(self.address)
        else:
            self._pool._give(self)


class _Home:
    """Addresses of buffers of one size that nobody has, to be used again on one stream."""

    __slots__ = ("addresses", "most", "size", "stream")

    def __init__(self, size: int, stream: int, most: int) -> None:
        self.addresses: list[int] = []
        self.size, self.stream, self.most = size, stream, most


class Pool:
    """All buffers of a context."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self._lock = renewed(threading.RLock())
        self._homes: dict[
            tuple[int, int], _Home
        ] = {}  # by stream and bytes, those of sizes negative
        # An emulated driver's pool looks whether memory is used that was freed: it gets all of it back.
        most = 0 if context.info.emulated else _RECYCLED
        self._recycled = most if context.stream_ordered else sys.maxsize
        self._reclaimable: weakref.WeakSet[Any] = weakref.WeakSet()

    def allocate(self, nbytes: int, stream: int, label: str = "") -> DeviceBuffer:
        """Memory for work on `stream`. `label` says what it is for when memory runs out."""
        home = self._homes.get((stream, nbytes)) or self._home(nbytes, stream)
        if home is not None:
            try:
                return DeviceBuffer(self, home.addresses.pop(), nbytes, stream, label, home)
            except IndexError:
                pass
        with self._lock:
            address = self._ask(nbytes if home is None else home.size, nbytes, stream, label)
        return DeviceBuffer(self, address, nbytes, stream, label, home)

    def _home(self, nbytes: int, stream: int) -> _Home | None:
        """Where buffers of about that size come from and go to; None: the driver."""
        if nbytes > self._recycled or (nbytes == self._recycled == 0):
            return None
        size, pooled = _size(nbytes), self.context.stream_ordered
        with self._lock:
            home = self._homes.get((stream, -size))
            if home is None:
                if pooled and len(self._homes) >= 2 * _SIZES:
                    return None
                home = _Home(size, stream, _KEPT // size if pooled else sys.maxsize)
                self._homes[stream, -size] = home
            if len(self._homes) < 4 * _SIZES:
                self._homes[stream, nbytes] = home  # found at once from now on
        return home

    def reclaimable(self, holder: Any) -> None:
        """`holder.release_memory()` is called before memory is said to be full."""
        self._reclaimable.add(holder)

    def live(self) -> list[DeviceBuffer]:
        """The buffers that are alive, largest first. Nobody keeps a list of them: this takes long."""
        alive = [x for x in gc.get_objects() if type(x) is DeviceBuffer and x._pool is self]
        return sorted(alive, key=lambda b: -b.nbytes)

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
        for home in list(self._homes.values()):
            while home.addresses:
                self.context.free(home.addresses.pop(), home.stream)
        self.context.trim()

    def _full(self, nbytes: int, label: str) -> OutOfMemoryError:
        free, total = self.context.memory()
        live = self.live()
        named = [f"  {size_text(b.nbytes)}: {b.label or 'no name'}" for b in live[:_NAMED]]
        nbytes_held = sum(b.nbytes for b in live)
        rest = [f"  and {len(live) - _NAMED} more"] if len(live) > _NAMED else []
        what = f" for {label}" if label else ""
        return OutOfMemoryError(
            f"{self.context.info} has no {size_text(nbytes)} left{what}: {size_text(free)} of "
            f"{size_text(total)} are free, {len(live)} live arrays of this process hold "
            f"{size_text(nbytes_held)}. The largest:\n" + "\n".join([*named, *rest]),
            OUT_OF_MEMORY,
        )

    def _give(self, buffer: DeviceBuffer) -> None:
        """A buffer has died: its stream waits for the others that used it, then frees."""
        try:
            if sys.is_finalizing():
                return
            for other in buffer.others:
                self._let_wait(buffer.stream, other)
            home = buffer._home
            if home is not None and len(home.addresses) < home.most:
                home.addresses.append(buffer.address)
            else:
                self.context.free(buffer.address, buffer.stream)
        except Exception:
            pass  # the device is lost, the process forked or at its end: nobody could be told

    def _let_wait(self, stream: int, other: int) -> None:
        try:
            self.context.order(other, stream)
        except DeviceError:  # its owner has destroyed it, but may not have waited for it
            self.context.synchronize_all()


def _size(nbytes: int) -> int:
    """A size that others will ask for too."""
    step = max(_SMALL, 1 << max(nbytes.bit_length() - 4, 0)) if nbytes > 8 * _SMALL else _SMALL
    return -(-nbytes // step) * step or step


def size_text(nbytes: int) -> str:
    """`3.2 MiB`."""
    for unit, shift in (("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if nbytes >= 1 << shift:
            return f"{nbytes / (1 << shift):.1f} {unit}"
    return f"{nbytes} B"


_pools: weakref.WeakKeyDictionary[Context, Pool] = weakref.WeakKeyDictionary()
_making = renewed(threading.RLock())


def context_pool(context: Context) -> Pool:
    """The one pool of a context."""
    with _making:
        return _pools.setdefault(context, Pool(context))
