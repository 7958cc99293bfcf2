"""Products of matrices as steps of a program, and where their results stand in loops."""

from __future__ import annotations

import math

from ....ir.record import field, record
from ...loop_ir.index import Index, contiguous_strides, linear, of_var, same
from ...loop_ir.kernel import Array, Kernel, Stage
from ...loop_ir.steps import Matmul, Tiled


@record(frozen=False, eq=False)
class Product(Tiled):
    """A product, and what is done at once with each element of its result: the stages of `epilogue`,
    whose loops are the result's dims. `stored`: others read the result itself.

    With a `total`, the matrices of the batch are parts of sums of so many products, the first parts of
    all sums first; the last parts may be shorter than the others. Operands in `computed` are not in
    memory: a stage over batch, row (or column) and position in the sum says what their elements are.
    """

    matmul: Matmul
    epilogue: Kernel | None = None
    stored: bool = True
    total: int = 0
    kind: str = "dot"
    computed: dict[Array, Stage] = field(default_factory=dict)

    @property
    def reads(self) -> list[Array]:
        own = [*self.computed.values(), *(self.epilogue.stages if self.epilogue else [])]
        arrays = [self.matmul.a, self.matmul.b, *(a.array for s in own for a in s.reads)]
        return [a for a in arrays if a is not self.matmul.c and a not in self.hidden]

    @property
    def writes(self) -> list[Array]:
        own = [s.array for s in self.epilogue.stages] if self.epilogue else []
        arrays = [*own, *([self.matmul.c] if self.stored else [])]
        return [a for a in arrays if a not in self.hidden]

    @property
    def ops(self) -> tuple[str, ...]:
        own = self.epilogue.stages if self.epilogue else []
        before = (op for s in self.computed.values() for op in reversed(s.ops))
        return (*before, self.kind, *(op for s in own for op in reversed(s.ops)))

    @property
    def hidden(self) -> set[Array]:
        """Arrays that are in registers or in shared memory only."""
        return self.computed.keys() | (self.epilogue.local if self.epilogue else set())

    @property
    def bytes_read(self) -> int:
        """Of the operands: each element once."""
        dot = self.matmul
        lie = ((dot.a, dot.m), (dot.b, dot.n))
        there = sum(
            a.dtype.itemsize * dot.batch * n * dot.k for a, n in lie if a not in self.computed
        )
        arrays = {a.array for s in self.computed.values() for a in s.reads}
        return there + sum(a.nbytes for a in arrays)

    @property
    def parts(self) -> int:
        """Into how many parts each sum is cut."""
        return -(-self.total // self.matmul.k) if self.total else 1

    @property
    def arrays(self) -> list[Array]:
        """Everything that its kernel takes a pointer to."""
        return list(dict.fromkeys([*self.reads, *self.writes]))


def dims_of(kernel: Kernel, product: Matmul) -> tuple[list[int], tuple[int, ...]] | None:
    """A kernel's loops in an order in which they walk the whole result as it lies, and trip counts.

    None: some stage does not read the result in this way, or reads other elements than its own.
    """
    order: list[int] | None = None
    for stage in kernel.stages:
        for access in stage.reads:
            if access.array is not product.c:
                continue
            flat = linear(access.index, product.c.strides)
            steps = [flat.coeff(v) if v.extent > 1 else 0 for v in stage.dims]
            if order is None:
                order = sorted(range(len(steps)), key=lambda d: -steps[d])
            shape = tuple(stage.dims[d].extent for d in order)
            want = zip(order, contiguous_strides(shape), strict=True)
            walked = [of_var(stage.dims[d]) * step for d, step in want if stage.dims[d].extent > 1]
            rest = sum(walked, Index()) if math.prod(shape) == product.c.size else None
            if rest is None or not same(flat, rest):
                return None
    return None if order is None else (order, tuple(kernel.extents[d] for d in order))


def rows_and_columns(shape: tuple[int, ...], rows: int) -> int | None:
    """How many dims of a result's shape stand for its rows; None: rows end inside a dim."""
    for split in range(len(shape) + 1):
        if math.prod(shape[:split]) == rows:
            return split
    return None
