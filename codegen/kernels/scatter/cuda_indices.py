"""What the lowerings of scatters share: slots as numbers, and stages that write where they are told."""

from __future__ import annotations

from ....ir.graph import Op
from ...loop_ir.index import Index, Var, delinearise
from ...loop_ir.kernel import Access, Array, Stage
from ...lowering.pointwise import IndexTuple, Pointwise, checked
from ...scalar import Expr


def slot_of(p: Pointwise, op: Op, at: IndexTuple) -> Index:
    """The number of the slot that the update at a position of the index arrays goes to."""
    base, _, *where = op.operands
    slot = Index()
    for k, (index, axis) in enumerate(zip(where, op.attrs["axes"], strict=True)):
        slot = slot * base.shape[axis] + checked(p, op, k, p.at(index, at), None)
    return slot


def element(op: Op, slot: Index, rest: IndexTuple) -> IndexTuple:
    """The position in the base of a slot, and of an element of the row that is there."""
    base, axes = op.operands[0], op.attrs["axes"]
    along = dict(zip(axes, delinearise(slot, tuple(base.shape[a] for a in axes)), strict=True))
    others = iter(rest)
    return tuple(along[d] if d in along else next(others) for d in range(len(base.shape)))


def rest_of(op: Op) -> tuple[int, ...]:
    """The shape of the row that is at a slot."""
    base, axes = op.operands[0], op.attrs["axes"]
    return tuple(n for d, n in enumerate(base.shape) if d not in axes)


def load_inside(array: Array, index: IndexTuple, *of: Expr, mask: Expr | None = None) -> Expr:
    """A load in the body of a loop; its index is made from `of`, which have the loop's variables."""
    free = frozenset[object]().union(
        *(e.free for e in (*of, *([mask] if mask is not None else [])))
    )
    args = () if mask is None else (mask,)
    return Expr("load", args, array.dtype, Access(array, index), free)


def writes(
    op: Op,
    array: Array,
    dims: tuple[Var, ...],
    value: Expr,
    at: IndexTuple,
    combine: str = "set",
    where: Expr | None = None,
) -> Stage:
    """A stage that updates the array at positions that it computes, all of them at once."""
    stage = Stage(array, dims, value, "scatter", combine, -1, at, ops=["scatter"], loc=op.loc)
    stage.whole, stage.ordered, stage.where = False, True, where
    return stage
