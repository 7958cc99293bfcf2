"""Errors of Python's own numbers: `1 / 0` raises where Python counts, and is inf or 0 where NumPy does.

The checks are ops, so that the compiled function raises, at the user's line. Formulas of ours, which may
be given Python's numbers too, divide as NumPy does.
"""

from __future__ import annotations

import math
import operator
import sys
from collections.abc import Callable, Sequence
from functools import reduce
from types import FrameType
from typing import Any

import numpy as np

from ...ir.types import is_float
from ..core.effects import check
from ..core.trace import require_trace
from ..core.tracers import Tracer, as_value, wrap
from ..messages.source import is_own_frame
from .common import static_array
from .late_checks import Late, check_at_once, check_in_the_end, check_later, make_certain
from .signs import is_nonnegative, is_positive

_DIVISIONS: dict[str, Callable[[Any, Any], Any]] = {
    "divide": operator.truediv,
    "floor_divide": operator.floordiv,
    "remainder": operator.mod,
}
_PASSED = (
    *("functions.operators", "arrays.python_errors", "arrays.python_integers"),
    *("autograph.elements", "users.operators", "autograph.texts", "autograph.logic"),
    *("autograph.twins", "autograph.uses", "calls.modular", "containers.growing"),
    *("calls.streams", "calls.generators"),
)
_LARGEST = 2.0**63


def check_operation(name: str, x: Any, y: Any, kind: str) -> None:
    """Have the compiled function raise what `x name y` raises of Python's numbers."""
    if kind == "c" or name not in (*_DIVISIONS, "power", "left_shift", "right_shift"):
        return
    trace = require_trace()
    if trace.eager or not trace.options.python_errors or in_ours(sys._getframe(1)):
        return
    if name in _DIVISIONS:
        check_divisor(name, y, kind, "f" in (_kind(x), _kind(y)))
    elif name == "power":
        _check_power(x, y, kind)
    elif not _known(y, _not_negative):
        check(_python(y) >= 0, "negative shift count", error="ValueError")


def check_divisor(name: str, y: Any, kind: str, floats: bool = False) -> None:
    """Have the compiled function raise where a number is divided by zero."""
    if _is_nonzero(y):
        return
    zero = 0.0 if kind == "f" and floats else 0
    text = _text(_DIVISIONS[name], type(zero)(1), zero)
    if kind == "f":
        check_in_the_end(_python(y) == 0, text, "ZeroDivisionError", y)
    else:  # what an integer is may be asked at once: an index, a shift
        check(_python(y) != 0, text, error="ZeroDivisionError")
    _note_nonzero(y)


def check_int(x: Tracer) -> None:
    """Have the compiled function raise what `int(x)` raises of a float, Python's or NumPy's."""
    trace = require_trace()
    if trace.eager or not trace.options.python_errors or not is_float(x.dtype):
        return
    value = _python(x)
    infinite = "cannot convert float infinity to integer, nor a float beyond 64 bits"
    checks = [
        Late(lambda: value != value, "cannot convert float NaN to integer", "ValueError"),
        Late(lambda: ~(np.abs(value) < _LARGEST), infinite, "OverflowError"),
    ]
    if x.weak is None:  # of elements of arrays, in loops that vectors and threads share
        check_later(checks, x)
    else:
        make_certain([as_value(x)])
        check_at_once(checks)


