"""Which arrays can be traced, and what is said about the others."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from ..ir.types import is_supported
from ..runtime.cuda.array import DeviceArray
from . import errors
from .errors import complain

Array = np.ndarray[Any, Any]


def check_array(x: Array) -> Array:
    """`x` itself, if it is an ndarray that can live in a graph; otherwise an ArgumentError."""
    if type(x) is not np.ndarray:
        if isinstance(x, np.ma.MaskedArray):
            refuse(x, "a masked array", "compute with x.data and x.mask as two arrays")
        if isinstance(x, np.matrix):
            refuse(x, "np.matrix", "pass np.asarray(x) and write @ for the matrix product")
        if isinstance(x, np.memmap):
            return x.view(np.ndarray)
        refuse(x, f"{type(x).__name__}, a subclass of ndarray,", "pass np.asarray(x)")
    if not is_supported(x.dtype):
        if is_supported(x.dtype.newbyteorder("=")):
            return x.astype(x.dtype.newbyteorder("="))
        refuse(x, f"dtype {x.dtype}", _dtype_remedy(x.dtype))
    return x


def _dtype_remedy(dtype: np.dtype[Any]) -> str:
    if dtype.kind == "O":
        return "give the array a number dtype with x.astype(np.float64); ragged lists need padding"
    if dtype.kind in "SU":
        return "strings stay outside of the compiled function; pass codes (integers)"
    return "convert it with x.astype(np.float64), or np.float32"


def refuse(x: Any, what: str, remedy: str | None = None) -> NoReturn:
    """Raise ArgumentError: `x` cannot be traced."""
    if remedy is None and isinstance(x, DeviceArray):
        remedy = (
            "put the call into a function under jt.jit, which runs where its arrays are, or pass "
            "np.asarray(x)"
        )
    complain(
        errors.ArgumentError,
        f"jitney cannot trace {what}: arrays of bool, integers, floats of up to 64 "
        "bits, complex64 and complex128, Python and NumPy scalars, and pytrees of them, can be traced",
        f"{remedy or 'pass an array or a number'}.",
        operands={"value": x},
    )
