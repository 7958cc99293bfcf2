"""Lowering of products of matrices for a GPU: operands as they lie, or computed on the way, or packed.

before: c = tanh(a[:, ::-1] + 1) @ b
after:  one product, whose left operand is that expression of row and position (`cuda_sources`),
        if it is not computed too often: each tile of the result computes its own rows of it
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from ....ir.build import Builder
from ....ir.graph import Graph, Op, Value
from ....ir.ops.products.contraction import free_axes
from ....ir.record import replace
from ....ir.types import BOOL, dtype_name
from ...cuda.program import DeviceProgram, without_outputs
from ...cuda.tuning import Fixed
from ...limits import limits
from ...loop_ir.index import Index, Var, delinearise, of_var
from ...loop_ir.kernel import Array, Stage
from ...loop_ir.steps import Matmul
from ...lowering.lower import Lowering
from ...lowering.lower_chunks import sum_partials
from .cuda_library import WAY, is_for_library
from .cuda_products import Product
from .cuda_tiles import other_parts, parts_of, takes
from .lower_contraction import MatrixView, Side, dot_as_reduction, packed_rows, view_of

if TYPE_CHECKING:
    from ...device.lowering import DeviceContext

TILE = 64  # rows or columns of a tile, roughly: how often the other operand is read
# Work per element, all readings together, up to which an operand is computed on the way.
REPEATED = 32


def is_cheap(low: Lowering, value: Value, times: float) -> bool:
    """Whether an operand that has no memory may be computed so many times for each element."""
    return low.cost.get(value, 0) * times <= REPEATED


def product_of_matrices(low: Lowering, op: Op) -> None:
    """A product, or the reduction that it is if it is small or has a vector."""
    a, b = op.operands
    (ac, bc), (ab, bb) = op.attrs["contract"], op.attrs["batch"]
    am, bn = free_axes(len(a.shape), ac, ab), free_axes(len(b.shape), bc, bb)
    a, b, element = small_floats(low, op)
    left, right = Side(a, ab, am, ac), Side(b, bb, bn, bc)
    batch, m, n, k = left.size(ab), left.size(am), right.size(bn), left.size(ac)
    if (
        min(m, n) == 1
        or k < 2
        or batch * m * n * k <= limits().small_product
        or op.result.dtype == BOOL
    ):
        dot_as_reduction(low, op)
        return
    x = view_of(low, left) or _packed_or_none(low, left, n)
    y = view_of(low, right) or _packed_or_none(low, right, m)
    array = low.array_for(op.result)
    low.arrays[op.result] = array
    whole = replace(_matmul(op, x, y, array, (batch, m, n, k)), element=element)
    parts, length = _parts(low, op, whole) if batch == 1 else (1, k)
    cut = batch, parts, length
    computed = {
        at: _on_the_way(low, side, cut)
        for side, view, at in ((left, x, "a"), (right, y, "b"))
        if view is None
    }
    c = Array((parts, *array.shape), array.dtype, name="partial") if parts > 1 else array
    if parts > 1:
        x, y = (v and replace(v, batch=v.inner * length) for v in (x, y))
        whole = replace(_matmul(op, x, y, c, (parts, m, n, length)), element=element)
    whole = replace(whole, **{at: stage.array for at, stage in computed.items()})
    if parts == 1 and not computed:
        low.items.append(whole)
        return
    stages = {stage.array: stage for stage in computed.values()}
    total = k if parts > 1 else 0
    low.items.append(Product(whole, total=total, computed=stages, loc=op.loc))
    if parts > 1:
        sum_partials(low, op, c, array)


def small_floats(low: Lowering, op: Op) -> tuple[Value, Value, str]:
    """The operands' bits and what floats of 16 bits they are, if tensor cores multiply them.

    Their sums are float32, but not each of them is rounded to the nearest: that is good enough for
    results that are rounded to few bits themselves, or whoever asked for speed.
    """
    a, b = op.operands
    target = low.context.target
    (x, kind), (y, other) = _bits(a), _bits(b)
    wanted = target.tf32 or _narrowed(low, op.result)
    if kind != other or not takes(kind, target) or not wanted:
        return a, b, ""
    return x, y, kind


def _bits(value: Value) -> tuple[Value, str]:
    """The bits of 16-bit floats that a value is made of, moved as they are, and their dtype's name."""
    moves: list[Op] = []
    while value.op is not None and value.op.definition.view:
        moves.append(value.op)
        (value,) = value.op.operands
    if value.op is None or value.op.name != "widen":
        return value, ""
    (bits,) = value.op.operands
    b = Builder(Graph())
    for move in reversed(moves):
        bits = b.append(move.definition, [bits], move.attrs).result
    return bits, dtype_name(value.op.attrs["dtype"])


