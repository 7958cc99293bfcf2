"""The zeta functions of Riemann and Hurwitz, and the higher derivatives of digamma.

Ten terms are summed, the rest is Euler and Maclaurin's formula (NIST DLMF 25.11.28). Left of 0, for
whole s, what is summed from q on lies on both sides of 0, the last negative term at a distance p:
zeta(s, q) = zeta(s, 1-p) + (-1)**s (zeta(s, p) - zeta(s, 1-q)).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..custom import custom_jvp
from ..functions.elementwise import where
from .arithmetic import sin_pi, value_of
from .gammas import BERNOULLI, gamma_function, lgamma, psi
from .operands import special

_TERMS = 10
_CORRECTIONS = tuple(b / math.factorial(2 * k + 2) for k, b in enumerate(BERNOULLI))


def _series(s: Any, q: Any) -> Any:
    """For q > 0 and s != 1; it continues to s > -20."""
    total = np.power(q, -s)
    for k in range(1, _TERMS):
        total = total + np.power(q + k, -s)
    a = q + _TERMS
    last = np.power(a, -s)
    total = total + last * (a / (s - 1.0) + 0.5)
    term = last * (s / a)
    for k, c in enumerate(_CORRECTIONS):
        total = total + c * term
        term = term * ((s + (2 * k + 1)) / a) * ((s + (2 * k + 2)) / a)
    return total


def _hurwitz(s: Any, q: Any) -> Any:
    inside = np.minimum(where(s > 1, s, 2.0), 1e300)
    left = q < 0
    p = where(left, -q - (np.ceil(-q) - 1.0), 0.5)
    found = _series(inside, where(left, 1.0 - p, where(q > 0, q, 1.0)))
    other = _series(inside, p) - _series(inside, where(left, 1.0 - q, 1.0))
    whole = inside == np.floor(inside)
    signed = where(np.remainder(inside, 2.0) == 1, -other, other)
    found = where(left, where(whole, found + signed, math.nan), found)
    found = where((q <= 0) & (q == np.floor(q)), math.inf, found)
    found = where(q == math.inf, 0.0, found)
    found = where(s == 1, math.inf, where(s < 1, math.nan, found))
    return where(np.isnan(s) | np.isnan(q), math.nan, found)


@custom_jvp
def hurwitz(s: Any, q: Any) -> Any:
    return _hurwitz(s, q)


def _in_s(t: Any, z: Any, s: Any, q: Any) -> Any:
    from ..transforms import jvp

    return jvp(lambda s: _hurwitz(s, q), (s,), (t,))[1]


hurwitz.defjvps(_in_s, lambda t, z, s, q: t * (-s * hurwitz(s + 1.0, q)))


def _riemann(s: Any) -> Any:
    """For s < 1: continued, and from 0 to the left reflected (DLMF 25.4.1)."""
    left = s < 0
    r = where(left, 1.0 - s, where(s < 1, s, 0.5))
    found = _series(r, 1.0 + 0.0 * r)
    x = where(left, s, -1.0)
    power = np.exp(lgamma(1.0 - x) + x * math.log(2 * math.pi))
    return where(left, power / math.pi * sin_pi(0.5 * x) * found, found)


@special("zeta", optional=1)
def zeta(x: Any, q: Any = None) -> Any:
    """The sum of (q + k) ** -x over k = 0, 1, ... (Hurwitz); without `q` Riemann's, for all x.

    >>> jt.special.zeta(2.0)
    np.float64(1.6449340668482264)
    """
    if q is not None:
        return hurwitz(x, q)
    right = hurwitz(where(x < 1, 2.0, x), 1.0 + 0.0 * x)
    return where(x < 1, _riemann(where(x < 1, x, 0.5)), right)


@custom_jvp
def polygamma_of(n: Any, x: Any) -> Any:
    safe = where(n >= 1, n, 1.0)
    found = gamma_function(safe + 1.0) * hurwitz(safe + 1.0, x)
    found = where(np.remainder(safe, 2.0) == 0, -found, found)
    return where(n == 0, psi(x), where((n < 0) | (n != np.floor(n)), math.nan, found))


polygamma_of.defjvps(None, lambda t, z, n, x: t * polygamma_of(n + 1.0, x))


@special("polygamma")
def polygamma(n: Any, x: Any) -> Any:
    """The derivative of `digamma` of order n = 0, 1, 2, ..., which is held fixed under derivatives.

    >>> jt.special.polygamma(1, 1.0)
    np.float64(1.6449340668482264)
    """
    return polygamma_of(value_of(n), x)
