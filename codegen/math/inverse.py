"""arcsin, arccos, arctan, arctan2.

arcsin z = z + z**3 P(z**2) up to 1/2, and through arcsin x = pi/2 - 2 arcsin sqrt((1 - x)/2) above.
The arc tangent is one polynomial on [0, 1], with the reciprocal above. Where a multiple of pi/2 is
added, the large parts are added exactly.
"""

from __future__ import annotations

from ..scalar import Expr, bitcast, const, eq, fma, ne, select, unary
from .floats import FORMATS, copysign, fast_two_sum, horner, pick

# (asin s - s) / s**3 as a polynomial in s**2 on |s| <= 1/2: 2**-27.6 and 2**-59.8.
ARCSIN_32 = (
    0.16666752099990845, 0.0749531090259552, 0.04546886309981346, 0.02418658137321472,
    0.04215467348694801,
)  # fmt: skip
ARCSIN_64 = (
    0.1666666666666676, 0.07499999999970874, 0.044642857174547995, 0.030381942710693395,
    0.022372214907246755, 0.017351613456322506, 0.013980803095656842, 0.011399057059035406,
    0.010779427451003881, 0.0037095809436414728, 0.02169959312633417, -0.020987757492459208,
    0.032621437889568845,
)  # fmt: skip
# (atan t - t) / t**3 as a polynomial in t**2 on |t| <= 1: 2**-28.5 and 2**-57.6.
ARCTAN_32 = (
    -0.33333298563957214, 0.1999853253364563, -0.14264078438282013, 0.10951358824968338,
    -0.08401112258434296, 0.05791879817843437, -0.031140293926000595, 0.010894975624978542,
    -0.0017893394688144326,
)  # fmt: skip
ARCTAN_64 = (
    -0.33333333333333065, 0.19999999999951076, -0.14285714282556525, 0.111111110065455,
    -0.09090906995298689, 0.07692279756450718, -0.06666403424264393, 0.058805242506231134,
    -0.052535034131712004, 0.04722272828527631, -0.04219053863175112, 0.03663943685147413,
    -0.02990003517267015, 0.02198025864616696, -0.01389631409161715, 0.007193545948691776,
    -0.002883417712078446, 0.0008307983727980004, -0.00015204869591124373, 1.321394760389775e-05,
)  # fmt: skip
# pi/2 as the nearest number and what it lacks.
HALF_PI_32 = (1.5707963705062866, -4.371138828673793e-08)
HALF_PI_64 = (1.5707963267948966, 6.123233995736766e-17)


def _arcsin_parts(x: Expr) -> tuple[Expr, Expr, Expr]:
    """(big, s, w): s + w is arcsin |x|, or where |x| is big (over 1/2) arcsin sqrt((1 - |x|)/2)."""
    a = abs(x)
    big = a > 0.5
    z = select(big, (1.0 - a) * 0.5, x * x)
    s = select(big, unary("sqrt", z), a)
    return big, s, s * z * horner(z, pick(x, ARCSIN_32, ARCSIN_64))


def arcsin(x: Expr) -> Expr:
    """The inverse of the sine, in -pi/2..pi/2; NaN where |x| > 1."""
    big, s, w = _arcsin_parts(x)
    high, low = pick(x, HALF_PI_32, HALF_PI_64)
    total, error = fast_two_sum(const(high, x.dtype), s * -2.0)
    large = total + fma(w, -2.0, error + low)
    return copysign(select(big, large, s + w), x)


def arccos(x: Expr) -> Expr:
    """pi/2 - arcsin x; near 1 twice the small angle, near -1 pi minus that."""
    big, s, w = _arcsin_parts(x)
    high, low = pick(x, HALF_PI_32, HALF_PI_64)
    negative = x < 0.0
    base = select(big, const(2.0 * high, x.dtype), high)
    base_low = select(big, const(2.0 * low, x.dtype), low)
    factor = select(big, const(2.0, x.dtype), 1.0)
    s, w = s * factor, w * factor
    total, error = fast_two_sum(base, select(~big & negative, s, -s))
    rest = select(~big & negative, w, -w)
    return select(big & ~negative, s + w, total + (rest + (error + base_low)))


def _arctan_unit(t: Expr) -> tuple[Expr, Expr]:
    """arctan t for 0 <= t <= 1 as t + w."""
    z = t * t
    return t, t * z * horner(z, pick(t, ARCTAN_32, ARCTAN_64))


def arctan(x: Expr) -> Expr:
    """The inverse of the tangent, in -pi/2..pi/2."""
    a = abs(x)
    steep = a > 1.0
    t, w = _arctan_unit(select(steep, const(1.0, x.dtype), a) / select(steep, a, 1.0))
    high, low = pick(x, HALF_PI_32, HALF_PI_64)
    total, error = fast_two_sum(const(high, x.dtype), -t)
    return copysign(select(steep, total + ((error + low) - w), t + w), x)


def arctan2(y: Expr, x: Expr) -> Expr:
    """The angle of (x, y): of the ratio of the smaller to the larger, reflected into its octant."""
    form = FORMATS[x.dtype]
    a, b = abs(y), abs(x)
    steep = a > b
    small, large = select(steep, b, a), select(steep, a, b)
    # Two zeros or two infinities: the ratio is taken as 0/1 or 1/1.
    both_infinite = eq(small, float("inf"))
    large = select(eq(large, 0.0) | both_infinite, const(1.0, x.dtype), large)
    small = select(both_infinite, const(1.0, x.dtype), small)
    t, w = _arctan_unit(small / large)
    left = bitcast(x, form.integer) < 0  # -0 too
    high, low = pick(x, HALF_PI_32, HALF_PI_64)
    # The angle is base + sign (t + w), with base 0, pi/2 or pi.
    zero, one = const(0.0, x.dtype), const(1.0, x.dtype)
    halves = select(steep, one, select(left, one * 2.0, zero))
    minus = ne(steep, left)
    t, w = select(minus, -t, t), select(minus, -w, w)
    total, error = fast_two_sum(halves * high, t)
    angle = total + (w + fma(halves, low, error))
    angle = select(eq(halves, 0.0), t + w, angle)
    nan = x + y
    return copysign(select(ne(x, x) | ne(y, y), nan, angle), y)
