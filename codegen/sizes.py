"""Axes whose length is bound at the call: what is emitted for them runs to a number that code reads.

    with sized([(8419, 2, 0, 8419)]): ...   parameter 2 is the length, from 0 to 8419: a loop
                                       over 8419 is one to that number, over 8419 * 4 to 4 times it

In types such an axis has its *capacity*, a prime that no other axis has, so that strides, plans of
memory and schedules are those of any static program: a leading axis is in no stride. Only how far loops
run is read at run time. `follows` says whether a program touches no element behind a length: each access
to such an axis is by a loop over the axis. What does not is refused, and compiled for one size instead.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from .loop_ir.kernel import Array


class Size:
    """A length: its capacity, the parameter of the graph whose value it is, between which numbers it
    is, and where it lies."""

    __slots__ = ("array", "capacity", "least", "most", "param")

    def __init__(self, capacity: int, param: int, least: int, most: int) -> None:
        self.capacity, self.param, self.least, self.most = capacity, param, least, most
        self.array: Array | None = None


class NotSized(Exception):
    """A program cannot be compiled for any length of an axis; the text says why."""


# A dynamic scope, as of `limits`: leaves of every pass ask, and most programs have none.
_current: ContextVar[tuple[Size, ...]] = ContextVar("sizes", default=())


def sizes() -> tuple[Size, ...]:
    """The sizes of the program that is being compiled."""
    return _current.get()


@contextmanager
def sized(to: Sequence[tuple[int, int, int, int]]) -> Iterator[None]:
    """What is compiled inside has axes of these capacities, whose lengths are these parameters, never
    less than the third numbers, and at most the fourth."""
    token = _current.set(tuple(Size(*length) for length in to))
    try:
        yield
    finally:
        _current.reset(token)


def size_of(extent: int) -> Size | None:
    """The size by which an extent goes: one that is a multiple of its capacity."""
    found = [s for s in _current.get() if extent and extent % s.capacity == 0]
    if len(found) > 1:
        raise NotSized("two axes of different lengths are walked as one")
    return found[0] if found else None


def factor_of(extent: int) -> int:
    """An extent for a length of 1: what its number of iterations is surely a multiple of."""
    size = size_of(extent)
    return extent if size is None else extent // size.capacity


def has_size(shape: Sequence[int]) -> bool:
    """Whether an axis of a shape has a length that is bound at the call."""
    return bool(_current.get()) and any(size_of(n) is not None for n in shape)


def refuse(why: str) -> NoReturn:
    """Raise NotSized."""
    raise NotSized(why)
