"""Between which integers the elements of a value lie: an index known to be in range needs no check."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from .graph import Graph, Op, Value
from .types import BOOL, TensorType

Interval = tuple[int, int]
Rule = Callable[..., "Interval | None"]

DEPTH = 256  # ops that are looked through, one behind the other


def interval(value: Value, known: Mapping[Value, Interval] | None = None) -> Interval:
    """The least and the largest element that a value of integers or truths may have.

        select(c, 4, 0) + (x & 3)     ->     0, 7

    What is not known to be less is all that the dtype holds. `known` are those of some values.
    """
    return _of(value, dict(known or {}), DEPTH)


def remembered(value: Value, known: dict[Value, Interval]) -> Interval:
    """The same, where `known` takes up what is found out: for many values of one graph."""
    return _of(value, known, DEPTH)


def _of(value: Value, intervals: dict[Value, Interval], depth: int) -> Interval:
    interval = intervals.get(value)
    if interval is None:
        low, high = interval = _whole(value)
        bounds = _bounds(value, value.op, intervals, depth - 1) if value.op and depth else None
        if bounds is not None and low <= bounds[0] and bounds[1] <= high:
            interval = bounds
        intervals[value] = interval
    return interval


def _whole(value: Value) -> Interval:
    if value.dtype == BOOL:
        return 0, 1
    info = np.iinfo(value.dtype)
    return int(info.min), int(info.max)


def _bounds(value: Value, op: Op, intervals: dict[Value, Interval], depth: int) -> Interval | None:
    if op.name == "cond":
        return _union(*(_of_branch(value, op, region, intervals, depth) for region in op.regions))
    if op.name == "constant":
        data = op.attrs["value"]
        return (int(data.min()), int(data.max())) if data.size else None
    if op.name == "iota":
        return 0, max(op.result.shape[op.attrs["axis"]] - 1, 0)
    if op.name in ("argmax", "argmin", "argsort"):
        return 0, max(op.operands[0].shape[op.attrs["axis"]] - 1, 0)
    if op.name in ("max", "min", "sum") and op.operands[0].dtype.kind in "biu":
        (source,) = op.operands
        parts = source.tensor.size // max(op.result.tensor.size, 1)
        return _product(
            _of(source, intervals, depth), (parts, parts) if op.name == "sum" else (1, 1)
        )
    if op.definition.view or op.name == "convert":
        (source,) = op.operands
        return _of(source, intervals, depth) if source.dtype.kind in "biu" else None
    if op.name == "select":
        return _union(*(_of(v, intervals, depth) for v in op.operands[1:]))
    rule = _RULES.get(op.name)
    if rule is None or op.operands[0].dtype.kind not in "iu":
        return None
    return rule(*(_of(v, intervals, depth) for v in op.operands))


def _of_branch(
    value: Value, op: Op, region: Graph, intervals: dict[Value, Interval], depth: int
) -> Interval:
    """What a branch gives for one of the results."""
    pairs = zip(region.params, op.operands[1:], strict=True)
    of_params = {p: _of(v, intervals, depth) for p, v in pairs if _is_counted(p) and _is_counted(v)}
    return _of(region.outputs[value.index], of_params, depth)


def _is_counted(value: Value) -> bool:
    return isinstance(value.type, TensorType) and value.dtype.kind in "biu"


def _union(*parts: Interval) -> Interval:
    return min(lo for lo, _ in parts), max(hi for _, hi in parts)


def _product(x: Interval, y: Interval) -> Interval:
    ends = [a * b for a in x for b in y]
    return min(ends), max(ends)


def _masked(x: Interval, y: Interval) -> Interval | None:
    ends = [hi for lo, hi in (x, y) if lo >= 0]
    return (0, min(ends)) if ends else None


def _quotient(x: Interval, y: Interval) -> Interval | None:
    if y[0] <= 0:
        return None
    ends = [a // b for a in x for b in y]
    return min(ends), max(ends)


def _remainder(x: Interval, y: Interval) -> Interval | None:
    """With the divisor's sign."""
    if y[0] <= 0:
        return None
    return (0, min(x[1], y[1] - 1)) if x[0] >= 0 else (0, y[1] - 1)


_RULES: dict[str, Rule] = {
    "add": lambda x, y: (x[0] + y[0], x[1] + y[1]),
    "sub": lambda x, y: (x[0] - y[1], x[1] - y[0]),
    "mul": _product,
    "neg": lambda x: (-x[1], -x[0]),
    "abs": lambda x: (max(x[0], -x[1], 0), max(-x[0], x[1])),
    "minimum": lambda x, y: (min(x[0], y[0]), min(x[1], y[1])),
    "maximum": lambda x, y: (max(x[0], y[0]), max(x[1], y[1])),
    "bitwise_and": _masked,
    "floor_divide": _quotient,
    "remainder": _remainder,
    "right_shift": lambda x, y: (x[0] >> y[0], x[1] >> y[0]) if y[0] == y[1] >= 0 else None,
}
