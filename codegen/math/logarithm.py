"""log, log2, log10, log1p, the inverse hyperbolic functions, logaddexp.

x = 2**k (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)); log(1 + f) = f + y with a small y, so that the last
addition is nearly the only rounding. float32 takes y from a polynomial in f, float64 from the series in
s = f / (2 + f) (the reduction and its error analysis are fdlibm's).
"""

from __future__ import annotations

from typing import NamedTuple

from ...ir.types import F32
from ..scalar import Expr, binary, bitcast, const, convert, eq, fma, ne, select, unary
from .exponential import LN2_32, LN2_64, exp, exp2
from .floats import (
    FORMATS,
    INF,
    NAN,
    copysign,
    horner,
    is_finite,
    pick,
    two_product,
    two_sum,
)

# (log(1 + f) - f + f**2 / 2) / f**3 on sqrt(1/2)-1 .. sqrt(2)-1: 2**-30.3.
LOG_32 = (
    0.3333331346511841, -0.25000011920928955, 0.20002073049545288, -0.1666785478591919,
    0.14220231771469116, -0.12408188730478287, 0.11886211484670639, -0.11660772562026978,
    0.06733174622058868,
)  # fmt: skip
# (log((1 + s) / (1 - s)) - 2 s) / s**3 as a polynomial in s**2: 2**-58.5.
LOG_64 = (
    0.6666666666666735, 0.3999999999941084, 0.2857142874309859, 0.22222198510552374,
    0.18183567184168223, 0.15313985253461912, 0.14796540788501567,
)  # fmt: skip
LN2 = 0.6931471805599453


class Logarithm(NamedTuple):
    """log x = k ln 2 + f + y, |y| much less than |f|; k is integral, of the dtype of x."""

    k: Expr
    f: Expr
    y: Expr


def log_parts(x: Expr) -> Logarithm:
    """For finite x > 0, denormals included; for any other x something."""
    form = FORMATS[x.dtype]
    denormal = x < form.tiny
    x = select(denormal, x * 2.0**form.precision, x)
    half_octave = pick(x, 0x3F3504F3, 0x3FE6A09E667F3BCD)  # the bits of sqrt(1/2)
    bits = bitcast(x, form.integer)
    e = binary("ashr", bits - half_octave, form.fraction_bits)
    f = bitcast(bits - (e << form.fraction_bits), x.dtype) - 1.0
    k = convert(e, x.dtype) + select(denormal, const(-float(form.precision), x.dtype), 0.0)
    z = f * f
    if x.dtype == F32:
        return Logarithm(k, f, fma(z, -0.5, f * z * horner(f, LOG_32)))
    s = f / (f + 2.0)
    w = s * s
    halved = z * 0.5
    return Logarithm(k, f, fma(s, fma(w, horner(w, LOG_64), halved), -halved))


def natural(parts: Logarithm, correction: Expr | None = None) -> Expr:
    """The natural logarithm k ln 2 + f + y + correction, ln 2 in two parts."""
    k, f, y = parts
    high, low = pick(f, LN2_32, LN2_64)
    y = fma(k, low, y if correction is None else y + correction)
    return fma(k, high, f + y)


def in_domain(x: Expr, value: Expr) -> Expr:
    """`value`, a logarithm of x, where x is positive and finite; else what is due there."""
    value = select(x < INF, value, x)
    return select(x > 0.0, value, select(eq(x, 0.0), const(-INF, x.dtype), x + NAN))


def log(x: Expr) -> Expr:
    """The natural logarithm: -inf at zeros, NaN below."""
    return in_domain(x, natural(log_parts(x)))


def times_constant(parts: Logarithm, high: float, low: float) -> tuple[Expr, Expr]:
    """(f + y) (high + low) as an unevaluated sum."""
    _, f, y = parts
    p, error = two_product(f, high)
    return p, fma(y, high, fma(f, low, error))


def log2(x: Expr) -> Expr:
    """The logarithm to base 2, its constant in two parts; exact at powers of 2."""
    parts = log_parts(x)
    constants = pick(x, (1.4426950216293335, 1.925963033500011e-08),
                     (1.4426950408889634, 2.0355273740931033e-17))  # fmt: skip
    high, low = times_constant(parts, *constants)
    s, error = two_sum(parts.k, high)
    return in_domain(x, s + (error + low))


