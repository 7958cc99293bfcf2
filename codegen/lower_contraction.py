"""Lowering of contractions: a BLAS call where that wins, else a reduction over a product.

The reduction form takes every dtype, fuses with what comes before and after, and serves small and
matrix-vector products; the library form wants matrices, as they lie in memory or packed first.
"""

from __future__ import annotations

import math
from itertools import pairwise

from ..ir.graph import Op, Value
from .index import Var, linear, of_var
from .kernel import Access, Array, Matmul, Stage
from .lower import Lowering, indices, lowering, variables
from .scalar import const

SMALL_MATMUL = 1 << 12  # multiply-adds up to which a contraction is a plain reduction


@lowering("dot")
def _dot(low: Lowering, op: Op) -> None:
    a, b = op.operands
    (ac, bc), (ab, bb) = op.attrs["contract"], op.attrs["batch"]
    am = [d for d in range(len(a.shape)) if d not in ac and d not in ab]
    bn = [d for d in range(len(b.shape)) if d not in bc and d not in bb]
    batch = math.prod(a.shape[d] for d in ab)
    m = math.prod(a.shape[d] for d in am)
    n = math.prod(b.shape[d] for d in bn)
    k = math.prod(a.shape[d] for d in ac)
    array = low.array_for(op.result)
    use_blas = low.context.use_blas and op.result.dtype.kind == "f" and array.contiguous
    if use_blas and m > 1 and n > 1 and k > 0 and m * n * k > SMALL_MATMUL and array.size:
        left = _matrix(low, a, list(ab), am, list(ac))
        right = _matrix(low, b, list(bb), list(bc), bn)
        low.items.append(
            Matmul(
                left[0],
                right[0],
                array,
                batch,
                m,
                n,
                k,
                left[1],
                right[1],
                left[2],
                right[2],
                loc=op.loc,
            )
        )
    else:
        _dot_as_reduction(low, op, array, am, bn)
    low.arrays[op.result] = array


def _dot_as_reduction(low: Lowering, op: Op, array: Array, am: list[int], bn: list[int]) -> None:
    a, b = op.operands
    (ac, bc), (ab, bb) = op.attrs["contract"], op.attrs["batch"]
    if any(a.shape[d] == 0 for d in ac):
        dims = variables(array.shape)
        low.emit(low.point(), Stage(array, dims, const(0, array.dtype), ops=["dot"], loc=op.loc))
        return
    kept = variables(array.shape)
    inner = tuple(Var(f"k{d}", a.shape[d]) for d in ac)
    nb, nm = len(ab), len(am)
    at_a: dict[int, Var] = dict(zip([*ab, *am, *ac], [*kept[: nb + nm], *inner], strict=True))
    at_b: dict[int, Var] = dict(
        zip([*bb, *bc, *bn], [*kept[:nb], *inner, *kept[nb + nm :]], strict=True)
    )
    for operand, repeated in ((a, bool(bn)), (b, bool(am))):
        if repeated and operand not in low.arrays and low.cost.get(operand, 0) > 0:
            low.materialise(operand)
    p = low.point()
    x = p.at(a, tuple(of_var(at_a[d]) for d in range(len(a.shape))))
    y = p.at(b, tuple(of_var(at_b[d]) for d in range(len(b.shape))))
    stage = Stage(
        array, (*kept, *inner), x * y, "reduce", "sum", len(kept), loc=op.loc, ops=["dot"], cost=1
    )
    low.emit(p, stage)


def _matrix(
    low: Lowering, value: Value, batch: list[int], rows: list[int], cols: list[int]
) -> tuple[Array, tuple[int, int, int], int]:
    """`value` as a batch of matrices: (array, strides of batch/row/column, offset), copied if needed."""
    order = [*batch, *rows, *cols]
    view = _strided_view(low, value)
    if view is not None:
        array, strides, offset = view
        found = [
            _merge([value.shape[d] for d in g], [strides[d] for d in g])
            for g in (batch, rows, cols)
        ]
        between, r, c = found
        if between is not None and r is not None and c is not None and 1 in (r, c):
            along = math.prod(value.shape[d] for d in (cols if c == 1 else rows))
            if min(r, c) >= 1 and max(r, c) >= along:
                return array, (between, r, c), offset
    shape = tuple(value.shape[d] for d in order)
    array = Array(shape, value.dtype, name="packed")
    dims = variables(shape)
    where = dict(zip(order, indices(dims), strict=True))
    p = low.point()
    expr = p.at(value, tuple(where[d] for d in range(len(order))))
    low.emit(p, Stage(array, dims, expr, ops=["pack"], loc=value.op.loc if value.op else None))
    m = math.prod(value.shape[d] for d in rows)
    k = math.prod(value.shape[d] for d in cols)
    return array, (m * k, k, 1), 0


def _merge(sizes: list[int], strides: list[int]) -> int | None:
    """The stride with which several dims can be walked as one; None if they cannot."""
    dims = [(n, s) for n, s in zip(sizes, strides, strict=True) if n != 1]
    if not dims:
        return 1
    for (_, outer), (n, inner) in pairwise(dims):
        if outer != n * inner:
            return None
    return dims[-1][1]


def _strided_view(low: Lowering, value: Value) -> tuple[Array, tuple[int, ...], int] | None:
    """`value` as a strided window of an array: (array, strides, offset in elements), or None."""
    if value not in low.arrays and low.cost.get(value, 0) > 0:
        return None
    dims = variables(value.shape)
    p = low.point()
    expr = p.at(value, indices(dims))
    if expr.op != "load" or expr.args:
        return None
    access: Access = expr.attr
    flat = linear(access.index, access.array.strides)
    if any(not isinstance(atom, Var) for atom in flat.terms):
        return None
    return access.array, tuple(flat.coeff(v) for v in dims), flat.const
