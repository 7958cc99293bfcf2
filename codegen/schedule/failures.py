"""Whether a program can fail when it has written into arrays that have to be as they were then.

Where all that can fail comes before, as checks do that `ir.passes.check_first` or a `lower` of
`checks_apart` has made first, such arrays may be written where they are.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from ..loop_ir.kernel import Array, Kernel
from ..loop_ir.scalar_code import may_fail, specials
from ..loop_ir.steps import (
    Copy,
    Matmul,
    Program,
    RowBlocks,
    ScalarCode,
    Scan,
    Tiled,
    inner_programs,
    touched,
)
from .survey import survey


def fails_late(program: Program, arrays: Collection[Array | None]) -> bool:
    """Whether a step can fail that writes one of these arrays, or comes after one that does."""
    written = False
    for step in program.steps:
        written = written or not set(touched(step)[1]).isdisjoint(arrays)
        if written and _can_fail(step):
            return True
    return False


def _can_fail(step: Any) -> bool:
    if isinstance(step, Kernel):
        return any(survey(stage).checks for stage in step.stages)
    if isinstance(step, ScalarCode):
        return may_fail(step.body) or any(specials(step.body))
    if isinstance(step, Scan):
        return any(_can_fail(s) for inner in inner_programs(step) for s in inner.steps)
    if isinstance(step, RowBlocks):
        return any(_can_fail(part.step) for part in step.parts)
    if isinstance(step, Tiled):
        return bool(getattr(step, "site", 0))
    return not isinstance(step, (Matmul, Copy))
