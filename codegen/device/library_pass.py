"""Which products of matrices NVIDIA's library does, with what follows them.

before: c = a @ b; y = tanh(c + 1)      after: a call of the library, and a kernel of what follows
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from ...ir.types import DTYPE_NAMES
from ..cuda import program as device
from ..cuda.target import CudaTarget
from ..cuda.tuning import Chooser, Fixed
from ..kernels.matmul.cuda_epilogues import taker
from ..kernels.matmul.cuda_library import BIASED, WAY, LibraryProduct, is_for_library
from ..kernels.matmul.cuda_products import Product, dims_of, rows_and_columns
from ..kernels.matmul.cuda_tiles import tiles_for
from ..kernels.matmul.cuda_warpgroups import warpgroup_tiles
from ..loop_ir.index import Index, contiguous_strides, linear, of_var, same
from ..loop_ir.kernel import Array, Kernel
from ..loop_ir.steps import Matmul
from ..math.small_floats import narrow
from ..scalar import Expr
from ..schedule.survey import loads
from .trials import TrialBuilder


def with_library(
    steps: Sequence[Any], keep: Collection[Array], target: CudaTarget, chooser: Chooser
) -> list[Any]:
    """Steps in which the library does those products that it should. `keep` is read after them."""
    done = list(steps)
    if not target.blas:
        return done
    for i in reversed(range(len(done))):
        product = done[i]
        if type(product) is not Matmul or not is_for_library(product, target):
            continue
        j, stored = taker(done, i, keep) or (i, True)
        kernel = done[j] if j != i else None
        more = None
        if not stored and kernel is not None:
            more = _biased(kernel, product) or _narrowed(kernel, product)
        plain = LibraryProduct(product, loc=product.loc)
        ours = [more] if more else [plain, *([kernel] if kernel else [])]
        if target.blas == "measured":
            if not chooser.wants_all:
                continue
            if _chosen(product, kernel, stored, ours, target, chooser) != WAY:
                continue
        if more:
            done[j] = more
            del done[i]
        else:
            done[i] = plain
    return done


def _chosen(
    product: Matmul,
    kernel: Kernel | None,
    stored: bool,
    ours: Sequence[Any],
    target: CudaTarget,
    chooser: Chooser,
) -> str:
    """WAY, or a tile of a kernel of our own."""
    own = Product(product, kernel, stored, loc=product.loc)
    more = warpgroup_tiles(own, target, TrialBuilder(target).alignment)
    first, *others = [repr(tile) for tile in tiles_for(product, target, more)]
    ways = {name: name for name in (first, WAY, *others)}

    def trial(way: str) -> device.DeviceProgram:
        builder = TrialBuilder(target, chooser=Fixed({"product": way}))
        steps: list[device.Step] = []
        for step in ours if way == WAY else [own]:
            steps += builder.step(step)
        return builder.program(steps)

    what = f"{product.c.dtype.name}[{product.batch},{product.m},{product.n},{product.k}]"
    return chooser.choose("library", what, ways, trial)


def _biased(kernel: Kernel, product: Matmul) -> LibraryProduct | None:
    """The product and a vector that the kernel adds to each row, if it does that and no more."""
    walk = dims_of(kernel, product)
    (stage, *others) = kernel.stages
    if others or walk is None or stage.value.op != "add" or product.c.dtype != BIASED:
        return None
    order, shape = walk
    first_column = rows_and_columns(shape, product.batch * product.m)
    loads = sorted(stage.value.args, key=lambda e: e.op != "load" or e.attr.array is not product.c)
    if first_column is None or any(e.op != "load" or e.args for e in loads):
        return None
    own, other = (e.attr for e in loads)
    if own.array is not product.c or other.array is product.c or other.array.dtype != BIASED:
        return None
    steps = contiguous_strides(shape)

    def walked(dims: range) -> Index:
        return sum((of_var(stage.dims[order[d]]) * steps[d] for d in dims), Index())

    flat = linear(other.index, other.array.strides)
    start = flat.const
    across = walked(range(first_column, len(shape)))
    if start < 0 or not same(flat - start, across):
        return None
    if not same(linear(stage.index, stage.array.strides), walked(range(len(shape)))):
        return None
    return LibraryProduct(product, other.array, start, stage.array, loc=product.loc)


def _narrowed(kernel: Kernel, product: Matmul) -> LibraryProduct | None:
    """The product, rounded to what its operands are, if the kernel does that and no more."""
    (stage, *others) = kernel.stages
    walk, reads = dims_of(kernel, product), loads(stage.value)
    if others or walk is None or not product.element or len(reads) != 1:
        return None
    order, shape = walk
    steps = contiguous_strides(shape)
    whole = sum((of_var(stage.dims[d]) * s for d, s in zip(order, steps, strict=True)), Index())
    if not same(linear(stage.index, stage.array.strides), whole):
        return None
    if not _alike(stage.value, narrow(reads[0], DTYPE_NAMES[product.element])):
        return None
    return LibraryProduct(product, taken=stage.array, narrowed=True, loc=product.loc)


def _alike(x: Expr, y: Expr) -> bool:
    """Whether two expressions are the same, over the same loads."""
    if x is y:
        return True
    own, other = (e.attr for e in (x, y))
    same = (x.op, x.dtype, len(x.args)) == (y.op, y.dtype, len(y.args)) and x.op != "load"
    return same and own == other and all(map(_alike, x.args, y.args))
