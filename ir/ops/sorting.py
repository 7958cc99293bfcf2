"""Sorting along one axis, ascending, NaN last, always stably (`stable` records what was asked)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..batching import leading, shift
from ..build import Builder
from ..graph import Op, Value
from ..types import I32, I64, TensorType, is_float
from .families import ANY, Arg, Array, Example, check_axis, check_dtype, check_kind, opaque
from .indexing import take_along


def _infer_sort(x: TensorType, *, axis: int, stable: bool) -> TensorType:
    check_kind(x, ANY)
    check_axis(axis, x.rank)
    return x


def _infer_argsort(x: TensorType, *, axis: int, stable: bool) -> TensorType:
    return _infer_sort(x, axis=axis, stable=stable).with_dtype(I64)


def _jvp_sort(b: Builder, op: Op, tangents: Sequence[Value | None]) -> list[Value | None]:
    (t,) = tangents
    if t is None or t.tensor.size == 0:
        return [t]
    order = b.op("argsort", op.operands[0], **op.attrs)
    return [take_along(b, t, order, op.attrs["axis"])]


def _vjp_sort(
    b: Builder, op: Op, cotangents: Sequence[Value | None], wanted: Sequence[bool]
) -> list[Value | None]:
    """The sorted places go back by the inverse permutation, which sorts the permutation."""
    (ct,) = cotangents
    if ct is None or not wanted[0] or ct.tensor.size == 0:
        return [ct]
    order = b.op("argsort", op.operands[0], **op.attrs)
    inverse = b.op("argsort", order, **op.attrs)
    return [take_along(b, ct, inverse, op.attrs["axis"])]


_EXAMPLES = tuple(
    Example((Arg(shape, distinct=True),), {"axis": axis, "stable": True})
    for shape, axis in (((3, 4), 1), ((4, 2), 0), ((6,), 0), ((2, 0), 1))
)

opaque(
    "sort",
    _infer_sort,
    lambda x, *, axis, stable: np.sort(x, axis, kind="stable"),
    jvp=_jvp_sort,
    vjp=_vjp_sort,
    batch=leading(axis=shift),
    attrs=("axis", "stable"),
    examples=_EXAMPLES,
)
opaque(
    "argsort",
    _infer_argsort,
    lambda x, *, axis, stable: np.argsort(x, axis, kind="stable"),
    batch=leading(axis=shift),
    attrs=("axis", "stable"),
    examples=_EXAMPLES,
)


# Where rows of truths are true.


def _infer_places(mask: TensorType, *, size: int) -> TensorType:
    check_dtype(mask, "bool", "the mask")
    check_axis(mask.rank - 1, mask.rank)
    return mask.with_shape((*mask.shape[:-1], size)).with_dtype(I64)


def _true_places(mask: Array, *, size: int) -> Array:
    n = mask.shape[-1]
    found = np.full((*mask.shape[:-1], size), n, np.int64)
    for row in np.ndindex(*mask.shape[:-1]):
        places = np.flatnonzero(mask[row])[:size]
        found[(*row, slice(len(places)))] = places
    return found


opaque(
    "true_places",
    _infer_places,
    _true_places,
    kinds="b",
    batch=leading(),
    attrs=("size",),
    examples=tuple(
        Example((Arg(shape, "bool"),), {"size": size})
        for shape, size in (((9,), 4), ((3, 70), 80), ((2, 0), 3), ((5,), 0))
    ),
    doc="where a row is true, the first `size` places, filled up with its length",
)


def compose_places(b: Builder, mask: Value, *, size: int) -> Value:
    """`true_places` by other ops: the place at which k + 1 have been counted. Rows follow each other in
    one table, in which each starts beyond all counts of the one before."""
    *lead, n = mask.shape
    shape = (math.prod(lead), size)
    if n == 0 or 0 in shape:
        return b.full((*lead, size), n, I64)

    def offset(columns: int, step: int) -> Value:
        """`step` times the number of the row."""
        whole = (shape[0], columns)
        return b.mul(b.iota(shape=whole, dtype=I64, axis=0), b.full(whole, step, I64))

    counts = b.cumsum(b.convert(mask, dtype=I64), axis=len(lead), reverse=False)
    table = b.add(b.reshape(counts, shape=(shape[0], n)), offset(n, n + 1))
    wanted = b.add(b.iota(shape=shape, dtype=I64, axis=1), b.full(shape, 1, I64))
    wanted = b.add(b.minimum(wanted, b.full(shape, n + 1, I64)), offset(size, n + 1))
    found = search(b, b.reshape(table, shape=(shape[0] * n,)), wanted)
    return b.reshape(b.sub(found, offset(size, n)), shape=(*lead, size))


# Searches: compositions, by halving what is left, the same number of steps for all keys.


def search(b: Builder, table: Value, keys: Value, *, right: bool = False) -> Value:
    """How many elements of the sorted 1-d `table` precede each key (`right`: do not follow it)."""
    (n,) = table.shape
    small = I32 if n < 1 << 31 else I64
    low = b.full(keys.shape, 0, small)
    if n == 0:
        return b.convert(low, dtype=I64)

    def before(place: Value) -> Value:
        found = b.gather(table, b.convert(place, dtype=I64), axes=(0,), mode="clip")
        return b.invert(_precedes(b, keys, found)) if right else _precedes(b, found, keys)

    def moved(length: int, place: Value) -> Value:
        chosen = b.select(before(place), b.full_like(low, length), b.full_like(low, 0))
        return b.add(low, chosen)

    while n > 1:
        half = n // 2
        low = moved(half, b.add(low, b.full_like(low, half - 1)))
        n -= half
    return b.convert(moved(1, low), dtype=I64)


def _precedes(b: Builder, x: Value, y: Value) -> Value:
    """x < y in sorting order: NaN is last."""
    if not is_float(x.dtype):
        return b.lt(x, y)
    return b.bitwise_and(b.invert(b.ge(x, y)), b.eq(x, x))
