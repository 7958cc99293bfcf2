"""What each NumPy ufunc is in graph ops, once its operands have the loop's dtypes and one shape.

`LOWERINGS[ufunc name](b, *values)` gives the result's value, or a tuple for a ufunc with several.
Most ufuncs are one op; bool loops and the rest are composed here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from ...ir.build import Builder
from ...ir.graph import Value
from ...ir.types import (
    BOOL,
    F16,
    F32,
    F64,
    I32,
    finfo,
    has_infinity,
    is_complex,
    is_float,
    is_inexact,
    is_small,
)

F = TypeVar("F", bound=Callable[..., Any])

LOWERINGS: dict[str, Callable[..., Any]] = {}


def lowering(*names: str) -> Callable[[F], F]:
    def enter(rule: F) -> F:
        for name in names:
            LOWERINGS[name] = rule
        return rule

    return enter


def _one_op(op: str) -> Callable[..., Value]:
    return lambda b, *values: b.op(op, *values)


_SAME_NAME = (
    "exp exp2 expm1 log log2 log10 log1p sqrt cbrt sin cos tan arcsin arccos arctan sinh cosh tanh "
    "arcsinh arccosh arctanh sign invert arctan2 hypot copysign nextafter logaddexp logaddexp2 "
    "heaviside gcd lcm bitwise_and bitwise_or bitwise_xor left_shift right_shift rint "
    "floor_divide remainder fmod"
)
_RENAMED = {
    "divide": "div",
    "power": "pow",
    "float_power": "pow",
    "subtract": "sub",
    "negative": "neg",
    "equal": "eq",
    "not_equal": "ne",
}
for _name in _SAME_NAME.split():
    LOWERINGS[_name] = _one_op(_name)
for _name, _op in _RENAMED.items():
    LOWERINGS[_name] = _one_op(_op)


def _bool_or(bool_op: str, op: str) -> Callable[..., Value]:
    return lambda b, x, y: b.op(bool_op if x.dtype == BOOL else op, x, y)


for _name, _bool_op, _op in (
    ("add", "bitwise_or", "add"),
    ("multiply", "bitwise_and", "mul"),
    ("maximum", "bitwise_or", "maximum"),
    ("minimum", "bitwise_and", "minimum"),
    ("fmax", "bitwise_or", "fmax"),
    ("fmin", "bitwise_and", "fmin"),
):
    LOWERINGS[_name] = _bool_or(_bool_op, _op)


def _ordering(op: str) -> Callable[..., Value]:
    """A comparison. NumPy compares int64 with uint64 exactly: a negative one is below every other."""

    def rule(b: Builder, x: Value, y: Value) -> Value:
        if x.dtype == y.dtype:
            return b.op(op, x, y)
        if x.dtype.kind == "u":
            swapped = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le"}.get(op, op)
            return _ordering(swapped)(b, y, x)
        below = b.lt(x, b.full_like(x, 0))
        result = b.op(op, b.convert(x, dtype=y.dtype), y)
        if op in ("lt", "le", "ne"):
            return b.bitwise_or(below, result)
        return b.bitwise_and(b.invert(below), result)

    return rule


for _name, _op in (
    ("less", "lt"),
    ("less_equal", "le"),
    ("greater", "gt"),
    ("greater_equal", "ge"),
    ("equal", "eq"),
    ("not_equal", "ne"),
):
    LOWERINGS[_name] = _ordering(_op)


@lowering("absolute")
def _absolute(b: Builder, x: Value) -> Value:
    return x if x.dtype.kind in "bu" else b.abs(x)


@lowering("fabs")
def _fabs(b: Builder, x: Value) -> Value:
    return b.abs(x)


@lowering("positive")
def _same(b: Builder, x: Value) -> Value:
    return x


@lowering("conjugate")
def _conjugate(b: Builder, x: Value) -> Value:
    return b.conj(x) if is_complex(x.dtype) else x


@lowering("square")
def _square(b: Builder, x: Value) -> Value:
    return b.mul(x, x)


@lowering("reciprocal")
def _reciprocal(b: Builder, x: Value) -> Value:
    if is_inexact(x.dtype):
        quotient = b.div(b.full_like(x, 1), x)
        if not is_complex(x.dtype):
            return quotient
        undefined = b.full_like(x, complex(math.nan, math.nan))
        return b.select(b.op("eq", x, b.full_like(x, 0)), undefined, quotient)
    exact = b.convert(x, dtype=F64)
    return b.convert(b.div(b.full_like(exact, 1), exact), dtype=x.dtype)


def _rounding(op: str) -> Callable[..., Value]:
    return lambda b, x: b.op(op, x) if is_float(x.dtype) else x


for _name in ("floor", "ceil", "trunc"):
    LOWERINGS[_name] = _rounding(_name)


def _classify(op: str, of_int: bool) -> Callable[..., Value]:
    """isnan and its siblings: known for integers and bools."""

    def rule(b: Builder, x: Value) -> Value:
        return b.op(op, x) if is_inexact(x.dtype) else b.full(x.shape, of_int, BOOL)

    return rule


LOWERINGS["isnan"] = _classify("isnan", False)
LOWERINGS["isinf"] = _classify("isinf", False)
LOWERINGS["isfinite"] = _classify("isfinite", True)
LOWERINGS["signbit"] = _classify("signbit", False)


def _truth(b: Builder, x: Value) -> Value:
    return x if x.dtype == BOOL else b.ne(x, b.full_like(x, 0))


@lowering("logical_not")
def _logical_not(b: Builder, x: Value) -> Value:
    return b.invert(x) if x.dtype == BOOL else b.eq(x, b.full_like(x, 0))


def _logical(op: str) -> Callable[..., Value]:
    return lambda b, x, y: b.op(op, _truth(b, x), _truth(b, y))


LOWERINGS["logical_and"] = _logical("bitwise_and")
LOWERINGS["logical_or"] = _logical("bitwise_or")
LOWERINGS["logical_xor"] = _logical("bitwise_xor")


def _scaled(factor: float) -> Callable[..., Value]:
    def rule(b: Builder, x: Value) -> Value:
        if is_small(x.dtype):  # rounded once, the factor not at all
            return b.convert(rule(b, b.convert(x, dtype=F32)), dtype=x.dtype)
        return b.mul(x, b.full_like(x, factor))

    return rule


LOWERINGS["degrees"] = LOWERINGS["rad2deg"] = _scaled(180.0 / math.pi)
LOWERINGS["radians"] = LOWERINGS["deg2rad"] = _scaled(math.pi / 180.0)


@lowering("divmod")
def _divmod(b: Builder, x: Value, y: Value) -> tuple[Value, Value]:
    return b.floor_divide(x, y), b.remainder(x, y)


@lowering("modf")
def _modf(b: Builder, x: Value) -> tuple[Value, Value]:
    """Fraction and whole part, both with the sign of x; the fraction of an infinity is 0."""
    whole = b.trunc(x)
    zero = b.copysign(b.full_like(x, 0), x)
    return b.select(b.isinf(x), zero, b.fmod(x, b.full_like(x, 1))), whole


@lowering("frexp")
def _frexp(b: Builder, x: Value) -> tuple[Value, Value]:
    return b.frexp_fraction(x), b.frexp_exponent(x)


@lowering("ldexp")
def _ldexp(b: Builder, x: Value, n: Value) -> Value:
    if n.dtype != I32:
        limit = np.iinfo(np.int32)
        low, high = b.full_like(n, int(limit.min)), b.full_like(n, int(limit.max))
        n = b.convert(b.minimum(b.maximum(n, low), high), dtype=I32)
    return b.ldexp(x, n)


@lowering("spacing")
def _spacing(b: Builder, x: Value) -> Value:
    """The distance to the next number away from zero, or of a half to the next greater one, as in
    NumPy; of -0.0 it is positive."""
    finite = not has_infinity(x.dtype)
    away = b.full_like(x, float(finfo(x.dtype).max) if finite else math.inf)
    if x.dtype != F16:
        away = b.copysign(away, x)
    step = b.sub(b.nextafter(x, away), x)
    step = b.select(b.eq(x, b.full_like(x, 0)), b.abs(step), step)
    ends = b.eq(b.abs(x), b.abs(away)) if finite else b.isinf(x)
    return b.select(ends, b.full_like(x, math.nan), step)


@lowering("bitwise_count")
def _bitwise_count(b: Builder, x: Value) -> Value:
    """Bits set in |x|, summed in fields of 1, 2, 4, ... bits."""
    bits = x.dtype.itemsize * 8
    if x.dtype.kind == "i":
        x = b.convert(b.abs(x), dtype=np.dtype(f"u{x.dtype.itemsize}"))
    width = 1
    while width < bits:
        mask = sum(((1 << width) - 1) << i for i in range(0, bits, 2 * width))
        field, amount = b.full_like(x, mask), b.full_like(x, width)
        high = b.bitwise_and(b.right_shift(x, amount), field)
        x = b.add(b.bitwise_and(x, field), high)
        width *= 2
    return b.convert(x, dtype=np.dtype(np.uint8))


@lowering("erf")
def _erf(b: Builder, x: Value) -> Value:
    return b.erf(x)
