"""What the functions of this room ask of their arguments."""

from __future__ import annotations

import operator
from typing import Any, NoReturn

from ...ir.types import I64, is_inexact
from ..arrays.common import array, known_array
from ..arrays.elementwise import where
from ..core.tracers import Tracer
from ..data.promotion import float_dtype
from ..messages import errors
from ..messages.errors import complain


def refuse_shapes(what: str, remedy: str, **shown: Any) -> NoReturn:
    """ShapeError about the operands that are shown."""
    complain(errors.ShapeError, what, remedy, operands=shown)


def integers(name: str, **named: Any) -> Tracer:
    """The one operand, which has to be of integers."""
    ((called, x),) = named.items()
    numbers = array(x)
    if numbers.size == 0 and not hasattr(x, "dtype"):  # an empty list
        numbers = numbers.astype(int)
    if numbers.dtype.kind not in "iu":
        complain(
            errors.DTypeError,
            f"{name}: {called} are numbers of places, and {numbers.dtype} is no dtype of integers",
            f"convert them with {called}.astype(np.int64).",
            operands={called: numbers},
        )
    return numbers


def known_size(name: str, parameter: str, given: int | None, numbers: Tracer) -> int:
    """How long the result is: as given, else as long as the largest of the numbers asks for."""
    if given is not None:
        return operator.index(given)
    if not numbers.size:
        return 0
    size = numbers.max() + 1
    constant = known_array(size)
    if constant is None:
        complain(
            errors.DynamicShapeError,
            f"{name}: the largest number decides the result's shape, and it is known only when the "
            "compiled function runs",
            f"pass {parameter}=.",
            operands={"numbers": numbers},
            asks=[size],
        )
    return int(constant)


def counted(name: str, called: str, numbers: Tracer, n: int) -> Tracer:
    """The numbers as an index of an axis of size n, in which no negative number counts from the end.

    Those that are known are checked now; the others where they index.
    """
    constant = known_array(numbers)
    if constant is None:
        return where(numbers < 0, numbers.astype(I64) - n, numbers.astype(I64))
    outside = constant[(constant < 0) | (constant >= n)]
    if outside.size:
        complain(
            errors.BoundsError,
            f"{name}: {outside.flat[0]} is among {called}, whose numbers are from 0 to {n - 1}",
            "give numbers in that range, or a larger size.",
            operands={called: numbers},
        )
    return numbers


def floats(x: Any) -> Tracer:
    """An operand of floats or complex numbers; integers become float64."""
    numbers = array(x)
    return numbers if is_inexact(numbers.dtype) else numbers.astype(float_dtype(numbers.dtype))