def _narrowed(low: Lowering, value: Value) -> bool:
    """Whether all that is done with a value is to round it to 16 bits."""
    if value in low.outputs:
        return False
    return all(
        user.name == "narrow" or (user.definition.view and _narrowed(low, user.result))
        for user in low.users[value]
    )


def _packed_or_none(low: Lowering, side: Side, others: int) -> MatrixView | None:
    """A copy of an operand that does not lie as a matrix; None: it is computed on the way.

    Products of the library are of matrices that lie in memory.
    """
    if low.context.target.blas == "on" or not is_cheap(low, side.value, -(-others // TILE)):
        return packed_rows(low, side)
    return None


_NOWHERE = Array((0,), BOOL)  # of operands that are computed


def _matmul(
    op: Op, x: MatrixView | None, y: MatrixView | None, c: Array, shape: tuple[int, int, int, int]
) -> Matmul:
    a, b = x or MatrixView(_NOWHERE, 0, 0, 0), y or MatrixView(_NOWHERE, 0, 0, 0)
    return Matmul(
        a.array,
        b.array,
        c,
        *shape,
        (a.batch, a.outer, a.inner),
        (b.batch, b.inner, b.outer),
        a.offset,
        b.offset,
        loc=op.loc,
    )


def _on_the_way(low: Lowering, side: Side, cut: tuple[int, int, int]) -> Stage:
    """An operand as what is computed at each row and position in the sum.

    `cut`: matrices, or else parts of the one sum that there is, and the length of a part.
    """
    batch, parts, length = cut
    b, row = Var("b", batch * parts), Var("row", side.size(side.outer))
    q = Var("q", length)
    whole, matrix = of_var(q), of_var(b)
    if parts > 1:
        whole, matrix = whole + of_var(b) * length, Index()
    where: dict[int, Index] = {}
    shape = side.value.shape
    for group, flat in ((side.batch, matrix), (side.outer, of_var(row)), (side.inner, whole)):
        along = delinearise(flat, tuple(shape[d] for d in group))
        where.update(zip(group, along, strict=True))
    p = low.point()
    value = p.at(side.value, tuple(where[d] for d in range(len(shape))))
    array = Array((b.extent, row.extent, length), value.dtype, name="operand")
    loc = side.value.op.loc if side.value.op else None
    ops = [op.name for op in p.ops]
    return Stage(array, (b, row, q), value, reads=p.reads, ops=ops, loc=loc, cost=p.cost)


def _parts(low: Lowering, op: Op, product: Matmul) -> tuple[int, int]:
    """Into how many parts the sum of a product is cut, and how long they are."""
    context, (m, n, k) = cast("DeviceContext", low.context), (product.m, product.n, product.k)
    target, chooser = context.target, context.chooser
    library = is_for_library(product, target)
    if library and target.blas == "on":
        return 1, k
    best = parts_of(m, n, k)
    more = other_parts(m, n, k, target.sms) if chooser.wants_all else []
    names = {f"{parts} parts of {length}": (parts, length) for parts, length in [best, *more]}
    if library and chooser.wants_all and best[0] > 1:
        (first, _), *others = names.items()
        names = {first: best, WAY: (1, k), **dict(others)}
    if len(names) == 1:
        return best

    def trial(way: str) -> DeviceProgram:
        where = replace(target, blas="on" if way == WAY else "")
        return without_outputs(context.compile_product(op, where, Fixed({"split": way})))

    what = f"{op.result.dtype.name}[{m},{n},{k}]"
    return names[chooser.choose("split", what, {name: name for name in names}, trial)]
