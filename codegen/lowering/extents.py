"""Behind which count are the elements of a value of no account?

    select(iota < n, x, 0)      bounded_slice(x, start, n)      products of such

A loop that adds them up, or writes them, need not go further than the count. `cuts` finds counts from
behind which all elements are a given one, the identity of a reduction.
"""

from __future__ import annotations

from typing import Any

from ...ir.graph import Op, Value
from ...ir.types import I64, TensorType

OPS = frozenset(("bounded_slice", "bounded_update_slice"))
_DEPTH = 12


def has_counts(op: Op) -> bool:
    """Whether windows whose length is a value are in a loop."""
    return any(
        inner.name in OPS or (inner.regions and has_counts(inner))
        for graph in op.regions
        for inner in graph.ops
    )


def cuts(value: Value, axis: int, fill: Any, depth: int = _DEPTH) -> list[Value]:
    """Counts from behind which all elements along an axis are `fill`."""
    op = value.op
    if op is None or depth == 0 or not isinstance(value.type, TensorType):
        return []
    if op.name == "bounded_slice" and fill == 0:
        axes = op.attrs["axes"]
        own = [op.operands[1 + len(axes) + axes.index(axis)]] if axis in axes else []
        return own + (cuts(op.operands[0], axis, fill, depth - 1) if not own else [])
    if op.name == "select":
        test, x, y = op.operands
        if _is_fill(y, fill):
            return [*counts(test, axis), *cuts(x, axis, fill, depth - 1)]
        return _both(cuts(x, axis, fill, depth - 1), cuts(y, axis, fill, depth - 1))
    if op.name in ("add", "sub", "mul") and fill == 0:
        return _both(*(cuts(v, axis, fill, depth - 1) for v in op.operands))
    if op.name in ("neg", "convert", "abs") and fill == 0:
        return cuts(op.operands[0], axis, fill, depth - 1)
    if op.name == "transpose":
        return cuts(op.operands[0], op.attrs["perm"][axis], fill, depth - 1)
    if op.name == "broadcast" and axis in op.attrs["dims"]:
        source = op.attrs["dims"].index(axis)
        if op.operands[0].shape[source] == value.shape[axis]:
            return cuts(op.operands[0], source, fill, depth - 1)
    if op.name == "reshape":
        source = _same_axis(value.shape, axis, op.operands[0].shape)
        return [] if source is None else cuts(op.operands[0], source, fill, depth - 1)
    return []


def _both(a: list[Value], b: list[Value]) -> list[Value]:
    return [n for n in a if n in b]


def _same_axis(shape: tuple[int, ...], axis: int, source: tuple[int, ...]) -> int | None:
    """The axis of an array that an axis of its reshape is, where only sizes of 1 come and go."""
    mine = [d for d, n in enumerate(shape) if n != 1]
    theirs = [d for d, n in enumerate(source) if n != 1]
    if [shape[d] for d in mine] != [source[d] for d in theirs] or axis not in mine:
        return None
    return theirs[mine.index(axis)]


def counts(test: Value, axis: int) -> list[Value]:
    """The counts n for which a condition says, among other things, that a position along an axis is
    below n."""
    op = test.op
    if op is None:
        return []
    if op.name == "bitwise_and":
        return [n for v in op.operands for n in counts(v, axis)]
    if op.name == "broadcast" and axis in op.attrs["dims"]:
        source = op.attrs["dims"].index(axis)
        return counts(op.operands[0], source) if len(op.operands[0].shape) > source else []
    bound = below(op)
    return [bound[1]] if bound is not None and bound[0] == axis else []


def below(op: Op) -> tuple[int, Value] | None:
    """The axis and n of `iota < n`."""
    if op.name != "lt":
        return None
    index, limit = op.operands
    if index.op is None or index.op.name != "iota" or index.dtype != I64:
        return None
    number = scalar_of(limit)
    return None if number is None else (index.op.attrs["axis"], number)


def scalar_of(value: Value) -> Value | None:
    """The single number of which a value has copies."""
    while value.shape:
        if value.op is None or value.op.name not in ("broadcast", "reshape"):
            return None
        (value,) = value.op.operands
    return value


def _is_fill(value: Value, fill: Any) -> bool:
    number = scalar_of(value)
    if number is None or number.op is None or number.op.name != "constant":
        return False
    return bool(number.op.attrs["value"].reshape(-1)[0] == fill)
