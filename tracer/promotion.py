"""Type promotion: NEP 50, asked of NumPy itself.

A ufunc's loop is chosen by the ufunc's own `resolve_dtypes`, so that every corner (bool + bool,
int64 < uint64, ldexp's int32 exponent) is NumPy's by construction. An operand is described by its
`Kind`: a dtype, or Python's `int`, `float` or `complex` for a weak operand, which stands for a Python
scalar and takes the dtype of the others. A Python bool is not weak: it is a `bool`.

Only the dtypes of `ir.types` can live in a graph. A loop over another one (np.sin of an int8 array is
float16 in NumPy) is refused with a TypeError that says what to convert.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from ..ir.types import BOOL, C128, DTYPE_NAMES, F64, I64, dtype_name, is_inexact, is_supported

DType = np.dtype[Any]
Kind = DType | type  # a dtype, or the Python type `int`, `float` or `complex` for a weak operand

_WEAK_KINDS: dict[str, Kind] = {"b": BOOL, "i": int, "f": float, "c": complex}
_WEAK_DTYPES: dict[str, DType] = {"b": BOOL, "i": I64, "f": F64, "c": C128}


class NoLoop(TypeError):
    """A ufunc's loop is over a dtype that a graph cannot hold. `remedy` says what to write."""

    def __init__(self, what: str, remedy: str) -> None:
        super().__init__(what)
        self.remedy = remedy


def canonical(dtype: Any) -> DType:
    """The dtype as the graph spells it (`long long` becomes int64). TypeError if unsupported."""
    dtype = np.dtype(dtype)
    if not is_supported(dtype):
        raise TypeError(unsupported_message(dtype))
    return DTYPE_NAMES[dtype_name(dtype)]


def unsupported_message(dtype: DType) -> str:
    names = ", ".join(t.name for t in DTYPE_NAMES.values())
    return f"dtype {dtype} is not supported in compiled code yet; supported are {names}"


def weak_dtype(weak: str) -> DType:
    """How a weak value is stored: bool, int64, float64 or complex128."""
    return _WEAK_DTYPES[weak]


def kind_of(dtype: DType, weak: str | None) -> Kind:
    """The `Kind` of an operand of `dtype` whose weakness is `weak`."""
    return dtype if weak is None else _WEAK_KINDS[weak]


_SAMPLES: dict[Any, Any] = {int: 0, float: 0.0, complex: 0j}


@cache
def result_dtype(*kinds: Kind) -> DType:
    """`np.result_type` of the operands: what where, clip and concatenate give.

    >>> result_dtype(np.dtype(np.float32), float)
    dtype('float32')
    """
    found = np.result_type(*(_SAMPLES.get(k, k) for k in kinds))
    return canonical(found)


def can_hold(value: int, dtype: DType) -> bool:
    """Whether a Python int is in the range of an integer dtype."""
    info = np.iinfo(dtype)
    return int(info.min) <= value <= int(info.max)


def check_python_int(value: int, dtype: DType) -> None:
    """OverflowError, as NumPy's, for a Python int that an integer dtype cannot hold."""
    if dtype.kind in "iu" and not can_hold(value, dtype):
        raise OverflowError(f"Python integer {value} out of bounds for {dtype.name}")


@cache
def ufunc_dtypes(
    ufunc: np.ufunc,
    kinds: tuple[Kind, ...],
    dtype: DType | None = None,
    casting: str = "same_kind",
    reduction: bool = False,
) -> tuple[DType, ...]:
    """The dtypes of the loop that NumPy would run: inputs first, then outputs.

    `dtype` is the ufunc's own `dtype=` argument. Raises TypeError with NumPy's message where NumPy has
    no loop, and with ours where the loop is over a dtype that a graph cannot hold.

    >>> ufunc_dtypes(np.add, (np.dtype(np.int8), int))
    (dtype('int8'), dtype('int8'), dtype('int8'))
    """
    if reduction:
        query: Sequence[Any] = (None, kinds[0], None)
        found = _resolve(ufunc, query, dtype, casting, reduction=True)
        return tuple(canonical(d) for d in found)
    query = (*kinds, *([None] * ufunc.nout))
    found = _resolve(ufunc, query, dtype, casting)
    if all(is_supported(d) for d in found):
        return tuple(canonical(d) for d in found)
    return _widen(ufunc, kinds, found)


def _resolve(
    ufunc: np.ufunc,
    query: Sequence[Any],
    dtype: DType | None,
    casting: Any,
    reduction: bool = False,
) -> tuple[Any, ...]:
    if dtype is None:
        return ufunc.resolve_dtypes(tuple(query), casting=casting, reduction=reduction)
    # NumPy's dtype= fixes the outputs' dtype; the inputs follow from the loop that gives it.
    signature = (*([None] * ufunc.nin), *([dtype] * ufunc.nout))
    return ufunc.resolve_dtypes(
        tuple(query), signature=signature, casting=casting, reduction=reduction
    )


def _widen(ufunc: np.ufunc, kinds: tuple[Kind, ...], found: tuple[Any, ...]) -> tuple[DType, ...]:
    """Run a float16 loop with bool or int outputs in float32; refuse other unsupported loops."""
    outputs = found[ufunc.nin :]
    half = np.dtype(np.float16)
    if all(is_supported(d) for d in outputs):
        return tuple(canonical(np.float32 if d == half else d) for d in found)
    given = ", ".join(k.name if isinstance(k, np.dtype) else f"Python {k.__name__}" for k in kinds)
    bad = next(d for d in found if not is_supported(d))
    if bad == half:
        raise NoLoop(
            f"np.{ufunc.__name__} of {given} gives float16 in NumPy, which is not supported in "
            f"compiled code yet",
            "convert with .astype(np.float32) first.",
        )
    raise NoLoop(
        f"np.{ufunc.__name__} of {given}: {unsupported_message(bad)}",
        "convert the operands with .astype(np.float64) first.",
    )


def sum_dtype(dtype: DType) -> DType:
    """The dtype of np.sum, np.prod, np.cumsum: small integers widen to 64 bits."""
    return ufunc_dtypes(np.add, (dtype,), reduction=True)[-1]


def float_dtype(dtype: DType) -> DType:
    """The dtype of means and other averages: floats and complex stay, the others become float64."""
    return dtype if is_inexact(dtype) else F64


def same_kind(source: DType, target: DType) -> bool:
    """NumPy's rule for in-place operators and out=: may `source` be stored in `target`?"""
    return bool(np.can_cast(source, target, casting="same_kind"))
