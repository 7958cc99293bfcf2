"""The launches of a sort: merges, or passes by digits; and of the search for a part of sorted rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...cuda.program import Argument, Fill, Launch, Ref, Scalar, Step
from ...loop_ir.kernel import Array
from ...loop_ir.steps import Sort
from ...module import KernelReport
from .cuda_elements import ElementEmitter
from .cuda_radix import RadixEmitter, count_blocks
from .cuda_radix_plan import THREADS, VALUES, RadixPlan, plan_of
from .cuda_select_plan import STATE, Select
from .cuda_select_plan import THREADS as SELECT_THREADS
from .cuda_selection import SelectEmitter, tally_blocks
from .cuda_sorting import SortEmitter, SortPlan, sort_plan

if TYPE_CHECKING:
    from ...device.build import ProgramBuilder

WORD = 4  # bytes of a count


def sort_steps(builder: ProgramBuilder, step: Sort) -> list[Step]:
    """The launches that sort a step's keys into its target: of a merge sort, or of a radix sort."""
    radix = plan_of(step)
    return _merges(builder, step) if radix is None else _passes(builder, step, radix)


def _merges(builder: ProgramBuilder, step: Sort) -> list[Step]:
    """Sort tiles, then merge runs to and fro between the two buffers; the last go to the target."""
    plan = sort_plan(step)
    turns = [step.target, step.keys]
    homes = [turns[k % 2] for k in range(len(plan.merges), -1, -1)]

    def kernel(source: Array, result: Array, merge: bool) -> tuple[str, tuple[Argument, ...]]:
        e = SortEmitter(step, plan, source, result, builder.target, builder.definitions)
        e.merge() if merge else e.tiles()
        hint = "merge" if merge else "sort"
        return _kernel(
            builder, step, e, hint, plan.threads, f"tiles of {plan.tile}", _extents(plan)
        )

    name, arguments = kernel(step.keys, homes[0], False)
    steps: list[Step] = [Launch(name, (plan.blocks, 1, 1), arguments)]
    for run, source, result in zip(plan.merges, homes, homes[1:], strict=False):
        name, arguments = kernel(source, result, True)
        numbers = (Scalar(plan.index_type, n) for n in (run, run.bit_length()))
        steps.append(Launch(name, (plan.merge_blocks, 1, 1), (*arguments, *numbers)))
    return steps


def _passes(builder: ProgramBuilder, step: Sort, plan: RadixPlan) -> list[Step]:
    """Count all digits, then move the elements digit by digit, to and fro between the two buffers."""
    spare = step.scratch if step.target is step.keys else step.target
    counts, table = step.counts, plan.table
    note = f"digits in tiles of {plan.tile}"

    def word(k: int) -> Ref:
        return builder.ref(counts, WORD * k)

    def emitter(source: Array, result: Array) -> RadixEmitter:
        return RadixEmitter(step, plan, source, result, builder.target, builder.definitions)

    blocks = count_blocks(plan, builder.target)
    e = emitter(step.keys, step.keys)
    e.count(blocks)
    name, arguments = _kernel(builder, step, e, "count", THREADS, note, _extents(plan))
    steps: list[Step] = [
        Fill(word(0), table + plan.tiles * VALUES, WORD, 0),
        Launch(name, (plan.rows * blocks, 1, 1), (*arguments, word(0))),
    ]
    for k, (shift, bits) in enumerate(zip(plan.shifts, plan.bits, strict=True)):
        turns = [step.keys, spare] if k % 2 == 0 else [spare, step.keys]
        e = emitter(*turns)
        e.sweep()
        name, arguments = _kernel(builder, step, e, "sweep", THREADS, note, _extents(plan))
        tables = [table + (k + j) % 2 * plan.tiles * VALUES for j in range(2)]
        words = (word(k * VALUES), word(table - len(plan.shifts) + k), *map(word, tables))
        numbers = Scalar(e.word_type, shift), Scalar(e.word_type, (1 << bits) - 1)
        steps.append(Launch(name, (plan.tiles, 1, 1), (*arguments, *words, *numbers)))
    return steps


def select_steps(builder: ProgramBuilder, step: Select) -> list[Step]:
    """Look at one digit after the other, then take what is wanted."""
    note, extents = f"tiles of {step.tile}", (step.rows, step.n)

    def word(k: int) -> Ref:
        return builder.ref(step.counts, WORD * k)

    def launch(e: SelectEmitter, hint: str, blocks: int, *more: Ref) -> Launch:
        name, arguments = _kernel(builder, step, e, hint, SELECT_THREADS, note, extents)
        return Launch(name, (blocks, 1, 1), (*arguments, word(0), *more))

    def emitter(fills: bool = False) -> SelectEmitter:
        return SelectEmitter(step, builder.target, builder.definitions, fills)

    blocks = tally_blocks(step, builder.target)
    steps: list[Step] = [Fill(word(0), step.words, WORD, 0)]
    for digit in range(len(step.cuts) - 1):
        e = emitter()
        e.tally(digit, blocks)
        steps.append(launch(e, "tally", step.rows * blocks))
    e = emitter()
    e.settle()
    steps.append(launch(e, "settle", step.rows))
    e = emitter(True)
    e.collect()
    more = word(step.ticket), word(step.ticket + STATE)
    return [*steps, launch(e, "gather", step.rows * step.parts, *more)]


def _extents(plan: SortPlan | RadixPlan) -> tuple[int, int]:
    return plan.rows, plan.n


def _kernel(
    builder: ProgramBuilder,
    step: Sort | Select,
    e: ElementEmitter,
    hint: str,
    threads: int,
    note: str,
    extents: tuple[int, int],
) -> tuple[str, tuple[Argument, ...]]:
    """The name of a kernel of a sort, and the pointers that it takes."""
    name = builder.emitted(e.b, hint, threads, [builder.alignment(a) for a in e.b.arrays])
    builder.note(
        KernelReport(
            name=name,
            ops=(hint,),
            extents=extents,
            bytes_read=step.keys.nbytes,
            bytes_written=sum(a.nbytes for a in e.b.written),
            parallel=True,
            note=note,
            locs=(step.loc,) if step.loc is not None else (),
        )
    )
    return name, tuple(map(builder.ref, e.b.arrays))
