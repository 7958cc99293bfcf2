"""Elements that can be had in any order: arrays, ranges, memory maps, and what selects among them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .steps import Passes, Step
from .trees import getter, length_of, mapped

Array = np.ndarray[Any, Any]


class Rows(NamedTuple):
    """How many there are, how one is had, and how a block of them is gathered."""

    size: int
    row: Callable[[int], Any]
    gather: Callable[[Array], Any]  # of indices

    def renumbered(self, count: int, index: Callable[[Any], Any]) -> Rows:
        """Those at `index(0)`, `index(1)`, ...; the function takes arrays, too."""
        row, gather = self.row, self.gather
        return Rows(count, lambda i: row(index(i)), lambda indices: gather(index(indices)))


class Walk(Step):
    """Rows one after the other. A position is a number."""

    def __init__(self, rows: Rows) -> None:
        super().__init__()
        self.table = rows
        self.at = 0

    def __next__(self) -> Any:
        if self.at >= self.table.size:
            raise StopIteration
        element = self.table.row(self.at)
        self.at += 1
        return element

    def reset(self, passes: Passes) -> None:
        self.passes, self.at = passes, 0

    def position(self) -> Any:
        return self.at

    def move(self, position: Any) -> None:
        self.at = position

    def skip(self, count: int) -> int:
        count = max(0, min(count, self.table.size - self.at))
        self.at += count
        return count

    def block(self, count: int) -> tuple[Any, int]:
        start = self.at
        if self.skip(count) == 0:
            raise StopIteration
        return self.table.gather(np.arange(start, self.at)), self.at - start


class Arrays(Walk):
    """The rows of the arrays of a tree."""

    def __init__(self, tree: Any) -> None:
        super().__init__(table(tree))

    @staticmethod
    def length(tree: Any) -> float | None:
        return length_of(tree, "from_arrays")

    @staticmethod
    def rows(tree: Any) -> Rows | None:
        return table(tree)


class Range(Walk):
    """Integers."""

    def __init__(self, span: range) -> None:
        super().__init__(_numbers(span))

    @staticmethod
    def length(span: range) -> float | None:
        return len(span)

    @staticmethod
    def rows(span: range) -> Rows | None:
        return _numbers(span)


def _numbers(span: range) -> Rows:
    def number(i: Any) -> Any:
        return span.start + i * span.step

    return Rows(len(span), number, number)


def table(tree: Any) -> Rows:
    """The rows of a tree of arrays; a block of them is a copy."""

    def gather(indices: Array) -> Any:
        n = len(indices)
        first = int(indices[0]) if n else 0
        if (
            n
            and int(indices[-1]) - first == n - 1
            and (n < 3 or bool((np.diff(indices) == 1).all()))
        ):
            return mapped(lambda a: a[first : first + n].copy(), tree)
        return mapped(lambda a: a.take(indices, 0), tree)

    return Rows(length_of(tree, "from_arrays"), getter(tree), gather)
