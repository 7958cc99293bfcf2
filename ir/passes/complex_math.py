"""Functions of complex numbers as real formulas over their parts.

    FUNCTIONS["exp"](Z(x, y))  ->  Z(exp(x) cos(y), exp(x) sin(y))

`x` and `y` are `Term`s, so a formula appends real elementwise ops. Division is R. Smith's (1962), as in
NumPy, and the modulus is a hypot, so neither overflows on the way. Roots and inverse functions are
Kahan's ("Branch cuts for complex elementary functions", 1987); signed zeros tell the sides of a cut
apart.

The error is a few units in the last place of |f(z)|; the smaller part keeps fewer digits of its own
where the function cancels (the real part of log near |z| = 1). Functions of infinities and NaNs give
what C99's Annex G asks for; products and quotients give NaN as in NumPy, without Annex G's recovery.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..ops.term import Term, where

INF = math.inf
_LN2 = math.log(2.0)
_LN10 = math.log(10.0)


class Z(NamedTuple):
    """The real and the imaginary part of complex numbers."""

    re: Term
    im: Term


def _finfo(x: Term) -> Any:
    return np.finfo(x.value.dtype)


def choose(condition: Term, a: Z, b: Z) -> Z:
    """`a` where the condition holds, else `b`, both parts alike."""
    return Z(where(condition, a.re, b.re), where(condition, a.im, b.im))


def _constant(like: Term, value: float) -> Term:
    return Term(like.b, like.lift(value))


def _shifted(z: Z, by: float) -> Z:
    return Z(z.re + by, z.im)


def _times_i(z: Z) -> Z:
    return Z(-z.im, z.re)


def _times_minus_i(z: Z) -> Z:
    return Z(z.im, -z.re)


def _turned(f: Callable[[Z], Z]) -> Callable[[Z], Z]:
    """-i f(i z): sin of sinh, arctan of arctanh, ..."""
    return lambda z: _times_minus_i(f(_times_i(z)))


# Arithmetic


def add(a: Z, b: Z) -> Z:
    """a + b, part by part."""
    return Z(a.re + b.re, a.im + b.im)


def subtract(a: Z, b: Z) -> Z:
    """a - b, part by part."""
    return Z(a.re - b.re, a.im - b.im)


def multiply(a: Z, b: Z) -> Z:
    """(a.re + i a.im) (b.re + i b.im), by four products; NaN as in NumPy."""
    return Z(a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re)


def divide(a: Z, b: Z) -> Z:
    """R. Smith's: the smaller part of the divisor over the larger one never overflows."""
    wide = b.re.abs() >= b.im.abs()
    large, small = where(wide, b.re, b.im), where(wide, b.im, b.re)
    zero = large.eq(0) & small.eq(0)  # then both parts are divided by 0; not by NaN + 0j
    ratio = where(zero, 0, small / where(zero, 1, large))
    scale = 1 / where(zero, large.abs(), large + small * ratio)
    re = where(wide, a.re + a.im * ratio, a.re * ratio + a.im)
    im = where(wide, a.im - a.re * ratio, a.im * ratio - a.re)
    return Z(where(zero, a.re * scale, re * scale), where(zero, a.im * scale, im * scale))


def modulus(z: Z) -> Term:
    """|z|, without overflow on the way."""
    return z.re.hypot(z.im)


def sign(z: Z) -> Z:
    """z / |z|: NumPy 2's sign. 0 of 0, +-1 or +-i where one part alone is infinite."""
    m = modulus(z)
    one = z.re.isinf().bitwise_xor(z.im.isinf()) & is_nan(z).invert()
    safe = where(m.eq(0), 1, m)

    def part(x: Term) -> Term:
        unit = where(x.isinf(), x.sign(), 0)
        return where(one, unit, where(m.eq(0), 0, x / safe))

    return Z(part(z.re), part(z.im))


# Predicates and NumPy's order of complex numbers: by the real part, then by the imaginary part


def is_nan(z: Z) -> Term:
    """Whether one of the parts is NaN."""
    return z.re.isnan() | z.im.isnan()


def _ordered(name: str) -> Callable[[Z, Z], Term]:
    strict = {"lt": "lt", "le": "lt", "gt": "gt", "ge": "gt"}[name]

    def compare(a: Z, b: Z) -> Term:
        ordered = (a.im.isnan() | b.im.isnan()).invert()
        first = getattr(a.re, strict)(b.re) & ordered
        return first | (a.re.eq(b.re) & getattr(a.im, name)(b.im))

    return compare


