"""`jt.materialize` and `jt.schedule`: asking whether code would be faster otherwise."""

from __future__ import annotations

from contextvars import Token
from types import TracebackType
from typing import TypeVar

from ...ir.graph import Knobs
from ...ir.types import TOKEN
from ..data.opened import tree_map
from ..messages.scopes import KNOBS
from .tracers import Tracer, as_value, emit

T = TypeVar("T")


def materialize(x: T) -> T:
    """`x`, a tree of arrays, in memory as a whole before anything reads it: no loop computes an array of
    it and uses it at once. It changes nothing that is computed.

    By itself the compiler decides which values are kept; this asks for one, to see whether that would be
    faster. Derivatives and `vmap` keep it; `f.explain` tells where it parts loops. Outside of tracing,
    and for numbers, nothing happens.

    >>> jt.jit(lambda x: jt.materialize(np.exp(x)) * 2)(np.zeros(3))
    array([2., 2., 2.])
    """
    return tree_map(_kept, x)


def _kept(leaf: T) -> T:
    if not isinstance(leaf, Tracer) or leaf.value.type == TOKEN or not leaf.shape:
        return leaf
    kept: T = emit("materialize", as_value(leaf), weak=leaf.weak)
    return kept


class schedule:
    """How kernels of what is computed inside run, as a context manager in a compiled function.

    lanes    elements of a vector: a power of two up to 64
    unroll   vectors that are worked on at a time: a power of two; lanes times unroll is at most 64
    tile     the side of the squares in which arrays of another order are turned over, the columns that
             a sum down columns takes at a time, or the rows that a matrix product does at a time and
             threads share: a power of two from 8 to 1024

    It changes no result but by rounding of sums. The compiler chooses by itself; this is for asking
    whether another choice would be faster, and where it is, that is a case for the compiler. `f.explain`
    shows it. Scopes nest; the inner one's choices count. In Python, outside of tracing, nothing happens.

    Raises ValueError for values that are none of these; and, when the function is compiled, where no
    kernel inside can run so, with the reason and what is possible.

    >>> @jt.jit
    ... def f(x):
    ...     with jt.schedule(lanes=8, unroll=1):
    ...         return np.tanh(x)
    >>> f(np.zeros(3))
    array([0., 0., 0.])
    """

    def __init__(
        self, *, lanes: int | None = None, unroll: int | None = None, tile: int | None = None
    ) -> None:
        self.knobs = Knobs(lanes, unroll, tile)
        self._resets: list[Token[Knobs | None]] = []

    def __enter__(self) -> None:
        outer = KNOBS.get()
        self._resets.append(KNOBS.set(self.knobs if outer is None else self.knobs.inside(outer)))

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        KNOBS.reset(self._resets.pop())
