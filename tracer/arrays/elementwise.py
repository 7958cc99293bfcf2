"""Elementwise functions that are no ufuncs: where, clip, round, nan_to_num, isclose, erf, ..."""

from __future__ import annotations

import math
from typing import Any, NoReturn

import numpy as np

from ...ir.ops.elementwise.erfinv import erfinv as inverse_of_erf
from ...ir.types import BOOL, F16, F64, I64, finfo, is_complex, is_float, is_inexact
from ..core import views
from ..core.tracers import Tracer, as_value, weak_kind, wrap, wrap_like
from ..data.promotion import canonical, check_python_int, float_dtype
from ..messages import errors
from ..messages.errors import complain
from . import ufuncs
from .common import (
    NO_VALUE,
    array,
    broadcast_values,
    build,
    check_real,
    common_dtype,
    finish_ufunc,
    given,
    kind,
    operand,
)
from .table import function, refuse_complex, refuse_option


def where(condition: Any, x: Any, y: Any) -> Tracer:
    """x where the condition holds, and y elsewhere."""
    operands = [operand(condition), operand(x), operand(y)]
    dtype = common_dtype(*operands[1:])
    operands[1:] = [wrapped(side, dtype) for side in operands[1:]]
    values = broadcast_values(operands, [BOOL, dtype, dtype], "operands")
    return wrap_like(build().select(*values), operands, scalar=False)


def wrapped(x: Any, dtype: np.dtype[Any]) -> Any:
    """A Python int as where and select store it: out of range it wraps, as in NumPy."""
    return np.asarray(x).astype(dtype)[()] if type(x) is int else x


def no_static_shape(what: str, instead: str, *asks: Any) -> NoReturn:
    """The error of functions whose result's shape depends on values, those that it asks for."""
    complain(
        errors.DynamicShapeError,
        f"{what} has a shape that depends on the values, which are known only when the compiled "
        "function runs",
        f"give the result's length, {instead}; or keep the full shape and choose by element, "
        "jt.where(condition, x, y); or compute this outside of the compiled function.",
        asks=asks,
    )


@function("clip")
def clip(
    a: Any,
    a_min: Any = NO_VALUE,
    a_max: Any = NO_VALUE,
    out: Any = None,
    *,
    min: Any = NO_VALUE,
    max: Any = NO_VALUE,
    dtype: Any = None,
    casting: Any = "same_kind",
) -> Any:
    if not given(a_min) and not given(a_max):
        a_min, a_max = (None if not given(m) else m for m in (min, max))
    elif not given(a_min) or not given(a_max):
        missing = "a_min" if not given(a_min) else "a_max"
        raise TypeError(f"clip() missing 1 required positional argument: {missing!r}")
    elif given(min) or given(max):
        raise ValueError(
            "Passing `min` or `max` keyword argument when `a_min` and `a_max` are given"
        )
    x = operand(a)
    own = kind(x)
    if dtype is None and isinstance(own, np.dtype) and own.kind in "iu":
        info = np.iinfo(own)  # bounds beyond the range do nothing
        a_min = None if type(a_min) is int and a_min <= info.min else a_min
        a_max = None if type(a_max) is int and a_max >= info.max else a_max
    bounds = [operand(m) for m in (a_min, a_max) if m is not None]
    if not bounds:
        return finish_ufunc(ufuncs.apply(np.positive, x), out)
    if dtype is None:
        dtype = common_dtype(x, *bounds)
        if dtype == BOOL and len(bounds) == 1:
            combine = np.maximum if a_min is not None else np.minimum
            return finish_ufunc(ufuncs.apply(combine, x, *bounds), out, casting)
        if dtype == BOOL:
            complain(
                errors.DTypeError,
                "clip of booleans is not defined",
                "combine booleans with & and |.",
                operands={"a": x},
            )
    dtype = canonical(dtype)
    for m in bounds:
        if type(m) is int:
            check_python_int(m, dtype)
    values = broadcast_values([x, *bounds], [dtype] * (1 + len(bounds)), "operands")
    b, value = build(), values[0]
    if a_min is not None:
        value = b.maximum(value, values[1])
    if a_max is not None:
        value = b.minimum(value, values[-1])
    return finish_ufunc(wrap_like(value, (x, *bounds)), out, casting)


@function("round", "around")
def round_(a: Any, decimals: Any = 0, out: Any = None) -> Any:
    x = array(a)
    if isinstance(out, Tracer) and out.size != x.size:
        raise ValueError("invalid output shape")
    return finish_ufunc(_rounded(x, int(decimals)), out)


def _rounded(x: Tracer, decimals: int) -> Tracer:
    if x.dtype.kind in "iu":
        if decimals >= 0:
            return ufuncs.apply(np.positive, x)
        scale = 10**-decimals
        exact = ufuncs.apply(np.rint, x.astype(F64) / scale) * scale
        return exact.astype(x.dtype)
    if x.dtype == BOOL:
        if decimals:
            raise TypeError("round of booleans to decimals is not defined")
        x = x.astype(F16)
    if is_complex(x.dtype):
        parts = (as_value(_rounded(part, decimals)) for part in (x.real, x.imag))
        return wrap_like(build().complex(*parts), (x,))
    if decimals == 0:
        return ufuncs.apply(np.rint, x)
    scale = float(10 ** abs(decimals))
    rounded = x * scale if decimals > 0 else x / scale
    rounded = ufuncs.apply(np.rint, rounded)
    rounded = rounded / scale if decimals > 0 else rounded * scale
    return wrap_like(as_value(rounded), (x,), order="A")


