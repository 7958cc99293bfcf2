"""The gamma function, its logarithm and digamma of complex numbers.

Right of the imaginary axis ten steps of the recurrence lead to where Stirling's series holds (NIST DLMF
5.11.1, 5.11.2); left of it they are reflected (5.5.3, 5.5.4). The logarithm is the continuous one, cut
along the negative axis: logarithms are taken of products of two factors, whose angles do not wrap.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..arrays.elementwise import where
from .arithmetic import DIGAMMA_TAIL, STIRLING, sin_pi
from .formulas import formula

_STEPS = 10
_LOG_ROOT_TAU = 0.9189385332046727


def _polynomial(z: Any, coefficients: tuple[float, ...]) -> Any:
    total = coefficients[-1]
    for c in coefficients[-2::-1]:
        total = total * z + c
    return total


def _pole(z: Any) -> Any:
    """Whether z is 0, -1, -2, ..."""
    x = np.real(z)
    return (np.imag(z) == 0) & (x <= 0) & (x == np.floor(x))


def _right(z: Any) -> Any:
    """log(gamma(z)) for a real part of at least 0, z != 0."""
    far = abs(z) > 1e8
    near = where(far, 1.0 + 0j, z)
    product = 0.0 * near
    for k in range(0, _STEPS, 2):
        product = product + np.log((near + float(k)) * (near + float(k + 1)))
    w = where(far, z, z + float(_STEPS))
    r = 1.0 / w
    series = (w - 0.5) * np.log(w) - w + _LOG_ROOT_TAU + r * _polynomial(r * r, STIRLING)
    return where(far, series, series - product)


def _log_sine(z: Any) -> Any:
    """log(sin(pi z)), continuous off the real axis; exp(2 pi |Im z|) does not overflow."""
    x, y = np.real(z), np.imag(z)
    size = abs(y)
    # sin(pi z) = exp(pi |y|) i/2 (exp(-i pi x) - exp(-2 pi |y|) exp(i pi x)), for y >= 0
    shrunk = np.exp(-2.0 * math.pi * size)
    sin, cos = sin_pi(x), sin_pi(0.5 - x)
    re, im = sin * (1.0 + shrunk), cos * -np.expm1(-2.0 * math.pi * size)
    log_size = math.pi * size - math.log(2.0) + np.log(np.hypot(re, im))
    # The angle grows with x: that of the nearest half turn, and the principal one of the rest.
    nearest = np.rint(x)
    sign = where(np.remainder(nearest, 2.0) == 1, -1.0, 1.0)
    turned = np.arctan2(sign * im, sign * re)
    angle = turned - math.pi * nearest
    return log_size, np.copysign(1.0, y) * angle


@formula
def complex_loggamma(z: Any) -> Any:
    left = np.real(z) < 0
    right = _right(where(left, 1.0 - z, z))
    size, angle = _log_sine(where(left, z, 0.5 + 0j))
    reflected = (math.log(math.pi) - size) - 1j * angle - right
    value = where(left, reflected, right)
    pole = _pole(z)
    return where(pole, math.inf, value)


def complex_gamma(z: Any) -> Any:
    pole = _pole(z)
    value = np.exp(complex_loggamma(where(pole, 1.0 + 0j, z)))
    return where(pole, complex(math.nan, math.nan), value)


def complex_rgamma(z: Any) -> Any:
    pole = _pole(z)
    value = np.exp(-complex_loggamma(where(pole, 1.0 + 0j, z)))
    return where(pole, 0.0, value)


def complex_digamma(z: Any) -> Any:
    left = np.real(z) < 0
    w = where(left, 1.0 - z, z)
    total = 0.0 * w
    for k in range(_STEPS):
        total = total + 1.0 / (w + float(k))
    far = w + float(_STEPS)
    r = 1.0 / far
    square = r * r
    value = np.log(far) - 0.5 * r - square * _polynomial(square, DIGAMMA_TAIL) - total
    x, y = np.real(z), np.imag(z)
    off = x - np.rint(x)
    # pi cot(pi z), bounded: (sin 2a - i sinh 2b) / (cosh 2b - cos 2a)
    size = np.minimum(abs(2.0 * math.pi * y), 40.0)
    under = 2.0 * (np.sinh(0.5 * size) ** 2 + np.sin(math.pi * off) ** 2)
    safe = where(under == 0, 1.0, under)
    re, im = np.sin(2.0 * math.pi * off) / safe, -np.copysign(np.sinh(size), y) / safe
    reflected = value - math.pi * (re + 1j * im)
    value = where(left, reflected, value)
    return where(_pole(z), complex(math.nan, math.nan), value)


complex_loggamma.defjvps(lambda t, w, z: t * complex_digamma(z))
