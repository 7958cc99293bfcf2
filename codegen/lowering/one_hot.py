"""Scatters with one update for each row, as functions of an index: a choice at every element of the row.

    before: x[np.arange(n), index] += u
    after:  result[i, j] = x[i, j] + u[i] where j == index[i], else x[i, j]

So the gradient of choosing one element of each row fuses with the rest of the row. `lower_updates` takes
this form where x is not in memory yet.
"""

from __future__ import annotations

from ...ir.graph import Op, Value
from ..loop_ir.index import ZERO, Index
from ..math import EXPANSIONS
from ..math.combiners import COMBINE
from ..scalar import Expr, compare, select
from .pointwise import RULES, IndexTuple, Pointwise, checked, index_value


def one_hot_axis(op: Op) -> int | None:
    """Which index of a scatter is free, if the others count the rows that it has one update each for."""
    base, _, *indices = op.operands
    free: list[int] = []
    counted: set[int] = set()
    for k, (v, axis) in enumerate(zip(indices, op.attrs["axes"], strict=True)):
        along = _counted_dim(v)
        if along is None or base.shape[axis] != v.shape[along] or along in counted:
            free.append(k)
        else:
            counted.add(along)
    rows = [d for d, n in enumerate(indices[0].shape) if n != 1]
    return free[0] if len(free) == 1 and counted.issuperset(rows) and rows else None


def has_unique_indices(op: Op) -> bool:
    """Whether it is known that no two updates of a scatter go to one element: at any two, an index that
    counts differs, or one that puts a row into order."""
    base, _, *indices = op.operands
    several = {d for d, n in enumerate(indices[0].shape) if n != 1}
    counted: set[int] = set()
    sorting: set[int] = set()
    for v, axis in zip(indices, op.attrs["axes"], strict=True):
        along = _counted_dim(v)
        if along is not None and base.shape[axis] >= v.shape[along]:
            counted.add(along)
        while v.op is not None and v.op.name == "convert" and v.dtype.itemsize >= 4:
            v = v.op.operands[0]
        if v.op is not None and v.op.name == "argsort":
            order = int(v.op.attrs["axis"])
            if base.shape[axis] >= v.shape[order]:
                sorting.add(order)
    return len(several - counted) <= 1 and several <= counted | sorting


def _counted_dim(v: Value) -> int | None:
    """The dim along which an array of integers is 0, 1, 2, ..., whatever the others."""
    op = v.op
    if op is None or op.name not in ("iota", "broadcast", "reshape", "convert"):
        return None
    if op.name == "iota":
        return int(op.attrs["axis"])
    along = _counted_dim(op.operands[0])
    if along is None or op.name == "convert":
        return along if v.dtype.itemsize >= 4 else None
    if op.name == "broadcast":
        return int(op.attrs["dims"][along])
    before = op.operands[0].shape
    if before[along] == op.operands[0].tensor.size == v.tensor.size:
        return next((d for d, n in enumerate(v.shape) if n == v.tensor.size), None)
    return None


def _one_hot(p: Pointwise, op: Op, index: IndexTuple, mask: Expr | None) -> Expr:
    """A scatter that has one update for each row: a choice at every element of the row."""
    base, update, *indices = op.operands
    free = one_hot_axis(op)
    axes = op.attrs["axes"]
    assert free is not None
    batch = len(indices[0].shape)
    rows: list[Index] = [ZERO] * batch
    for k, axis in enumerate(axes):
        along = _counted_dim(indices[k])
        if k != free and along is not None:
            rows[along] = index[axis]
    raw = p.at(indices[free], tuple(rows), mask)
    slot = checked(p, op, free, raw, mask)
    hit = compare("eq", index_value(index[axes[free]]), index_value(slot))
    rest = tuple(i for d, i in enumerate(index) if d not in axes)
    old, new = p.at(base, index, mask), p.at(update, (*rows, *rest), mask)
    if op.attrs["combine"] != "set":
        new = EXPANSIONS[COMBINE[op.attrs["combine"]]](old, new)
    return select(hit, new, old)


RULES["scatter"] = _one_hot
