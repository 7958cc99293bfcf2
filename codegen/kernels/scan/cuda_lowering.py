"""Lowering of scans for a GPU: rows and columns as they lie, cut where they are few and long.

A scan from the end is no scan of flipped elements here but a stage that goes backwards, so that its
accesses are as wide as those of any other.
"""

from __future__ import annotations

import math

from ....ir.graph import Op
from ...cuda.scan_plan import chunk_of
from ...lowering.lower import Lowering, indices, variables
from ...lowering.lower_chunks import scan_by_chunks, scan_stage
from ...lowering.lower_reductions import SCANS


def scan(low: Lowering, op: Op) -> None:
    """Running folds along an axis, in the operand's shape; few long rows are cut into chunks."""
    source, axis = op.operands[0], op.attrs["axis"]
    shape = source.shape
    rows = math.prod(n for d, n in enumerate(shape) if d != axis)
    along = math.prod(shape[axis + 1 :]) == 1
    length = chunk_of(shape[axis], rows, along)
    reverse, fold = op.attrs["reverse"], SCANS[op.name]
    if length:
        head = len(shape) - 1 if along else 0
        low.arrays[op.result] = scan_by_chunks(low, op, fold, length, head, reverse)
        return
    dims, array = variables(shape), low.array_for(op.result)
    order = (*dims[:axis], *dims[axis + 1 :], dims[axis])
    p = low.point()
    at = indices(dims)
    low.emit(p, scan_stage(op, array, order, p.at(source, at), at, fold=fold, backwards=reverse))
    low.arrays[op.result] = array
