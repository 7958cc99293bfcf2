"""Reductions and scans over an axis that is not contiguous, walked in the order of memory.

    for tile of columns:            what threads share; the accumulators of a tile stay in the L1 cache
        for rows, a few at a time:
            for columns of the tile, a vector at a time:
                accumulators[columns] = fold(accumulators[columns], the few rows)

One nest of loops after the other is done for a tile, so what a later nest needs of an earlier one (the
mean, say, for a variance) is kept in memory of the tile too. `schedule` decides where this pays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ..llvm.builder import Value
from ..llvm.instructions import SCALAR_TYPES
from ..llvm.loops import Values
from ..llvm.reductions import Reduction, reduction
from ..llvm.text import Operand
from ..loop_ir.index import Var, contiguous_strides, linear, of_var
from ..loop_ir.kernel import Array, Nest
from ..scalar import DType
from ..schedule.schedule import Loops

if TYPE_CHECKING:
    from .kernels import KernelEmitter


class TileEmitter:
    """Emits everything that happens at the outer points lo..hi of the last outer loop."""

    def __init__(self, e: KernelEmitter, lo: Value, hi: Value) -> None:
        self.e = e
        self.lo, self.hi = lo, hi
        self.last: Var = e.plan.outer.vars[-1]

    def emit(self) -> None:
        e = self.e
        e.indices.positions[self.last] = self.lo
        for array in self._shared():
            self._share(array)
        for nest, loops in zip(e.kernel.nests, e.plan.inner, strict=True):
            if loops.vars:
                self._nest(nest, loops)
            else:
                self._columns(self._whole_nest(nest, loops))

    def _whole_nest(self, nest: Nest, loops: Loops) -> Callable[[], None]:
        return lambda: self.e.nests.nest(nest, loops)

    # Memory of the tile.

    def _memory(self, dtype: DType) -> Value:
        return self.e.stack(self.e.plan.tile * dtype.itemsize)

    def _shared(self) -> list[Array]:
        """Values that no memory outside of the kernel holds, and that a later nest reads."""
        e = self.e
        home = {s.array: nest for nest in e.kernel.nests for s in nest.stages}
        arrays: dict[Array, None] = {}
        for nest in e.kernel.nests:
            for stage in nest.stages:
                for access in stage.reads:
                    if access.array in e.kernel.local and home[access.array] is not nest:
                        arrays[access.array] = None
        return list(arrays)

    def _share(self, array: Array) -> None:
        """Give an array memory for this tile, addressed as if all of it were there."""
        e = self.e
        strides = contiguous_strides(e.kernel.extents)
        own = [of_var(v) for v in e.kernel.stages[0].dims[: len(strides)]]
        first = e.indices.value(linear(own, strides).substitute(e.indices.env))
        back = 0 - first
        element = "i8" if array.dtype.kind == "b" else SCALAR_TYPES[array.dtype]
        base = e.b.offset(self._memory(array.dtype), back, element)
        e.memory.buffers[array] = (base, strides)

    # Loops.

    def _columns(self, body: Callable[[], None]) -> None:
        """Do `body` for each vector of columns of the tile."""

        def at_columns(_: Values) -> Values:
            body()
            return []

        self.e.loops.vector(self.last, self.lo, self.hi, at_columns)

    def _nest(self, nest: Nest, loops: Loops) -> None:
        e = self.e
        e.indices.env.update(loops.env)
        vector = e.b.width > 1
        folds = [reduction(e.indices, s, vector, True, s.dims[nest.outer :]) for s in nest.stages]
        memory = [[self._memory(d) for d in f.dtypes] for f in folds]

        def address(base: Value, dtype: DType) -> Value:
            column = e.indices.positions[self.last] - self.lo
            element = "i8" if dtype.kind == "b" else SCALAR_TYPES[dtype]
            return e.b.offset(base, column, element)

        def load(fold: Reduction, bases: Sequence[Value]) -> Values:
            return [
                Operand(
                    e.b.load_elements(d, address(b, d), e.b.width, mask=e.b.mask),
                    e.b.width == 1,
                )
                for b, d in zip(bases, fold.dtypes, strict=True)
            ]

        def store(fold: Reduction, bases: Sequence[Value], values: Values) -> None:
            for b, d, v in zip(bases, fold.dtypes, values, strict=True):
                e.b.store_elements(d, e.b.spread(v, d), address(b, d), mask=e.b.mask)

        def begin() -> None:
            for fold, bases in zip(folds, memory, strict=True):
                store(fold, bases, fold.initial())

        def rows(var: Var, first: Value, count: int) -> None:
            def some_rows() -> None:
                values = [load(f, b) for f, b in zip(folds, memory, strict=True)]
                for k in range(count):
                    e.indices.positions[var] = first + k if k else first
                    with e.b.scope():
                        for n, fold in enumerate(folds):
                            values[n] = fold.combine(values[n])
                            if fold.stage.action == "scan":
                                e.stages.keep_running(fold.stage, values[n])
                for fold, bases, new in zip(folds, memory, values, strict=True):
                    store(fold, bases, new)

            self._columns(some_rows)

        def end() -> None:
            for fold, bases in zip(folds, memory, strict=True):
                if fold.stage.action != "scan":
                    e.stages.keep(fold.stage, fold.finish(load(fold, bases)))

        self._columns(begin)
        self._rows(nest, loops.vars, rows)
        self._columns(end)

    def _rows(
        self, nest: Nest, loops: Sequence[Var], rows: Callable[[Var, Value, int], None]
    ) -> None:
        """Walk the inner loops, the last one a few rows at a time."""
        e = self.e
        var, rest = loops[0], loops[1:]
        extent = e.stages.extent(nest, var)
        if rest:

            def step(position: Value, _: Values) -> Values:
                e.indices.positions[var] = position
                self._rows(nest, rest, rows)
                return []

            e.loops.loop(0, extent, 1, [], step)
            return
        together = e.plan.rows

        def some(count: int) -> Callable[[Value, Values], Values]:
            def step(position: Value, _: Values) -> Values:
                rows(var, position, count)
                return []

            return step

        whole = extent - extent % together
        if isinstance(whole, Value) or whole:
            e.loops.loop(0, whole, together, [], some(together))
        if isinstance(whole, Value) or whole != extent:
            e.loops.loop(whole, extent, 1, [], some(1))
