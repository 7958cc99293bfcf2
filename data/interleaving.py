"""Datasets made of elements, one after the other or several in turns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .errors import describe, place
from .selecting import called
from .steps import Intake, Passes, Step, counted


class Open:
    """A dataset that is being read: its element, and its step."""

    def __init__(self, number: int, step: Step) -> None:
        self.number, self.step = number, step


class Interleave(Step):
    """`cycle` datasets are open at a time, each in its slot; of each in turn come `block` elements.

    One that ends makes room for the next element's. With one slot this is flat_map.
    """

    def __init__(
        self, source: Step, function: Callable[[Any], Any], cycle: int, block: int, what: str
    ) -> None:
        super().__init__(source)
        self.function, self.cycle, self.turn, self.what = function, cycle, block, what
        self.intake = Intake(source, 4)
        self.slots: list[Open | None] = [None] * cycle
        self.at = self.taken = 0  # whose turn it is, and how much of it is over

    length = staticmethod(counted)

    def _open(self, number: int, element: Any) -> Open:
        dataset = called(self.function, self.what, number, element)
        if not hasattr(dataset, "start"):
            raise TypeError(
                f"{self.what}({place(self.function)}) gave {describe(dataset)} for element {number}, "
                "not a Dataset: jt.data.from_arrays(x) makes one of rows"
            )
        step = dataset.start()
        step.reset((*self.passes, number))
        return Open(number, step)

    def _pull(self, pull: Callable[[Step], tuple[Any, int]]) -> tuple[Any, int]:
        idle = 0  # how many slots in a row had nothing
        while idle < self.cycle:
            slot = self.slots[self.at]
            if slot is None and not self.intake.ended:
                self.intake.forget(
                    min([s.number for s in self.slots if s], default=self.intake.count)
                )
                try:
                    element = self.intake.pull()
                except StopIteration:
                    continue
                slot = self.slots[self.at] = self._open(self.intake.count - 1, element)
            if slot is not None:
                try:
                    found, count = pull(slot.step)
                except StopIteration:
                    slot.step.close()
                    self.slots[self.at] = None
                    self.taken = 0
                    continue
                self._advance(count)
                return found, count
            idle += 1
            self.at = (self.at + 1) % self.cycle
        raise StopIteration

    def _advance(self, count: int) -> None:
        self.taken += count
        if self.taken >= self.turn:
            self.taken, self.at = 0, (self.at + 1) % self.cycle

    def __next__(self) -> Any:
        return self._pull(lambda step: (next(step), 1))[0]

    def block(self, count: int) -> tuple[Any, int]:
        if self.cycle == 1:
            return self._pull(lambda step: step.block(count))
        return super().block(count)

    def reset(self, passes: Passes) -> None:
        self._shut()
        super().reset(passes)
        self.intake.reset()

    def _shut(self) -> None:
        for slot in self.slots:
            if slot is not None:
                slot.step.close()
        self.slots = [None] * self.cycle
        self.at = self.taken = 0

    def position(self) -> Any:
        open_ones = [(i, slot) for i, slot in enumerate(self.slots) if slot is not None]
        return {
            "at": self.at,
            "taken": self.taken,
            "slots": [[i, slot.step.position()] for i, slot in open_ones],
            "source": self.intake.position([slot.number for _, slot in open_ones]),
        }

    def move(self, position: Any) -> None:
        self._shut()
        held = self.intake.move(position["source"])
        for (i, inner), (number, element) in zip(position["slots"], held, strict=True):
            slot = self.slots[i] = self._open(number, element)
            slot.step.move(inner)
        self.at, self.taken = position["at"], position["taken"]

    def close(self) -> None:
        self._shut()
        super().close()
