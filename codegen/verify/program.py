"""What a finished program holds to: all that is read was written before, on every path; what is local is
touched only where it lives."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..loop_ir.kernel import Array, Kernel, Stage
from ..loop_ir.steps import Branch, Loop, Matmul, Program, RowBlocks, Scan, direct, steps_within
from .accesses import check_accesses
from .blocks import check_units
from .errors import StepError, name_of
from .flow import accesses, leaves, parts_of
from .tiles import check_tiles


def check_program(program: Program) -> None:
    """Check that what is read was written before; that local arrays are; that blocks keep apart."""
    _check_written(program, set())
    _check_locals(program)
    for step in steps_within(program):
        if isinstance(step, Kernel):
            check_accesses(step)
        elif isinstance(step, RowBlocks):
            check_units(step)
        elif isinstance(step, Scan) and step.tiles is not None:
            check_tiles(step, step.tiles)


def _check_written(program: Program, have: set[Array]) -> None:
    """Add to `have` what is certain to be written when the program is done."""

    def need(step: Any, arrays: Iterable[Array]) -> None:
        for array in arrays:
            outside = array.kind in ("const", "input")
            if array not in have and not outside and array.size:
                raise StepError(f"{name_of(step)} reads {array!r}, which nothing has written")

    for step in program.steps:
        if isinstance(step, Branch):
            need(step, [step.index])
            ends = [set(have) for _ in step.branches]
            for branch, end in zip(step.branches, ends, strict=True):
                _check_written(branch, end)
            have |= set.intersection(*ends)
        elif isinstance(step, (Loop, Scan)):
            need(step, [c.init for c in step.carries])
            _check_carries(step)
            have |= {c.result for c in step.carries}
            inside = have | {c.now for c in step.carries}
            if isinstance(step, Loop):
                _check_written(step.test, inside)
                if step.flag not in inside:
                    raise StepError(f"{name_of(step)} has a test that does not write its flag")
            else:
                need(step, [m.whole for m in step.xs])
                inside |= {m.slice for m in step.xs}
                have |= {m.whole for m in step.ys}
            _check_written(step.body, inside)
            for carry in step.carries:
                if carry.spare is not None and carry.next not in inside and carry.next.size:
                    raise StepError(f"the body of {name_of(step)} does not write {carry.next!r}")
        else:
            for leaf in leaves([step]):
                reads, writes = accesses(leaf)
                # Other kinds of steps may write an array first, and read it then.
                plain = isinstance(leaf, (Stage, Matmul))
                need(leaf, (a for a in reads if plain or a not in writes))
                have |= set(writes)


def _check_carries(loop: Loop | Scan) -> None:
    """What a loop carries is copied as bytes, and is exchanged with a buffer."""
    for carry in loop.carries:
        for array in (carry.init, carry.result, carry.spare):
            if array is not None and not array.contiguous:
                raise StepError(f"{name_of(loop)} carries a value in {array!r}, which has gaps")


def _check_locals(program: Program) -> None:
    """What lives in one kernel, or in a unit of row blocks, is touched by nothing else."""
    home: dict[Array, Any] = {}
    for step in steps_within(program):
        for array in step.local if isinstance(step, (Kernel, RowBlocks)) else ():
            if array.kind != "temp" or home.setdefault(array, step) is not step:
                raise StepError(f"{array!r} lives in {name_of(step)}, and elsewhere too")
    for step in steps_within(program):
        parts = parts_of(step)
        for array in {a for arrays in direct(step) for a in arrays}:
            where = home.get(array, step)
            if where is not step and where not in parts and step not in parts_of(where):
                raise StepError(
                    f"{name_of(step)} touches {array!r}, which lives in {name_of(where)}"
                )
