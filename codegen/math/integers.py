"""Integer ops with NumPy's answers: wrapping, floors, and 0 for what divides by 0."""

from __future__ import annotations

from ...ir.types import DTYPE_NAMES, dtype_name
from ..scalar import DType, Expr, binary, bitcast, const, eq, loop, ne, select, unary


def _bits(dtype: DType) -> int:
    return dtype.itemsize * 8


def _unsigned(dtype: DType) -> DType:
    return DTYPE_NAMES["u" + dtype_name(dtype)[1:]]


def _quotient(x: Expr, y: Expr) -> tuple[Expr, Expr]:
    """(divisor, quotient) of a truncating division that never traps: a divisor of 0 becomes 1, and
    -1 too, where the quotient is a negation (which wraps at the minimum)."""
    if y.op == "const" and y.attr not in (0, -1):
        return y, binary("div", x, y)
    one = const(1, x.dtype)
    if x.dtype.kind == "u":
        divisor = select(eq(y, 0), one, y)
        return divisor, binary("div", x, divisor)
    minus = eq(y, -1)
    divisor = select(eq(y, 0) | minus, one, y)
    q = binary("div", x, divisor)
    return select(minus, y, divisor), select(minus, 0 - x, q)


def floor_divide(x: Expr, y: Expr) -> Expr:
    """The quotient, rounded down; 0 where y is 0. The least number over -1 wraps."""
    divisor, q = _quotient(x, y)
    if x.dtype.kind == "i":
        r = x - q * divisor
        down = ne(r, 0) & (binary("xor", r, divisor) < 0)
        q = select(down, q - 1, q)
    return q if y.op == "const" and y.attr != 0 else select(eq(y, 0), const(0, x.dtype), q)


def remainder(x: Expr, y: Expr) -> Expr:
    """x - y floor(x / y), which has the divisor's sign; 0 where y is 0."""
    divisor = _safe(y)
    r = binary("rem", x, divisor)
    if x.dtype.kind == "i":
        if y.op == "const":
            return select(ne(r, 0) & (binary("xor", r, divisor) < 0), r + divisor, r)
        # A remainder has the sign of x, which is there before it is: divisions take long.
        differ = binary("ashr", binary("xor", x, divisor), _bits(x.dtype) - 1)
        r = select(ne(r, 0), r + (divisor & differ), r)
    return r


def _safe(y: Expr) -> Expr:
    """A divisor by which a remainder never traps: by 0 and by -1 nothing is to remain, nor does by 1."""
    if y.op == "const" and y.attr not in (0, -1):
        return y
    traps = eq(y, 0) | eq(y, -1) if y.dtype.kind == "i" else eq(y, 0)
    return select(traps, const(1, y.dtype), y)


def fmod(x: Expr, y: Expr) -> Expr:
    """x - y trunc(x / y), which has the dividend's sign; 0 where y is 0."""
    divisor, q = _quotient(x, y)
    r = x - q * divisor
    return r if y.op == "const" and y.attr != 0 else select(eq(y, 0), const(0, x.dtype), r)


def power(x: Expr, y: Expr) -> Expr:
    """By squaring, wrapping. A negative exponent gives 0 unless |x| is 1 (NumPy raises there)."""
    if y.op == "const" and 0 <= y.attr <= 64:
        return _constant_power(x, int(y.attr))
    one = const(1, x.dtype)
    e = binary("max", y, 0) if x.dtype.kind == "i" else y
    _, _, result = loop(
        [e, x, one],
        lambda e, b, r: ne(e, 0),
        lambda e, b, r: [
            binary("lshr", e, 1),
            b * b,
            select(ne(e & 1, 0), r * b, r),
        ],
    )
    if x.dtype.kind == "u":
        return result
    unit = select(eq(x, -1) & eq(y & 1, 0), one, x)  # (+-1)**y
    inverse = select(eq(x, 1) | eq(x, -1), unit, const(0, x.dtype))
    return select(y < 0, inverse, result)


def _constant_power(x: Expr, n: int) -> Expr:
    result: Expr | None = None
    square = x
    while n:
        if n & 1:
            result = square if result is None else result * square
        n >>= 1
        if n:
            square = square * square
    return const(1, x.dtype) if result is None else result


def left_shift(x: Expr, y: Expr) -> Expr:
    """0 for amounts that are negative or reach the width."""
    inside = bitcast(y, _unsigned(y.dtype)) < _bits(x.dtype)
    shifted = x << (y & (_bits(x.dtype) - 1))
    return select(inside, shifted, const(0, x.dtype))


def right_shift(x: Expr, y: Expr) -> Expr:
    """The sign, for amounts that are negative or reach the width."""
    bits = _bits(x.dtype)
    inside = bitcast(y, _unsigned(y.dtype)) < bits
    if x.dtype.kind == "u":
        return select(inside, binary("lshr", x, y & (bits - 1)), const(0, x.dtype))
    return binary("ashr", x, select(inside, y, const(bits - 1, x.dtype)))


def _magnitude(x: Expr) -> Expr:
    """|x|, unsigned."""
    return x if x.dtype.kind == "u" else bitcast(abs(x), _unsigned(x.dtype))


def _common_divisor(a: Expr, b: Expr) -> Expr:
    """By J. Stein's binary algorithm (1967), on unsigned numbers; gcd(0, b) = b."""
    last = _bits(a.dtype) - 1

    def odd_part(v: Expr) -> Expr:
        return binary("lshr", v, unary("cttz", v) & last)

    twos = unary("cttz", a | b) & last
    u, v = odd_part(a), odd_part(b)
    # u and v are odd, or one is 0; subtract the smaller until they meet.
    result, _ = loop(
        [u, v],
        lambda u, v: ne(u, v) & ne(u, 0) & ne(v, 0),
        lambda u, v: [
            binary("min", u, v),
            odd_part(binary("max", u, v) - binary("min", u, v)),
        ],
    )
    odd = select(eq(u, 0), v, result)
    return odd << twos


def gcd(x: Expr, y: Expr) -> Expr:
    """The greatest common divisor of the magnitudes; gcd(0, y) is |y|."""
    return bitcast(_common_divisor(_magnitude(x), _magnitude(y)), x.dtype)


def lcm(x: Expr, y: Expr) -> Expr:
    """The least common multiple of the magnitudes, wrapping; 0 if one of them is 0."""
    a, b = _magnitude(x), _magnitude(y)
    g = _common_divisor(a, b)
    nothing = eq(g, 0)
    product = binary("div", a, select(nothing, const(1, a.dtype), g)) * b
    return bitcast(product, x.dtype)
