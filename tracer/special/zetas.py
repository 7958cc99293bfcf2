"""The zeta functions of Riemann and Hurwitz, and the higher derivatives of digamma.

Ten terms are summed, the rest is Euler and Maclaurin's formula (NIST DLMF 25.11.28). Left of 0, for
whole s, what is summed from q on lies on both sides of 0, the last negative term at a distance p:
zeta(s, q) = zeta(s, 1-p) + (-1)**s (zeta(s, p) - zeta(s, 1-q)).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..arrays.elementwise import where
from ..transforms.derivatives import jvp
from .arithmetic import BERNOULLI, sin_pi, slow_path, value_of
from .formulas import formula
from .gammas import gamma_function, gamma_parts, psi
from .operands import special

_TERMS = 10
_TAU_LOW = 2.4492935982947064e-16 / (2 * math.pi)
_LOG_TAU = math.log(2 * math.pi)
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


def _left_of_0(s: Any, q: Any) -> Any:
    """For q < 0 and whole s, what is to be added to zeta(s, 1 - p)."""
    p = -q - (np.ceil(-q) - 1.0)
    other = _series(s, p) - _series(s, 1.0 - q)
    return where(np.remainder(s, 2.0) == 1, -other, other)


def _hurwitz(s: Any, q: Any) -> Any:
    inside = np.minimum(where(s > 1, s, 2.0), 1e300)
    left = q < 0
    start = where(left, 1.0 + q + (np.ceil(-q) - 1.0), where(q > 0, q, 1.0))
    whole = (inside == np.floor(inside)) & (q != np.floor(q))
    value = _series(inside, start) + slow_path(left & whole, _left_of_0, inside, q)
    value = where(left & np.logical_not(whole), math.nan, value)
    value = where((q <= 0) & (q == np.floor(q)), math.inf, value)
    value = where(q == math.inf, 0.0, value)
    value = where(s == 1, math.inf, where(s < 1, math.nan, value))
    return where(np.isnan(s) | np.isnan(q), math.nan, value)


@formula
def hurwitz(s: Any, q: Any) -> Any:
    return _hurwitz(s, q)


def _in_s(t: Any, z: Any, s: Any, q: Any) -> Any:
    return jvp(lambda s: _hurwitz(s, q), (s,), (t,))[1]


hurwitz.defjvps(_in_s, lambda t, z, s, q: t * (-s * hurwitz(s + 1.0, q)))


def _wave(x: Any, wave: Any) -> Any:
    """What `wave` = sin(pi x / 2) makes zeta(x), for x < 0 (DLMF 25.4.1)."""
    big, half = gamma_parts(1.0 - x)
    # What 2 pi lost by rounding is put back.
    power = np.power(2 * math.pi, x) * np.exp(x * _TAU_LOW)
    value = 1.0 + _series(1.0 - x, np.full_like(x, 2.0))
    return power * big / math.pi * wave * half * value


def _reflected(x: Any) -> Any:
    return _wave(x, sin_pi(0.5 * x))


def _riemann(x: Any, less: float) -> Any:
    """zeta(x) - less, for less = 0 or 1."""
    left = x < -0.1  # nearer to 0 the reflection would lose digits to the pole at 1
    s = np.minimum(where(left | (x == 1), 2.0, x), 1e300)
    value = _series(s, np.full_like(x, 2.0))  # zeta(s) - 1
    reflected = slow_path(left & (x > -math.inf), _reflected, x) - less
    value = where(left, reflected, value + (1.0 - less))
    return where(x == 1, math.inf, where(x == -math.inf, math.nan, value))


@formula
def riemann(x: Any) -> Any:
    return _riemann(x, 0.0)


@special("zetac", example="2.0 -> 0.6449340668482265")
@formula
def riemann_less_1(x: Any) -> Any:
    """zeta(x) - 1, with all its digits where that is nearly 0."""
    return _riemann(x, 1.0)


# Left of -2 the slope is not that of the series, but of the reflection: with the factor
# g(x) = (2 pi)**x / pi gamma(1 - x) zeta(1 - x), zeta is S = g sin(pi x / 2), C is g cos(pi x / 2), and
# S' = L S + pi/2 C, C' = L C - pi/2 S for L, the derivative of log g.


@formula
def _turned(x: Any) -> Any:
    """C"""
    return _wave(x, _cos_half_pi(x))


def _cos_half_pi(x: Any) -> Any:
    return sin_pi(0.5 * (x + 1.0))


def _log_slope(x: Any) -> Any:
    s = 1.0 - x
    one = np.ones_like(x)
    return _LOG_TAU - psi(s) - _slope_of_series(s) / (1.0 + _series(s, one + 1.0))


_turned.defjvps(lambda t, z, x: t * (_log_slope(x) * z - 0.5 * math.pi * riemann(x)))


def _slope_of_series(s: Any) -> Any:
    one = np.ones_like(s)
    return jvp(lambda s: _series(s, one), (s,), (one,))[1]


def _riemann_slope(t: Any, z: Any, x: Any) -> Any:
    left = x < -2
    right = _slope_of_series(where(left | (x == 1), 2.0, x))
    y = where(left, x, -3.0)
    reflected = _log_slope(y) * riemann(y) + 0.5 * math.pi * _turned(y)
    return t * where(left, reflected, right)


riemann.defjvps(_riemann_slope)
riemann_less_1.defjvps(_riemann_slope)


@special("zeta", optional=1, example="2.0 -> 1.6449340668482266")
def zeta(x: Any, q: Any = None) -> Any:
    """The sum of (q + k) ** -x over k = 0, 1, ... (Hurwitz); without `q` Riemann's, for all x."""
    return riemann(x) if q is None else hurwitz(x, q)


@formula
def polygamma_of(n: Any, x: Any) -> Any:
    safe = where(n >= 1, n, 1.0)
    value = gamma_function(safe + 1.0) * hurwitz(safe + 1.0, x)
    value = where(np.remainder(safe, 2.0) == 0, -value, value)
    return where(n == 0, psi(x), where((n < 0) | (n != np.floor(n)), math.nan, value))


psi.defjvps(lambda t, z, x: t * polygamma_of(np.ones_like(x), x))
polygamma_of.defjvps(None, lambda t, z, n, x: t * polygamma_of(n + 1.0, x))


@special("polygamma", example="1, 1.0 -> 1.6449340668482264")
def polygamma(n: Any, x: Any) -> Any:
    """The derivative of `digamma` of order n = 0, 1, 2, ..., which is held fixed under derivatives."""
    return polygamma_of(value_of(n), x)
