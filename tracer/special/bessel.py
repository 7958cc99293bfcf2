"""Modified Bessel functions of the first kind, of orders 0 and 1.

Up to 8 by their power series (NIST DLMF 10.25.2), whose terms are all positive; from there on
sqrt(x) exp(-x) I(x) is a polynomial in 16 / x - 1, interpolated at Chebyshev points.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..arrays.elementwise import where
from .arithmetic import polynomial
from .formulas import formula
from .operands import special

_NEAR = 8.0
_SERIES = (
    tuple(1 / (4**k * math.factorial(k) ** 2) for k in range(27)),
    tuple(1 / (2 * 4**k * math.factorial(k) * math.factorial(k + 1)) for k in range(27)),
)
I0, I1 = (series[:13] for series in _SERIES)  # enough up to 2
_FAR = (
    (
        *(0.4021765094450081, 0.0033605519836678844, 0.00013621607439240856),
        *(1.1143033788559087e-05, 1.4838475391383468e-06, 2.9735993216471474e-07),
        *(8.872278303607728e-08, 3.9324793517123454e-08, 2.1541699603632043e-08),
        *(7.563107589679047e-09, -6.7023325619894366e-09, -1.3450608319883882e-08),
        *(-5.6022211783247e-09, 7.687473295440412e-09, 8.006764881281122e-09),
        *(-3.799241020140616e-09, -7.1046429701883025e-09, 1.9518431205146255e-09),
        *(5.2159872385826355e-09, -9.961827005971165e-10, -3.0791787996480336e-09),
        *(4.1991218209463363e-10, 1.3291938884143105e-09, -1.1746991110551324e-10),
        *(-3.6353603909526465e-10, 1.556423962829591e-11, 4.655655751294525e-11),
    ),
    (
        *(0.38939845902587233, -0.009749577193235758, -0.00021923576383438729),
        *(-1.5038547198351201e-05, -1.8349101048965518e-06, -3.483856445811428e-07),
        *(-1.000134929730233e-07, -4.312819645562664e-08, -2.336697227282623e-08),
        *(-8.435630024967513e-09, 6.687257309165881e-09, 1.4073201407347145e-08),
        *(6.180080050252965e-09, -7.768471997806944e-09, -8.488549054437278e-09),
        *(3.7003762012994875e-09, 7.441519822394391e-09, -1.842354234931444e-09),
        *(-5.438072168110142e-09, 9.265252428334351e-10, 3.2055586346236238e-09),
        *(-3.8986710944632543e-10, -1.3834389708637022e-09, 1.0940884042721056e-10),
        *(3.784510012514866e-10, -1.4553819054184817e-11, -4.848238653363404e-11),
    ),
)


def _scaled(order: int, x: Any) -> Any:
    """exp(-|x|) I(x)"""
    size = abs(x)
    near = size < _NEAR
    s = where(near, size, 0.0)
    small = np.exp(-s) * polynomial(s * s, _SERIES[order])
    w = where(near, _NEAR, size)
    large = polynomial(16.0 / w - 1.0, _FAR[order]) / np.sqrt(w)
    if order == 0:
        return where(near, small, large)
    return where(near, small * x, np.copysign(large, x))


def _grown(order: int, x: Any) -> Any:
    """I(x); the exponential in two factors overflows no earlier than the result."""
    half = np.exp(0.5 * abs(x))
    near = abs(x) < _NEAR
    small = where(near, x, 0.0)
    series = polynomial(small * small, _SERIES[order])
    if order == 1:
        series = series * small
    value = where(near, series, _scaled(order, where(near, _NEAR, x)) * half * half)
    infinite = math.inf if order == 0 else x
    return where(np.isinf(x), infinite, value)


@special("i0e", example="1.0 -> 0.4657596075936405")
@formula
def bessel_i0e(x: Any) -> Any:
    """exp(-|x|) i0(x), which does not overflow."""
    return _scaled(0, x)


@special("i1e", example="1.0 -> 0.20791041534970847")
@formula
def bessel_i1e(x: Any) -> Any:
    """exp(-|x|) i1(x), which does not overflow."""
    return _scaled(1, x)


@special("i0", example="1.0 -> 1.2660658777520084")
@formula
def bessel_i0(x: Any) -> Any:
    """The modified Bessel function of order 0."""
    return _grown(0, x)


@special("i1", example="1.0 -> 0.565159103992485")
@formula
def bessel_i1(x: Any) -> Any:
    """The modified Bessel function of order 1."""
    return _grown(1, x)


def over_x(of_order_1: Any, x: Any, series: tuple[float, ...], scale: Any = 1.0) -> Any:
    """A function over x, near 0 by scale times its series, which keeps the digits of derivatives."""
    near = abs(x) < 1.0
    s = where(near, x, 0.0)
    return where(near, scale * polynomial(s * s, series), of_order_1 / where(near, 1.0, x))


bessel_i0.defjvps(lambda t, z, x: t * bessel_i1(x))
bessel_i1.defjvps(lambda t, z, x: t * (bessel_i0(x) - over_x(z, x, I1)))
bessel_i0e.defjvps(lambda t, z, x: t * (bessel_i1e(x) - np.sign(x) * z))
bessel_i1e.defjvps(
    lambda t, z, x: t * (bessel_i0e(x) - over_x(z, x, I1, np.exp(-abs(x))) - np.sign(x) * z)
)
