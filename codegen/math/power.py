"""pow, cbrt, hypot."""

from __future__ import annotations

from ...ir.types import DTYPE_NAMES, F32, F64, I32
from ..scalar import (
    Expr,
    binary,
    bitcast,
    const,
    convert,
    eq,
    fma,
    ne,
    scale2,
    select,
    unary,
)
from .exponential import EXP_64, LN2_64, LOG2_E
from .floats import (
    FORMATS,
    INF,
    NAN,
    clamp,
    copysign,
    fast_two_sum,
    horner,
    pick,
    to_int32,
    two_product,
    two_sum,
)
from .logarithm import LN2

U32 = DTYPE_NAMES["u32"]
U64 = DTYPE_NAMES["u64"]

# (log((1 + s)/(1 - s)) / (2 s) - 1 - s**2 / 3) / s**4 as a polynomial in s**2, |s| <= 0.1716: 2**-77.
POW_64 = (
    0.2, 0.14285714285713444, 0.11111111111358227, 0.0909090905301578, 0.07692311092361818,
    0.06666479962793287, 0.05888634159706821, 0.05139461552563872, 0.06014705751250748,
)  # fmt: skip
# (log((1 + s)/(1 - s)) - 2 s) / s**3 as a polynomial in s**2, to 2**-44, and e**r to 2**-41.
POW_32 = (
    0.6666666667582969, 0.39999995615300066, 0.2857210965803441, 0.22176173759856996,
    0.19584297643042295,
)  # fmt: skip
EXP_40 = (
    1.0, 1.000000000209231, 0.5000000077156281, 0.16666665157233054, 0.041666272542735805,
    0.008333570328562932, 0.0013945897026754206, 0.00019766839843001806,
)  # fmt: skip


def power(x: Expr, y: Expr) -> Expr:
    """x**y for floats, with every special case of C's pow."""
    special = _constant_power(x, y)
    if special is not None:
        return special
    if x.dtype == F32:
        r = convert(_positive_power_of_f32(convert(abs(x), F64), convert(y, F64)), F32)
    else:
        r = _positive_power(abs(x), y)
    return _signs_and_limits(x, y, r)


def _constant_power(x: Expr, y: Expr) -> Expr | None:
    """Exponents that take a few multiplications at most, with errors below 1.5 ULP."""
    if y.op != "const":
        return None
    n = y.attr
    if n == 0:
        return const(1.0, x.dtype)
    if n == 1:
        return x
    if n == 2:
        return x * x
    if n == 3:
        return x * x * x
    if n == -1:
        return 1.0 / x
    if n == 0.5:  # -inf and -0 are where it differs from the root
        return select(eq(x, -INF), const(INF, x.dtype), unary("sqrt", x + 0.0))
    return None


def _signs_and_limits(x: Expr, y: Expr, r: Expr) -> Expr:
    a = abs(x)
    dtype = x.dtype
    half = y * 0.5
    integral = eq(unary("trunc", y), y)
    odd = integral & ne(unary("trunc", half), half)
    extreme = eq(a, 0.0) | eq(a, INF)
    # 0**y, inf**y, x**inf: 0 or inf.
    grows = ne(a > 1.0, y < 0.0)
    limit = select(grows, const(INF, dtype), 0.0)
    r = select(extreme | eq(abs(y), INF), limit, r)
    r = select(eq(a, 1.0), const(1.0, dtype), r)
    r = select(odd, copysign(r, x), r)
    r = select((x < 0.0) & ~integral & (a < INF), const(NAN, dtype), r)
    r = select(ne(x, x) | ne(y, y), x + y, r)
    return select(eq(y, 0.0) | eq(x, 1.0), const(1.0, dtype), r)


def _positive_power_of_f32(a: Expr, y: Expr) -> Expr:
    """a**y in float64 to about 40 bits, for operands that were float32."""
    form = FORMATS[F64]
    bits = bitcast(a, form.integer)
    e = binary("ashr", bits - 0x3FE6A09E667F3BCD, form.fraction_bits)
    f = bitcast(bits - (e << form.fraction_bits), F64) - 1.0
    k = convert(convert(e, I32), F64)
    s = f / (f + 2.0)
    w = s * s
    log = fma(k, LN2, s * fma(w, horner(w, POW_32), 2.0))
    x = clamp(y * log, -110.0, 95.0)
    n = unary("rint", x * LOG2_E)
    r = fma(n, -LN2, x)
    return scale2(horner(r, EXP_40), to_int32(n), near_one=True)


