"""erf: x + x P(x**2) near 0, and 1 - exp(|x| Q(|x|)) beyond; and its inverse.

log(erfc(x)) is nearly a parabola, so a polynomial fits it well, and where erf is near 1 an error in the
exponent counts only as much as erfc does. (The idea is N. Juffa's.)
"""

from __future__ import annotations

from ...ir.types import BOOL, F32
from ..scalar import Expr, binary, const, eq, fma, loop, select, unary
from .exponential import exp_parts
from .floats import INF, NAN, copysign, horner, pick, scale_normal
from .logarithm import log_parts, natural

# erf(x)/x - 1 as a polynomial in x**2 up to 0.93 (float32: 2**-25.8) or 1 (float64: 2**-56).
NEAR_32 = (
    0.12837915122509003, -0.37612488865852356, 0.11281730979681015, -0.026762966066598892,
    0.0049873534590005875, -0.000595959834754467,
)  # fmt: skip
NEAR_64 = (
    0.12837916709551256, -0.37612638903183365, 0.11283791670938487, -0.02686617064225703,
    0.005223977599473563, -0.000854832562654362, 0.0001205528495419848, -1.4924554268976597e-05,
    1.6445267590837248e-06, -1.6192639637219636e-07, 1.3654207980148745e-08,
    -7.677547763711556e-10,
)  # fmt: skip
# log(erfc(x))/x on 0.93..4 (float32: 2**-30.4) or 1..6 (float64: 2**-55.1), weighted for erf.
FAR_32 = (
    -1.1286545991897583, -0.6351264715194702, -0.10627803206443787, 0.023797571659088135,
    -0.003659278154373169, 0.0003269482112955302, -1.1646186976577155e-05,
)  # fmt: skip
FAR_64 = (
    -1.1283788651062712, -0.6366225677622686, -0.10276070231920549, 0.019097669531384653,
    0.000262827804969053, -0.0017618257206887676, 0.0006461809822671893, -5.6251990542099245e-05,
    -5.959560148876925e-05, 3.82956609121094e-05, -1.3438165295452067e-05, 3.27443157197885e-06,
    -5.792799999695228e-07, 7.368889727791818e-08, -6.423324605179628e-09, 3.444095981711963e-10,
    -8.575099081856605e-12,
)  # fmt: skip


def erf(x: Expr) -> Expr:
    """The error function, by a polynomial near 0 and 1 - erfc beyond (see the module)."""
    a = abs(x)
    near = fma(x, horner(x * x, pick(x, NEAR_32, NEAR_64)), x)
    b = binary("min", a, pick(x, 4.0, 6.0))
    p = exp_parts(b * horner(b, pick(x, FAR_32, FAR_64)))
    far = 1.0 - scale_normal(p.excess + 1.0, p.n)
    return select(a < pick(x, 0.93, 1.0), near, copysign(far, x))


# erfinv(x)/x: a polynomial in w = -log(1 - x**2) up to 5 (float32: 2**-25.0) or 6.25 (float64: 2**-54),
# and in sqrt(w) - 3 (float32: 2**-26.3), sqrt(w) - 3.25 up to sqrt(w) = 4 (float64: 2**-52.9) and
# sqrt(w) - 5 (2**-54.3) beyond. (The variables are M. Giles's, GPU Computing Gems 2011, ch. 10.)
INVERSE_32 = (
    0.8862269520759583, 0.23201251029968262, 0.01155763491988182, -0.002358263824135065,
    -9.513267286820337e-05, 1.9604629414970987e-05, 1.565844468132127e-05,
    -5.3440662668435834e-06, 8.06222487881314e-07, -6.494466475714944e-08, 2.285079681030311e-09,
)  # fmt: skip
INVERSE_64 = (
    0.886226925452758, 0.2320136665346475, 0.011549342038485504, -0.0023351016442426874,
    -0.0001280432771614024, 4.6611372422039095e-05, 2.0201692617605034e-06,
    -1.0128927229994183e-06, -3.6828985416618234e-08, 2.230829280907672e-08,
    1.1431342800897048e-09, -7.669606285199737e-10, 1.0263975676166532e-10,
    -3.3466282752888214e-11, 1.412142528108244e-11, -3.492923092731094e-12, 5.576524580734606e-13,
    -6.771805854552545e-14, 7.905112167288105e-15, -1.0036108318126688e-15,
    1.1679430451258827e-16, -1.0206884028419792e-17, 5.965113954512291e-19,
    -2.069311199702799e-20, 3.230902384858313e-22,
)  # fmt: skip
INVERSE_TAIL_32 = (
    2.832976818084717, 1.0016751289367676, 0.009445128962397575, -0.007638744078576565,
    0.005687665194272995, -0.003593540284782648, 0.00148334342520684, -6.0177306295372546e-05,
    -0.0003079349990002811, 0.00011608894419623539,
)  # fmt: skip
INVERSE_TAIL_64 = (
    3.0838856104922203, 1.0052589676941655, 0.005370914553607376, -0.0037512085079284938,
    0.002491442095635186, -0.0016882755489279891, 0.0009532893867303598, -0.0003550375881250938,
    2.4031050839649792e-05, 6.828520943415795e-05, -4.7317928504138004e-05, 1.247420279747079e-05,
    2.9225358831144763e-06, -4.0119016207033415e-06, 1.5043546160055816e-06,
    1.6354402306543342e-08, -2.7672292148718414e-07, 9.150796874706083e-08,
    2.8328880205781384e-09,
)  # fmt: skip
INVERSE_FAR_64 = (
    4.849906401408584, 1.0103004648645455, -0.000138719318365083, -0.00021503011983987257,
    7.599527753681037e-05, -1.9681770532018155e-05, 4.526058936435234e-06, -9.930303260816836e-07,
    2.2901821372851895e-07, -6.755358935605763e-08, 2.912092664159504e-08,
    -1.5258879816246104e-08, 7.646205766575113e-09, -3.4684834322139028e-09,
    1.489617106614049e-09, -4.384540252427258e-10, -2.2756472731230857e-11,
    4.2904637421847756e-11,
)  # fmt: skip


def erfinv(x: Expr) -> Expr:
    """The inverse of erf: infinities at +-1, NaN beyond."""
    single = x.dtype == F32
    w = 0.0 - natural(log_parts((1.0 - x) * (1.0 + x)))  # +0 at 0
    first, *rest = pick(x, INVERSE_32, INVERSE_64)
    near = fma(x, w * horner(w, rest), x * first)

    root = unary("sqrt", w)
    beyond = w >= pick(x, 5.0, 6.25)
    if single:
        value = select(beyond, x * horner(root - 3.0, INVERSE_TAIL_32), near)
    else:

        def far(*_: Expr) -> list[Expr]:
            outer = horner(root - 5.0, INVERSE_FAR_64)
            value = select(root < 4.0, horner(root - 3.25, INVERSE_TAIL_64), outer)
            return [const(False, BOOL), x * value]

        # One of 1000 numbers in -1..1 is that far out.
        value = loop([beyond, near], lambda pending, _: pending, far, rare=True)[1]
    a = abs(x)
    ends = select(eq(a, 1.0), copysign(const(INF, x.dtype), x), x + NAN)
    return select(a < 1.0, value, ends)
