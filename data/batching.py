"""Several elements as one, and one as several: batch, padded batch, windows, groups, unbatch."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from .errors import WorkerError, blame, describe
from .rows import Rows
from .selecting import called
from .steps import Counting, Intake, Passes, Step, counted
from .trees import getter, joined, length_of, mapped, stack


class Batch(Counting):
    """So many elements as one tree. `fill`, if there is one, makes it of a list of elements."""

    def __init__(
        self, source: Step, size: int, drop_last: bool, fill: Callable[[list[Any]], Any] | None
    ) -> None:
        super().__init__(source)
        self.size, self.drop_last, self.fill = size, drop_last, fill

    @staticmethod
    def length(known: Any, size: int, drop_last: bool, fill: Any) -> float | None:
        if known is None or known == math.inf:
            return known
        return known // size if drop_last else -(-known // size)

    def __next__(self) -> Any:
        self.at += 1
        try:
            batch, count = self._block() if self.fill is None else self._filled(self.fill)
        except StopIteration:
            raise
        except Exception as error:
            error.add_note(f"in Dataset.batch, batch {self.at - 1} of {self.size} elements")
            raise
        if count < self.size and self.drop_last:
            raise StopIteration
        return batch

    def _block(self) -> tuple[Any, int]:
        block, count = self.source.block(self.size)
        if count == self.size:
            return block, count
        blocks = [block]
        while count < self.size:  # a short one is not the end
            try:
                block, more = self.source.block(self.size - count)
            except StopIteration:
                break
            blocks.append(block)
            count += more
        return joined(blocks), count

    def _filled(self, fill: Callable[[list[Any]], Any]) -> tuple[Any, int]:
        elements: list[Any] = []
        try:
            while len(elements) < self.size:
                elements.append(next(self.source))
        except StopIteration:
            if not elements:
                raise
        except WorkerError:
            raise
        except Exception:
            self.source.skip(self.size - len(elements) - 1)
            raise
        return fill(elements), len(elements)

    def skip(self, count: int) -> int:
        done = self.source.skip(count * self.size)
        found = done // self.size if self.drop_last else -(-done // self.size)
        self.at += found
        return found


class Unbatch(Step):
    """The rows of trees of arrays, one by one."""

    def __init__(self, source: Step) -> None:
        super().__init__(source)
        self.intake = Intake(source, 8)
        self.at = self.count = 0  # how many rows of the current tree were handed on, of how many

    length = staticmethod(counted)

    def _open(self) -> None:
        """Make the next tree with rows the current one."""
        while self.at >= self.count:
            self.intake.forget(self.intake.count)
            tree = self.intake.pull()
            what = f"unbatch, element {self.intake.count - 1}"
            self.tree, self.count, self.at = tree, length_of(tree, what), 0
            self.row = getter(mapped(np.asarray, tree))

    def __next__(self) -> Any:
        if self.at >= self.count:
            self._open()
        self.at += 1
        return self.row(self.at - 1)

    def block(self, count: int) -> tuple[Any, int]:
        if self.at >= self.count:
            self._open()
        start, self.at = self.at, min(self.count, self.at + count)
        return mapped(lambda a: np.asarray(a)[start : self.at].copy(), self.tree), self.at - start

    def reset(self, passes: Passes) -> None:
        super().reset(passes)
        self.intake.reset()
        self.at = self.count = 0

    def position(self) -> Any:
        if self.at >= self.count:
            return {"at": 0, "source": self.intake.position()}
        return {"at": self.at, "source": self.intake.position(count=self.intake.count - 1)}

    def move(self, position: Any) -> None:
        self.intake.move(position["source"])
        self.at = self.count = 0
        if position["at"]:
            self._open()
            self.at = position["at"]


class Window(Step):
    """Batches that overlap, or have gaps: elements `k * shift + [0, stride, 2 * stride, ...]`."""

    def __init__(self, source: Step, size: int, shift: int, stride: int, drop_last: bool) -> None:
        super().__init__(source)
        self.size, self.shift, self.stride, self.drop_last = size, shift, stride, drop_last
        self.span = (size - 1) * stride + 1
        self.intake = Intake(source)
        self.buffer: deque[Any] = deque()
        self.gap = 0  # how many elements to pass over before the next window

    @staticmethod
    def length(known: Any, size: int, shift: int, stride: int, drop_last: bool) -> float | None:
        if known is None or known == math.inf:
            return known
        span = (size - 1) * stride + 1 if drop_last else 1
        return max(0, (int(known) - span) // shift + 1)

    @staticmethod
    def rows(rows: Rows, size: int, shift: int, stride: int, drop_last: bool) -> Rows | None:
        if not drop_last:
            return None
        inside, gather = np.arange(size) * stride, rows.gather

        def windows(indices: Any) -> Any:
            found = gather((indices[:, None] * shift + inside).ravel())
            return mapped(lambda a: a.reshape(len(indices), size, *a.shape[1:]), found)

        count = int(Window.length(rows.size, size, shift, stride, drop_last) or 0)
        return Rows(count, lambda i: gather(i * shift + inside), windows)

    def __next__(self) -> Any:
        buffer = self.buffer
        gap, self.gap = self.gap, 0
        self.intake.forget(self.intake.count - len(buffer))
        while gap and buffer:
            buffer.popleft()
            gap -= 1
        while len(buffer) < self.span and not self.intake.ended:
            try:
                element = self.intake.pull()
            except StopIteration:
                break
            if gap:
                gap -= 1
            else:
                buffer.append(element)
        if not buffer or (self.drop_last and len(buffer) < self.span):
            raise StopIteration
        self.gap = self.shift
        return stack([buffer[i] for i in range(0, len(buffer), self.stride)])

    def reset(self, passes: Passes) -> None:
        super().reset(passes)
        self.intake.reset()
        self.buffer, self.gap = deque(), 0

    def position(self) -> Any:
        count = self.intake.count
        held = range(count - len(self.buffer), count)
        return {"gap": self.gap, "source": self.intake.position(held)}

    def move(self, position: Any) -> None:
        self.buffer = deque(element for _, element in self.intake.move(position["source"]))
        self.gap = position["gap"]


class Groups(Step):
    """Elements collected by a key, handed on when a group is as large as its key wants it."""

    def __init__(
        self,
        source: Step,
        key: Callable[[Any], Hashable],
        size: Callable[[Any], int],
        reduce: Callable[[Any, list[Any]], Any],
        drop_last: bool,
        what: str,
    ) -> None:
        super().__init__(source)
        self.key, self.size, self.reduce, self.drop_last = key, size, reduce, drop_last
        self.what = what
        self.intake = Intake(source)

    length = staticmethod(counted)

    def __next__(self) -> Any:
        while not self.intake.ended:
            try:
                element = self.intake.pull()
            except StopIteration:
                break
            key = self._enter(self.intake.count - 1, element)
            if len(self.groups[key]) >= self.size(key):
                return self._hand_on(key)
        if self.drop_last or not self.groups:
            raise StopIteration
        return self._hand_on(next(iter(self.groups)))

    def _enter(self, number: int, element: Any) -> Hashable:
        key = called(self.key, self.what, number, element)
        try:
            self.groups.setdefault(key, []).append((number, element))
        except TypeError as error:  # it cannot be a key
            blame(error, self.what, self.key, number, element)
            raise
        if self.intake.crowded:
            self.intake.forget(min(group[0][0] for group in self.groups.values()))
        return key

    def _hand_on(self, key: Hashable) -> Any:
        group = self.groups.pop(key)
        try:
            return self.reduce(key, [element for _, element in group])
        except Exception as error:
            numbers = [number for number, _ in group]
            error.add_note(f"in Dataset.{self.what}, elements {describe(numbers)} of key {key!r}")
            raise

    def reset(self, passes: Passes) -> None:
        super().reset(passes)
        self.intake.reset()
        self.groups: dict[Hashable, list[tuple[int, Any]]] = {}

    def position(self) -> Any:
        held = sorted(number for group in self.groups.values() for number, _ in group)
        return self.intake.position(held)

    def move(self, position: Any) -> None:
        self.groups = {}
        for number, element in self.intake.move(position):
            self._enter(number, element)
