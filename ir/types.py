"""Types of graph values: the static shape and dtype of a tensor, the order token, the tape.

A type prints as in the text form, `f32[4096,1024]`, and `parse_type` reads it back. Every dtype that
the compiler knows stands in `DTYPE_NAMES`; nothing else in the project lists dtypes by hand.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

import numpy as np

from .record import record

# Floats that NumPy itself does not have, and their names in ml_dtypes. Importing that takes longer than
# most programs, which have none, should wait: it is done when such a name or array turns up.
_EXTENDED = {
    "bf16": "bfloat16",
    "f8e4m3fn": "float8_e4m3fn",
    "f8e5m2": "float8_e5m2",
    "f8e4m3": "float8_e4m3",
    "f8e3m4": "float8_e3m4",
    "f8e4m3fnuz": "float8_e4m3fnuz",
    "f8e5m2fnuz": "float8_e5m2fnuz",
    "f8e4m3b11fnuz": "float8_e4m3b11fnuz",
}
_FINITE = frozenset(name for name in _EXTENDED if name.endswith(("fn", "fnuz")))
_FIRST_USER_DTYPE = 256  # numbers of dtypes that come from elsewhere start here


class _DTypes(dict[str, np.dtype[Any]]):
    """The dtypes by name. Those of `_EXTENDED` are known from the start, and loaded when needed."""

    def load(self) -> None:
        if len(self) > len(BASIC):
            return
        import ml_dtypes

        extended = {name: np.dtype(getattr(ml_dtypes, its)) for name, its in _EXTENDED.items()}
        _NAME_OF.update((dtype, name) for name, dtype in extended.items())
        self.update(extended)

    def __missing__(self, name: str) -> np.dtype[Any]:
        if name not in _EXTENDED:
            raise KeyError(name)
        self.load()
        return self[name]

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or name in _EXTENDED

    def __iter__(self) -> Iterator[str]:
        return iter((*BASIC, *_EXTENDED))

    def keys(self) -> Any:
        return (*BASIC, *_EXTENDED)

    def values(self) -> Any:
        self.load()
        return super().values()

    def items(self) -> Any:
        self.load()
        return super().items()


BASIC: dict[str, np.dtype[Any]] = {
    "bool": np.dtype(np.bool_),
    "i8": np.dtype(np.int8),
    "i16": np.dtype(np.int16),
    "i32": np.dtype(np.int32),
    "i64": np.dtype(np.int64),
    "u8": np.dtype(np.uint8),
    "u16": np.dtype(np.uint16),
    "u32": np.dtype(np.uint32),
    "u64": np.dtype(np.uint64),
    "f16": np.dtype(np.float16),
    "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
    "c64": np.dtype(np.complex64),
    "c128": np.dtype(np.complex128),
}
DTYPE_NAMES = _DTypes(BASIC)
_NAME_OF = {dtype: name for name, dtype in BASIC.items()}

BOOL = DTYPE_NAMES["bool"]
I8 = DTYPE_NAMES["i8"]
I32 = DTYPE_NAMES["i32"]
I64 = DTYPE_NAMES["i64"]
F16 = DTYPE_NAMES["f16"]
F32 = DTYPE_NAMES["f32"]
F64 = DTYPE_NAMES["f64"]
C64 = DTYPE_NAMES["c64"]
C128 = DTYPE_NAMES["c128"]


def is_extended(dtype: np.dtype[Any]) -> bool:
    """Whether `dtype` is one of the floats that ml_dtypes adds to NumPy's."""
    if dtype.num < _FIRST_USER_DTYPE or dtype.itemsize > 2:
        return False
    DTYPE_NAMES.load()
    return dtype in _NAME_OF


def is_supported(dtype: np.dtype[Any]) -> bool:
    """Whether values of `dtype` can live in a graph (native byte order, one of `DTYPE_NAMES`)."""
    return dtype in _NAME_OF or is_extended(dtype)


def dtype_name(dtype: np.dtype[Any]) -> str:
    """The short name of a dtype: `f32` for float32, `bool` for bool."""
    name = _NAME_OF.get(dtype)
    if name is None:
        DTYPE_NAMES.load()
        name = _NAME_OF[dtype]
    return name


def dtype_kind(dtype: np.dtype[Any]) -> str:
    """NumPy's kind code, `f` for all floats: those of ml_dtypes call themselves `V`, void."""
    return "f" if dtype.kind == "V" and is_extended(dtype) else dtype.kind


def is_float(dtype: np.dtype[Any]) -> bool:
    """Whether it is a real float dtype, small ones included."""
    return dtype_kind(dtype) == "f"


def is_small(dtype: np.dtype[Any]) -> bool:
    """Whether `dtype` is a float of 16 or 8 bits: ops compute in float32 and round each result once."""
    return dtype.itemsize <= 2 and is_float(dtype)


def is_complex(dtype: np.dtype[Any]) -> bool:
    """Whether it is a complex dtype."""
    return dtype.kind == "c"


def is_inexact(dtype: np.dtype[Any]) -> bool:
    """Whether values of `dtype` have derivatives: floats and complex numbers do."""
    return dtype_kind(dtype) in "fc"


def real_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype of the parts of a complex dtype; any other is its own."""
    return {C64: F32, C128: F64}.get(dtype, dtype)


def has_infinity(dtype: np.dtype[Any]) -> bool:
    """Whether a float dtype has infinities: some of 8 bits have NaN for what is too large."""
    return dtype_name(dtype) not in _FINITE


def complex_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The complex dtype whose parts are `dtype`; complex64 for floats that are smaller."""
    return C128 if dtype == F64 else C64


def bits_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The unsigned integers of the same width."""
    return BASIC[f"u{8 * dtype.itemsize}"]


def is_integer(dtype: np.dtype[Any]) -> bool:
    """Whether it is an integer dtype, signed or not; bool is none."""
    return dtype.kind in "iu"


@cache
def finfo(dtype: np.dtype[Any]) -> Any:
    """`np.finfo`, for all floats."""
    if not is_extended(dtype):
        return np.finfo(dtype)
    import ml_dtypes

    return ml_dtypes.finfo(dtype)


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
    """A stack of records that grows while a program runs (see `ops/control/tape.py`).

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
    """The `TensorType` of a NumPy array or scalar, whatever the order of its bytes."""
    dtype = array.dtype
    return TensorType(tuple(array.shape), dtype if dtype.isnative else dtype.newbyteorder("="))


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


def contiguous_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides in elements of a C-contiguous array."""
    strides = [1] * len(shape)
    for i in range(len(shape) - 2, -1, -1):
        strides[i] = strides[i + 1] * max(shape[i + 1], 1)
    return tuple(strides)
