"""What is done with each element of a product right away, while it is in a register.

before: c = a @ b; y = tanh(c + bias)          after: one kernel, and no c unless somebody else reads it
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from ....ir.record import replace
from ...loop_ir.kernel import Array, Kernel, Stage
from ...loop_ir.steps import Matmul, touched
from ...schedule.survey import survey
from .cuda_products import Product, dims_of, rows_and_columns

LONG = 150  # operations on an element, up to which they are written out for each accumulator


def with_epilogues(steps: Sequence[Any], keep: Collection[Array]) -> list[Any]:
    """Products take the kernel that reads them first, if it does so element by element.

    A product moves to where that kernel stands. `keep` is read after the steps.
    """
    done = list(steps)
    for i in reversed(range(len(done))):
        product = done[i]
        if type(product) is Matmul:
            product = Product(product, loc=product.loc)
        if not isinstance(product, Product) or product.epilogue or product.total:
            continue
        taken = taker(done, i, keep)
        if taken is not None:
            j, stored = taken
            done[j] = replace(product, epilogue=done[j], stored=stored)
            del done[i]
    return done


def taker(steps: Sequence[Any], i: int, keep: Collection[Array]) -> tuple[int, bool] | None:
    """Where the kernel stands that product i can take along, and whether others read the product too."""
    product = steps[i].matmul if isinstance(steps[i], Product) else steps[i]
    j = next((j for j in range(i + 1, len(steps)) if _touches(steps[j], product.c)), i)
    if j == i or not isinstance(steps[j], Kernel) or not fits(steps[j], product):
        return None
    operands = touched(steps[i])[0]
    if any(_writes(step, operands) for step in steps[i + 1 : j]):
        return None
    stored = product.c in keep or product.c.kind != "temp"
    return j, stored or any(_touches(step, product.c) for step in steps[j + 1 :])


def _touches(step: Any, array: Array) -> bool:
    reads, writes = touched(step)
    return array in reads or array in writes


def _writes(step: Any, arrays: Collection[Array]) -> bool:
    return any(a in arrays for a in touched(step)[1])


def fits(kernel: Kernel, product: Matmul) -> bool:
    """Whether a kernel does something with each element of a product where it stands."""
    if kernel.ordered or any(nest.extents for nest in kernel.nests):
        return False
    walk = dims_of(kernel, product)
    if walk is None or rows_and_columns(walk[1], product.batch * product.m) is None:
        return False
    surveys = [survey(s) for s in kernel.stages]
    if any(v.loops for v in surveys) or sum(v.size for v in surveys) > LONG:
        return False
    return all(_stands(stage, product) for stage in kernel.stages)


def _stands(stage: Stage, product: Matmul) -> bool:
    """Whether a stage stores to memory of its own."""
    if stage.action != "store" or stage.array.kind not in ("temp", "output"):
        return False
    return stage.array not in (product.a, product.b, product.c)
