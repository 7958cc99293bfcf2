"""Rejection sampling: a loop that each element of arrays runs for itself, inside one kernel."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arrays.common import build
from ..core.tracers import as_value, wrap
from .keys import Words, blocks, joined, threefry
from .uniforms import fraction, normal_of


def element_keys(key: Any, shape: tuple[int, ...]) -> Words:
    """A key of its own for each element."""
    return blocks(key, shape)


class Stream:
    """The random numbers of one element, whose key are two words: block n gives the n-th of them."""

    def __init__(self, e0: Any, e1: Any, dtype: np.dtype[Any]) -> None:
        self.words = e0, e1
        self.dtype = dtype

    def block(self, n: Any) -> Words:
        e0, e1 = self.words
        zero = wrap(build().full((), 0, np.dtype(np.uint32)))
        return threefry(e0, e1, zero, wrap(as_value(n, np.dtype(np.uint32))))

    def pair(self, n: Any) -> tuple[Any, Any]:
        """Two lots of random bits, as wide as the dtype: of block 2n, and of 2n + 1 where one is
        too narrow."""
        if self.dtype.itemsize == 4:
            return self.block(n)
        return joined(*self.block(2 * n)), joined(*self.block(2 * n + 1))

    def uniforms(self, n: Any) -> tuple[Any, Any]:
        first, second = self.pair(n)
        return fraction(first, self.dtype), fraction(second, self.dtype)

    def normal_and_uniform(self, n: Any) -> tuple[Any, Any]:
        first, second = self.pair(n)
        return normal_of(first, self.dtype), fraction(second, self.dtype)
