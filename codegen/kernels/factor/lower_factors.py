"""Lowering of systems of equations, inverses, and factors of real matrices.

The matrices are copied into memory of their own, where native code factorises them (`llvm.factors`);
the copy is a stage like any other, so that what computes a matrix writes it there.
"""

from __future__ import annotations

import math

from ....ir.graph import Op
from ....ir.types import I64
from ...loop_ir.index import Index
from ...loop_ir.kernel import Array, Stage
from ...lowering.lower import Lowering, indices, lowering, variables
from ...lowering.pointwise import index_value
from ...scalar import compare, const, ne, select
from ...schedule.tiled import Factorisation
from ..matmul.cpu_tiles import LINE

SPARE_ROWS = 8  # below each matrix: micro-kernels read on there (`cpu_blocks`)
NARROW = 32  # columns up to which rows may lie any power of two apart
LEAF = 8  # columns up to which no micro-kernel is needed


@lowering("solve", "inv", "triangular_solve")
def _solve(low: Lowering, op: Op) -> None:
    x = low.array_for(op.result)
    low.arrays[op.result] = x
    if op.result.tensor.size == 0:
        return
    step = _step(low, op, op.name)
    step.x, step.r = x, x.shape[-1]
    if op.name == "triangular_solve":
        kind = "lower" if op.attrs["lower"] else "upper"
        step.kind = f"unit {kind}" if op.attrs["unit"] else kind
    else:
        step.pivots = Array((step.batch, step.n), I64, name="pivots")
    if len(op.operands) > 1:
        dims = variables(x.shape)
        p = low.point()
        right = p.at(op.operands[1], indices(dims))
        low.emit(p, Stage(x, dims, right, loc=op.loc, ops=["copy"]))
    low.items.append(step)


@lowering("cholesky")
def _cholesky(low: Lowering, op: Op) -> None:
    """The factor, and zeros in the other triangle; or NaN, which the first element is then."""
    array = low.arrays[op.result] = low.array_for(op.result)
    if array.size == 0:
        return
    step = _step(low, op, "cholesky")
    low.items.append(step)
    dims = variables(array.shape)
    *outer, i, j = indices(dims)
    row, column = (j, i) if op.attrs["upper"] else (i, j)
    p = low.point()
    first = p.load(step.work, (*outer, Index(0), Index(0)), None)
    zero = select(ne(first, first), const(math.nan, array.dtype), const(0, array.dtype))
    inside = compare("ge", index_value(row), index_value(column))
    value = select(inside, p.load(step.work, (*outer, row, column), None), zero)
    low.emit(p, Stage(array, dims, value, loc=op.loc, ops=["cholesky"]))


@lowering("lu")
def _lu(low: Lowering, op: Op) -> None:
    packed, order = (low.array_for(v) for v in op.results)
    low.arrays.update(zip(op.results, (packed, order), strict=True))
    if packed.size == 0:
        dims = variables(order.shape)
        p = low.point()
        low.emit(p, Stage(order, dims, index_value(indices(dims)[-1]), loc=op.loc, ops=["lu"]))
        return
    step = _step(low, op, "lu")
    step.r, step.pivots = packed.shape[-1], order
    low.items.append(step)
    dims = variables(packed.shape)
    p = low.point()
    value = p.load(step.work, indices(dims), None)
    low.emit(p, Stage(packed, dims, value, loc=op.loc, ops=["lu"]))


def _step(low: Lowering, op: Op, kind: str) -> Factorisation:
    """A step that factorises a copy of the operand, which is made first."""
    *lead, m, n = op.operands[0].shape
    work = _work(low, op)
    site = 0
    if op.attrs.get("mode") == "check":
        site = low.context.site("linalg", op.definition.extra["failure"], op)
    batch, (height, pitch) = math.prod(lead), work.shape[-2:]
    return Factorisation(kind, work, None, None, batch, m, 0, height, pitch, site, loc=op.loc)


def _work(low: Lowering, op: Op) -> Array:
    """A copy of the matrices: rows as far apart, and as many, as the functions want it."""
    a = op.operands[0]
    *lead, m, n = a.shape
    height = m if n <= LEAF else m + SPARE_ROWS
    size = a.dtype.itemsize
    # An odd number of cache lines: the elements of a column do not compete for the same cache sets.
    pitch = n if n <= NARROW else (-(-n * size // LINE) | 1) * LINE // size
    work = Array((*lead, height, pitch), a.dtype, name="work")
    dims = variables(a.shape)
    *outer, i, j = indices(dims)
    source = (*outer, j, i) if op.attrs.get("upper") else (*outer, i, j)
    p = low.point()
    stage = Stage(work, dims, p.at(a, source), index=(*outer, i, j), ops=["copy"], loc=op.loc)
    stage.whole = False
    low.emit(p, stage)
    return work
