"""Lowering of structured control flow and effects: regions become programs of their own.

A loop's carries live in pairs of buffers that trade places at each trip, except those that the body
leaves alone or updates in place. Branches write their results where the op's results are.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..ir.graph import Graph, Op, Value
from ..ir.types import BOOL
from .kernel import Array, Branch, Carry, Check, Loop
from .lower import Lowering, is_tensor, lower, lowering
from .lower_updates import UPDATES


@lowering("cond")
def _cond(low: Lowering, op: Op) -> None:
    index, *operands = op.operands
    flag = low.materialise(index)
    arrays = [operand_array(low, v) for v in operands]
    results = [low.array_for(v) if is_tensor(v) else None for v in op.results]
    branches = [lower(region, arrays, results, low.context)[0] for region in op.regions]
    low.items.append(Branch(flag, branches, op.loc))
    _bind(low, op, results)


@lowering("while")
def _while(low: Lowering, op: Op) -> None:
    consts = op.attrs["consts"]
    test_region, body_region = op.regions
    const_arrays = [operand_array(low, v) for v in op.operands[:consts]]
    init = [contiguous(low, operand_array(low, v)) for v in op.operands[consts:]]
    carry: list[Array | None] = []
    fresh: list[Array | None] = []
    for v in op.operands[consts:]:
        tensor = is_tensor(v)
        carry.append(Array(v.shape, v.dtype, "slot", name="carry") if tensor else None)
        fresh.append(Array(v.shape, v.dtype, "slot", name="fresh") if tensor else None)
    flag = Array((), BOOL, name="flag")
    test, _ = lower(test_region, [*const_arrays, *carry], [flag], low.context)
    kept = _kept_carries(body_region, consts)
    stay = [c if kept[i] else None for i, c in enumerate(carry)]
    body, ends = lower(body_region, [*const_arrays, *carry], fresh, low.context, stay, carry)
    results = [low.array_for(v) if is_tensor(v) else None for v in op.results]
    carries = [
        Carry(start, c, f, end is not c, result, Array(c.shape, c.dtype, name="spare"))
        for start, c, f, end, result in zip(init, carry, fresh, ends, results, strict=True)
        if start is not None and c is not None and f is not None and result is not None
    ]
    low.items.append(Loop(carries, test, flag, body, op.loc))
    _bind(low, op, results)


def _kept_carries(body: Graph, consts: int) -> list[bool]:
    """Which carries end in their own memory: unchanged, or updated in place by the body."""
    kept = []
    for i, value in enumerate(body.outputs):
        param = body.params[consts + i]
        kept.append(_updates_of(value, param))
    return kept


def _updates_of(value: Value, param: Value) -> bool:
    """Whether `value` is `param`, or `param` after a chain of slice updates and scatters."""
    while value is not param:
        op = value.op
        if op is None or op.name not in UPDATES:
            return False
        value = op.operands[0]
    return True


@lowering("assert")
def _assert(low: Lowering, op: Op) -> None:
    flag, *values, _ = op.operands
    site = low.context.site("assert", op.attrs["message"], op, values)
    low.items.append(Check(low.materialise(flag), site, [low.materialise(v) for v in values]))


@lowering("create_token")
def _token(low: Lowering, op: Op) -> None:
    """A token is order, and steps are in order."""


def operand_array(low: Lowering, value: Value) -> Array | None:
    return low.materialise(value) if is_tensor(value) else None


def contiguous(low: Lowering, array: Array | None) -> Array | None:
    """The array, or a C-contiguous copy of it."""
    if array is None or array.contiguous:
        return array
    target = Array(array.shape, array.dtype, name="packed")
    low.copy(array, target)
    return target


def _bind(low: Lowering, op: Op, results: Sequence[Array | None]) -> None:
    for value, array in zip(op.results, results, strict=True):
        if array is not None:
            low.arrays[value] = array
