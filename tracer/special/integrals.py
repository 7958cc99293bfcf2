"""Integrals of Dawson and Fresnel, the sine and the cosine integral, and the dilogarithm.

Near 0 they are polynomials in powers of x; far out, polynomials in 1 / x**2 or 1 / x**4, which are
amplitudes of sines and cosines (NIST DLMF 6.2.17, 7.5.3); between, polynomials on intervals. All of them
interpolate at Chebyshev points.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..arrays.elementwise import where
from ..transforms.custom import custom_jvp
from .arithmetic import BERNOULLI, fma, polynomial, two_product
from .complex_error import complex_dawson
from .operands import special

_DAWSON_0 = (
    *(0.5014241400133203, -0.31481422752164534, 0.131142594864667, -0.04040863347418886),
    *(0.009838627648841376, -0.0019765135732559415, 0.0003376577196608458, -5.0151763199420845e-05),
    *(6.586752812624009e-06, -7.751958612158781e-07, 8.263603768235818e-08, -8.049747146971687e-09),
    *(7.21726962057095e-10, -5.996019168520379e-11, 4.732821357698001e-12, -3.4231365883966134e-13),
)
_DAWSON_1 = (
    *(0.25655426284484917, -0.1158706371013659, 0.0512199272583273, -0.01417092925260621),
    *(-0.002448882984518315, 0.004841455096391591, -0.002264152932118625, 0.000313554166001817),
    *(0.00018611584225608848, -0.00010898771117099387, 1.5845320490440818e-05),
    *(6.284836307410129e-06, -3.2531097846687903e-06, 3.006818031689128e-07, 1.889265960020062e-07),
    *(-6.506736159265573e-08, 4.385184277958573e-10, 4.22751582847546e-09, -8.173012702908359e-10),
    *(-1.1119819231713114e-10, 6.295580012454027e-11, -1.7370999901105696e-12),
    *(-2.2918815125060223e-12,),
)
_DAWSON_3 = (
    *(0.11408861022682498, -0.040196238062137235, 0.014625233909070069, -0.005519195497609496),
    *(0.002173896656731459, -0.000902245025325414, 0.0003996288143510797, -0.00019069805426413065),
    *(9.701175959633722e-05, -5.016861222949142e-05, 2.407232593489317e-05, -9.019785632495806e-06),
    *(1.1201818550617561e-06, 1.958964274036076e-06, -2.2492184036139066e-06),
    *(1.4366244548769513e-06, -5.791713452153136e-07, 7.959566426869192e-08, 8.442827505796716e-08),
    *(-7.873817547284544e-08, 3.4958720220570906e-08, -5.737082532217731e-09),
    *(-4.299550577901338e-09, 3.767941254568002e-09, -9.501109574645716e-10),
    *(-2.3535157781713093e-10, 1.7060227582818082e-10, -2.25338092959138e-11),
)
_DAWSON_6 = (
    *(1.0070944045823185, 0.007249927635774575, 0.00016138419758650625, 6.180627813047605e-06),
    *(3.426569526594846e-07, 2.5303794465857053e-08, 2.3711445810809256e-09),
    *(2.7331536608715513e-10, 3.799869674235811e-11, 6.278741409212035e-12, 1.1443622053130938e-12),
    *(2.4488927434957054e-13, 1.1777846950305922e-13, 4.202809750713404e-14),
)
_SI = (
    *(0.6488924209268717, -0.26998630593421985, 0.06995436230262994, -0.010180919854579487),
    *(0.000926043940588566, -5.729510043974918e-05, 2.562902980424153e-06, -8.669329640074211e-08),
    *(2.294707477809517e-09, -4.8820436536706355e-11, 8.535034668454058e-13),
    *(-1.2465253208934712e-14,),
)
_CIN = (
    *(-0.18000156259038463, 0.05804136708251917, -0.010676245460890443, 0.0011887255711437834),
    *(-8.738341186863486e-05, 4.535777665362473e-06, -1.7478633681168744e-07),
    *(5.194180626945664e-09, -1.2261802782427702e-10, 2.354497083901227e-12),
    *(-3.750854655497162e-14, 5.032317611606314e-16),
)
_SICI_F4 = (
    *(0.9418119807878753, -0.027569764262193115, 0.0029468430581038665, -0.0005093313348859523),
    *(0.00011368354121901144, -2.9775809983806256e-05, 8.70718609278395e-06),
    *(-2.760756685302925e-06, 9.315013874141314e-07, -3.30236658182439e-07, 1.2189980137800176e-07),
    *(-4.65015813643928e-08, 1.8255329391251287e-08, -7.43859672955617e-09, 3.0801940588363717e-09),
    *(-1.1378297931642186e-09, 4.596900088769621e-10, -3.6980248132505875e-10),
    *(1.8104134670468547e-10, 3.9555768900511754e-11, -2.5764939319619727e-11),
    *(-3.6255512403618825e-11, 1.805480515794072e-11),
)
_SICI_F8 = (
    *(0.9855904297170983, -0.013381738359286273, 0.0008826900462605914, -0.00011493614902906915),
    *(2.213496956389378e-05, -5.503309292212946e-06, 1.6383726779388807e-06),
    *(-5.577884135315809e-07, 2.1072671170690814e-07, -8.652535347037408e-08),
    *(3.792879501003695e-08, -1.7532010450305288e-08, 9.143384227029015e-09),
    *(-5.185525155467704e-09, 3.269155658644093e-10, 1.5451291863527927e-09, 6.17502662802513e-09),
    *(-7.49939652742765e-09, -1.035422154882256e-08, 1.2656836032702656e-08),
    *(1.4565521811118682e-08, -1.6493053168902232e-08, -1.3645137640345023e-08),
    *(1.4674232349584142e-08, 8.551955788569777e-09, -8.7326504401312e-09, -3.1794892720810123e-09),
    *(3.102257876096485e-09, 5.489074597146348e-10, -5.104747116133063e-10),
)
_SICI_G4 = (
    *(0.849912766580565, -0.06306367239922105, 0.009640901941618527, -0.002049538794554685),
    *(0.0005268883730371775, -0.00015339018925660674, 4.877573289266263e-05),
    *(-1.657130108227376e-05, 5.928685331531567e-06, -2.2112292203089915e-06),
    *(8.535260996098553e-07, -3.391703687342373e-07, 1.3814016341306636e-07),
    *(-5.7266118878876565e-08, 2.421663159227393e-08, -1.0870622868348082e-08),
    *(4.842189972927096e-09, -1.505408079910938e-09, 5.817830556375475e-10, -8.923224313842794e-10),
    *(4.707462569496301e-10, 1.7744077165108551e-10, -1.0649684162459564e-10),
    *(-9.354497413975343e-11, 4.8226126970493025e-11),
)
_SICI_G8 = (
    *(0.9588269529985257, -0.03661445489281515, 0.003723833337119704, -0.0006274732868865505),
    *(0.00014418163375635556, -4.087592147087328e-05, 1.3489790796739326e-05),
    *(-4.995376171181886e-06, 2.0251262373325363e-06, -8.833475214792485e-07),
    *(4.0885589766834914e-07, -1.9870744330874129e-07, 1.046654407941143e-07),
    *(-5.926299176824546e-08, 1.3102371482491516e-08, 1.0023069262976716e-08, 7.10408785583459e-08),
    *(-9.78109539659785e-08, -1.6616803684795397e-07, 2.3400014301631808e-07),
    *(3.451018663993527e-07, -4.4975751052313585e-07, -5.11910881693437e-07, 6.319374650037797e-07),
    *(5.554804519488232e-07, -6.513910675650624e-07, -4.258247408158983e-07, 4.770748377471524e-07),
    *(2.1971360826496097e-07, -2.3595558623228482e-07, -6.851479632789883e-08),
    *(7.074984443633657e-08, 9.855038802793747e-09, -9.791406745763085e-09),
)
_FRESNEL_S = (
    *(0.2889393626408461, -0.1761356501395447, 0.050132952592302285, -0.007629278744901795),
    *(0.0007142320312441954, -4.5168950886221886e-05, 2.057811858438048e-06),
    *(-7.074441231946028e-08, 1.9005632610677367e-09, -4.1002408595059026e-11),
    *(7.26426036093387e-13, -1.0746132833319156e-14),
)
_FRESNEL_C = (
    *(0.4434581121445708, -0.3498350978515388, 0.16644305991154654, -0.0356266466499555),
    *(0.00428781838520131, -0.0003307760776428032, 1.776427735141929e-05, -7.028320154789788e-07),
    *(2.134645071640612e-08, -5.135327076542383e-10, 1.0029390681445803e-11),
    *(-1.6229472687215528e-13, 2.2094634192424975e-15),
)
_FRESNEL_F1 = (
    *(0.9784969392353641, -0.013584238694664784, 0.0013603513452122608, -0.00024921715005710735),
    *(6.202597410742479e-05, -1.861113401371552e-05, 6.3391760529297865e-06),
    *(-2.367468241655846e-06, 9.484670378349505e-07, -4.016763908994334e-07),
    *(1.7795785345137823e-07, -8.170884034232681e-08, 3.870864684840743e-08),
    *(-1.938851474194034e-08, 9.903062266985577e-09, -3.6900859978923066e-09),
    *(1.468809210205672e-09, -3.2888609247503983e-09, 2.3791099662940205e-09),
    *(1.9396879217146286e-09, -1.6411826388072528e-09, -1.9168568849317415e-09),
    *(1.4212480550693872e-09, 8.036682405047413e-10, -5.799392051386614e-10),
    *(-2.0184904876769014e-10, 1.3577980582395154e-10),
)
_FRESNEL_F2 = (
    *(0.9967913859888728, -0.0031014592371369073, 9.853033358017822e-05, -7.480301724241223e-06),
    *(9.341999515200405e-07, -1.6157518806609997e-07, 3.517822287380821e-08, -9.09269734731141e-09),
    *(2.684647426097775e-09, -8.797685231528145e-10, 3.139718576390615e-10),
    *(-1.2614802714917828e-10, 5.421005134007107e-11, -1.2697824001434366e-11),
    *(2.0568550426658663e-12, -1.4767011221819953e-11, 1.0402415314425123e-11),
    *(5.670182850957624e-12, -4.4717773637732336e-12, -2.4511286906233535e-12),
    *(1.6468550553812993e-12,),
)
_FRESNEL_G1 = (
    *(0.9059654889101375, -0.053394320346623086, 0.008251164819578822, -0.0019151012754097412),
    *(0.0005575817202999197, -0.00018775009458270176, 6.999357459555684e-05),
    *(-2.814266985749221e-05, 1.1998206914383613e-05, -5.360831953779096e-06),
    *(2.489031175317663e-06, -1.1934531656805962e-06, 5.892250790331045e-07),
    *(-2.9796595216305167e-07, 1.4934640574856196e-07, -7.643479953991676e-08),
    *(5.2978607008375665e-08, -3.305474423187258e-08, -7.570591569264487e-09),
    *(1.1327610828390623e-08, 3.2555810567122336e-08, -2.662738753529924e-08),
    *(-2.6856316018188832e-08, 2.1983715841963272e-08, 1.89158700332445e-08),
    *(-1.4465132393129483e-08, -7.262411158539125e-09, 5.354869948653686e-09),
    *(1.4803136431151578e-09, -1.0330620111803063e-09),
)
_FRESNEL_G2 = (
    *(0.9843855490403252, -0.01471905351704255, 0.000797009381548515, -8.229672322422449e-05),
    *(1.2649894765815404e-05, -2.5488010376521124e-06, 6.248691578619207e-07),
    *(-1.7778363486402215e-07, 5.685705619638743e-08, -1.9976940484887572e-08),
    *(7.58423583481406e-09, -3.108168845087862e-09, 1.3552309757199383e-09, -5.086956693808227e-10),
    *(1.8567726974802366e-10, -3.096338933943768e-10, 2.4176140987691974e-10),
    *(1.9544402753303452e-10, -1.9527446897766486e-10, -2.0746926287390604e-10),
    *(1.7706559122876185e-10, 9.590967345641111e-11, -7.92754453548225e-11, -2.453497706007419e-11),
    *(1.8696581056422844e-11,),
)

# B_2k / (2k + 1)!: the dilogarithm of 1 - exp(-u) is u - u**2/4 + u**3 (...)
_DILOG = tuple(b / math.factorial(2 * k + 3) for k, b in enumerate(BERNOULLI))


def _scaled(x: Any, low: float, high: float) -> Any:
    """low..high as -1..1."""
    return fma(x, 2.0 / (high - low), -(high + low) / (high - low))


@special("dawsn", of_complex=complex_dawson, example="1.0 -> 0.5380795069127685")
@custom_jvp
def dawson(x: Any) -> Any:
    """Dawson's integral, exp(-x**2) times that of exp(t**2) from 0 to x."""
    size = abs(x)
    square = np.minimum(size * size, 2.25)
    value = size * polynomial(_scaled(square, 0.0, 2.25), _DAWSON_0)
    middle = np.clip(size, 1.5, 3.0)
    value = where(size > 1.5, polynomial(middle / 0.75 - 3.0, _DAWSON_1), value)
    middle = np.clip(size, 3.0, 6.0)
    value = where(size > 3.0, polynomial(middle / 1.5 - 3.0, _DAWSON_3), value)
    w = np.maximum(size, 6.0)
    r = 1.0 / np.minimum(w, 1e150)
    far = polynomial(72.0 * (r * r) - 1.0, _DAWSON_6) * (0.5 / w)
    return np.copysign(where(size > 6.0, far, value), x)


