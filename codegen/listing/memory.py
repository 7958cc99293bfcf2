"""The memory plan as text: which temporaries share the arena, from which step to which."""

from __future__ import annotations

from collections.abc import Iterator

from ...ir.types import dtype_name
from ..loop_ir.steps import Program
from ..schedule.memory import lifetimes
from .expressions import Names


def memory_plan(program: Program, names: Names, arena_bytes: int) -> Iterator[str]:
    """A line for each temporary, in the order in which they come to life: its place, size and life."""
    lives = sorted(lifetimes(program).items(), key=lambda item: (item[1][0], item[0].offset))
    yield f"arena: {arena_bytes:,} bytes for {len(lives)} temporaries"
    if not lives:
        return
    whole = sum(array.nbytes for array, _ in lives)
    yield f"without sharing: {whole:,} bytes"
    yield f"{'bytes':>12} {'offset':>12}  steps      array"
    for array, (first, last) in lives:
        shape = f"{dtype_name(array.dtype)}[{','.join(map(str, array.shape))}]"
        steps = f"{first}-{last}"
        yield f"{array.nbytes:>12,} {array.offset:>12,}  {steps:<9}  {names.array(array)}: {shape}"