def _positive_power(a: Expr, y: Expr) -> Expr:
    """a**y for a > 0 and finite: log a to 68 bits, times y, the exponential of that sum of two."""
    form = FORMATS[F64]
    denormal = a < form.tiny
    a = select(denormal, a * 2.0**54, a)
    bits = bitcast(a, form.integer)
    e = binary("ashr", bits - 0x3FE6A09E667F3BCD, form.fraction_bits)
    f = bitcast(bits - (e << form.fraction_bits), F64) - 1.0
    k = convert(convert(e, I32), F64) + select(denormal, const(-54.0, F64), 0.0)

    # s = f / (f + 2) in two parts
    d, d_low = fast_two_sum(const(2.0, F64), f)
    s = f / d
    s_low = fma(-s, d_low, fma(-s, d, f)) / d
    z, z_low = two_product(s, s)
    z_low = fma(s * 2.0, s_low, z_low)
    # log(1 + f) = 2 s (1 + z/3 + z**2 Q(z)), the bracket in two parts
    third, third_low = 0.3333333333333333, 1.850371707708594e-17
    t, t_low = two_product(z, third)
    t_low = fma(z, third_low, fma(z_low, third, t_low))
    t, t_low = fast_two_sum(t, fma(z * z, horner(z, POW_64), t_low))
    b, b_low = fast_two_sum(const(1.0, F64), t)
    b_low = b_low + t_low
    s, s_low = s * 2.0, s_low * 2.0
    m, m_low = two_product(s, b)
    m_low = m_low + fma(s, b_low, s_low * b)
    high, low = two_sum(k * LN2_64[0], m)
    low = low + fma(k, LN2_64[1], m_low)
    high, low = fast_two_sum(high, low)

    # e**(x + x_low), x + x_low = y (high + low)
    x = y * high
    x_low = fma(y, low, fma(y, high, -x))
    inside = abs(x) < 800.0
    x = clamp(x, -750.0, 715.0)
    n = unary("rint", x * LOG2_E)
    r = fma(n, -LN2_64[0], x)
    r, r_low = fast_two_sum(r, n * -LN2_64[1])
    r_low = r_low + select(inside, x_low, 0.0)
    q = r * r * horner(r, EXP_64)
    q = q + fma(r_low, r + q, r_low)
    return scale2((r + q) + 1.0, to_int32(n), near_one=True)


def cbrt(x: Expr) -> Expr:
    """y = a**(-1/3) by Newton steps from a guess in the exponent bits; then a y**2, corrected once."""
    a = abs(x)
    up, shift, floor = pick(x, (2.0**96, 2.0**-32, 2.0**-40), (2.0**900, 2.0**-300, 2.0**-400))
    low = a < floor
    a = select(low, a * up, a)
    unsigned = pick(x, U32, U64)
    third = pick(x, 0x55555556, 0x5555555555555556)
    guess = pick(x, 0x54A21D29, 0x553EEE53A0000000)  # 4/3 of the bias, less 0.067
    bits = const(guess, unsigned) - binary("mulhi", bitcast(a, unsigned), third)
    y = bitcast(bits, x.dtype)
    for _ in range(2):
        # e = 1 - a y**3, and y (1 + e/3 + 2/9 e**2)
        e = fma(-a * y, y * y, 1.0)
        y = fma(y * e, fma(e, 2.0 / 9.0, 1.0 / 3.0), y)
    square = y * y
    t = a * square
    t2, t2_low = two_product(t, t)
    rest = fma(t2_low, t, fma(t2, t, -a))
    t = fma(rest * square, -1.0 / 3.0, t)
    t = select(low, t * shift, t)
    return select((a > 0.0) & (a < INF), copysign(t, x), x + x)


def hypot(x: Expr, y: Expr) -> Expr:
    """sqrt(a**2 + b**2) after a scaling by the power of two nearest to the larger."""
    form = FORMATS[x.dtype]
    a, b = abs(x), abs(y)
    large = select(a > b, a, b)
    exponent = bitcast(large, form.integer) & form.exponent_mask
    inverse = (2 * form.bias << form.fraction_bits) - exponent
    inverse = binary("max", inverse, 1 << form.fraction_bits)
    inverse = binary("min", inverse, (2 * form.bias - 1) << form.fraction_bits)
    s = bitcast(inverse, x.dtype)
    back = bitcast((2 * form.bias << form.fraction_bits) - inverse, x.dtype)
    u, v = a * s, b * s
    h = unary("sqrt", fma(u, u, v * v)) * back
    return select(eq(a, INF) | eq(b, INF), const(INF, x.dtype), h)
