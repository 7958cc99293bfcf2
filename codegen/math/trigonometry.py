"""sin, cos, tan.

x = q pi/2 + r + tail with |r| <= pi/4 and pi/2 in three parts (Cody and Waite). Arguments too large for
that take a slow path, a loop that multiplies x by the 192 bits of 2/pi that matter (M. Payne, R. Hanek,
Radian reduction for trigonometric functions, 1983), so that every argument is reduced to full precision.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from ...ir.types import BOOL, DTYPE_NAMES, F32, F64, I32, I64
from ..scalar import (
    Expr,
    binary,
    bitcast,
    const,
    convert,
    convert_fitting,
    eq,
    fma,
    loop,
    ne,
    select,
    table,
    unary,
)
from .floats import fast_two_sum, horner, is_finite, pick, to_int32, two_product, two_sum

U64 = DTYPE_NAMES["u64"]
# pi/2 as a sum of three numbers; q times the first one is exact after the subtraction from x.
HALF_PI_32 = (1.5707963705062866, -4.371138828673793e-08, -1.7151245100058819e-15)
HALF_PI_64 = (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591698e-33)
# (sin r - r) / r**3 and (cos r - 1 + r**2 / 2) / r**4 as polynomials in r**2 on |r| <= pi/4:
# 2**-32.5, 2**-33, 2**-57.9, 2**-63.9.
SIN_32 = (
    -0.1666666716337204,
    0.008333379402756691,
    -0.00019853073172271252,
    2.8327444852038752e-06,
)
COS_32 = (0.04166664555668831, -0.0013887310633435845, 2.4432572899968363e-05)
SIN_64 = (
    -0.1666666666666663, 0.008333333333321914, -0.00019841269829454173, 2.755731358101448e-06,
    -2.5050742177306824e-08, 1.589593845006923e-10,
)  # fmt: skip
COS_64 = (
    0.041666666666666595, -0.001388888888887335, 2.4801587289010106e-05, -2.755731421971634e-07,
    2.0875705780402137e-09, -1.1358769383453839e-11,
)  # fmt: skip
FRACTION_OF_PI = 0.6366197723675814  # 2/pi


class Angle(NamedTuple):
    """x = quadrant pi/2 + r + tail; the quadrant is an int32, of which only two bits matter.

    float32 does without the tail where about one ULP more does not matter.
    """

    quadrant: Expr
    r: Expr
    tail: Expr | None


@lru_cache(maxsize=1)
def _bits_of_two_over_pi() -> tuple[int, ...]:
    """64 zero bits and then the fraction bits of 2/pi, as 64-bit words.

    pi from Machin's formula in integers: pi/4 = 4 arctan(1/5) - arctan(1/239).
    """
    precision = 1400

    def arctan_of_inverse(n: int) -> int:
        term = (1 << precision) // n
        total, k = term, 1
        while term:
            term //= n * n
            k += 2
            total += -(term // k) if k % 4 == 3 else term // k
        return total

    pi = 4 * (4 * arctan_of_inverse(5) - arctan_of_inverse(239))
    words = 20
    fraction = (2 << (precision + 64 * words)) // pi
    return (0, *((fraction >> (64 * (words - 1 - k))) & (2**64 - 1) for k in range(words)))


def payne_hanek(x: Expr) -> tuple[Expr, Expr, Expr]:
    """The reduction of a float64 of at least 2**10, by integer arithmetic.

    x = m 2**e. Bits of 2/pi that contribute whole multiples of 4 to x (2/pi) are left out: the window
    starts at the bit of weight 2**(1 - e). The product's two leading bits are the quadrant.
    """
    bits = bitcast(x, U64)
    m = (bits & ((1 << 52) - 1)) | (1 << 52)
    e = (convert(binary("lshr", bits, 52) & 0x7FF, I64)) - (1023 + 52)
    position = binary("max", e + (64 - 2), 0)  # of the window's first bit in the table
    word, shift = binary("ashr", position, 6), convert(position & 63, U64)
    words = [table(_bits_of_two_over_pi(), U64, word + k) for k in range(4)]
    w0, w1, w2 = (
        (words[k] << shift) | binary("lshr", binary("lshr", words[k + 1], 1), 63 - shift)
        for k in range(3)
    )
    middle = binary("mulhi", m, w2) + m * w1
    carry = convert(middle < m * w1, U64)
    low = middle
    high = m * w0 + binary("mulhi", m, w1) + carry
    quadrant = binary("lshr", high + (1 << 61), 62)
    rest = bitcast(high - (quadrant << 62), I64)  # signed, with `low` below it: units of 2**-62
    a = convert(rest, F64)
    b = convert(rest - convert_fitting(a, I64), F64) + convert(low, F64) * 2.0**-64
    a, b = fast_two_sum(a * 2.0**-62, b * 2.0**-62)
    high_part, low_part = HALF_PI_64[:2]
    p, error = two_product(a, high_part)
    r, tail = fast_two_sum(p, fma(a, low_part, fma(b, high_part, error)))
    q = convert(quadrant, I32)
    negative = x < 0.0
    return select(negative, 0 - q, q), select(negative, -r, r), select(negative, -tail, tail)


def reduce(x: Expr, *, with_tail: bool) -> Angle:
    """x modulo pi/2. For inf and NaN the parts are NaN."""
    c1, c2, c3 = pick(x, HALF_PI_32, HALF_PI_64)
    q = unary("rint", x * FRACTION_OF_PI)
    a = fma(q, -c1, x)
    if with_tail:
        p, p_low = two_product(q, -c2)
        r, lost = two_sum(a, p)
        tail = fma(q, -c3, lost + p_low)
    else:
        r = fma(q, -c3, fma(q, -c2, a))
    pending = (abs(x) > pick(x, 2.0**16, 2.0**30)) & is_finite(x)

    def slowly(*_: Expr) -> list[Expr]:
        quadrant, r, tail = payne_hanek(convert(x, F64))
        if x.dtype == F32:
            wide, r = r, convert(r, F32)
            tail = convert(wide - convert(r, F64), F32)
        return [const(False, BOOL), quadrant, r, *((tail,) if with_tail else ())]

    init = [pending, to_int32(q), r, *((tail,) if with_tail else ())]
    _, quadrant, r, *tails = loop(init, lambda pending, *_: pending, slowly, rare=True)
    return Angle(quadrant, r, tails[0] if with_tail else None)


def sine(angle: Angle) -> Expr:
    """The sine of a reduced angle, whose quadrant is not looked at."""
    _, r, tail = angle
    z = r * r
    p = horner(z, pick(r, SIN_32, SIN_64))
    return fma(r * z, p, r) if tail is None else fma(r * z, p, tail) + r


def cosine(angle: Angle) -> Expr:
    """The cosine of a reduced angle, whose quadrant is not looked at."""
    _, r, tail = angle
    z = r * r
    w = fma(z, -0.5, 1.0)
    rest = fma(z, -0.5, 1.0 - w)
    if tail is not None:
        rest = fma(-r, tail, rest)
    return w + fma(z * z, horner(z, pick(r, COS_32, COS_64)), rest)


def _rotated(angle: Angle, quadrant: Expr) -> Expr:
    """The sine after `quadrant` right angles more than the reduced angle."""
    value = select(ne(quadrant & 1, 0), cosine(angle), sine(angle))
    return _negated_if(value, quadrant & 2)


def _negated_if(value: Expr, two: Expr) -> Expr:
    """-value where `two` is 2, value where it is 0."""
    integer = I32 if value.dtype == F32 else I64
    bits = convert(two, integer) << (value.dtype.itemsize * 8 - 2)
    return bitcast(binary("xor", bitcast(value, integer), bits), value.dtype)


def sin(x: Expr) -> Expr:
    """The sine of x in radians, of any size; NaN of infinities; -0 stays."""
    angle = reduce(x, with_tail=x.dtype == F64)
    return select(eq(x, 0.0), x, _rotated(angle, angle.quadrant))  # -0


def cos(x: Expr) -> Expr:
    """The cosine of x in radians, of any size; NaN of infinities."""
    angle = reduce(x, with_tail=x.dtype == F64)
    return _rotated(angle, angle.quadrant + 1)


def tan(x: Expr) -> Expr:
    """sin/cos, or -cos/sin in odd quadrants."""
    angle = reduce(x, with_tail=True)
    odd = ne(angle.quadrant & 1, 0)
    s, c = sine(angle), cosine(angle)
    y = select(odd, c, s) / select(odd, -s, c)
    return select(eq(x, 0.0), x, y)
