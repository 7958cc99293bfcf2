"""Column kernels: reductions of many rows into few columns, several threads to a column.

block:  thread (member, column), WIDTH columns side by side, so that rows are read as they lie
        member m: rows m, m + depth, m + 2 * depth, ...; what the members of a column have come to
        goes through shared memory to lanes of one warp, which fold it by halves
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..llvm.builder import Condition, Value
from ..llvm.loops import Values
from ..llvm.reductions import ArgFold, Reduction
from ..llvm.stages import Body
from ..llvm.text import Operand
from ..loop_ir.index import Var
from ..loop_ir.kernel import Array, Nest
from ..schedule.schedule import Loops
from .emitter import Word
from .points import PointEmitter
from .warps import Warp

WIDTH = 32
ROW = WIDTH + 1  # of shared memory: lanes that read down a column meet other banks


class ColumnEmitter(PointEmitter):
    """Emits one kernel whose schedule has a `depth`."""

    def body(self) -> None:
        """The kernel: a thread folds every `depth`-th row of a column; members meet in shared memory."""
        plan = self.layout
        self.memory.holds_back, self.in_loop = True, False
        self.depth = plan.depth
        self.indices.env.update(plan.outer.env)
        self.column = self.b.thread() & WIDTH - 1
        self.member = self.b.thread() >> WIDTH.bit_length() - 1
        first = self.b.block_number() * WIDTH
        q = first + self.b.widened(self.column)
        # Whether the thread has a column of its own, if that is in doubt; if not, it repeats the last.
        self.here: Condition | None = None
        if plan.units % WIDTH:
            self.here = q < plan.units
            q = self.indices.least(q, plan.units - 1)
        self.unseen: set[Array] = set()  # written, not yet known to be seen by all members
        *others, last = plan.outer.vars
        self._unit(q, others, last)

    def _nest(self, nest: Nest, loops: Loops) -> None:
        if any(
            a.array in self.unseen and a.array in self.b.passed
            for s in nest.stages
            for a in s.reads
        ):
            self.flush()
            self.b.barrier()
            self.unseen.clear()
        super()._nest(nest, loops)
        self.unseen |= {s.array for s in nest.stages}

    def initial(self, fold: Reduction, nest: Nest) -> Values:
        starts = fold.initial()
        if isinstance(fold, ArgFold):  # the index of a best element is the member's first
            rest = math.prod(nest.extents[1:])
            first = self.member * rest
            if starts[1].value.type == "i64":
                first = first.zext("i64")
            starts[1] = starts[1]._replace(value=first)
        return starts

    def walk(self, loops: Sequence[Var], nest: Nest, values: Values, body: Body) -> Values:
        """A nest's loops, of the first of which this member does every `depth`-th iteration."""
        var, rest = loops[0], loops[1:]
        self.in_loop = True

        def step(position: Word, carried: Values) -> Values:
            self.indices.positions[var] = position
            return self.stages.walk(rest, nest, carried, body) if rest else body(carried)

        start = self.b.widened(self.member)
        ends = self.loops.loop(start, self.stages.extent(nest, var), self.depth, values, step)
        self.in_loop = False
        return ends

    def finished(self, fold: Reduction, ends: Sequence[Operand], looped: bool) -> Operand:
        """The fold of all members' ends, by warps that take the members of several columns."""
        if not looped:
            return super().finished(fold, ends, looped)
        depth, warp = self.depth, Warp(self.b, self.exprs)
        memory = [self.b.shared(d, depth * ROW) for d in fold.dtypes]
        own = self.member * ROW + self.column
        self._put(fold, memory, [c.value for c in ends], own)
        self.b.barrier()
        # Lane k takes member k % depth of a column, and has one member of every warp's columns.
        member = self.column & depth - 1
        first = self.member * (WIDTH // depth)
        side = self.column >> depth.bit_length() - 1
        column = first + side
        slot = member * ROW + column
        total = warp.fold_lanes(fold, self._get(fold, memory, slot), depth)
        results = [self.b.shared(d, WIDTH) for d in fold.dtypes[-1:]]
        with self.b.when(member.eq(0)):
            self._put(fold, results, total[-1:], column)
        self.b.barrier()
        return fold.result(Operand(self._get(fold, results, self.column)[-1], True))

    def _put(
        self, fold: Reduction, memory: Sequence[Value], texts: Sequence[Value], slot: Value
    ) -> None:
        dtypes = fold.dtypes[-len(memory) :]
        for start, text, dtype in zip(memory, texts, dtypes, strict=True):
            self.b.store_elements(dtype, text, self.b.in_shared(dtype, start, slot))

    def _get(self, fold: Reduction, memory: Sequence[Value], slot: Value) -> list[Value]:
        dtypes = fold.dtypes[-len(memory) :]
        return [
            self.b.load_elements(dtype, self.b.in_shared(dtype, start, slot), 1)
            for start, dtype in zip(memory, dtypes, strict=True)
        ]

    def flush(self) -> None:
        """Inside of loops members store elements of their own, elsewhere the first stores for all."""
        if not self.memory.stored and not self.memory.single:
            return
        stores = self.here
        if not self.in_loop:
            stores = self.b.both(stores, self.member.eq(0))
        with self.b.where(stores):
            super().flush()
