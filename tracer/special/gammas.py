"""The gamma function, its logarithm and its derivatives; beta.

Where the argument is small, recurrences lead to a unit interval, on which polynomials
interpolate lgamma(y) / ((y - 1) (y - 2)) and digamma(y) / (y - root) at Chebyshev points (relative error
1e-18): what is 0 at 1, at 2 and at the root has all its digits there. From 8 on it is Stirling's series
(NIST DLMF 5.11.1 and 5.11.2), below 0 the reflection (5.5.3 and 5.5.4), written in -x, which is exact.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..custom import custom_jvp
from ..functions.elementwise import where
from .operands import polynomial, sin_pi, special

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
BERNOULLI = (
    *(1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798),
    *(-174611 / 330, 854513 / 138, -236364091 / 2730),
)
_STIRLING = tuple(b / ((2 * k + 2) * (2 * k + 1)) for k, b in enumerate(BERNOULLI[:10]))
_DIGAMMA_TAIL = tuple(b / (2 * k + 2) for k, b in enumerate(BERNOULLI[:10]))
_FAR = 8.0


def stirling_rest(x: Any) -> Any:
    """lgamma(x) - ((x - 1/2) log x - x + log(2 pi) / 2), for x >= 8."""
    r = 1.0 / x
    return r * polynomial(r * r, _STIRLING)


def _by_polynomial(x: Any) -> tuple[Any, Any, Any]:
    """For -0.5 < x < 8, lgamma(y), p and q with gamma(x) = gamma(y) p / q; y is in 1.5..2.5."""
    one = 1.0 + 0.0 * x
    p, q = one, one
    for k in (6.0, 5.0, 4.0, 3.0, 2.0, 1.0):
        down = x >= k + 1.5
        p = where(down, p * (x - k), p)
    steps = np.clip(np.floor(x - 1.5), 0.0, None)
    q = where(x < 0.5, x * (x + 1.0), where(x < 1.5, x, one))
    # y - 2, which is exact.
    d = where(x < 0.5, x, where(x < 1.5, x - 1.0, x - steps - 2.0))
    return (d + 1.0) * d * polynomial(2.0 * d, _LGAMMA), p, q


def _lgamma_right(x: Any) -> Any:
    """For x > -0.5."""
    far = x >= _FAR
    near = where(far, 1.0, x)
    base, p, q = _by_polynomial(near)
    middle = (near >= 0.5) & (near < 1.5)
    small = where(
        middle, base - np.log1p(where(middle, near - 1.0, 0.0)), base + np.log(p) - np.log(abs(q))
    )
    w = where(far, x, _FAR)
    large = (w - 0.5) * (np.log(w) - 1.0) + (_LOG_ROOT_TAU - 0.5) + stirling_rest(w)
    return where(far, large, small)


@custom_jvp
def lgamma(x: Any) -> Any:
    left = x <= -0.5
    right = _lgamma_right(where(left, -x, x))
    sine = abs(sin_pi(where(left, x, 0.5)))
    reflected = np.log(math.pi / sine) - np.log(abs(x)) - right
    found = where(left, reflected, right)
    found = where((x <= 0) & (x == np.floor(x)), math.inf, found)
    return where(np.isinf(x), x, found)


def _slope(x: Any) -> Any:
    return psi(x)


lgamma.defjvps(lambda t, z, x: t * _slope(x))


@custom_jvp
def gamma_function(x: Any) -> Any:
    size = abs(x)
    far = size >= _FAR
    left = x <= -0.5
    base, p, q = _by_polynomial(where(far, 1.0, where(left, -x, x)))
    near = np.exp(base) * p / q
    w = where(far, np.minimum(size, 400.0), _FAR)
    # w ** (w - 1/2) = half ** 2, so that it overflows where the function does.
    half = np.power(w, 0.5 * w - 0.25)
    rest = np.exp(stirling_rest(w)) * _ROOT_TAU * np.exp(-w)
    big = where(far, half * rest, near)
    half = where(far, half, 1.0)
    sine = sin_pi(where(left, x, 0.5))
    reflected = -math.pi / (where(left, x, 1.0) * sine) / big / half
    found = where(left, reflected, big * half)
    found = where(x == math.inf, math.inf, found)
    return where((x < 0) & (x == np.floor(x)), math.nan, found)


gamma_function.defjvps(lambda t, z, x: t * (z * _slope(x)))


@custom_jvp
def psi(x: Any) -> Any:
    left = x < -0.5
    size = where(left, -x, x)
    far = size >= _FAR
    near = where(far, 1.0, size)
    y, rest = near, 0.0 * near
    for k in (6.0, 5.0, 4.0, 3.0, 2.0, 1.0):
        down = near >= k + 1.0
        rest = rest + where(down, 1.0 / where(down, near - k, 1.0), 0.0)
    y = near - np.clip(np.floor(near) - 1.0, 0.0, None)
    low, lower = near < 1.0, near < 0.0
    y = where(lower, near + 2.0, where(low, near + 1.0, y))
    rest = rest - where(lower, 1.0 / (near + 1.0), 0.0)
    base = ((y - _ROOT[0]) - _ROOT[1]) * polynomial(2.0 * (y - 1.5), _DIGAMMA)
    found = base + rest - where(low, 1.0 / near, 0.0)
    w = where(far, size, _FAR)
    r = 1.0 / (w * w)
    large = np.log(w) - 0.5 / w - r * polynomial(r, _DIGAMMA_TAIL)
    found = where(far, large, found)
    turn = where(left, x - np.rint(x), 0.25)
    reflected = found + 1.0 / size - math.pi / np.tan(math.pi * turn)
    found = where(left, reflected, found)
    found = where((x < 0) & (x == np.floor(x)), math.nan, found)
    return where(x == 0, np.copysign(math.inf, -x), found)


def _trigamma(x: Any) -> Any:
    from .zetas import polygamma_of

    return polygamma_of(1.0 + 0.0 * x, x)


psi.defjvps(lambda t, z, x: t * _trigamma(x))


@special("gammaln")
def gammaln(x: Any) -> Any:
    """The logarithm of the absolute value of the gamma function; infinite at 0, -1, -2, ...

    >>> jt.special.gammaln(10.0)
    np.float64(12.801827480081469)
    """
    return lgamma(x)


@special("gammasgn", wide=False)
def gammasgn(x: Any) -> Any:
    """The sign of the gamma function: 1 or -1, that of x at 0, and NaN at -1, -2, ..."""
    floor = np.floor(x)
    sign = where((x < 0) & (np.remainder(floor, 2.0) == 1), -1.0, 1.0 + 0.0 * floor)
    sign = where((x < 0) & (x == floor), math.nan, where(x == math.inf, 1.0, sign))
    return where(x == 0, np.copysign(1.0, x), sign)


@special("gamma")
def gamma(x: Any) -> Any:
    """The gamma function; NaN at -1, -2, ..., an infinity of the sign of x at 0.

    >>> jt.special.gamma(5.0)
    np.float64(24.0)
    """
    return gamma_function(x)


@special("digamma", "psi")
def digamma(x: Any) -> Any:
    """The derivative of `gammaln`; NaN at -1, -2, ..."""
    return psi(x)


@custom_jvp
def log_beta(a: Any, b: Any) -> Any:
    large, small = np.maximum(a, b), np.minimum(a, b)
    total = a + b
    plain = lgamma(large) + lgamma(small) - lgamma(total)
    # Stirling's formula for what is large, its logarithms subtracted before they are multiplied.
    far = (large >= _FAR) & (small > 0) & (total < math.inf)
    x = where(far, large, _FAR)
    y = where(far, small, 1.0)
    s = x + y
    step = stirling_rest(x) - stirling_rest(s) - (x - 0.5) * np.log1p(y / x)
    both = y >= _FAR
    z = where(both, y, _FAR)
    mixed = lgamma(where(both, 1.0, y)) - y * (np.log(s) - 1.0)
    equal = z * np.log(z / (x + z)) - 0.5 * np.log(z) + _LOG_ROOT_TAU + stirling_rest(z)
    return where(far, step + where(both, equal, mixed), plain)


log_beta.defjvps(
    lambda t, z, a, b: t * (psi(a) - psi(a + b)), lambda t, z, a, b: t * (psi(b) - psi(a + b))
)


@custom_jvp
def beta_function(a: Any, b: Any) -> Any:
    direct = (abs(a) < 60) & (abs(b) < 60) & (abs(a + b) > 1e-3)
    x, y = where(direct, a, 1.0), where(direct, b, 1.0)
    product = gamma_function(x) / gamma_function(x + y) * gamma_function(y)
    sign = gammasgn(a) * gammasgn(b) * gammasgn(a + b)
    return where(direct, product, sign * np.exp(log_beta(a, b)))


beta_function.defjvps(
    lambda t, z, a, b: t * (z * (psi(a) - psi(a + b))),
    lambda t, z, a, b: t * (z * (psi(b) - psi(a + b))),
)


@special("betaln")
def betaln(a: Any, b: Any) -> Any:
    """The logarithm of the absolute value of the beta function."""
    return log_beta(a, b)


@special("beta")
def beta(a: Any, b: Any) -> Any:
    """The beta function gamma(a) gamma(b) / gamma(a + b).

    >>> jt.special.beta(2.0, 3.0)
    np.float64(0.08333333333333333)
    """
    return beta_function(a, b)
