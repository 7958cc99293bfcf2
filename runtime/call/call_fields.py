"""What native callables and the code of their calls agree on: fields, and objects by address."""

from __future__ import annotations

from types import FunctionType, MethodType
from typing import Any

import numpy as np

# The fields that native objects have after those of their base.
VECTORCALL = 0
CHAIN_OBJECT = 1  # owns the words of the chain; null when the object is being cleared
CHAIN_WORDS = 2  # address of the chain
FALLBACK = 3  # the Python function
FIELDS = 4

# A chain: a context variable, the address of the number of contexts where it may be set, whether Python
# code may run in one of the programs, their number; and then their addresses.
CHAIN_HEAD = 4

OBJECTS: dict[str, Any] = {
    "ndarray_type": np.ndarray,
    "uint8": np.dtype(np.uint8),
    "none": None,
    "true": True,
    "memory_error": MemoryError,
    "no_memory": "Unable to allocate the results or temporaries of a compiled function: its `explain` "
    "says which arrays are alive at the peak, and how large they are",
    "false": False,
    "PyFloat_Type": float,
    "PyComplex_Type": complex,
    "PyLong_Type": int,
    "PyBool_Type": bool,
    "PyUnicode_Type": str,
    "PyList_Type": list,
    "PyDict_Type": dict,
    "PyFunction_Type": FunctionType,
    "PyMethod_Type": MethodType,
}
