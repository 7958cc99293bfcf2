"""What a trace knows of each leaf of the arguments before the function is called."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...ir.record import record
from ...ir.types import TensorType, is_inexact, is_supported, type_of
from ...runtime.devices import Device
from .tracers import Tracer, weak_kind


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


def spec_of(leaf: Any) -> Spec:
    """How a leaf (tracer, array or scalar) looks inside of a nested trace."""
    if isinstance(leaf, Tracer):
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
    return isinstance(leaf, Tracer) or (type(leaf) is np.ndarray and is_supported(leaf.dtype))


def is_inexact_leaf(leaf: Any) -> bool:
    """Whether a leaf is a float or complex array, tracer or scalar: these have derivatives."""
    if isinstance(leaf, Tracer):
        return is_inexact(leaf.dtype)
    if isinstance(leaf, (np.ndarray, np.generic)):
        return is_supported(leaf.dtype) and is_inexact(leaf.dtype)
    return type(leaf) in (float, complex)
