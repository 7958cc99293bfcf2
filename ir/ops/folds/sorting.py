"""Sorting along one axis, ascending, NaN last, always stably (`stable` records what was asked)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...batching.transform import leading, shift
from ...build import Builder, Grads, Wanted
from ...cost import Cost
from ...graph import Op, Value
from ...types import I32, I64, TensorType, is_complex, is_float
from ..families import ANY, Arg, Array, Example, check_axis, check_dtype, check_kind, opaque
from ..movement.indexing import take_along

U8 = np.dtype(np.uint8)


def _infer_sort(x: TensorType, *, axis: int, stable: bool) -> TensorType:
    check_kind(x, ANY)
    check_axis(axis, x.rank)
    return x


def _infer_argsort(x: TensorType, *, axis: int, stable: bool) -> TensorType:
    return _infer_sort(x, axis=axis, stable=stable).with_dtype(I64)


def _jvp_sort(b: Builder, op: Op, tangents: Sequence[Value]) -> list[Value | None]:
    (t,) = tangents
    if t.tensor.size == 0:
        return [t]
    order = b.op("argsort", op.operands[0], **op.attrs)
    return [take_along(b, t, order, op.attrs["axis"])]


def _vjp_sort(b: Builder, op: Op, cotangents: Sequence[Value], wanted: Wanted) -> Grads:
    """The sorted positions go back by the inverse permutation, which sorts the permutation."""
    (ct,) = cotangents
    if ct.tensor.size == 0:
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
    cost=Cost.DEAR,
    batch=leading(axis=shift),
    attrs=("axis", "stable"),
    examples=_EXAMPLES,
)
opaque(
    "argsort",
    _infer_argsort,
    lambda x, *, axis, stable: np.argsort(x, axis, kind="stable"),
    cost=Cost.DEAR,
    batch=leading(axis=shift),
    attrs=("axis", "stable"),
    examples=_EXAMPLES,
)


# Where rows of truths are true.


def _infer_true_indices(mask: TensorType, *, size: int, classes: int) -> TensorType:
    check_dtype(mask, "bool" if classes == 1 else "u8", "the mask")
    check_axis(mask.rank - 1, mask.rank)
    return mask.with_shape((*mask.shape[:-1], size)).with_dtype(I64)


def _true_indices(mask: Array, *, size: int, classes: int) -> Array:
    n = mask.shape[-1]
    result = np.full((*mask.shape[:-1], size), n, np.int64)
    for row in np.ndindex(*mask.shape[:-1]):
        each = [np.flatnonzero(mask[row] == c) for c in range(1, classes + 1)]
        indices = np.concatenate(each)[:size]
        result[(*row, slice(len(indices)))] = indices
    return result


opaque(
    "true_indices",
    _infer_true_indices,
    _true_indices,
    kinds="b",
    cost=Cost.DEAR,
    batch=leading(),
    attrs=("size", "classes"),
    examples=tuple(
        Example((Arg(shape, dtype, 4),), {"size": size, "classes": classes})
        for dtype, classes in (("bool", 1), ("u8", 3))
        for shape, size in (((9,), 4), ((3, 70), 80), ((2, 0), 3), ((5,), 0))
    ),
    doc="where a row is 1 (true), then where it is 2, ... `classes`: the first `size` indices, filled "
    "up with the length of the row",
)


def compose_true_indices(b: Builder, mask: Value, *, size: int, classes: int) -> Value:
    """`true_indices` by other ops: sorted with what is in no class behind the others."""
    n, axis = mask.shape[-1], len(mask.shape) - 1
    shape = (*mask.shape[:-1], size)
    if 0 in mask.shape or size == 0:
        return b.full(shape, n, I64)
    codes = b.convert(mask, dtype=U8)
    inside = b.convert(b.le(codes, b.full_like(codes, classes)), dtype=U8)
    inside = b.mul(inside, b.convert(b.ne(codes, b.full_like(codes, 0)), dtype=U8))
    codes = b.select(b.ne(inside, b.full_like(inside, 0)), codes, b.full_like(codes, 255))
    order = b.argsort(codes, axis=axis, stable=True)
    count = b.op("sum", b.convert(inside, dtype=I64), axes=(axis,))
    count = b.broadcast(count, shape=mask.shape, dims=tuple(range(axis)))
    index = b.op("iota", shape=mask.shape, dtype=I64, axis=axis)
    indices = b.select(b.lt(index, count), order, b.full_like(order, n))
    none = (0,) * axis
    if size <= n:
        return b.op("slice", indices, start=(*none, 0), stop=shape, step=(1,) * len(shape))
    rest = b.full((*shape[:-1], size - n), n, I64)
    return b.concat(indices, rest, axis=axis)


# Searches: compositions, the same number of steps for all keys.

FEW = 32  # elements of a table that are compared one by one
SPREAD = 16  # elements spread over a longer one that are


def search(b: Builder, table: Value, keys: Value, *, right: bool = False) -> Value:
    """How many elements of the sorted 1-d `table` precede each key (`right`: do not follow it).

    Elements of a table that all keys are compared with wait for nothing: all of a short table, some of a
    longer one. What is left is halved until the index is found.
    """
    (n,) = table.shape
    small = I32 if n < 1 << 31 else I64

    def before(index: Value) -> Value:
        keys_there = b.gather(table, b.convert(index, dtype=I64), axes=(0,), mode="clip")
        return b.invert(precedes(b, keys, keys_there)) if right else precedes(b, keys_there, keys)

    def number(k: int) -> Value:
        return b.full(keys.shape, k, small)

    step = 1 if n <= FEW else -(-n // SPREAD)
    low = number(0)
    for index in range(step - 1, n, step):
        low = b.add(low, b.convert(before(number(index)), dtype=small))
    if step > 1:
        low = b.minimum(b.mul(low, number(step)), number(n - step + 1))
    left = step - 1  # elements from `low` on that may precede
    while left > 0:
        half = (left + 1) // 2
        goes = before(b.add(low, number(half - 1)))
        low = b.add(low, b.select(goes, number(half), number(0)))
        left -= half
    return b.convert(low, dtype=I64)


def precedes(b: Builder, x: Value, y: Value) -> Value:
    """x < y in sorting order: NaN is last, a complex number with one in either part too."""
    if is_complex(x.dtype):
        (p, q), (r, s) = ((b.op("real", z), b.op("imag", z)) for z in (x, y))
        whole, other = b.eq(q, q), b.ne(s, s)  # whether x has an imaginary part, y has none
        nans = b.bitwise_and(b.ne(p, p), b.ne(r, r))
        tied = b.bitwise_or(b.eq(p, r), nans)
        last = b.bitwise_and(other, whole)
        within = b.bitwise_or(b.lt(q, s), last)
        apart = b.select(
            b.lt(p, r), b.bitwise_or(whole, other), b.select(b.lt(r, p), last, b.ne(r, r))
        )
        return b.select(tied, within, apart)
    if not is_float(x.dtype):
        return b.lt(x, y)
    return b.bitwise_and(b.invert(b.ge(x, y)), b.eq(x, x))
