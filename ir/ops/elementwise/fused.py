"""`fma`: a product and a sum with one rounding, which makes the rounding errors of others known."""

from __future__ import annotations

import numpy as np

from ...cost import Cost
from ...types import F32, F64
from ..families import IDENTITY, Array, elementwise

_SPLITTER = 134217729.0  # 2**27 + 1


def _halves(x: Array) -> tuple[Array, Array]:
    """x as a sum of two numbers of 26 bits (Veltkamp)."""
    scaled = x * _SPLITTER
    high = scaled - (scaled - x)
    return high, x - high


def _fma(x: Array, y: Array, z: Array) -> Array:
    """In float64: the product and the sum as pairs of numbers (Dekker, Knuth)."""
    with np.errstate(all="ignore"):
        a, b, c = (np.asarray(v, np.float64) for v in (x, y, z))
        product = a * b
        total = product + c
        (a1, a2), (b1, b2) = _halves(a), _halves(b)
        low = a2 * b2 - (((product - a1 * b1) - a2 * b1) - a1 * b2)
        back = total - product
        rest = (product - (total - back)) + (c - back) + low
        rounded = np.where(np.isfinite(rest), total + rest, total)
        if x.dtype == F64:
            return rounded
        if x.dtype == F32:
            return rounded.astype(F32)
        # As what is widened, computed and rounded to float32 on the way.
        return rounded.astype(F32).astype(x.dtype)


elementwise(
    "fma",
    Cost.CHEAP,
    _fma,
    [lambda t, z, x, y, w: t * y, lambda t, z, x, y, w: t * x, IDENTITY],
    operands=("T", "T", "T"),
    doc="x * y + z with one rounding",
)