dawson.defjvps(lambda t, z, x: t * (1.0 - 2.0 * x * z))


def _sine_and_cosine_integral(size: Any) -> tuple[Any, Any]:
    near = size <= 4.0
    s = where(near, size, 1.0)
    u = s * s / 8.0 - 1.0
    sine = s * polynomial(u, _SI)
    cosine = (np.euler_gamma + np.log(s)) + s * s * polynomial(u, _CIN)
    w = np.maximum(size, 4.0)
    r = 1.0 / np.minimum(w, 1e150)
    q = r * r
    middle = w < 8.0
    u, v = _scaled(where(middle, q, 0.04), 1 / 64, 1 / 16), 128.0 * where(middle, 0.0, q) - 1.0
    f = where(middle, polynomial(u, _SICI_F4), polynomial(v, _SICI_F8)) * r
    g = where(middle, polynomial(u, _SICI_G4), polynomial(v, _SICI_G8)) * q
    finite = where(w < math.inf, w, 4.0)
    sin, cos = np.sin(finite), np.cos(finite)
    far = where(w < math.inf, math.pi / 2 - f * cos - g * sin, math.pi / 2)
    beyond = where(w < math.inf, f * sin - g * cos, 0.0)
    return where(near, sine, far), where(near, cosine, beyond)


