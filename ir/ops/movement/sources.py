"""Ops without operands: constants and index arrays."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...cost import Cost
from ...opdef import GraphError
from ...types import TensorType, is_supported, type_of
from ..families import ANY, Array, DType, Example, check_axis, opaque


def _infer_constant(*, value: Array) -> TensorType:
    if not isinstance(value, np.ndarray):
        raise GraphError(f"value is a {type(value).__name__}, not an ndarray")
    if not is_supported(value.dtype):
        raise GraphError(f"value has dtype {value.dtype}, which graphs do not know")
    if value.flags.writeable:
        raise GraphError("value is writeable: a constant must not change under the graph")
    return type_of(value)


def _infer_iota(*, shape: tuple[int, ...], dtype: DType, axis: int) -> TensorType:
    check_axis(axis, len(shape))
    if not is_supported(np.dtype(dtype)) or np.dtype(dtype) == np.bool_:
        raise GraphError(f"dtype={dtype} is not a number dtype that graphs know")
    return TensorType(tuple(shape), np.dtype(dtype))


def _iota(*, shape: tuple[int, ...], dtype: DType, axis: int) -> Array:
    along = np.arange(shape[axis]).astype(dtype)
    extents = [-1 if d == axis else 1 for d in range(len(shape))]
    return np.broadcast_to(along.reshape(extents), shape)


def _constant_of(value: Any) -> Array:
    array = np.array(value)
    array.setflags(write=False)
    return array


opaque(
    "constant",
    _infer_constant,
    lambda *, value: value,
    family="source",
    cost=Cost.FREE,
    pointwise=True,
    attrs=("value",),
    kinds=ANY,
    examples=(
        Example((), {"value": _constant_of([[1.0, 2.0], [3.0, -0.0]])}),
        Example((), {"value": _constant_of(3)}),
        Example((), {"value": _constant_of([True, False])}),
        Example((), {"value": _constant_of([1 - 2j, complex(-0.0, math.inf)])}),
    ),
    doc="`value`, a read-only ndarray",
)
opaque(
    "iota",
    _infer_iota,
    _iota,
    family="source",
    cost=Cost.FREE,
    pointwise=True,
    attrs=("shape", "dtype", "axis"),
    examples=(
        Example((), {"shape": (3, 4), "dtype": np.dtype(np.int64), "axis": 1}),
        Example((), {"shape": (300,), "dtype": np.dtype(np.uint8), "axis": 0}),
        Example((), {"shape": (2, 0), "dtype": np.dtype(np.float32), "axis": 0}),
    ),
    doc="the index along `axis`, converted to `dtype` (which wraps)",
)
