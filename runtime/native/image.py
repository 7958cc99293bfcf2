"""Loading an `Image` into this process: map, fill in the addresses, make the code executable.

    library = load_image(image, {"jitney_parallel_for": address})
    library.address("entry")

Memory is never writable and executable at once. The code is unmapped when the library dies.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import platform
import weakref
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Any

import numpy as np

from ...ir.record import record
from ..config import config
from .layout import refuse_without_gil
from .perf_map import write_perf_map

PAGE = 4096


@record
class Image:
    """Linked code, still to be given addresses. Offsets count from the image's first byte.

    code, data       what the regions begin with; the rest of each is zero
    code_size        whole pages: the data region begins there
    data_size        the size of the data region, zeros included
    exports          offsets of the symbols that the object defines for others
    imports          names of the symbols that others must define
    own              (offsets of words, offsets that they point to)
    outer            (offset of a word, index in `imports`, addend)
    functions        (name, offset, bytes), of those that nobody outside calls, too
    """

    code: bytes
    data: bytes
    code_size: int
    data_size: int
    exports: dict[str, int]
    imports: tuple[str, ...]
    own: tuple[tuple[int, int], ...] = ()
    outer: tuple[tuple[int, int, int], ...] = ()
    functions: tuple[tuple[str, int, int], ...] = ()


class LoadError(Exception):
    """An image cannot be loaded here: a symbol is missing, or the system refuses."""


class LoadedImage:
    """Machine code in this process. Addresses are valid, and the code stays, while this lives."""

    def __init__(self, owner: Any, addresses: dict[str, int], nbytes: int) -> None:
        self._held = owner
        self._addresses = addresses
        self.nbytes = nbytes  # what it occupies
        _loaded.add(self)

    def address(self, symbol: str) -> int:
        return self._addresses[symbol]

    def keep(self) -> LoadedImage:
        """Never unload: for code that runs on threads, or is called by objects, we do not track."""
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self))  # beyond the interpreter's own end
        return self


_loaded: weakref.WeakSet[LoadedImage] = weakref.WeakSet()


def loaded_libraries() -> tuple[int, int]:
    """How many libraries are loaded now, and their bytes."""
    libraries = list(_loaded)
    return len(libraries), sum(library.nbytes for library in libraries)


@lru_cache(maxsize=1)
def _process() -> tuple[Any, ...]:
    """Where symbols of the process are looked up: everything global, then the C maths library."""
    libraries = [ctypes.CDLL(None, use_errno=True)]
    with suppress(OSError):
        libraries.append(ctypes.CDLL("libm.so.6"))
    return tuple(libraries)


def symbol_address(name: str) -> int | None:
    """The address of a symbol of this process (libc, libm, Python), None if it has none."""
    for library in _process():
        try:
            function = getattr(library, name)
        except AttributeError:
            continue
        return ctypes.cast(function, ctypes.c_void_p).value
    return None


def _show_code(start: int, size: int) -> None:
    """Tell a CPU whose instruction cache does not watch memory that there is new code."""
    if platform.machine() == "aarch64":
        clear = getattr(ctypes.CDLL("libgcc_s.so.1"), "__clear_cache")
        clear(ctypes.c_void_p(start), ctypes.c_void_p(start + size))


def call_in_child(address: int) -> None:
    """Have fork() call the code at `address`, a `void()`, in the child, before any Python runs there.

    The code must stay for ever.
    """
    for name in ("__register_atfork", "pthread_atfork"):  # of glibc and of others
        register = getattr(_process()[0], name, None)
        if register is not None and not register(None, None, ctypes.c_void_p(address), None):
            return
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=ctypes.PYFUNCTYPE(None)(address))


def load_image(image: Image, imports: Mapping[str, int] | None = None) -> LoadedImage:
    """Load. `imports` gives addresses; other symbols are found in the process by name."""
    refuse_without_gil()
    imported = imports or {}
    outer = []
    for name in image.imports:
        address = imported[name] if name in imported else symbol_address(name)
        if address is None:
            raise LoadError(f"no symbol {name}")
        outer.append(address)
    size = image.code_size + -(-image.data_size // PAGE) * PAGE
    memory = mmap.mmap(-1, max(size, PAGE), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    memory[: len(image.code)] = image.code
    memory[image.code_size : image.code_size + len(image.data)] = image.data
    words = np.frombuffer(memory, np.uint64, size // 8)
    for where, target in image.own:
        words[where // 8] = start + target
    for where, number, addend in image.outer:
        words[where // 8] = outer[number] + addend
    protect = _process()[0].mprotect
    protect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    if image.code_size and protect(start, image.code_size, mmap.PROT_READ | mmap.PROT_EXEC):
        raise LoadError("the system does not let memory become executable")
    _show_code(start, image.code_size)
    if config.perf:
        write_perf_map(start, image.functions)
    # The array holds the mapping: it is unmapped when the library goes.
    addresses = {name: start + offset for name, offset in image.exports.items()}
    return LoadedImage(words, addresses, size)
