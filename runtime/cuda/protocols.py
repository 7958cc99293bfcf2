"""What arrays of other libraries in a GPU's memory say of themselves.

    is_on_gpu(array), gpu_number(array)
    found = described(array, stream)               # by DLPack, or else by __cuda_array_interface__

DLPack comes first: it knows bfloat16, and whoever lends by it makes our stream wait for what the array
depends on. The other protocol tells a stream that we wait for; before its version 3 that is the legacy
default stream. Nothing here asks the driver.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...ir.types import DTYPE_NAMES
from ..dlpack import CUDA, take
from .array import LEGACY
from .library import DeviceError

MANAGED = 13  # DLDeviceType of memory that the driver moves; ours too
_REFUSED = (BufferError, RuntimeError, TypeError, ValueError, NotImplementedError)


class ArrayDescription(NamedTuple):
    """An array of somebody else; `strides` in bytes, None for C order. What is done on `wait_for` has
    to be waited for."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    address: int
    strides: tuple[int, ...] | None
    owner: Any
    wait_for: int | None = None

    @property
    def contiguous(self) -> bool:
        """Whether it is in C order; steps along dims of one element say nothing."""
        step = self.dtype.itemsize
        for n, stride in zip(reversed(self.shape), reversed(self.strides or ()), strict=False):
            if n > 1 and stride != step:
                return False
            step *= n
        return True


def dlpack_device(array: Any) -> tuple[int, int] | None:
    """(kind, number) of the device that an array of another library is on, if it tells."""
    if not hasattr(type(array), "__dlpack_device__"):
        return None
    try:
        kind, number = array.__dlpack_device__()
    except _REFUSED:  # of a kind that DLPack does not have
        return None
    return int(kind), int(number)


def interface(array: Any) -> dict[str, Any] | None:
    """`__cuda_array_interface__`, if the array has one."""
    if not hasattr(type(array), "__cuda_array_interface__"):
        return None
    try:
        description: dict[str, Any] | None = array.__cuda_array_interface__
    except (AttributeError, *_REFUSED):  # PyTorch's, of a tensor on the CPU
        return None
    return description


def is_on_gpu(array: Any) -> bool:
    """Whether it is another library's array in a GPU's memory."""
    where = dlpack_device(array)
    return where[0] in (CUDA, MANAGED) if where else interface(array) is not None


def gpu_number(array: Any) -> int:
    """Of the GPU that such an array is on."""
    where = dlpack_device(array)
    if where is not None:
        return where[1]
    device = getattr(array, "device", None)
    number = getattr(device, "index", getattr(device, "id", None))
    return number if type(number) is int else 0


def described(array: Any, stream: int) -> ArrayDescription:
    """What an array says of itself; it will be used on `stream`. Raises what its library raises, or
    DeviceError."""
    if dlpack_device(array) is None or not hasattr(type(array), "__dlpack__"):
        return _by_interface(array, array.__cuda_array_interface__)
    try:
        tensor = take(array.__dlpack__(stream=stream))
    except _REFUSED:
        if not hasattr(type(array), "__cuda_array_interface__"):
            raise
        return _by_interface(array, array.__cuda_array_interface__)
    size = tensor.dtype.itemsize
    strides = None if tensor.strides is None else tuple(step * size for step in tensor.strides)
    return ArrayDescription(tensor.shape, tensor.dtype, tensor.pointer, strides, tensor.owner)


def _by_interface(array: Any, description: dict[str, Any]) -> ArrayDescription:
    dtype = np.dtype(description["typestr"])
    if dtype.kind == "V":
        dtype = _named(array, description["typestr"], dtype.itemsize)
    address = description["data"][0] or 0
    wait_for = description.get("stream") if description.get("version", 0) >= 3 else LEGACY
    strides = description.get("strides")
    strides = None if strides is None else tuple(strides)
    return ArrayDescription(tuple(description["shape"]), dtype, address, strides, array, wait_for)


def _named(array: Any, typestr: str, itemsize: int) -> np.dtype[Any]:
    """The dtype that the array's own is named after, such as torch.bfloat16: the protocol has no name
    for it."""
    name = str(getattr(array, "dtype", None)).rpartition(".")[2]
    for dtype in DTYPE_NAMES.values():
        if dtype.name == name and dtype.itemsize == itemsize:
            return dtype
    raise DeviceError(
        f"the array's elements are {typestr!r} to __cuda_array_interface__, which says nothing: its "
        "library would have to lend it by DLPack"
    )
