"""exp, exp2, expm1 and the hyperbolic functions.

x = n ln 2 + r with |r| <= ln(2)/2 (Cody and Waite: ln 2 in two parts, so that the subtraction is exact
or nearly so), a polynomial for e**r - 1, and a scaling by 2**n that rounds once.
"""

from __future__ import annotations

from typing import NamedTuple

from ..scalar import Expr, binary, const, eq, fma, scale2, select, unary
from .floats import INF, clamp, copysign, fast_two_sum, horner, pick, power_of_two, to_int32

LOG2_E = 1.4426950408889634
# ln 2: the upper part has trailing zeros, so that small multiples of it are exact.
LN2_32 = (0.693145751953125, 1.428606765330187e-06)
LN2_64 = (6.93147180369123816490e-01, 1.90821492927058770002e-10)

# (e**r - 1 - r) / r**2 on |r| <= 0.3466, weighted for e**r: 2**-28.2 and 2**-57.9.
EXP_32 = (
    0.4999999403953552, 0.1666652113199234, 0.04166826978325844, 0.008368667215108871,
    0.0013820172753185034,
)  # fmt: skip
EXP_64 = (
    0.5000000000000011, 0.1666666666666644, 0.041666666666527075, 0.008333333333477664,
    0.0013888888944299023, 0.00019841269540831827, 2.480149250434261e-05, 2.75575572630549e-06,
    2.7630434887805823e-07, 2.500888593056938e-08,
)  # fmt: skip
# The same, weighted for e**r - 1: 2**-26.1 and 2**-61.6.
EXPM1_32 = (
    0.4999999701976776, 0.1666654497385025, 0.04166751727461815, 0.008366386406123638,
    0.0013862791238352656,
)  # fmt: skip
EXPM1_64 = (
    0.5, 0.16666666666666677, 0.04166666666666666, 0.008333333333321521, 0.0013888888888896529,
    0.00019841269886264215, 2.480158729077961e-05, 2.7557244154444766e-06, 2.755730923882654e-07,
    2.510903693810871e-08, 2.0902341846445465e-09,
)  # fmt: skip
# (2**r - 1) / r on |r| <= 0.5, weighted for 2**r: 2**-28.3 and 2**-57.8.
EXP2_32 = (
    0.6931471824645996, 0.24022647738456726, 0.05550359562039375, 0.009618500247597694,
    0.0013390968088060617, 0.00015328713925555348,
)  # fmt: skip
EXP2_64 = (
    0.6931471805599453, 0.24022650695910108, 0.055504108664821715, 0.009618129107601599,
    0.001333355814654856, 0.00015403530449043995, 1.5252733631582134e-05, 1.3215438832551022e-06,
    1.0178161099016367e-07, 7.073233489352194e-09, 4.438697880984193e-10,
)  # fmt: skip
# (sinh x - x) / x**3 as a polynomial in x**2 on |x| <= 1: 2**-31.6 and 2**-63.
SINH_32 = (0.1666666716337204, 0.00833331048488617, 0.00019842895562760532, 2.7822120500786696e-06)
SINH_64 = (
    0.16666666666666666, 0.008333333333333573, 0.0001984126984106103, 2.755731931022617e-06,
    2.505208936123077e-08, 1.6061348311892839e-10, 7.502497323963312e-13, 6.499996502574724e-15,
)  # fmt: skip
# (tanh x - x) / x**3 as a polynomial in x**2 up to 0.625: 2**-27.7.
TANH_32 = (
    -0.3333328068256378, 0.1333141177892685, -0.05373743921518326, 0.02063235267996788,
    -0.0056980932131409645,
)  # fmt: skip


class Power(NamedTuple):
    """e**x = (1 + excess) * 2**n; n is an int32 expression."""

    excess: Expr
    n: Expr


def reduce(x: Expr) -> tuple[Expr, Expr]:
    """(n, r): x = n ln 2 + r, n integral, |r| <= 0.3466. |x| is at most a few thousand."""
    high, low = pick(x, LN2_32, LN2_64)
    n = unary("rint", x * LOG2_E)
    return n, fma(n, -low, fma(n, -high, x))


def exp_parts(x: Expr) -> Power:
    """To somewhat more than the precision, relative to e**x."""
    n, r = reduce(x)
    return Power(fma(r * r, horner(r, pick(x, EXP_32, EXP_64)), r), to_int32(n))


