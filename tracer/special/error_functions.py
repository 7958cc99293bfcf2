"""The error function, its complement and their inverses; the normal distribution.

Far from 0 it is exp(-x**2) times erfcx, the scaled complement. (1 + 2 x) erfcx(x) is a polynomial in
(x - k) / (x + k) for all x >= 0 (Shepherd and Laframboise, Mathematics of Computation 36, 1981), here
interpolated at Chebyshev points; and the square in the exponential is that of a few digits of x, which
is exact, and a rest.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...ir.ops.elementwise.erfinv import QUANTILE_FAR, QUANTILE_MIDDLE, QUANTILE_TAIL
from ...ir.types import F32, F64
from ..arrays.common import build
from ..arrays.elementwise import where
from ..core.tracers import as_value, wrap
from .arithmetic import polynomial
from .complex_error import complex_erf, complex_erfc, complex_erfcx, faddeeva
from .formulas import formula
from .operands import special

_K = 3.75
_ERFCX = (
    *(1.2375126308378275, -0.14024059858554697, 0.003585415485463775, 0.08227673849014516),
    *(-0.10880393014171785, 0.09230432116037876, -0.058693398590212366, 0.028362277418940665),
    *(-0.009746579552504244, 0.0017556258530017257, 0.0002937136342850081),
    *(-0.0002901540809795271, 5.1649211390702855e-05, 2.2384240314224437e-05),
    *(-1.1444412439171722e-05, -9.735619015182663e-07, 1.752057970166318e-06),
    *(-5.721597255990987e-08, -2.591069687796658e-07, 2.3261913276696566e-08),
    *(3.8965452548985966e-08, -3.743568033634583e-09, -5.28428697963142e-09),
    *(3.110310719839165e-10, 4.434959070009628e-10),
)
_TWO_OVER_ROOT_PI = 2.0 / math.sqrt(math.pi)
_ROOT_HALF = math.sqrt(0.5)
_LOG_ROOT_TAU = 0.5 * math.log(2 * math.pi)


@special("erf", wide=False, of_complex=complex_erf, example="1.0 -> 0.8427007929497148")
def erf_of(x: Any) -> Any:
    """The error function."""
    return wrap(build().erf(as_value(x)))


@special("erfinv", wide=False, example="0.5 -> 0.4769362762044699")
def erfinv_of(x: Any) -> Any:
    """The inverse of `erf`: infinite at -1 and 1, NaN beyond."""
    return wrap(build().erfinv(as_value(x)))


def scaled_complement(x: Any) -> Any:
    """exp(x**2) erfc(x), for x >= 0."""
    finite = np.minimum(x, 1e300)
    return polynomial((finite - _K) / (finite + _K), _ERFCX) / (1.0 + 2.0 * x)


def bell(x: Any, factor: float) -> Any:
    """exp(-factor x**2), for a power of two `factor`."""
    x = np.clip(x, -60.0, 60.0)
    head = x.astype(F32).astype(F64)
    return np.exp(-factor * head * head) * np.exp(-factor * (x - head) * (x + head))


@special("erfc", of_complex=complex_erfc, example="10.0 -> 2.0884875837625443e-45")
@formula
def erfc_of(x: Any) -> Any:
    """1 - erf(x), with all its digits where erf is nearly 1."""
    size = abs(x)
    tail = bell(size, 1.0) * scaled_complement(size)
    value = where(x < 0, 2.0 - tail, tail)
    return where(size < 0.5, 1.0 - erf_of(x), value)


erfc_of.defjvps(lambda t, z, x: t * (-_TWO_OVER_ROOT_PI * bell(x, 1.0)))


@special("erfcx", of_complex=complex_erfcx, example="10.0 -> 0.05614099274382258")
@formula
def erfcx_of(x: Any) -> Any:
    """exp(x**2) erfc(x)"""
    right = scaled_complement(abs(x))
    y = np.clip(x, -30.0, 0.0)
    head = y.astype(F32).astype(F64)
    grown = np.exp(head * head) * np.exp((y - head) * (y + head))
    return where(x < 0, 2.0 * grown - right, right)


erfcx_of.defjvps(lambda t, z, x: t * (2.0 * x * z - _TWO_OVER_ROOT_PI))


@formula
def _of_log_tail(logarithm: Any) -> Any:
    """The x whose erfc has this logarithm, which is below log(1/2)."""
    square = -logarithm - 0.5 * math.log(math.pi)
    x = np.sqrt(np.maximum(square - 0.5 * np.log(np.maximum(square, 0.25)), 0.1))
    for _ in range(4):
        scaled = scaled_complement(x)
        error = np.log(scaled) - x * x - logarithm
        slope = -_TWO_OVER_ROOT_PI / scaled
        bend = slope * (-2.0 * x - slope)
        x = x - 2.0 * error * slope / (2.0 * slope * slope - error * bend)
    return x


_of_log_tail.defjvps(lambda t, x, logarithm: t * (-scaled_complement(x) / _TWO_OVER_ROOT_PI))


def upper_normal_quantile(log_p: Any) -> Any:
    """The number that normal ones exceed with a probability below 1/4, given by its logarithm."""
    return math.sqrt(2) * _of_log_tail(log_p + math.log(2))


def _quantile(q: Any, tail: Any) -> Any:
    """Where the normal distribution is 1/2 + q, for 1/2 - |q| = tail: Wichura's AS 241."""

    def ratio(parts: tuple[tuple[float, ...], tuple[float, ...]], r: Any) -> tuple[Any, Any]:
        return polynomial(r, parts[0]), polynomial(r, parts[1])

    middle = abs(q) <= 0.425
    r = np.sqrt(-np.log(where(middle | (tail <= 0), 0.25, tail)))
    above, below = ratio(QUANTILE_MIDDLE, 0.180625 - q * q)
    near, under = ratio(QUANTILE_TAIL, np.minimum(r, 5.0) - 1.6)
    far, bottom = ratio(QUANTILE_FAR, np.maximum(r, 5.0) - 5.0)
    above = where(middle, above, where(r <= 5.0, near, far))
    value = above / where(middle, below, where(r <= 5.0, under, bottom))
    value = where(middle, q * value, np.copysign(value, q))
    value = where(tail == 0, np.copysign(math.inf, q), value)
    return where(tail >= 0, value, math.nan)


