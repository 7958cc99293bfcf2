"""The exponential integrals Ei, E1 and E_n.

Up to 1, E1 is its power series (NIST DLMF 6.6.2); then x exp(x) E1(x) is a polynomial in
(x - 4) / (x + 4). Up to 6, Ei is log(x / root) + (x - root) P(x), so that what is 0 at the root has all
its digits there; then x exp(-x) Ei(x) is a polynomial in 1 / x on each of four intervals. All of them
interpolate at Chebyshev points. E_n is its power series (8.19.8) for small x and n, else the fraction
8.19.17.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..arrays.elementwise import where
from .arithmetic import each, lentz, polynomial, repeat, value_of
from .formulas import formula
from .operands import special

_ROOT = (0.3725074107813666, 1.3140183414386028e-17)  # of Ei, as a sum
_SERIES = tuple((-1) ** k / (k * math.factorial(k)) for k in range(1, 19))
_E1_FAR = (
    *(0.8716057754033214, 0.16873404637208253, -0.057547593406493056, 0.02502202505268507),
    *(-0.011645166931575112, 0.005778887403930787, -0.0029750841532486735, 0.0015813866048540745),
    *(-0.0008599286081014411, 0.0004768997669714812, -0.0002685952802315041),
    *(0.00015332934438013973, -8.851164167448463e-05, 5.157605999745042e-05),
    *(-3.030647086369548e-05, 1.8081300796638162e-05, -1.0849794115388946e-05),
    *(5.963128052292403e-06, -3.3623911442331783e-06, 3.7575717619072225e-06),
    *(-2.88452495756787e-06, -2.3654333718574543e-06, 2.6108831519651473e-06),
    *(5.963204170748945e-06, -5.388663678960469e-06, -7.261029549290509e-06, 6.399704298204051e-06),
    *(7.2478424033802476e-06, -6.073385244461127e-06, -5.054607212626952e-06),
    *(4.080052913873928e-06, 2.464417276731025e-06, -1.9143010109942766e-06),
    *(-7.358511225503847e-07, 5.526271822884139e-07, 1.0769029604609287e-07),
    *(-7.795693108212281e-08,),
)
_EI_NEAR = (
    *(2.986772243435986, 3.8535675550242976, 3.434770585137441, 2.321720096290807),
    *(1.2664576815080542, 0.5800776053970588, 0.2292554580841337, 0.07974156050117806),
    *(0.024780457941105134, 0.006961836132245683, 0.0017851254499828683, 0.0004210737592063814),
    *(9.197224255094417e-05, 1.870697023620385e-05, 3.5604015677784285e-06, 6.367638413505793e-07),
    *(1.074275183904224e-07, 1.7147400761521173e-08, 2.5855149518422466e-09, 3.728421679747486e-10),
    *(5.6375638000251275e-11, 7.38317527704348e-12),
)
_EI_6 = (
    *(1.181847986987208, 0.09097863630348527, 0.010157308753614763, -0.0033533886601637953),
    *(-0.0011258914511364376, 0.00037313842207910834, 4.205947124099479e-05),
    *(-4.555115229885419e-05, 9.19663897399702e-06, 1.4333324553230886e-06),
    *(-1.4452260551969772e-06, 4.2455156703800657e-07, -2.9677345061659614e-08),
    *(-3.06088000805111e-08, 1.6870987483786506e-08, -4.699151180010123e-09, 5.397253375230443e-10),
    *(2.2969119114266227e-10, -2.0539947190629477e-10, 7.671654350442315e-11),
    *(-3.654037740114076e-12, -4.179286328115757e-12),
)
_EI_12 = (
    *(1.0723449766623854, 0.028391549978593646, 0.001940304027931447, 0.0002684049246132988),
    *(3.961169113365822e-05, -5.37275966512789e-06, -5.1601824361418225e-06),
    *(-2.2547746493393198e-07, 4.922896187248928e-07, 4.036137730755033e-09),
    *(-4.963298627277413e-08, 7.113353637185957e-09, 3.672995698476681e-09),
    *(-1.5789117360002819e-09, 3.3244058779267077e-11, 1.5623715643784415e-10),
    *(-5.116179338277017e-11, -8.626366644873353e-13, 5.141672387096858e-12),
    *(-1.1384090578967987e-12,),
)
_EI_24 = (
    *(1.033413564216241, 0.011940163567824175, 0.0002989258991367685, 1.2321136830919709e-05),
    *(7.585434701532747e-07, 6.78878225524235e-08, 8.966949383337824e-09, 1.647460048483541e-09),
    *(2.9517898607679455e-10, 1.2378707963341893e-12, -2.9013324088346484e-11),
    *(-9.73028751465132e-12, 5.602397452480399e-13, 1.0337584804637088e-12, 4.19660758501377e-14),
    *(-7.04371451510115e-14,),
)
_EI_48 = (
    *(1.0106407605200176, 0.010872249401677992, 0.00023921691801802707, 8.080245428428291e-06),
    *(3.727722660309727e-07, 2.2041083990719476e-08, 1.6051498617016668e-09, 1.401412210888756e-10),
    *(1.4387338083103252e-11, 1.7058345239799023e-12, 2.3188509978616713e-13),
    *(4.0843541425179215e-14, 7.504551446184427e-15),
)


def _e1_right(x: Any) -> tuple[Any, Any]:
    """E1 of positive numbers, near 0 and beyond, the latter times exp(x)."""
    near = x <= 1.0
    s = where(near, x, 1.0)
    small = (-np.euler_gamma - np.log(s)) - s * polynomial(s, _SERIES)
    w = where(near, 1.0, np.minimum(x, 1e300))
    t = (w - 4.0) / (w + 4.0)
    return small, polynomial((t - 0.2) / 0.8, _E1_FAR) / w


def _ei_near(x: Any) -> Any:
    """Ei for 0 < x <= 6; the logarithm is that of 1 + d near the root."""
    off = (x - _ROOT[0]) - _ROOT[1]
    d = off / _ROOT[0]
    close = abs(d) < 0.5
    logarithm = where(close, np.log1p(where(close, d, 0.0)), np.log(x / _ROOT[0]))
    return logarithm + off * polynomial(x / 3.0 - 1.0, _EI_NEAR)


def _ei_far(x: Any) -> Any:
    """x exp(-x) Ei(x) for x >= 6."""
    r = 1.0 / x
    value = polynomial(96.0 * r - 1.0, _EI_48)
    for start, coefficients in ((24.0, _EI_24), (12.0, _EI_12), (6.0, _EI_6)):
        inside = x < 2.0 * start
        u = where(inside, r * (4.0 * start) - 3.0, 0.0)
        value = where(inside, polynomial(u, coefficients), value)
    return value


@special("exp1", example="1.0 -> 0.21938393439552029")
@formula
def exponential_integral_1(x: Any) -> Any:
    """The integral of exp(-t) / t from x to infinity, for x >= 0."""
    right = x > 0
    small, large = _e1_right(where(right, x, 1.0))
    value = where(x <= 1.0, small, np.exp(-where(right, x, 1.0)) * large)
    return where(right, value, where(x == 0, math.inf, math.nan))


@special("expi", example="1.0 -> 1.8951178163559366")
@formula
def exponential_integral(x: Any) -> Any:
    """The integral of exp(t) / t from minus infinity to x (its principal value, for x > 0)."""
    size = abs(x)
    small, large = _e1_right(where(x < 0, size, 1.0))
    left = -where(size <= 1.0, small, np.exp(-size) * large)
    near = (x > 0) & (x <= 6.0)
    w = where(x > 6.0, np.minimum(x, 1e300), 6.0)
    half = np.exp(0.5 * w)
    value = half * (_ei_far(w) / w) * half
    value = where(near, _ei_near(where(near, x, 1.0)), value)
    value = where(x < 0, left, value)
    value = where(x == math.inf, math.inf, where(x == -math.inf, -0.0, value))
    return where(x == 0, -math.inf, where(np.isnan(x), x, value))


exponential_integral_1.defjvps(lambda t, z, x: -t * (np.exp(-x) / x))
exponential_integral.defjvps(lambda t, z, x: t * (np.exp(x) / x))


def _by_fraction(n: Any, x: Any, going: Any) -> Any:
    """exp(x) E_n(x)."""

    def terms(k: Any) -> Any:
        return -k * (n + k - 1.0), x + n + 2.0 * k

    return 1.0 / lentz(x + n, terms, going)


def _by_series(n: Any, x: Any, going: Any) -> Any:
    """E_n(x) for whole n > 0 and 0 < x <= 1."""

    def harmonic(state: Any) -> Any:
        k, total, _ = state
        return k + 1.0, total + 1.0 / k, k + 1.0 < n

    first = -np.log(x) - np.euler_gamma
    slope = repeat(harmonic, (0.0 * x + 1.0, first, going & (n > 1)))[1]

    def step(state: Any) -> Any:
        k, power, total, _ = state
        pole = k == n - 1.0
        part = power * where(pole, slope, 1.0 / where(pole, 1.0, n - 1.0 - k))
        power = power * (-x / (k + 1.0))
        return k + 1.0, power, total + part, (k < n) | (abs(power) > 1e-18)

    return repeat(step, (0.0 * x, 0.0 * x + 1.0, 0.0 * x, going))[2]


@formula
def generalized_integral(n: Any, x: Any) -> Any:
    usual = (n > 0) & (x > 0) & (x < math.inf) & (n < 1e9)
    m, y = where(usual, n, 1.0), where(usual, x, 2.0)
    near = (y <= 1.0) & (m < 30.0)
    first = n == 1
    others = usual & np.logical_not(first)
    fraction = each(_by_fraction, m, y, others & np.logical_not(near))
    series = each(_by_series, where(near, m, 1.0), where(near, y, 1.0), others & near)
    value = where(near, series, np.exp(-y) * fraction)
    value = where(n == 0, np.exp(-x) / x, where(first, exponential_integral_1(y), value))
    value = where((n >= 1e9) & (x > 0), np.exp(-x) / (x + n), value)
    at_0 = where(n <= 1, math.inf, 1.0 / where(n <= 1, 1.0, n - 1.0))
    value = where(x == 0, at_0, where(x == math.inf, 0.0, value))
    bad = (n < 0) | (x < 0) | (n != np.floor(n)) | np.isnan(x)
    return where(bad, math.nan, value)


def _slope(n: Any, x: Any) -> Any:
    before = generalized_integral(np.maximum(n - 1.0, 0.0), x)
    return where(n < 1, np.exp(-x) * (1.0 / x + 1.0 / (x * x)), before)


generalized_integral.defjvps(None, lambda t, z, n, x: -t * _slope(n, x))


@special("expn", example="2, 1.0 -> 0.14849550677592202")
def expn(n: Any, x: Any) -> Any:
    """The integral of exp(-x t) / t**n from 1 to infinity, for whole n; no derivative by n."""
    return generalized_integral(value_of(n), x)
