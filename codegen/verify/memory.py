"""The memory plan: what shares memory in the arena is never live at the same time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ..loop_ir.kernel import Array
from ..loop_ir.steps import Branch, Loop, Program, Scan, inner_programs, outside
from ..schedule.memory import ALIGN
from .errors import StepError, name_of

NOBODY = -1


def check_memory(program: Program, arena_bytes: int) -> None:
    """Run the program in the mind: what is read from the arena is still what was written there."""
    held = np.full(-(-arena_bytes // ALIGN), NOBODY, np.int32)
    _run(program, held, {})


def _run(program: Program, held: np.ndarray, numbers: dict[Array, int]) -> None:
    """`held` says for each piece of the arena whose it is."""

    def own(step: Any, arrays: Iterable[Array]) -> None:
        for array in arrays:
            if (
                array.kind == "temp"
                and array.size
                and not (_words(held, array) == number(array)).all()
            ):
                raise StepError(
                    f"{name_of(step)} needs {array!r}, whose memory another array has taken"
                )

    def take(step: Any, arrays: Sequence[Array]) -> None:
        for array in arrays:
            if array.kind == "temp":
                _words(held, array)[:] = number(array)
        own(step, arrays)

    def number(array: Array) -> int:
        return numbers.setdefault(array, len(numbers))

    for step in program.steps:
        reads, writes = _in_arena(step)
        written = set(writes)
        own(step, (a for a in reads if a not in written))
        take(step, writes)
        own(step, reads)
        if isinstance(step, Branch):
            ends = [held.copy() for _ in step.branches]
            for branch, end in zip(step.branches, ends, strict=True):
                _run(branch, end, numbers)
                held[end != ends[0]] = NOBODY
                held[end == ends[0]] = end[end == ends[0]]
        elif isinstance(step, (Loop, Scan)):
            if isinstance(step, Scan) and step.tiles is not None:  # iterations are out of order
                take(step, [a for inner in step.body.steps for a in _in_arena(inner)[1]])
            for _ in range(2):
                for inner in inner_programs(step):
                    _run(inner, held, numbers)
                    if isinstance(step, Loop) and inner is step.test:
                        own(step, [step.flag])
            own(step, [a for c in step.carries for a in (c.result, c.spare) if a is not None])


def _words(held: np.ndarray, array: Array) -> np.ndarray:
    if array.offset < 0:
        raise StepError(f"{array!r} has no offset in the arena")
    return held[array.offset // ALIGN : -(-(array.offset + array.nbytes) // ALIGN)]


def _in_arena(step: Any) -> tuple[list[Array], list[Array]]:
    """What a step reads and writes by itself that is not its own."""
    reads, writes = outside(step)
    if isinstance(step, Loop):
        reads.remove(step.flag)  # its test writes it
    return reads, writes
