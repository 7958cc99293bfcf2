"""What `explain` says of memory: temporaries and when they live, what fusion saved, what is copied."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...ir.record import replace
from ..journal import Subject
from ..loop_ir.kernel import Array, Kernel
from ..loop_ir.steps import Loop, Program, RowBlocks, ScalarCode, Scan, direct, inner_programs
from ..module import BufferReport, CopySite
from ..schedule.memory import Lives


def buffers(steps: Sequence[Any], lives: Lives) -> tuple[BufferReport, ...]:
    """The temporaries in the arena, with the first step that writes each."""
    makers: dict[Array, Subject] = {}
    for step in steps:
        if isinstance(step, Kernel):
            for stage in step.stages:
                makers.setdefault(stage.array, stage.subject)
        elif not isinstance(step, RowBlocks):
            for array in direct(step)[1]:
                makers.setdefault(array, _subject(step))
    return tuple(
        BufferReport(subject.name, array.nbytes, array.offset, first, last, subject.loc)
        for array, (first, last) in lives.items()
        for subject in [makers.get(array, Subject(array.name or "temporary", None))]
    )


def _subject(step: Any) -> Subject:
    name = "scalar code" if isinstance(step, ScalarCode) else type(step).__name__.lower()
    if isinstance(step, (Loop, Scan)):
        name = "what a loop carries"
    return Subject(name, getattr(step, "loc", None))


def unstored(steps: Sequence[Any]) -> tuple[int, int]:
    """How many values that stages compute are never in memory, or for one row only; and their bytes."""
    local = [a for s in steps if isinstance(s, Kernel) for a in s.local]
    parts = [(a, n) for s in steps if isinstance(s, RowBlocks) for a, n in s.local.items()]
    spared = sum(a.nbytes for a in local)
    spared += sum(max(a.nbytes - n * a.dtype.itemsize, 0) for a, n in parts)
    return len(local) + len(parts), spared


def copies_within(program: Program, slots: Mapping[int, int] = {}) -> list[CopySite]:
    """The copies of a program and of those inside it, with the probe that counts how often each is."""
    slot = slots.get(id(program), -1)
    found = [replace(site, slot=slot) for site in program.copies]
    for step in program.steps:
        for inner in inner_programs(step):
            found += copies_within(inner, slots)
    return found
