"""Elementwise functions that are no ufuncs: where, clip, round, nan_to_num, isclose, erf, ..."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from ...ir.ops.erfinv import erfinv as inverse_of_erf
from ...ir.types import BOOL, F16, F64, I64, finfo, is_complex, is_float, is_inexact
from .. import errors, views
from ..core import Tracer, as_value, weak_kind, wrap, wrap_like
from ..errors import complain
from ..promotion import canonical, check_python_int, float_dtype
from . import ufuncs
from .common import (
    NO_VALUE,
    array,
    broadcast_shape,
    broadcast_values,
    build,
    check_real,
    common_dtype,
    finish,
    finish_ufunc,
    given,
    index_array,
    kind,
    operand,
    shape_of,
    static_array,
)
from .table import function, refuse_complex, refuse_option


def _where_reference(*args: Any, size: Any = None, fill_value: Any = None) -> Any:
    if size is None:
        return np.where(*args)
    from .table import FUNCTIONS

    return FUNCTIONS["nonzero"].reference(*args, size=size, fill_value=fill_value)


@function("where", reference=_where_reference)
def where(
    condition: Any,
    x: Any = NO_VALUE,
    y: Any = NO_VALUE,
    /,
    *,
    size: Any = None,
    fill_value: Any = None,
) -> Any:
    """np.where; without `x` and `y` it is `nonzero`, and takes its `size` and `fill_value`."""
    if not given(x) and not given(y):
        from .value_shapes import nonzero

        return nonzero(condition, size=size, fill_value=fill_value)
    if not (given(x) and given(y)):
        raise ValueError("either both or neither of x and y should be given")
    operands = [operand(condition), operand(x), operand(y)]
    dtype = common_dtype(*operands[1:])
    operands[1:] = [wrapped(side, dtype) for side in operands[1:]]
    values = broadcast_values(operands, [BOOL, dtype, dtype], "operands")
    return wrap_like(build().select(*values), operands, scalar=False)


def wrapped(x: Any, dtype: np.dtype[Any]) -> Any:
    """A Python int as where and select store it: out of range it wraps, as in NumPy."""
    return np.asarray(x).astype(dtype)[()] if type(x) is int else x


def no_static_shape(what: str, instead: str) -> NoReturn:
    """The error of functions whose result's shape depends on values."""
    complain(
        errors.DynamicShapeError,
        f"{what} has a shape that depends on the values, which are known only when the compiled "
        "function runs",
        f"give the result's length, {instead}; or keep the full shape and choose by element, "
        "jt.where(condition, x, y); or compute this outside of the compiled function.",
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
    """The error function, by `math.erf` at each element."""
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
    """The inverse of the error function: infinite at -1 and 1, NaN beyond."""
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


@function("isclose")
def isclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> Any:
    x, y = operand(a), operand(b)
    known = kind(y)
    if isinstance(known, np.dtype):
        y = array(y).astype(float_dtype(known))
    elif known is int:
        y = float(y) if type(y) is int else wrap(as_value(y, F64), weak="f")
    difference = abs(ufuncs.apply(np.subtract, x, y))
    bound = operand(atol) + operand(rtol) * abs(y)
    finite = ufuncs.apply(np.isfinite, y)
    close = (difference <= bound) & finite | ufuncs.apply(np.equal, x, y)
    if equal_nan:
        close = close | ufuncs.apply(np.isnan, x) & ufuncs.apply(np.isnan, y)
    return close


@function("allclose")
def allclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> Any:
    from .reductions import all_

    return _truth(all_(isclose(a, b, rtol, atol, equal_nan)))


def _truth(x: Tracer) -> Tracer:
    """As a bool of Python."""
    return wrap(as_value(x), weak="b")


@function("array_equal")
def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> Any:
    from .reductions import all_

    x, y = array(a1), array(a2)
    if x.shape != y.shape:
        return _truth(array(False))
    same = x == y
    if equal_nan:
        same = same | ufuncs.apply(np.isnan, x) & ufuncs.apply(np.isnan, y)
    return _truth(all_(same))


@function("array_equiv")
def array_equiv(a1: Any, a2: Any) -> Any:
    from .reductions import all_

    x, y = array(a1), array(a2)
    try:
        np.broadcast_shapes(x.shape, y.shape)
    except ValueError:
        return _truth(array(False))
    return _truth(all_(x == y))


@function("select")
def select(condlist: Sequence[Any], choicelist: Sequence[Any], default: Any = 0) -> Any:
    if len(condlist) != len(choicelist):
        raise ValueError("list of cases must be same length as list of conditions")
    if len(condlist) == 0:
        raise ValueError("select with an empty condition list is not possible")
    for i, c in enumerate(condlist):
        if kind(c) != BOOL:
            raise TypeError(f"invalid entry {i} in condlist: should be boolean ndarray")
    choices = [operand(c) for c in choicelist]
    dtype = common_dtype(*choices, operand(default))
    shape = broadcast_shape([*condlist, *choices, operand(default)])
    b = build()
    result = b.broadcast_to(as_value(wrapped(operand(default), dtype), dtype), shape)
    for condition, choice in zip(reversed(condlist), reversed(choices), strict=True):
        mask = b.broadcast_to(as_value(operand(condition)), shape)
        result = b.select(
            mask, b.broadcast_to(as_value(wrapped(choice, dtype), dtype), shape), result
        )
    return wrap(result, scalar=False)


@function("choose")
def choose(a: Any, choices: Any, out: Any = None, mode: str = "raise") -> Any:
    from .selection import check_mode

    index, mode = index_array(array(a)), check_mode(mode)
    if not isinstance(choices, (list, tuple)):
        choices = list(array(choices))
    choices = [operand(c) for c in choices]
    dtype = common_dtype(*choices)
    parts = [array(c).astype(dtype) for c in choices]
    count = len(parts)
    if mode == "wrap":
        index = index % count
    elif mode == "clip":
        index = clip(index, 0, count - 1)
    else:
        known = static_array(a)
        if known is None:
            return _chosen_into(out, _choose_checked(index, parts))
        if known.size and (known.min() < 0 or known.max() >= count):
            raise ValueError("invalid entry in choice array")
    shape = broadcast_shape([index, *parts])
    result = parts[-1]
    for k in range(count - 2, -1, -1):
        result = where(index == k, parts[k], result)
    from .movement import broadcast_to

    if result.shape != shape:
        result = broadcast_to(result, shape)
    return _chosen_into(out, result)


def _chosen_into(out: Any, result: Tracer) -> Tracer:
    if isinstance(out, Tracer) and out.shape != result.shape:
        raise TypeError("choose: invalid shape for output array.")
    return finish(wrap(as_value(result)), out)


def _choose_checked(index: Tracer, parts: Sequence[Tracer]) -> Tracer:
    """Chosen by index arrays, which are checked when the compiled function runs."""
    from .movement import broadcast_to, stack
    from .selection import take_along_axis

    shape = broadcast_shape([index, *parts])
    choices = stack([broadcast_to(p, shape) for p in parts])
    return take_along_axis(choices, broadcast_to(index, shape)[None], 0)[0]


@function("piecewise")
def piecewise(x: Any, condlist: Any, funclist: Sequence[Any], *args: Any, **kw: Any) -> Any:
    """Each function is given all of x, and its values are taken where the condition holds."""
    a = array(x)
    conditions = [_mask_of(a, c) for c in array([condlist] if _sole(condlist, a) else condlist)]
    if len(funclist) not in (len(conditions), len(conditions) + 1):
        raise ValueError(
            f"with {len(conditions)} condition(s), either {len(conditions)} or "
            f"{len(conditions) + 1} functions are expected"
        )
    if len(funclist) > len(conditions):
        conditions.append(~functools.reduce(operator.or_, conditions))
    result: Any = wrap(build().full(a.shape, 0, a.dtype), scalar=False)
    for condition, f in zip(conditions, funclist, strict=True):
        value = array(f(a, *args, **kw) if callable(f) else f)
        result = where(condition, value.astype(a.dtype), result)
    return wrap_like(as_value(result), (a,), scalar=False, copy=True)


def _sole(condlist: Any, x: Tracer) -> bool:
    """Whether it is one condition, and no list of them, to NumPy."""
    if not shape_of(condlist):
        return True
    first = condlist[0]
    scalar = (
        first.scalar if isinstance(first, Tracer) else not isinstance(first, (list, np.ndarray))
    )
    return scalar and x.ndim != 0


def _mask_of(x: Tracer, condition: Tracer) -> Tracer:
    """A condition as a mask of x's shape: one of its first dims stands for all that follow."""
    mask = condition.astype(bool)
    if mask.shape != x.shape[: mask.ndim]:
        raise IndexError(
            f"boolean index of shape {mask.shape} does not match an array of shape {x.shape}"
        )
    return views.broadcast_to(mask.reshape(mask.shape + (1,) * (x.ndim - mask.ndim)), x.shape)


@function("i0")
def i0(x: Any) -> Any:
    """The modified Bessel function, by NumPy's own Chebyshev series."""
    check_real("i0", x)
    a = array(x)
    return wrap_like(build().op("i0", as_value(a, float_dtype(a.dtype))), (a,), scalar=False)


@function("unwrap")
def unwrap(p: Any, discont: Any = None, axis: int = -1, *, period: float = 2 * math.pi) -> Any:
    from .scans import cumsum, diff

    x = array(p)
    steps = diff(x, axis=axis)
    discont = period / 2 if discont is None else discont
    dtype = common_dtype(steps, operand(period))
    whole = dtype.kind in "iu"
    high = period // 2 if whole else period / 2
    low = -high
    wrapped = (steps - low) % period + low
    if not whole or period % 2 == 0:
        wrapped = where((wrapped == low) & (steps > 0), high, wrapped)
    correction = where(abs(steps) < discont, wrapped.dtype.type(0), wrapped - steps)
    result = x.astype(dtype).copy("K")
    lead = (slice(None),) * (axis % x.ndim)
    result[(*lead, slice(1, None))] = x[(*lead, slice(1, None))] + cumsum(correction, axis=axis)
    return result
