"""Probes: code that tells how often the steps of a program run, and how many clock ticks that takes.

A step's ticks include those of the steps inside of it. `Counters` add up: at the end of the arena stands
what the clock said when the program had ended, and after it two words for each step and each list of
steps (the program, a loop's body, a branch), ticks and runs. Whoever calls such code gives it an arena
whose words are zero there, and reads them afterwards. Blocks of scalar code have such words, too, but
clocks in them would be most of what they measure: the words stay zero, and other code of the same
program, `Trips`, counts the runs. `Events` tell the process's recorder (`runtime.threads.pool_ir`) of
each time, with the program's identity: a hash of its code.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ...ir.types import I64
from ..llvm.builder import Value, constant, symbol
from ..loop_ir.kernel import Array
from ..loop_ir.scalar_code import Body, Special, blocks
from ..loop_ir.steps import Program, ScalarCode
from ..target import Target

if TYPE_CHECKING:
    from .entry import EntryEmitter

ALIGNMENT = 64
CLOCK_BYTES = 16  # the clock, and nothing
COUNTER_BYTES = 16  # ticks and runs
_IDENTITY = "probed_program"  # the word that has it


class Probes(ABC):
    """The probes of one program. `slots`: the number of each step's, and each program's, by identity.
    `nests`: whether scalar code may be loops for LLVM's passes."""

    nests = True

    def __init__(self, entry: EntryEmitter) -> None:
        self._entry = entry
        self.slots: dict[int, int] = {}

    def program(self, program: Program) -> None:
        """Emit a program's steps, each with what times it."""
        e = self._entry
        with self._timed(program):
            for step in program.steps:
                with self._timed(step):
                    if isinstance(step, ScalarCode):
                        self.scalar_code(step)
                    e.step(step)
                    e.flush()

    def scalar_code(self, step: ScalarCode) -> None:  # noqa: B027
        """Prepare scalar code that is emitted next."""

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

    def scalar_code(self, step: ScalarCode) -> None:
        for block in [*blocks(step.body)]:
            self._block(step, block, self.slots.setdefault(id(block), len(self.slots)))

    def _block(self, step: ScalarCode, block: Body, slot: int) -> None:
        """What a block of scalar code has for its slot."""

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


class Trips(Counters):
    """Runs of blocks of scalar code as well, each counted where it begins: loops are no nests for LLVM's
    passes then, and run on one thread."""

    nests = False

    def _block(self, step: ScalarCode, block: Body, slot: int) -> None:
        first = self.first + CLOCK_BYTES + COUNTER_BYTES * slot
        counter = Array((2,), I64, "temp")
        counter.offset = first
        step.writes = [*step.writes, counter]
        block.statements.insert(0, Special([], [], [counter], _counted, keeps_gil=False))


def _counted(b: Any, values: Sequence[Value], pointers: Sequence[Value]) -> Sequence[Value]:
    """One run more."""
    runs = b.offset(pointers[0], 1, "i64")
    b.store(b.load("i64", runs, align=8) + 1, runs, align=8)
    return ()


class Events(Probes):
    """Tells the recorder of each time that a step has run."""

    identity = 0  # known when the code is there

    def _note(self, slot: int, begin: Value, end: Value) -> None:
        f = self._entry.f
        self._entry.imports.add(Target.RECORD)
        program = f.load("i64", symbol(_IDENTITY), align=8)
        f.call("void", Target.RECORD, program, constant("i64", slot), begin, end)

    def finished(self, text: str) -> str:
        import hashlib  # loads OpenSSL; few programs have probes

        self.identity = int.from_bytes(hashlib.sha256(text.encode()).digest()[:7], "little")
        return f"@{_IDENTITY} = internal constant i64 {self.identity}\n{text}"


def probes_for(entry: EntryEmitter, kind: str, arena_bytes: int) -> Probes | None:
    """The probes of a target of that kind."""
    if not kind:
        return None
    if kind == "record":
        return Events(entry)
    return (Trips if kind == "trips" else Counters)(entry, arena_bytes)
