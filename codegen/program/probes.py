"""Probes: code that tells how often the steps of a program run, and how many clock ticks that takes.

A step's ticks include those of the steps inside of it. `Counters` add up: at the end of the arena stands
what the clock said when the program had ended, and after it two words for each step and each list of
steps (the program, a loop's body, a branch), ticks and runs. Whoever calls such code gives it an arena
whose words are zero there, and reads them afterwards. `Events` tell the process's recorder
(`runtime.threads.pool_ir`) of each time, with the program's identity: a hash of its code.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ..llvm.builder import Value, constant, symbol
from ..loop_ir.steps import Program
from ..target import Target

if TYPE_CHECKING:
    from .entry import EntryEmitter

ALIGNMENT = 64
CLOCK_BYTES = 16  # the clock, and nothing
COUNTER_BYTES = 16  # ticks and runs
_IDENTITY = "probed_program"  # the word that has it


class Probes(ABC):
    """The probes of one program. `slots`: the number of each step's, and each program's, by identity."""

    def __init__(self, entry: EntryEmitter) -> None:
        self._entry = entry
        self.slots: dict[int, int] = {}

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
        begin = f.call("i64", "llvm.readcyclecounter")
        yield
        self._note(slot, begin, f.call("i64", "llvm.readcyclecounter"))

    @abstractmethod
    def _note(self, slot: int, begin: Value, end: Value) -> None:
        """Emit what becomes of one run of a step: its first and last tick."""

    def finished(self, text: str) -> str:
        """The text of the whole module, when it is there."""
        return text


class Counters(Probes):
    """Ticks and runs of each step, at the end of the arena."""

    def __init__(self, entry: EntryEmitter, arena_bytes: int) -> None:
        super().__init__(entry)
        self.first = -(-arena_bytes // ALIGNMENT) * ALIGNMENT

    @property
    def end(self) -> int:
        """Bytes of an arena with the counters."""
        return self.first + CLOCK_BYTES + COUNTER_BYTES * len(self.slots)

    def _note(self, slot: int, begin: Value, end: Value) -> None:
        f = self._entry.f
        clock = f.offset(self._entry.given("arena"), self.first)
        counter = f.offset(clock, CLOCK_BYTES + COUNTER_BYTES * slot)
        self._add(counter, end - begin)
        self._add(f.offset(counter, 8), constant("i64", 1))
        f.store(end, clock, align=8)

    def _add(self, address: Value, value: Value) -> None:
        f = self._entry.f
        f.store(f.load("i64", address, align=8) + value, address, align=8)


class Events(Probes):
    """Tells the recorder of each time that a step has run."""

    identity = 0  # known when the code is there

    def _note(self, slot: int, begin: Value, end: Value) -> None:
        f = self._entry.f
        self._entry.imports.add(Target.RECORD)
        program = f.load("i64", symbol(_IDENTITY), align=8)
        f.call("void", Target.RECORD, program, constant("i64", slot), begin, end)

    def finished(self, text: str) -> str:
        self.identity = int.from_bytes(hashlib.sha256(text.encode()).digest()[:7], "little")
        return f"@{_IDENTITY} = internal constant i64 {self.identity}\n{text}"


def probes_for(entry: EntryEmitter, kind: str, arena_bytes: int) -> Probes | None:
    """The probes of a target of that kind."""
    if not kind:
        return None
    return Counters(entry, arena_bytes) if kind == "count" else Events(entry)
