"""Operands of products that the copy engine of sm_90 brings: boxes of 128 bytes by so many lines.

An operand lies in shared memory as it lies in memory: in lines of 128 bytes along k, one for each of
its rows, or else along its rows, 64 of them in a line, one line for each position of the sum. The engine
exchanges chunks of 16 bytes from line to line, as the descriptors of `wgmma` say it, and writes zeros
beyond the ends.
"""

from __future__ import annotations

from collections.abc import Callable

from ....ir.record import record
from ...cuda.program import Ref, TensorMap
from ...loop_ir.kernel import Array
from .cuda_products import Product
from .cuda_wgmma import ATOM, LINE, descriptor

ALIGNED = 16  # what addresses, and bytes from line to line, must be a multiple of
_FAR = 1 << 40  # bytes
_MANY = 1 << 31  # elements along a dim


@record
class Boxed:
    """An operand: a's rows, or b's columns. `size` of them are in a tile of the result, `depth`
    positions of the sum in a step. `strides` are those of matrix, row and position, in elements;
    matrices of the batch are all the same if the first one is 0. `whole`: rows, positions and matrices
    that there are."""

    array: Array
    offset: int
    strides: tuple[int, int, int]
    whole: tuple[int, int, int]
    size: int
    element: str

    @property
    def item(self) -> int:
        return self.array.dtype.itemsize

    @property
    def depth(self) -> int:
        return LINE // self.item

    @property
    def turned(self) -> bool:
        """Whether lines are along the rows."""
        return self.strides[2] != 1

    @property
    def batched(self) -> bool:
        return self.whole[2] > 1 and self.strides[0] != 0

    @property
    def nbytes(self) -> int:
        """Of a tile."""
        return self.size * LINE

    @property
    def boxes(self) -> list[int]:
        """The first row of each box of a tile."""
        return list(range(0, self.size, self.depth)) if self.turned else [0]

    @property
    def box_bytes(self) -> int:
        return self.nbytes // len(self.boxes)

    def map(self, ref: Callable[[Array, int], Ref]) -> TensorMap:
        """What the copy engine must know of the operand and of a box; `ref` gives addresses."""
        rows, depths, matrices = self.whole
        batch, row, k = (s * self.item for s in self.strides)
        sizes: tuple[int, ...] = (depths, rows)
        strides: tuple[int, ...] = (row,)
        box: tuple[int, ...] = (self.depth, self.size)
        if self.turned:
            sizes, strides, box = (rows, depths), (k,), (self.depth, self.depth)
        if self.batched:
            sizes, strides, box = (*sizes, matrices), (*strides, batch), (*box, 1)
        base = ref(self.array, self.offset * self.item)
        return TensorMap(base, self.element, sizes, strides, box)

    @property
    def fits(self) -> bool:
        """Whether the engine can bring it: apart from where it begins, which is known to the caller."""
        batch, row, k = self.strides
        along, far = (row, k) if self.turned else (k, row)
        steps = [far, *([batch] if self.batched else [])]
        return (
            along == 1
            and not (self.turned and self.item != 2)
            and all(s > 0 and s * self.item % ALIGNED == 0 and s * self.item < _FAR for s in steps)
            and all(0 < n < _MANY for n in self.whole)
        )

    # Descriptors, in units of 16 bytes.

    @property
    def descriptor(self) -> int:
        """But for the address."""
        return descriptor(ATOM, self.box_bytes) if self.turned else descriptor(ATOM)

    def ahead(self, rows: int, ks: int) -> int:
        """How far it is to other rows (a multiple of 64) and positions of a tile."""
        if self.turned:
            return (rows // self.depth * self.box_bytes + ks * LINE) >> 4
        return (rows * LINE + ks * self.item) >> 4


def boxed(
    product: Product, m: int, n: int, element: str, alignment: Callable[[Array, int], int]
) -> tuple[Boxed, Boxed] | None:
    """The operands of a product whose tiles are m by n; None if the engine cannot bring them.

    `alignment`: what the address of an array, so many bytes on, is a multiple of.
    """
    step = product.matmul
    if product.computed:
        return None
    depth, depths, matrices = step.k, product.total or step.k, step.batch
    a, b = step.a_strides, (step.b_strides[0], step.b_strides[2], step.b_strides[1])
    if product.total:  # the parts of one sum are positions of one matrix
        if product.parts != step.batch or depth * step.a.dtype.itemsize % LINE:
            return None
        if a[0] != depth * a[2] or b[0] != depth * b[2]:
            return None
        a, b, matrices = (0, *a[1:]), (0, *b[1:]), 1
    sides = (
        Boxed(step.a, step.a_offset, a, (step.m, depths, matrices), m, element),
        Boxed(step.b, step.b_offset, b, (step.n, depths, matrices), n, element),
    )
    for side in sides:
        if not side.fits or alignment(side.array, side.offset * side.item) % ALIGNED:
            return None
    return sides
