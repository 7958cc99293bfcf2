"""Lowering of systems of equations, inverses and Cholesky factors of real matrices.

The matrices are copied into memory of their own, where native code factorises them (`llvm.factors`);
the copy is a stage like any other, so that what computes a matrix writes it there.
"""

from __future__ import annotations

import math

from ..ir.graph import Op
from ..ir.types import I64
from .index import Index
from .kernel import Array, Stage
from .llvm.tiles import LINE
from .lower import Lowering, indices, lowering, variables
from .pointwise import index_value
from .scalar import compare, const, ne, select
from .tiled import Factorisation

SPARE_ROWS = 8  # below each matrix: micro-kernels read on there (`llvm.factors.ROWS`)
NARROW = 32  # columns up to which rows may lie any power of two apart
LEAF = 8  # columns up to which no micro-kernel is needed


@lowering("solve", "inv", "cholesky")
def _factorise(low: Lowering, op: Op) -> None:
    a = op.operands[0]
    result = op.result
    *lead, n = a.shape[:-1]
    if result.tensor.size == 0:
        low.arrays[result] = low.array_for(result)
        return
    work, height, pitch = _work(low, op)
    site = 0
    if op.attrs["mode"] == "check":
        site = low.context.site("linalg", op.definition.extra["failure"], op)
    batch = math.prod(lead)
    step = Factorisation(op.name, work, None, None, batch, n, 0, height, pitch, site, loc=op.loc)
    if op.name == "cholesky":
        low.items.append(step)
        _take_triangle(low, op, work)
        return
    step.x = low.array_for(result)
    step.r = result.shape[-1]
    step.pivots = Array((batch, n), I64, name="pivots")
    if op.name == "solve":
        right = op.operands[1]
        dims = variables(right.shape)
        p = low.point()
        stage = Stage(step.x, dims, p.at(right, indices(dims)), loc=op.loc, ops=["copy"])
        low.emit(p, stage)
    low.items.append(step)
    low.arrays[result] = step.x


def _work(low: Lowering, op: Op) -> tuple[Array, int, int]:
    """A copy of the matrices, how many rows each has in memory, and how far these are apart."""
    a = op.operands[0]
    *lead, n = a.shape[:-1]
    height = n if n <= LEAF else n + SPARE_ROWS
    size = a.dtype.itemsize
    # An odd number of cache lines: the elements of a column do not compete for places in caches.
    pitch = n if n <= NARROW else (-(-n * size // LINE) | 1) * LINE // size
    work = Array((*lead, height, pitch), a.dtype, name="work")
    dims = variables(a.shape)
    *outer, i, j = indices(dims)
    source = (*outer, j, i) if op.attrs.get("upper") else (*outer, i, j)
    p = low.point()
    stage = Stage(work, dims, p.at(a, source), index=(*outer, i, j), ops=["copy"], loc=op.loc)
    stage.whole = False
    low.emit(p, stage)
    return work, height, pitch


def _take_triangle(low: Lowering, op: Op, work: Array) -> None:
    """The factor, and zeros in the other triangle; or NaN, which the first element is then."""
    array = low.array_for(op.result)
    dims = variables(array.shape)
    *outer, i, j = indices(dims)
    row, column = (j, i) if op.attrs["upper"] else (i, j)
    p = low.point()
    first = p.load(work, (*outer, Index(0), Index(0)), None)
    zero = select(ne(first, first), const(math.nan, array.dtype), const(0, array.dtype))
    inside = compare("ge", index_value(row), index_value(column))
    value = select(inside, p.load(work, (*outer, row, column), None), zero)
    low.emit(p, Stage(array, dims, value, loc=op.loc, ops=["cholesky"]))
    low.arrays[op.result] = array