def as_of_math(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """`math.name` by a function of NumPy's, which raises nothing: of Python's numbers it does."""
    domain, range_ = _DOMAIN.get(name), _RANGE.get(name)
    if domain is None and range_ is None:
        return function

    def call(*args: Any) -> Any:
        result = function(*args)
        trace = require_trace()
        if trace.eager or not trace.options.python_errors or not isinstance(result, Tracer):
            return result
        numbers = [_python(x) for x in args]
        if domain is not None and not _always(name, numbers):
            check_in_the_end(domain(*numbers), "math domain error", "ValueError", *args)
        if range_ is not None:
            large = range_(_python(result), *numbers)
            check_in_the_end(large, "math range error", "OverflowError", *args)
        return result

    return call


def _always(name: str, args: Sequence[Any]) -> bool:
    """Whether the arguments are known to be such that the function is defined."""
    if name == "sqrt":
        return is_nonnegative(as_value(args[0]))
    return name.startswith("log") and is_positive(as_value(args[0]))


def _finite(*args: Any) -> Any:
    """Whether all are finite: then a result must be, too."""
    return reduce(operator.and_, [np.abs(x) < np.inf for x in args])


def _became_infinite(result: Any, *args: Any) -> Any:
    return np.isinf(result) & _finite(*args)


def _beyond(largest: float, of: Callable[[Any], Any] = lambda x: x) -> Callable[..., Any]:
    """Whether a finite argument is larger than the last one that has a finite result: of elements of
    arrays this is asked before a loop, where the result would be computed twice."""
    return lambda result, x: (of(x) > largest) & (of(x) < np.inf)


def _hypotenuse(result: Any, x: Any, y: Any) -> Any:
    """Whether the squares of finite numbers, made smaller, have a sum beyond that of the largest."""
    small = 2.0**-600
    return ((x * small) ** 2 + (y * small) ** 2 > (sys.float_info.max * small) ** 2) & _finite(x, y)


# Where functions of `math` raise ValueError; and where OverflowError.
_DOMAIN: dict[str, Callable[..., Any]] = {
    "sqrt": lambda x: x < 0,
    **dict.fromkeys(("log", "log2", "log10"), lambda x, base=None: x <= 0),
    "log1p": lambda x: x <= -1,
    **dict.fromkeys(("sin", "cos", "tan"), lambda x: np.abs(x) == np.inf),
    **dict.fromkeys(("asin", "acos"), lambda x: np.abs(x) > 1),
    "acosh": lambda x: x < 1,
    "atanh": lambda x: np.abs(x) >= 1,
    "fmod": lambda x, y: ((y == 0) & (x == x)) | ((np.abs(x) == np.inf) & (y == y)),
    "pow": lambda x, y: (
        ((x < 0) & (x > -np.inf) & (np.floor(y) != y) & (y == y))
        | ((x == 0) & (y < 0) & (y > -np.inf))
    ),
    "gamma": lambda x: (x <= 0) & (np.floor(x) == x),
    "lgamma": lambda x: (x <= 0) & (x > -np.inf) & (np.floor(x) == x),
}
_RANGE: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(("exp", "expm1"), _beyond(709.782712893384)),
    **dict.fromkeys(("sinh", "cosh"), _beyond(710.4758600739439, np.abs)),
    "exp2": _beyond(1023.9999999999999),
    "hypot": lambda r, *xs: _hypotenuse(r, *xs) if len(xs) == 2 else _became_infinite(r, *xs),
    **dict.fromkeys(("gamma", "lgamma"), _became_infinite),
    "pow": lambda result, x, y: _became_infinite(result, x, y) & (x != 0),
}


def _check_power(x: Any, y: Any, kind: str) -> None:
    if kind != "f":
        return
    if not _known(y, _not_negative) and not _is_nonzero(x):
        text = "0.0 cannot be raised to a negative power"
        check((_python(y) >= 0) | (_python(x) != 0), text, error="ZeroDivisionError")
    if not _known(y, float.is_integer) and not _known(x, _not_negative):
        whole = np.floor(_python(y)) == _python(y)
        check(
            whole | ~(_python(x) < 0),
            "a negative number to a fractional power is complex in Python: write complex(x) ** y",
            error="ValueError",
        )

    base, exponent = _python(x), _python(y)
    large = np.isinf(np.power(base, exponent)) & _finite(base, exponent) & (base != 0)
    text = "(34, 'Numerical result out of range')"
    check_in_the_end(large, text, "OverflowError", x, y)


def in_ours(frame: FrameType | None) -> bool:
    """Whether the operator stands in a formula of this package."""
    while frame is not None and is_own_frame(frame):
        module: str = frame.f_globals["__name__"]
        if not module.endswith(_PASSED):
            return True
        frame = frame.f_back
    return False


def _python(x: Any) -> Any:
    """A number as NumPy's, whose operators raise nothing."""
    return wrap(as_value(x), None)


def _kind(x: Any) -> str:
    return x.weak or "" if isinstance(x, Tracer) else "f" if isinstance(x, float) else "i"


def _known(x: Any, holds: Callable[[float], bool]) -> bool:
    if isinstance(x, Tracer) and holds is _not_negative:
        return is_nonnegative(as_value(x))
    constant = static_array(x)
    return constant is not None and bool(holds(float(constant)))


def _not_negative(x: float) -> bool:
    return x >= 0


def _is_nonzero(x: Any) -> bool:
    if isinstance(x, Tracer):
        value = as_value(x)
        return value in require_trace().nonzero or is_positive(value)
    return _known(x, lambda value: value != 0 or math.isnan(value))


def _note_nonzero(x: Any) -> None:
    if isinstance(x, Tracer):
        require_trace().nonzero.add(as_value(x))


def _text(operation: Callable[[Any, Any], Any], x: Any, zero: Any) -> str:
    """Python's own words."""
    try:
        operation(x, zero)
    except ZeroDivisionError as error:
        return str(error)
    return "division by zero"
