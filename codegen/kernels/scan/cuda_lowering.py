"""Lowering of scans for a GPU: rows and columns as they lie, cut where they are few and long.

before: y = cumsum(x)
after:  s[c] = sum of chunk c;  t = cumsum(s);  y in chunk c starts from t[c - 1]

A scan from the end is no scan of flipped elements here but a stage that goes backwards, so that its
accesses are as wide as those of any other.
"""

from __future__ import annotations

import math

from ....ir.graph import Op
from ...cuda.scan_plan import chunk_of
from ...loop_ir.index import Var, of_var
from ...loop_ir.kernel import Array, Chunks, Stage
from ...lowering.lower import Lowering, indices, variables
from ...lowering.lower_chunks import FOLDS
from ...lowering.lower_reductions import SCANS
from ...lowering.pointwise import IndexTuple, index_value
from ...math import EXPANSIONS
from ...scalar import Expr, binary, compare, select


def scan(low: Lowering, op: Op) -> None:
    """Running folds along an axis, in the operand's shape; few long rows are cut into chunks."""
    source, axis = op.operands[0], op.attrs["axis"]
    shape = source.shape
    rows = math.prod(n for d, n in enumerate(shape) if d != axis)
    along = math.prod(shape[axis + 1 :]) == 1
    length = chunk_of(shape[axis], rows, along)
    array = low.array_for(op.result)
    if length:
        _by_chunks(low, op, array, length, along)
    else:
        dims = variables(shape)
        order = (*(v for d, v in enumerate(dims) if d != axis), dims[axis])
        p = low.point()
        value = p.at(source, indices(dims))
        low.emit(p, _stage(op, array, order, value, indices(dims)))
    low.arrays[op.result] = array


def _stage(op: Op, array: Array, dims: tuple[Var, ...], value: Expr, index: IndexTuple) -> Stage:
    last, reverse = len(dims) - 1, op.attrs["reverse"]
    fold, ops = SCANS[op.name], [op.name]
    return Stage(
        array, dims, value, "scan", fold, last, index, ops=ops, loc=op.loc, reverse=reverse
    )


def _by_chunks(low: Lowering, op: Op, array: Array, length: int, along: bool) -> None:
    source, axis, reverse = op.operands[0], op.attrs["axis"], op.attrs["reverse"]
    total, dtype, fold = source.shape[axis], op.result.dtype, SCANS[op.name]
    others = [d for d in range(len(source.shape)) if d != axis]
    head = len(others) if along else 0  # where the loop over chunks stands
    count = -(-total // length)

    def loops() -> tuple[tuple[Var, ...], IndexTuple]:
        """The loops over rows, chunks and a chunk, and where they are in the source."""
        rows = {d: Var(f"i{d}", source.shape[d]) for d in others}
        c, r = Var("c", count), Var("r", length)
        at = {d: of_var(v) for d, v in rows.items()} | {axis: of_var(c) * length + of_var(r)}
        order = list(rows.values())
        order.insert(head, c)
        return (*order, r), tuple(at[d] for d in range(len(source.shape)))

    chunks = Chunks(head, length, total) if total % length else None
    dims, where = loops()
    shape = tuple(v.extent for v in dims[:-1])
    sums, before = Array(shape, dtype, name="sums"), Array(shape, dtype, name="before")
    p = low.point()
    last = len(dims) - 1
    stage = Stage(sums, dims, p.at(source, where), "reduce", fold, last, loc=op.loc, ops=[fold])
    stage.chunks = chunks
    low.emit(p, stage)
    own = variables(shape)
    p = low.point()
    order = (*(v for d, v in enumerate(own) if d != head), own[head])
    low.emit(p, _stage(op, before, order, p.load(sums, indices(own), None), indices(own)))
    dims, where = loops()
    p = low.point()
    x = p.at(source, where)
    at = list(indices(dims[:-1]))
    c, r = index_value(at[head]), index_value(of_var(dims[-1]))
    at[head] += 1 if reverse else -1
    follows = compare("lt", c, count - 1) if reverse else compare("ge", c, 1)
    first = compare("eq", r, length - 1 if reverse else 0)
    start = EXPANSIONS[FOLDS[fold]](p.load(before, tuple(at), follows), x)
    stage = _stage(op, array, dims, select(binary("and", first, follows), start, x), where)
    stage.chunks = chunks
    low.emit(p, stage)