@special("erfcinv", example="0.5 -> 0.4769362762044699")
@formula
def erfcinv_of(y: Any) -> Any:
    """The inverse of `erfc`: infinite at 0 and 2, NaN beyond."""
    return -_ROOT_HALF * _quantile(0.5 * (y - 1.0), 0.5 * np.minimum(y, 2.0 - y))


erfcinv_of.defjvps(lambda t, z, y: t * (-np.exp(z * z) / _TWO_OVER_ROOT_PI))


@special("ndtr", example="0.0 -> 0.5")
@formula
def normal_cdf(x: Any) -> Any:
    """The distribution of standard normal numbers: the probability of one below x."""
    size = abs(x)
    tail = 0.5 * bell(size, 0.5) * scaled_complement(size * _ROOT_HALF)
    value = where(x < 0, tail, 1.0 - tail)
    return where(size < 1.0, 0.5 + 0.5 * erf_of(x * _ROOT_HALF), value)


normal_cdf.defjvps(lambda t, z, x: t * (bell(x, 0.5) * math.exp(-_LOG_ROOT_TAU)))


@special("log_ndtr", example="-40.0 -> -804.6084420137538")
@formula
def log_normal_cdf(x: Any) -> Any:
    """The logarithm of `ndtr`, also where that is too small for a float."""
    left = x < -1.0
    scaled = scaled_complement(where(left, -x, 1.0) * _ROOT_HALF)
    low = np.log(0.5 * scaled) - 0.5 * x * x
    high = np.log1p(-normal_cdf(where(left, 1.0, -x)))
    return where(x == -math.inf, -math.inf, where(left, low, high))


@formula
def _density_ratio(x: Any) -> Any:
    """The density over the distribution, which left of 0 is one over a scaled tail."""
    left = x < 0
    scaled = scaled_complement(where(left, -x, 0.0) * _ROOT_HALF)
    low = math.sqrt(2 / math.pi) / scaled
    high = bell(x, 0.5) * math.exp(-_LOG_ROOT_TAU) / normal_cdf(where(left, 0.0, x))
    return where(left, low, high)


_density_ratio.defjvps(lambda t, z, x: t * (-z * (x + z)))
log_normal_cdf.defjvps(lambda t, z, x: t * _density_ratio(x))


@special("ndtri", example="0.975 -> 1.9599639845400534")
@formula
def normal_quantile(p: Any) -> Any:
    """The quantile of standard normal numbers, the inverse of `ndtr`; NaN outside of 0..1."""
    return _quantile(p - 0.5, np.minimum(p, 1.0 - p))


normal_quantile.defjvps(lambda t, z, p: t * (np.exp(0.5 * z * z) * math.exp(_LOG_ROOT_TAU)))


@special("wofz", of_complex=faddeeva, complex_only=True, example="0.0 -> np.complex128(1+0j)")
def wofz(z: Any) -> Any:
    """Faddeeva's function exp(-z**2) erfc(-i z), of complex numbers."""
    return faddeeva(z)
