"""Floating-point errors: what `np.errstate(divide="raise")` and its kin ask of the code below them.

What NumPy reads off the processor's flags is found in operands and results, and checked where the
function runs. The state is the function's own: it begins with NumPy's usual one, in which nothing
raises.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np

from ...ir.build import Builder
from ...ir.graph import Value
from ...ir.types import BOOL, finfo, is_float, is_inexact
from ..core.effects import check
from ..core.trace import require_trace
from ..core.tracers import wrap
from ..messages import errors
from ..messages.errors import complain
from .lowerings import LOWERINGS

_TEXTS = {
    "divide": "divide by zero",
    "over": "overflow",
    "under": "underflow",
    "invalid": "invalid value",
}
_POLES = frozenset("reciprocal log log2 log10 log1p arctanh".split())  # infinite at numbers
_QUOTIENTS = frozenset("divide floor_divide remainder fmod divmod".split())
_POWERS = frozenset({"power", "float_power"})
_PRODUCTS = frozenset({"multiply", "divide", "square", "cast"}) | _POWERS  # 0 comes of 0, exactly
_QUIET = frozenset(  # raise nothing, whatever they are given
    "isnan isinf isfinite signbit copysign maximum minimum fmax fmin negative positive absolute fabs "
    "equal not_equal less less_equal greater greater_equal logical_and logical_or logical_xor "
    "logical_not nextafter heaviside sign conjugate rint floor ceil trunc".split()
)


def raising() -> frozenset[str]:
    """Which kinds of errors raise here: none as a rule."""
    state = np.geterr()
    for mode in state.values():
        if mode in ("call", "print", "log"):
            complain(
                errors.TransformError,
                f"np.errstate with {mode!r} tells of floating-point errors while the code runs, which "
                "compiled code cannot do",
                'use "raise" or "ignore", or look at results with np.isfinite.',
            )
    return frozenset(kind for kind, mode in state.items() if mode == "raise")


def checked(
    name: str, operands: Sequence[Value], result: Value, where: Value | None = None
) -> None:
    """Have the compiled function raise FloatingPointError where NumPy's `name` would; of elements for
    which `where` holds."""
    kinds = raising()
    if not kinds or name in _QUIET:
        return
    b = require_trace().builder
    if name == "cast" and result.dtype == BOOL:
        return
    if not any(is_inexact(x.dtype) for x in (result, *operands)):
        conditions = {"divide": _equals(b, operands[1], 0)} if name in _QUOTIENTS else {}
    elif not is_inexact(result.dtype):
        conditions = {"invalid": b.invert(_fits(b, operands[0], result.dtype))}
    else:
        conditions = _of_floats(b, name, operands, result)
    for kind, text in _TEXTS.items():
        if kind in kinds and kind in conditions:
            bad = (
                conditions[kind]
                if where is None
                else _both(b, [conditions[kind], where], result.shape)
            )
            fine = ~wrap(bad).any()
            check(fine, f"{text} encountered in {name}", error="FloatingPointError")


def _of_floats(b: Builder, name: str, operands: Sequence[Value], result: Value) -> dict[str, Value]:
    """Where the result is what each kind of error leaves of such operands."""
    floats = [x for x in operands if is_inexact(x.dtype)]

    def both(*tests: Value) -> Value:
        return _both(b, tests, result.shape)

    invalid = both(_test(b, "isnan", result), *(b.invert(_test(b, "isnan", x)) for x in floats))
    infinite = both(_test(b, "isinf", result), *(_test(b, "isfinite", x) for x in floats))
    conditions = {"invalid": invalid, "over": infinite}
    if name in _POLES:
        conditions = {"invalid": invalid, "divide": infinite}
    elif name in _QUOTIENTS or name in _POWERS:
        zero = _equals(b, operands[1 if name in _QUOTIENTS else 0], 0)
        conditions = {
            "invalid": invalid,
            "divide": both(infinite, zero),
            "over": both(infinite, b.invert(zero)),
        }
    if is_float(result.dtype) and (name in _PRODUCTS or name in ("exp", "exp2")):
        tiny = b.full_like(result, finfo(result.dtype).tiny)
        nonzero = operands[:1] if name in _QUOTIENTS | _POWERS else operands
        conditions["under"] = both(
            b.lt(b.abs(result), tiny),
            *(_test(b, "isfinite", x) for x in floats),
            *(b.invert(_equals(b, x, 0)) for x in nonzero if name in _PRODUCTS),
        )
    return conditions


def _fits(b: Builder, x: Value, dtype: np.dtype[Any]) -> Value:
    """Where floats are numbers that a cast to integers keeps: processors convert to 32 bits at least."""
    bits = 8 * max(dtype.itemsize, 4)
    if not is_float(x.dtype):
        return _test(b, "isfinite", x)
    high = b.full_like(x, 2.0 ** (bits if dtype.kind == "u" else bits - 1))
    low = b.full_like(x, -(2.0 ** (bits - 1)))
    return b.op("bitwise_and", b.ge(x, low), b.lt(x, high))


def _test(b: Builder, name: str, x: Value) -> Value:
    test: Value = LOWERINGS[name](b, x)
    return test


def _equals(b: Builder, x: Value, number: int) -> Value:
    return b.eq(x, b.full_like(x, number))


def _both(b: Builder, tests: Sequence[Value], shape: tuple[int, ...]) -> Value:
    shaped = [b.broadcast_to(test, shape) for test in tests]
    return reduce(lambda one, other: b.op("bitwise_and", one, other), shaped)
