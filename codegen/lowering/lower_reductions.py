"""Lowering of reductions and scans. Those with few results and many elements go by `lower_chunks`."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

from ...ir.cost import MOST_INLINED
from ...ir.graph import Op, Value
from ...ir.ops.folds.reductions import identity
from ..loop_ir.index import Index, Var, of_var
from ..loop_ir.kernel import Access, Array, Stage
from ..math.combiners import FOLDS
from ..scalar import const
from ..sizes import has_size
from .lower import Lowering, indices, lowering, variables
from .lower_chunks import reduce_by_chunks, reduce_to, scan_by_chunks, scan_stage, search_by_chunks

SCANS = {"cumsum": "sum", "cumprod": "prod", "cummax": "max", "cummin": "min"}
ALIGN_BYTES = 1 << 17  # arrays that do not stay in the nearer caches
LONG = 64  # a loop that is worth some preparation
SHORT = 8  # a loop that is written out, or run beside a longer one


@lowering(*FOLDS, "argmax", "argmin")
def _reduction(low: Lowering, op: Op) -> None:
    if _is_short(low, op):
        low.inline(op)
        return
    with _aligned(low, op.operands[0]):
        _reduce_aligned(low, op)


def _many(low: Lowering, elements: int) -> bool:
    """Enough for several chunks: elements of one result, or of all that a vector covers."""
    return elements >= 4 * low.context.chunk


def _is_short(low: Lowering, op: Op) -> bool:
    """Whether a reduction is written out where it is used: few elements of what has no memory itself.

    In `((p[:, None] - p) ** 2).sum(-1)` of points in space the sum of three squares is one of the
    operations on a pair of points, not a loop.
    """
    source = op.operands[0]
    if op.name not in FOLDS or source in low.arrays or not low.cost.get(source):
        return False
    n = math.prod(source.shape[d] for d in op.attrs["axes"])
    return 0 < n <= SHORT and n * low.inlined[source] <= MOST_INLINED


@contextmanager
def _aligned(low: Lowering, source: Value) -> Iterator[None]:
    """Copies of large arrays whose fastest axis is not that of the others that `source` is made of.

    In x * x.T one of the two would be read across its rows, a line of cache for each element. A copy in
    the order of the other is a kernel of its own, which goes by squares (see `cpu.transposes`).
    """
    before = dict(low.arrays)
    dims = variables(source.shape)
    p = low.point()
    p.at(source, indices(dims))
    fastest: dict[Var, list[Access]] = {}
    for access in p.reads:
        strides = access.flat.strides(dims) or ()
        along = [v for v, s in zip(dims, strides, strict=False) if v.extent > 1 and abs(s) == 1]
        if access.array.nbytes >= ALIGN_BYTES and along:
            fastest.setdefault(along[-1], []).append(access)
    if len(fastest) > 1:
        fast = max(fastest, key=lambda v: (len(fastest[v]), dims.index(v)))
        values = {array: value for value, array in before.items()}
        straight = {a.array for a in fastest[fast]}
        for access in (a for v, accesses in fastest.items() if v is not fast for a in accesses):
            value = values.get(access.array)
            if value is not None and access.array in straight:  # it is read both ways
                for turned in _transposes(low, source, value):
                    low.materialise(turned)
                continue
            here = [d for d, i in enumerate(access.index) if i.coeff(fast)]
            if value is not None and len(here) == 1 and low.arrays[value] is access.array:
                low.arrays[value] = low.turned(access.array, here[0])
    yield
    for value, array in before.items():
        low.arrays[value] = array


def _transposes(low: Lowering, source: Value, of: Value) -> list[Value]:
    """The transposes of `of` that are inlined in `source`."""
    values: list[Value] = []
    pending, seen = [source], {source}
    while pending:
        value = pending.pop()
        if value in low.arrays or value.op is None:
            continue
        if value.op.name == "transpose" and value.op.operands[0] is of:
            values.append(value)
        new = [v for v in value.op.operands if v not in seen]
        pending += new
        seen.update(new)
    return values


def _reduce_aligned(low: Lowering, op: Op) -> None:
    source = op.operands[0]
    axes = sorted(op.attrs["axes"] if "axes" in op.attrs else (op.attrs["axis"],))
    outer_dims = [d for d in range(len(source.shape)) if d not in axes]
    array = low.array_for(op.result)
    last = len(source.shape) - 1
    n = math.prod(source.shape[d] for d in axes)
    rows = math.prod(source.shape[d] for d in outer_dims)
    if n == 0:
        dims = variables(op.result.shape)
        empty = const(identity(op.name, op.result.dtype), op.result.dtype)
        low.emit(low.point(), Stage(array, dims, empty, ops=[op.name], loc=op.loc))
    elif (
        rows * 8 < n
        and _many(low, n if last in axes else n * rows)
        and not has_size([source.shape[d] for d in axes])
    ):
        if op.name.startswith("arg"):
            search_by_chunks(low, op, outer_dims, axes[0], array)
        else:
            reduce_by_chunks(low, op, outer_dims, axes, array)
    elif n >= LONG and _has_few_columns(low, op, outer_dims):
        for column in range(source.shape[outer_dims[-1]]):
            _reduce_column(low, op, outer_dims, axes, array, column)
    else:
        outer = [Var(f"i{d}", source.shape[d]) for d in outer_dims]
        inner = [Var(f"r{d}", source.shape[d]) for d in axes]
        by_axis = dict(zip([*outer_dims, *axes], [*outer, *inner], strict=True))
        p = low.point()
        expr = p.at(source, tuple(of_var(by_axis[d]) for d in range(len(source.shape))))
        reduce_to(low, op, p, array, (*outer, *inner), len(outer), expr)
    low.arrays[op.result] = array


def _has_few_columns(low: Lowering, op: Op, outer_dims: list[int]) -> bool:
    """Whether the reduced values are computed on the way, and the last dim of the result is short."""
    source = op.operands[0]
    if not outer_dims or op.name not in FOLDS or source in low.arrays:
        return False
    columns = source.shape[outer_dims[-1]]
    rows = math.prod(source.shape[d] for d in outer_dims[:-1])
    return 1 < columns <= SHORT and rows >= LONG and low.cost.get(source, 0) > 0


def _reduce_column(
    low: Lowering, op: Op, outer_dims: list[int], axes: list[int], array: Array, column: int
) -> None:
    """One of few columns of the result as a reduction of its own, whose loops run along the axes.

    What the columns have in common is computed once, since fusion puts them into one nest.
    """
    source = op.operands[0]
    outer = [Var(f"i{d}", source.shape[d]) for d in outer_dims[:-1]]
    inner = [Var(f"r{d}", source.shape[d]) for d in axes]
    at = dict(zip([*outer_dims[:-1], *axes], map(of_var, [*outer, *inner]), strict=True))
    at[outer_dims[-1]] = Index(column)
    p = low.point()
    expr = p.at(source, tuple(at[d] for d in range(len(source.shape))))
    dims = (*outer, *inner)
    position = (*map(of_var, outer), Index(column))
    stage = Stage(
        array, dims, expr, "reduce", op.name, len(outer), position, ops=[op.name], loc=op.loc
    )
    stage.whole = False
    low.emit(p, stage)


@lowering(*SCANS)
def _scan(low: Lowering, op: Op) -> None:
    """A running sum (product, maximum, minimum) along one axis, from either end."""
    source, axis = op.operands[0], op.attrs["axis"]
    n = source.shape[axis]
    long = n >= 8 * low.context.scan_chunk and not has_size((n,))
    if long and source.tensor.size < low.context.scan_rows * n:
        length, head = low.context.scan_chunk, len(source.shape) - 1
        low.arrays[op.result] = scan_by_chunks(low, op, SCANS[op.name], length, head)
        return
    dims = variables(source.shape)
    where = list(indices(dims))
    if op.attrs["reverse"]:
        where[axis] = -where[axis] + (source.shape[axis] - 1)
    p = low.point()
    expr = p.at(source, tuple(where))
    array = low.array_for(op.result)
    order = (*(v for d, v in enumerate(dims) if d != axis), dims[axis])
    low.emit(p, scan_stage(op, array, order, expr, tuple(where), fold=SCANS[op.name]))
    low.arrays[op.result] = array
