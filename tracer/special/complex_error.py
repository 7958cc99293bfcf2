"""Faddeeva's function w(z) = exp(-z**2) erfc(-i z), and the error functions of complex numbers.

In the first quadrant w is the trapezoidal or the midpoint rule of its integral, with the residue of the
pole that is near, whichever is far from its nodes (Al Azah and Chandler-Wilde, SIAM J. Numer. Anal. 59,
2021): 12 terms for all of it. Symmetries lead there. Errors are a few units in the last place of |w|.
Near 0 the error function is its power series.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..arrays.elementwise import where
from .arithmetic import two_product, two_sum
from .formulas import formula

_COUNT = 11
_STEP = math.sqrt(math.pi / (_COUNT + 1))
_ROOT_PI = math.sqrt(math.pi)
_SERIES = tuple((-1) ** k / (math.factorial(k) * (2 * k + 1)) for k in range(24))


def _square(x: Any, y: Any) -> tuple[Any, Any]:
    return (x - y) * (x + y), 2.0 * x * y


def _bell_parts(x: Any, y: Any) -> tuple[Any, Any]:
    """exp(-(x + i y)**2), the square taken exactly."""
    p, p_low = two_product(x, x)
    q, q_low = two_product(y, y)
    u, u_low = two_sum(p, -q)
    v, v_low = two_product(2.0 * x, y)
    size = np.exp(-u) * (1.0 - (u_low + (p_low - q_low)))
    cos, sin = np.cos(v), np.sin(v)
    return size * (cos - v_low * sin), -size * (sin + v_low * cos)


def _rule(x: Any, y: Any, shift: Any) -> tuple[Any, Any]:
    """2 i h z / pi times the sum of exp(-t**2) / (z**2 - t**2) over t = (k + shift) h."""
    u, v = _square(x, y)
    re, im = 0.0 * x, 0.0 * x
    for k in range(_COUNT + 1):
        t = (shift + float(k)) * _STEP
        square = t * t
        d = u - square
        weight = np.exp(-square) / (d * d + v * v)
        if k == 0:
            weight = where(shift == 0, 0.0, weight)
        re = re + weight * d
        im = im - weight * v
    factor = 2.0 * _STEP / math.pi
    return -factor * (x * im + y * re), factor * (x * re - y * im)


def _first_quadrant(x: Any, y: Any) -> tuple[Any, Any]:
    far = (x > 1e7) | (y > 1e7)
    p, q = where(far, 1.0, x), where(far, 1.0, y)
    phase = p / _STEP - np.floor(p / _STEP)
    upper = q >= np.maximum(p, math.pi / _STEP)
    trapezoid = np.logical_not(upper) & (q < p) & (phase >= 0.25) & (phase <= 0.75)
    # Whole multiples of the step, or halves.
    shift = where(trapezoid, 0.0, 0.5)
    re, im = _rule(p, q, shift)
    # i h / (pi z), the half node at 0
    size = p * p + q * q
    safe = where(trapezoid, size, 1.0)
    re = re + where(trapezoid, _STEP / math.pi * q / safe, 0.0)
    im = im + where(trapezoid, _STEP / math.pi * p / safe, 0.0)
    # 2 exp(-z**2) / (1 -+ exp(-2 pi i z / h))
    cos, sin = _bell_parts(where(upper, 1.0, p), where(upper, 1.0, q))
    turn = 2.0 * math.pi * phase
    e = np.exp(np.minimum(2.0 * math.pi * where(upper, 0.0, q) / _STEP, 300.0))
    e = where(trapezoid, -e, e)
    c, s = 1.0 + e * np.cos(turn), -(e * np.sin(turn))
    under = c * c + s * s
    scale = where(upper, 0.0, 2.0 / under)
    re, im = re + scale * (cos * c + sin * s), im + scale * (sin * c - cos * s)
    # i / (sqrt(pi) z) far out
    a, b = x, y
    top = np.maximum(np.maximum(a, b), 1.0)
    a, b = a / top, b / top
    over = 1.0 / (_ROOT_PI * (a * a + b * b) * top)
    return where(far, b * over, re), where(far, a * over, im)


def _join(re: Any, im: Any) -> Any:
    return re + 1j * im


@formula
def faddeeva(z: Any) -> Any:
    x, y = np.real(z), np.imag(z)
    re, im = _first_quadrant(abs(x), abs(y))
    im = where(x < 0, -im, im)
    # Below the real axis it is 2 exp(-z**2) less the value at -z.
    grown, turned = _bell_parts(x, y)
    below = y < 0
    re = where(below, 2.0 * grown - re, re)
    im = where(below, 2.0 * turned + im, im)
    return _join(re, im)


faddeeva.defjvps(lambda t, w, z: t * (2j / _ROOT_PI - 2.0 * z * w))


def _times_i(z: Any) -> Any:
    return _join(-np.imag(z), np.real(z))


def _bell(z: Any) -> Any:
    """exp(-z**2)"""
    return _join(*_bell_parts(np.real(z), np.imag(z)))


def _near(z: Any) -> Any:
    return (abs(np.real(z)) < 1.0) & (abs(np.imag(z)) < 1.0)


def _series(z: Any) -> Any:
    square = z * z
    total = _SERIES[-1]
    for c in _SERIES[-2::-1]:
        total = total * square + c
    return 2.0 / _ROOT_PI * z * total


@formula
def complex_erfc(z: Any) -> Any:
    left = np.real(z) < 0
    right = where(left, -z, z)
    tail = _bell(right) * faddeeva(_times_i(right))
    near = _near(z)
    return where(near, 1.0 - _series(where(near, z, 0.0)), where(left, 2.0 - tail, tail))


@formula
def complex_erf(z: Any) -> Any:
    left = np.real(z) < 0
    right = where(left, -z, z)
    value = 1.0 - _bell(right) * faddeeva(_times_i(right))
    near = _near(z)
    return where(near, _series(where(near, z, 0.0)), where(left, -value, value))


complex_erf.defjvps(lambda t, w, z: t * (2.0 / _ROOT_PI * _bell(z)))
complex_erfc.defjvps(lambda t, w, z: t * (-2.0 / _ROOT_PI * _bell(z)))


def complex_erfcx(z: Any) -> Any:
    return faddeeva(_times_i(z))


def complex_erfi(z: Any) -> Any:
    return -_times_i(complex_erf(_times_i(z)))


@formula
def complex_dawson(z: Any) -> Any:
    near = _near(z)
    small = 0.5 * _ROOT_PI * _bell(z) * complex_erfi(where(near, z, 0.0))
    return where(near, small, 0.5 * _ROOT_PI * _times_i(_bell(z) - faddeeva(z)))


complex_dawson.defjvps(lambda t, w, z: t * (1.0 - 2.0 * z * w))
