"""DLPack, both ways: arrays handed to other libraries, and theirs taken, without a copy.

The structures are those of the DLPack specification (dmlc.github.io/dlpack, version 0: capsules named
"dltensor", which every consumer takes).
"""

from __future__ import annotations

import ctypes
import sys
from typing import Any, NamedTuple

import numpy as np

from ..ir.types import DTYPE_NAMES, dtype_name, is_extended

CPU, CUDA = 1, 2  # DLDeviceType
_CODES = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}
_KINDS = {code: kind for kind, code in _CODES.items()}
_SMALL_CODES = {"bf16": 4, "f8e3m4": 7, "f8e4m3": 8, "f8e4m3b11fnuz": 9, "f8e4m3fn": 10}
_SMALL_CODES |= {"f8e4m3fnuz": 11, "f8e5m2": 12, "f8e5m2fnuz": 13}
_SMALL_NAMES = {code: name for name, code in _SMALL_CODES.items()}


class _Device(ctypes.Structure):
    _fields_ = (("type", ctypes.c_int32), ("id", ctypes.c_int32))


class _DataType(ctypes.Structure):
    _fields_ = (("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16))


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device", _Device),
        ("ndim", ctypes.c_int32),
        ("dtype", _DataType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class _Managed(ctypes.Structure):
    pass


_DELETER = ctypes.CFUNCTYPE(None, ctypes.POINTER(_Managed))
_Managed._fields_ = (("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", _DELETER))

_python = ctypes.pythonapi
_new = _python.PyCapsule_New
_new.restype, _new.argtypes = (
    ctypes.py_object,
    (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p),
)
_valid = _python.PyCapsule_IsValid
_valid.restype, _valid.argtypes = ctypes.c_int, (ctypes.py_object, ctypes.c_char_p)
_pointer = _python.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
_rename = _python.PyCapsule_SetName
_rename.restype, _rename.argtypes = ctypes.c_int, (ctypes.py_object, ctypes.c_char_p)

_TAKEN = b"used_dltensor"
_lent: dict[int, tuple[Any, ...]] = {}  # by address: what a consumer's capsule keeps alive


@_DELETER
def _give_back(managed: Any) -> None:
    _lent.pop(ctypes.addressof(managed.contents), None)


def _sweep() -> None:
    """Forget the capsules that their consumers dropped without taking them.

    A destructor of the capsule would do that at once, but it would be Python code that runs while
    the consumer's exception is on its way, and would be told of it as its own.
    """
    for address, entry in list(_lent.items()):
        if _references(entry) == _ALONE and _valid(entry[-1], b"dltensor"):
            _lent.pop(address, None)


def _references(entry: tuple[Any, ...]) -> int:
    return sys.getrefcount(entry[-1])


_ALONE = _references((object(),))


def lend(
    pointer: int, shape: tuple[int, ...], dtype: np.dtype[Any], device: tuple[int, int], owner: Any
) -> Any:
    """A capsule for a C-contiguous array; `owner` is kept alive as long as somebody has it (if nobody
    takes it, until the next call)."""
    _sweep()
    dims = (ctypes.c_int64 * len(shape))(*shape)
    managed = _Managed()
    code = _SMALL_CODES[dtype_name(dtype)] if is_extended(dtype) else _CODES[dtype.kind]
    kind = _DataType(code, 8 * dtype.itemsize, 1)
    managed.tensor = _Tensor(pointer, _Device(*device), len(shape), kind, dims, None, 0)
    managed.deleter = _give_back
    address = ctypes.addressof(managed)
    capsule = _new(address, b"dltensor", None)
    _lent[address] = managed, dims, owner, capsule
    return capsule


class BorrowedTensor:
    """Somebody else's memory, given back when nobody here refers to it any more."""

    def __init__(self, managed: Any) -> None:
        self._managed = managed

    def __del__(self) -> None:
        if self._managed.contents.deleter:
            self._managed.contents.deleter(self._managed)


class Taken(NamedTuple):
    """A foreign array: `strides` in elements, None for C order; `owner` keeps its memory."""

    pointer: int
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None
    dtype: np.dtype[Any]
    device: tuple[int, int]
    owner: Any

    def array(self) -> np.ndarray[Any, Any]:
        """What lies in main memory, as a read-only ndarray."""
        return np.asarray(_Exposed(self)).view(self.dtype)


class _Exposed:
    """Taken memory as NumPy's protocol shows it: elements are integers of their size."""

    def __init__(self, tensor: Taken) -> None:
        size = tensor.dtype.itemsize
        strides = tensor.strides and tuple(step * size for step in tensor.strides)
        self.owner = tensor.owner
        self.__array_interface__ = {
            "version": 3,
            "data": (tensor.pointer, True),
            "shape": tensor.shape,
            "strides": strides,
            "typestr": np.dtype(f"u{size}").str,
        }


def take(capsule: Any) -> Taken:
    """What a "dltensor" capsule describes. The capsule is used up.

    Raises BufferError for an element type that NumPy does not have.
    """
    if not _valid(capsule, b"dltensor"):
        raise ValueError("the capsule is no DLPack capsule, or was used already")
    managed = ctypes.cast(_pointer(capsule, b"dltensor"), ctypes.POINTER(_Managed))
    tensor = managed.contents.tensor
    dtype = _element(tensor.dtype)
    if dtype is None:
        raise BufferError(f"no NumPy dtype for DLPack's {tuple(_codes(tensor.dtype))}")
    _rename(capsule, _TAKEN)
    shape = tuple(tensor.shape[: tensor.ndim])
    strides = tuple(tensor.strides[: tensor.ndim]) if tensor.strides else None
    pointer = (tensor.data or 0) + tensor.byte_offset
    device = (tensor.device.type, tensor.device.id)
    return Taken(pointer, shape, strides, dtype, device, BorrowedTensor(managed))


def _element(dtype: _DataType) -> np.dtype[Any] | None:
    """The NumPy dtype that DLPack's `dtype` is, if there is one."""
    if dtype.lanes != 1:
        return None
    if dtype.code in _SMALL_NAMES:
        return DTYPE_NAMES[_SMALL_NAMES[dtype.code]]
    try:
        return np.dtype(f"{_KINDS.get(dtype.code)}{max(dtype.bits // 8, 1)}")
    except TypeError:
        return None


def _codes(dtype: _DataType) -> tuple[int, int, int]:
    return dtype.code, dtype.bits, dtype.lanes
