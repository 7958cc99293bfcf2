"""Elementwise ops of one operand, and `select` and `convert`.

Conventions where a derivative does not exist, all as in JAX: abs and sign give 0 at 0; floor, ceil,
trunc, rint and the sign of real numbers are flat; sqrt at 0 gives inf, so `sqrt(x * x)` gives NaN
there (`abs`, `hypot` or a `where` do not).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...batching.transform import batch_elementwise
from ...build import Builder, Grads, Wanted
from ...cost import Cost
from ...graph import Op, Value
from ...opdef import GraphError, OpDef, register
from ...types import (
    BOOL,
    C64,
    F16,
    F32,
    F64,
    TensorType,
    bits_dtype,
    is_complex,
    is_small,
    is_supported,
)
from ..families import (
    ANY,
    BITS,
    FLOAT,
    IDENTITY,
    INEXACT,
    NUMBER,
    Arg,
    Array,
    DType,
    Example,
    Partial,
    check_dtype,
    check_kind,
    check_same,
    elementwise,
)
from ..term import where

_LN2 = math.log(2.0)
_LN10 = math.log(10.0)
_TWO_OVER_ROOT_PI = 2.0 / math.sqrt(math.pi)


def _erf(x: Array) -> Array:
    flat = [math.erf(v) for v in x.astype(np.float64).ravel().tolist()]
    return np.array(flat, np.float64).astype(x.dtype).reshape(x.shape)


# Partials are (t, z, x) -> t * dz/dx.


def _function(
    ufunc: np.ufunc,
    partial: Partial,
    domain: tuple[float, float] = (-2.0, 2.0),
    kinds: str = INEXACT,
) -> None:
    elementwise(ufunc.__name__, Cost.FUNCTION, ufunc, [partial], domain=domain, kinds=kinds)


# Exponentials and logarithms.
_function(np.exp, lambda t, z, x: t * z)
_function(np.exp2, lambda t, z, x: t * (z * _LN2))
_function(np.expm1, lambda t, z, x: t * (z + 1))
_function(np.log, lambda t, z, x: t / x, (0.1, 4))
_function(np.log2, lambda t, z, x: t / (x * _LN2), (0.1, 4))
_function(np.log10, lambda t, z, x: t / (x * _LN10), (0.1, 4))
_function(np.log1p, lambda t, z, x: t / (x + 1), (-0.9, 4))

# Roots.
elementwise(
    "sqrt",
    Cost.DIVISION,
    np.sqrt,
    [lambda t, z, x: t * 0.5 / z],
    domain=(0.1, 4),
    kinds=INEXACT,
    unbounded=True,
)
_function(np.cbrt, lambda t, z, x: t / (z * z * 3), (0.1, 4), kinds=FLOAT)

# Circular functions. (1 - x) * (1 + x) keeps the digits that 1 - x*x loses near 1.
_function(np.sin, lambda t, z, x: t * x.cos())
_function(np.cos, lambda t, z, x: -(t * x.sin()))
_function(np.tan, lambda t, z, x: t * (z * z + 1), (-1.2, 1.2))
_function(np.arcsin, lambda t, z, x: t / _cosine(x), (-0.9, 0.9))
_function(np.arccos, lambda t, z, x: -(t / _cosine(x)), (-0.9, 0.9))
_function(np.arctan, lambda t, z, x: t / (x * x + 1))

# Hyperbolic functions.
_function(np.sinh, lambda t, z, x: t * x.cosh())
_function(np.cosh, lambda t, z, x: t * x.sinh())
_function(np.tanh, lambda t, z, x: t * ((1 - z) * (1 + z)))
_function(np.arcsinh, lambda t, z, x: t / _hypotenuse(x))
_function(np.arccosh, lambda t, z, x: t / ((x - 1).sqrt() * (x + 1).sqrt()), (1.2, 4))
_function(np.arctanh, lambda t, z, x: t / ((1 - x) * (1 + x)), (-0.9, 0.9))

elementwise(
    "erf",
    Cost.FUNCTION,
    _erf,
    [lambda t, z, x: t * ((-(x * x)).exp() * _TWO_OVER_ROOT_PI)],
    doc="the error function; NumPy has none, the reference is the C library's in float64",
)

# Rounding: flat wherever it is smooth.
elementwise("floor", Cost.CHEAP, np.floor, [None], domain=(0.1, 0.9))
elementwise("ceil", Cost.CHEAP, np.ceil, [None], domain=(0.1, 0.9))
elementwise("trunc", Cost.CHEAP, np.trunc, [None], domain=(0.1, 0.9))
elementwise(
    "rint", Cost.CHEAP, np.rint, [None], domain=(0.6, 0.9), doc="ties to even", kinds=INEXACT
)

# The parts of a float: x = frexp_fraction(x) * 2**frexp_exponent(x), 0.5 <= |fraction| < 1.
elementwise(
    "frexp_fraction",
    Cost.CHEAP,
    lambda x: np.frexp(x)[0],
    [lambda t, z, x: t.ldexp(-x.frexp_exponent())],
    domain=(0.6, 0.9),
)
elementwise("frexp_exponent", Cost.CHEAP, lambda x: np.frexp(x)[1].astype(np.int32), result="i32")


def _nonzero(x: Any) -> Any:
    return where(x.eq(0), 1, x)


def _modulus(t: Any, z: Any, x: Any) -> Any:
    """t conj(x) / |x|; 0 at 0."""
    if not is_complex(x.value.dtype):
        return t * x.sign()
    m = _nonzero(x.abs())
    return t * x.conj() / m.complex(m * 0)


# Any number. abs and neg of the smallest signed integer wrap, as do unsigned negatives.
elementwise(
    "neg",
    Cost.CHEAP,
    np.negative,
    [lambda t, z, x: -t],
    kinds=NUMBER,
    wraps=True,
    unbounded=True,
)
elementwise(
    "abs",
    Cost.CHEAP,
    np.absolute,
    [_modulus],
    kinds=NUMBER,
    result="real",
    domain=(0.1, 2),
    wraps=True,
    unbounded=True,
    doc="of a complex number its modulus, a float",
)
elementwise(
    "sign",
    Cost.CHEAP,
    np.sign,
    [None],
    kinds=NUMBER,
    domain=(0.1, 2),
    of_complex=(lambda t, z, x: _turn(t, z, x), lambda t, z, x: _turn(t, z.conj(), x)),
    doc="of a complex number z / |z|, which turns with z",
)
elementwise("invert", Cost.CHEAP, np.invert, kinds=BITS)
elementwise(
    "stop_gradient",
    Cost.FREE,
    lambda x: x,
    [None],
    kinds=ANY,
    moves=True,
    doc="identity; derivative zero",
)

# Predicates of floats.
elementwise("isnan", Cost.CHEAP, np.isnan, result="bool", kinds=INEXACT, asks=True)
elementwise("isinf", Cost.CHEAP, np.isinf, result="bool", kinds=INEXACT, asks=True)
elementwise("isfinite", Cost.CHEAP, np.isfinite, result="bool", kinds=INEXACT, asks=True)
elementwise("signbit", Cost.CHEAP, np.signbit, result="bool", asks=True)


def _cosine(x: Any) -> Any:
    return ((1 - x) * (1 + x)).sqrt()


def _turn(t: Any, z: Any, x: Any) -> Any:
    """i z Im(conj(z) t) / |x|, for z on the unit circle; 0 at 0. Its transpose has conj(z) for z."""
    across = (z.conj() * t).imag() / _nonzero(x.abs())
    return z * (across * 0).complex(across)


def _hypotenuse(x: Any) -> Any:
    """sqrt(1 + x * x)"""
    return (x * x + 1).sqrt() if is_complex(x.value.dtype) else x.hypot(1)


# select: each side's derivative is masked; see masks.py for what the mask does further on.


def _infer_select(condition: TensorType, x: TensorType, y: TensorType) -> TensorType:
    check_dtype(condition, "bool", "the condition")
    check_kind(x, ANY)
    check_kind(y, ANY)
    check_same([x, y])
    check_same([x, condition], dtypes_too=False)
    return x


def _jvp_select(b: Builder, op: Op, tangents: Sequence[Value | None]) -> list[Value | None]:
    condition = op.operands[0]
    sides = [b.zeros(op.result.tensor) if t is None else t for t in tangents[1:]]
    return [b.op("select", condition, *sides)]


def _vjp_select(b: Builder, op: Op, cotangents: Sequence[Value], wanted: Wanted) -> Grads:
    condition = op.operands[0]
    (ct,) = cotangents
    zero = b.full_like(ct, 0)
    return [
        None,
        b.op("select", condition, ct, zero) if wanted[1] else None,
        b.op("select", condition, zero, ct) if wanted[2] else None,
    ]


register(
    OpDef(
        "select",
        "elementwise",
        _infer_select,
        lambda c, x, y: np.asarray(np.where(c, x, y)),
        _jvp_select,
        _vjp_select,
        cost=Cost.CHEAP,
        pointwise=True,
        batch=batch_elementwise,
        moves=True,
        dtypes=ANY,
        doc="x where the condition holds, y elsewhere",
        extra={
            "partials": (
                None,
                lambda t, z, c, x, y: where(c, t, 0),
                lambda t, z, c, x, y: where(c, 0, t),
            ),
            "domain": (-2.0, 2.0),
            "examples": (Example((Arg((2, 3), "bool"), Arg((2, 3)), Arg((2, 3)))),),
        },
    )
)


def _infer_convert(x: TensorType, *, dtype: DType) -> TensorType:
    check_kind(x, ANY)
    if not is_supported(np.dtype(dtype)):
        raise GraphError(f"dtype={dtype} is not a dtype that graphs know")
    return x.with_dtype(np.dtype(dtype))


def _convert(x: Array, *, dtype: DType) -> Array:
    if is_complex(x.dtype) and dtype.kind not in "bc":
        x = x.real
    exact = x.dtype == F64 and dtype == F16  # rounded once; ml_dtypes goes by float32 here, too
    if x.dtype != dtype and not exact and (is_small(dtype) or is_small(x.dtype)):
        x = x.astype(F32)
    return x.astype(dtype)


def _jvp_convert(b: Builder, op: Op, tangents: Sequence[Value]) -> list[Value | None]:
    return [b.op("convert", tangents[0], dtype=op.result.dtype)]


def _vjp_convert(b: Builder, op: Op, cotangents: Sequence[Value], wanted: Wanted) -> Grads:
    return [b.op("convert", cotangents[0], dtype=op.operands[0].dtype)]


register(
    OpDef(
        "convert",
        "elementwise",
        _infer_convert,
        _convert,
        _jvp_convert,
        _vjp_convert,
        cost=Cost.FREE,
        pointwise=True,
        batch=batch_elementwise,
        moves=True,
        dtypes=ANY,
        attrs=("dtype",),
        doc="NumPy's astype; a complex number gives its real part to a real dtype",
        extra={
            "partials": (IDENTITY,),
            "domain": (-2.0, 2.0),
            "examples": tuple(
                Example((Arg((2, 3)),), {"dtype": d})
                for d in (F64, F32, F16, C64, np.dtype(np.int16), BOOL)
            ),
        },
    )
)


# widen and narrow: floats of 16 and 8 bits as their bits, which is all that compiled code knows of them.
# `passes.pack_floats` makes these; derivatives are taken before.


def _infer_widen(bits: TensorType, *, dtype: DType) -> TensorType:
    if not isinstance(bits, TensorType) or not is_small(dtype) or bits.dtype != bits_dtype(dtype):
        raise GraphError(f"operand of type {bits} holds no bits of {dtype}")
    return bits.with_dtype(F32)


def _infer_narrow(x: TensorType, *, dtype: DType) -> TensorType:
    check_kind(x, "f")
    if not is_small(dtype) or is_small(x.dtype) or (x.dtype == F64 and dtype != F16):
        raise GraphError(f"{x} is not narrowed to {dtype}; convert it to float32 first")
    return x.with_dtype(bits_dtype(dtype))


elementwise(
    "widen",
    Cost.CHEAP,
    lambda bits, *, dtype: bits.view(dtype).astype(F32),
    kinds="u",
    operands=("u16",),
    infer=_infer_widen,
    attrs=("dtype",),
    samples={"dtype": F16},
    doc="the float32 values of floats of 16 or 8 bits, given as bits",
)
register(
    OpDef(
        "narrow",
        "elementwise",
        _infer_narrow,
        lambda x, *, dtype: x.astype(dtype).view(bits_dtype(dtype)),
        cost=Cost.CHEAP,
        pointwise=True,
        batch=batch_elementwise,
        dtypes="f",
        attrs=("dtype",),
        doc="the bits of the nearest float of 16 or 8 bits",
        extra={
            "domain": (-2.0, 2.0),
            "examples": (
                Example((Arg((2, 3), "f32"),), {"dtype": F16}),
                Example((Arg((2, 3), "f64"),), {"dtype": F16}),
            ),
        },
    )
)
