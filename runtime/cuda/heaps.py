"""Heaps for tapes that the device keeps by itself (`codegen.kernels.tape`): which programs have one, and
how large it is at first.

A program that ran out of room runs again with a larger heap. So one whose runs leave something behind
(callbacks, updates of memory that was given to it) has none: there the host keeps the tapes (`tapes`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...codegen.cuda.program import DeviceProgram, If, Scan, Step, TapeNew, TapePop, TapePush, While
from ...codegen.kernels.tape.cuda_tapes import HANDLE_BYTES, RECORD_BYTES, STATE_BYTES

FIRST_BYTES = 1 << 20  # of a heap of which nobody knows how large it will be
KNOWN_BYTES = 16 << 20  # above which what is known for sure is taken for much more than is wanted


def has_heap(program: DeviceProgram) -> bool:
    """Whether the device keeps the tapes of the program."""
    taped = any(isinstance(step, (TapeNew, TapePush, TapePop)) for step in _within(program.steps))
    return taped and not program.callbacks and not program.in_place


def enough(program: DeviceProgram) -> int | None:
    """Bytes of heap that a run cannot exceed; None if its iterations decide, or if that is very much."""
    most = _most(program.steps)
    return None if most is None or most > KNOWN_BYTES else STATE_BYTES + most


def _within(steps: Sequence[Step]) -> Iterator[Step]:
    for step in steps:
        yield step
        for inner in _parts(step):
            yield from _within(inner)


def _parts(step: Step) -> tuple[tuple[Step, ...], ...]:
    if isinstance(step, If):
        return step.branches
    if isinstance(step, While):
        return step.test, step.body
    return (step.body,) if isinstance(step, Scan) else ()


def _most(steps: Sequence[Step]) -> int | None:
    total = 0
    for step in steps:
        if isinstance(step, TapeNew):
            total += HANDLE_BYTES
        elif isinstance(step, TapePush):
            total += HANDLE_BYTES + RECORD_BYTES + sum(-(-n // 16) * 16 for _, n in step.values)
        parts = [_most(part) for part in _parts(step)]
        if any(part is None for part in parts):
            return None
        inside = sum(part for part in parts if part is not None)
        if inside and isinstance(step, While):
            return None
        total += inside * (step.length if isinstance(step, Scan) else 1)
    return total
