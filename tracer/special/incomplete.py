"""The incomplete gamma and beta functions.

Each element sums a series or a continued fraction of its own for as long as it needs: gamma by NIST DLMF
8.11.4 below a + 1 and 8.9.2 from there, beta by the fraction 8.17.22 on the side of the mean where it
converges fast. For large parameters the factor in front is computed relative to its largest value, so
that no digits are lost in differences of large logarithms.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from ..arrays.elementwise import where
from ..transforms.derivatives import jvp
from .arithmetic import (
    Pair,
    each,
    exp_pair,
    fast_two_sum,
    fma,
    lentz,
    log1p_rest,
    log_pair,
    pair_product,
    pair_sum,
    polynomial,
    quotient,
    repeat,
    slow_path,
    two_product,
    two_sum,
    value_of,
)
from .betas import log_beta, log_of_positive, usual_beta
from .error_functions import scaled_complement
from .formulas import formula
from .gammas import exp_small, gamma_near, lgamma, lgamma1p_near, stirling_rest
from .operands import special

_DONE = 1e-16
_LARGE = 8.0
_ARTANH = tuple(1 / k for k in range(3, 14, 2))


def _temme() -> tuple[float, ...]:
    """g = eta / (lambda - 1) in powers of eta, for eta**2 / 2 = lambda - 1 - log(lambda).

    Then g - eta g' = g**3 + eta g**2, which gives one coefficient after the other, exactly.
    """
    g: list[Any] = [Fraction(1)]
    for k in range(1, 27):
        g.append(Fraction(0))
        square = [sum(g[i] * g[m - i] for i in range(m + 1)) for m in range(k + 1)]
        cube = sum(g[i] * square[k - i] for i in range(k + 1))
        g[k] = (cube + square[k - 1]) / (1 - k - 3)
    return tuple(float(c) for c in g)


_TEMME = _temme()


def _exponent(a: Any, x: Any) -> Any:
    """a log(x / a) - (x - a) as a pair, for a >= 8: what the density is to its peak."""
    (d, d_low), (s, s_low) = two_sum(x, -a), two_sum(x, a)
    near = abs(d) < 0.02 * a
    # With v = d / s, log(x / a) = 2 artanh(v) and 2 a v = d - d v.
    v = d / s
    v_low = (fma(-v, s, d) + (d_low - v * s_low)) / s
    p, p_low = two_product(d, v)
    p_low = fma(d, v_low, fma(d_low, v, p_low))
    w = where(near, v, 0.0)
    square = w * w
    close = two_sum(2.0 * a * w * square * polynomial(square, _ARTANH), -p)
    scaled = pair_product(log_pair(quotient((x, 0.0), a)), a)
    apart = pair_sum(scaled, (-d, -d_low))
    return where(near, close[0], apart[0]), where(near, close[1] - p_low, apart[1])


def _near_peak(a: Any, x: Any, e: Any) -> Any:
    """The smaller of both functions over exp(e), by Temme's expansion (DLMF 8.12).

    Its sum is evaluated as by Gil, Segura and Temme (SIAM J. Sci. Comput. 34, 2012).
    """
    eta = np.copysign(np.sqrt(np.maximum(-2.0 * e / a, 0.0)), x - a)
    over = 1.0 / a
    b = {25: _TEMME[26] + 0.0 * a, 24: _TEMME[25] + 0.0 * a}
    for m in range(24, 0, -1):
        b[m - 1] = fma((m + 1.0) * b[m + 1], over, _TEMME[m])
    total = b[24]
    for m in range(23, -1, -1):
        total = fma(total, eta, b[m])
    rest = total / fma(b[1], over, 1.0) * np.sqrt(over / (2 * math.pi))
    root = np.sqrt(np.maximum(-e, 0.0))
    return 0.5 * scaled_complement(root) + where(x >= a, rest, -rest)


def _upper_near_0(a: Any, x: Any) -> Any:
    """The upper function for small a and x, where it is nearly 0."""
    y = a * np.log(x) - lgamma1p_near(a)
    total = 0.0 * x
    for k in range(18, 0, -1):
        total = (total + a / (a + k)) * (-x / k)
    return -np.expm1(y) - np.exp(y) * total


def _gamma_density(a: Any, x: Any) -> Any:
    """x**a exp(-x) / gamma(a), for finite positive numbers."""
    large = a >= _LARGE
    b = where(large, a, _LARGE)
    u = (x - b) / b
    peak = np.sqrt(b / (2 * math.pi)) * np.exp(b * log1p_rest(where(large, u, 0.0)))
    peak = peak * np.exp(-stirling_rest(b))
    s = where(large, 1.0, a)
    return where(large, peak, np.exp(s * np.log(x) - x - lgamma(s)))


def _lower_sum(a: Any, x: Any, going: Any) -> Any:
    """1/a + x / (a (a + 1)) + ..."""

    def step(state: Any) -> Any:
        n, term, total, _ = state
        term = term * (x / (a + n))
        total = total + term
        return n + 1.0, term, total, (term > _DONE * 0.1 * total) & (n < 1e6)

    return repeat(step, (0.0 * a + 1.0, 1.0 / a, 1.0 / a, going))[2]


def _upper_fraction(a: Any, x: Any, going: Any, differentiated: bool = False) -> Any:
    def terms(n: Any) -> Any:
        return n * (a - n), x + (2.0 * n + 1.0) - a

    def size(n: Any) -> Any:
        return n * np.maximum(abs(value_of(a) - n), 1.0)

    return 1.0 / lentz(x + 1.0 - a, terms, going, size if differentiated else None)


def _with_edges(a: Any, x: Any, value: Any, first: float, last: float) -> Any:
    """`value`, but for operands that are 0, infinite or outside."""
    value = where((x == 0) | (a == math.inf), first, value)
    value = where((a == 0) | (x == math.inf), last, value)
    both = ((a == 0) & (x == 0)) | ((a == math.inf) & (x == math.inf))
    bad = (a < 0) | (x < 0) | both | np.isnan(a) | np.isnan(x)
    return where(bad, math.nan, value)


def _incomplete_gamma(a: Any, x: Any, upper: bool) -> Any:
    usual = (a > 0) & (x > 0) & (a < math.inf) & (x < math.inf)
    p, y = where(usual, a, 1.0), where(usual, x, 1.0)
    below = y < p + 1.0
    density = _gamma_density(p, y)
    low = density * each(_lower_sum, p, where(below, y, 0.5 * p), usual & below)
    fraction = partial(_upper_fraction, differentiated=True)
    high = density * each(fraction, where(below, 1.0, p), where(below, 3.0, y), usual & ~below)
    if upper:
        value = where(below, 1.0 - low, high)
    else:
        value = where(below, low, 1.0 - high)
    first, last = (1.0, 0.0) if upper else (0.0, 1.0)
    return _with_edges(a, x, value, first, last)


def _accurate_gamma(a: Any, x: Any, upper: bool) -> Any:
    """As `_incomplete_gamma`, with the digits of tails, and without loops near the peak."""
    usual = (a > 0) & (x > 0) & (a < math.inf) & (x < math.inf)
    p, y = where(usual, a, 1.0), where(usual, x, 1.0)
    large = p >= _LARGE
    b = where(large, p, _LARGE)
    e = _exponent(b, where(large, y, b))
    grown = exp_pair(e)
    peaked = (b >= 20.0) & (-2.0 * e[0] < b)
    tail = grown * _near_peak(
        where(peaked, b, 20.0), where(peaked, y, 20.0), where(peaked, e[0], 0.0)
    )
    s = where(large, 1.0, p)
    root = np.exp(-0.5 * np.minimum(y, 1e4))
    other = np.power(y, s) * root / gamma_near(s) * root
    density = where(large, np.sqrt(b / (2 * math.pi)) * exp_small(-stirling_rest(b)) * grown, other)
    tiny = (p < 0.5) & (y < 1.1)
    below = (y < p + 1.0) & ((p >= 0.5) | tiny)
    summed = usual & np.logical_not(peaked)
    low = density * each(_lower_sum, p, where(below, y, 0.5 * p), summed & below)
    high = density * each(
        _upper_fraction, where(below, 1.0, p), where(below, 3.0, y), summed & np.logical_not(below)
    )
    left = where(peaked, y < p, below)
    part = where(peaked, tail, where(below, low, high))
    value = where(left, 1.0 - part, part) if upper else where(left, part, 1.0 - part)
    if upper:
        value = where(tiny, slow_path(tiny & usual, _upper_near_0, p, y), value)
    first, last = (1.0, 0.0) if upper else (0.0, 1.0)
    return _with_edges(a, x, value, first, last)


@special("gammainc", example="1.0, 1.0 -> 0.6321205588285578")
@formula
def lower_gamma(a: Any, x: Any) -> Any:
    """The integral of t**(a - 1) exp(-t) / gamma(a) from 0 to x, for a and x of at least 0."""
    return _accurate_gamma(a, x, False)


@special("gammaincc", example="1.0, 1.0 -> 0.3678794411714422")
@formula
def upper_gamma(a: Any, x: Any) -> Any:
    """1 - gammainc(a, x), with all its digits where that is nearly 1."""
    return _accurate_gamma(a, x, True)


def _gamma_slope(a: Any, x: Any) -> Any:
    """d/dx of the lower function."""
    inside = (a > 0) & (x > 0) & (x < math.inf)
    density = _gamma_density(where(inside, a, 1.0), where(inside, x, 1.0))
    at_0 = where(a < 1, math.inf, where(a == 1, 1.0, 0.0))
    return where(inside, density / where(inside, x, 1.0), where(x == 0, at_0, 0.0))


def _in_a(function: Callable[..., Any]) -> Callable[..., Any]:
    """The derivative by a parameter: that of the sum or the fraction, term by term."""

    def rule(t: Any, z: Any, a: Any, *others: Any) -> Any:
        return jvp(lambda a: function(a, *others), (a,), (t,))[1]

    return rule


lower_gamma.defjvps(
    _in_a(lambda a, x: _incomplete_gamma(a, x, False)), lambda t, z, a, x: t * _gamma_slope(a, x)
)
upper_gamma.defjvps(
    _in_a(lambda a, x: _incomplete_gamma(a, x, True)), lambda t, z, a, x: -t * _gamma_slope(a, x)
)


def _beta_density(a: Any, b: Any, x: Any, y: Any) -> Any:
    """x**a y**b / beta(a, b), for y = 1 - x inside of 0..1."""
    large = (a >= _LARGE) & (b >= _LARGE)
    p, q = where(large, a, _LARGE), where(large, b, _LARGE)
    s = p + q
    off = where(large, x * q - y * p, 0.0)
    peak = np.sqrt(p / (2 * math.pi) * (q / s))
    peak = peak * np.exp(p * log1p_rest(off / p) + q * log1p_rest(-off / q))
    peak = peak * np.exp(stirling_rest(s) - stirling_rest(p) - stirling_rest(q))
    a, b = where(large, 1.0, a), where(large, 1.0, b)
    return where(large, peak, np.exp(a * np.log(x) + b * np.log(y) - log_beta(a, b)))


def _beta_peak(a: Any, b: Any, x: Any, y: Pair) -> Any:
    """The density for a, b >= 8, relative to its largest value; the exponents are pairs."""
    s, s_low = two_sum(a, b)
    p, p_low = two_product(x, s)
    q, q_low = two_product(y[0], s)
    q_low = q_low + fma(y[1], s, y[0] * s_low)
    first = pair_product(log_pair(quotient((p, fma(x, s_low, p_low)), a)), a)
    second = pair_product(log_pair(quotient((q, q_low), b)), b)
    rest = stirling_rest(s) - stirling_rest(a) - stirling_rest(b)
    return (
        np.sqrt(a / (2 * math.pi) * (b / s)) * exp_small(rest) * exp_pair(pair_sum(first, second))
    )


def _beta_slope_factor(a: Any, b: Any, x: Any, y: Pair) -> Any:
    """x**a y**b / beta(a, b), with the digits of its tails."""
    large = (a >= _LARGE) & (b >= _LARGE)
    swapped = a > b
    n, m = where(swapped, a, b), where(swapped, b, a)
    far = (n > 1e9) & (m < _LARGE)
    p, q = where(large, a, _LARGE), where(large, b, _LARGE)
    peak = _beta_peak(
        p, q, where(large, x, 0.5), (where(large, y[0], 0.5), where(large, y[1], 0.0))
    )
    n, m = where(large | far, 1.0, n), where(large, 1.0, m)
    base, other = where(swapped, x, y[0]), where(swapped, y[0], x)
    # Half of the larger power at a time, so that nothing underflows too early.
    half = np.power(base, 0.5 * n)
    lost = (y[1] / y[0]) * where(swapped, m, n)
    product = half * (np.power(other, m) / usual_beta(np.minimum(m, n), np.maximum(m, n))) * half

    def logarithmic(a: Any, b: Any, x: Any, y: Any) -> Any:
        return np.exp(a * np.log(x) + b * np.log(y) - log_of_positive(a, b))

    value = where(large, peak, fma(product, lost, product))
    return where(far, slow_path(far, logarithmic, a, b, x, y[0]), value)


def _beta_fraction(a: Any, b: Any, x: Any, y: Any, going: Any, differentiated: bool = False) -> Any:
    """The fraction of 8.17.22, whose odd and even terms are taken together."""
    off = a * y - b * x  # a - (a + b) x, without its cancellation

    def under(m: Any) -> Any:
        before = a + 2.0 * m
        even = m * (b - m) * x / where(m == 0, 1.0, before - 1.0)
        return m + even + (a + m) * (off + 1.0 + m * (1.0 + y)) / (before + 1.0)

    def terms(m: Any) -> Any:
        before = (a + 2.0 * m) - 1.0
        return (a + m - 1.0) * (a + b + m - 1.0) * m * (b - m) * x * x / (before * before), under(m)

    def size(m: Any) -> Any:
        p, q, u = value_of(a), value_of(b), value_of(x)
        before = (p + 2.0 * m) - 1.0
        others = abs((p + m - 1.0) * (p + q + m - 1.0)) * m * u * u / (before * before)
        return others * np.maximum(abs(q - m), 1.0)

    return 1.0 / lentz(under(0.0 * a), terms, going, size if differentiated else None)


def _incomplete_beta(a: Any, b: Any, x: Any, upper: bool, accurate: bool = False) -> Any:
    """By parameters it is differentiated as it stands, unless it is `accurate`."""
    usual = (a > 0) & (b > 0) & (x > 0) & (x < 1) & (a < math.inf) & (b < math.inf)
    p, q, u = where(usual, a, 1.0), where(usual, b, 1.0), where(usual, x, 0.5)
    v, v_low = fast_two_sum(1.0, -u)
    if accurate:
        density = _beta_slope_factor(p, q, u, (v, v_low))
    else:
        density = _beta_density(p, q, u, v)
    swapped = u * (p + q) > p
    left, right = where(swapped, q, p), where(swapped, p, q)
    fraction = partial(_beta_fraction, differentiated=not accurate)
    tail = density * each(fraction, left, right, where(swapped, v, u), where(swapped, u, v), usual)
    value = where(swapped, tail, 1.0 - tail) if upper else where(swapped, 1.0 - tail, tail)
    first, last = (1.0, 0.0) if upper else (0.0, 1.0)
    value = where((x == 0) | (b == 0) & (x < 1) | (a == math.inf), first, value)
    value = where((x == 1) | (a == 0) & (x > 0) | (b == math.inf), last, value)
    bad = (a < 0) | (b < 0) | (x < 0) | (x > 1) | np.isnan(a) | np.isnan(b) | np.isnan(x)
    bad = bad | ((a == 0) & (b == 0)) | ((a == math.inf) & (b == math.inf))
    return where(bad, math.nan, value)


@special("betainc", example="1.0, 2.0, 0.5 -> 0.7499999999999999")
@formula
def lower_beta(a: Any, b: Any, x: Any) -> Any:
    """The integral of t**(a - 1) (1 - t)**(b - 1) / beta(a, b) from 0 to x."""
    return _incomplete_beta(a, b, x, False, accurate=True)


@special("betaincc", example="1.0, 2.0, 0.5 -> 0.2500000000000001")
@formula
def upper_beta(a: Any, b: Any, x: Any) -> Any:
    """1 - betainc(a, b, x), with all its digits where that is nearly 1."""
    return _incomplete_beta(a, b, x, True, accurate=True)


def _beta_slope(a: Any, b: Any, x: Any) -> Any:
    """d/dx of the lower function."""
    inside = (a > 0) & (b > 0) & (x > 0) & (x < 1)
    u = where(inside, x, 0.5)
    density = _beta_density(where(inside, a, 1.0), where(inside, b, 1.0), u, 1.0 - u)
    at_0 = where(a < 1, math.inf, where(a == 1, b, 0.0))
    at_1 = where(b < 1, math.inf, where(b == 1, a, 0.0))
    edge = where(x == 0, at_0, where(x == 1, at_1, 0.0))
    return where(inside, density / (u * (1.0 - u)), edge)


for _function, _upper in ((lower_beta, False), (upper_beta, True)):
    _sign = -1.0 if _upper else 1.0
    _function.defjvps(
        _in_a(lambda a, b, x, upper=_upper: _incomplete_beta(a, b, x, upper)),
        lambda t, z, a, b, x, upper=_upper: _in_a(lambda b, a, x: _incomplete_beta(a, b, x, upper))(
            t, z, b, a, x
        ),
        lambda t, z, a, b, x, sign=_sign: t * (sign * _beta_slope(a, b, x)),
    )
