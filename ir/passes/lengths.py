"""Positions along an axis whose length is bound at the call are below it, wherever code runs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from ..build import Builder
from ..graph import Graph, Op, Value
from ..types import BOOL, I64, TensorType
from .dead import eliminate_dead_code
from .regions import substituted

_FEW = 64  # elements of a constant that are looked at
_LARGE = 1e12  # numbers of which nothing can be told


def within_lengths(graph: Graph, lengths: Mapping[Value, int]) -> Graph:
    """Tests that ask what always holds are gone: loops over an axis end at its length.

    `lengths` are parameters, with the capacities of the axes of which they are the lengths. It is the
    last pass: rules that count elements, `sum(broadcast(x)) -> n * x`, would count those behind one.

    before: f(%x: f64[8419], %n: i64[]):  s = sum(select(iota < n, x, 0))
    after:  s = sum(x)
    """

    def holds(b: Builder, op: Op, operands: Sequence[Value]) -> Sequence[Value] | None:
        if op.name == "lt" and _is_within(op, lengths):
            return [b.full(op.result.shape, True, BOOL)]
        if op.name == "bitwise_and" and op.result.dtype == BOOL:
            left = [v for v in operands if not _is_true(v)]
            return [left[0] if left else operands[0]] if len(left) < 2 else None
        if op.name == "select" and _is_true(operands[0]):
            return [operands[1]]
        return None

    return eliminate_dead_code(substituted(graph, holds))


def _is_within(op: Op, capacities: Mapping[Value, int]) -> bool:
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


def counted(graph: Graph, capacities: Sequence[int]) -> bool:
    """Whether a number in a graph may have come of the capacity of an axis: a length in its place would
    be another number, so that the graph is right for arrays of that size only."""
    for op in graph.walk():
        if op.name == "constant" and op.attrs["value"].size <= _FEW:
            for number in np.asarray(op.attrs["value"]).reshape(-1):
                parts = (number.real, number.imag) if number.dtype.kind == "c" else (number,)
                if any(_is_of(float(part), n) for part in parts for n in capacities):
                    return True
    return False


def _is_of(number: float, n: int) -> bool:
    """Whether a number is about n, or a multiple of it, or of its inverse."""
    if number == 0 or not math.isfinite(number) or abs(number) > _LARGE:
        return False
    if abs(abs(number) - n) <= 2:
        return True
    return any(
        _is_whole(number / k) and not _is_whole(number / m)
        for k, m in ((n, n + 2), (1 / n, 1 / (n + 2)))
    )


def _is_whole(number: float) -> bool:
    return abs(number) >= 0.5 and abs(number - round(number)) <= 1e-6 * min(abs(number), 1e3)
