"""Lowering of contractions: matrix products from micro-kernels, or reductions over a product.

A `Matmul` step wants A with its rows or its columns side by side in memory, and B as rows that lie
close together, or packed into panels: `panels[p, k, j] = B[k, width * p + j]`. Operands that are not
so are brought into form by stages, which fusion treats like any others: so what computes an operand
runs while it is packed, and the packing of what does not change in a loop is done before the loop.

The reduction form takes every dtype, fuses with what comes before and after, and serves tiny products
and those with a vector.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from ....ir.graph import Op, Value
from ....ir.ops.products.contraction import free_axes
from ....ir.record import record
from ...limits import limits
from ...loop_ir.index import Index, Var, contiguous_strides, delinearise, linear, of_var
from ...loop_ir.kernel import Access, Array, Chunks, Stage
from ...loop_ir.steps import Matmul
from ...lowering.lower import Lowering, indices, lowering, variables
from ...lowering.lower_chunks import sum_partials
from ...lowering.pointwise import index_value
from ...scalar import compare, const, select
from ...schedule.blocking import panels, tile_for
from ...sizes import has_size

CACHE_BYTES, WAYS = 1 << 12, 4  # of the nearest cache: one way, and how many a panel of B may take
MOST_CHUNKS = 4096


@record
class Side:
    """One side of a contraction: a batch of matrices. `inner` are the dims that are summed over."""

    value: Value
    batch: tuple[int, ...]
    outer: tuple[int, ...]
    inner: tuple[int, ...]

    def size(self, dims: Sequence[int]) -> int:
        return math.prod(self.value.shape[d] for d in dims)


@record
class MatrixView:
    """Where a batch of matrices lies: an array, strides of batch, outer and inner, and an offset."""

    array: Array
    batch: int
    outer: int
    inner: int
    offset: int = 0


@lowering("dot")
def _dot(low: Lowering, op: Op) -> None:
    a, b = op.operands
    (ac, bc), (ab, bb) = op.attrs["contract"], op.attrs["batch"]
    am, bn = free_axes(len(a.shape), ac, ab), free_axes(len(b.shape), bc, bb)
    left, right = Side(a, ab, am, ac), Side(b, bb, bn, bc)
    batch, m, n, k = left.size(ab), left.size(am), right.size(bn), left.size(ac)
    if min(m, n) == 1 or k < 2 or batch * m * n * k <= limits().small_product:
        dot_as_reduction(low, op)
        return
    seen = view_of(low, left), view_of(low, right)
    if m <= limits().few_rows and batch == 1 and _lies_transposed(seen[1]):
        # Few rows times the transpose of a matrix: the matrix is walked as it lies, as the left side.
        shape = op.result.shape
        rows = len(ab) + len(am)  # one batch, but it may have a dim
        first, second = contiguous_strides(shape[:rows]), contiguous_strides(shape[rows:])
        strides = (*first, *(s * m for s in second))
        array = Array(shape, op.result.dtype, strides=strides, name=op.result.name)
        _matmul(low, op, array, right, left, seen[1], seen[0])
        low.arrays[op.result] = array
        return
    asked = op.loc is not None and op.loc.knobs is not None  # of the product
    if a is b and (ac, ab) == (bc, bb) and min(m, 4 * k) >= limits().mirrored_rows and not asked:
        _mirrored(low, op, left, right, *seen)
        return
    watching = _watching(low, op.result)
    result = op.result if watching is None else watching.result
    array = low.array_for(result)
    assert array.contiguous, "results have C order"
    _matmul(low, op, array, left, right, *seen)
    low.arrays[op.result] = low.arrays[result] = array
    if watching is not None:
        low.items[-1].watched = watching.attrs["kinds"]


def _mirrored(low: Lowering, op: Op, left: Side, right: Side, *seen: MatrixView | None) -> None:
    """A matrix times its own transpose: the upper half of the result, which is symmetric, and a copy."""
    matrix = (left.size(left.batch), left.size(left.outer), right.size(right.outer))
    half = Array(matrix, op.result.dtype, name="upper")
    _matmul(low, op, half, left, right, *seen)
    low.items[-1].upper = True
    array = low.array_for(op.result)
    assert array.contiguous, "results have C order"
    dims = variables(matrix)
    batch, i, j = indices(dims)
    p = low.point()
    above = compare("le", index_value(i), index_value(j))
    p.masks.append(above)
    below = compare("gt", index_value(i), index_value(j))
    p.masks.append(below)
    value = select(above, p.load(half, (batch, i, j), above), p.load(half, (batch, j, i), below))
    where = delinearise(linear((batch, i, j), contiguous_strides(matrix)), op.result.shape)
    low.emit(p, Stage(array, dims, value, index=where, ops=["mirror"], loc=op.loc))
    low.arrays[op.result] = array


def _watching(low: Lowering, value: Value) -> Op | None:
    """The op by which all that reads a product has it looked at."""
    users = low.users[value]
    if len(users) != 1 or value in low.outputs:
        return None
    (op,) = users
    return op if op.name == "watched" and set(op.operands) == {value} else None


def _matmul(
    low: Lowering,
    op: Op,
    array: Array,
    left: Side,
    right: Side,
    a: MatrixView | None,
    b: MatrixView | None,
) -> None:
    """Emit the product of two batches of matrices into `array`."""
    batch, k = left.size(left.batch), left.size(left.inner)
    m, n = left.size(left.outer), right.size(right.outer)
    size = array.dtype.itemsize
    if a is None or 1 not in (a.outer, a.inner) or _scattered(a, k * size, n):
        a = packed_rows(low, left)
    _, vectors = tile_for(low.context.target, array.dtype, batch, m, n, k)
    panel = vectors * low.context.target.lanes(size)
    if (
        b is None
        or b.outer != 1
        or not (m <= limits().few_rows or _near(k, abs(b.inner) * size, panel * size))
    ):
        b = _packed_panels(low, right, panel)
    else:
        panel = 0
    low.items.append(
        Matmul(
            a.array,
            b.array,
            array,
            batch,
            m,
            n,
            k,
            (a.batch, a.outer, a.inner),
            (b.batch, b.inner, b.outer),
            a.offset,
            b.offset,
            panel,
            op.loc,
        )
    )


def _near(rows: int, pitch: int, width: int) -> bool:
    """Whether `rows` pieces of `width` bytes, `pitch` bytes apart, stay in the nearest cache together.

    Pieces that are a multiple of a way apart compete for the same lines of it.
    """
    room = min(CACHE_BYTES // math.gcd(pitch, CACHE_BYTES) * width, CACHE_BYTES)
    return rows * pitch <= limits().near_bytes and rows * width <= WAYS * room


def _scattered(a: MatrixView, nbytes: int, n: int) -> bool:
    """Whether a row of A, of so many bytes, is scattered in memory, and read often enough to matter."""
    return (
        a.inner != 1 and nbytes * abs(a.inner) >= limits().far_bytes and n >= limits().many_columns
    )


def packed_rows(low: Lowering, side: Side) -> MatrixView:
    """A copy of an operand as matrices [*batch, *outer, *inner] in C order."""
    value = side.value
    order = [*side.batch, *side.outer, *side.inner]
    shape = tuple(value.shape[d] for d in order)
    array = Array(shape, value.dtype, name="rows")
    dims = variables(shape)
    where = dict(zip(order, indices(dims), strict=True))
    p = low.point()
    expr = p.at(value, tuple(where[d] for d in range(len(order))))
    low.emit(p, Stage(array, dims, expr, ops=["pack"], loc=value.op.loc if value.op else None))
    k = side.size(side.inner)
    return MatrixView(array, side.size(side.outer) * k, k, 1)


def _packed_panels(low: Lowering, side: Side, panel: int) -> MatrixView:
    """A copy of an operand in panels of `panel` columns, the last one filled up with zeros."""
    value = side.value
    n, k = side.size(side.outer), side.size(side.inner)
    count = panels(n, panel)
    key = value, side.batch, side.inner, side.outer, panel
    packed = low.packed.get(key)
    if packed is not None:
        return packed
    shape = (side.size(side.batch), count, k, panel)
    array = Array(shape, value.dtype, name="panels")
    b, q, p_, j = variables((shape[0], k, count, panel))
    column = of_var(p_) * panel + of_var(j)
    where: dict[int, Index] = {}
    groups = (side.batch, of_var(b)), (side.inner, of_var(q)), (side.outer, column)
    for group, flat in groups:
        along = delinearise(flat, tuple(value.shape[d] for d in group))
        where.update(zip(group, along, strict=True))
    p = low.point()
    position = tuple(where[d] for d in range(len(value.shape)))
    if n % panel:
        inside = compare("lt", index_value(column), n)
        p.masks.append(inside)
        expr = select(inside, p.at(value, position, inside), const(0, value.dtype))
    else:
        expr = p.at(value, position)
    at = (of_var(b), of_var(p_), of_var(q), of_var(j))
    loc = value.op.loc if value.op else None
    low.emit(p, Stage(array, (b, q, p_, j), expr, index=at, ops=["pack"], loc=loc))
    low.packed[key] = MatrixView(array, count * k * panel, 1, panel)
    return low.packed[key]


def _lies_transposed(view: MatrixView | None) -> bool:
    return view is not None and view.inner == 1 and view.outer != 1


def view_of(low: Lowering, side: Side) -> MatrixView | None:
    """Where an operand lies, if each group of its dims can be walked as one."""
    strided = strided_view(low, side.value)
    if strided is None:
        return None
    array, strides, offset = strided
    sizes = side.value.shape
    merged = [
        _merge([sizes[d] for d in group], [strides[d] for d in group])
        for group in (side.batch, side.outer, side.inner)
    ]
    if None in merged:
        return None
    batch, outer, inner = (s or 0 for s in merged)
    return MatrixView(array, batch, outer, inner, offset)


def dot_as_reduction(low: Lowering, op: Op) -> None:
    """Each element of the result as a sum of products."""
    array = low.array_for(op.result)
    _reduce_products(low, op, array)
    low.arrays[op.result] = array


def _reduce_products(low: Lowering, op: Op, array: Array) -> None:
    a, b = op.operands
    (ac, bc), (ab, bb) = op.attrs["contract"], op.attrs["batch"]
    am, bn = free_axes(len(a.shape), ac, ab), free_axes(len(b.shape), bc, bb)
    if any(a.shape[d] == 0 for d in ac):
        dims = variables(array.shape)
        low.emit(low.point(), Stage(array, dims, const(0, array.dtype), ops=["dot"], loc=op.loc))
        return
    outer = variables(array.shape)
    inner = tuple(Var(f"k{d}", a.shape[d]) for d in ac)
    nb, nm = len(ab), len(am)
    at_a: dict[int, Var] = dict(zip([*ab, *am, *ac], [*outer[: nb + nm], *inner], strict=True))
    at_b: dict[int, Var] = dict(
        zip([*bb, *bc, *bn], [*outer[:nb], *inner, *outer[nb + nm :]], strict=True)
    )
    for operand, repeated in ((a, bool(bn)), (b, bool(am))):
        if repeated and operand not in low.arrays and low.cost.get(operand, 0) > 0:
            low.materialise(operand)
    length = _chunk_length(op, math.prod(array.shape), inner)
    if not length:
        p = low.point()
        x = p.at(a, tuple(of_var(at_a[d]) for d in range(len(a.shape))))
        y = p.at(b, tuple(of_var(at_b[d]) for d in range(len(b.shape))))
        dims = (*outer, *inner)
        low.emit(p, Stage(array, dims, x * y, "reduce", "sum", len(outer), loc=op.loc, ops=["dot"]))
        return
    # By chunks of the first dim: all cores work, and chunks are blocks of rows (see `rowblocks`).
    total = inner[0].extent
    c, r = Var("c", -(-total // length)), Var("r", length)
    whole = of_var(c) * length + of_var(r)
    at = {v: of_var(v) for v in (*outer, *inner)} | {inner[0]: whole}
    p = low.point()
    x = p.at(a, tuple(at[at_a[d]] for d in range(len(a.shape))))
    y = p.at(b, tuple(at[at_b[d]] for d in range(len(b.shape))))
    partial = Array((c.extent, *array.shape), array.dtype, name="partial")
    dims = (c, *outer, r, *inner[1:])
    stage = Stage(
        partial, dims, x * y, "reduce", "sum", len(outer) + 1, loc=op.loc, ops=["dot"], partial=1
    )
    if total % length:
        stage.chunks = Chunks(0, length, total)
    low.emit(p, stage)
    sum_partials(low, op, partial, array)


def _chunk_length(op: Op, results: int, inner: tuple[Var, ...]) -> int:
    """Iterations of the first loop that one chunk takes, if the sum goes by chunks; else 0."""
    count = math.prod(v.extent for v in inner)
    largest = max(v.tensor.size for v in op.operands)
    if results * 8 >= count or largest < limits().many_elements or inner[0].extent < 64:
        return 0
    if has_size([v.extent for v in inner]):
        return 0
    each = largest // inner[0].extent * op.result.dtype.itemsize
    length = max(limits().chunk_bytes // each // 8 * 8, 8)
    while inner[0].extent > MOST_CHUNKS * length:
        length *= 2
    return length if length < inner[0].extent else 0


def _merge(sizes: list[int], strides: list[int]) -> int | None:
    """The stride with which several dims can be walked as one; None if they cannot."""
    dims = [(n, s) for n, s in zip(sizes, strides, strict=True) if n != 1]
    if not dims:
        return 1
    for (_, outer), (n, inner) in pairwise(dims):
        if outer != n * inner:
            return None
    return dims[-1][1]


def strided_view(low: Lowering, value: Value) -> tuple[Array, tuple[int, ...], int] | None:
    """`value` as a strided window of an array: (array, strides, offset in elements), or None."""
    if value not in low.arrays and low.cost.get(value, 0) > 0:
        return None
    dims = variables(value.shape)
    p = low.point()
    expr = p.at(value, indices(dims))
    if expr.op != "load" or expr.args:
        return None
    access: Access = expr.attr
    strides = access.flat.strides(dims)
    return None if strides is None else (access.array, strides, access.flat.const)
