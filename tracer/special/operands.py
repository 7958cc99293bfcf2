"""How special functions take their operands, and what several of them share."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from ...ir.types import F32, F64, is_float, is_small
from ..core import as_value, wrap
from ..functions.common import broadcast_values, build, check_real, common_dtype, operand
from ..functions.elementwise import where
from ..functions.table import function

F = TypeVar("F", bound=Callable[..., Any])


def special(*names: str, wide: bool = True, optional: int = 0) -> Callable[[F], F]:
    """Enter the decorated function of arrays into the table, as `special.name`.

    It gets its operands as arrays of one shape and one dtype, that of `wide` functions being float64 and
    that of others float32 or float64, and its result is rounded to the operands' common float dtype
    (integers count as float64). Up to `optional` of the last operands may be left out, or None.
    """

    def enter(compute: F) -> F:
        count = compute.__code__.co_argcount

        @functools.wraps(compute)
        def traced(*args: Any) -> Any:
            given = args[: len(args) - sum(a is None for a in args)]
            if not count - optional <= len(given) <= count or len(args) > count:
                raise TypeError(f"{names[0]}() takes {count} operands, got {len(args)}")
            operands = [operand(x) for x in given]
            check_real(names[0], *operands)
            dtype = common_dtype(*operands)
            dtype = dtype if is_float(dtype) else F64
            inside = F64 if wide else F32 if is_small(dtype) else dtype
            values = broadcast_values(operands, [inside] * len(operands), "operands")
            found = compute(*(wrap(v) for v in values))
            return wrap(as_value(found, dtype))

        function(*(f"special.{n}" for n in names), composed=True)(traced)
        return compute

    return enter


def polynomial(x: Any, coefficients: Sequence[float]) -> Any:
    """c0 + c1 x + c2 x**2 + ..."""
    *rest, total = coefficients
    for c in reversed(rest):
        total = total * x + c
    return total


def sin_pi(x: Any) -> Any:
    """sin(pi x), exactly 0 at integers."""
    nearest = np.rint(x)
    sine = np.sin(math.pi * (x - nearest))
    return where(np.remainder(nearest, 2.0) == 1, -sine, sine)


def log1p_rest(u: Any) -> Any:
    """log(1 + u) - u, without cancellation near 0.

    With v = u / (2 + u) it is 2 artanh(v) - u = 2 v**3 (1/3 + v**2/5 + ...) - u v.
    """
    near = abs(u) < 0.5
    w = where(near, u, 0.0)
    v = w / (2.0 + w)
    series = polynomial(v * v, [1 / k for k in range(3, 41, 2)])
    return where(near, 2.0 * v * v * v * series - w * v, np.log1p(u) - u)


def value_of(x: Any) -> Any:
    """x without its derivative."""
    return wrap(build().stop_gradient(as_value(x)))
