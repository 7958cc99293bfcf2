"""Are arrays equal, element by element or as a whole, exactly or nearly?"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...ir.types import F64
from ..arrays import ufuncs
from ..arrays.common import array, kind, operand
from ..arrays.reductions import all_
from ..arrays.table import function
from ..core.tracers import Tracer, as_value, wrap
from ..data.promotion import float_dtype


@function("isclose")
def isclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> Any:
    x, y = operand(a), operand(b)
    kind_of_y = kind(y)
    if isinstance(kind_of_y, np.dtype):
        y = array(y).astype(float_dtype(kind_of_y))
    elif kind_of_y is int:
        y = float(y) if type(y) is int else wrap(as_value(y, F64), weak="f")
    difference = abs(ufuncs.apply(np.subtract, x, y))
    bound = operand(atol) + operand(rtol) * abs(y)
    finite = ufuncs.apply(np.isfinite, y)
    close = (difference <= bound) & finite | ufuncs.apply(np.equal, x, y)
    if equal_nan:
        close = close | ufuncs.apply(np.isnan, x) & ufuncs.apply(np.isnan, y)
    return close


@function("allclose")
def allclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> Any:
    return _truth(all_(isclose(a, b, rtol, atol, equal_nan)))


def _truth(x: Tracer) -> Tracer:
    """As a bool of Python."""
    return wrap(as_value(x), weak="b")


@function("array_equal")
def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> Any:
    x, y = array(a1), array(a2)
    if x.shape != y.shape:
        return _truth(array(False))
    same = x == y
    if equal_nan:
        same = same | ufuncs.apply(np.isnan, x) & ufuncs.apply(np.isnan, y)
    return _truth(all_(same))


@function("array_equiv")
def array_equiv(a1: Any, a2: Any) -> Any:
    x, y = array(a1), array(a2)
    try:
        np.broadcast_shapes(x.shape, y.shape)
    except ValueError:
        return _truth(array(False))
    return _truth(all_(x == y))