_ge, _le = _ordered("ge"), _ordered("le")


# Exponential, roots, logarithms


def exp(z: Z) -> Z:
    """e**x (cos y + i sin y). Where e**x overflows, its root is multiplied twice."""
    x, y = z
    big = x > math.log(float(_finfo(x).max))  # exp(x) overflows, its product with a cosine may not
    e = where(big, x * 0.5, x).exp()
    rest = where(big, e, 1)
    re, im = e * y.cos() * rest, where(y.eq(0), y, e * y.sin() * rest)
    wild = y.isfinite().invert()
    low, high = wild & x.eq(-INF), wild & x.eq(INF)
    return Z(where(low, 0, where(high, INF, re)), where(low, 0, im))


def exp2(z: Z) -> Z:
    """2**z, as exp(z log 2)."""
    return exp(Z(z.re * _LN2, z.im * _LN2))


def expm1(z: Z) -> Z:
    """exp(z) - 1, whose real part is expm1(x) cos(y) - 2 sin(y/2)^2."""
    whole = exp(z)
    half = (z.im * 0.5).sin()
    near = z.re.expm1() * z.im.cos() - half * half * 2
    small = z.re.abs() < 1
    return Z(where(small, near, whole.re - 1), whole.im)


def sqrt(z: Z) -> Z:
    """Kahan's, scaled so that nothing overflows or loses its bits below the smallest normal number."""
    info = _finfo(z.re)
    size = z.re.abs().fmax(z.im.abs())
    big, tiny = size > float(info.max) / 8, size < float(info.tiny) / float(info.eps)
    up = float(2.0 ** (2 * info.nmant))
    factor = where(big, 0.0625, where(tiny, up, _constant(size, 1)))
    back = where(big, 4.0, where(tiny, 2.0**-info.nmant, _constant(size, 1)))
    infinite = z.re.isinf() | z.im.isinf()
    factor, back = where(infinite, 1, factor), where(infinite, 1, back)
    x, y = z.re * factor, z.im * factor
    t = ((x.abs() + x.hypot(y)) * 0.5).sqrt()
    zero = t.eq(0)
    other = y / (where(zero, 1, t) * 2)
    right = (x >= 0) | zero
    re, im = where(right, t, other.abs()), where(right, other, t.copysign(y))
    tall = z.im.isinf()  # also with a NaN beside it
    return Z(where(tall, INF, re * back), where(tall | zero, z.im, im * back))


def _log_modulus(x: Term, y: Term) -> Term:
    """log |x + iy|: by log1p of |z|^2 - 1 where |z| is about 1."""
    large, small = x.abs().maximum(y.abs()), x.abs().minimum(y.abs())
    near = (large > 0.5) & (large < 2.0)
    safe = where(near, large, 1)
    square = (safe - 1) * (safe + 1) + where(near, small * small, 0)
    return where(near, square.log1p() * 0.5, _log_hypot(x, y))


def _log_hypot(x: Term, y: Term) -> Term:
    """log(hypot(x, y)), also where the hypot would overflow or lose its bits."""
    info = _finfo(x)
    size = x.abs().fmax(y.abs())
    big, tiny = size > float(info.max) / 4, size < float(info.tiny) / float(info.eps)
    factor = where(big, 0.25, where(tiny, 2.0 ** (2 * info.nmant), _constant(size, 1)))
    shift = where(big, 2 * _LN2, where(tiny, -2 * info.nmant * _LN2, _constant(size, 0)))
    plain = size.isinf() | size.isnan()
    factor, shift = where(plain, 1, factor), where(plain, 0, shift)
    return (x * factor).hypot(y * factor).log() + shift


def log(z: Z) -> Z:
    """log |z| + i arg z; the cut is the negative real axis."""
    return Z(_log_modulus(*z), z.im.arctan2(z.re))


def _log_to(base: float) -> Callable[[Z], Z]:
    factor = 1 / math.log(base)

    def scaled(z: Z) -> Z:
        logarithm = log(z)
        return Z(logarithm.re * factor, logarithm.im * factor)

    return scaled


def log1p(z: Z) -> Z:
    """log(1 + z), by log1p(2x + |z|^2) / 2 for small z."""
    far = log(_shifted(z, 1))
    small = z.re.abs().maximum(z.im.abs()) < 0.5
    x, y = where(small, z.re, 0), where(small, z.im, 0)
    near = (x * (x + 2) + y * y).log1p() * 0.5
    return Z(where(small, near, far.re), far.im)


