"""Shuffles: of indices where rows can be had in any order, else by a buffer of elements.

The draws depend on the seed, the pass and how many draws came before, on nothing else.
"""

from __future__ import annotations

import secrets
from typing import Any

import numpy as np

from .rows import Rows, Walk
from .steps import Intake, Passes, Step, generator, key_of

DRAWS = 1024  # so many numbers are drawn at a time


def new_seed() -> int:
    """A seed from the operating system, for those who give none."""
    return secrets.randbits(62)


class Shuffle(Step):
    """Elements in random order: each is drawn from the buffer, which is filled up from the source."""

    def __init__(self, source: Step, buffer: int, seed: int, least: int) -> None:
        super().__init__(source)
        self.source, self.buffer, self.seed, self.least = source, buffer, seed, least
        self.intake = Intake(source, max(32, buffer // 16))
        self.draws: list[float] = []
        self._begin(0)

    @classmethod
    def start(cls, dataset: Any) -> Step:
        rows, options = dataset.sources[0].rows, dataset.options
        if rows is None:
            return cls(dataset.sources[0].start(), **options)
        return ShuffledRows(rows, options["buffer"], options["seed"])

    def __next__(self) -> Any:
        elements, numbers, intake = self.elements, self.numbers, self.intake
        # By two for each that is handed on, from the least number of elements to the full buffer.
        wanted = min(self.buffer, self.least + 1 + self.drawn)
        while len(elements) < wanted and not intake.ended:
            try:
                element = intake.pull()
            except StopIteration:
                break
            elements.append(element)
            numbers.append(intake.count - 1)
        if not elements:
            raise StopIteration
        if intake.crowded:
            intake.forget(min(numbers))
        i = int(self._draw() * len(elements))
        elements[i], elements[-1] = elements[-1], elements[i]
        numbers[i], numbers[-1] = numbers[-1], numbers[i]
        numbers.pop()
        return elements.pop()

    def _draw(self) -> float:
        block, i = divmod(self.drawn, DRAWS)
        if i == 0 or not self.draws:
            self.draws = generator(self.key, block).random(DRAWS).tolist()
        self.drawn += 1
        return self.draws[i]

    def reset(self, passes: Passes) -> None:
        super().reset(passes)
        self.intake.reset()
        self._begin(0)

    def _begin(self, drawn: int) -> None:
        self.key = key_of(self.seed, self.passes)
        self.drawn = drawn
        self.draws = []
        self.elements: list[Any] = []
        self.numbers: list[int] = []

    def position(self) -> Any:
        intake = self.intake.position(self.numbers)
        return {"seed": self.seed, "drawn": self.drawn, "source": intake}

    def move(self, position: Any) -> None:
        self.seed = position["seed"]
        self._begin(position["drawn"])
        for number, element in self.intake.move(position["source"]):
            self.elements.append(element)
            self.numbers.append(number)


class ShuffledRows(Walk):
    """Rows in random order, which is made at once: no row is touched before its turn."""

    def __init__(self, rows: Rows, buffer: int, seed: int) -> None:
        super().__init__(rows)
        self.buffer, self.seed = buffer, seed
        self.order: Any = None

    def _index(self) -> Any:
        if self.order is None:
            draws = generator(key_of(self.seed, self.passes), 0)
            self.order = shuffled(self.table.size, self.buffer, draws)
        return self.order

    def __next__(self) -> Any:
        if self.at >= self.table.size:
            raise StopIteration
        self.at += 1
        return self.table.row(int(self._index()[self.at - 1]))

    def block(self, count: int) -> tuple[Any, int]:
        start = self.at
        if self.skip(count) == 0:
            raise StopIteration
        return self.table.gather(self._index()[start : self.at]), self.at - start

    def reset(self, passes: Passes) -> None:
        super().reset(passes)
        self.order = None

    def position(self) -> Any:
        return {"seed": self.seed, "at": self.at}

    def move(self, position: Any) -> None:
        self.seed, self.at, self.order = position["seed"], position["at"], None


def shuffled(count: int, buffer: int, draws: np.random.Generator) -> Any:
    """The order in which a buffer hands on `count` elements: each has at most `buffer` before its turn.

    The buffer's slots are full until the last elements: draw t takes what is in its slot and puts in
    element `buffer + t`. So it takes what the draw before it at the same slot put in.
    """
    if buffer >= count:
        return draws.permutation(count)
    slots = draws.integers(0, buffer, count - buffer)
    by_slot = np.argsort(slots, kind="stable")
    same = slots[by_slot[1:]] == slots[by_slot[:-1]]
    taken = slots.copy()  # by the first draw at a slot
    taken[by_slot[1:][same]] = by_slot[:-1][same] + buffer
    left = np.arange(buffer)
    left[slots] = np.arange(buffer, count)  # the last of those that were put into a slot
    return np.concatenate([taken, draws.permutation(left)])
