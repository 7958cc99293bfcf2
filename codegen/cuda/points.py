"""Kernels whose outer points are shared out among threads: the form that every kernel can take.

thread q: points lanes * q .. lanes * q + lanes - 1 of the last outer loop, and their inner loops
"""

from __future__ import annotations

from collections.abc import Sequence

from ..llvm.builder import Condition, Value
from ..llvm.loops import Values
from ..llvm.reductions import Reduction
from ..llvm.stages import Body
from ..llvm.text import Operand
from ..loop_ir.index import Var
from ..loop_ir.kernel import Nest, Stage
from ..schedule.schedule import Loops
from .emitter import Word
from .lanes import LaneEmitter
from .neighbours import Beside, at_neighbour, group_of, offsets


class PointEmitter(LaneEmitter):
    """Emits a kernel in which a thread computes a few neighbouring points, all of each."""

    def body(self) -> None:
        """The body of the kernel: this thread's points, if it has any."""
        plan = self.layout
        self.indices.env.update(plan.outer.env)
        *others, last = plan.outer.vars
        start = self.b.block_number() * plan.threads
        q = start + self.b.widened(self.b.thread())
        if plan.units == plan.threads * plan.blocks:
            self._unit(q, others, last)
        else:
            with self.b.when(q < plan.units):
                self._unit(q, others, last)

    def _unit(self, q: Word, others: list[Var], last: Var) -> None:
        """The points of a thread: neighbours along some of the loops, lanes along the last."""
        chosen = self.layout.beside
        unit = Var("unit", -(-last.extent // self.layout.lanes))
        groups = {var: group_of(var, times) for var, times in chosen}
        self.indices.stand_at((*(groups.get(v, v) for v in others), unit), q)
        if not chosen:
            self._lane_or_lanes(unit, last)
            return
        starts = []
        inside: Condition | None = None
        for var, times in chosen:
            start = self.indices.positions[groups[var]] * times
            starts.append(start)
            if var.extent % times:
                last_one = var.extent - times
                here = start <= last_one
                inside = self.b.both(inside, here)
        if inside is None:
            self._all_neighbours(groups, unit, last)
            return
        with self.b.when(inside):
            self._all_neighbours(groups, unit, last)
        with self.b.when(self.b.no(inside)):
            self._one_by_one(chosen, starts, unit, last)

    def _all_neighbours(self, groups: dict[Var, Var], unit: Var, last: Var) -> None:
        """The points of a thread, written out."""
        outside, chosen = dict(self.indices.env), self.layout.beside
        for offset in offsets(chosen):
            self.indices.env.update(at_neighbour(self.layout.outer.env, groups, chosen, offset))
            self.exprs.forget()
            self._lane_or_lanes(unit, last)
        self.indices.env = outside
        self.exprs.forget()

    def _one_by_one(self, chosen: Beside, starts: Sequence[Word], unit: Var, last: Var) -> None:
        """The points of a thread that has fewer than others."""
        if not chosen:
            self.exprs.forget()
            self._lane_or_lanes(unit, last)
            return
        (var, times), *others = chosen

        def step(position: Word, values: Values) -> Values:
            self.indices.positions[var] = position
            self._one_by_one(tuple(others), starts[1:], unit, last)
            return values

        after = starts[0] + times
        self.loops.loop(starts[0], self.indices.least(after, var.extent), 1, [], step)

    def _lane_or_lanes(self, unit: Var, last: Var) -> None:
        lanes, n = self.layout.lanes, last.extent
        if lanes == 1:
            self.indices.positions[last] = self.indices.positions[unit]
            self._row()
            return
        first = self.indices.positions[unit] * lanes
        if n % lanes == 0:
            self._together(first, lanes)
            return
        with self.b.when(first <= n - lanes):
            self._together(first, lanes)
        with self.b.when(first > n - lanes):

            def one(position: Value, values: Values) -> Values:
                self.indices.positions[last] = position
                self.exprs.forget()
                self._row()
                return values

            self.loops.loop(first, n, 1, [], one)

    def _together(self, first: Word, lanes: int) -> None:
        """Everything for a whole group of points."""
        self.memory.lanes, self.memory.first = lanes, first
        self.memory.points = [{} for _ in range(lanes)]
        self.indices.positions[self.memory.along] = first
        self._row()
        self.memory.lanes, self.memory.points = 1, [self.memory.registers]
        self.exprs.forget()

    # Nests, for all lanes at once.

    def _row(self) -> None:
        for nest, loops in zip(self.kernel.nests, self.layout.inner, strict=True):
            self._nest(nest, loops)
        self.flush()
        for point in self.memory.points:
            point.clear()

    def _nest(self, nest: Nest, loops: Loops) -> None:
        self.indices.env.update(loops.env)
        folds = [self.stages.reduction(s, nest, False) for s in nest.stages]
        starts: Values = []
        for _ in self.memory.each():
            if loops.vars:
                self.stages.hoist(nest)
            starts += [c for fold in folds if fold is not None for c in self.initial(fold, nest)]

        def body(values: Values) -> Values:
            results: Values = []
            for _ in self.memory.each():
                for stage, fold in zip(nest.stages, folds, strict=True):
                    if fold is None:
                        self.store_stage(stage)
                        continue
                    at = len(results)
                    results += fold.combine(values[at : at + fold.count])
                    if stage.action == "scan":
                        self.stages.keep_running(stage, results[at:])
            if loops.vars:
                self.flush()
            return results

        ends = self.walk(loops.vars, nest, starts, body) if loops.vars else body(starts)
        position = 0
        for _ in self.memory.each():
            for stage, fold in zip(nest.stages, folds, strict=True):
                if fold is None:
                    continue
                if stage.action != "scan":
                    own = ends[position : position + fold.count]
                    self.stages.keep(stage, self.finished(fold, own, bool(loops.vars)))
                position += fold.count

    # What some kernels do in another way.

    def walk(self, loops: Sequence[Var], nest: Nest, values: Values, body: Body) -> Values:
        """Run `body` over the inner loops, outermost first, carrying `values`."""
        return self.stages.walk(loops, nest, values, body)

    def store_stage(self, stage: Stage) -> None:
        """What a stage without a fold does at a point."""
        self.stages.store_stage(stage)

    def flush(self) -> None:
        """Store what has been kept back."""
        self.memory.flush()

    def initial(self, fold: Reduction, nest: Nest) -> Values:
        """What a fold starts from."""
        return fold.initial()

    def finished(self, fold: Reduction, ends: Sequence[Operand], looped: bool) -> Operand:
        """The result of a fold that has come to `ends`, in loops or at a single point."""
        return fold.finish(ends)
