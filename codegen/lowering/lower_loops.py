"""Lowering of loops: the region of a loop becomes a program that runs once per iteration.

A carry lives in a pair of buffers that are exchanged at each iteration, unless the body leaves it alone
or updates it in place. The slices of a scan are not copied: a slot points at this iteration's part of
the whole. What is the same in each iteration is done once, before the loop.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ...ir.graph import Graph, Op, Value
from ...ir.types import BOOL
from ..loop_ir.kernel import Array, Kernel
from ..loop_ir.steps import Carry, Loop, Moving, Program, Scan, touched
from ..schedule.in_place import Carried, carried, keeps_memory
from ..schedule.survey import survey
from ..sizes import has_size
from .lower import Lowering, lower, lowering, memory_type
from .lower_control import bind, contiguous, operand_array, result_array
from .lower_scalars import scalar_loop

MaybeArrays = list[Array | None]


@lowering("while")
def _while(low: Lowering, op: Op) -> None:
    if scalar_loop(low, op):
        return
    count = op.attrs["consts"]
    test_region, body_region = op.regions
    consts = [operand_array(low, v) for v in op.operands[:count]]
    homes = _homes(low, op, count, len(op.operands))
    now, fresh = _slots(op.operands[count:], "now"), _slots(op.operands[count:], "next")
    flag = Array((), BOOL, name="flag")
    test, _ = lower(test_region, [*consts, *now], [flag], low.context)
    stay = _staying(body_region, count, now)
    body, ends = lower(body_region, [*consts, *now], fresh, low.context, stay, now)
    low.items += _invariants(body, [*now, *fresh, flag])
    low.items.append(Loop(_carries(low, homes, now, fresh, ends), test, flag, body, op.loc))
    bind(low, op, [home and home.array for home in homes])


@lowering("scan")
def _scan(low: Lowering, op: Op) -> None:
    if not has_size((op.attrs["length"],)) and scalar_loop(low, op):
        return
    count, carries = op.attrs["consts"], op.attrs["carries"]
    (region,) = op.regions
    consts = [operand_array(low, v) for v in op.operands[:count]]
    initial = op.operands[count : count + carries]
    xs = [_moving(operand_array(low, v)) for v in op.operands[count + carries :]]
    homes = _homes(low, op, count, count + carries)
    now, fresh = _slots(initial, "now"), _slots(initial, "next")
    wholes = [result_array(low, v) for v in op.results[carries:]]
    ys = [_moving(a) for a in wholes]
    slices = [m.slice if m else None for m in xs]
    targets = [*fresh, *(m.slice if m else None for m in ys)]
    stay = [*_staying(region, count, now), *(None for _ in ys)]
    body, ends = lower(region, [*consts, *now, *slices], targets, low.context, stay, now)
    low.items += _invariants(body, [*now, *slices, *targets])
    step = Scan(
        _carries(low, homes, now, fresh, ends[:carries]),
        [m for m in xs if m],
        [m for m in ys if m],
        op.attrs["length"],
        op.attrs["reverse"],
        body,
        op.loc,
    )
    if not (step.xs or step.ys or has_size((step.length,))):
        step.tiles = low.context.tiles(step.carries, body, step.length)
    low.items.append(step)
    bind(low, op, [*(home and home.array for home in homes), *wholes])


def _homes(low: Lowering, op: Op, start: int, stop: int) -> list[Carried | None]:
    """Where the loop keeps its carries, which are the operands start..stop: in the memory of the first
    value, if nothing else reads that any more. All other operands are in memory."""
    homes: list[Carried | None] = []
    for base, result in zip(op.operands[start:stop], op.results, strict=False):
        if memory_type(base) is None:
            homes.append(None)
            continue
        own = carried(low, op, base, result)
        source = contiguous(low, own.source)
        assert source is not None
        homes.append(own._replace(source=source))
    for base, home in zip(op.operands[start:stop], homes, strict=True):
        if home is not None and low.arrays.get(base) is home.array:
            low.overwrite(base)
    return homes


def _invariants(body: Program, varying: MaybeArrays) -> list[Kernel]:
    """Take out of a loop's body the kernels that do the same in each iteration, such as packing weights.

    They run before the loop, which may make no iteration: so those that may report an error stay.
    """
    writers = Counter(a for step in body.steps for a in touched(step)[1])
    changing = {a for a in varying if a is not None} | writers.keys()
    moved: list[Kernel] = []
    for step in body.steps:
        if not isinstance(step, Kernel) or step.ordered:
            continue
        reads, writes = touched(step)
        own = set(writes)
        if (
            all(a.kind == "temp" and writers[a] == writes.count(a) for a in own)
            and own.isdisjoint(a for a in varying if a is not None)
            and changing.isdisjoint(a for a in reads if a not in own)
            and not any(survey(stage).checks for stage in step.stages)
        ):
            moved.append(step)
            changing -= own
    body.steps = [step for step in body.steps if step not in moved]
    return moved


def _slots(values: Sequence[Value], name: str) -> MaybeArrays:
    """Arrays that stand for a pointer that changes, one per value with memory."""
    types = [memory_type(v) for v in values]
    return [Array(t.shape, t.dtype, "slot", name=name) if t else None for t in types]


def _moving(whole: Array | None) -> Moving | None:
    """An array and a slot for one of its slices along axis 0."""
    if whole is None:
        return None
    part = Array(whole.shape[1:], whole.dtype, "slot", strides=whole.strides[1:], name="slice")
    return Moving(whole, part)


def _carries(
    low: Lowering,
    homes: Sequence[Carried | None],
    now: MaybeArrays,
    fresh: MaybeArrays,
    ends: MaybeArrays,
) -> list[Carry]:
    carries = []
    for home, c, f, end in zip(homes, now, fresh, ends, strict=True):
        if home is None or c is None or f is None:
            continue  # a token
        swap = end is not c
        spare = Array(c.shape, c.dtype, name="spare") if swap else None
        both = f in low.context.filled
        carries.append(Carry(home.source, c, f, home.array, spare, both))
    return carries


def _staying(body: Graph, consts: int, now: MaybeArrays) -> MaybeArrays:
    """The carries that may end in their own memory: unchanged, tapes, or updated in place."""
    return [
        c if keeps_memory(value, param) else None
        for c, value, param in zip(now, body.outputs, body.params[consts:], strict=False)
    ]
