"""The memory of the emulated driver's device: poison when it is allocated and when it was freed."""

from __future__ import annotations

import ctypes
from bisect import bisect_right, insort

import numpy as np

from ..library import INVALID_VALUE, OUT_OF_MEMORY

_GRANULE = 256
_POISON = 0xFF


class RefusedCall(Exception):
    """A call that the driver answers with an error code."""

    def __init__(self, code: int, why: str = "") -> None:
        super().__init__(why)
        self.code = code


class EmulatedMemory:
    """The device's memory: addresses of the process, with a gap of a granule after each allocation."""

    def __init__(self, nbytes: int) -> None:
        self.nbytes = nbytes
        self._bytes = np.empty(nbytes + 2 * _GRANULE, np.uint8)
        self._start = self._bytes.ctypes.data + -self._bytes.ctypes.data % _GRANULE
        self._sizes: dict[int, int] = {}
        self._starts: list[int] = []

    def allocate(self, nbytes: int) -> int:
        """The first place that is large enough."""
        room = -(-nbytes // _GRANULE) * _GRANULE
        address = self._start
        for start in self._starts:
            if address + room + _GRANULE <= start:
                break
            address = start + -(-self._sizes[start] // _GRANULE) * _GRANULE + _GRANULE
        if address + room > self._start + self.nbytes:
            raise RefusedCall(OUT_OF_MEMORY)
        insort(self._starts, address)
        self._sizes[address] = nbytes
        ctypes.memset(address, _POISON, nbytes)
        return address

    def free(self, address: int) -> None:
        if address not in self._sizes:
            raise RefusedCall(INVALID_VALUE, f"{address:#x} is freed and was not allocated")
        ctypes.memset(address, _POISON, self._sizes.pop(address))
        self._starts.remove(address)

    def used(self) -> int:
        return sum(-(-n // _GRANULE) * _GRANULE + _GRANULE for n in self._sizes.values())

    def ranges(self) -> list[tuple[int, int]]:
        """(start, end) of what is allocated, sorted."""
        return [(start, start + self._sizes[start]) for start in self._starts]

    def check(self, address: int, nbytes: int) -> None:
        """Raise Refused unless all these bytes belong to one allocation."""
        at = bisect_right(self._starts, address) - 1
        if at < 0 or address + nbytes > self._starts[at] + self._sizes[self._starts[at]]:
            raise RefusedCall(
                INVALID_VALUE, f"{nbytes} bytes at {address:#x} are not in what is allocated"
            )
