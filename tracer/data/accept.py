"""Which arrays can be traced, and what is said about the others."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from ...ir.types import I64, is_supported
from ...runtime.cuda.array import DeviceArray
from ..messages import errors
from ..messages.errors import complain

Array = np.ndarray[Any, Any]


def check_array(x: Array) -> Array:
    """`x` itself, if it is an ndarray that can live in a graph; otherwise an ArgumentError. One in the
    other byte order is converted."""
    x = plain_array(x)
    return x if x.dtype.isnative else x.astype(x.dtype.newbyteorder("="))


def plain_array(x: Array, name: str = "") -> Array:
    """As `check_array`, but that an array in the other byte order stays as it is; the error calls it
    `name`."""
    if type(x) is not np.ndarray:
        if isinstance(x, np.memmap):
            return plain_array(x.view(np.ndarray), name)
        called = f"{name}, " if name else ""
        if isinstance(x, np.ma.MaskedArray):
            refuse(x, f"{called}a masked array", "compute with x.data and x.mask as two arrays")
        if isinstance(x, np.matrix):
            remedy = "pass np.asarray(x) and write @ for the matrix product"
            refuse(x, f"{called}an np.matrix", remedy)
        if x.dtype.names is None:
            kind = f"{called}a {type(x).__name__}, which is a subclass of ndarray"
            refuse(x, kind, "pass np.asarray(x)")
    check_dtype(x, name)
    return x


def check_dtype(x: Array | np.generic, name: str = "") -> np.dtype[Any]:
    """The dtype of `x` in native byte order; an ArgumentError if compiled code does not have it."""
    native = x.dtype if x.dtype.isnative else x.dtype.newbyteorder("=")
    if not is_supported(native):
        what = f"dtype {x.dtype}"
        refuse(x, f"{name}, an array of {what}" if name else what, dtype_remedy(x.dtype))
    return native


def dtype_remedy(dtype: np.dtype[Any]) -> str:
    """What to write instead of an array of a dtype that compiled code does not have."""
    if dtype.names is not None:
        first = dtype.names[0]
        return (
            "pass its fields as arrays of their own, which are views: "
            f"{{name: x[name] for name in x.dtype.names}}, or x[{first!r}]"
        )
    if dtype.subdtype is not None or dtype.kind == "V":
        return "view it as numbers with x.view(np.uint8), or a dtype of its size"
    if dtype.kind == "O":
        return "give the array a number dtype with x.astype(np.float64); ragged lists need padding"
    if dtype.kind in "SUT":
        return "strings stay outside of the compiled function; pass codes (integers)"
    if dtype.kind in "mM":
        unit = np.datetime_data(dtype)[0]
        return f"pass the count of its unit ({unit}), x.astype(np.int64); NaT is the least of them"
    if dtype.kind == "c":
        return "convert it with x.astype(np.complex128)"
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


def to_array(leaf: Any) -> np.ndarray[Any, Any]:
    """A traced leaf as the ndarray that compiled code takes; a DeviceArray stays what it is."""
    if isinstance(leaf, (np.ndarray, DeviceArray)):
        return leaf  # type: ignore[return-value]
    if type(leaf) is int:
        return np.array(leaf, I64)
    return np.array(leaf)
