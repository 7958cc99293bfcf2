"""Bessel functions of orders 0 and 1: J and Y, and the modified K.

J, and Y without its logarithm, are polynomials in x**2 up to 8. Beyond, they are a modulus times the
cosine and sine of a phase, split as in NIST DLMF 10.17.3: P and Q / x are polynomials in (8 / x)**2. K
is its power series with a logarithm (10.31.2) up to 2; then sqrt(x) exp(x) K(x) is a polynomial in
1 / x. All polynomials interpolate at Chebyshev points.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..arrays.elementwise import where
from .arithmetic import polynomial
from .bessel import I0, I1, over_x
from .formulas import formula
from .operands import special

_J0 = (
    *(0.04582966485981377, 0.9303012472958572, -0.6484692830871837, -0.8080888076696872),
    *(1.0383794611437211, -0.5074680458471, 0.14598884856759264, -0.028472718610882047),
    *(0.004058078989140991, -0.0004435459224311503, 3.8473197855944365e-05, -2.717749223632098e-06),
    *(1.5956109104549218e-07, -7.91532308295207e-09, 3.3634475788173604e-10),
    *(-1.243301171273326e-11, 4.0037632815796753e-13),
)
_J1 = (
    *(-0.05814382795599107, 0.08105866038589796, 0.15151665143806634, -0.2595948652859303),
    *(0.15858376432721938, -0.054745818212847276, 0.012456814392255438, -0.002029039494570245),
    *(0.0002494945813909099, -2.4045748660869658e-05, 1.8684525371950874e-06),
    *(-1.1967081644236783e-07, 6.4312687983276065e-09, -2.943037882441676e-10),
    *(1.1610590175819576e-11, -3.990810305436148e-13, 1.2095547964761484e-14),
    *(-3.238244035881746e-16,),
)
_Y0 = (
    *(-0.382250654459425, -0.8284358903604587, 1.6470964788745466, 0.14412632369302442),
    *(-1.0775477338215995, 0.6721770783431723, -0.21895747096171628, 0.0463670476813471),
    *(-0.00702574105727097, 0.0008061586060550644, -7.279541882454115e-05, 5.321318633735116e-06),
    *(-3.2185078445935923e-07, 1.6391065268260488e-08, -7.13046146536789e-10),
    *(2.681822137847736e-11, -8.840112096073101e-13, 2.558039436392922e-14),
)
_Y1 = (
    *(0.07075985882118005, -0.24337743079193114, 0.023367571720993584, 0.23507209206669755),
    *(-0.19639839859930425, 0.07854786922242545, -0.019628756833099423, 0.0034224907399180455),
    *(-0.00044381734351149876, 4.467433012914413e-05, -3.600999874357815e-06),
    *(2.380492991366028e-07, -1.3153322551127247e-08, 6.169742613332968e-10),
    *(-2.4887509903377128e-11, 8.728810134833414e-13, -2.695138958384033e-14),
    *(7.339060975161991e-16,),
)
_P0 = (
    *(0.9994572757882519, -0.0005363673192130047, 6.137416080109497e-06, -2.0527448156307146e-07),
    *(1.280376144080092e-08, -1.2121182069774233e-09, 1.5500565496632596e-10),
    *(-2.4882702786880542e-11, 4.786995821368028e-12, -1.063686115166763e-12),
    *(2.4531772967344996e-13, -6.416781008015388e-14, 3.339452259070813e-14),
    *(-1.1800027830201928e-14,),
)
_Q0 = (
    *(-0.015555113879513518, 6.833149099343887e-05, -1.477138832650122e-06, 7.106214859523438e-08),
    *(-5.668716046704292e-09, 6.432781585673823e-10, -9.4704131236215e-11, 1.7033142359521874e-11),
    *(-3.5884013838881424e-12, 8.597568595721057e-13, -2.3420509294291317e-13),
    *(6.962833501775232e-14, -1.6421894373532263e-14, 4.687981531505951e-15),
    *(-5.071762053004069e-15, 2.1449029578298997e-15),
)
_P1 = (
    *(1.0009070262780821, 0.0008988049416705579, -7.9596946984383e-06, 2.4536766222672443e-07),
    *(-1.4708512991275258e-08, 1.3603058049468316e-09, -1.713107485294131e-10),
    *(2.720406848040165e-11, -5.191158004646548e-12, 1.1462229852806787e-12),
    *(-2.6335760672461086e-13, 6.864486664846153e-14, -3.54556174666063e-14),
    *(1.2489929194564033e-14,),
)
_Q1 = (
    *(0.04677687402744898, -9.621458822054426e-05, 1.8212018512314264e-06, -8.29196070902235e-08),
    *(6.420132496338991e-09, -7.151105285512477e-10, 1.0395096687547827e-10),
    *(-1.8524700688176633e-11, 3.875456046538218e-12, -9.23446956586951e-13, 2.503410968458243e-13),
    *(-7.413329287139701e-14, 1.749533056683902e-14, -4.991329339679714e-15, 5.34452727774381e-15),
    *(-2.255384000078318e-15,),
)
_K0_FAR = (
    *(1.2185953385133905, -0.03107146182488952, 0.003032891810273794, -0.0004797690567662314),
    *(9.956054749305854e-05, -2.4735204561466906e-05, 7.002244287487694e-06),
    *(-2.191177788015528e-06, 7.427932208028755e-07, -2.6890662472901614e-07),
    *(1.0287980689458582e-07, -4.133923052104385e-08, 1.731622598181986e-08),
    *(-7.286380907337665e-09, 3.170629957994259e-09, -1.9309444875845705e-09),
    *(1.0573777917720047e-09, 1.7887095838476482e-10, -2.426111314423373e-10),
    *(-5.541051446065683e-10, 3.883027499295913e-10, 2.213758097591008e-10),
    *(-1.5750973144552285e-10, -6.910453875670571e-11, 4.4463261136368365e-11),
)
_K1_FAR = (
    *(1.363151890371342, 0.10334973775386523, -0.005566729880072931, 0.0007357241549081501),
    *(-0.00013959021964175084, 3.284386555825453e-05, -8.961205912549711e-06),
    *(2.730041433569803e-06, -9.067229884830243e-07, 3.2298119177151824e-07),
    *(-1.2195093824501613e-07, 4.8461952200091865e-08, -2.0109398585523846e-08),
    *(8.40938756536177e-09, -3.639264909950171e-09, 2.1757782025837176e-09, -1.180097808498307e-09),
    *(-1.7982138496175016e-10, 2.560533082941635e-10, 6.042482293782838e-10),
    *(-4.2190635517826636e-10, -2.399376595899464e-10, 1.704297529665342e-10, 7.52479548635394e-11),
    *(-4.829107281627596e-11,),
)

_MODULI = ((_P0, _Q0), (_P1, _Q1))
_HARMONIC = tuple(sum(1 / j for j in range(1, k + 1)) - np.euler_gamma for k in range(15))
# K0 = -log(x / 2) I0 + sum; K1 = 1 / x + log(x / 2) I1 - x / 4 sum
_K0_SUM = tuple(h * c for h, c in zip(_HARMONIC, I0, strict=False))
_K1_SUM = tuple((_HARMONIC[k] + _HARMONIC[k + 1]) * c / 2 for k, c in enumerate(I1))


def _far(order: int, x: Any) -> tuple[Any, Any]:
    """J and Y for x >= 8. The phase is x less an odd multiple of pi / 4: sums of sin x and cos x."""
    w = np.minimum(x, 1e150)
    r = 8.0 / w
    u = 2.0 * (r * r) - 1.0
    above, beside = _MODULI[order]
    p, q = polynomial(u, above), polynomial(u, beside) * r
    sin, cos = np.sin(w), np.cos(w)
    c, s = (cos + sin, sin - cos) if order == 0 else (sin - cos, -(sin + cos))
    factor = math.sqrt(1 / math.pi) / np.sqrt(x)
    return factor * (p * c - q * s), factor * (p * s + q * c)


def _first_kind(order: int, x: Any) -> Any:
    size = abs(x)
    near = size < 8.0
    s = where(near, size, 1.0)
    small = polynomial(s * s / 32.0 - 1.0, (_J0, _J1)[order])
    small = small * s if order else small
    value = where(near, small, where(size == math.inf, 0.0, _far(order, where(near, 8.0, size))[0]))
    return where(x < 0, -value, value) if order else value


def _second_kind(order: int, x: Any) -> Any:
    near = x < 8.0
    s = where(near & (x > 0), x, 1.0)
    u = s * s / 32.0 - 1.0
    grown = (2 / math.pi) * np.log(s)
    if order:
        small = grown * (s * polynomial(u, _J1)) - (2 / math.pi) / s + s * polynomial(u, _Y1)
    else:
        small = grown * polynomial(u, _J0) + polynomial(u, _Y0)
    value = where(near, small, _far(order, where(near, 8.0, x))[1])
    value = where(x == math.inf, 0.0, value)
    return where(x > 0, value, where(x == 0, -math.inf, math.nan))


def _third_kind(order: int, x: Any, scaled: bool) -> Any:
    near = x <= 2.0
    s = where(near & (x > 0), x, 1.0)
    square = s * s
    logarithm = np.log(0.5 * s)
    if order:
        small = logarithm * (s * polynomial(square, I1)) - s * polynomial(square, _K1_SUM)
        small = 1.0 / s + small
    else:
        small = polynomial(square, _K0_SUM) - logarithm * polynomial(square, I0)
    w = where(near, 2.0, x)
    large = polynomial(4.0 / w - 1.0, (_K0_FAR, _K1_FAR)[order]) / np.sqrt(w)
    if scaled:
        value = where(near, np.exp(s) * small, large)
    else:
        value = where(near, small, np.exp(-w) * large)
    value = where(x == math.inf, 0.0, value)
    return where(x > 0, value, where(x == 0, math.inf, math.nan))


@special("j0", example="1.0 -> 0.7651976865579667")
@formula
def bessel_j0(x: Any) -> Any:
    """The Bessel function of the first kind of order 0."""
    return _first_kind(0, x)


@special("j1", example="1.0 -> 0.44005058574493355")
@formula
def bessel_j1(x: Any) -> Any:
    """The Bessel function of the first kind of order 1."""
    return _first_kind(1, x)


@special("y0", example="1.0 -> 0.08825696421567675")
@formula
def bessel_y0(x: Any) -> Any:
    """The Bessel function of the second kind of order 0, for x >= 0."""
    return _second_kind(0, x)


@special("y1", example="1.0 -> -0.7812128213002888")
@formula
def bessel_y1(x: Any) -> Any:
    """The Bessel function of the second kind of order 1, for x >= 0."""
    return _second_kind(1, x)


@special("k0", example="1.0 -> 0.42102443824070834")
@formula
def bessel_k0(x: Any) -> Any:
    """The modified Bessel function of the second kind of order 0, for x >= 0."""
    return _third_kind(0, x, False)


@special("k1", example="1.0 -> 0.6019072301972346")
@formula
def bessel_k1(x: Any) -> Any:
    """The modified Bessel function of the second kind of order 1, for x >= 0."""
    return _third_kind(1, x, False)


@special("k0e", example="1.0 -> 1.144463079806895")
@formula
def bessel_k0e(x: Any) -> Any:
    """exp(x) k0(x)"""
    return _third_kind(0, x, True)


@special("k1e", example="1.0 -> 1.6361534862632585")
@formula
def bessel_k1e(x: Any) -> Any:
    """exp(x) k1(x)"""
    return _third_kind(1, x, True)


_J1_OVER_X = tuple((-1) ** k * c for k, c in enumerate(I1))

bessel_j0.defjvps(lambda t, z, x: -t * bessel_j1(x))
bessel_j1.defjvps(lambda t, z, x: t * (bessel_j0(x) - over_x(z, x, _J1_OVER_X)))
bessel_y0.defjvps(lambda t, z, x: -t * bessel_y1(x))
bessel_y1.defjvps(lambda t, z, x: t * (bessel_y0(x) - z / x))
bessel_k0.defjvps(lambda t, z, x: -t * bessel_k1(x))
bessel_k1.defjvps(lambda t, z, x: -t * (bessel_k0(x) + z / x))
bessel_k0e.defjvps(lambda t, z, x: t * (z - bessel_k1e(x)))
bessel_k1e.defjvps(lambda t, z, x: t * (z - bessel_k0e(x) - z / x))
