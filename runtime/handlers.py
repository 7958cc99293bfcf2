"""NumPy's memory handlers (NEP 49): what they look like, and where their functions are."""

from __future__ import annotations

import ctypes
from typing import Any

CAPSULE_NAME = ctypes.create_string_buffer(b"mem_handler")  # capsules of handlers point here
TRACE_DOMAIN = 389047  # NPY_TRACE_DOMAIN: where tracemalloc finds the memory of arrays


class Handler(ctypes.Structure):
    """PyDataMem_Handler."""

    _fields_ = [
        ("name", ctypes.c_char * 127),
        ("version", ctypes.c_uint8),
        ("ctx", ctypes.c_void_p),
        ("malloc", ctypes.c_void_p),
        ("calloc", ctypes.c_void_p),
        ("realloc", ctypes.c_void_p),
        ("free", ctypes.c_void_p),
    ]


def functions_of(handler: Any) -> int:
    """The address of a handler's `Handler`."""
    get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
    get_pointer.restype = ctypes.c_void_p
    get_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    address: int = get_pointer(handler, CAPSULE_NAME.value)
    return address
