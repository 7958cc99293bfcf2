"""Scatters of floats in an order that is always the same: updates are sorted by slot.

    keys = sort(i[k] << bits | k)
    after that the updates of a slot are neighbours, a run, which its first one sums up:
        for k where keys[k] is the first of its slot p: x[p] += sum of u[keys[k] & mask] and the next

Long runs are not summed up by one thread: where `SPAN` neighbours from a multiple of SPAN on are of one
slot, their sum exists already, and so does that of SPAN such sums.
"""

from __future__ import annotations

import numpy as np

from ....ir.graph import Op
from ....ir.ops.folds.reductions import identity
from ....ir.types import I64
from ...loop_ir.index import Index, Var, contiguous_strides, delinearise, linear, of_var
from ...loop_ir.kernel import Access, Array, Stage
from ...loop_ir.steps import Sort
from ...lowering.lower import Lowering, indices, variables
from ...lowering.pointwise import Pointwise, as_index, index_value
from ...math import EXPANSIONS
from ...math.combiners import COMBINE
from ...scalar import Expr, binary, compare, const, convert, eq, loop, ne, select
from .cuda_indices import element, load_inside, rest_of, slot_of, writes
from .lower_updates import FOLDS, prepare_update

SPAN = 64
LEVELS = 2
U32, U64 = np.dtype(np.uint32), np.dtype(np.uint64)


class _Runs:
    """Sorted updates: expressions for what stands at a position of their order."""

    def __init__(self, op: Op, keys: Array, bits: int, slots: int, source: Array) -> None:
        self.op, self.keys, self.bits, self.slots, self.source = op, keys, bits, slots, source
        self.count = keys.size
        self.combine = EXPANSIONS[COMBINE[op.attrs["combine"]]]

    def _key(self, k: Expr) -> Expr:
        inside = binary("min", binary("max", k, 0), self.count - 1)
        return load_inside(self.keys, (as_index(inside, 0, self.count - 1),), k)

    def slot(self, k: Expr) -> Expr:
        """The slot of the update at position k, or at the end that is nearest."""
        return convert(binary("lshr", self._key(k), self.bits), I64)

    def update(self, k: Expr, rest: tuple[Index, ...], mask: Expr | None = None) -> Expr:
        """The element `rest` of the update at position k."""
        number = convert(binary("and", self._key(k), (1 << self.bits) - 1), I64)
        batch = self.op.operands[2].shape
        at = (*delinearise(as_index(number, 0, self.count - 1), batch), *rest)
        return load_inside(self.source, at, k, mask=mask)

    def point(self, low: Lowering, *partial: Array) -> Pointwise:
        """A point whose expressions read the runs."""
        p = low.point()
        for array in (self.keys, self.source, *partial):
            p.reads.append(Access(array, (Index(),) * len(array.shape)))
        return p


def scatter_sorted(low: Lowering, op: Op, count: int, slots: int) -> None:
    """Combine updates with elements of the base, those of one element in the order of their numbers."""
    source = low.materialise(op.operands[1])
    bits = max((count - 1).bit_length(), 1)
    keys = _sorted_keys(low, op, count, slots, bits)
    array = prepare_update(low, op)
    runs = _Runs(op, keys, bits, slots, source)
    sums: list[Array] = []
    while len(sums) < LEVELS and SPAN ** (len(sums) + 1) < count:
        sums.append(_whole_spans(low, runs, sums))
    _take_runs(low, runs, array, sums)
    low.arrays[op.result] = array


def _sorted_keys(low: Lowering, op: Op, count: int, slots: int, bits: int) -> Array:
    """The updates' numbers below the slots that they go to, in the order of both."""
    batch = op.operands[2].shape
    index_bits = max((slots - 1).bit_length(), 1)
    small = index_bits + bits <= 32
    dtype = U32 if small else U64
    dims = variables(batch)
    p = low.point()
    slot = index_value(slot_of(p, op, indices(dims)))
    number = linear(indices(dims), contiguous_strides(batch))
    key = binary("shl", convert(slot, dtype), bits) | convert(index_value(number), dtype)
    keys, ordered = (Array((count,), dtype, name=n) for n in ("keys", "sorted"))
    low.emit(p, Stage(keys, dims, key, index=(number,), ops=["scatter"], loc=op.loc))
    nothing = Array((0,), U32, name="counts")
    step = Sort(keys, ordered, keys, nothing, "value", index_bits + bits, op.loc, settled=bits)
    steps, ordered, _ = low.context.sort(step)
    low.items += steps
    return ordered


def _whole_spans(low: Lowering, runs: _Runs, finer: list[Array]) -> Array:
    """What comes of `SPAN` neighbours, or of as many sums of `finer`, where all are of one slot."""
    op, (last, *_) = runs.op, (*finer[::-1], None)
    span = SPAN ** (len(finer) + 1)
    spans, shape = runs.count // span, rest_of(op)
    dtype = runs.source.dtype
    array = Array((spans, *shape), dtype, name="spans")
    t, rest = Var("t", spans), variables(shape)
    p = runs.point(low, *finer)
    first = index_value(of_var(t) * span)
    together = eq(runs.slot(first), runs.slot(first + (span - 1)))
    start = index_value(of_var(t) * SPAN)
    neutral = const(identity(FOLDS[op.attrs["combine"]], dtype), dtype)

    def take(k: Expr, total: Expr) -> list[Expr]:
        if last is None:
            new = runs.update(k, indices(rest))
        else:
            at = as_index(k, 0, last.shape[0] - 1)
            new = load_inside(last, (at, *indices(rest)), k)
        return [k + 1, runs.combine(total, new)]

    begin = select(together, start, start + SPAN)
    value = loop([begin, neutral], lambda k, _: compare("lt", k, start + SPAN), take)[1]
    low.emit(p, Stage(array, (t, *rest), value, ops=["scatter"], loc=op.loc, cost=64))
    return array


def _take_runs(low: Lowering, runs: _Runs, array: Array, sums: list[Array]) -> None:
    """The first update of each slot takes all that follow."""
    op, count = runs.op, runs.count
    shape = rest_of(op)
    position, rest = Var("k", count), variables(shape)
    p = runs.point(low, *sums)
    own = index_value(of_var(position))
    slot = runs.slot(own)
    first = eq(own, 0) | ne(runs.slot(own - 1), slot)
    at = element(op, as_index(slot, 0, runs.slots - 1), indices(rest))

    def take(k: Expr, total: Expr) -> list[Expr]:
        new, step = runs.update(k, indices(rest)), const(1, I64)
        for level, spans in enumerate(sums, 1):
            span = SPAN**level
            number = binary("lshr", k, (SPAN.bit_length() - 1) * level)
            fits = eq(binary("and", k, span - 1), 0) & compare("le", k, count - span)
            whole = fits & eq(runs.slot(k + (span - 1)), slot)
            where = as_index(binary("min", number, spans.shape[0] - 1), 0, spans.shape[0] - 1)
            sum_of_span = load_inside(spans, (where, *indices(rest)), k, mask=whole)
            new, step = select(whole, sum_of_span, new), select(whole, const(span, I64), step)
        return [k + step, runs.combine(total, new)]

    def here(k: Expr, total: Expr) -> Expr:
        return compare("lt", k, count) & eq(runs.slot(k), slot)

    old = p.load(array, at, None)
    value = loop([own, old], here, take)[1]
    stage = writes(op, array, (position, *rest), value, at, where=first)
    stage.cost = 64
    low.emit(p, stage)
