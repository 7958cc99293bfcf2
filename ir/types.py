"""Types of graph values: the static shape and dtype of a tensor, the order token, the tape.

A type prints as in the text form, `f32[4096,1024]`, and `parse_type` reads it back. Every dtype that
the compiler knows stands in `DTYPE_NAMES`; nothing else in the project lists dtypes by hand.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from .record import record

DTYPE_NAMES: dict[str, np.dtype[Any]] = {
    "bool": np.dtype(np.bool_),
    "i8": np.dtype(np.int8),
    "i16": np.dtype(np.int16),
    "i32": np.dtype(np.int32),
    "i64": np.dtype(np.int64),
    "u8": np.dtype(np.uint8),
    "u16": np.dtype(np.uint16),
    "u32": np.dtype(np.uint32),
    "u64": np.dtype(np.uint64),
    "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
    "c64": np.dtype(np.complex64),
    "c128": np.dtype(np.complex128),
}
_NAME_OF = {dtype: name for name, dtype in DTYPE_NAMES.items()}

BOOL = DTYPE_NAMES["bool"]
I8 = DTYPE_NAMES["i8"]
I32 = DTYPE_NAMES["i32"]
I64 = DTYPE_NAMES["i64"]
F32 = DTYPE_NAMES["f32"]
F64 = DTYPE_NAMES["f64"]
C64 = DTYPE_NAMES["c64"]
C128 = DTYPE_NAMES["c128"]


def is_supported(dtype: np.dtype[Any]) -> bool:
    """Whether values of `dtype` can live in a graph (native byte order, one of `DTYPE_NAMES`)."""
    return dtype in _NAME_OF


def dtype_name(dtype: np.dtype[Any]) -> str:
    """The short name of a dtype: `f32` for float32, `bool` for bool."""
    return _NAME_OF[dtype]


def is_float(dtype: np.dtype[Any]) -> bool:
    return dtype.kind == "f"


def is_complex(dtype: np.dtype[Any]) -> bool:
    return dtype.kind == "c"


def is_inexact(dtype: np.dtype[Any]) -> bool:
    """Whether values of `dtype` have derivatives: floats and complex numbers do."""
    return dtype.kind in "fc"


def real_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype of the parts of a complex dtype; any other is its own."""
    return {C64: F32, C128: F64}.get(dtype, dtype)


def complex_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The complex dtype whose parts are `dtype`, a float dtype."""
    return {F32: C64, F64: C128}[dtype]


def is_integer(dtype: np.dtype[Any]) -> bool:
    return dtype.kind in "iu"


@record
class TensorType:
    """Shape and dtype of one value. Shapes are static, non-negative ints."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    def with_shape(self, shape: Iterable[int]) -> TensorType:
        return TensorType(tuple(shape), self.dtype)

    def with_dtype(self, dtype: np.dtype[Any]) -> TensorType:
        return TensorType(self.shape, dtype)

    def __str__(self) -> str:
        return f"{dtype_name(self.dtype)}[{','.join(map(str, self.shape))}]"


@record
class TokenType:
    """The order token that threads effectful ops: it carries no data, only program order."""

    def __str__(self) -> str:
        return "token"


@record
class TapeType:
    """A stack of records that grows while a program runs (see `ops/tape.py`).

    Like a token, a tape is used linearly: each value of this type is read at most once.
    """

    def __str__(self) -> str:
        return "tape"


Type = TensorType | TokenType | TapeType
TOKEN = TokenType()
TAPE = TapeType()


def is_linear(type: Type) -> bool:
    """Whether a value of this type is read at most once: tokens and tapes are."""
    return not isinstance(type, TensorType)


def type_of(array: Any) -> TensorType:
    """The `TensorType` of a NumPy array or scalar."""
    return TensorType(tuple(array.shape), array.dtype)


def parse_type(text: str) -> Type:
    """Read a type back from its text form.

    >>> parse_type("f32[2,3]")
    TensorType(shape=(2, 3), dtype=dtype('float32'))
    """
    text = text.strip()
    if text in ("token", "tape"):
        return TOKEN if text == "token" else TAPE
    name, bracket, rest = text.partition("[")
    if name not in DTYPE_NAMES or not bracket or not rest.endswith("]"):
        raise ValueError(f"not a type: {text!r}; a type looks like f32[2,3], f64[], token or tape")
    dims = rest[:-1].strip()
    shape = tuple(int(d) for d in dims.split(",")) if dims else ()
    return TensorType(shape, DTYPE_NAMES[name])
