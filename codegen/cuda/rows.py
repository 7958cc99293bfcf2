"""Row kernels: a team of threads for each row, the nests of which follow one another.

    for each nest:  thread t of the team: units t, t + team, t + 2 * team, ... of the row,
                    a unit being the neighbours that one access of 128 bits holds
                    folds: each thread for itself, then the team together

If a thread has few elements of a row, all is written out: what a later nest wants again of an element
is still in the registers of the thread that it belongs to. Otherwise nests are loops, and what passes
from one to the other goes through memory.
"""

from __future__ import annotations

import math

from ..llvm.builder import Condition, Value
from ..llvm.loops import Values
from ..llvm.reductions import ArgFold, Reduction
from ..llvm.text import Operand
from ..loop_ir.index import Var
from ..loop_ir.kernel import Array, Nest, Stage
from ..schedule.schedule import Loops
from .emitter import Word
from .lanes import LaneEmitter
from .teams import Team


class RowEmitter(LaneEmitter):
    """Emits one kernel under a schedule of the form "rows"."""

    def body(self) -> None:
        """The kernel, nest by nest: each row by its team, which waits before it reads what it wrote."""
        plan = self.layout
        assert plan.row is not None
        self.held, self.unrolled = plan.row.held, plan.row.unrolled
        self.team = Team(self.b, self.indices, plan.row.team)
        self.memory.holds_back = self.memory.by_points = True
        self.whole: dict[Array, Operand] = {}  # values of the row
        self.parts: dict[tuple[int, ...], list[dict[Array, Operand]]] = {}  # of its elements
        self.indices.env.update(plan.outer.env)
        self.team.stand_at_own_row(plan.outer.vars, plan.threads)
        self.memory.registers = self.whole
        fresh: set[Array] = set()  # written by this team, not yet known to be seen by all of it
        for nest, loops in zip(self.kernel.nests, plan.inner, strict=True):
            if any(
                a.array in fresh and a.array in plan.row.passed
                for s in nest.stages
                for a in s.reads
            ):
                self.team.meet()
                fresh.clear()
            self._nest(nest, loops)
            fresh |= {s.array for s in nest.stages}

    # Nests.

    def _nest(self, nest: Nest, loops: Loops) -> None:
        self.indices.env.update(loops.env)
        if not loops.vars:
            for stage in nest.stages:
                fold = self.stages.reduction(stage, nest, False)
                if fold is None:
                    self.stages.store_stage(stage)
                else:
                    self.stages.keep(stage, fold.finish(fold.combine(fold.initial())))
            self._store_whole()
            return
        self.stages.hoist(nest)
        folds = [self.stages.reduction(s, nest, False) for s in nest.stages]
        ends = self._elements(nest, loops, folds)
        self.memory.registers = self.whole
        position = 0
        for stage, fold in zip(nest.stages, folds, strict=True):
            if fold is not None:
                self.stages.keep(
                    stage, self.team.folded(fold, ends[position : position + fold.count])
                )
                position += fold.count
        self._store_whole()

    def _store_whole(self) -> None:
        """Values of the row are stored by the first of the team."""
        if self.memory.single or self.memory.stored:
            first = self.team.member.eq(0)
            with self.b.where(self.b.both(first, self.team.here)):
                self.memory.flush()

    def _elements(self, nest: Nest, loops: Loops, folds: list[Reduction | None]) -> Values:
        """Every element of the row, each in the thread that it belongs to."""
        plan = self.layout
        *others, last = loops.vars
        lanes = plan.lanes
        units = math.prod(v.extent for v in loops.vars) // lanes
        extents = (*others, Var("unit", last.extent // lanes))
        left = self._ragged(nest)
        passes, whole = -(-units // self.team.size), units // self.team.size
        if left:
            whole = 0
        parts = self.parts.setdefault(nest.extents, [{} for _ in range(passes * lanes)])
        values = self._starts(folds, extents, last)
        if self.unrolled:
            for k in range(passes):
                points = parts[k * lanes : (k + 1) * lanes]
                at = self.team.member + k * self.team.size
                values = self._pass(
                    nest, folds, extents, last, at, k >= whole, points, values, units
                )
            return values

        def step(position: Word, carried: Values, partial: bool = False) -> Values:
            at = self.b.narrowed(position) + self.team.member
            points: list[dict[Array, Operand]] = [{} for _ in range(lanes)]
            return self._pass(nest, folds, extents, last, at, partial, points, carried, units)

        stop = whole * self.team.size
        if whole:
            values = self.loops.loop(0, stop, self.team.size, values, step)
        if left:
            end = passes * self.team.size
            return self.loops.loop(0, end, self.team.size, values, lambda p, v: step(p, v, True))
        return step(stop, values, True) if whole < passes else values

    def _starts(self, folds: list[Reduction | None], loops: tuple[Var, ...], last: Var) -> Values:
        """What accumulators start from. The index of a best element is that of the thread's first."""
        starts: Values = []
        for fold in folds:
            if fold is None:
                continue
            initial = fold.initial()
            if isinstance(fold, ArgFold):
                first = self.team.member * self.layout.lanes
                if initial[1].value.type == "i64":
                    first = first.zext("i64")
                initial[1] = initial[1]._replace(value=first)
            starts += initial
        return starts

    def _pass(
        self,
        nest: Nest,
        folds: list[Reduction | None],
        loops: tuple[Var, ...],
        last: Var,
        unit: Value,
        partial: bool,
        points: list[dict[Array, Operand]],
        values: Values,
        units: int,
    ) -> Values:
        """One unit of each thread. In a partial pass those beyond the end repeat the last one."""
        valid: Condition | None = None
        if partial:
            valid = unit < units
            unit = self.b.select(valid, unit, units - 1)
        self.indices.stand_at(loops, self.b.widened(unit))
        self.memory.along, self.memory.lanes = last, self.layout.lanes
        first = self.indices.positions[loops[-1]]
        first = first * self.memory.lanes if self.memory.lanes > 1 else first
        self.memory.first = self.indices.positions[last] = first
        valid = self._inside(nest, valid)
        self.memory.points = points
        for point in points:
            point.update(self.whole)
        values = list(values)
        for _ in self.memory.each():
            position = 0
            for stage, fold in zip(nest.stages, folds, strict=True):
                if fold is None:
                    self.stages.store_stage(stage)
                    continue
                old = values[position : position + fold.count]
                new = fold.combine(old)
                if valid is not None:
                    new = [self._chosen(valid, a, b) for a, b in zip(new, old, strict=True)]
                values[position : position + fold.count] = new
                position += fold.count
        guard = self.b.both(valid, self.team.here)
        if self.memory.stored or self.memory.single:
            with self.b.where(guard):
                self.memory.flush()
        for point in points:
            for array in [a for a in point if a not in self.held]:
                del point[array]
        self.memory.lanes = 1
        self.exprs.forget()
        return values

    def _chosen(self, condition: Condition, new: Operand, old: Operand) -> Operand:
        text = self.b.select(condition, new.value, old.value)
        return new._replace(value=text)

    # The last chunk of a reduction that was cut may be shorter than the others.

    def _ragged(self, nest: Nest) -> Stage | None:
        stage = nest.stages[0]
        return stage if stage.chunks is not None else None

    def _inside(self, nest: Nest, valid: Condition | None) -> Condition | None:
        """Whether this thread's unit lies in the chunk; one that does not repeats the chunk's last."""
        stage = self._ragged(nest)
        if stage is None or stage.chunks is None:
            return valid
        chunks = stage.chunks
        var = next(iter(self.indices.env[stage.dims[stage.outer]].terms))
        assert isinstance(var, Var), "the loop that is cut is a loop of its own"
        start = self.indices.value(self.indices.env[stage.dims[chunks.axis]] * chunks.length)
        left = chunks.total - start
        here = self.indices.positions[var] < left
        if var is self.memory.along:
            first = self.indices.least(self.indices.positions[var], left - self.memory.lanes)
            self.memory.first = self.indices.positions[var] = first
        else:
            rest = left - 1
            self.indices.positions[var] = self.indices.least(self.indices.positions[var], rest)
        return self.b.both(valid, here)
