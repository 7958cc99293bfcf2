"""In which iteration did a program fail? Found by interpreting its graph up to there.

    failure = find_failure(graph, arrays, seconds=2.0)
    failure.op, failure.trips

Where a loop's own line says what it counts (`for i in range(3, 40, 4)`), so do the ops at that line in
its body: the last of them gives the index.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .graph import Graph, Op
from .interpreter import evaluate, watching
from .record import record
from .walker import Frame, Results, Walker


@record
class Trip:
    """An iteration of a loop: its number from 0 on, and the index that the loop's line makes of it."""

    loop: Op
    number: int
    index: int


@record
class Failure:
    """The op that raised, and the iterations of the loops around it, outermost first."""

    op: Op
    trips: tuple[Trip, ...]


class _TooLong(Exception):
    """Nobody waits for the rest."""


def find_failure(graph: Graph, arrays: Sequence[Any], seconds: float) -> Failure | None:
    """The first op that raises; None if there is none, or it is not found in so many seconds."""
    walker = _Following(time.monotonic() + seconds)
    try:
        with watching(walker):
            evaluate(graph, arrays)
    except Exception:  # what it is has been told already
        return walker.failure
    return None


class _Following(Walker):
    def __init__(self, until: float) -> None:
        super().__init__()
        self.until = until
        self.failure: Failure | None = None
        self.indices: dict[int, tuple[int, int]] = {}  # by frame: in which iteration, and the index

    def results(self, op: Op, operands: Sequence[Any], compute: Callable[[], Results]) -> Results:
        if time.monotonic() > self.until:
            raise _TooLong
        if op.regions:
            with self.inside(op) as frame:
                try:
                    return compute()
                finally:
                    self.indices.pop(id(frame), None)
        try:
            results = compute()
        except Exception:
            if self.failure is None:
                self.failure = Failure(op, tuple(self._trips()))
            raise
        if self.frames and _is_at(op, self.frames[-1].op) and _is_count(results[0]):
            frame = self.frames[-1]
            self.indices[id(frame)] = self._number(frame), int(results[0])
        return results

    def _number(self, frame: Frame) -> int:
        return max(frame.runs.values(), default=1) - 1

    def _trips(self) -> list[Trip]:
        loops = [frame for frame in self.frames if "consts" in frame.op.attrs]
        found = []
        for frame in loops:
            number = self._number(frame)
            known, index = self.indices.get(id(frame), (-1, 0))
            found.append(Trip(frame.op, number, index if known == number else number))
        return found


def _is_at(op: Op, loop: Op) -> bool:
    """Whether an op computes something for the line of a loop."""
    if op.loc is None or loop.loc is None or op.definition.family == "source":
        return False
    return (op.loc.file, op.loc.line) == (loop.loc.file, loop.loc.line)


def _is_count(value: Any) -> bool:
    return np.shape(value) == () and np.asarray(value).dtype.kind in "iu"