@custom_jvp
def sine_integral(x: Any) -> Any:
    return np.copysign(where(np.isnan(x), x, _sine_and_cosine_integral(abs(x))[0]), x)


@custom_jvp
def cosine_integral(x: Any) -> Any:
    value = where(x == 0, -math.inf, _sine_and_cosine_integral(abs(x))[1])
    return where((x == -math.inf) | np.isnan(x), math.nan, value)


sine_integral.defjvps(lambda t, z, x: t * np.sinc(x / math.pi))
cosine_integral.defjvps(lambda t, z, x: t * (np.cos(x) / x))


def _half_square_turns(x: Any) -> tuple[Any, Any]:
    """sin and cos of pi x**2 / 2, from the exact square."""
    square, low = two_product(x, x)
    rest = np.remainder(square, 4.0) + np.remainder(low, 4.0)
    nearest = np.rint(rest)
    angle = (0.5 * math.pi) * (rest - nearest)
    sin, cos = np.sin(angle), np.cos(angle)
    odd = np.remainder(nearest, 2.0) == 1
    back = np.remainder(nearest, 4.0) >= 2
    sin, cos = where(odd, cos, sin), where(odd, -sin, cos)
    return where(back, -sin, sin), where(back, -cos, cos)


def _fresnel(x: Any) -> tuple[Any, Any]:
    size = abs(x)
    near = size < 1.6
    s = where(near, size, 0.0)
    square = s * s
    u = _scaled(square * square, 0.0, 6.5536)
    w = np.clip(size, 1.6, 1e17)
    r = 1.0 / (w * w)
    q = r * r
    middle = w < 2.6
    ends = 2.6**-4, 1.6**-4
    v, far = _scaled(where(middle, q, 0.08), *ends), _scaled(where(middle, 0.0, q), 0.0, ends[0])
    f = where(middle, polynomial(v, _FRESNEL_F1), polynomial(far, _FRESNEL_F2))
    g = where(middle, polynomial(v, _FRESNEL_G1), polynomial(far, _FRESNEL_G2))
    f, g = f / (math.pi * w), g * r / (math.pi**2 * w)
    sin, cos = _half_square_turns(w)
    beyond = size > 1e17
    f, g = where(beyond, 0.0, f), where(beyond, 0.0, g)
    sine = where(near, square * s * polynomial(u, _FRESNEL_S), 0.5 - f * cos - g * sin)
    cosine = where(near, s * polynomial(u, _FRESNEL_C), 0.5 + f * sin - g * cos)
    return sine, cosine


