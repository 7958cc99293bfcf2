"""Lowering for a GPU: what it does otherwise than the CPU, as a table of lowerings and a few choices."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, ClassVar

from ...ir.graph import Op
from ...ir.record import replace
from ...ir.types import BOOL
from ..context import Context
from ..fusion import fuse
from ..kernel import Array, Kernel
from ..lower import Lowering
from ..lower_chunks import sum_partials
from ..lower_contraction import (
    SMALL_MATMUL,
    Operand,
    View,
    dot_as_reduction,
    packed_rows,
    view_of,
)
from ..lower_reductions import SCANS
from ..steps import Carry, Matmul, Program
from .convolutions import convolution
from .epilogues import with_epilogues
from .library_products import WAY, is_for_library, with_library
from .lower_scans import scan
from .products import Product
from .program import DeviceProgram
from .scatter import scatter
from .schedule import row_of
from .target import CudaTarget
from .tiles import other_parts, parts_of
from .tuning import Chooser, Fixed


def _product(low: Lowering, op: Op) -> None:
    """A product of matrices, or the reduction that it is if it is small or has a vector."""
    a, b = op.operands
    (ac, bc), (ab, bb) = op.attrs["contract"], op.attrs["batch"]
    am = tuple(d for d in range(len(a.shape)) if d not in ac and d not in ab)
    bn = tuple(d for d in range(len(b.shape)) if d not in bc and d not in bb)
    left, right = Operand(a, ab, am, ac), Operand(b, bb, bn, bc)
    batch, m, n, k = left.size(ab), left.size(am), right.size(bn), left.size(ac)
    if min(m, n) == 1 or k < 2 or batch * m * n * k <= SMALL_MATMUL or op.result.dtype == BOOL:
        dot_as_reduction(low, op)
        return
    x, y = (view_of(low, side) or packed_rows(low, side) for side in (left, right))
    array = low.array_for(op.result)
    low.arrays[op.result] = array
    whole = _matmul(op, x, y, array, (batch, m, n, k))
    parts, length = _parts(low, op, whole) if batch == 1 else (1, k)
    if parts == 1:
        low.items.append(whole)
        return
    x, y = (replace(v, batch=v.inner * length) for v in (x, y))
    partial = Array((parts, *array.shape), array.dtype, name="partial")
    product = _matmul(op, x, y, partial, (parts, m, n, length))
    low.items.append(Product(product, total=k, loc=op.loc))
    sum_partials(low, op, partial, array)


def _matmul(op: Op, x: View, y: View, c: Array, shape: tuple[int, int, int, int]) -> Matmul:
    return Matmul(
        x.array,
        y.array,
        c,
        *shape,
        (x.batch, x.outer, x.inner),
        (y.batch, y.inner, y.outer),
        x.offset,
        y.offset,
        loc=op.loc,
    )


def _parts(low: Lowering, op: Op, product: Matmul) -> tuple[int, int]:
    """Into how many parts the sum of a product is cut, and how long they are."""
    context, (m, n, k) = low.context, (product.m, product.n, product.k)
    assert isinstance(context, DeviceContext), "these are the rules of that context"
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
        from .compile import compile_product
        from .trials import without_outputs

        where = replace(target, blas="on" if way == WAY else "")
        return without_outputs(compile_product(op, where, Fixed({"split": way})))

    what = f"{op.result.dtype.name}[{m},{n},{k}]"
    return names[chooser.choose("split", what, {name: name for name in names}, trial)]


class DeviceContext(Context):
    """Stages become kernels for threads; operands of products are read as they lie."""

    chunk: ClassVar[int] = 1 << 12
    sort_scratch: ClassVar[bool] = False
    rules: ClassVar[Mapping[str, Callable[[Any, Op], None]]] = {
        "dot": _product,
        "conv": convolution,
        "scatter": scatter,
        **dict.fromkeys(SCANS, scan),
    }

    def __init__(self, target: CudaTarget, chooser: Chooser | None = None) -> None:
        super().__init__(target)
        self.chooser = chooser or Chooser()

    def arrange(self, items: list[Any], keep: Collection[Array]) -> list[Any]:
        steps = with_library(fuse(items, keep), keep, self.target, self.chooser)
        steps = with_epilogues(steps, keep)
        for step in steps:
            if isinstance(step, Kernel):
                _give_memory(step, self.target)
        return steps

    def tiles(self, carries: Sequence[Carry], body: Program, length: int) -> None:
        """A grid of threads makes one trip at a time."""


def _give_memory(kernel: Kernel, target: CudaTarget) -> None:
    """Values of a row that a later nest reads again lie in memory, if threads have no room for them."""
    row = row_of(kernel, target)
    if row is not None:
        kernel.local -= row.passed
        return
    outer = len(kernel.extents)
    home = {s.array: nest for nest in kernel.nests for s in nest.stages}
    for nest in kernel.nests:
        for stage in nest.stages:
            for access in stage.reads:
                array = access.array
                again = array in kernel.local and home[array] is not nest
                if again and math.prod(array.shape[outer:]) > 1:
                    kernel.local.discard(array)
