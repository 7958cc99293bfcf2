"""Column kernels: reductions of many rows into few columns, several threads to a column.

block:  thread (member, column), WIDTH columns side by side, so that rows are read as they lie
        member m: rows m, m + depth, m + 2 * depth, ...; what the members of a column have come to
        goes through shared memory, and every one of them folds it, in the same order
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from ..index import Var
from ..kernel import Array, Nest
from ..llvm.loops import Carried, Values
from ..llvm.reductions import ArgFold, Reduction, apply
from ..llvm.text import Operand
from ..schedule import Loops
from .points import PointEmitter

WIDTH = 32


class ColumnEmitter(PointEmitter):
    """Emits one kernel whose schedule has a `depth`."""

    def body(self) -> None:
        plan, ty = self.layout, self.index_type
        self.holds_back, self.in_loop = True, False
        self.depth = plan.depth
        self.env.update(plan.outer.env)
        self.column = self.value_of(f"and i32 {self.thread()}, {WIDTH - 1}")
        self.member = self.value_of(f"lshr i32 {self.thread()}, {WIDTH.bit_length() - 1}")
        first = self.value_of(f"mul {ty} {self.block_number()}, {WIDTH}")
        q = self.value_of(f"add {ty} {first}, {self.widened(self.column)}")
        self.here = (
            ""  # whether the thread has a column of its own; if not, it repeats the last one
        )
        if plan.units % WIDTH:
            self.here = self.value_of(f"icmp slt {ty} {q}, {plan.units}")
            q = self.least(q, str(plan.units - 1))
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
            first = self.value_of(f"mul i32 {self.member}, {rest}")
            if starts[1].type == "i64":
                first = self.value_of(f"zext i32 {first} to i64")
            starts[1] = starts[1]._replace(text=first)
        return starts

    def _walk(
        self, loops: Sequence[Var], nest: Nest, values: Values, body: Callable[[Values], Values]
    ) -> Values:
        if self.in_loop:
            return super()._walk(loops, nest, values, body)
        var, rest = loops[0], loops[1:]
        self.in_loop = True

        def step(position: str, carried: Values) -> Values:
            self.at[var] = position
            return self._walk(rest, nest, carried, body) if rest else body(carried)

        start = self.widened(self.member)
        ends = self._loop(start, self.extent(nest, var), self.depth, values, step)
        self.in_loop = False
        return ends

    def finished(self, fold: Reduction, ends: Sequence[Carried], looped: bool) -> Operand:
        if not looped:
            return super().finished(fold, ends, looped)
        memory = [self.shared(d, self.depth * WIDTH) for d in fold.dtypes]
        for place, carried, dtype in zip(memory, ends, fold.dtypes, strict=True):
            self.store(dtype, carried.text, self.in_shared(dtype, place, self.thread()), 1)
        self.barrier()
        total: list[Operand] = []
        for k in range(self.depth):
            at = self.value_of(f"add i32 {self.column}, {k * WIDTH}")
            found = [
                Operand(self.load(dtype, self.in_shared(dtype, place, at), 1), True)
                for place, dtype in zip(memory, fold.dtypes, strict=True)
            ]
            if total:
                found = apply(self, fold.merge, [*total, *found], [*fold.dtypes, *fold.dtypes])
            total = found
        return fold.result(total[-1])

    def _flush(self) -> None:
        """Inside of loops members store elements of their own, elsewhere the first stores for all."""
        if not self.stored and not self.single:
            return
        conditions = [self.here] if self.here else []
        if not self.in_loop:
            conditions.append(self.value_of(f"icmp eq i32 {self.member}, 0"))
        if not conditions:
            super()._flush()
            return
        both = conditions[0]
        for other in conditions[1:]:
            both = self.value_of(f"and i1 {both}, {other}")
        with self.only_if(both):
            super()._flush()
