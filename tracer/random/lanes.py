"""Rejection sampling: a loop that each element of arrays runs for itself, inside one kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..arrays.common import build
from ..control.control import while_loop
from ..core.tracers import Tracer, as_value, wrap
from ..transforms.vmap import vmap
from .keys import Words, blocks, joined, threefry
from .uniforms import fraction, normal_of


def each(function: Callable[..., Any], *arrays: Tracer) -> Any:
    """`function` of the elements of arrays of one shape; its loops are each element's own."""
    shape = arrays[0].shape
    if not shape:
        return function(*arrays)
    b = build()
    flat = [wrap(b.reshape(as_value(a), shape=(a.size,))) for a in arrays]
    found = vmap(function)(*flat)
    several = isinstance(found, tuple)
    shaped = [
        wrap(build().reshape(as_value(x), shape=shape)) for x in (found if several else (found,))
    ]
    return tuple(shaped) if several else shaped[0]


def repeat(trial: Callable[[Any], Any], state: Any) -> Any:
    """`state = trial(state)` for as long as the last part of the state holds."""
    return while_loop(lambda state: state[-1], trial, state)


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
