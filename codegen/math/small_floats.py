"""Floats of 16 and 8 bits to float32 and back, as arithmetic on their bits.

Rounding is to nearest, ties to even, once. What is too large becomes infinity, or NaN in formats without
infinities; formats without a -0 give +0; a NaN stays one, with its sign where the format keeps it.

Halves are primitives, since most machines have instructions for them; `half_bits` and `half_value` are
what an emitter writes where they have not.
"""

from __future__ import annotations

from ...ir.record import record
from ...ir.types import F16, F32, F64, I32, bits_dtype, dtype_name
from ..scalar import DType, Expr, binary, bitcast, const, convert, eq, ne, select

_INF = 0x7F800000  # the bits of float32's infinity
_NAN = 0x7FC00000
_ABS = 0x7FFFFFFF


@record
class SmallFormat:
    """A sign, `exponent_bits` and `fraction_bits`, up to 16 in all.

    `specials` is "ieee" (as in float32), "fn" (no infinities, one NaN of all ones) or "fnuz" (no
    infinities, and one NaN where -0 would be).
    """

    exponent_bits: int
    fraction_bits: int
    bias: int
    specials: str

    @property
    def sign(self) -> int:
        return 1 << (self.exponent_bits + self.fraction_bits)

    @property
    def beyond(self) -> int:
        """The magnitude's bits after those of the largest number: what becomes too large is that."""
        if self.specials == "ieee":
            return ((1 << self.exponent_bits) - 1) << self.fraction_bits
        return self.sign - (self.specials == "fn")

    @property
    def nan(self) -> int:
        if self.specials == "ieee":
            return self.beyond | 1 << (self.fraction_bits - 1)
        return self.beyond


FORMATS = {
    "f16": SmallFormat(5, 10, 15, "ieee"),
    "bf16": SmallFormat(8, 7, 127, "ieee"),
    "f8e4m3fn": SmallFormat(4, 3, 7, "fn"),
    "f8e5m2": SmallFormat(5, 2, 15, "ieee"),
    "f8e4m3": SmallFormat(4, 3, 7, "ieee"),
    "f8e3m4": SmallFormat(3, 4, 3, "ieee"),
    "f8e4m3fnuz": SmallFormat(4, 3, 8, "fnuz"),
    "f8e5m2fnuz": SmallFormat(5, 2, 16, "fnuz"),
    "f8e4m3b11fnuz": SmallFormat(4, 3, 11, "fnuz"),
}


def widen(bits: Expr, dtype: DType) -> Expr:
    """The float32 value of a small float."""
    if dtype == F16:
        return Expr("half_to_float", (bits,), F32)
    return from_bits(bits, FORMATS[dtype_name(dtype)])


def narrow(x: Expr, dtype: DType) -> Expr:
    """The bits of the small float nearest to `x`, a float32, or a float64 if they are a half's."""
    if x.dtype == F64:
        x = round_to_odd(x)
    if dtype == F16:
        return Expr("float_to_half", (x,), bits_dtype(F16))
    return to_bits(x, FORMATS[dtype_name(dtype)], bits_dtype(dtype))


def half_value(bits: Expr) -> Expr:
    """The float32 value of a half, given its bits (uint16)."""
    return from_bits(bits, FORMATS["f16"])


def half_bits(x: Expr) -> Expr:
    """The bits (uint16) of the half nearest to a float32, or float64."""
    return to_bits(x, FORMATS["f16"], bits_dtype(F16))


def from_bits(bits: Expr, form: SmallFormat) -> Expr:
    """The float32 value, exact, of a small float of a format, given its bits."""
    wide = convert(bits, I32)
    sign = (wide & form.sign) << (31 - form.exponent_bits - form.fraction_bits)
    magnitude = wide & (form.sign - 1)
    aligned = magnitude << (23 - form.fraction_bits)
    if form.exponent_bits == 8:  # float32's own exponents, infinities and NaNs
        return bitcast(sign | aligned, F32)
    # A denormal number has the exponent of the smallest normal one, and no leading 1: it is taken off.
    least = 2.0 ** (1 - form.bias)
    denormal = bitcast(bitcast(aligned + ((128 - form.bias) << 23), F32) - least, I32)
    normal = aligned + ((127 - form.bias) << 23)
    value = select(magnitude < 1 << form.fraction_bits, denormal, normal)
    if form.specials == "ieee":
        value = select(magnitude >= form.beyond, aligned | _INF, value)
    elif form.specials == "fn":
        value = select(eq(magnitude, form.beyond), const(_NAN, I32), value)
    else:
        value = select(eq(wide, form.sign), const(_NAN, I32), value)
    return bitcast(value | sign, F32)


def to_bits(x: Expr, form: SmallFormat, integer: DType) -> Expr:
    """The bits, as `integer`, of the small float nearest to a float32; ties go to even.

    What is too large becomes what the format has beyond its largest number (`SmallFormat.beyond`).
    """
    bits = bitcast(x, I32)
    shift = 23 - form.fraction_bits
    if form.exponent_bits == 8:  # the upper half: a carry from the fraction ends at infinity
        rounded = bits + ((1 << (shift - 1)) - 1) + (binary("lshr", bits, shift) & 1)
        quiet = bits | 1 << 22
        return convert(binary("lshr", select(ne(x, x), quiet, rounded), shift), integer)
    magnitude = bits & _ABS
    odd = binary("lshr", magnitude, shift) & 1
    code = binary("lshr", magnitude + ((1 << (shift - 1)) - 1) + odd, shift)
    code = code - ((127 - form.bias) << form.fraction_bits)
    # Adding a number whose last bit has the weight of the smallest denormal one rounds there.
    ruler = 2.0 ** (1 - form.bias + shift)
    tiny = bitcast(bitcast(magnitude, F32) + ruler, I32) - bitcast(const(ruler, F32), I32)
    smallest_normal = (128 - form.bias) << 23
    code = select(magnitude < smallest_normal, tiny, code)
    code = select(code > form.beyond - 1, const(form.beyond, I32), code)
    code = select(magnitude > _INF, const(form.nan, I32), code)
    position = 31 - form.exponent_bits - form.fraction_bits
    sign = binary("lshr", bits, position) & form.sign
    if form.specials == "fnuz":  # NaN and zero have no sign
        sign = select(eq(code, 0), const(0, I32), sign)
    return convert(code | sign, integer)


def round_to_odd(x: Expr) -> Expr:
    """A float64 as a float32 whose last bit says whether anything was lost: rounding that once more, to
    a format with two bits less, rounds `x` itself correctly."""
    nearest = convert(x, F32)
    back = convert(nearest, F64)
    inexact = ne(back, x) & eq(x, x)
    bits = bitcast(nearest, I32)
    bits = bits - convert(abs(back) > abs(x), I32)  # towards zero
    return bitcast(bits | convert(inexact, I32), F32)
