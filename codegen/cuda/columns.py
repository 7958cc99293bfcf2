"""Column kernels: reductions of many rows into few columns, several threads to a column.

block:  thread (member, column), WIDTH columns side by side, so that rows are read as they lie
        member m: rows m, m + depth, m + 2 * depth, ...; what the members of a column have come to
        goes through shared memory to lanes of one warp, which fold it by halves
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from ..llvm.builder import Value
from ..llvm.loops import Carried, Values
from ..llvm.reductions import ArgFold, Reduction
from ..llvm.text import Operand
from ..loop_ir.index import Var
from ..loop_ir.kernel import Array, Nest
from ..schedule.schedule import Loops
from .emitter import Word
from .points import PointEmitter
from .warps import WarpEmitter

WIDTH = 32
ROW = WIDTH + 1  # of shared memory: lanes that read down a column meet other banks


class ColumnEmitter(PointEmitter, WarpEmitter):
    """Emits one kernel whose schedule has a `depth`."""

    def body(self) -> None:
        plan = self.layout
        self.holds_back, self.in_loop = True, False
        self.depth = plan.depth
        self.env.update(plan.outer.env)
        self.column = self.thread() & WIDTH - 1
        self.member = self.thread() >> WIDTH.bit_length() - 1
        first = self.block_number() * WIDTH
        q = first + self.widened(self.column)
        self.here = (
            ""  # whether the thread has a column of its own; if not, it repeats the last one
        )
        if plan.units % WIDTH:
            self.here = q < plan.units
            q = self.least(q, plan.units - 1)
        self.unseen: set[Array] = set()  # written, not yet known to be seen by all members
        *others, last = plan.outer.vars
        self._unit(q, others, last)

    def _nest(self, nest: Nest, loops: Loops) -> None:
        if any(
            a.array in self.unseen and a.array in self.passed for s in nest.stages for a in s.reads
        ):
            self._flush()
            self.barrier()
            self.unseen.clear()
        super()._nest(nest, loops)
        self.unseen |= {s.array for s in nest.stages}

    def initial(self, fold: Reduction, nest: Nest) -> Values:
        starts = fold.initial()
        if isinstance(fold, ArgFold):  # the place of a best element is the member's first
            rest = math.prod(nest.extents[1:])
            first = self.member * rest
            if starts[1].type == "i64":
                first = first.zext("i64")
            starts[1] = starts[1]._replace(text=first)
        return starts

    def _walk(
        self, loops: Sequence[Var], nest: Nest, values: Values, body: Callable[[Values], Values]
    ) -> Values:
        if self.in_loop:
            return super()._walk(loops, nest, values, body)
        var, rest = loops[0], loops[1:]
        self.in_loop = True

        def step(position: Word, carried: Values) -> Values:
            self.positions[var] = position
            return self._walk(rest, nest, carried, body) if rest else body(carried)

        start = self.widened(self.member)
        ends = self._loop(start, self.extent(nest, var), self.depth, values, step)
        self.in_loop = False
        return ends

    def finished(self, fold: Reduction, ends: Sequence[Carried], looped: bool) -> Operand:
        if not looped:
            return super().finished(fold, ends, looped)
        depth = self.depth
        memory = [self.shared(d, depth * ROW) for d in fold.dtypes]
        own = self.member * ROW + self.column
        self._put(fold, memory, [c.text for c in ends], own)
        self.barrier()
        # Lane k takes member k % depth of a column, and has one member of every warp's columns.
        member = self.column & depth - 1
        first = self.member * (WIDTH // depth)
        side = self.column >> depth.bit_length() - 1
        column = first + side
        place = member * ROW + column
        total = self.fold_lanes(fold, self._get(fold, memory, place), depth)
        results = [self.shared(d, WIDTH) for d in fold.dtypes[-1:]]
        with self.when(member.eq(0)):
            self._put(fold, results, total[-1:], column)
        self.barrier()
        return fold.result(Operand(self._get(fold, results, self.column)[-1], True))

    def _put(
        self, fold: Reduction, memory: Sequence[Word], texts: Sequence[Value], place: Value
    ) -> None:
        dtypes = fold.dtypes[-len(memory) :]
        for start, text, dtype in zip(memory, texts, dtypes, strict=True):
            self.store_elements(dtype, text, self.in_shared(dtype, start, place), 1)

    def _get(self, fold: Reduction, memory: Sequence[Value], place: Value) -> list[Value]:
        dtypes = fold.dtypes[-len(memory) :]
        return [
            self.load_elements(dtype, self.in_shared(dtype, start, place), 1)
            for start, dtype in zip(memory, dtypes, strict=True)
        ]

    def _flush(self) -> None:
        """Inside of loops members store elements of their own, elsewhere the first stores for all."""
        if not self.stored and not self.single:
            return
        conditions: list[Word] = [self.here] if self.here else []
        if not self.in_loop:
            conditions.append(self.member.eq(0))
        if not conditions:
            super()._flush()
            return
        both = conditions[0]
        for other in conditions[1:]:
            both = both & other
        with self.when(both):
            super()._flush()
