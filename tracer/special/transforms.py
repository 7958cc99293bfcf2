"""Power transforms, relative exponentials and losses; the imaginary error function; Owen's T."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...ir.types import F32, F64
from ..arrays.elementwise import where
from .complex_error import complex_erfi
from .error_functions import bell, erf_of, normal_cdf
from .formulas import formula
from .integrals import dawson, log1p_over
from .operands import special

_NODES, _WEIGHTS = (v.tolist() for v in np.polynomial.legendre.leggauss(32))


@formula
def _relative_exponential(x: Any) -> Any:
    zero = x == 0
    return where(zero, 1.0, np.expm1(x) / where(zero, 1.0, x))


def _exprel_slope(z: Any, x: Any) -> Any:
    """(exp(x) - z) / x; near 0 its series."""
    near = abs(x) < 0.5
    s = where(near, x, 0.0)
    series = 0.0 * x
    for k in range(16, -1, -1):
        series = series * s + 1.0 / (math.factorial(k) * (k + 2))
    return where(near, series, (np.exp(x) - z) / where(near, 1.0, x))


_relative_exponential.defjvps(lambda t, z, x: t * _exprel_slope(z, x))


@formula
def _box_cox(logarithm: Any, power: Any) -> Any:
    """(exp(power logarithm) - 1) / power"""
    finite = np.isfinite(logarithm)
    y = where(finite, logarithm, 0.0)
    beyond = where(power == 0, logarithm, np.expm1(power * logarithm) / power)
    return where(finite, y * _relative_exponential(power * y), beyond)


_box_cox.defjvps(
    lambda t, z, logarithm, power: t * np.exp(power * logarithm),
    lambda t, z, logarithm, power: (
        t
        * (
            logarithm
            * logarithm
            * _exprel_slope(_relative_exponential(power * logarithm), power * logarithm)
        )
    ),
)


def _scale_back(y: Any, power: Any) -> Any:
    """log(1 + power y) / power."""
    product = power * y
    finite = np.isfinite(y) & (product > -1)
    z = where(finite, y, 0.0)
    beyond = where(power == 0, y, np.log1p(product) / power)
    return where(finite, z * log1p_over(power * z), beyond)


@special("exprel", example="1.0 -> 1.718281828459045")
def exprel(x: Any) -> Any:
    """(exp(x) - 1) / x; 1 at 0."""
    return where(x == math.inf, math.inf, _relative_exponential(x))


@special("boxcox", example="4.0, 0.5 -> 2.0")
def boxcox(x: Any, lmbda: Any) -> Any:
    """(x**lmbda - 1) / lmbda; log(x) for lmbda = 0."""
    return _box_cox(np.log(x), lmbda)


@special("boxcox1p", example="3.0, 0.5 -> 2.0")
def boxcox1p(x: Any, lmbda: Any) -> Any:
    """((1 + x)**lmbda - 1) / lmbda; log1p(x) for lmbda = 0."""
    return _box_cox(np.log1p(x), lmbda)


@special("inv_boxcox", example="2.0, 0.5 -> 4.0")
def inv_boxcox(y: Any, lmbda: Any) -> Any:
    """The x for which boxcox(x, lmbda) is y."""
    return np.exp(_scale_back(y, lmbda))


@special("inv_boxcox1p", example="2.0, 0.5 -> 3.0")
def inv_boxcox1p(y: Any, lmbda: Any) -> Any:
    """The x for which boxcox1p(x, lmbda) is y."""
    return np.expm1(_scale_back(y, lmbda))


@special("cosm1", example="1e-9 -> -5e-19")
def cosm1(x: Any) -> Any:
    """cos(x) - 1, with all its digits near 0."""
    half = np.sin(0.5 * x)
    return -2.0 * half * half


@special("softplus", wide=False, example="0.0 -> 0.6931471805599453")
def softplus(x: Any) -> Any:
    """log(1 + exp(x))"""
    return np.logaddexp(x, 0.0)


@special("huber", wide=False, example="1.0, 3.0 -> 2.5")
def huber(delta: Any, r: Any) -> Any:
    """r**2 / 2 up to |r| = delta, then linear; infinite for delta < 0."""
    size = abs(r)
    value = where(size <= delta, 0.5 * r * r, delta * (size - 0.5 * delta))
    return where(delta < 0, math.inf, value)


@special("pseudo_huber", wide=False, example="1.0, 3.0 -> 2.162277660168379")
def pseudo_huber(delta: Any, r: Any) -> Any:
    """delta**2 (sqrt(1 + (r / delta)**2) - 1), for delta >= 0."""
    # It is delta r**2 / (delta + hypot(delta, r)), which divides by delta nowhere.
    total = 0.5 * delta + 0.5 * np.hypot(delta, r)
    share = 0.5 * r / where(total == 0, 1.0, total)
    share = where(np.isinf(r) & np.isfinite(delta), np.sign(r), share)
    nothing = (delta == 0) & np.logical_not(np.isfinite(r))
    nothing = nothing | (r == 0) & np.logical_not(np.isfinite(delta))
    return where(delta < 0, math.inf, where(nothing, 0.0, delta * (r * share)))


@formula
def erfi_of(x: Any) -> Any:
    y = np.clip(x, -30.0, 30.0)
    head = y.astype(F32).astype(F64)
    grown = np.exp(head * head) * np.exp((y - head) * (y + head))
    return where(
        abs(x) > 30, np.copysign(math.inf, x), 2.0 / math.sqrt(math.pi) * grown * dawson(y)
    )


erfi_of.defjvps(lambda t, z, x: t * (2.0 / math.sqrt(math.pi) * np.exp(x * x)))


@special("erfi", of_complex=complex_erfi, example="1.0 -> 1.6504257587975433")
def erfi(x: Any) -> Any:
    """The imaginary error function, -i erf(i x)."""
    return where(np.isnan(x), x, erfi_of(x))


def _owen(h: Any, a: Any) -> Any:
    """For h >= 0 and 0 <= a <= 1, by Gauss's rule up to where the integrand vanishes."""
    end = np.minimum(a, 9.0 / np.maximum(h, 1e-3))
    total = 0.0 * h
    for node, weight in zip(_NODES, _WEIGHTS, strict=True):
        x = end * (0.5 * (1.0 + node))
        square = x * x
        total = total + weight * np.exp(-0.5 * (h * h) * square) / (1.0 + square)
    return total * (bell(h, 0.5) * end * (0.25 / math.pi))


