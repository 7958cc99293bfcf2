"""Lowering of branches and effects. A branch becomes a program of its own, which writes its results
where the op's results are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...ir.graph import Graph, Op, Value
from ..loop_ir.kernel import Array
from ..loop_ir.steps import Branch, Callback, Check, Copy, Program
from ..schedule.in_place import joined
from .lower import Lowering, lower, lowering, memory_type


@lowering("cond")
def _cond(low: Lowering, op: Op) -> None:
    index, *operands = op.operands
    flag = low.materialise(index)
    arrays = [operand_array(low, v) for v in operands]
    stay = joined(low, op)
    results = [here or result_array(low, v) for here, v in zip(stay, op.results, strict=True)]
    branches = [_branch(low, region, arrays, results, stay) for region in op.regions]
    low.items.append(Branch(flag, branches, op.loc))
    for value in op.operands:
        if low.arrays.get(value) in stay and value in low.arrays:
            low.overwrite(value)
    bind(low, op, results)


def _branch(
    low: Lowering,
    region: Graph,
    arrays: Sequence[Array | None],
    results: Sequence[Array | None],
    stay: Sequence[Array | None],
) -> Program:
    """A branch that leaves its outputs in `results`; those in `stay` had an operand's value before."""
    targets = [
        Array(here.shape, here.dtype, name="apart") if here is not None else result
        for here, result in zip(stay, results, strict=True)
    ]
    gifts = [here for here in stay if here is not None]
    program, ends = lower(region, arrays, targets, low.context, stay, gifts)
    for here, end in zip(stay, ends, strict=True):
        if here is not None and end is not None and end is not here:
            program.steps += _copied(low, end, here)
    return program


def _copied(low: Lowering, source: Array, target: Array) -> list[Any]:
    """Steps that copy a whole array, into the memory of an argument with strides of its own perhaps."""
    if target.contiguous:
        return [Copy(source, target)]
    before, low.items = low.items, []
    low.copy(source, target)
    own, low.items = low.items, before
    return low.context.arrange(own, {target})


@lowering("assert")
def _assert(low: Lowering, op: Op) -> None:
    if op in low.asked:
        return
    flag, *values, _ = op.operands
    site = low.context.assertion(op, values)
    low.items.append(Check(low.materialise(flag), site, [low.materialise(v) for v in values]))


@lowering("create_token")
def _token(low: Lowering, op: Op) -> None:
    """A token is order, and steps are in order."""


@lowering("pure_callback", "io_callback")
def _callback(low: Lowering, op: Op) -> None:
    operands = [contiguous(low, operand_array(low, v)) for v in op.operands]
    results = [result_array(low, v) for v in op.results]
    number = low.context.callback(op)
    low.items.append(
        Callback(
            number, [a for a in operands if a is not None], [a for a in results if a is not None]
        )
    )
    bind(low, op, results)


def operand_array(low: Lowering, value: Value) -> Array | None:
    """Where the value is; None for a token."""
    return low.materialise(value) if memory_type(value) is not None else None


def result_array(low: Lowering, value: Value) -> Array | None:
    """Memory for the result of a step; None for a token."""
    return low.array_for(value) if memory_type(value) is not None else None


def contiguous(low: Lowering, array: Array | None) -> Array | None:
    """The array, or a C-contiguous copy of it."""
    if array is None or array.contiguous:
        return array
    target = Array(array.shape, array.dtype, name="packed")
    low.copy(array, target)
    return target


def bind(low: Lowering, op: Op, results: Sequence[Array | None]) -> None:
    """Say where the op's results are; None for one that nobody needs."""
    for value, array in zip(op.results, results, strict=True):
        if array is not None:
            low.arrays[value] = array


@lowering("materialize")
def _materialize(low: Lowering, op: Op) -> None:
    """The value gets memory, and what reads it shares no loops with what wrote it."""
    (value,) = op.operands
    array = low.arrays.get(value)
    alone = low.users[value] == [op] and value not in low.outputs
    if array is not None and array.kind == "temp" and alone:
        low.arrays[op.result] = array
    low.inlined[op.result] = low.cost[op.result] = 0
    low.materialise(op.result).apart = True
