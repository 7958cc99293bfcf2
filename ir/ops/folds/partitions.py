"""Partitions: the element of one rank where a sort puts it, lesser ones before, greater ones behind.

NumPy leaves open how the others follow each other. Here the side of that position that is short (a 16th
of the row at most) is sorted; all others come in classes, each in the order it had: what is less than
the sorted part, what equals its first element, what is between, what equals its last, what is greater.
So the sorted part is that of the sorted row, and a program that reads nothing else selects it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...build import Builder
from ...graph import Op, Value
from ..composed import composition
from ..families import REAL
from ..movement.indexing import take_along
from .sorting import precedes

CLASSES = 5
U8 = np.dtype(np.uint8)


def sorted_part(n: int, kth: int) -> tuple[int, int]:
    """Which part of a row of n elements a partition at `kth` sorts."""
    few = n // 16
    if n - kth <= few:
        return kth, n
    return (0, kth + 1) if kth < few else (kth, kth + 1)


def _part(b: Builder, x: Value, start: int, stop: int) -> Value:
    """These elements of each row."""
    rank = len(x.shape)
    first, last = (0,) * (rank - 1), x.shape[:-1]
    part: Value = b.op("slice", x, start=(*first, start), stop=(*last, stop), step=(1,) * rank)
    return part


def _with_part(b: Builder, x: Value, part: Value, start: int) -> Value:
    rank = len(x.shape)
    updated: Value = b.op(
        "update_slice", x, part, start=(0,) * (rank - 1) + (start,), step=(1,) * rank
    )
    return updated


def _rows(b: Builder, x: Value, axis: int) -> Value:
    """`x` with the axis (a negative number) as its last; again, as it was."""
    rank = len(x.shape)
    perm = list(range(rank))
    perm[axis], perm[-1] = perm[-1], perm[axis]
    return x if axis == -1 else b.transpose(x, perm=tuple(perm))


def _order(b: Builder, x: Value, part: Value) -> Value:
    """The elements of each row by their classes, given the sorted part."""

    def whole(v: Value, index: int) -> Value:
        first = b.reshape(_part(b, v, index, index + 1), shape=v.shape[:-1])
        return b.broadcast(first, shape=x.shape, dims=tuple(range(len(x.shape) - 1)))

    low, high = whole(part, 0), whole(part, part.shape[-1] - 1)
    codes = b.full(x.shape, 1, U8)
    for follows in (
        b.invert(precedes(b, x, low)),
        precedes(b, low, x),
        b.invert(precedes(b, x, high)),
        precedes(b, high, x),
    ):
        codes = b.add(codes, b.convert(follows, dtype=U8))
    order: Value = b.op("true_indices", codes, size=x.shape[-1], classes=CLASSES)
    return order


def _composed(b: Builder, x: Value, axis: int, kth: int) -> tuple[Value, int, Value, Value]:
    """The rows, where their sorted part begins, that part, and the order by classes."""
    rows = _rows(b, x, axis)
    start, stop = sorted_part(rows.shape[-1], kth)
    part = _part(b, b.op("sort", rows, axis=len(rows.shape) - 1, stable=True), start, stop)
    return rows, start, part, _order(b, rows, part)


def _partition(b: Builder, x: Value, *, axis: int, kth: int) -> list[Value]:
    rows, start, part, order = _composed(b, x, axis, kth)
    ordered = take_along(b, rows, order, len(rows.shape) - 1)
    return [_rows(b, _with_part(b, ordered, part, start), axis)]


def _argpartition(b: Builder, x: Value, *, axis: int, kth: int) -> list[Value]:
    rows, start, part, order = _composed(b, x, axis, kth)
    last = len(rows.shape) - 1
    indices = _part(b, order, start, start + part.shape[-1])
    keys = take_along(b, rows, indices, last)
    within = b.op("argsort", keys, axis=last, stable=True)
    return [_rows(b, _with_part(b, order, take_along(b, indices, within, last), start), axis)]


def _jvp(b: Builder, op: Op, tangents: Sequence[Value]) -> list[Value | None]:
    (t,) = tangents
    (x,) = op.operands
    order = b.op("argpartition", x, **op.attrs)
    return [take_along(b, t, order, len(x.shape) + op.attrs["axis"])]


composition(
    "partition",
    _partition,
    _jvp,
    kinds=REAL,
    attrs=("axis", "kth"),
    doc="along `axis`, a negative number, the element of rank `kth` where a sort puts it",
)
composition(
    "argpartition",
    _argpartition,
    lambda b, op, tangents: [None],  # of integers
    kinds=REAL,
    attrs=("axis", "kth"),
    doc="where the elements of `partition` are",
)