def log10(x: Expr) -> Expr:
    """The logarithm to base 10, its constants in two parts."""
    parts = log_parts(x)
    constants = pick(x, (0.4342944920063019, -1.0103049952192578e-08),
                     (0.4342944819032518, 1.098319650216765e-17))  # fmt: skip
    high, low = times_constant(parts, *constants)
    # log10(2): the upper part leaves room for exact products with k.
    two_high, two_low = pick(x, (0.301025390625, 4.605038981195214e-06),
                             (0.301029995663157, 8.241712586023572e-13))  # fmt: skip
    s, error = two_sum(parts.k * two_high, high)
    return in_domain(x, s + fma(parts.k, two_low, error + low))


def log1p_sum(high: Expr, low: Expr | float = 0.0) -> Expr:
    """log(1 + high + low) for |low| < ulp(high), 1 + high a positive number."""
    u, lost = two_sum(const(1.0, high.dtype), high)
    return natural(log_parts(u), (lost + low) / u)


def log1p(x: Expr) -> Expr:
    """log(u) + (1 + x - u) / u with u = 1 + x rounded."""
    y = log1p_sum(x)
    y = select(abs(x) < FORMATS[x.dtype].tiny, x, y)
    y = select(x < INF, y, x)
    return select(x > -1.0, y, select(eq(x, -1.0), const(-INF, x.dtype), x + NAN))


def _log1p_or_twice(t: tuple[Expr, Expr], big: Expr, x: Expr) -> Expr:
    """log1p of a sum and its rounding error; log(2 x) where x is big."""
    high, low = t
    u, lost = two_sum(const(1.0, x.dtype), high)
    u = select(big, x, u)
    parts = log_parts(u)
    k = parts.k + select(big, const(1.0, x.dtype), 0.0)
    correction = select(big, const(0.0, x.dtype), (lost + low) / u)
    return natural(parts._replace(k=k), correction)


def arcsinh(x: Expr) -> Expr:
    """log1p(a + a**2 / (1 + sqrt(1 + a**2))), a = |x|; log(a) + ln 2 where a is large."""
    a = abs(x)
    huge = pick(a, 2.0**14, 2.0**30)
    big = a > huge
    b = binary("min", a, huge)
    z = b * b
    y = _log1p_or_twice(two_sum(b, z / (unary("sqrt", fma(b, b, 1.0)) + 1.0)), big, a)
    y = select(is_finite(x), y, a)
    return copysign(select(a < pick(a, 2.0**-14, 2.0**-30), a, y), x)


def arccosh(x: Expr) -> Expr:
    """log1p(t + sqrt(t**2 + 2 t)), t = x - 1; log(x) + ln 2 where x is large."""
    big = x > pick(x, 2.0**14, 2.0**30)
    t = x - 1.0
    y = _log1p_or_twice(two_sum(t, unary("sqrt", fma(t, t, t * 2.0))), big, x)
    y = select(x < INF, y, x)
    return select(x >= 1.0, y, x + NAN)


def arctanh(x: Expr) -> Expr:
    """log1p(2a / (1 - a)) / 2, a = |x|; below 1/2 the argument is the exact sum 2a + 2a**2 / (1 - a)."""
    a = abs(x)
    small = a < 0.5
    doubled = a * 2.0
    quotient = select(small, doubled * a, doubled) / (1.0 - a)
    high, low = two_sum(select(small, doubled, const(0.0, x.dtype)), quotient)
    y = log1p_sum(high, low) * 0.5
    y = select(a < 1.0, y, select(eq(a, 1.0), const(INF, x.dtype), x + NAN))
    return copysign(select(a < pick(x, 2.0**-13, 2.0**-28), a, y), x)


def _log_add(x: Expr, y: Expr, smaller: Expr, scale: float | None) -> Expr:
    top = select(x > y, x, y)
    extra = log1p(smaller)
    if scale is not None:
        extra = extra * scale
    # Equal infinities: the difference is NaN, the answer is not.
    step = LN2 if scale is None else 1.0
    return select(eq(x, y), x + step, select(ne(x - y, x - y), x + y, top + extra))


def logaddexp(x: Expr, y: Expr) -> Expr:
    """max + log1p(exp(-|x - y|))."""
    return _log_add(x, y, exp(-abs(x - y)), None)


def logaddexp2(x: Expr, y: Expr) -> Expr:
    """log2(2**x + 2**y), without overflow on the way."""
    return _log_add(x, y, exp2(-abs(x - y)), 1.4426950408889634)
