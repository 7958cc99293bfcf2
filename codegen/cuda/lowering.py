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
from ..lower_contraction import SMALL_MATMUL, Operand, dot_as_reduction, packed_rows, view_of
from ..lower_convolution import conv_as_reduction
from ..lower_reductions import SCANS
from ..steps import Carry, Matmul, Program
from .epilogues import with_epilogues
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
    parts, length = _parts(low, op, m, n, k) if batch == 1 else (1, k)
    if parts > 1:
        batch = parts
        x, y = (replace(v, batch=v.inner * length) for v in (x, y))
    partial = Array((parts, *array.shape), array.dtype, name="partial") if parts > 1 else array
    product = Matmul(
        x.array,
        y.array,
        partial,
        batch,
        m,
        n,
        length,
        (x.batch, x.outer, x.inner),
        (y.batch, y.inner, y.outer),
        x.offset,
        y.offset,
        loc=op.loc,
    )
    if parts == 1:
        low.items.append(product)
        return
    low.items.append(Product(product, total=k, loc=op.loc))
    sum_partials(low, op, partial, array)


def _parts(low: Lowering, op: Op, m: int, n: int, k: int) -> tuple[int, int]:
    """Into how many parts the sum of a product is cut, and how long they are."""
    context = low.context
    assert isinstance(context, DeviceContext), "these are the rules of that context"
    ways = [parts_of(m, n, k)]
    if context.chooser.wants_all:
        ways += other_parts(m, n, k, context.target.sms)
    names = {f"{parts} parts of {length}": (parts, length) for parts, length in ways}
    if len(names) == 1:
        return ways[0]

    def trial(way: tuple[int, int]) -> DeviceProgram:
        from .compile import compile_product
        from .trials import without_outputs

        fixed = Fixed({"split": f"{way[0]} parts of {way[1]}"})
        return without_outputs(compile_product(op, context.target, fixed))

    what = f"{op.result.dtype.name}[{m},{n},{k}]"
    return context.chooser.choose("split", what, names, trial)


class DeviceContext(Context):
    """Stages become kernels for threads; operands of products are read as they lie."""

    chunk: ClassVar[int] = 1 << 12
    sort_scratch: ClassVar[bool] = False
    rules: ClassVar[Mapping[str, Callable[[Any, Op], None]]] = {
        "dot": _product,
        "conv": conv_as_reduction,
        "scatter": scatter,
        **dict.fromkeys(SCANS, scan),
    }

    def __init__(self, target: CudaTarget, chooser: Chooser | None = None) -> None:
        super().__init__(target)
        self.chooser = chooser or Chooser()

    def arrange(self, items: list[Any], keep: Collection[Array]) -> list[Any]:
        steps = with_epilogues(fuse(items, keep), keep)
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
