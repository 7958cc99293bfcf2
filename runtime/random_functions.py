"""Where the compiled functions of NumPy's generators are: native code calls them by address.

NumPy's C interface to its distributions (`numpy/random/c_distributions.pxd`) is compiled into the module
of its `Generator`, whose symbols the dynamic linker knows on Linux and macOS.
"""

from __future__ import annotations

import ctypes
import functools
from importlib import import_module
from typing import Any


@functools.cache
def _library() -> Any:
    return ctypes.CDLL(import_module("numpy.random._generator").__file__)


@functools.cache
def function_address(name: str) -> int:
    """The address of a function; RuntimeError if there is none of that name."""
    address = _address(name)
    if not address:
        raise RuntimeError(f"NumPy's generators have no function {name} that others can call")
    return address


def _address(name: str) -> int:
    function = getattr(_library(), name, None)
    return 0 if function is None else ctypes.cast(function, ctypes.c_void_p).value or 0


@functools.cache
def are_there() -> bool:
    """Whether the functions can be called at all."""
    try:
        return all(map(_address, ("random_standard_uniform", "random_interval", "random_binomial")))
    except OSError:
        return False