def expm1_parts(x: Expr) -> Power:
    """The same to nearly the precision of the excess: what r lost in its rounding is put back."""
    high, low = pick(x, LN2_32, LN2_64)
    n = unary("rint", x * LOG2_E)
    a = fma(n, -high, x)
    r = fma(n, -low, a)
    lost = fma(n, -low, a - r)
    q = horner(r, pick(x, EXPM1_32, EXPM1_64))
    return Power(fma(r * r, q, lost) + r, to_int32(n))


def exp(x: Expr) -> Expr:
    """Below -104 (-746) the result is 0, above 89 (710) it is inf."""
    x = pick(x, clamp(x, -104.0, 89.0), clamp(x, -746.0, 710.0))
    p = exp_parts(x)
    return scale2(p.excess + 1.0, p.n, near_one=True)


def exp2(x: Expr) -> Expr:
    """2**x = 2**n 2**r with |r| <= 1/2; exact where x is an integer."""
    x = pick(x, clamp(x, -151.0, 129.0), clamp(x, -1076.0, 1025.0))
    n = unary("rint", x)
    r = x - n
    p = fma(horner(r, pick(x, EXP2_32, EXP2_64)), r, 1.0)
    return scale2(p, to_int32(n), near_one=True)


def expm1(x: Expr) -> Expr:
    """s p + (s - 1) with s = 2**n; computed at half size, so that s does not overflow."""
    original = x
    x = pick(x, clamp(x, -20.0, 89.0), clamp(x, -40.0, 710.0))
    p = expm1_parts(x)
    s = power_of_two(p.n - 1, x.dtype)
    y = fma(p.excess, s, s - 0.5) * 2.0
    return select(eq(original, 0.0), original, y)  # -0


def half_exp(x: Expr) -> tuple[Expr, Expr]:
    """e**x / 2 for 0 <= x as an unevaluated sum; the first part overflows where the half does."""
    p = exp_parts(binary("min", x, pick(x, 89.6, 710.6)))
    high, low = fast_two_sum(const(1.0, x.dtype), p.excess)
    # Two factors: 2**n alone may not be a number.
    s = power_of_two(p.n - 2, x.dtype)
    return high * s * 2.0, low * s * 2.0


def sinh(x: Expr) -> Expr:
    """x + x**3 P(x**2) up to 1; then h - 1/(4h), h = e**|x| / 2."""
    a = abs(x)
    z = x * x
    small = fma(x * z, horner(z, pick(x, SINH_32, SINH_64)), x)
    high, low = half_exp(a)
    large = high + (low - 0.25 / high)
    large = select(high < INF, large, high)
    return select(a < 1.0, small, copysign(large, x))


def cosh(x: Expr) -> Expr:
    """h + 1/(4h) with h = e**|x| / 2, which overflows no sooner than the result."""
    high, low = half_exp(abs(x))
    y = high + (low + 0.25 / high)
    return select(high < INF, y, high)


def tanh(x: Expr) -> Expr:
    """The hyperbolic tangent, by a formula of its own for either precision."""
    return pick(x, _tanh_32, _tanh_64)(x)


def _tanh_32(x: Expr) -> Expr:
    """|x| + |x|**3 P(x**2) up to 0.6; then 1 - 2 / (e**(2|x|) + 1), whose error the 1 hides."""
    a = abs(x)
    z = x * x
    small = fma(a * z, horner(z, TANH_32), a)
    p = exp_parts(binary("min", a, 9.5) * 2.0)
    s = power_of_two(p.n, x.dtype)
    large = fma(-2.0, 1.0 / fma(p.excess, s, s + 1.0), 1.0)
    return copysign(select(a < 0.6, small, large), x)


def _tanh_64(x: Expr) -> Expr:
    """E / (E + 2) with E = e**(2|x|) - 1, and the quotient corrected by its own remainder."""
    a = abs(x)
    doubled = binary("min", a, 19.5) * 2.0
    p = expm1_parts(doubled)
    s = power_of_two(p.n, x.dtype)
    e = fma(p.excess, s, s - 1.0)
    d = e + 2.0
    missing = e - (d - 2.0)  # d + missing = e + 2, nearly
    reciprocal = 1.0 / d
    q = e * reciprocal
    rest = fma(-q, missing, fma(-q, d, e))
    return copysign(fma(rest, reciprocal, q), x)
