"""What the functions of this package share: float formats, polynomials, exact sums and products."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...ir.record import record
from ...ir.types import F32, F64, I32, I64
from ..scalar import DType, Expr, binary, bitcast, convert, convert_fitting, fma

INF = float("inf")
NAN = float("nan")


@record
class Format:
    """A binary interchange format. A number is 2**(e - bias) * (1 + fraction / 2**fraction_bits)."""

    dtype: DType
    integer: DType  # of the same width
    fraction_bits: int
    bias: int

    @property
    def precision(self) -> int:
        return self.fraction_bits + 1

    @property
    def tiny(self) -> float:
        """The smallest normal number."""
        return 2.0 ** (1 - self.bias)

    @property
    def exponent_mask(self) -> int:
        return (2 * self.bias + 1) << self.fraction_bits

    @property
    def sign_mask(self) -> int:
        return 1 << (8 * self.dtype.itemsize - 1)


FORMATS = {F32: Format(F32, I32, 23, 127), F64: Format(F64, I64, 52, 1023)}


def pick(x: Expr, single: Any, double: Any) -> Any:
    """The constant, or the table of coefficients, for the precision of `x`."""
    return single if x.dtype == F32 else double


def horner(x: Expr, coefficients: Sequence[Any]) -> Expr:
    """c0 + c1 x + c2 x**2 + ..., by fused steps; coefficients may be expressions."""
    *rest, total = coefficients
    if len(rest) > 0 and not isinstance(total, Expr):
        total = fma(x, total, rest.pop())
    for c in reversed(rest):
        total = fma(total, x, c)
    return total


def two_sum(a: Expr, b: Expr) -> tuple[Expr, Expr]:
    """The sum, rounded, and its rounding error, exact (Knuth)."""
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


def fast_two_sum(a: Any, b: Any) -> tuple[Expr, Expr]:
    """The same where |a| >= |b|, or a is 0 (Dekker)."""
    s = a + b
    return s, b - (s - a)


def two_product(a: Expr, b: Any) -> tuple[Expr, Expr]:
    """The product, rounded, and its rounding error, exact unless it underflows."""
    p = a * b
    return p, fma(a, b, -p)


def to_int32(x: Expr) -> Expr:
    """An integral float of small magnitude as int32; anything at all for NaN."""
    return convert_fitting(x, I32)


def power_of_two(n: Expr, dtype: DType) -> Expr:
    """2**n as a float, n an int32 expression; the result must be a normal number."""
    f = FORMATS[dtype]
    return bitcast((convert(n, f.integer) + f.bias) << f.fraction_bits, dtype)


def scale_normal(x: Expr, n: Expr) -> Expr:
    """x * 2**n for int32 n, where x and the result are normal numbers."""
    f = FORMATS[x.dtype]
    return bitcast(bitcast(x, f.integer) + (convert(n, f.integer) << f.fraction_bits), x.dtype)


def clamp(x: Expr, low: float, high: float) -> Expr:
    """x held in low..high; a NaN stays."""
    return binary("max", binary("min", x, high), low)


def copysign(magnitude: Any, sign: Expr) -> Expr:
    """|magnitude| with the sign of `sign`, that of a zero or NaN too."""
    return binary("copysign", magnitude, sign)


def is_finite(x: Expr) -> Expr:
    """Whether a float is neither infinite nor NaN."""
    return abs(x) < INF
