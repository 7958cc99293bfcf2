"""What the Python array API standard asks of a namespace beside its functions.

`jt.__array_namespace_info__()` describes it, `jt.isdtype` compares dtypes, and `jt.from_dlpack` takes
arrays of other libraries. https://data-apis.org/array-api/2024.12
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...ir.types import DTYPE_NAMES, F64, I64
from ...runtime.devices import CPU, parse_device
from ..core.trace import current_trace
from ..core.tracers import Tracer
from ..data.foreign import from_capsule
from ..devices.devices import device_of_any, put, resolved

_KINDS = {
    "bool": "b",
    "signed integer": "i",
    "unsigned integer": "u",
    "integral": "iu",
    "real floating": "f",
    "complex floating": "c",
    "numeric": "iufc",
}


class ArrayNamespaceInfo:
    """The answers of `jt.__array_namespace_info__()`: devices, dtypes and what the namespace can do."""

    def capabilities(self) -> dict[str, Any]:
        """Boolean indexing and shapes that depend on values: eagerly. While a function is compiled
        there are none, and code for arrays of any library goes another way."""
        trace = current_trace()
        there = trace is None or trace.eager
        return {"boolean indexing": there, "data-dependent shapes": there, "max dimensions": 64}

    def default_device(self) -> str:
        return "cpu"

    def default_dtypes(self, *, device: Any = None) -> dict[str, Any]:
        """Those of NumPy: float64, complex128 and int64."""
        complex128 = np.dtype(np.complex128)
        return {
            "real floating": F64,
            "complex floating": complex128,
            "integral": I64,
            "indexing": I64,
        }

    def devices(self) -> list[Any]:
        """The CPU, by the name that NumPy gives it, and the GPUs that there are."""
        from ..devices.devices import devices

        return ["cpu", *(d for d in devices() if str(d) != "cpu")]

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, Any]:
        """The standard's dtypes by name; those of a kind, or of a tuple of kinds, if it is given."""
        standard = {d.name: d for d in DTYPE_NAMES.values() if d.kind in "biufc"}
        by_name = {name: d for name, d in standard.items() if name in _STANDARD}
        if kind is None:
            return by_name
        kinds = kind if isinstance(kind, tuple) else (kind,)
        unknown = [k for k in kinds if k not in _KINDS]
        if unknown:
            raise ValueError(f"unsupported kind: {unknown[0]!r}; known are {', '.join(_KINDS)}")
        codes = "".join(_KINDS[k] for k in kinds)
        return {name: d for name, d in by_name.items() if d.kind in codes}


_STANDARD = frozenset(
    "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64 complex64 "
    "complex128".split()
)


def __array_namespace_info__() -> ArrayNamespaceInfo:
    """The description of this namespace that the array API standard asks for.

    >>> jt.__array_namespace_info__().default_device()
    'cpu'
    """
    return ArrayNamespaceInfo()


def isdtype(dtype: Any, kind: Any) -> bool:
    """Whether a dtype is another one, or of a kind ("integral", "real floating", ...), or of a tuple's.

    >>> jt.isdtype(np.dtype(np.float32), ("integral", jt.float32))
    True
    """
    return bool(np.isdtype(np.dtype(dtype), kind))


def from_dlpack(x: Any, /, *, device: Any = None, copy: Any = None) -> Any:
    """The array of another library, through `x.__dlpack__`: without a copy where that is possible.

    What lies on a GPU becomes a DeviceArray, what lies in main memory an ndarray; `device` asks for
    another place, `copy=True` for memory of its own, and `copy=False` raises where it would need one.

    >>> jt.from_dlpack(np.arange(3))
    array([0, 1, 2])
    """
    if isinstance(x, Tracer):
        return x
    here = device_of_any(x)
    there = here if device is None else resolved(parse_device(device))
    if here == there == CPU:
        return from_capsule(x, copy)
    if here != there and copy is False:
        raise BufferError(
            f"copy=False: what is on {here} cannot be brought to {there} without a copy"
        )
    array = put(x, there)
    return array.client.copy(array) if copy and here == there else array
