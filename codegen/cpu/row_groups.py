"""Light reductions and scans over rows, a few rows at a time.

    for rows, a few at a time:
        for columns, a vector at a time:
            one accumulator per row = fold(it, that row's columns)
        what follows on a row, for one row after the other
    for the rows that are left: each by itself

Several streams of memory are in flight, what the rows share (the vector of a product) is loaded once,
and running sums, of which each waits for the one before, wait together. A row's accumulators are what
they are when it is walked alone, so that its result does not depend on the rows beside it: not on where
threads cut. `schedule` decides where this pays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..llvm.builder import Number, Value
from ..llvm.loops import Values
from ..loop_ir.index import Var

if TYPE_CHECKING:
    from .kernels import KernelEmitter


class RowGroupEmitter:
    """Emits the outer points lo..hi of a kernel whose only loops are those of its first nest."""

    def __init__(self, e: KernelEmitter, lo: Value, hi: Value) -> None:
        self.e = e
        self.lo, self.hi = lo, hi
        self.positions: list[dict[Var, Value | Number]] = []  # of the outer loops, for each row

    def emit(self) -> None:
        e, together = self.e, self.e.plan.rows
        length = self.hi - self.lo
        left = length % together
        whole = self.hi - left
        e.loops.loop(self.lo, whole, together, [], self._group)
        e.loops.rows(e.plan.outer.vars, whole, self.hi, e.nests.row)

    def _group(self, first: Value, _: Values) -> Values:
        e, outer = self.e, self.e.plan.outer.vars
        self.positions = []
        for k in range(e.plan.rows):
            e.indices.stand_at(outer, first + k if k else first)
            self.positions.append({v: e.indices.positions[v] for v in outer})
        (nest, loops), *rest = zip(e.kernel.nests, e.plan.inner, strict=True)
        e.indices.env.update(loops.env)
        folds = [
            f for s in nest.stages if (f := e.stages.reduction(s, nest, e.b.width > 1)) is not None
        ]
        starts = [c for _ in self.positions for f in folds for c in f.initial()]
        count = len(starts) // len(self.positions)

        def body(values: Values) -> Values:
            new: Values = []
            for k, position in enumerate(self.positions):
                e.indices.positions.update(position)
                at = k * count
                with e.b.scope():
                    for fold in folds:
                        now = fold.combine(values[at : at + fold.count])
                        if fold.stage.action == "scan":
                            e.stages.keep_running(fold.stage, now)
                        new += now
                        at += fold.count
            return new

        ends = e.nests.walk(loops.vars, nest, starts, body)
        for k, position in enumerate(self.positions):
            e.indices.positions.update(position)
            at = k * count
            with e.b.scope():
                for fold in folds:
                    if fold.stage.action != "scan":
                        e.stages.keep(fold.stage, fold.finish(ends[at : at + fold.count]))
                    at += fold.count
                for later, inner in rest:
                    e.nests.nest(later, inner)
        return []
