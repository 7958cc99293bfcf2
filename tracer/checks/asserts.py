"""Assertions about values: `jt.check` and `jt.assert_...`, in compiled code and outside of it.

They hold or fail each time that the program comes there, in program order, and no pass drops them: the
message has the numbers. What is not traced is checked at once.
"""

from __future__ import annotations

import string
from collections.abc import Callable
from typing import Any

import numpy as np

from ...ir.ops.control.effects import ERRORS
from ...ir.types import is_complex
from ..control.callbacks import each_time
from ..control.control import cond
from ..control.debugging import Fields
from ..core import effects
from ..core.tracers import Tracer, as_value
from .shapes import fail

_MOST_VALUES = 8  # that native code hands to a message: the words of a status block
_SHOWN = 6  # elements of an array in a message


def check(condition: Any, message: str = "", *values: Any, **named: Any) -> None:
    """AssertionError with `message.format(*values, **named)` unless `condition`, a bool or an array of
    bools, is true everywhere.

        jt.check(n > 0, "n = {}", n)
        jt.check(n > 0, "n = {}", n, error=ValueError)  # or another of Python's own

    Unlike Python's `assert` it stays under `python -O`, and works where autograph does not.

    >>> jt.check(np.array([True, False]), "x = {x}", x=3)
    Traceback (most recent call last):
    AssertionError: x = 3
    """
    if not isinstance(message, str):
        raise TypeError(f"the message of jt.check is a string, not {message!r}")
    kind = named.pop("error") if isinstance(named.get("error"), type) else AssertionError
    if kind.__name__ not in ERRORS:
        raise TypeError(f"jt.check raises {', '.join(ERRORS)}, not {kind.__name__}")
    Fields().vformat(message, values, named)  # a wrong template is an error here
    holds = np.all(condition)
    given = [*values, *named.values()]
    if not any(isinstance(x, Tracer) for x in (holds, *given)):
        if not holds:
            raise kind(message.format(*values, **named))
        return
    template = _positional(message, len(values), list(named))
    if template is not None and len(given) <= _MOST_VALUES and all(map(_is_word, given)):
        text = template if given else message.format()
        effects.check(holds, text, *given, error=kind.__name__)
        return

    def tell(*known: Any) -> None:
        names = dict(zip(named, known[len(values) :], strict=True))
        with np.printoptions(threshold=_SHOWN, edgeitems=_SHOWN // 2):
            raise kind(message.format(*known[: len(values)], **names))

    tell.__name__ = kind.__name__
    cond(holds, lambda: None, lambda: each_time(tell, *given))


def _positional(message: str, count: int, names: list[str]) -> str | None:
    """A template of positional fields only; None where a field is more than a number."""
    made, following = "", iter(range(count + len(names)))
    for literal, field, spec, conversion in string.Formatter().parse(message):
        made += literal.replace("{", "{{").replace("}", "}}")
        if field is None:
            continue
        if field in names:
            field = str(count + names.index(field))
        elif not field:
            field = str(next(following))
        if not field.isdigit() or "{" in (spec or ""):
            return None
        made += "{" + field + (f"!{conversion}" if conversion else "")
        made += (f":{spec}" if spec else "") + "}"
    return made


def _is_word(x: Any) -> bool:
    """Whether native code can hand a value to a message."""
    if isinstance(x, (bool, int, float)):
        return True
    if not isinstance(x, (Tracer, np.ndarray, np.generic)) or np.shape(x):
        return False
    return not is_complex(x.dtype) and x.dtype.kind in "biuf" and x.dtype.itemsize <= 8


# Comparisons, element by element


def assert_equal(x: Any, y: Any) -> None:
    """AssertionError, with the first two elements that differ, unless all are equal. NaN is not equal to
    itself.

    >>> assert_equal(np.array([1, 2]), np.array([1, 3]))
    Traceback (most recent call last):
    AssertionError: assert_equal: 1 of 2 elements, the first at [1]: 2 is not equal to 3
    """
    _each("assert_equal", np.equal, "{} is not equal to {}", x, y)


def assert_not_equal(x: Any, y: Any) -> None:
    """AssertionError unless elements differ everywhere.

    >>> assert_not_equal(np.array([1, 2]), 3)
    """
    _each("assert_not_equal", np.not_equal, "{} is equal to {}", x, y)


def assert_close(x: Any, y: Any, rtol: float = 1e-5, atol: float = 1e-8) -> None:
    """AssertionError unless `abs(x - y) <= atol + rtol * abs(y)` everywhere, as `np.allclose`.

    >>> assert_close(1.0, 1.0 + 1e-9)
    """
    _each(
        "assert_close",
        lambda x, y: np.isclose(x, y, rtol, atol),
        f"{{}} is not within rtol={rtol}, atol={atol} of {{}}",
        x,
        y,
    )


def assert_less(x: Any, y: Any) -> None:
    """AssertionError unless `x < y` everywhere.

    >>> assert_less(1, np.array([2, 3]))
    """
    _each("assert_less", np.less, "{} is not less than {}", x, y)


def assert_less_equal(x: Any, y: Any) -> None:
    """AssertionError unless `x <= y` everywhere.

    >>> assert_less_equal(np.array([1, 2]), 2)
    """
    _each("assert_less_equal", np.less_equal, "{} is greater than {} or nan", x, y)


def assert_greater(x: Any, y: Any) -> None:
    """AssertionError unless `x > y` everywhere.

    >>> assert_greater(3, np.array([1, 2]))
    """
    _each("assert_greater", np.greater, "{} is not greater than {}", x, y)


def assert_greater_equal(x: Any, y: Any) -> None:
    """AssertionError unless `x >= y` everywhere.

    >>> assert_greater_equal(2, np.array([1, 2]))
    """
    _each("assert_greater_equal", np.greater_equal, "{} is less than {} or nan", x, y)


def assert_positive(x: Any) -> None:
    """AssertionError unless all elements are above 0.

    >>> assert_positive(np.array([1.0, -2.0]))
    Traceback (most recent call last):
    AssertionError: assert_positive: 1 of 2 elements, the first at [1]: -2.0 is not positive
    """
    _each("assert_positive", lambda x: x > 0, "{} is not positive", x)


def assert_negative(x: Any) -> None:
    """AssertionError unless all elements are below 0.

    >>> assert_negative(-1.0)
    """
    _each("assert_negative", lambda x: x < 0, "{} is not negative", x)


def assert_non_negative(x: Any) -> None:
    """AssertionError unless all elements are 0 or above.

    >>> assert_non_negative(np.array([0, 1]))
    """
    _each("assert_non_negative", lambda x: x >= 0, "{} is negative or nan", x)


def assert_non_positive(x: Any) -> None:
    """AssertionError unless all elements are 0 or below.

    >>> assert_non_positive(0.0)
    """
    _each("assert_non_positive", lambda x: x <= 0, "{} is positive or nan", x)


def assert_finite(x: Any) -> None:
    """AssertionError if an element is NaN or infinite.

    >>> assert_finite(np.array([1.0, np.inf]))
    Traceback (most recent call last):
    AssertionError: assert_finite: 1 of 2 elements, the first at [1]: inf is not finite
    """
    _each("assert_finite", np.isfinite, "{} is not finite", x)


def assert_in_range(x: Any, low: Any, high: Any) -> None:
    """AssertionError unless `low <= x <= high` everywhere.

    >>> assert_in_range(0.5, 0, 1)
    """
    _each(
        "assert_in_range",
        lambda x, low, high: np.logical_and(low <= x, x <= high),
        "{} is not between {} and {}",
        x,
        low,
        high,
    )


def _each(name: str, holds: Callable[..., Any], said: str, *operands: Any) -> None:
    """Assert that something holds for all elements; `said` is about those for which it does not."""
    arrays = [
        x if isinstance(x, (Tracer, bool, int, float, complex)) else np.asarray(x) for x in operands
    ]
    try:
        shape = np.broadcast_shapes(*(np.shape(x) for x in arrays))
    except ValueError:
        fail(f"{name}: the shapes do not go together", operands)
    good = holds(*arrays)
    traced = any(isinstance(x, Tracer) for x in arrays)
    if not traced:
        if not np.all(good):
            raise AssertionError(_found(name, said, np.asarray(good), shape, arrays))
    elif not shape:
        words = all(map(_is_word, arrays))
        check(
            good,
            f"{name}: {said}" if words else f"{name} does not hold",
            *(arrays if words else ()),
        )
    else:
        cond(np.all(good), lambda: None, lambda: _tell(name, said, good, shape, arrays))


def _found(name: str, said: str, good: Any, shape: tuple[int, ...], arrays: list[Any]) -> str:
    bad = np.argwhere(~np.broadcast_to(good, shape))
    place = tuple(bad[0])
    values = [np.broadcast_to(x, shape)[place].item() for x in arrays]
    where = f"{len(bad)} of {good.size} elements, the first at {[int(i) for i in place]}: "
    return f"{name}: {where if shape else ''}{said.format(*values)}"


def _tell(name: str, said: str, good: Any, shape: tuple[int, ...], arrays: list[Any]) -> None:
    """Raise, in compiled code, for the first element that is not as it should be."""
    flat = np.ravel(good)
    first = np.argmin(flat)
    size = int(np.prod(shape))
    count = size - np.count_nonzero(flat)
    values = []
    if all(not is_complex(as_value(x).tensor.dtype) for x in arrays):
        for x in arrays:
            one = np.shape(x) == ()
            values.append(
                x if one else np.take(np.ravel(np.broadcast_to(x, shape)), first, mode="clip")
            )
    places, rest = [], first
    if len(shape) + 1 + len(values) <= _MOST_VALUES:
        for n in reversed(shape):
            places.append(rest % n)
            rest = rest // n
        places.reverse()
    else:
        places = [first]
    at = "[" + ", ".join(["{}"] * len(places)) + "]"
    what = said if values else "it does not hold"
    check(
        False,
        f"{name}: {{}} of {size} elements, the first at {at}: {what}",
        count,
        *places,
        *values,
    )
