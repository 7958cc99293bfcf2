"""The nests of a kernel at one outer point: loops around stages, whose values are folded or stored."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..loop_ir.index import Var, of_var
from ..loop_ir.kernel import Kernel, Nest, Stage
from ..math import EXPANSIONS
from ..math.folds import COMBINE
from ..schedule.schedule import Loops, Schedule
from ..schedule.survey import accesses, invariants
from .accesses import AccessEmitter
from .builder import Value
from .loops import Values
from .reductions import Reduction, apply, reduction
from .text import Operand


class NestEmitter(AccessEmitter):
    """Emits what a scheduled kernel does at one outer point, or at a vector of them."""

    kernel: Kernel
    plan: Schedule

    def _row(self) -> None:
        """Everything that happens at one outer point (or one vector of them)."""
        for nest, loops in zip(self.kernel.nests, self.plan.inner, strict=True):
            self._nest(nest, loops)

    # Nests.

    def _nest(self, nest: Nest, loops: Loops) -> None:
        self.env.update(loops.env)
        vector = self.width > 1 and (
            self.plan.mode == "outer" or (bool(loops.vars) and self._vectorises(nest))
        )
        if loops.vars:
            self._hoist(nest)
        reductions = [self._reduction(s, nest, vector) for s in nest.stages]
        starts: Values = [c for r in reductions if r is not None for c in r.initial()]

        def body(values: Values) -> Values:
            results: Values = []
            position = 0
            self.fetch_ahead(nest)
            for stage, fold in zip(nest.stages, reductions, strict=True):
                if fold is None:
                    self._store_stage(stage)
                    continue
                old = values[position : position + fold.count]
                position += fold.count
                new = fold.combine(old)
                results += new
                if stage.action == "scan":
                    self.keep_running(stage, new)
            return results

        ends = self._walk(loops.vars, nest, starts, body) if loops.vars else body(starts)
        position = 0
        for stage, fold in zip(nest.stages, reductions, strict=True):
            if fold is None or stage.action == "scan":
                position += fold.count if fold else 0
                continue
            result = fold.finish(ends[position : position + fold.count])
            position += fold.count
            self.keep(stage, result)

    def _hoist(self, nest: Nest) -> None:
        """Compute what does not change in the nest's loops before them."""
        made = {s.array for s in nest.stages}
        for stage in nest.stages:
            if stage.action == "update":
                continue
            for expr in invariants(stage, set(stage.dims[nest.outer :])):
                if made.isdisjoint(access.array for access in accesses(expr)):
                    self.operand(expr)

    def _reduction(self, stage: Stage, nest: Nest, vector: bool) -> Reduction | None:
        if stage.action not in ("reduce", "scan"):
            return None
        lanewise = self.plan.mode == "outer"
        return reduction(self, stage, vector, lanewise, stage.dims[nest.outer :])

    def _walk(
        self,
        loops: Sequence[Var],
        nest: Nest,
        values: Values,
        body: Callable[[Values], Values],
    ) -> Values:
        """Run `body` over the inner loops, outermost first, carrying `values`."""
        var, rest = loops[0], loops[1:]
        if not rest and self.plan.mode == "inner" and self.width > 1 and self._vectorises(nest):
            hi = self.extent(nest, var)
            return self._vector(var, "0", hi, body, values)

        def step(position: Value, carried: Values) -> Values:
            self.positions[var] = position
            return self._walk(rest, nest, carried, body) if rest else body(carried)

        return self._loop("0", self.extent(nest, var), 1, values, step)

    def _vectorises(self, nest: Nest) -> bool:
        """An ordered update runs its last loop in vectors only if that loop is not part of its order."""
        return all(s.action != "update" or len(s.dims) > s.kept for s in nest.stages)

    def extent(self, nest: Nest, var: Var) -> str:
        """The trip count of an inner loop: the last chunk of a split reduction may be shorter."""
        stage = nest.stages[0]
        chunks = stage.chunks
        if chunks is None or self.env[stage.dims[stage.kept]] != of_var(var):
            return str(var.extent)
        start = self.index_text(self.env[stage.dims[chunks.axis]] * chunks.length)
        left = chunks.total - start
        return self.least(left, str(chunks.length))

    def fetch_ahead(self, nest: Nest) -> None:
        """Ask for memory that is going to be read, if the schedule says that this nest should."""

    # Stages.

    def _store_stage(self, stage: Stage) -> None:
        if stage.action == "update":
            self._update(stage)
            return
        value = self.operand(stage.value)
        self.keep(stage, value)

    def keep(self, stage: Stage, value: Operand) -> None:
        """Remember a stage's value in a register, and write it to memory if it has any."""
        self.registers[stage.array] = value
        if stage.array not in self.kernel.local or stage.array in self.buffers:
            self._store(stage, value)

    def keep_running(self, stage: Stage, values: Values) -> None:
        """Write the value that a scan has come to."""
        self._store(stage, Operand(values[0].text, values[0].uniform))

    def _store(self, stage: Stage, value: Operand) -> None:
        base, flat = self.place(stage.array, stage.index)
        self._write(stage.array.dtype, base, flat, value)

    def _update(self, stage: Stage) -> None:
        base, flat = self.place(stage.array, stage.index)
        value = self.operand(stage.value)
        if stage.op != "set":
            dtype = stage.array.dtype
            old = self._read(dtype, base, flat, None)
            function = EXPANSIONS[COMBINE[stage.op]]
            (value,) = apply(self, lambda a, b: [function(a, b)], [old, value], [dtype, dtype])
        self._write(stage.array.dtype, base, flat, value)
