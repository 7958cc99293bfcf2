"""Arrays in the layouts that code was compiled for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def spread(shape: Sequence[int], strides: Sequence[int]) -> int:
    """How many elements there are from the first to the last in memory, those between them included."""
    return 1 + sum(abs((n - 1) * step) for n, step in zip(shape, strides, strict=True))


def most_spread(size: int) -> int:
    """More than that of an array that is a small part of another; it is copied together."""
    return 2 * size + 64


def laid_out(array: Array, strides: Sequence[int]) -> tuple[Array, int, Array]:
    """Memory with a copy of the array whose elements lie so many elements apart, where in it (in bytes)
    the first one is, and the copy. Steps of 0 are for elements that are equal."""
    if not array.size:
        empty = np.zeros(0, array.dtype)
        return empty, 0, np.ndarray(array.shape, array.dtype, empty)
    backwards = sum(
        (1 - n) * step for n, step in zip(array.shape, strides, strict=True) if step < 0
    )
    memory = np.zeros(spread(array.shape, strides), array.dtype)
    start = backwards * array.itemsize
    steps = [step * array.itemsize for step in strides]
    view: Array = np.ndarray(array.shape, array.dtype, memory, start, steps)
    view[...] = array
    return memory, start, view
