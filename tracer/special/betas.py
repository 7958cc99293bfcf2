"""The beta function and its logarithm.

Of positive arguments it is Stirling's formula (NIST DLMF 5.11.1), to whose range recurrences lead small
ones. Powers are those of rounded bases, and what rounding took from the bases is put back into an
exponential, so that large exponents cost no digits. With arguments below 0, beta is that of others above
0, or 1 over it, times sines (the reflection of gamma, 5.5.3).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..arrays.elementwise import where
from .arithmetic import fma, log1p_rest, sin_pi, slow_path, two_sum
from .formulas import formula
from .gammas import gamma_function, lgamma_right, psi, stirling_rest, times_psi
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


def usual_beta(a: Any, b: Any) -> Any:
    """beta of positive numbers a <= b, none of them far beyond 8 unless both are."""
    up, more = where(a < _LARGE, 8.0, 0.0), where(b < _LARGE, 8.0, 0.0)
    (x, x_low), (y, y_low) = two_sum(a, up), two_sum(b, more)
    p, q, factor, e = _by_stirling(x, y)
    e = e + x_low * np.log(p) + y_low * np.log(q)
    value = np.power(p, x) * np.power(q, y) * (factor * np.exp(e))
    risen = _rising(a + b, up + more, 16) / _rising(b, more, 8)
    return value * (risen / _rising(a, up, 8))


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


def log_of_positive(a: Any, b: Any) -> Any:
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


def _of_positive(small: Any, large: Any) -> Any:
    far = (large > 1e9) & (small < _LARGE)
    value = usual_beta(small, where(far, _LARGE, large))
    return where(far, slow_path(far, _apart, small, large), value)


def _reflection(small: Any, large: Any) -> Any:
    """What stands before beta of `_positive` operands, or before 1 over it, for small < 0."""
    total, low = two_sum(small, large)
    nearest = np.rint(total)
    sine = np.sin(math.pi * ((total - nearest) + low))
    sine = where(np.remainder(nearest, 2.0) == 1, -sine, sine)
    under = sin_pi(small)
    between = where(under == 0, where(np.remainder(large, 2.0) == 1, -1.0, 1.0), sine / under)
    both = math.pi * sine / (under * sin_pi(large) * (1.0 - total))
    value = where(total < 1, between, math.pi / (under * large))
    return where(large < 0, both, value)


def _infinite(small: Any, large: Any) -> Any:
    """Whole small <= 0, unless large is whole, too, and small + large < 1."""
    whole = large == np.floor(large)
    pole = (small <= 0) & (small == np.floor(small))
    pole = pole & np.logical_not(whole & (large > 0) & (small < 0) & (small + large < 1))
    return pole | (large <= 0) & whole


def _positive(small: Any, large: Any) -> tuple[Any, Any, Any, Any]:
    """Whether beta of (small, large) is infinite; else positive operands, in order, whose beta gives
    it, and whether it is 1 over that."""
    infinite = _infinite(small, large)
    small, large = where(infinite, 1.0, small), where(infinite, 1.0, large)
    total, low = two_sum(small, large)
    left, both = small < 0, large < 0
    turned = left & np.logical_not(both) & (total < 1)
    x = where(left, where(turned, (1.0 - total) - low, 1.0 - small), small)
    y = where(left & np.logical_not(turned), where(both, 1.0 - large, total), large)
    return infinite, np.minimum(x, y), np.maximum(x, y), left & np.logical_not(turned)


@special("beta", example="2.0, 3.0 -> 0.08333333333333331")
@formula
def beta_function(a: Any, b: Any) -> Any:
    """The beta function gamma(a) gamma(b) / gamma(a + b)."""
    small, large = np.minimum(a, b), np.maximum(a, b)
    infinite, p, q, inverse = _positive(small, large)
    value = _of_positive(p, q)
    left = (small < 0) & np.logical_not(infinite)
    factor = slow_path(left, _reflection, small, large)
    value = where(left, factor * where(inverse, 1.0 / value, value), value)
    value = where(infinite, math.inf, value)
    value = where((a > 0) & (b > 0) & np.isinf(a + b), 0.0, value)
    return where(np.isnan(a) | np.isnan(b), math.nan, value)


@special("betaln", example="2.0, 3.0 -> -2.4849066497880004")
@formula
def log_beta(a: Any, b: Any) -> Any:
    """The logarithm of the absolute value of the beta function."""
    small, large = np.minimum(a, b), np.maximum(a, b)
    infinite, p, q, inverse = _positive(small, large)
    usual = ((q < 300) | (p > _LARGE) & (q < 1e9)) & (p > 1e-290)
    direct = usual_beta(where(usual, p, 1.0), where(usual, q, 1.0))
    normal = usual & (direct > 1e-290)
    far = slow_path(np.logical_not(normal), log_of_positive, p, q)
    value = where(normal, np.log(where(normal, direct, 1.0)), far)
    left = (small < 0) & np.logical_not(infinite)
    factor = np.log(abs(slow_path(left, _reflection, small, large)))
    value = where(left, factor + where(inverse, -value, value), value)
    value = where(infinite, math.inf, value)
    value = where((a > 0) & (b > 0) & np.isinf(a + b), -math.inf, value)
    return where(np.isnan(a) | np.isnan(b), math.nan, value)


def _beta_in_a(z: Any, a: Any, b: Any) -> Any:
    def others(a: Any, b: Any) -> Any:
        return gamma_function(a) * gamma_function(b)

    return z * psi(a) - times_psi(z, a + b, others, a, b)


beta_function.defjvps(
    lambda t, z, a, b: t * _beta_in_a(z, a, b), lambda t, z, a, b: t * _beta_in_a(z, b, a)
)
log_beta.defjvps(
    lambda t, z, a, b: t * (psi(a) - psi(a + b)), lambda t, z, a, b: t * (psi(b) - psi(a + b))
)
