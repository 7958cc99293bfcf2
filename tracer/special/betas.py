"""The beta function and its logarithm.

Of positive arguments it is Stirling's formula (NIST DLMF 5.11.1), to whose range recurrences lead small
ones. Powers are those of rounded bases, and what rounding took from the bases is put back into an
exponential, so that large exponents cost no digits. With an argument below 0 it is the product of three
gamma functions, or the sum of their logarithms.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..custom import custom_jvp
from ..functions.elementwise import where
from .arithmetic import fma, log1p_rest, repeat, seldom, two_sum
from .gammas import gamma_function, gammasgn, lgamma, lgamma_right, psi, stirling_rest
from .operands import special

_LARGE = 8.0


def _by_stirling(a: Any, b: Any) -> tuple[Any, Any, Any, Any]:
    """p, q, f and e with beta(a, b) = p**a q**b f exp(e), for a, b >= 8."""
    s, s_low = two_sum(a, b)
    p, q = a / s, b / s
    p_low = fma(-p, s, a) - p * s_low
    q_low = fma(-q, s, b) - q * s_low
    rest = stirling_rest(a) + stirling_rest(b) - stirling_rest(s)
    # What rounding took from p and q, times a / p = b / q = s
    return p, q, np.sqrt(2 * math.pi * s / a / b), rest + (p_low + q_low)


def _rising(x: Any, count: Any, most: int) -> Any:
    """x (x + 1) ... (x + count - 1), for count <= most."""
    product = where(count > 0, x, 1.0)
    for k in range(1, most):
        product = where(count > k, product * (x + float(k)), product)
    return product


def _usual(a: Any, b: Any) -> Any:
    """beta of positive numbers, none of them far beyond 8 unless both are."""
    up, more = where(a < _LARGE, 8.0, 0.0), where(b < _LARGE, 8.0, 0.0)
    (x, x_low), (y, y_low) = two_sum(a, up), two_sum(b, more)
    p, q, factor, e = _by_stirling(x, y)
    e = e + x_low * np.log(p) + y_low * np.log(q)
    found = np.power(p, x) * np.power(q, y) * (factor * np.exp(e))
    below = _rising(a, up, 8) * _rising(b, more, 8)
    return found * (_rising(a + b, up + more, 16) / below)


def _one_large(small: Any, large: Any) -> tuple[Any, Any]:
    """s and e with gamma(large) / gamma(large + small) = s**-small exp(e)."""
    s, s_low = two_sum(large, small)
    u = small / large
    rest = 0.5 * u - (large - 0.5) * log1p_rest(u) + stirling_rest(large) - stirling_rest(s)
    return s, rest - small * (s_low / s)


def _apart(small: Any, large: Any) -> Any:
    """beta of a number and a much larger one."""
    s, e = _one_large(small, large)
    return gamma_function(small) * np.power(s, -small) * np.exp(e)


def _log_of_positive(a: Any, b: Any) -> Any:
    """Also where beta itself is no normal number."""
    small, large = np.minimum(a, b), np.maximum(a, b)
    both = small >= _LARGE
    p, q, factor, e = _by_stirling(where(both, small, _LARGE), where(both, large, _LARGE))
    together = small * np.log(p) + large * np.log(q) + (np.log(factor) + e)
    y, one = where(both, 1.0, small), large >= _LARGE
    s, middle = _one_large(y, where(one, large, _LARGE))
    # Where both are small and beta is no normal number, it is 1 / a + 1 / b.
    apart = lgamma_right(y) + where(one, middle - y * np.log(s), np.log1p(y / large))
    return where(both, together, apart)


def _third(k: Any, a: Any, b: Any) -> Any:
    return where(k == 0, a, where(k == 1, b, a + b))


def _of_gammas(a: Any, b: Any) -> Any:
    """gamma(a) gamma(b) / gamma(a + b), for one negative operand: one after the other."""
    near = (abs(a) < 150) & (abs(b) < 150) & (abs(a + b) < 150)
    small, large = np.minimum(a, b), np.maximum(a, b)
    far = (large >= _LARGE) & (a + b >= _LARGE) & (small > -150)

    def factor(state: Any) -> Any:
        k, product, _ = state
        found = gamma_function(where(far, small, _third(k, a, b)))
        found = where(np.isnan(found), math.inf, found)
        product = where(k == 2, product / found, product * found)
        return k + 1.0, product, (k < 2) & near

    s, e = _one_large(where(far, small, 1.0), where(far, large, _LARGE))
    first = where(far, np.power(s, where(far, -small, 0.0)) * np.exp(e), 1.0)
    product = repeat(factor, (0.0 * a, first, near | far))[1]
    # Near a pole of gamma(a + b) what rounding took from the sum counts.
    total, low = two_sum(a, b)
    off = total - np.rint(total)
    product = where(far | (total > 0) | (off == 0), product, product * (1.0 + low / off))

    def logarithm(state: Any) -> Any:
        k, total, sign, _ = state
        x = _third(k, a, b)
        part = where(k == 2, -1.0, 1.0) * lgamma(x)
        return k + 1.0, total + part, sign * gammasgn(x), k < 2

    rest = np.logical_not(near | far)
    _, total, sign, _ = repeat(logarithm, (0.0 * a, 0.0 * a, 0.0 * a + 1.0, rest))
    return where(rest, sign * np.exp(total), product)


def _log_of_gammas(a: Any, b: Any) -> Any:
    found = abs(_of_gammas(a, b))
    normal = (found > 1e-290) & (found < 1e290)

    def logarithm(state: Any) -> Any:
        k, total, _ = state
        part = where(k == 2, -1.0, 1.0) * lgamma(_third(k, a, b))
        return k + 1.0, total + part, k < 2

    total = repeat(logarithm, (0.0 * a, 0.0 * a, np.logical_not(normal)))[1]
    return where(normal, np.log(where(normal, found, 1.0)), total)


def _reflected(a: Any, b: Any) -> tuple[Any, Any, Any, Any]:
    """Operands whose beta has the same size, its sign, and where it is infinite.

    For whole a <= 0 and b > 0 with a + b < 1 it is (-1)**b beta(1 - a - b, b), as in Cephes.
    """
    infinite, sign = a != a, 1.0
    for _ in range(2):
        whole = (a <= 0) & (a == np.floor(a))
        other = (b == np.floor(b)) & (b > 0) & (1.0 - a - b > 0)
        sign = where(whole & (np.remainder(b, 2.0) == 1), -sign, sign)
        infinite = infinite | whole & np.logical_not(other)
        a, b = b, where(whole & other, 1.0 - a - b, a)
    return a, b, sign, infinite


def _of_positive(a: Any, b: Any) -> Any:
    small, large = np.minimum(a, b), np.maximum(a, b)
    far = (large > 1e9) & (small < _LARGE)
    found = _usual(small, where(far, _LARGE, large))
    return where(far, seldom(far, _apart, small, large), found)


@custom_jvp
def beta_function(a: Any, b: Any) -> Any:
    x, y, sign, infinite = _reflected(a, b)
    right = (x > 0) & (y > 0)
    found = _of_positive(where(right, x, 1.0), where(right, y, 1.0))
    other = seldom(np.logical_not(right | infinite), _of_gammas, x, y)
    found = where(infinite, math.inf, sign * where(right, found, other))
    found = where((a > 0) & (b > 0) & np.isinf(a + b), 0.0, found)
    return where(np.isnan(a) | np.isnan(b), math.nan, found)


@custom_jvp
def log_beta(a: Any, b: Any) -> Any:
    x, y, _, infinite = _reflected(a, b)
    right = (x > 0) & (y > 0)
    p, q = where(right, x, 1.0), where(right, y, 1.0)
    small, large = np.minimum(p, q), np.maximum(p, q)
    usual = ((large < 300) | (small > _LARGE) & (large < 1e9)) & (small > 1e-290)
    direct = _usual(where(usual, small, 1.0), where(usual, large, 1.0))
    normal = usual & (direct > 1e-290)
    far = seldom(np.logical_not(normal), _log_of_positive, p, q)
    found = where(normal, np.log(where(normal, direct, 1.0)), far)
    other = seldom(np.logical_not(right | infinite), _log_of_gammas, x, y)
    found = where(infinite, math.inf, where(right, found, other))
    found = where((a > 0) & (b > 0) & np.isinf(a + b), -math.inf, found)
    return where(np.isnan(a) | np.isnan(b), math.nan, found)


beta_function.defjvps(
    lambda t, z, a, b: t * (z * (psi(a) - psi(a + b))),
    lambda t, z, a, b: t * (z * (psi(b) - psi(a + b))),
)
log_beta.defjvps(
    lambda t, z, a, b: t * (psi(a) - psi(a + b)), lambda t, z, a, b: t * (psi(b) - psi(a + b))
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
