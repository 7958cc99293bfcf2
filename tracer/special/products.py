"""What is made of gamma, beta and zeta: reciprocals, factorials, binomials, rising products."""

from __future__ import annotations

import math
import operator
from fractions import Fraction
from typing import Any

import numpy as np

from ..arrays.common import array, check_real
from ..arrays.elementwise import where
from ..arrays.table import function
from .arithmetic import sin_pi
from .betas import beta_function, log_beta
from .formulas import formula
from .gammas import gamma_function, is_pole, lgamma, psi, reciprocal_gamma, times_psi
from .operands import special


def _rising(z: Any, m: Any) -> Any:
    """gamma(z + m) / gamma(z) for m > 0, which is gamma(m) / beta(z, m)."""
    near = m < 150.0
    small = gamma_function(where(near, m, 1.0)) / beta_function(z, where(near, m, 1.0))
    large = where(near, 1.0, m)
    return where(near, small, np.exp(lgamma(large) - log_beta(z, large)))


@special("poch", example="3.0, 2.0 -> 12.000000000000004")
@formula
def rising_factorial(z: Any, m: Any) -> Any:
    """The rising factorial gamma(z + m) / gamma(z)."""
    down = m < 0
    value = _rising(where(down, z + m, z), where(m == 0, 1.0, abs(m)))
    value = where(down, 1.0 / value, value)
    value = where(is_pole(z) & np.logical_not(_whole(m)), 0.0, value)
    return where(m == 0, where(np.isnan(z), z, 1.0), value)


def _whole(x: Any) -> Any:
    return x == np.floor(x)


def _rising_slope(y: Any, z: Any, m: Any) -> Any:
    """y (psi(z + m) - psi(z)); on the left, for whole m, by the reflection, in which poles cancel."""
    left = _whole(m) & (z < 0.5) & (z + m < 0.5)
    x, n = where(left, 1.0, z), where(left, 1.0, m)
    usual = y * psi(x + n) - times_psi(y, x, gamma_function, x + n)
    x, n = where(left, z, 0.25), where(left, m, 0.0)
    sines = sin_pi(x + n) * sin_pi(x)
    # It is 0, but not its derivative by m.
    turn = math.pi * sin_pi(n) / where(sines == 0, 1.0, sines)
    return where(left, y * (psi(1.0 - x - n) - psi(1.0 - x) + turn), usual)


rising_factorial.defjvps(
    lambda t, y, z, m: t * _rising_slope(y, z, m), lambda t, y, z, m: t * (y * psi(z + m))
)


@special("binom", example="5, 2 -> 10.0")
@formula
def binomial(n: Any, k: Any) -> Any:
    """The binomial coefficient of real numbers; NaN for n = -1, -2, ..."""
    value = 1.0 / ((n + 1.0) * beta_function(1.0 + n - k, 1.0 + k))
    whole = _whole(n) & _whole(k)
    value = where(whole & (abs(value) < 1e15), np.rint(value), value)
    return where(_whole(n) & (n < 0), math.nan, value)


def _times_psi_of(y: Any, n: Any, k: Any, other: Any) -> Any:
    """y psi(k + 1) for y, n over k, and other = n - k."""

    def others(n: Any, other: Any) -> Any:
        return gamma_function(n + 1.0) * reciprocal_gamma(other + 1.0)

    return times_psi(y, k + 1.0, others, n, other)


binomial.defjvps(
    lambda t, y, n, k: t * (y * psi(n + 1.0) - _times_psi_of(y, n, n - k, k)),
    lambda t, y, n, k: t * (_times_psi_of(y, n, n - k, k) - _times_psi_of(y, n, k, n - k)),
)


@special("comb", example="5, 2 -> 10.0")
def comb(n: Any, k: Any) -> Any:
    """In how many ways k of n things can be chosen, as a float; 0 unless 0 <= k <= n."""
    inside = (k >= 0) & (k <= n)
    return where(inside, binomial(where(inside, n, 1.0), where(inside, k, 0.0)), 0.0)


@formula
def _factorial(n: Any) -> Any:
    value = gamma_function(n + 1.0)
    return where(_whole(n) & (value < 1e15), np.rint(value), value)


_factorial.defjvps(lambda t, z, n: t * (z * psi(n + 1.0)))


@special("factorial", example="5 -> 120.0")
def factorial(n: Any) -> Any:
    """gamma(n + 1); 0 for n < 0."""
    return where(n < 0, 0.0, _factorial(where(n < 0, 0.0, n)))


@function("special.multigammaln", composed=True)
def multigammaln(a: Any, d: int) -> Any:
    """The logarithm of the multivariate gamma function of dimension d, an int, for a > (d - 1) / 2.

    >>> jt.special.multigammaln(3.0, 1)
    np.float64(0.6931471805599453)
    """
    d = operator.index(d)
    if d < 1:
        raise ValueError(f"multigammaln has a dimension of at least 1, not {d}")
    x = array(a)
    check_real("multigammaln", x)
    wide = x.astype(np.float64)
    total: Any = 0.25 * d * (d - 1) * math.log(math.pi)
    for j in range(d):
        total = total + lgamma(wide - 0.5 * j)
    return total.astype(x.dtype if x.dtype.kind not in "biu" else np.float64)


@function("special.bernoulli", composed=True, creates=True)
def bernoulli(n: int) -> Any:
    """The Bernoulli numbers B0, B1 = -1/2, B2, ..., Bn for an int n >= 0.

    >>> jt.special.bernoulli(3)
    array([ 1.        , -0.5       ,  0.16666667,  0.        ])
    """
    n = operator.index(n)
    if n < 0:
        raise ValueError(f"bernoulli counts from 0, and n is {n}")
    row: list[Fraction] = []
    numbers = []
    for m in range(n + 1):  # Akiyama and Tanigawa's triangle
        row.append(Fraction(1, m + 1))
        for j in range(m, 0, -1):
            row[j - 1] = j * (row[j - 1] - row[j])
        numbers.append(float(row[0]) if m != 1 else -0.5)
    return array(np.array(numbers))
