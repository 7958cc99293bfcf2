"""What a trace knows of each leaf of the arguments before the function is called."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import numpy as np

from ...ir.record import record
from ...ir.types import BOOL, C128, F64, I64, TensorType, is_inexact, is_supported, type_of
from ...runtime.devices import Device
from ..messages.errors import TracerBase

WEAK_DTYPES = {"b": BOOL, "i": I64, "f": F64, "c": C128}
_WEAK_OF: dict[type, str] = {bool: "b", int: "i", float: "f", complex: "c"}


@record
class Spec:
    """What the trace knows of one traced leaf of the arguments. `strides` count elements.

    `active` marks what an eager trace will differentiate.
    """

    type: TensorType
    weak: str | None = None
    scalar: bool = False
    writeable: bool = True
    strides: tuple[int, ...] | None = None
    name: str = ""
    active: bool = False
    device: Device | None = None  # where a DeviceArray is
    holder: Any = None  # the class of the object whose state the leaf is


@record
class Static:
    """A leaf that is handed to the function as it is."""

    value: Any


@record
class Same:
    """A leaf that is the same array object as an earlier leaf."""

    leaf: int


def _is_tracer(leaf: Any) -> bool:
    """Whether a leaf is a `Tracer`, which lies above."""
    return isinstance(leaf, TracerBase)


def weak_kind(x: Any) -> str | None:
    """How `x` promotes: "b", "i", "f", "c" for Python scalars and their tracers, None for arrays."""
    if isinstance(x, TracerBase):
        return x.weak  # type: ignore[attr-defined]
    weak = _WEAK_OF.get(type(x))
    return "i" if weak is None and isinstance(x, IntEnum) else weak


def spec_of(leaf: Any) -> Spec:
    """How a leaf (tracer, array or scalar) looks inside of a nested trace."""
    if _is_tracer(leaf):
        writeable = leaf.scalar or leaf.writeable
        return Spec(leaf.type, leaf.weak, leaf.scalar, writeable, leaf.element_strides)
    if not isinstance(leaf, np.ndarray):
        return Spec(type_of(np.asarray(leaf)), weak_kind(leaf), scalar=True)
    strides = None
    if not leaf.flags.c_contiguous:
        strides = tuple(s // leaf.itemsize for s in leaf.strides)
    return Spec(type_of(leaf), None, False, leaf.flags.writeable, strides)


def is_array(leaf: Any) -> bool:
    """Whether a leaf is an array that code may assign into: a tracer or a plain ndarray."""
    return _is_tracer(leaf) or (type(leaf) is np.ndarray and is_supported(leaf.dtype))


def is_inexact_leaf(leaf: Any) -> bool:
    """Whether a leaf is a float or complex array, tracer or scalar: these have derivatives."""
    if _is_tracer(leaf):
        return is_inexact(leaf.dtype)
    if isinstance(leaf, (np.ndarray, np.generic)):
        return is_supported(leaf.dtype) and is_inexact(leaf.dtype)
    return type(leaf) in (float, complex)
