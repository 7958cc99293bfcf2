"""erf: x + x P(x**2) near 0, and 1 - exp(|x| Q(|x|)) beyond.

log(erfc(x)) is nearly a parabola, so a polynomial fits it well, and where erf is near 1 an error in the
exponent counts only as much as erfc does. (The idea is N. Juffa's.)
"""

from __future__ import annotations

from ..scalar import Expr, binary, fma, select
from .exponential import exp_parts
from .floats import copysign, horner, pick, scale_normal

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
    a = abs(x)
    near = fma(x, horner(x * x, pick(x, NEAR_32, NEAR_64)), x)
    b = binary("min", a, pick(x, 4.0, 6.0))
    p = exp_parts(b * horner(b, pick(x, FAR_32, FAR_64)))
    far = 1.0 - scale_normal(p.excess + 1.0, p.n)
    return select(a < pick(x, 0.93, 1.0), near, copysign(far, x))
