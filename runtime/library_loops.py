"""Where the compiled loops of NumPy's generalised ufuncs are: native code calls them by address.

A ufunc object holds a table of its loops, one per combination of types, as C fields that have been
the same since NumPy 1.0. They are compared with what the object says of itself before they are used.
"""

from __future__ import annotations

import ctypes
from importlib import import_module

import numpy as np

from ..codegen.target import Target


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