def power(a: Z, b: Z) -> Z:
    """exp(b log(a)); 0 ** b is 1 for b = 0, 0 for Re(b) > 0, else NaN."""
    z = exp(multiply(b, log(a)))
    one, zero = is_zero(b), is_zero(a)
    undefined = _constant(b.re, math.nan)
    of_zero = where(b.re > 0, 0, undefined)
    re, im = where(zero, of_zero, z.re), where(zero, of_zero, z.im)
    return Z(where(one, 1, re), where(one, 0, im))


def is_zero(z: Z) -> Term:
    """Whether both parts are 0, of either sign."""
    return z.re.eq(0) & z.im.eq(0)


def integer_power(a: Z, n: int) -> Z:
    """a ** n by repeated squaring, as NumPy does it for |n| < 100."""
    one = Z(_constant(a.re, 1), _constant(a.re, 0))
    if n == 0:
        return one
    result: Z | None = None
    square, k = a, abs(n)
    while k:
        if k & 1:
            result = square if result is None else multiply(result, square)
        k >>= 1
        if k:
            square = multiply(square, square)
    assert result is not None
    if n > 0:
        return result
    quotient, zero, undefined = divide(one, result), is_zero(a), _constant(a.re, math.nan)
    return Z(where(zero, undefined, quotient.re), where(zero, undefined, quotient.im))


# Hyperbolic and circular functions


def _halves(x: Term) -> tuple[Term, Term, Term]:
    """s, c, k with s k = sinh(x), c k = cosh(x), and k > 1 only where these would overflow."""
    size = x.abs()
    big = size > math.log(float(_finfo(x).max)) - 1
    half = where(big, size * 0.5, 0).exp()
    s = where(big, (half * 0.5).copysign(x), x.sinh())
    c = where(big, half * 0.5, x.cosh())
    return s, c, half


def sinh(z: Z) -> Z:
    """sinh x cos y + i cosh x sin y."""
    x, y = z
    s, c, k = _halves(x)
    wild = y.isfinite().invert()
    re = where(wild & x.isinf(), INF, where(wild & x.eq(0), x, s * y.cos() * k))
    return Z(re, where(y.eq(0), y, c * y.sin() * k))


def cosh(z: Z) -> Z:
    """cosh x cos y + i sinh x sin y."""
    x, y = z
    s, c, k = _halves(x)
    wild = y.isfinite().invert()
    re = where(wild & x.isinf(), INF, c * y.cos() * k)
    flat = y.eq(0) | (wild & x.eq(0))
    zero = where(y.eq(0), y, 0) * _constant(x, 1).copysign(x)
    return Z(re, where(flat, where(x.isnan(), y, zero), s * y.sin() * k))


def tanh(z: Z) -> Z:
    """Kahan's; where |x| is large, 1 and what is left of the imaginary part."""
    x, y = z
    limit = 22.0 if _finfo(x).nmant > 30 else 11.0
    far = x.abs() > limit
    near_x = where(far, 0, x)
    t, s = y.tan(), near_x.sinh()
    rise = t * t + 1
    below = rise * s * s + 1
    re = where(far, _constant(x, 1).copysign(x), rise * near_x.cosh() * s / below)
    tail = y.sin() * y.cos() * (x.abs() * -2).exp() * 4
    im = where(far, tail, t / below)
    wild = y.isfinite().invert()
    lost = where(x.eq(0), x, _constant(x, math.nan))
    re = where(x.isinf(), x.sign(), where(wild, lost, re))
    return Z(re, where(y.eq(0), y, where(x.isinf() & wild, 0, im)))


def cos(z: Z) -> Z:
    """cos z = cosh(i z)."""
    return cosh(_times_i(z))


# Inverse functions


def _huge(z: Z) -> tuple[Term, Term]:
    """Whether |z| is so large that 1 + z is z, and then log(2 |z|)."""
    limit = float(_finfo(z.re).max) / 4
    huge = (z.re.abs() > limit) | (z.im.abs() > limit)
    return huge, (z.re * 0.5).hypot(z.im * 0.5).log() + 2 * _LN2


def arcsinh(z: Z) -> Z:
    """Kahan's; the cuts are on the imaginary axis, above i and below -i."""
    x, y = z
    a, b = sqrt(Z(y + 1, -x)), sqrt(Z(1 - y, x))
    near = Z((a.re * b.im - b.re * a.im).arcsinh(), y.arctan2(a.re * b.re - a.im * b.im))
    huge, log2z = _huge(z)
    result = choose(huge, Z(log2z.copysign(x), y.arctan2(x.abs())), near)
    return Z(result.re, where(x.isnan() & y.eq(0), y, result.im))


