"""Which programs can be run for any length of an axis: those whose loops follow it (`codegen.sizes`).

y[i, j] = x[i, j] + b[j]       i over the axis: it runs to the length, and so do all that read y
y[i] = x[n - 1 - i]            reads elsewhere: refused, NotSized
"""

from __future__ import annotations

from collections.abc import Sequence

from ..loop_ir.index import Data, Index, Var, of_var
from ..loop_ir.kernel import Access, Array, Kernel, Stage
from ..loop_ir.steps import Copy, Matmul, Program, RowBlocks, Scan, direct, steps_within
from ..sizes import has_size, refuse, size_of
from .schedule import Schedule


def check_follows(program: Program) -> None:
    """NotSized unless each access to an axis with a length is by a loop over that axis."""
    for step in steps_within(program):
        match step:
            case Kernel():
                for stage in step.stages:
                    _check_stage(stage)
            case Matmul():
                _check_product(step)
            case Copy():
                if has_size(step.source.shape[1:]):
                    refuse("an axis of an unknown length that is not the first is copied")
            case Scan():
                _check_scan(step)
            case RowBlocks():
                refuse("blocks of rows are as long as the axis")
            case _:
                reads, writes = direct(step)
                if any(has_size(a.shape) for a in (*reads, *writes)):
                    refuse(f"{type(step).__name__} is made for one length of its arrays")


def _check_scan(step: Scan) -> None:
    """A loop over the axis moves along arrays of that axis; what it carries has no length."""
    size = size_of(step.length)
    arrays = [a for c in step.carries for a in (c.init, c.now, c.next, c.result, c.spare)]
    if any(a is not None and has_size(a.shape) for a in arrays):
        refuse("a loop carries an array whose axis has a length")
    for moving in (*step.xs, *step.ys):
        if has_size(moving.whole.shape) and (size is None or step.length != size.capacity):
            refuse("a loop over several axes, of which one has a length")
        if has_size(moving.whole.shape[1:]):
            refuse("a loop over an axis, of arrays of which another has a length")


def check_ends(arrays: Sequence[Array | None]) -> None:
    """The same for what comes in and goes out: only a leading axis is in no stride."""
    if any(a is not None and has_size(a.shape[1:]) for a in arrays):
        refuse("an axis that is not the first has a length")


def _check_stage(stage: Stage) -> None:
    loops = {}
    for var in stage.dims:
        size = size_of(var.extent)
        if size is not None:
            if var.extent != size.capacity:
                refuse("a loop over several axes, of which one has a length")
            loops[of_var(var)] = var
    for access in stage.accesses:
        _check_access(access, loops)


def _check_access(access: Access, loops: dict[Index, Var]) -> None:
    for n, index in zip(access.array.shape, access.index, strict=True):
        size = size_of(n)
        if size is None:
            continue
        if any(isinstance(atom, Data) and atom.within == n for atom in index.terms):
            continue  # a window of the axis, or a position that was moved into it
        var = loops.get(index)
        if n != size.capacity or var is None or var.extent != n:
            refuse("elements are read or written elsewhere than at the position along the axis")


def _check_product(step: Matmul) -> None:
    """Rows, batches, or what is summed over may have a length; columns may not."""
    sized = [size_of(n) for n in (step.batch, step.m, step.k)]
    if size_of(step.n) is not None or sum(s is not None for s in sized) > 1 or step.watched:
        refuse("columns of a product have a length, or several of its axes")
    batch, rows, summed = sized
    leads = step.c.shape[:1]
    if rows is not None and step.batch != 1:
        refuse("rows of a batch of products have a length")
    if batch is not None and leads != (batch.capacity,):
        refuse("a batch of products is not counted by its first axis")
    if rows is not None and step.m != rows.capacity and leads != (rows.capacity,):
        refuse("rows of a product are not counted by its first axis")
    if summed is not None and step.k != summed.capacity:
        refuse("a product sums over several axes, of which one has a length")
    if step.upper and any(s is not None for s in (batch, rows)):
        refuse("half of a product with a length")


def check_loops(plan: Schedule) -> None:
    """NotSized where the loops of a schedule could not end at a length."""
    loops = plan.outer.vars
    last = len(loops) - 1
    for position, var in enumerate(loops):
        if size_of(var.extent) is None or position == 0:
            continue
        if plan.mode != "outer" or position != last or plan.tile:
            refuse("a loop that is not the outermost has a length")
    for inner in plan.inner:
        if any(size_of(v.extent) is not None for v in inner.vars[1:-1]):
            refuse("an inner loop between others has a length")
