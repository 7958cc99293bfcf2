"""Where the compiled loops of NumPy's generalised ufuncs are: native code calls them by address.

A ufunc object holds a table of its loops, one per combination of types, as C fields that have been
the same since NumPy 1.0. They are compared with what the object says of itself before they are used.
"""

from __future__ import annotations

import ctypes
import functools
from importlib import import_module
from typing import Any

import numpy as np

from ..codegen.target import Target
from ..ir.forks import in_child


class _Ufunc(ctypes.Structure):
    """The fields of a ufunc object behind the object's head."""

    _fields_ = [
        ("nin", ctypes.c_int),
        ("nout", ctypes.c_int),
        ("nargs", ctypes.c_int),
        ("identity", ctypes.c_int),
        ("functions", ctypes.POINTER(ctypes.c_void_p)),
        ("data", ctypes.POINTER(ctypes.c_void_p)),
        ("ntypes", ctypes.c_int),
        ("reserved", ctypes.c_int),
        ("name", ctypes.c_char_p),
    ]


_SHARED = (ctypes.c_int64 * 3)()  # a lock, how many run with one thread, how many there were before
_PREFIXES = ("scipy_openblas_", "openblas_")
_SUFFIXES = ("_num_threads64_", "_num_threads")


def blas_address(symbol: str) -> int:
    """The address of OpenBLAS's function that tells or sets how many threads it has, or of the words
    that its users share. Where NumPy has another BLAS, a function that does nothing."""
    kind = symbol.partition(":")[2]
    if kind == "words":
        _watch_forks()
        return ctypes.addressof(_SHARED)
    return ctypes.cast(_blas(kind), ctypes.c_void_p).value or 0


def _blas(kind: str) -> Any:
    module = import_module("numpy.linalg._umath_linalg")
    library = ctypes.CDLL(module.__file__)  # symbols of what it depends on are found, too
    for prefix in _PREFIXES:
        for suffix in _SUFFIXES:
            function = getattr(library, f"{prefix}{kind}{suffix}", None)
            if function is not None:
                return function
    return ctypes.CDLL(None).abs


@functools.cache
def _watch_forks() -> None:
    in_child(_forget)


def _forget() -> None:
    """In a forked process none of the threads exist that were computing.

    Where one of them held the lock, it may hold a lock of the BLAS as well: that is left alone.
    """
    if _SHARED[1] and not _SHARED[0]:
        _blas("set")(int(_SHARED[2]))
    _SHARED[0] = _SHARED[1] = 0


def loop_address(symbol: str) -> int:
    """The address of a loop, or of the data that it wants: `LOOP:module:name:types`."""
    kind, module, name, types = symbol.split(":")
    ufunc = getattr(import_module(module), name, None)
    if not isinstance(ufunc, np.ufunc) or types not in ufunc.types:
        raise RuntimeError(f"NumPy {np.__version__} has no loop {types} of {module}.{name}")
    fields = _Ufunc.from_address(id(ufunc) + object.__basicsize__)
    said = (fields.nin, fields.nout, fields.nargs, fields.ntypes, fields.name)
    if said != (ufunc.nin, ufunc.nout, ufunc.nargs, ufunc.ntypes, ufunc.__name__.encode()):
        raise RuntimeError(f"the ufuncs of NumPy {np.__version__} have a layout that is not known")
    table = fields.functions if kind == Target.LOOP else fields.data
    return (table[ufunc.types.index(types)] or 0) if table else 0