@special("owens_t", example="1.0, 1.0 -> 0.06674188216570098")
@formula
def owens_t_of(h: Any, a: Any) -> Any:
    """The probability that X > h and 0 < Y < a X, for independent standard normal X and Y."""
    x, y = np.minimum(abs(h), 100.0), abs(a)
    turned = y > 1
    z = where(turned & (x > 0), np.minimum(x * np.minimum(y, 1e300), 100.0), x)
    value = _owen(where(turned, z, x), where(turned, 1.0 / where(turned, y, 1.0), y))
    p, q = normal_cdf(-x), normal_cdf(-z)
    value = where(turned, 0.5 * (p + q) - p * q - value, value)
    value = where(np.isnan(h) | np.isnan(a), math.nan, where(np.isinf(h), 0.0, value))
    return np.copysign(value, a)


def _owen_in_h(h: Any, a: Any) -> Any:
    return np.exp(-0.5 * h * h) * erf_of(a * h * math.sqrt(0.5)) * (-0.5 / math.sqrt(2 * math.pi))


def _owen_in_a(h: Any, a: Any) -> Any:
    square = 1.0 + a * a
    return np.exp(-0.5 * h * h * square) / (2 * math.pi * square)


owens_t_of.defjvps(lambda t, z, h, a: t * _owen_in_h(h, a), lambda t, z, h, a: t * _owen_in_a(h, a))


@special("powm1", example="1.0, 2.0 -> 0.0")
def powm1(x: Any, y: Any) -> Any:
    """x**y - 1, with all its digits where x**y is nearly 1."""
    plain = np.power(x, y) - 1.0
    exponent = y * np.log(where(x > 0, x, 1.0))
    near = (x > 0) & (abs(exponent) < 0.5)
    return where(near, np.expm1(where(near, exponent, 0.0)), plain)


@special("log1p", wide=False, of_complex=np.log1p, example="1e-9 -> 9.999999995e-10")
def log1p(x: Any) -> Any:
    """log(1 + x), with all its digits near 0."""
    return np.log1p(x)


@special("expm1", wide=False, of_complex=np.expm1, example="1e-9 -> 1.0000000005000001e-09")
def expm1(x: Any) -> Any:
    """exp(x) - 1, with all its digits near 0."""
    return np.expm1(x)


@special("exp2", wide=False, example="3.0 -> 8.0")
def exp2(x: Any) -> Any:
    """2**x"""
    return np.exp2(x)


@special("exp10", wide=False, example="3.0 -> 1000.0")
def exp10(x: Any) -> Any:
    """10**x"""
    return np.power(10.0, x)


@special("cbrt", wide=False, example="8.0 -> 2.0")
def cbrt(x: Any) -> Any:
    """The real cube root."""
    return np.cbrt(x)
