"""Lowering of ops that write part of an array, or write it in pieces: concat, updates, scatter.

An update happens in place when nothing can read the old contents any more; otherwise what it does not
overwrite is copied first. Which of the two is decided here, once, from the uses of the old value.
"""

from __future__ import annotations

from ....ir.graph import Op, Value
from ....ir.ops.folds.reductions import identity
from ...limits import limits
from ...loop_ir.index import Var, of_var
from ...loop_ir.kernel import Array, Stage
from ...lowering.lower import Lowering, indices, lowering, variables
from ...lowering.one_hot import one_hot_axis
from ...lowering.pointwise import IndexTuple, gathered, window_starts
from ...math import EXPANSIONS
from ...math.combiners import COMBINE
from ...scalar import const
from ...schedule.in_place import report_copy, updatable
from ...schedule.regions import around

MOST_TABLES = 16
FOLDS = {"add": "sum", "multiply": "prod", "min": "min", "max": "max"}


@lowering("concat")
def _concat(low: Lowering, op: Op) -> None:
    array, whole, position = low.destination(op.result)
    axis, start = op.attrs["axis"], 0
    for operand in op.operands:
        dims = variables(operand.shape)
        p = low.point()
        expr = p.at(operand, indices(dims))
        at = dict(zip(whole, indices(dims), strict=True))
        at[whole[axis]] = at[whole[axis]] + start
        index = tuple(i.substitute(at) for i in position)
        low.emit(p, Stage(array, dims, expr, index=index, ops=["concat"], loc=op.loc, whole=False))
        start += operand.shape[axis]


@lowering("update_slice")
def _update_slice(low: Lowering, op: Op) -> None:
    base, update = op.operands
    start, step = op.attrs["start"], op.attrs["step"]
    before = low.arrays.get(base)
    array = updatable(low, op)
    in_place = array is before
    if in_place:
        low.overwrite(base)
    elif before is not None and _has_the_rest(low, op, before, array):
        low.context.filled.add(array)
        low.borrowed.add(before)  # it will be asked for what the next iteration leaves alone
    else:
        report_copy(low, op, base, update.tensor.nbytes)
        if all(s == 1 for s in step):
            for lo, extents in around(base.shape, start, update.shape):
                _copy_box(low, op, base, array, lo, extents)
        else:
            _copy_box(low, op, base, array, (0,) * len(base.shape), base.shape)
    dims = variables(update.shape)
    p = low.point()
    expr = p.at(update, indices(dims))
    at = tuple(i * s + a for i, s, a in zip(indices(dims), step, start, strict=True))
    stage = Stage(array, dims, expr, index=at, ops=["update_slice"], loc=op.loc, whole=False)
    stage.ordered = in_place or any(s != 1 for s in step)
    low.emit(p, stage)
    low.arrays[op.result] = array


def _has_the_rest(low: Lowering, op: Op, before: Array, array: Array) -> bool:
    """Whether `array` holds what the update leaves alone: it is the other buffer of a carry of which
    every iteration writes the same part and nothing else, if both buffers start with the initial value.
    Arguments that may be overwritten also could stay, but nobody fills the outputs beside them."""
    return op.operands[0].op is None and any(
        value is op.result and target is array and stays is before
        for value, target, stays in zip(low.graph.outputs, low.targets, low.stay, strict=True)
        if stays is not None and stays.kind == "slot"
    )


def _copy_box(
    low: Lowering,
    op: Op,
    source: Value,
    array: Array,
    lo: tuple[int, ...],
    extents: tuple[int, ...],
) -> None:
    dims = variables(extents)
    at = tuple(i + a for i, a in zip(indices(dims), lo, strict=True))
    p = low.point()
    expr = p.at(source, at)
    low.emit(p, Stage(array, dims, expr, index=at, ops=["copy"], loc=op.loc, whole=False))


@lowering("dynamic_update_slice")
def _dynamic_update_slice(low: Lowering, op: Op) -> None:
    base, update, *starts = op.operands
    array = prepare_update(low, op)
    dims = variables(update.shape)
    p = low.point()
    expr = p.at(update, indices(dims))
    corner = window_starts(p, tuple(starts), base.shape, update.shape)
    at = tuple(i + s for i, s in zip(indices(dims), corner, strict=True))
    stage = Stage(
        array, dims, expr, index=at, ops=["dynamic_update_slice"], loc=op.loc, whole=False
    )
    stage.ordered = True
    low.emit(p, stage)
    low.arrays[op.result] = array


