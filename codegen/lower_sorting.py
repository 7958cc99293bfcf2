"""Lowering of sort and argsort: rows along the last axis are sorted by a routine of the target."""

from __future__ import annotations

from ..ir.graph import Op
from .kernel import Array, Sort, Stage
from .lower import Lowering, indices, lowering, variables


@lowering("sort", "argsort")
def _sort(low: Lowering, op: Op) -> None:
    source, axis = op.operands[0], op.attrs["axis"]
    order = [d for d in range(len(source.shape)) if d != axis] + [axis]
    shape = tuple(source.shape[d] for d in order)
    dims = variables(shape)
    where = dict(zip(order, indices(dims), strict=True))
    p = low.point()
    rows = Array(shape, source.dtype, name="rows")
    scratch = Array(shape[-1:], op.result.dtype, name="scratch")
    expr = p.at(source, tuple(where[d] for d in range(len(order))))
    low.emit(p, Stage(rows, dims, expr, ops=["copy"], loc=op.loc))
    if axis == len(shape) - 1:
        array = low.array_for(op.result)
        low.items.append(Sort(rows, array, scratch, op.name == "argsort", op.loc))
    else:
        ordered = Array(shape, op.result.dtype, name="sorted")
        low.items.append(Sort(rows, ordered, scratch, op.name == "argsort", op.loc))
        array = low.array_for(op.result)
        p = low.point()
        expr = p.load(ordered, indices(dims), None)
        at = tuple(where[d] for d in range(len(order)))
        low.emit(p, Stage(array, dims, expr, index=at, ops=["copy"], loc=op.loc))
    low.arrays[op.result] = array
