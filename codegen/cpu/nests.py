"""The nests of a kernel at one outer point: loops around stages, whose values are folded or stored."""

from __future__ import annotations

from collections.abc import Sequence

from ..llvm.loops import Values
from ..llvm.stages import Body, StageEmitter
from ..llvm.text import LINE
from ..loop_ir.index import Var
from ..loop_ir.kernel import Access, Nest
from ..schedule.schedule import Loops, Schedule


class NestEmitter:
    """Emits what a scheduled kernel does at one outer point, or at a vector of them."""

    def __init__(self, stages: StageEmitter, plan: Schedule) -> None:
        self.stages, self.loops, self.memory = stages, stages.loops, stages.memory
        self.indices, self.b = stages.indices, stages.b
        self.kernel, self.plan = stages.kernel, plan

    def row(self) -> None:
        """Everything that happens at one outer point (or one vector of them)."""
        for nest, loops in zip(self.kernel.nests, self.plan.inner, strict=True):
            self.nest(nest, loops)

    def nest(self, nest: Nest, loops: Loops) -> None:
        """One nest at this outer point: loops around its stages, then the ends of its reductions."""
        self.indices.env.update(loops.env)
        vector = self.b.width > 1 and (self.plan.mode == "outer" or bool(loops.vars))
        if loops.vars:
            self.stages.hoist(nest)
        reductions = [self.stages.reduction(s, nest, vector) for s in nest.stages]
        starts: Values = [c for r in reductions if r is not None for c in r.initial()]

        def body(values: Values) -> Values:
            results: Values = []
            position = 0
            self._fetch_ahead(nest)
            for stage, fold in zip(nest.stages, reductions, strict=True):
                if fold is None:
                    self.stages.store_stage(stage)
                    continue
                old = values[position : position + fold.count]
                position += fold.count
                self.stages.mark(stage)
                new = fold.combine(old)
                results += new
                if stage.action == "scan":
                    self.stages.keep_running(stage, new)
            return results

        ends = self.walk(loops.vars, nest, starts, body) if loops.vars else body(starts)
        position = 0
        for stage, fold in zip(nest.stages, reductions, strict=True):
            if fold is None or stage.action == "scan":
                position += fold.count if fold else 0
                continue
            self.stages.mark(stage)
            result = fold.finish(ends[position : position + fold.count])
            position += fold.count
            self.stages.keep(stage, result)

    def walk(self, loops: Sequence[Var], nest: Nest, values: Values, body: Body) -> Values:
        """Run `body` over the inner loops, the last one in vectors where the schedule says so."""

        def vectors(var: Var, carried: Values, inside: Body) -> Values:
            return self.loops.vector(var, 0, self.stages.extent(nest, var), inside, carried)

        wide = self.plan.mode == "inner" and self.b.width > 1
        return self.stages.walk(loops, nest, values, body, vectors if wide else None)

    def _fetch_ahead(self, nest: Nest) -> None:
        if nest is self.kernel.nests[-1]:
            for access in self.plan.ahead:
                self._fetch(access)

    def _fetch(self, access: Access) -> None:
        """Ask for what the first nest reads of the next row, for this iteration of the loop."""
        row = self.plan.outer.vars[-1]
        here = self.indices.positions[row]
        self.indices.positions[row] = here + 1
        base, flat = self.memory.locate(access.array, access.index)
        dtype = access.array.dtype
        first = self.b.element_at(
            dtype, base, self.indices.value(flat.substitute(self.indices.env))
        )
        self.indices.positions[row] = here
        for line in range(0, self.b.width * dtype.itemsize, LINE):
            self.b.prefetch(self.b.offset(first, line), 1)