@lowering("scatter")
def lower_scatter(low: Lowering, op: Op) -> None:
    """A scatter as a loop over updates, in order; or by tables of its own for each thread."""
    base, update, *where = op.operands
    if 0 in (base.tensor.size, update.tensor.size):
        low.check_indices(op)
        low.arrays[op.result] = low.array_for(op.result)
        _copy_box(low, op, base, low.arrays[op.result], (0,) * len(base.shape), base.shape)
        return
    if base not in low.arrays and low.cost.get(base, 1) == 0 and one_hot_axis(op) is not None:
        low.inline(op, work=1)  # base is nowhere yet: its elements are as quickly made as copied
        return
    tables = _tables(op)
    if tables:
        _scatter_shared(low, op, tables)
        return
    array = prepare_update(low, op)
    dims = variables(update.shape)
    _update(low, op, array, dims, indices(dims))
    low.arrays[op.result] = array


def _update(
    low: Lowering,
    op: Op,
    array: Array,
    dims: tuple[Var, ...],
    where: IndexTuple,
    table: Var | None = None,
) -> None:
    """Write the updates at `where`, for all `dims`, into `array`; or into its table number `table`."""
    base, update, *index = op.operands
    p = low.point()
    expr = p.at(update, where)
    at = gathered(p, op, base, index, where, None)
    rank = len(index[0].shape)
    stage = Stage(array, dims, expr, "update", op.attrs["combine"], rank, at, ops=["scatter"])
    stage.loc, stage.whole, stage.ordered = op.loc, False, True
    if table is not None:
        stage.index = (of_var(table), *at)
        stage.outer, stage.shared = rank + 1, 1
    low.emit(p, stage)


def _tables(op: Op) -> int:
    """How many tables of their own threads should update; 0: one after the other, in place.

    The shapes alone decide, so results do not depend on the threads. The tables are worth it where
    there are many more updates than elements, and their order does not matter but for rounding.
    """
    base, update, *index = op.operands
    if (
        op.attrs["combine"] == "set"
        or update.tensor.size < limits().shared_updates
        or not index[0].shape
    ):
        return 0
    size = update.tensor.size
    most = min(
        MOST_TABLES,
        max(size // limits().update_part, 2),
        size // (4 * base.tensor.size),
        index[0].shape[0],
    )
    return most if most > 1 else 0


def _scatter_shared(low: Lowering, op: Op, tables: int) -> None:
    """The updates in parts, each into a table of its own; then the tables into the result.

    before: x[i[k]] += u[k] for all k     after: t[c, i[k]] += u[k] for k in part c;  x + sum of t
    """
    base, update, *_ = op.operands
    dtype = base.dtype
    fold = FOLDS[op.attrs["combine"]]
    neutral = const(identity(fold, dtype), dtype)
    partial = Array((tables, *base.shape), dtype, name="tables")
    low.emit(low.point(), Stage(partial, variables(partial.shape), neutral, ops=["scatter"]))
    length = update.shape[0] // tables
    c, r = Var("c", tables), Var("r", length)
    rest = variables(update.shape[1:])
    whole = of_var(c) * length + of_var(r)
    _update(low, op, partial, (c, r, *rest), (whole, *indices(rest)), table=c)
    total = Array(base.shape, dtype, name="total")
    dims = variables(base.shape)
    p = low.point()
    expr = p.load(partial, (of_var(c), *indices(dims)), None)
    low.emit(p, Stage(total, (*dims, c), expr, "reduce", fold, len(dims), ops=[fold], loc=op.loc))
    array = low.array_for(op.result)
    p = low.point()
    old, new = p.at(base, indices(dims)), p.load(total, indices(dims), None)
    low.emit(p, Stage(array, dims, EXPANSIONS[COMBINE[op.attrs["combine"]]](old, new), loc=op.loc))
    left = update.shape[0] - tables * length
    if left:
        r = Var("r", left)
        _update(low, op, array, (r, *rest), (of_var(r) + tables * length, *indices(rest)))
    low.arrays[op.result] = array


def prepare_update(low: Lowering, op: Op) -> Array:
    """The array that an update writes, which has the elements of its base."""
    base = op.operands[0]
    before = low.arrays.get(base)
    array = updatable(low, op)
    if array is before:
        low.overwrite(base)
    else:
        report_copy(low, op, base)
        _copy_box(low, op, base, array, (0,) * len(base.shape), base.shape)
    return array