def arccosh(z: Z) -> Z:
    """Kahan's; the cut is on the real axis, below 1."""
    a, b = sqrt(_shifted(z, -1)), sqrt(_shifted(z, 1))
    near = Z((a.re * b.re + a.im * b.im).arcsinh(), a.im.arctan2(b.re) * 2)
    huge, log2z = _huge(z)
    result = choose(huge, Z(log2z, z.im.arctan2(z.re)), near)
    return Z(result.re, where(z.re.eq(0) & z.im.isnan(), math.pi / 2, result.im))


def arccos(z: Z) -> Z:
    """Kahan's; the cuts are on the real axis, below -1 and above 1."""
    x, y = z
    a, b = sqrt(Z(1 - x, -y)), sqrt(Z(x + 1, y))
    near = Z(a.re.arctan2(b.re) * 2, (b.re * a.im - b.im * a.re).arcsinh())
    huge, log2z = _huge(z)
    result = choose(huge, Z(y.abs().arctan2(x), -(log2z.copysign(y))), near)
    return Z(where(x.eq(0) & y.isnan(), math.pi / 2, result.re), result.im)


def arctanh(z: Z) -> Z:
    """On the right half plane, by log1p(4x / |1 - z|^2) / 4; odd."""
    x, y = z.re.abs(), z.im.abs()
    limit = math.sqrt(float(_finfo(x).max)) / 2
    huge = (x > limit) | (y > limit)
    small = math.sqrt(float(_finfo(x).tiny))
    pole = x.eq(1) & (y < small)
    plain = huge | pole
    u, v = where(plain, 0, x), where(plain, 0, y)
    beside = 1 - u
    re = (u * 4 / (beside * beside + v * v)).log1p() * 0.25
    im = (v * 2).arctan2(beside * (u + 1) - v * v) * 0.5
    h = (x * 0.5).hypot(y * 0.5)
    far = where(h.isinf(), 0, x * 0.25 / h / h)
    near_pole = where(y.eq(0), INF, -((y.sqrt() / y.hypot(2).sqrt()).log()))
    re = where(huge, far, where(pole, near_pole, re))
    at_pole = where(y.eq(0), 0, y * 0.25 + math.pi / 4)
    im = where(huge, math.pi / 2, where(pole, at_pole, im))
    im = where(huge & (x.isnan() & y.isinf().invert()), math.nan, im)
    im = where(z.im.isnan() & z.re.isinf(), math.nan, im)
    re = where(x.eq(0) & y.isnan(), x, re)
    return Z(re.copysign(z.re), im.copysign(z.im))


FUNCTIONS: dict[str, Callable[..., Z | Term]] = {
    "mul": multiply,
    "div": divide,
    "sign": sign,
    "abs": modulus,
    "pow": power,
    "isnan": is_nan,
    "isinf": lambda z: z.re.isinf() | z.im.isinf(),
    "isfinite": lambda z: z.re.isfinite() & z.im.isfinite(),
    "eq": lambda a, b: a.re.eq(b.re) & a.im.eq(b.im),
    "ne": lambda a, b: a.re.ne(b.re) | a.im.ne(b.im),
    **{name: _ordered(name) for name in ("lt", "le", "gt", "ge")},
    "maximum": lambda a, b: choose(is_nan(a) | _ge(a, b), a, b),
    "minimum": lambda a, b: choose(is_nan(a) | _le(a, b), a, b),
    "fmax": lambda a, b: choose(_ge(a, b) | is_nan(b), a, b),
    "fmin": lambda a, b: choose(_le(a, b) | is_nan(b), a, b),
    "conj": lambda z: Z(z.re, -z.im),
    "real": lambda z: z.re,
    "imag": lambda z: z.im,
    "exp": exp,
    "exp2": exp2,
    "expm1": expm1,
    "log": log,
    "log2": _log_to(2.0),
    "log10": _log_to(10.0),
    "log1p": log1p,
    "sqrt": sqrt,
    "sin": _turned(sinh),
    "cos": cos,
    "tan": _turned(tanh),
    "sinh": sinh,
    "cosh": cosh,
    "tanh": tanh,
    "arcsin": _turned(arcsinh),
    "arccos": arccos,
    "arctan": _turned(arctanh),
    "arcsinh": arcsinh,
    "arccosh": arccosh,
    "arctanh": arctanh,
}
