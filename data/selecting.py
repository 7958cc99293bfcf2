"""Which elements, how often, beside which: take, shard, repeat, concatenate, zip, enumerate, filter."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable
from itertools import accumulate
from typing import Any

import numpy as np

import jitney as jt

from .errors import blame
from .rows import Rows
from .steps import Counting, Passes, Step, counted
from .trees import joined, mapped


class Take(Counting):
    """The first elements."""

    def __init__(self, source: Step, count: int) -> None:
        super().__init__(source)
        self.count = count

    @staticmethod
    def length(known: Any, count: int) -> float | None:
        return 0 if count == 0 else None if known is None else min(known, count)

    @staticmethod
    def rows(rows: Rows, count: int) -> Rows | None:
        return Rows(min(rows.size, count), rows.row, rows.gather)

    def __next__(self) -> Any:
        if self.at >= self.count:
            raise StopIteration
        self.at += 1
        return self.pull()

    def block(self, count: int) -> tuple[Any, int]:
        count = min(count, self.count - self.at)
        if count <= 0:
            raise StopIteration
        self.at += count
        found = self.source.block(count)
        self.at += found[1] - count
        return found

    def skip(self, count: int) -> int:
        count = min(count, self.count - self.at)
        self.at += count
        return self.source.skip(count)


class Shard(Counting):
    """Each `every`-th element, from `first` on; with `every=1` what is left after skipping."""

    def __init__(self, source: Step, first: int, every: int) -> None:
        super().__init__(source)
        self.first, self.every = first, every

    @staticmethod
    def length(known: Any, first: int, every: int) -> float | None:
        if known is None or known == math.inf:
            return known
        return max(0, -(-(int(known) - first) // every))

    @staticmethod
    def rows(rows: Rows, first: int, every: int) -> Rows | None:
        count = int(Shard.length(rows.size, first, every) or 0)
        return rows.renumbered(count, lambda i: first + every * i)

    @property
    def gap(self) -> int:
        """How many elements lie before the next one."""
        return self.every - 1 if self.at else self.first

    def __next__(self) -> Any:
        gap = self.gap
        if gap and self.source.skip(gap) < gap:
            raise StopIteration
        self.at = 1
        return self.pull()

    def block(self, count: int) -> tuple[Any, int]:
        if self.every > 1 or self.gap:
            return super().block(count)
        self.at = 1
        return self.source.block(count)

    def skip(self, count: int) -> int:
        if count == 0:
            return 0
        gap, self.at = self.gap, 1
        all_of_it = gap + (count - 1) * self.every + 1
        done = self.source.skip(all_of_it)
        return count if done == all_of_it else max(0, -(-(done - gap) // self.every))


class Repeat(Step):
    """Several rounds, each a pass of its own; without a count endless, but for an empty source."""

    def __init__(self, source: Step, count: int | None) -> None:
        super().__init__(source)
        self.source, self.count = source, count
        self.round, self.empty = 0, True

    @staticmethod
    def length(known: Any, count: int | None) -> float | None:
        if known == 0 or count == 0:
            return 0
        return math.inf if count is None else None if known is None else known * count

    def _pull(self, pull: Callable[[], Any]) -> Any:
        while self.count is None or self.round < self.count:
            try:
                found = pull()
            except StopIteration:
                if self.empty:
                    raise
                self._enter(self.round + 1)
            else:
                self.empty = False
                return found
        raise StopIteration

    def __next__(self) -> Any:
        return self._pull(self.source.__next__)

    def block(self, count: int) -> tuple[Any, int]:
        return self._pull(lambda: self.source.block(count))

    def skip(self, count: int) -> int:
        left = count
        while left and (self.count is None or self.round < self.count):
            done = self.source.skip(left)
            left -= done
            self.empty = self.empty and done == 0
            if left:
                if self.empty:
                    break
                self._enter(self.round + 1)
        return count - left

    def _enter(self, number: int) -> None:
        self.round, self.empty = number, True
        self.source.reset((*self.passes, number))

    def reset(self, passes: Passes) -> None:
        self.passes = passes
        self._enter(0)

    def position(self) -> Any:
        return {"round": self.round, "empty": self.empty, "source": self.source.position()}

    def move(self, position: Any) -> None:
        self._enter(position["round"])
        self.empty = position["empty"]
        self.source.move(position["source"])


class Concatenate(Step):
    """The elements of one source after those of another."""

    def __init__(self, *sources: Step) -> None:
        super().__init__(*sources)
        self.index = 0

    @staticmethod
    def length(*known: Any) -> float | None:
        if None in known:
            return math.inf if math.inf in known else None
        return sum(known)

    @staticmethod
    def rows(*rows: Rows) -> Rows | None:
        ends = list(accumulate(r.size for r in rows))
        starts = [0, *ends]

        def row(i: int) -> Any:
            which = bisect_right(ends, i)
            return rows[which].row(i - starts[which])

        def gather(indices: Any) -> Any:
            which = np.searchsorted(ends, indices, "right")
            of_each = [np.flatnonzero(which == w) for w in range(len(rows))]
            parts = [
                r.gather(indices[places] - start)
                for r, start, places in zip(rows, starts, of_each, strict=False)
                if len(places)
            ]
            back = np.argsort(np.concatenate(of_each), kind="stable")
            return mapped(lambda a: a[back], joined(parts))

        return Rows(ends[-1], row, gather)

    def _pull(self, pull: Callable[[Step], Any]) -> Any:
        while self.index < len(self.sources):
            try:
                return pull(self.sources[self.index])
            except StopIteration:
                self.index += 1
        raise StopIteration

    def __next__(self) -> Any:
        return self._pull(next)

    def block(self, count: int) -> tuple[Any, int]:
        return self._pull(lambda source: source.block(count))

    def skip(self, count: int) -> int:
        left = count
        while self.index < len(self.sources):
            left -= self.sources[self.index].skip(left)
            if not left:
                break
            self.index += 1
        return count - left

    def reset(self, passes: Passes) -> None:
        super().reset(passes)
        self.index = 0

    def position(self) -> Any:
        here = self.sources[self.index : self.index + 1]
        return {"index": self.index, "source": here[0].position() if here else None}

    def move(self, position: Any) -> None:
        self.index = position["index"]
        if self.index < len(self.sources):
            self.sources[self.index].move(position["source"])


class Zip(Step):
    """Elements side by side, in a tree, until the first source ends."""

    def __init__(self, *sources: Step, tree: Any) -> None:
        super().__init__(*sources)
        self.structure = jt.tree.structure(tree)
        self.pair = tree == tuple(range(len(sources)))
        self.ended = False

    @staticmethod
    def length(*known: Any, tree: Any) -> float | None:
        return 0 if 0 in known else None if None in known else min(known)

    @staticmethod
    def rows(*rows: Rows, tree: Any) -> Rows | None:
        structure = jt.tree.structure(tree)

        def row(i: Any) -> Any:
            return jt.tree.unflatten(structure, [r.row(i) for r in rows])

        def gather(indices: Any) -> Any:
            return jt.tree.unflatten(structure, [r.gather(indices) for r in rows])

        return Rows(min(r.size for r in rows), row, gather)

    def __next__(self) -> Any:
        if self.ended:
            raise StopIteration
        parts, wrong = [], None
        for source in self.sources:  # all of them go on, so that they stay beside each other
            try:
                parts.append(next(source))
            except StopIteration:
                self.ended = True
                raise
            except Exception as error:
                wrong = wrong or error
        if wrong is not None:
            raise wrong
        return tuple(parts) if self.pair else jt.tree.unflatten(self.structure, parts)

    def skip(self, count: int) -> int:
        if self.ended:
            return 0
        least = min(source.skip(count) for source in self.sources)
        self.ended = least < count
        return least

    def reset(self, passes: Passes) -> None:
        super().reset(passes)
        self.ended = False

    def position(self) -> Any:
        return {"ended": self.ended, "sources": [source.position() for source in self.sources]}

    def move(self, position: Any) -> None:
        self.ended = position["ended"]
        for source, at in zip(self.sources, position["sources"], strict=True):
            source.move(at)


class Enumerate(Counting):
    """Each element with its number."""

    def __init__(self, source: Step, start: int) -> None:
        super().__init__(source)
        self.begin = start

    @staticmethod
    def rows(rows: Rows, start: int) -> Rows | None:
        row, gather = rows.row, rows.gather
        return Rows(rows.size, lambda i: (i + start, row(i)), lambda i: (i + start, gather(i)))

    def __next__(self) -> Any:
        self.at += 1
        return self.begin + self.at - 1, self.pull()

    def skip(self, count: int) -> int:
        done = self.source.skip(count)
        self.at += done
        return done


class Filter(Counting):
    """The elements for which a function is true."""

    def __init__(self, source: Step, function: Callable[[Any], Any]) -> None:
        super().__init__(source)
        self.function = function

    length = staticmethod(counted)

    def __next__(self) -> Any:
        while True:
            self.at += 1
            element = self.pull()
            kept = called(self.function, "filter", self.at - 1, element)
            try:
                if kept:
                    return element
            except Exception as error:  # an array has no truth
                blame(error, "filter", self.function, self.at - 1, element)
                raise


def called(function: Callable[..., Any], what: str, number: int, element: Any, *more: Any) -> Any:
    """`function(element, *more)`; its exceptions say which element it was."""
    try:
        return function(element, *more)
    except StopIteration as error:  # would pass for the end of the data
        wrong = RuntimeError("the function raised StopIteration")
        blame(wrong, what, function, number, element)
        raise wrong from error
    except Exception as error:
        blame(error, what, function, number, element)
        raise
