"""Lowering of scatters for a GPU: updates are sorted by place, and every place takes its own in order.

    before: for k: x[i[k]] += u[k]
    after:  keys = sort(i[k] << 32 | k);  for all p: for keys from the first of place p on: x[p] += u[k]

So the result is that of one update after the other, whatever the threads do, and for every dtype.
"""

from __future__ import annotations

import math

import numpy as np

from ...ir.graph import Op
from ...ir.types import I64
from ..folds import COMBINE
from ..index import Index, Var, contiguous_strides, delinearise, linear, of_var
from ..kernel import Access, Array, Stage
from ..lower import Lowering, indices, variables
from ..lower_updates import lower_scatter, updatable
from ..math import EXPANSIONS
from ..one_hot import one_hot_axis
from ..pointwise import Pointwise, as_index, checked, index_value
from ..scalar import DType, Expr, binary, compare, const, convert, eq, loop, select
from ..sort_blocks import count_words
from ..steps import Sort

FEW = 64  # updates that one thread does, one after the other
U32, U64 = np.dtype(np.uint32), np.dtype(np.uint64)


def scatter(low: Lowering, op: Op) -> None:
    base, update, *where = op.operands
    inlined = base not in low.arrays and low.cost.get(base, 1) == 0 and one_hot_axis(op) is not None
    few = update.tensor.size <= FEW or 0 in base.shape
    count = math.prod(where[0].shape)
    if few or inlined or count == 1 or max(count, base.tensor.size) >= 1 << 32:
        lower_scatter(low, op)
        return
    source = low.materialise(update)
    ordered = _sorted_places(low, op)
    before = low.arrays.get(base)
    array = updatable(low, op, base)
    dims = variables(base.shape)
    p = low.point()
    old = p.load(array, indices(dims), None) if array is before else p.at(base, indices(dims))
    value = _combined(low, op, p, dims, old, source, ordered)
    stage = Stage(array, dims, value, ops=["scatter"], loc=op.loc, cost=64)
    stage.ordered = array is before
    low.emit(p, stage)
    low.arrays[op.result] = array


def _sorted_places(low: Lowering, op: Op) -> Array:
    """The updates' numbers below the places that they go to, in the order of both."""
    base, _, *where = op.operands
    batch = where[0].shape
    count = math.prod(batch)
    dims = variables(batch)
    p = low.point()
    place = Index()
    for index, axis in zip(where, op.attrs["axes"], strict=True):
        size = base.shape[axis]
        at = checked(p, op, p.at(index, indices(dims)), size, op.attrs["mode"], None)
        place = place * size + at
    number = linear(indices(dims), contiguous_strides(batch))
    key = binary("shl", convert(index_value(place), U64), 32) | convert(index_value(number), U64)
    keys, ordered, scratch = (Array((count,), U64, name=n) for n in ("keys", "sorted", "scratch"))
    counts = Array((count_words(count),), U32, name="counts")
    low.emit(p, Stage(keys, dims, key, index=(number,), ops=["scatter"], loc=op.loc))
    low.items.append(Sort(keys, ordered, scratch, counts, "value", 64, op.loc))
    return ordered


def _combined(
    low: Lowering,
    op: Op,
    p: Pointwise,
    dims: tuple[Var, ...],
    old: Expr,
    source: Array,
    ordered: Array,
) -> Expr:
    """An element of the base after all updates of its place."""
    base, _, *where = op.operands
    axes, count = op.attrs["axes"], ordered.size
    batch = where[0].shape
    place = Index()
    for axis in axes:
        place = place * base.shape[axis] + of_var(dims[axis])
    rest = [of_var(v) for d, v in enumerate(dims) if d not in axes]
    p.reads += [Access(ordered, (Index(),)), Access(source, (Index(),) * len(source.shape))]
    first = binary("shl", convert(index_value(place), U64), 32)
    own = convert(index_value(place), U64)

    def key_at(position: Expr) -> Expr:
        inside = binary("min", position, count - 1)
        return _load(ordered, (as_index(inside, 0, count - 1),), inside.free)

    def halve(lo: Expr, hi: Expr) -> list[Expr]:
        middle = binary("lshr", lo + hi, 1)
        less = compare("lt", key_at(middle), first)
        return [select(less, middle + 1, lo), select(less, hi, middle)]

    zero, end = const(0, I64), const(count, I64)
    start, _ = loop([zero, end], lambda lo, hi: compare("lt", lo, hi), halve)
    combine = op.attrs["combine"]

    def here(k: Expr, total: Expr) -> Expr:
        return compare("lt", k, count) & eq(binary("lshr", key_at(k), 32), own)

    def take(k: Expr, total: Expr) -> list[Expr]:
        number = convert(binary("and", key_at(k), 0xFFFFFFFF), I64)
        at = (*delinearise(as_index(number, 0, count - 1), batch), *rest)
        new = _load(source, at, number.free)
        if combine != "set":
            new = EXPANSIONS[COMBINE[combine]](total, new)
        return [k + 1, new]

    return loop([start, old], here, take)[1]


def _load(array: Array, index: tuple[Index, ...], free: frozenset[object]) -> Expr:
    """A load inside of a loop: it depends on the loop's variables through its index."""
    dtype: DType = array.dtype
    return Expr("load", (), dtype, Access(array, index), free)
