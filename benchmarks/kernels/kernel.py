"""A kernel of the table: a function of loops over elements, its arguments by size, three sizes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np


class Kernel(NamedTuple):
    """`function(*make(rng, size))`; `static` are positions of arguments that are compiled in.

    Iterations of the loops over the variable `parallel` have nothing to do with each other.
    """

    function: Callable[..., Any]
    make: Callable[[np.random.Generator, int], tuple[Any, ...]]
    sizes: tuple[int, int, int]
    static: tuple[int, ...] = ()
    parallel: str = ""

    @property
    def name(self) -> str:
        return self.function.__name__


KERNELS: list[Kernel] = []


def kernel(
    make: Callable[[np.random.Generator, int], tuple[Any, ...]],
    *sizes: int,
    static: tuple[int, ...] = (),
    parallel: str = "",
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Enter the decorated function into the table."""
    small, middle, large = sizes

    def enter(function: Callable[..., Any]) -> Callable[..., Any]:
        KERNELS.append(Kernel(function, make, (small, middle, large), static, parallel))
        return function

    return enter