@function("fix")
def fix(x: Any, out: Any = None) -> Any:
    return ufuncs.call(np.trunc, x, out=out)


@function("nan_to_num")
def nan_to_num(
    x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None
) -> Any:
    a = array(x)
    if is_complex(a.dtype):
        parts = (nan_to_num(p, True, nan, posinf, neginf) for p in (real(a), imag(a)))
        result = wrap_like(build().complex(*map(as_value, parts)), (a,), scalar=False, copy=True)
    elif is_float(a.dtype):
        info = finfo(a.dtype)
        high = info.max if posinf is None else posinf
        low = info.min if neginf is None else neginf
        fills = [ufuncs.apply(np.isnan, a), a == math.inf, a == -math.inf]
        result = a
        for mask, fill in zip(fills, (nan, high, low), strict=True):
            result = where(mask, array(fill).astype(a.dtype), result)
    else:
        result = a.copy("K")
    if not copy:
        a[...] = result
        result = a
    return result if a.ndim else wrap(as_value(result))


def _erf_reference(x: Any, /) -> Any:
    """The error function, by `math.erf` at each element.

    >>> jt.erf(np.array([0.0, 1.0]))
    array([0.        , 0.84270079])
    """
    a = np.asarray(x)
    if is_complex(a.dtype):
        refuse_complex("erf")
    dtype = a.dtype if is_float(a.dtype) else np.dtype(np.float64)
    values = [math.erf(v) for v in a.astype(np.float64).ravel()]
    return np.array(values, dtype).reshape(a.shape)[()]


@function("erf", reference=_erf_reference)
def erf(x: Any, /, **options: Any) -> Any:
    if options:
        refuse_option("erf", **options)
    a = array(x)
    return wrap_like(build().erf(as_value(a, float_dtype(a.dtype))), (a,))


def _erfinv_reference(x: Any, /) -> Any:
    """The inverse of the error function: infinite at -1 and 1, NaN beyond.

    >>> jt.erfinv(np.array([0.0, 1.0]))
    array([ 0., inf])
    """
    a = np.asarray(x)
    if is_complex(a.dtype):
        refuse_complex("erfinv")
    return inverse_of_erf(a.astype(float_dtype(a.dtype)))[()]


@function("erfinv", reference=_erfinv_reference)
def erfinv(x: Any, /, **options: Any) -> Any:
    if options:
        refuse_option("erfinv", **options)
    a = array(x)
    return wrap_like(build().erfinv(as_value(a, float_dtype(a.dtype))), (a,))


@function("sinc")
def sinc(x: Any) -> Any:
    a = array(x)
    if not is_inexact(a.dtype):
        a = a.astype(F64)
    return wrap_like(build().op("sinc", as_value(a)), (a,))


def _with_parts(val: Any) -> Tracer:
    """`val` as what has parts: those of a Python bool are ints."""
    x = array(val)
    return wrap(as_value(x, I64), weak="i") if weak_kind(val) == "b" else x


@function("real")
def real(val: Any) -> Any:
    x = _with_parts(val)
    if is_complex(x.dtype):
        return _part(x, "real")
    return x


@function("imag")
def imag(val: Any) -> Any:
    x = _with_parts(val)
    if is_complex(x.dtype):
        return _part(x, "imag")
    zeros = build().full(x.shape, 0, x.dtype)
    return wrap(zeros, x.weak) if x.scalar else views.read_only(wrap_like(zeros, (x,), order="A"))


def _part(x: Tracer, name: str) -> Tracer:
    """A view of a complex array; of a scalar a value."""
    if not x.scalar:
        return views.part(x, name)
    return wrap(build().op(name, as_value(x)), weak="f" if x.weak else None)


@function("angle")
def angle(z: Any, deg: bool = False) -> Any:
    x = array(z)
    result = ufuncs.apply(np.arctan2, imag(x) if is_complex(x.dtype) else 0, real(x))
    return result * (180 / math.pi) if deg else result


@function("isposinf")
def isposinf(x: Any, out: Any = None) -> Any:
    check_real("isposinf", x)
    a = array(x)
    return finish_ufunc(ufuncs.apply(np.logical_and, ufuncs.apply(np.isinf, a), a > 0), out)


@function("isneginf")
def isneginf(x: Any, out: Any = None) -> Any:
    check_real("isneginf", x)
    a = array(x)
    return finish_ufunc(ufuncs.apply(np.logical_and, ufuncs.apply(np.isinf, a), a < 0), out)


@function("isreal")
def isreal(x: Any) -> Any:
    return ufuncs.apply(np.equal, imag(x), 0)


@function("iscomplex")
def iscomplex(x: Any) -> Any:
    a = array(x)
    if not is_complex(a.dtype):
        return wrap(build().full(a.shape, False, BOOL))
    return ufuncs.apply(np.not_equal, imag(a), 0)


@function("isrealobj")
def isrealobj(x: Any) -> bool:
    return not is_complex(array(x).dtype)


@function("iscomplexobj")
def iscomplexobj(x: Any) -> bool:
    return is_complex(array(x).dtype)


@function("i0")
def i0(x: Any) -> Any:
    """The modified Bessel function, by NumPy's own Chebyshev series."""
    check_real("i0", x)
    a = array(x)
    return wrap_like(build().op("i0", as_value(a, float_dtype(a.dtype))), (a,), scalar=False)
