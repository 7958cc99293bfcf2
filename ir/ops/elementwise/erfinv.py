"""`erfinv`, the inverse of the error function; its reference is Wichura's quantile of the normal.

erfinv(x) is the quantile of (1 + x) / 2 over sqrt(2). Algorithm AS 241 (Wichura, Applied Statistics
37, 1988), good to 16 digits, is written in q = p - 1/2, which here is x / 2, and in the smaller of p and
1 - p, which is (1 - |x|) / 2: no digit is lost on either side.
"""

from __future__ import annotations

import math

import numpy as np

from ...cost import Cost
from ..families import Array, elementwise

# Numerator and denominator, lowest order first: near 0, in the tail, and far out.
QUANTILE_MIDDLE = (
    (3.3871328727963666080, 133.14166789178437745, 1971.5909503065514427, 13731.693765509461125,
     45921.953931549871457, 67265.770927008700853, 33430.575583588128105, 2509.0809287301226727),
    (1.0, 42.313330701600911252, 687.18700749205790830, 5394.1960214247511077,
     21213.794301586595867, 39307.895800092710610, 28729.085735721942674, 5226.4952788528545610),
)  # fmt: skip
QUANTILE_TAIL = (
    (1.42343711074968357734, 4.63033784615654529590, 5.76949722146069140550, 3.64784832476320460504,
     1.27045825245236838258, 0.241780725177450611770, 0.0227238449892691845833,
     7.74545014278341407640e-4),
    (1.0, 2.05319162663775882187, 1.67638483018380384940, 0.689767334985100004550,
     0.148103976427480074590, 0.0151986665636164571966, 5.47593808499534494600e-4,
     1.05075007164441684324e-9),
)  # fmt: skip
QUANTILE_FAR = (
    (6.65790464350110377720, 5.46378491116411436990, 1.78482653991729133580, 0.296560571828504891230,
     0.0265321895265761230930, 1.24266094738807843860e-3, 2.71155556874348757815e-5,
     2.01033439929228813265e-7),
    (1.0, 0.599832206555887937690, 0.136929880922735805310, 0.0148753612908506148525,
     7.86869131145613259100e-4, 1.84631831751005468180e-5, 1.42151175831644588870e-7,
     2.04426310338993978564e-15),
)  # fmt: skip


def _ratio(parts: tuple[tuple[float, ...], tuple[float, ...]], r: Array) -> Array:
    above, below = (np.polyval(p[::-1], r) for p in parts)
    return np.asarray(above / below)


def erfinv(x: Array) -> Array:
    """In float64, rounded to the dtype of x. +-1 give infinities, what lies beyond gives NaN."""
    wide = np.asarray(x, np.float64)
    with np.errstate(all="ignore"):
        q = 0.5 * wide
        middle = q * _ratio(QUANTILE_MIDDLE, 0.180625 - q * q)
        r = np.sqrt(-np.log(0.5 * (1.0 - np.abs(wide))))
        tail = np.where(r <= 5.0, _ratio(QUANTILE_TAIL, r - 1.6), _ratio(QUANTILE_FAR, r - 5.0))
        tail = np.copysign(np.where(np.abs(wide) == 1.0, np.inf, tail), wide)
        quantile = np.where(np.abs(q) <= 0.425, middle, tail) * math.sqrt(0.5)
        return quantile.astype(x.dtype)


elementwise(
    "erfinv",
    Cost.FUNCTION,
    erfinv,
    [lambda t, z, x: t * ((z * z).exp() * (0.5 * math.sqrt(math.pi)))],
    domain=(-0.9, 0.9),
    doc="the inverse of erf",
)
