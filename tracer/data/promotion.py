"""Type promotion: NEP 50, asked of NumPy itself.

A ufunc's loop is chosen by the ufunc's own `resolve_dtypes`, so that every corner (bool + bool,
int64 < uint64, ldexp's int32 exponent) is NumPy's by construction. An operand is described by its
`Kind`: a dtype, or Python's `int`, `float` or `complex` for a weak operand, which stands for a Python
scalar and takes the dtype of the others. A Python bool is not weak: it is a `bool`.

Only the dtypes of `ir.types` can live in a graph. A loop over another one (a longdouble) is refused with
a TypeError that says what to convert.

Of the floats of ml_dtypes NumPy knows what the ufuncs' loops are, and no more. That is taken over, and
two gaps are filled as in JAX: a Python float or complex is weak beside them, too (NumPy makes a bfloat16
array plus 1.0 float32), and functions that ask np.result_type promote as np.add does.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from ...ir.types import (
    BOOL,
    C128,
    DTYPE_NAMES,
    F64,
    I64,
    complex_dtype,
    dtype_kind,
    dtype_name,
    is_complex,
    is_extended,
    is_inexact,
    is_supported,
)
from ...ir.types import finfo as dtype_limits

DType = np.dtype[Any]
Kind = DType | type  # a dtype, or the Python type `int`, `float` or `complex` for a weak operand

Signature = DType | tuple[DType | None, ...] | None

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
    """The message about a dtype that no graph knows."""
    names = ", ".join(t.name for t in DTYPE_NAMES.values())
    return f"dtype {dtype} is not supported in compiled code yet; supported are {names}"


def weak_dtype(weak: str) -> DType:
    """How a weak value is stored: bool, int64, float64 or complex128."""
    return _WEAK_DTYPES[weak]


def kind_of(dtype: DType, weak: str | None) -> Kind:
    """The `Kind` of an operand of `dtype` whose weakness is `weak`."""
    return dtype if weak is None else _WEAK_KINDS[weak]


_KINDS = "buifc"
_SAMPLES: dict[Any, Any] = {int: 0, float: 0.0, complex: 0j}


@cache
def result_dtype(*kinds: Kind) -> DType:
    """`np.result_type` of the operands: what where, clip and concatenate give.

    >>> result_dtype(np.dtype(np.float32), float)
    dtype('float32')
    """
    strong = [k for k in kinds if isinstance(k, np.dtype)]
    if any(map(is_extended, strong)):
        promoted = strong[0]
        for other in strong[1:]:
            promoted = np.add.resolve_dtypes((promoted, other, None))[-1]
        weak_complex = complex in kinds and not is_complex(promoted)
        return canonical(complex_dtype(promoted) if weak_complex else promoted)
    return canonical(np.result_type(*(_SAMPLES.get(k, k) for k in kinds)))


def _decided(kinds: tuple[Kind, ...]) -> tuple[Kind, ...]:
    """Python floats and complex numbers beside extended floats as what they become."""
    strong = [k for k in kinds if isinstance(k, np.dtype)]
    if len(strong) == len(kinds) or not any(map(is_extended, strong)):
        return kinds
    stands: dict[Kind, Kind] = {
        float: result_dtype(*strong, float),
        complex: result_dtype(*strong, complex),
    }
    return tuple(stands.get(k, k) for k in kinds)


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
    dtype: Signature = None,
    casting: str = "same_kind",
    reduction: bool = False,
) -> tuple[DType, ...]:
    """The dtypes of the loop that NumPy would run: inputs first, then outputs.

    `dtype` is the ufunc's own `dtype=` argument, or its `signature=` as a tuple. Reductions cast their
    elements as they like, as NumPy's do. Raises TypeError with NumPy's message where NumPy has
    no loop, and with ours where the loop is over a dtype that a graph cannot hold.

    >>> ufunc_dtypes(np.add, (np.dtype(np.int8), int))
    (dtype('int8'), dtype('int8'), dtype('int8'))
    """
    if reduction:
        query: Sequence[Any] = (None, kinds[0], None)
        dtypes = _resolve(ufunc, query, dtype, "unsafe", reduction=True)
        return tuple(canonical(d) for d in dtypes)
    kinds_ = (I64, I64) if kinds == (int, int) and _compares(ufunc) else _decided(kinds)
    dtypes = _resolve(ufunc, (*kinds_, *([None] * ufunc.nout)), dtype, casting)
    if all(is_supported(d) for d in dtypes):
        return tuple(canonical(d) for d in dtypes)
    bad = next(d for d in dtypes if not is_supported(d))
    operands = ", ".join(
        k.name if isinstance(k, np.dtype) else f"Python {k.__name__}" for k in kinds
    )
    raise NoLoop(
        f"np.{ufunc.__name__} of {operands}: {unsupported_message(bad)}",
        "convert the operands with .astype(np.float64) first.",
    )


def _compares(ufunc: np.ufunc) -> bool:
    """Whether NumPy's loop of two Python ints would be one of objects: ints of any size."""
    return ufunc.resolve_dtypes((int, int, *([None] * ufunc.nout)))[0] == np.dtype(object)


def _resolve(
    ufunc: np.ufunc,
    query: Sequence[Any],
    dtype: Signature,
    casting: Any,
    reduction: bool = False,
) -> tuple[Any, ...]:
    if casting == "equiv" and any(isinstance(k, type) for k in query):
        # As the ufunc does it; its resolve_dtypes ends the process.
        query = [np.dtype(k) if isinstance(k, type) else k for k in query]
    if dtype is None:
        return ufunc.resolve_dtypes(tuple(query), casting=casting, reduction=reduction)
    if isinstance(dtype, tuple):
        return ufunc.resolve_dtypes(tuple(query), signature=dtype, casting=casting)
    # NumPy's dtype= fixes the outputs' dtype; the inputs follow from the loop that gives it.
    # (In a reduction the first operand is the output, too.)
    signature: tuple[Any, ...] = (dtype, *([None] * (ufunc.nargs - 1)))
    if not reduction:
        signature = (*([None] * ufunc.nin), *([dtype] * ufunc.nout))
    return ufunc.resolve_dtypes(
        tuple(query), signature=signature, casting=casting, reduction=reduction
    )


def sum_dtype(dtype: DType) -> DType:
    """The dtype of np.sum, np.prod, np.cumsum: small integers widen to 64 bits."""
    return ufunc_dtypes(np.add, (dtype,), reduction=True)[-1]


def float_dtype(dtype: DType) -> DType:
    """The dtype of means and other averages: floats and complex stay, the others become float64."""
    return dtype if is_inexact(dtype) else F64


def can_cast(source: DType, target: DType, casting: Any) -> bool:
    """`np.can_cast`, with floats of all kinds of the same kind."""
    if casting == "same_kind" and (is_extended(source) or is_extended(target)):
        return _KINDS.index(dtype_kind(source)) <= _KINDS.index(dtype_kind(target))
    return bool(np.can_cast(source, target, casting=casting))


def same_kind(source: DType, target: DType) -> bool:
    """NumPy's rule for in-place operators and out=: may `source` be stored in `target`?"""
    return can_cast(source, target, "same_kind")


def finfo(type: Any) -> Any:
    """What a float dtype can hold: `np.finfo`, which knows the floats of ml_dtypes, too.

    >>> jt.finfo(jt.bfloat16).bits
    16
    """
    dtype = getattr(type, "dtype", None)
    if isinstance(dtype, np.dtype):  # of an array
        type = dtype
    try:
        exact = np.dtype(type)
    except TypeError:
        return np.finfo(type)
    return dtype_limits(exact) if is_extended(exact) else np.finfo(type)
