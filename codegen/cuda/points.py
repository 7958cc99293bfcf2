"""Kernels whose outer points are shared out among threads: the form that every kernel can take.

thread q: points lanes * q .. lanes * q + lanes - 1 of the last outer loop, and their inner loops
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ..index import Var
from ..kernel import Nest
from ..llvm.loops import Carried, Values
from ..llvm.reductions import Reduction
from ..llvm.text import Operand
from ..schedule import Loops
from .lanes import LaneEmitter


class PointEmitter(LaneEmitter):
    """Emits one kernel."""

    def body(self) -> None:
        """The body of the kernel: this thread's points, if it has any."""
        plan = self.layout
        self.env.update(plan.outer.env)
        *others, last = plan.outer.vars
        ty = self.index_type
        start = self.value_of(f"mul {ty} {self.block_number()}, {plan.threads}")
        q = self.value_of(f"add {ty} {start}, {self.widened(self.thread())}")
        if plan.units == plan.threads * plan.blocks:
            self._unit(q, others, last)
        else:
            with self.only_if(self.value_of(f"icmp slt {ty} {q}, {plan.units}")):
                self._unit(q, others, last)

    def _unit(self, q: str, others: list[Var], last: Var) -> None:
        lanes, n, ty = self.layout.lanes, last.extent, self.index_type
        unit = Var("unit", -(-n // lanes))
        self.stand_at((*others, unit), q)
        if lanes == 1:
            self.at[last] = self.at[unit]
            self._row()
            return
        first = self.value_of(f"mul {ty} {self.at[unit]}, {lanes}")
        if n % lanes == 0:
            self._together(first, lanes)
            return
        with self.only_if(self.value_of(f"icmp sle {ty} {first}, {n - lanes}")):
            self._together(first, lanes)
        with self.only_if(self.value_of(f"icmp sgt {ty} {first}, {n - lanes}")):

            def one(position: str, values: Values) -> Values:
                self.at[last] = position
                self._forget()
                self._row()
                return values

            self._loop(first, str(n), 1, [], one)

    def _together(self, first: str, lanes: int) -> None:
        """Everything for a whole group of points."""
        self.lanes, self.first = lanes, first
        self.points = [{} for _ in range(lanes)]
        self.at[self.along] = first
        self._row()
        self.lanes, self.points = 1, [self.registers]
        self._forget()

    # Nests, for all lanes at once.

    @contextmanager
    def inner_registers(self) -> Iterator[None]:
        before = [dict(point) for point in self.points]
        yield
        for point, values in zip(self.points, before, strict=True):
            point.clear()
            point.update(values)

    def _row(self) -> None:
        for nest, loops in zip(self.kernel.nests, self.plan.inner, strict=True):
            self._nest(nest, loops)
        self._flush()
        for point in self.points:
            point.clear()

    def _nest(self, nest: Nest, loops: Loops) -> None:
        self.env.update(loops.env)
        folds = [self._reduction(s, nest, False) for s in nest.stages]
        starts: Values = []
        for _ in self._each():
            if loops.vars:
                self._hoist(nest)
            starts += [c for fold in folds if fold is not None for c in self.initial(fold, nest)]

        def body(values: Values) -> Values:
            results: Values = []
            for _ in self._each():
                for stage, fold in zip(nest.stages, folds, strict=True):
                    if fold is None:
                        self._store_stage(stage)
                        continue
                    at = len(results)
                    results += fold.combine(values[at : at + fold.count])
                    if stage.action == "scan":
                        self.keep_running(stage, results[at:])
            if loops.vars:
                self._flush()
            return results

        if loops.vars:
            with self.inner_registers():
                ends = self._walk(loops.vars, nest, starts, body)
        else:
            ends = body(starts)
        position = 0
        for _ in self._each():
            for stage, fold in zip(nest.stages, folds, strict=True):
                if fold is None:
                    continue
                if stage.action != "scan":
                    own = ends[position : position + fold.count]
                    self.keep(stage, self.finished(fold, own, bool(loops.vars)))
                position += fold.count

    def initial(self, fold: Reduction, nest: Nest) -> Values:
        """What a fold starts from."""
        return fold.initial()

    def finished(self, fold: Reduction, ends: Sequence[Carried], looped: bool) -> Operand:
        """The result of a fold that has come to `ends`, in loops or at a single point."""
        return fold.finish(ends)
