"""The gamma function, its logarithm and digamma.

Where the argument is small, recurrences lead to a unit interval, on which polynomials
interpolate lgamma(y) / ((y - 1) (y - 2)) and digamma(y) / (y - root) at Chebyshev points (relative error
1e-18): what is 0 at 1, at 2 and at the root has all its digits there. From 8 on it is Stirling's series
(NIST DLMF 5.11.1 and 5.11.2), below 0 the reflection (5.5.3 and 5.5.4), written in -x, which is exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..arrays.elementwise import where
from .arithmetic import DIGAMMA_TAIL, STIRLING, fma, polynomial, sin_pi, slow_path
from .complex_gamma import complex_digamma, complex_gamma, complex_loggamma, complex_rgamma
from .formulas import formula
from .operands import special

_LOG_ROOT_TAU = 0.9189385332046727  # log(2 pi) / 2
_ROOT_TAU = 2.5066282746310002

# In 2 (y - 2), for y in 1.5..2.5.
_LGAMMA = (
    *(0.42278433509846713, -0.050158650837176966, 0.008241250155288959, -0.0015480240241709335),
    *(0.0003124150727934668, -6.587908856948172e-05, 1.430276441219686e-05),
    *(-3.169588976392627e-06, 7.130962303634812e-07, -1.6229545557682996e-07),
    *(3.7274374879083245e-08, -8.62314160999568e-09, 2.0071970014794e-09, -4.707414073873874e-10),
    *(1.1062065421231002e-10, -2.5051841561037664e-11, 5.926129300171418e-12),
    *(-1.9267924064320764e-12, 4.59095297373529e-13),
)
# In 2 (y - 1.5), for y in 1..2.
_DIGAMMA = (
    *(0.9510558760318328, -0.2118137106407303, 0.060135621060196744, -0.018550615381735115),
    *(0.005936795278305649, -0.0019350666648590097, 0.0006368880303257201, -0.00021074841140458636),
    *(6.995018873950506e-05, -2.325824239445257e-05, 7.741232223504057e-06, -2.57809436305308e-06),
    *(8.589127353033379e-07, -2.86315275846934e-07, 9.542050972688906e-08, -3.163020268955334e-08),
    *(1.0542687624027994e-08, -3.7075072647122386e-09, 1.2358072433984831e-09),
    *(-2.7619635330317715e-10, 9.206434499177992e-11, -8.498137230186096e-11),
    2.832706668021759e-11,
)
_ROOT = (1.4616321449683622, 9.549995429965697e-17)  # of digamma, as a sum
_FAR = 8.0
_EXP_SMALL = tuple(1 / math.factorial(k) for k in range(9))


def stirling_rest(x: Any) -> Any:
    """lgamma(x) - ((x - 1/2) log x - x + log(2 pi) / 2), for x >= 8."""
    r = 1.0 / x
    return r * polynomial(r * r, STIRLING)


def exp_small(x: Any) -> Any:
    """exp(x) for |x| < 0.03, such as sums of `stirling_rest`."""
    return polynomial(x, _EXP_SMALL)


def _by_polynomial(x: Any) -> tuple[Any, Any, Any]:
    """For -0.5 < x < 8, lgamma(y), p and q with gamma(x) = gamma(y) p / q; y is in 1.5..2.5."""
    one = 1.0 + 0.0 * x
    p = one
    for k in (6.0, 5.0, 4.0, 3.0, 2.0, 1.0):
        p = where(x >= k + 1.5, p * (x - k), p)
    q = where(x < 0.5, x * (x + 1.0), where(x < 1.5, x, one))
    # y - 2, which is exact.
    steps = np.maximum(np.floor(x - 1.5), 0.0)
    d = where(x < 0.5, x, where(x < 1.5, x - 1.0, x - steps - 2.0))
    return fma(d, d, d) * polynomial(2.0 * d, _LGAMMA), p, q


def gamma_near(x: Any) -> Any:
    """gamma(x) for 0 < x < 8."""
    base, p, q = _by_polynomial(x)
    return np.exp(base) * p / q


def lgamma1p_near(x: Any) -> Any:
    """lgamma(1 + x) for |x| <= 1/2, with all its digits near 0."""
    return fma(x, x, x) * polynomial(2.0 * x, _LGAMMA) - np.log1p(x)


def lgamma_right(x: Any) -> Any:
    """For x > -0.5."""
    far = x >= _FAR
    near = where(far, 1.0, x)
    base, p, q = _by_polynomial(near)
    down = near < 1.5
    logarithm = np.log(where(far, x, where(down, abs(q), p)))
    w = where(far, x, _FAR)
    large = fma(w - 0.5, logarithm - 1.0, (_LOG_ROOT_TAU - 0.5) + stirling_rest(w))
    return where(far, large, base + where(down, -logarithm, logarithm))


@special("gammaln", example="10.0 -> 12.80182748008147")
@formula
def lgamma(x: Any) -> Any:
    """The logarithm of the absolute value of the gamma function; infinite at 0, -1, -2, ..."""
    left = x <= -0.5
    right = lgamma_right(where(left, -x, x))

    def reflected(x: Any, right: Any) -> Any:
        return np.log(math.pi / abs(x * sin_pi(x))) - right

    value = where(left, slow_path(left & (x > -math.inf), reflected, x, right), right)
    value = where((x <= 0) & (x == np.floor(x)), math.inf, value)
    return where(np.isinf(x), x, value)


def _slope(x: Any) -> Any:
    return psi(x)


lgamma.defjvps(lambda t, z, x: t * _slope(x))


def gamma_parts(x: Any) -> tuple[Any, Any]:
    """Two factors of gamma(x), for x > -0.5: their product overflows where the function does."""
    far = x >= _FAR
    near = where(far, 1.0, x)
    base, p, q = _by_polynomial(near)
    w = where(far, np.minimum(x, 400.0), _FAR)
    power = np.exp(where(far, -w, base))
    # w ** (w - 1/2) = half ** 2
    half = np.power(w, 0.5 * w - 0.25)
    large = half * (_ROOT_TAU * exp_small(stirling_rest(w)) * power)
    return where(far, large, power * p / q), where(far, half, 1.0)


@special("gamma", of_complex=complex_gamma, example="5.0 -> 24.0")
@formula
def gamma_function(x: Any) -> Any:
    """The gamma function; NaN at -1, -2, ..., an infinity of the sign of x at 0."""
    left = x <= -0.5
    big, half = gamma_parts(where(left, -x, x))

    def reflected(x: Any, big: Any, half: Any) -> Any:
        return -math.pi / (x * sin_pi(x)) / big / half

    value = where(left, slow_path(left, reflected, x, big, half), big * half)
    value = where(x == math.inf, math.inf, value)
    return where((x < 0) & (x == np.floor(x)), math.nan, value)


gamma_function.defjvps(lambda t, z, x: t * (z * _slope(x)))


@special("digamma", "psi", of_complex=complex_digamma, example="1.0 -> -0.5772156649015329")
@formula
def psi(x: Any) -> Any:
    """The derivative of `gammaln`; NaN at -1, -2, ..."""
    left = x < -0.5
    size = where(left, -x, x)
    far = size >= _FAR
    near = where(far, 1.0, size)
    # The sum of 1 / (near - k) as a fraction.
    above, below = 0.0 * near, 1.0 + 0.0 * near
    for k in (6.0, 5.0, 4.0, 3.0, 2.0, 1.0):
        down = near >= k + 1.0
        above = where(down, fma(above, near - k, below), above)
        below = where(down, below * (near - k), below)
    low, lower = near < 1.0, near < 0.0
    y = near - np.maximum(np.floor(near) - 1.0, 0.0)
    y = where(lower, near + 2.0, where(low, near + 1.0, y))
    above = where(lower, -1.0, above)
    below = where(lower, near + 1.0, below)
    base = ((y - _ROOT[0]) - _ROOT[1]) * polynomial(2.0 * (y - 1.5), _DIGAMMA)
    value = base + above / below - where(low, 1.0 / near, 0.0)
    w = where(far, size, _FAR)
    r = 1.0 / (w * w)
    large = np.log(w) - 0.5 / w - r * polynomial(r, DIGAMMA_TAIL)
    value = where(far, large, value)

    def reflected(x: Any, right: Any) -> Any:
        return right - 1.0 / x - math.pi / np.tan(math.pi * (x - np.rint(x)))

    value = where(left, slow_path(left, reflected, x, value), value)
    value = where((x < 0) & (x == np.floor(x)), math.nan, value)
    return where(x == 0, np.copysign(math.inf, -x), value)


@special("rgamma", of_complex=complex_rgamma, example="0.0 -> 0.0")
@formula
def reciprocal_gamma(x: Any) -> Any:
    """1 / gamma(x), which is 0 at 0, -1, -2, ..."""
    left = x <= -0.5
    big, half = gamma_parts(where(left, -x, x))
    reflected = -x * sin_pi(x) / math.pi * big * half
    value = where(left, reflected, 1.0 / big / half)
    return where(x == 0, x, where(x == -math.inf, 0.0, value))


def _reciprocal_slope(z: Any, x: Any) -> Any:
    """-z psi(x); on the left, where psi has poles, the derivative of sin(pi x) gamma(1 - x) / pi."""
    left = x < 0.5
    y = where(left, 1.0 - x, 1.0)
    turn = np.cos(math.pi * np.remainder(x, 2.0)) - sin_pi(x) / math.pi * psi(y)
    return where(left, gamma_function(y) * turn, -z * psi(where(left, 1.0, x)))


reciprocal_gamma.defjvps(lambda t, z, x: t * _reciprocal_slope(z, x))


def is_pole(x: Any) -> Any:
    """Whether gamma has a pole: at 0, -1, -2, ..."""
    return (x <= 0) & (x == np.floor(x))


def times_psi(z: Any, x: Any, others: Callable[..., Any], *arguments: Any) -> Any:
    """z psi(x) for z = others(*arguments) / gamma(x), also at the poles of psi, where z is 0."""
    pole = is_pole(x)
    at_pole = where(pole, x, 0.0)
    slope = _reciprocal_slope(reciprocal_gamma(at_pole), at_pole)
    rest = others(*(where(pole, v, 1.0) for v in arguments))
    return where(pole, -rest * slope, z * psi(where(pole, 1.0, x)))


@special("gammasgn", wide=False, example="-0.5 -> -1.0")
def gammasgn(x: Any) -> Any:
    """The sign of the gamma function: 1 or -1, that of x at 0, and NaN at -1, -2, ..."""
    floor = np.floor(x)
    sign = where((x < 0) & (np.remainder(floor, 2.0) == 1), -1.0, 1.0 + 0.0 * floor)
    sign = where((x < 0) & (x == floor), math.nan, where(x == math.inf, 1.0, sign))
    return where(x == 0, np.copysign(1.0, x), sign)


@special("loggamma", of_complex=complex_loggamma, example="10.0 -> 12.80182748008147")
def loggamma(x: Any) -> Any:
    """The logarithm of gamma, of complex numbers the continuous one; NaN for real numbers below 0."""
    return where(x < 0, math.nan, lgamma(x))
