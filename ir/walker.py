"""A watcher of the interpreter that knows in which loops it is, and in which iteration of each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from .graph import Graph, Op
from .record import field, record

Results = tuple[Any, ...]


@record(frozen=False, eq=False)
class Frame:
    """An op with regions that is being evaluated, and how often each region has run."""

    op: Op
    runs: dict[int, int] = field(default_factory=dict)


class Walker:
    """`results(op, operands, compute)` sees each op that a program has, those of regions before the op
    whose regions they are; what ops that are made of others do inside is not shown."""

    def __init__(self) -> None:
        self.frames: list[Frame] = []
        self._inside = 0  # of ops that are made of others

    def enter(self, graph: Graph) -> None:
        if self.frames:
            runs = self.frames[-1].runs
            runs[id(graph)] = runs.get(id(graph), 0) + 1

    def evaluate(self, op: Op, operands: Sequence[Any], compute: Callable[[], Results]) -> Results:
        if self._inside:
            return compute()
        if op.definition.family == "composition":
            return self.results(op, operands, lambda: self._hidden(compute))
        return self.results(op, operands, compute)

    def results(self, op: Op, operands: Sequence[Any], compute: Callable[[], Results]) -> Results:
        return compute()

    def _hidden(self, compute: Callable[[], Results]) -> Results:
        self._inside += 1
        try:
            return compute()
        finally:
            self._inside -= 1

    @contextmanager
    def inside(self, op: Op) -> Iterator[Frame]:
        """While the regions of an op run."""
        frame = Frame(op)
        self.frames.append(frame)
        try:
            yield frame
        finally:
            self.frames.pop()

    def trips(self) -> list[tuple[Op, int]]:
        """The loops around what runs now, outermost first, with the number of the iteration."""
        loops = [frame for frame in self.frames if _is_loop(frame.op)]
        return [(frame.op, max(frame.runs.values(), default=1) - 1) for frame in loops]


def _is_loop(op: Op) -> bool:
    return "consts" in op.attrs  # of a `while` or `scan`: what stays from iteration to iteration
