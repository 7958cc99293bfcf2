"""Probes: code that counts how often each step of a program runs, and how many clock ticks that takes.

At the end of the arena stands what the clock said when the program had ended, and after it two words
for each step and each list of steps (the program, a loop's body, a branch): ticks, and runs. Whoever
calls such code gives it an arena whose words are zero there, and reads them afterwards. Ticks of a step
include those of the steps inside of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ..llvm.builder import Value, constant
from ..loop_ir.steps import Program

if TYPE_CHECKING:
    from .entry import EntryEmitter

ALIGNMENT = 64
CLOCK_BYTES = 16  # the clock, and nothing
COUNTER_BYTES = 16  # ticks and runs


class Probes:
    """The probes of one program. `slots`: the number of each step's, and each program's, by identity."""

    def __init__(self, entry: EntryEmitter, arena_bytes: int) -> None:
        self._entry = entry
        self.first = -(-arena_bytes // ALIGNMENT) * ALIGNMENT
        self.slots: dict[int, int] = {}

    @property
    def end(self) -> int:
        """Bytes of an arena with the counters."""
        return self.first + CLOCK_BYTES + COUNTER_BYTES * len(self.slots)

    def program(self, program: Program) -> None:
        """Emit a program's steps, each with what times it."""
        e = self._entry
        with self._timed(program):
            for step in program.steps:
                with self._timed(step):
                    e.step(step)
                    e.flush()

    @contextmanager
    def _timed(self, what: Any) -> Iterator[None]:
        f = self._entry.f
        slot = self.slots.setdefault(id(what), len(self.slots))
        start = f.call("i64", "llvm.readcyclecounter")
        yield
        now = f.call("i64", "llvm.readcyclecounter")
        clock = f.offset(self._entry.given("arena"), self.first)
        counter = f.offset(clock, CLOCK_BYTES + COUNTER_BYTES * slot)
        self._add(counter, now - start)
        self._add(f.offset(counter, 8), constant("i64", 1))
        f.store(now, clock, align=8)

    def _add(self, address: Value, value: Value) -> None:
        f = self._entry.f
        f.store(f.load("i64", address, align=8) + value, address, align=8)
