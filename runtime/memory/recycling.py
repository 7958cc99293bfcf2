"""Recycled memory for big output arrays: a NumPy memory handler (NEP 49) written in LLVM IR.

Fresh memory costs a page fault and a cleared page per 4 KiB (2 MiB at best), more than a fast
kernel's own work. Arrays made by `Recycler.empty` own their memory like any other; when such an
array dies, its block is kept and handed to the next array of about that size. Blocks are mapped
2 MiB-aligned, with huge pages asked for.

A block is preceded by a header with its true size, so nothing depends on the size that NumPy
reports when it frees. The kept blocks stand in a table of 64 entries under a lock that nobody waits
for; the oldest leave when their total passes the limit. The handler is in force only while `empty`
allocates (native calls ask it themselves, `arrays_ir.own_array`), so no array of the user's comes
from here.

    JITNEY_RECYCLE_MB=n    keep at most n MiB (default: 1/8 of the memory, at most 1024; 0: never)
"""

from __future__ import annotations

import ctypes
import os
from typing import Any

import numpy as np

from ...ir.record import record
from ..handlers import CAPSULE_NAME, Handler
from ..native.image import call_in_child
from ..native.layout import array_api, ndarray_layout
from ..native.llvm import lock
from ..native.support import load_support
from ..threads.futex import supported

_NAME = b"jitney"
_SET_HANDLER = 304  # PyDataMem_SetHandler in NumPy's API table, since 1.22


@record
class RecyclerStats:
    """What a recycler holds and has done."""

    kept: int  # bytes that wait for an array
    reused: int  # arrays made from kept blocks
    mapped: int  # blocks asked of the system


def _text() -> str:
    from .recycling_ir import recycling_ir  # with the first compilation: it imports the builder

    return recycling_ir()


class Recycler:
    """Makes arrays of recycled memory. `enabled` is False, with the `reason`, where it cannot."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.reason = ""
        try:
            self._install(limit)
        except Exception as error:  # whatever is unusual here, plain np.empty is always right
            self.reason = f"{type(error).__name__}: {error}"

    @property
    def enabled(self) -> bool:
        return not self.reason

    def _install(self, limit: int) -> None:
        if limit <= 0:
            self.reason = "JITNEY_RECYCLE_MB=0"
            return
        if not supported():
            self.reason = "written for Linux only"
            return
        if ndarray_layout() is None:
            self.reason = "unknown ndarray layout"
            return
        functions = ("malloc", "calloc", "realloc", "free")
        exports = [f"recycling_{name}" for name in functions]
        exports += ["forked", "trim", "limit", "kept", "reused", "mapped"]
        # Arrays may outlive everything else of ours.
        library = load_support("recycling", _text, exports).keep()
        addresses = {name: library.address(f"recycling_{name}") for name in functions}
        self._handler = Handler(name=_NAME, version=1, **addresses)
        new_capsule = ctypes.PYFUNCTYPE(
            ctypes.py_object, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p
        )(("PyCapsule_New", ctypes.pythonapi))
        self._capsule = new_capsule(
            ctypes.addressof(self._handler), ctypes.addressof(CAPSULE_NAME), None
        )
        self._set_handler: Any = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(
            array_api()[_SET_HANDLER]
        )
        self._counters = [
            ctypes.c_int64.from_address(library.address(name))
            for name in ("kept", "reused", "mapped")
        ]
        ctypes.c_int64.from_address(library.address("limit")).value = limit
        # The handler's block and code must not move or go: arrays hold bare pointers to them.
        _immortal.append(self)
        self._trim = ctypes.PYFUNCTYPE(None, ctypes.c_int64)(library.address("trim"))
        call_in_child(library.address("forked"))
        self._probe()

    def _probe(self) -> None:
        """One round trip, to be sure that NumPy uses the handler as we think."""
        from numpy._core import multiarray

        before = multiarray.get_handler_name()
        array = self.empty((1 << 18,), np.dtype(np.float64))
        if (
            multiarray.get_handler_name(array) != _NAME.decode()
            or multiarray.get_handler_name() != before
            or not array.flags.owndata
        ):
            self.reason = "NumPy does not take the memory handler"

    @property
    def handler(self) -> Any:
        """The memory handler as NumPy takes it; None if the recycler is not enabled."""
        return self._capsule if self.enabled else None

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
        """An uninitialised C-contiguous array. The caller checks `enabled`."""
        previous = self._set_handler(self._capsule)
        try:
            return np.empty(shape, dtype)
        finally:
            self._set_handler(previous)

    def trim(self, nbytes: int = 0) -> None:
        """Give memory back to the system until at most `nbytes` are kept."""
        if self.enabled:
            self._trim(nbytes)

    def stats(self) -> RecyclerStats:
        if not self.enabled:
            return RecyclerStats(0, 0, 0)
        return RecyclerStats(*(counter.value for counter in self._counters))


_immortal: list[Recycler] = []


def default_limit() -> int:
    """Bytes to keep at most: JITNEY_RECYCLE_MB, or an eighth of the memory up to 1 GiB."""
    setting = os.environ.get("JITNEY_RECYCLE_MB", "").strip()
    if setting:
        try:
            megabytes = int(setting)
        except ValueError:
            megabytes = -1
        if megabytes < 0:
            raise ValueError(f"JITNEY_RECYCLE_MB is a number of MiB, not {setting!r}")
        return megabytes << 20
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 256 << 20
    return min(1 << 30, memory // 8)


_recycler: Recycler | None = None


def recycler() -> Recycler:
    """The process's recycler."""
    global _recycler
    if _recycler is None:
        with lock:
            if _recycler is None:
                _recycler = Recycler(default_limit())
    return _recycler
