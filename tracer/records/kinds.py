"""Which arrays are structured, how they are taken apart, and put together of their fields."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from ...ir.record import record
from ...ir.types import is_supported

Array = np.ndarray[Any, Any]
_CLASSES = frozenset({np.ndarray, np.recarray, np.memmap, np.void, np.record})


@record
class RecordKind:
    """What compiled code relies on: the dtype, and the class of the array, or of the single record."""

    dtype: np.dtype[Any]
    cls: type

    @property
    def scalar(self) -> bool:
        """Whether it is one record, no array."""
        return issubclass(self.cls, np.void)

    @property
    def has_attributes(self) -> bool:
        """Whether fields are attributes, too."""
        return issubclass(self.cls, (np.recarray, np.record))

    @property
    def of_record(self) -> RecordKind:
        """One record of such an array."""
        return RecordKind(self.dtype, self.dtype.type)

    def of_fields(self, names: list[str]) -> RecordKind:
        """Such an array with some of the fields."""
        return RecordKind(self.dtype[names], self.cls)

    @property
    def names(self) -> tuple[str, ...]:
        """The fields' names."""
        return self.dtype.names or ()

    def field(self, name: str) -> tuple[np.dtype[Any], tuple[int, ...], int]:
        """The dtype of a field's elements, its shape in one record, and at which byte it begins."""
        fields: Any = self.dtype.fields
        part, offset = fields[name][:2]
        base, shape = (part, ()) if part.subdtype is None else part.subdtype
        return base, shape, offset


def is_structured(value: Any) -> bool:
    """Whether a value is a structured array, or a record, of numbers."""
    return type(value) in _CLASSES and has_fields(value.dtype)


def is_structured_array(value: Any) -> bool:
    """Whether a value is a structured array of numbers."""
    return isinstance(value, np.ndarray) and is_structured(value)


def has_fields(dtype: Any) -> bool:
    """Whether arrays of a dtype are groups of arrays of numbers."""
    return isinstance(dtype, np.dtype) and dtype.names is not None and _are_numbers(dtype)


@cache
def _are_numbers(dtype: np.dtype[Any]) -> bool:
    """Whether fields are numbers, each of bytes of its own, or groups of such."""
    if not dtype.names:
        return False
    fields = [RecordKind(dtype, np.ndarray).field(name) for name in dtype.names]
    end = 0
    for base, shape, offset in sorted(fields, key=lambda field: field[2]):
        if offset < end or not (has_fields(base) or is_supported(base.newbyteorder("="))):
            return False  # fields that share bytes are not arrays by themselves
        end = offset + base.itemsize * math.prod(shape)
    return True


def kind_of(value: Any) -> RecordKind:
    """The kind of a structured array or a record."""
    cls = np.ndarray if type(value) is np.memmap else type(value)
    return RecordKind(value.dtype, cls)


def fields_of(value: Any) -> tuple[Any, ...]:
    """The fields of a structured array, which are views of it; those of a record are numbers."""
    plain = value.view(np.ndarray) if isinstance(value, np.ndarray) else value
    return tuple([plain[name] for name in value.dtype.names])


def assembled(kind: RecordKind, parts: Sequence[Any]) -> Any:
    """The structured array, or the record, of these fields. Those that are views of one structured array
    are that array, or a view of it; else it is a new one."""
    first = parts[0]
    sub = kind.field(kind.names[0])[1]
    shape = first.shape[: first.ndim - len(sub)]
    whole = None if kind.scalar else _in_memory(kind, parts, shape)
    if whole is None:
        whole = np.empty(shape, kind.dtype)
        for name, part in zip(kind.names, parts, strict=True):
            whole[name] = part
        whole = whole.view(kind.cls) if kind.cls is np.recarray else whole
    return whole[()] if kind.scalar else whole


def are_fields(kind: RecordKind, parts: Sequence[Any]) -> bool:
    """Whether these can be put together: arrays and numbers of NumPy's, of the fields' dtypes."""
    return len(parts) == len(kind.names) and all(
        isinstance(part, (np.ndarray, np.generic))
        and part.dtype.newbyteorder("=") == kind.field(name)[0].newbyteorder("=")
        for name, part in zip(kind.names, parts, strict=True)
    )


class _Memory:
    """The memory of records within an array, which it keeps."""

    def __init__(self, owner: Array, interface: dict[str, Any]) -> None:
        self.owner, self.__array_interface__ = owner, interface


def owner_of(array: Any) -> Any:
    """The array in whose memory another one is; None if it is in its own."""
    base = getattr(array, "base", None)
    while True:
        inner = getattr(base, "base", None)
        if type(inner) is _Memory:
            base = inner.owner
        elif isinstance(inner, np.ndarray):
            base = inner
        else:
            return base


def _in_memory(kind: RecordKind, parts: Sequence[Any], shape: tuple[int, ...]) -> Array | None:
    """The array of which these are the fields, or a view of its memory; None if there is none."""
    owner = owner_of(parts[0])
    if not isinstance(owner, np.ndarray) or any(owner_of(part) is not owner for part in parts):
        return None
    places = {
        (_address(part) - kind.field(name)[2], part.strides[: len(shape)])
        for name, part in zip(kind.names, parts, strict=True)
    }
    if len(places) > 1:
        return None
    ((address, strides),) = places
    lies = (owner.shape, owner.strides, _address(owner)) == (shape, strides, address)
    if lies and owner.dtype == kind.dtype and type(owner) is kind.cls:
        return owner
    interface = {
        "data": (address, not owner.flags.writeable),
        "shape": shape,
        "strides": strides,
        "typestr": f"|V{kind.dtype.itemsize}",
        "version": 3,
    }
    return np.asarray(_Memory(owner, interface)).view(kind.dtype).view(kind.cls)


def _address(array: Array) -> int:
    address: int = array.__array_interface__["data"][0]
    return address