@custom_jvp
def fresnel_sine(x: Any) -> Any:
    return np.copysign(where(np.isnan(x), x, _fresnel(x)[0]), x)


@custom_jvp
def fresnel_cosine(x: Any) -> Any:
    return np.copysign(where(np.isnan(x), x, _fresnel(x)[1]), x)


fresnel_sine.defjvps(lambda t, z, x: t * _half_square_turns(x)[0])
fresnel_cosine.defjvps(lambda t, z, x: t * _half_square_turns(x)[1])


@custom_jvp
def log1p_over(x: Any) -> Any:
    """log(1 + x) / x; 1 at 0."""
    zero = x == 0
    return where(zero, 1.0, np.log1p(x) / where(zero, 1.0, x))


def _slope_of_log1p_over(z: Any, x: Any) -> Any:
    near = abs(x) < 0.1
    s = where(near, x, 0.0)
    series = 0.0 * x
    for k in range(18, 0, -1):
        series = series * s + (-1.0) ** k * k / (k + 1)
    return where(near, series, (1.0 / (1.0 + x) - z) / where(near, 1.0, x))


log1p_over.defjvps(lambda t, z, x: t * _slope_of_log1p_over(z, x))


@special("spence", example="2.0 -> -0.8224670334241132")
@custom_jvp
def dilogarithm(x: Any) -> Any:
    """The integral of log(t) / (1 - t) from 1 to x, for x >= 0: the dilogarithm of 1 - x.

    By the reflections that lead x into 1/2..2 (NIST DLMF 25.12.4 and 25.12.6).
    """
    large = x > 2.0
    v = where(large, 1.0 / where(large, x, 1.0), x)
    small = (v < 0.5) & (v > 0)
    w = where(small, v, 0.25)
    y = where(small, 1.0 - w, where(v >= 0.5, v, 1.0))
    logarithm = where(small, np.log1p(-w), np.log(y))
    square = logarithm * logarithm
    value = -fma(square, fma(logarithm, polynomial(square, _DILOG), 0.25), logarithm)
    value = where(small, math.pi**2 / 6 - np.log(w) * logarithm - value, value)
    log_x = np.log(where(large, x, 1.0))
    value = where(large, -value - 0.5 * log_x * log_x, value)
    value = where(x == 0, math.pi**2 / 6, where(x == math.inf, -math.inf, value))
    return where(x >= 0, value, math.nan)


def _dilogarithm_slope(x: Any) -> Any:
    """log(x) / (1 - x)"""
    low = x < 0.5
    y = where(low, x, 1.0)
    return where(low, np.log(y) / (1.0 - where(low, x, 0.0)), -log1p_over(where(low, 1.0, x) - 1.0))


dilogarithm.defjvps(lambda t, z, x: t * _dilogarithm_slope(x))


@special("sici", example="1.0 -> (np.float64(0.9460830703671831), np.float64(0.33740392290096816))")
def sici(x: Any) -> Any:
    """The integral of sin(t) / t from 0 to x, and minus that of cos(t) / t from x to infinity."""
    return sine_integral(x), cosine_integral(x)


@special(
    "fresnel", example="1.0 -> (np.float64(0.43825914739035476), np.float64(0.7798934003768229))"
)
def fresnel(x: Any) -> Any:
    """The integrals of sin(pi t**2 / 2) and of cos(pi t**2 / 2) from 0 to x."""
    return fresnel_sine(x), fresnel_cosine(x)
