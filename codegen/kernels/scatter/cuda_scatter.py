"""Lowering of scatters for a GPU: straight where the order of updates does not show, else in an order.

    each slot once, integers, min and max, one constant added     every update at once, by atomics
    set                     the last update of a slot is found first:  last[i[k]] max= k
    floats, few updates     the first update of a slot takes those that follow
    floats, few slots       every slot takes its own from all:  x[p] += sum of u[k] where i[k] == p
    floats                  updates are sorted by slot (`cuda_sorted`)

A slot is what the scattered axes of the base have at one index. Results are the same from run to run.
Where `CudaTarget.deterministic` is off, sums of floats go by atomics too. What is not updated is not
looked at, if the base need not be copied.
"""

from __future__ import annotations

import math

from ....ir.graph import Op
from ....ir.types import I32, I64
from ...loop_ir.index import Index, Var, contiguous_strides, delinearise, linear, of_var
from ...loop_ir.kernel import Access, Array, Chunks, Stage
from ...lowering.lower import Lowering, indices, variables
from ...lowering.lower_chunks import sum_partials
from ...lowering.one_hot import has_unique_indices, one_hot_axis
from ...lowering.pointwise import as_index, gathered, index_value
from ...math import EXPANSIONS
from ...math.combiners import COMBINE
from ...scalar import Expr, binary, compare, const, convert, eq, loop, ne, select
from .cuda_indices import element, load_inside, rest_of, slot_of, writes
from .cuda_sorted import scatter_sorted
from .lower_updates import lower_scatter, prepare_update

FEW = 64  # updates, each of which may look at all others
FEW_SLOTS = 16  # each of which may look at all updates
CHUNK = 1 << 10  # updates that are summed up by themselves, where slots are few
CLEARED = 8  # slots for each update, up to which all of them are cleared rather than those updated


def scatter(low: Lowering, op: Op) -> None:
    """`base` with `update` set at, or combined into, the elements that the index arrays name.

    Which of the module's forms is taken follows from the op, its shapes, and whether sums must be the
    same from run to run.
    """
    base, update, *where = op.operands
    inlined = base not in low.arrays and low.cost.get(base, 1) == 0 and one_hot_axis(op) is not None
    if inlined or 0 in (base.tensor.size, update.tensor.size):
        lower_scatter(low, op)
        return
    count, slots = math.prod(where[0].shape), math.prod(base.shape[a] for a in op.attrs["axes"])
    combine = op.attrs["combine"]
    if has_unique_indices(op):
        _straight(low, op, once=True)
    elif _in_any_order(low, op):
        _straight(low, op)
    elif combine == "set":
        _last_wins(low, op, count, slots)
    elif count <= FEW:
        _first_takes_all(low, op, count, slots)
    elif combine == "add" and slots <= FEW_SLOTS:
        _by_slot(low, op, count, slots)
    else:
        scatter_sorted(low, op, count, slots)


def _in_any_order(low: Lowering, op: Op) -> bool:
    """Whether updates of one slot give the same in any order, or are asked for so."""
    update, combine = op.operands[1], op.attrs["combine"]
    if combine == "set":
        return False
    if update.dtype.kind != "f" or combine in ("min", "max"):
        return True
    if combine == "add":
        value = low.point().at(update, indices(variables(update.shape)))
        return value.op == "const" or not low.context.target.deterministic
    return False


def _straight(low: Lowering, op: Op, once: bool = False) -> None:
    """All updates at once. Where slots get one each, a plain store does."""
    base, update, *where = op.operands
    array = prepare_update(low, op)
    dims = variables(update.shape)
    p = low.point()
    value = p.at(update, indices(dims))
    at = gathered(p, op, base, where, indices(dims), None)
    combine = op.attrs["combine"]
    if once and combine != "set":
        value = EXPANSIONS[COMBINE[combine]](p.load(array, at, None), value)
        combine = "set"
    low.emit(p, writes(op, array, dims, value, at, combine))
    low.arrays[op.result] = array


