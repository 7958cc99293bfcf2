"""Elementwise ops on bits. On bool, `bitwise_*` are the logical connectives."""

from __future__ import annotations

import numpy as np

from ...cost import Cost
from ...opdef import Commutes, GraphError
from ...types import F32, TensorType, dtype_kind, is_supported
from ..families import BITS, INTEGER, REAL, DType, check_arity, check_kind, elementwise

for _ufunc in (np.bitwise_and, np.bitwise_or, np.bitwise_xor):
    elementwise(
        _ufunc.__name__,
        Cost.CHEAP,
        _ufunc,
        kinds=BITS,
        operands=("T", "T"),
        commutative=Commutes.BITS,
        idempotent=_ufunc is not np.bitwise_xor,
    )

# An amount of the width or more, and a negative one, shifts everything out: 0, or the sign.
elementwise("left_shift", Cost.CHEAP, np.left_shift, kinds=INTEGER, operands=("T", "T"))
elementwise("right_shift", Cost.CHEAP, np.right_shift, kinds=INTEGER, operands=("T", "T"))


def _infer_bitcast(*types: TensorType, dtype: DType) -> TensorType:
    check_arity(types, 1)
    (x,) = types
    check_kind(x, REAL)
    if not is_supported(dtype) or dtype_kind(dtype) not in REAL:
        raise GraphError(f"dtype={dtype} is not a dtype of real numbers that graphs know")
    if dtype.itemsize != x.dtype.itemsize:
        raise GraphError(f"operand of type {x}, and dtype={dtype} has another size")
    return x.with_dtype(dtype)


elementwise(
    "bitcast",
    Cost.FREE,
    lambda x, *, dtype: np.ascontiguousarray(x).view(dtype).reshape(x.shape),
    kinds=REAL,
    operands=("u32",),
    infer=_infer_bitcast,
    attrs=("dtype",),
    moves=True,
    samples={"dtype": F32},
    doc="the same bits as another dtype of the same size",
)
