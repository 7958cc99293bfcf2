"""Positions along an axis whose length is bound at the call are below it, wherever code runs."""

from __future__ import annotations

from collections.abc import Sequence

from ..build import Builder
from ..graph import Graph, Op, Value
from ..types import BOOL, I64, TensorType
from .dead import eliminate_dead_code
from .regions import substituted


def within_lengths(graph: Graph, lengths: Sequence[tuple[int, int, int]]) -> Graph:
    """Tests that ask what always holds are gone: loops over an axis end at its length.

    `lengths` are the capacities of such axes, the parameters that are their lengths, and the least that
    they are.

    before: f(%x: f64[8419], %n: i64[]):  s = sum(select(iota < n, x, 0))
    after:  s = sum(x)
    """
    capacities = {graph.params[param]: capacity for capacity, param, _ in lengths}

    def holds(b: Builder, op: Op, operands: Sequence[Value]) -> Sequence[Value] | None:
        if op.name == "lt" and _is_within(op, capacities):
            return [b.full(op.result.shape, True, BOOL)]
        if op.name == "bitwise_and" and op.result.dtype == BOOL:
            left = [v for v in operands if not _is_true(v)]
            return [left[0] if left else operands[0]] if len(left) < 2 else None
        if op.name == "select" and _is_true(operands[0]):
            return [operands[1]]
        return None

    return eliminate_dead_code(substituted(graph, holds))


def _is_within(op: Op, capacities: dict[Value, int]) -> bool:
    """Whether an op says of each position along an axis that it is below the axis' length."""
    index, limit = op.operands
    if index.op is None or index.op.name != "iota" or index.type.dtype != I64:  # type: ignore[union-attr]
        return False
    while limit.op is not None and limit.op.name in ("broadcast", "reshape"):
        (limit,) = limit.op.operands
    assert isinstance(index.type, TensorType)
    return index.type.shape[index.op.attrs["axis"]] == capacities.get(limit)


def _is_true(value: Value) -> bool:
    while value.op is not None and value.op.name in ("broadcast", "reshape"):
        (value,) = value.op.operands
    op = value.op
    return (
        op is not None
        and op.name == "constant"
        and op.result.dtype == BOOL
        and bool(op.attrs["value"].all())
    )
