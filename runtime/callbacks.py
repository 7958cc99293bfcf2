"""Native code calling Python: a trampoline per executable, and what its functions raised."""

from __future__ import annotations

import ctypes
import math
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..codegen.module import CallbackSite
from ..ir.types import TensorType
from .recording import span

_Trampoline = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_int64, ctypes.c_void_p)


class Callbacks:
    """The Python functions of one executable. `address` is what native code calls.

    ctypes takes the GIL for the call, whether the native code runs with it or without. An exception is
    kept for the thread that made the call, and raised there when the native code has returned.
    """

    def __init__(self, sites: Sequence[CallbackSite]) -> None:
        self.sites = list(sites)
        self._failures = threading.local()
        self._trampoline = _Trampoline(self._call)
        self.address = ctypes.cast(self._trampoline, ctypes.c_void_p).value or 0

    def _call(self, number: int, block: int) -> int:
        try:
            site = self.sites[number]
            types = [*site.operands, *site.results]
            pointers = (ctypes.c_void_p * len(types)).from_address(block)
            arrays = [_array_at(p, t) for p, t in zip(pointers, types, strict=True)]
            count = len(site.operands)
            with span("callback", getattr(site.function, "name", "callback")):
                fill = getattr(site.function, "fill", None)
                if fill is not None:  # it writes where the results are
                    fill(arrays[:count], arrays[count:])
                    return 0
                values = site.function(*arrays[:count])
            for output, value in zip(arrays[count:], values, strict=True):
                output[...] = value
        except BaseException as error:
            _note(error, site)
            self._failures.error = error
            return 1
        return 0

    def take_failure(self) -> BaseException:
        """What the callback raised in this thread."""
        error: BaseException = self._failures.error
        del self._failures.error
        return error


def _note(error: BaseException, site: CallbackSite) -> None:
    """Say where the program that called the function is."""
    if site.loc is None or not isinstance(error, Exception):
        return
    name = getattr(site.function, "name", "")
    where = f"at {site.loc}{site.loc.inside}"
    if name and name != type(error).__name__:  # else a `raise` of the user's, of any class
        where = f"in {name}, called {where}"
    if where not in getattr(error, "__notes__", ()):
        error.add_note(where)


def _array_at(pointer: int | None, type: TensorType) -> np.ndarray[Any, Any]:
    """The memory at `pointer` as an array; valid while the native code waits."""
    if type.size == 0 or pointer is None:
        return np.empty(type.shape, type.dtype)
    nbytes = math.prod(type.shape) * type.dtype.itemsize
    memory: Any = (ctypes.c_char * nbytes).from_address(pointer)
    return np.frombuffer(memory, type.dtype).reshape(type.shape)
