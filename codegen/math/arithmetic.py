"""The ops that need no approximation, for floats and for what integers share with them."""

from __future__ import annotations

from ...ir.types import I32
from ..scalar import (
    Expr,
    binary,
    bitcast,
    const,
    convert,
    eq,
    fma,
    loop,
    ne,
    scale2,
    select,
    unary,
)
from .floats import FORMATS, INF, copysign, pick


def is_nan(x: Expr) -> Expr:
    """Whether a float is NaN, the only number that differs from itself."""
    return ne(x, x)


def is_infinite(x: Expr) -> Expr:
    """Whether a float is one of the two infinities; no NaN is."""
    return eq(abs(x), INF)


def signbit(x: Expr) -> Expr:
    """Whether the sign of a float is set: that of -0 and of NaNs too."""
    return bitcast(x, FORMATS[x.dtype].integer) < 0


def absolute(x: Expr) -> Expr:
    """|x|; the least signed integer stays, as in NumPy. Unsigned numbers and bools stay."""
    return x if x.dtype.kind in "ub" else abs(x)


def sign(x: Expr) -> Expr:
    """-1, 0 or 1 in the dtype of x, 0 of both zeros; NaN stays."""
    zero, one = const(0, x.dtype), const(1, x.dtype)
    positive = select(x > 0, one, zero)
    if x.dtype.kind == "u":
        return positive
    result = select(x < 0, const(-1, x.dtype), positive)
    return select(is_nan(x), x, result) if x.dtype.kind == "f" else result


def maximum(x: Expr, y: Expr) -> Expr:
    """The larger one, or NaN if one of them is."""
    top = binary("max", x, y)
    return select(is_nan(y), y, top) if x.dtype.kind == "f" else top


def minimum(x: Expr, y: Expr) -> Expr:
    """The smaller one, or NaN if one of them is."""
    bottom = binary("min", x, y)
    return select(is_nan(y), y, bottom) if x.dtype.kind == "f" else bottom


def fmax(x: Expr, y: Expr) -> Expr:
    """The larger one; the other one if one is NaN."""
    top = binary("max", x, y)
    return select(is_nan(x), y, top) if x.dtype.kind == "f" else top


def fmin(x: Expr, y: Expr) -> Expr:
    """The smaller one; the other one if one is NaN."""
    bottom = binary("min", x, y)
    return select(is_nan(x), y, bottom) if x.dtype.kind == "f" else bottom


def heaviside(x: Expr, at_zero: Expr) -> Expr:
    """0 below zero, 1 above, and `at_zero` at both zeros; NaN stays."""
    step = select(x > 0.0, const(1.0, x.dtype), 0.0)
    return select(is_nan(x), x, select(eq(x, 0.0), at_zero, step))


def nextafter(x: Expr, y: Expr) -> Expr:
    """One step in the order of the bit patterns."""
    form = FORMATS[x.dtype]
    bits = bitcast(x, form.integer)
    away = ne(y > x, x < 0.0)  # the magnitude grows
    stepped = bits + select(away, const(1, form.integer), -1)
    smallest = bitcast(bitcast(y, form.integer) & -form.sign_mask | 1, x.dtype)
    moved = select(eq(x, 0.0), smallest, bitcast(stepped, x.dtype))
    return select(is_nan(x) | is_nan(y), x + y, select(eq(x, y), y, moved))


def ldexp(x: Expr, n: Expr) -> Expr:
    """x * 2**n; n is an integer of any type, taken as int32."""
    return scale2(x, convert(n, I32))


def _normalised(x: Expr) -> tuple[Expr, Expr]:
    """The bits of x, denormals scaled up, and what the scaling added to the exponent."""
    form = FORMATS[x.dtype]
    denormal = abs(x) < form.tiny
    scaled = select(denormal, x * 2.0**form.precision, x)
    shift = select(denormal, const(form.precision, form.integer), 0)
    return bitcast(scaled, form.integer), shift


def _has_exponent(x: Expr) -> Expr:
    return (abs(x) < INF) & ne(x, 0.0)


def frexp_fraction(x: Expr) -> Expr:
    """x = fraction * 2**exponent with 0.5 <= |fraction| < 1; 0, inf and NaN are their own fraction."""
    form = FORMATS[x.dtype]
    bits, _ = _normalised(x)
    fraction = (bits & ~form.exponent_mask) | ((form.bias - 1) << form.fraction_bits)
    return select(_has_exponent(x), bitcast(fraction, x.dtype), x)


def frexp_exponent(x: Expr) -> Expr:
    """The e (int32) of x = m * 2**e with 0.5 <= |m| < 1; 0 for zeros, infinities and NaNs."""
    form = FORMATS[x.dtype]
    bits, shift = _normalised(x)
    field = binary("ashr", bits & form.exponent_mask, form.fraction_bits)
    exponent = convert(field - (form.bias - 1) - shift, I32)
    return select(_has_exponent(x), exponent, const(0, I32))


def _reduced(x: Expr, y: Expr) -> Expr:
    """r = |x| - q |y| for an integer q, with -|y| < r < |y| where y is not 0.

    One step takes off a quotient of one precision's bits, exactly: x - q y is a multiple of ulp(y), or
    of ulp(q) ulp(y), and small. Quotients beyond that repeat the step in a loop, the slow path.
    """
    form = FORMATS[x.dtype]
    a, b = abs(x), abs(y)
    # Quotients beyond that are approached through multiples of y.
    far = pick(x, 2.0**100, 2.0**1000)

    def step(r: Expr) -> list[Expr]:
        divisor = b
        for _ in range(2):
            divisor = select(divisor < abs(r) * (1.0 / far), divisor * far, divisor)
        return [fma(-unary("trunc", r / divisor), divisor, r)]

    quotient = a / b
    first = fma(-unary("trunc", quotient), b, a)
    first = select(quotient >= 2.0**form.precision, a, first)
    return loop([first], lambda r: abs(r) >= b, step, rare=True)[0]


def fmod(x: Expr, y: Expr) -> Expr:
    """The exact remainder with the dividend's sign."""
    r, b = _reduced(x, y), abs(y)
    r = copysign(select(r < 0.0, r + b, r), x)
    return select(eq(b, INF) & (abs(x) < INF), x, r)


def remainder(x: Expr, y: Expr) -> Expr:
    """The remainder with the divisor's sign, as NumPy and Python have it."""
    r = fmod(x, y)
    adjusted = select(ne(r < 0.0, y < 0.0), r + y, r)
    return select(eq(r, 0.0), copysign(r, y), adjusted)


def floor_divide(x: Expr, y: Expr) -> Expr:
    """NumPy's: (x - fmod) / y, adjusted to the remainder's sign and rounded to the nearest integer."""
    r = fmod(x, y)
    quotient = (x - r) / y
    quotient = select(ne(r, 0.0) & ne(r < 0.0, y < 0.0), quotient - 1.0, quotient)
    whole = unary("floor", quotient)
    whole = select(quotient - whole > 0.5, whole + 1.0, whole)
    plain = x / y
    whole = select(eq(quotient, 0.0), copysign(const(0.0, x.dtype), plain), whole)
    return select(eq(y, 0.0), plain, whole)


def negative(x: Expr) -> Expr:
    """-x; integers wrap."""
    return -x
