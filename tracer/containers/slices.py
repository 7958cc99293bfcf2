"""Slices of native lists: which elements they are."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...ir.types import I64
from ..core.tracers import Tracer, as_value, wrap
from ..messages import errors
from ..messages.errors import complain


def as_int(x: Any) -> Any:
    """A number as an int of Python's."""
    return wrap(as_value(x, I64), "i")


def bounds(index: slice, length: Any) -> tuple[Any, Any, Any]:
    """Where a slice starts, how many elements it has, and its step."""
    step = 1 if index.step is None else index.step
    if isinstance(step, Tracer):
        complain(
            errors.DynamicShapeError,
            "the step of a slice depends on a traced value",
            "write a loop.",
        )
    if step == 0:
        raise ValueError("slice step cannot be zero")
    low, high = (0, length) if step > 0 else (-1, length - 1)

    def place(x: Any, default: Any) -> Any:
        if x is None:
            return default
        x = np.where(x < 0, x + length, x)
        return np.minimum(np.maximum(x, low), high)

    start = place(index.start, low if step > 0 else high)
    stop = place(index.stop, high if step > 0 else low)
    count = (stop - start + step - (1 if step > 0 else -1)) // step
    return start, np.maximum(count, 0), step