def _last_wins(low: Lowering, op: Op, count: int, slots: int) -> None:
    """Each slot notes the number of its last update, and takes that one."""
    base, update, *where = op.operands
    array = prepare_update(low, op)
    batch = variables(where[0].shape)
    dtype = I32 if count < 1 << 31 else I64
    last = Array((slots,), dtype, name="last")
    number = linear(indices(batch), contiguous_strides(where[0].shape))
    none = const(-1, dtype)
    p = low.point()
    if slots <= CLEARED * count:
        low.emit(p, Stage(last, variables((slots,)), none, ops=["scatter"], loc=op.loc))
    else:
        low.emit(p, writes(op, last, batch, none, (slot_of(p, op, indices(batch)),)))
    p = low.point()
    here = (slot_of(p, op, indices(batch)),)
    own = convert(index_value(number), dtype)
    low.emit(p, writes(op, last, batch, own, here, "max"))
    dims = (*batch, *variables(rest_of(op)))
    p = low.point()
    here = (slot_of(p, op, indices(batch)),)
    wins = eq(p.load(last, here, None), own)
    at = gathered(p, op, base, where, indices(dims), None)
    value = p.at(update, indices(dims))
    low.emit(p, writes(op, array, dims, value, at, where=wins))
    low.arrays[op.result] = array


def _first_takes_all(low: Lowering, op: Op, count: int, slots: int) -> None:
    """The first update of each slot looks for those that go there too, in order."""
    _, update, *where = op.operands
    source = low.materialise(update)
    array = prepare_update(low, op)
    batch = where[0].shape
    goes = Array((count,), I64, name="slots")
    dims = variables(batch)
    p = low.point()
    slot = index_value(slot_of(p, op, indices(dims)))
    number = linear(indices(dims), contiguous_strides(batch))
    low.emit(p, Stage(goes, dims, slot, index=(number,), ops=["scatter"], loc=op.loc))

    k, rest = Var("k", count), variables(rest_of(op))
    p = low.point()
    p.reads.append(Access(source, (Index(),) * len(source.shape)))
    own, mine = index_value(of_var(k)), p.load(goes, (of_var(k),), None)
    combine = EXPANSIONS[COMBINE[op.attrs["combine"]]]

    def to(j: Expr) -> Expr:
        return load_inside(goes, (as_index(binary("min", j, count - 1), 0, count - 1),), j)

    def take(j: Expr, total: Expr) -> list[Expr]:
        at = delinearise(as_index(j, 0, count - 1), batch)
        new = load_inside(source, (*at, *indices(rest)), j)
        return [j + 1, select(eq(to(j), mine), combine(total, new), total)]

    (first,) = loop(
        [const(0, I64)], lambda j: compare("lt", j, own) & ne(to(j), mine), lambda j: [j + 1]
    )
    at = element(op, as_index(mine, 0, slots - 1), indices(rest))
    old = p.load(array, at, None)
    value = loop([own, old], lambda j, _: compare("lt", j, count), take)[1]
    low.emit(p, writes(op, array, (k, *rest), value, at, where=eq(first, own)))
    low.arrays[op.result] = array


def _by_slot(low: Lowering, op: Op, count: int, slots: int) -> None:
    """Every slot takes its own from among all updates: by chunks of these, then from chunk to chunk."""
    base, update, *where = op.operands
    batch, shape, dtype = where[0].shape, rest_of(op), base.dtype
    length = min(CHUNK, count)
    chunks = -(-count // length)
    c, slot, r, rest = Var("c", chunks), Var("p", slots), Var("r", length), variables(shape)
    partial = Array((chunks, slots, *shape), dtype, name="partial")
    p = low.point()
    at = delinearise(of_var(c) * length + of_var(r), batch)
    hit = eq(index_value(slot_of(p, op, at)), index_value(of_var(slot)))
    value = select(hit, p.at(update, (*at, *indices(rest))), const(0, dtype))
    dims = (c, slot, *rest, r)
    stage = Stage(partial, dims, value, "reduce", "sum", len(dims) - 1, loc=op.loc, ops=["scatter"])
    if count % length:
        stage.chunks = Chunks(0, length, count)
    low.emit(p, stage)
    total = Array((slots, *shape), dtype, name="total")
    sum_partials(low, op, partial, total)
    array = prepare_update(low, op)
    slot = Var("p", slots)
    rest = variables(shape)
    p = low.point()
    to = element(op, of_var(slot), indices(rest))
    value = p.load(array, to, None) + p.load(total, (of_var(slot), *indices(rest)), None)
    low.emit(p, writes(op, array, (slot, *rest), value, to))
    low.arrays[op.result] = array
