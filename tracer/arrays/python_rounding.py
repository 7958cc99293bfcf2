"""`round(x, digits)` of Python's own numbers: the decimal number that is nearest to x, ties to even.

NumPy rounds `x * 10**digits`, which is rounded already: `np.round(2.675, 2)` is 2.68, although the float
2.675 is below its name. Here what the product loses is counted, too.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.tracers import Tracer, wrap
from ..messages import errors
from ..messages.errors import complain
from .common import broadcast_values, build
from .elementwise import where

_F64 = np.dtype(np.float64)
_EXACT = 22  # powers of ten up to this one are floats
_WHOLE = 2.0**53  # floats from here on are integers


def round_float(x: Tracer, digits: int) -> Tracer:
    """Of float64; NaN and infinities stay.

    The multiple of a power of ten next to x is an integer times (or over) that power, with one rounding:
    as Python reads decimal numbers. What says which integer it is, is computed exactly.
    """
    if abs(digits) > _EXACT:
        complain(
            errors.UnsupportedFunctionError,
            f"round(x, {digits}): compiled functions round to at most {_EXACT} digits",
            "round outside of the compiled function.",
            operands={"x": x},
        )
    scale = 10.0 ** abs(digits)
    scaled = x * scale if digits >= 0 else x / scale
    whole = np.rint(scaled)
    odd = np.abs(whole - 2.0 * np.rint(0.5 * whole)) == 1.0
    if digits >= 0:  # x * scale is scaled + rest
        rest, far = _fma(x, scale, -scaled), scaled - whole
        above = ((far == 0.5) & (rest > 0)) | ((far == 0) & (rest == 0.5) & odd)
        below = ((far == -0.5) & (rest < 0)) | ((far == 0) & (rest == -0.5) & odd)
    else:  # x is whole * scale + rest
        rest, half = _fma(-whole, scale, x), 0.5 * scale
        above = (rest > half) | ((rest == half) & odd)
        below = (rest < -half) | ((rest == -half) & odd)
    whole = where(above, whole + 1.0, where(below, whole - 1.0, whole))
    rounded = np.copysign(whole / scale if digits >= 0 else whole * scale, x)
    return where(np.abs(scaled) < _WHOLE, rounded, x)


def round_int(x: Tracer, digits: int) -> Tracer:
    """Of an int of Python's, which may become larger than 64 bits."""
    if digits >= 0:
        return +x
    scale = 10**-digits
    if scale > 2**63:
        return x * 0
    whole, rest = x // scale, x % scale
    up = (rest > scale // 2) | ((rest == scale // 2) & (whole % 2 == 1))
    return (whole + up) * scale


def _fma(x: Any, y: Any, z: Any) -> Tracer:
    return wrap(build().fma(*broadcast_values((x, y, z), (_F64,) * 3, "operands")))
