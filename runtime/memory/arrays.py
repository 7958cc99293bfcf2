"""Memory of a call: scratch for intermediate results, and the output arrays.

Scratch comes from one block per thread, which the next call on that thread finds again. Big
outputs come from a recycling pool (see `recycling`), small ones from NumPy.
"""

from __future__ import annotations

import math
import threading
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from .recycling import Recycler

ALIGNMENT = 64
_KEEP_LIMIT = 64 << 20  # a thread keeps a scratch block up to this size between calls
_PAGE = 4096
POOLED_BYTES = 1 << 18  # outputs of this size and more are recycled


class Scratch:
    """A block of `nbytes` scratch memory at `address`, 64-byte aligned."""

    __slots__ = ("address", "nbytes", "_owner")

    def __init__(self, nbytes: int) -> None:
        self._owner: Any = empty((nbytes + ALIGNMENT,), _BYTE)
        start = self._owner.__array_interface__["data"][0]
        self.address = start + (-start % ALIGNMENT)
        self.nbytes = nbytes


class _ScratchCache(threading.local):
    block: Scratch | None = None


_cache = _ScratchCache()
_BYTE = np.dtype(np.uint8)


def take_scratch(nbytes: int) -> Scratch:
    """A block of at least `nbytes`, for the caller alone until `give_scratch`.

    Calls may nest on one thread (native code may call Python, which calls native code): the inner
    one gets a block of its own.
    """
    block = _cache.block
    if block is not None and block.nbytes >= nbytes:
        _cache.block = None
        return block
    return Scratch(max(_PAGE, -(-nbytes // _PAGE) * _PAGE))


def give_scratch(block: Scratch) -> None:
    """Give a block back; the larger of this one and the one kept stays with the thread."""
    cached = _cache.block
    if block.nbytes <= _KEEP_LIMIT and (cached is None or cached.nbytes < block.nbytes):
        _cache.block = block


@cache
def recycler() -> Recycler:
    """The pool of this process. It is imported when the first big array is made."""
    from .recycling import recycler as made

    return made()


def empty(shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """An uninitialised C-contiguous array that owns its memory; recycled memory if it is big."""
    if math.prod(shape) * dtype.itemsize >= POOLED_BYTES:
        pool = recycler()
        if pool.enabled:
            return pool.empty(shape, dtype)
    return np.empty(shape, dtype)
