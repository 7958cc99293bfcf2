"""Arrays to and from a device, through pinned memory.

    upload(pool, array, stream)                        # a Buffer; the array may change at once
    download(pool, address, array, stream)             # waits; `array` is C-contiguous
    pending = begin_download(pool, address, shape, dtype, stream)
    pending.wait()                                     # the array

The device reads and writes pinned memory by itself while the host goes on, but pinning is slow, so a few
blocks are kept: large arrays go through two of them in turns, one being filled while the other travels.
"""

from __future__ import annotations

import ctypes
import sys
import threading
import weakref
from typing import Any

import numpy as np

from ...ir.forks import renewed
from .driver import Context
from .memory import DeviceBuffer, Pool

Array = np.ndarray[Any, Any]
DIRECT_BYTES = 64 << 10  # up to this the driver stages by itself, at the time of the call
BLOCK_BYTES = 4 << 20
KEPT_BYTES = 64 << 20  # of pinned memory that waits for another use


class _PinnedCache:
    """Pinned blocks of a context that wait for the next use, by size."""

    def __init__(self) -> None:
        self.lock = renewed(threading.RLock())
        self.blocks: dict[int, list[int]] = {}
        self.nbytes = 0


_pinned: weakref.WeakKeyDictionary[Context, _PinnedCache] = weakref.WeakKeyDictionary()


class Pinned:
    """Memory of the host that a device reads and writes, kept for another use when this dies."""

    __slots__ = ("address", "nbytes", "_context", "_size")

    def __init__(self, context: Context, nbytes: int) -> None:
        self._context = context
        self.nbytes = nbytes
        self._size = max(64, 1 << (nbytes - 1).bit_length()) if nbytes else 64
        cache = _pinned.setdefault(context, _PinnedCache())
        with cache.lock:
            blocks = cache.blocks.get(self._size)
            self.address = blocks.pop() if blocks else 0
            if self.address:
                cache.nbytes -= self._size
        if not self.address:
            self.address = context.allocate_pinned(self._size)

    def array(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """The memory as an array, which keeps it alive."""
        nbytes = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        memory: Any = (ctypes.c_ubyte * max(nbytes, 1)).from_address(self.address)
        memory.pinned = self
        return np.frombuffer(memory, np.uint8)[:nbytes].view(dtype).reshape(shape)

    def __del__(self) -> None:
        address = getattr(self, "address", 0)
        if not address or sys.is_finalizing():
            return
        cache = _pinned[self._context]
        with cache.lock:
            keep = cache.nbytes + self._size <= KEPT_BYTES
            if keep:
                cache.blocks.setdefault(self._size, []).append(address)
                cache.nbytes += self._size
        if not keep:
            self._context._release("cuMemFreeHost", address)


class _Staging:
    """Two pinned blocks of a context, with the events after which they can be used again."""

    def __init__(self, context: Context) -> None:
        self.lock = renewed(threading.RLock())
        self.blocks = [Pinned(context, BLOCK_BYTES) for _ in range(2)]
        self.events = [context.create_event() for _ in range(2)]


_staging: weakref.WeakKeyDictionary[Context, _Staging] = weakref.WeakKeyDictionary()
_making = renewed(threading.RLock())


def _staging_of(context: Context) -> _Staging:
    with _making:
        staging = _staging.get(context)
        if staging is None:
            staging = _staging[context] = _Staging(context)
        return staging


def upload(pool: Pool, array: Array, stream: int, label: str = "") -> DeviceBuffer:
    """A copy of the array's elements, C-contiguous, on the device."""
    buffer = pool.allocate(array.nbytes, stream, label)
    upload_to(pool.context, buffer.address, array, stream)
    return buffer


def upload_to(context: Context, address: int, array: Array, stream: int) -> None:
    """Copy an array's elements to a place on the device. The array has been read when this returns."""
    array = np.ascontiguousarray(array)
    source, nbytes = array.ctypes.data, array.nbytes
    if nbytes <= DIRECT_BYTES:
        context.copy_in(address, source, nbytes, stream)
        return
    staging = _staging_of(context)
    with staging.lock:
        for number, start in enumerate(range(0, nbytes, BLOCK_BYTES)):
            block, event = staging.blocks[number % 2], staging.events[number % 2]
            size = min(BLOCK_BYTES, nbytes - start)
            context.synchronize_event(event)
            ctypes.memmove(block.address, source + start, size)
            context.copy_in(address + start, block.address, size, stream)
            context.record_event(event, stream)


def download(context: Context, address: int, array: Array, stream: int) -> None:
    """Fill a C-contiguous array from a place on the device. Waits for the stream's work so far."""
    target, nbytes = array.ctypes.data, array.nbytes
    assert array.flags.c_contiguous
    if nbytes <= DIRECT_BYTES:
        context.copy_out(target, address, nbytes, stream)
        context.synchronize(stream)
        return
    staging = _staging_of(context)
    with staging.lock:
        starts = list(range(0, nbytes, BLOCK_BYTES))
        sizes = [min(BLOCK_BYTES, nbytes - start) for start in starts]

        def begin(number: int) -> None:
            block, event = staging.blocks[number % 2], staging.events[number % 2]
            context.synchronize_event(event)  # an upload may still read the block
            context.copy_out(block.address, address + starts[number], sizes[number], stream)
            context.record_event(event, stream)

        for number in range(min(2, len(starts))):
            begin(number)
        for number, (start, size) in enumerate(zip(starts, sizes, strict=True)):
            context.synchronize_event(staging.events[number % 2])
            ctypes.memmove(target + start, staging.blocks[number % 2].address, size)
            if number + 2 < len(starts):
                begin(number + 2)


class Pending:
    """An array on its way to the host. `keep`: what must live until it has arrived."""

    def __init__(self, context: Context, array: Array, event: int, keep: Any) -> None:
        self._context = context
        self._array = array
        self._event = event
        self._keep = keep

    def done(self) -> bool:
        return not self._event or self._context.has_happened(self._event)

    def wait(self) -> Array:
        """The array, in pinned memory of its own."""
        if self._event:
            self._context.synchronize_event(self._event)
            self._context.destroy_event(self._event)
            self._event, self._keep = 0, None
        return self._array

    def __del__(self) -> None:
        if getattr(self, "_event", 0):
            self.wait()  # the memory may not go while the device writes it


def begin_download(
    context: Context,
    address: int,
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    stream: int,
    keep: Any = None,
) -> Pending:
    """Ask for an array without waiting for it."""
    array = Pinned(context, int(np.prod(shape, dtype=np.int64)) * dtype.itemsize).array(
        shape, dtype
    )
    context.copy_out(array.ctypes.data, address, array.nbytes, stream)
    event = context.create_event()
    context.record_event(event, stream)
    return Pending(context, array, event, keep)
