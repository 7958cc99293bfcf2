"""Teams of threads that work on one row: values passed between them, and folds over all of them.

A team is a power of two: lanes of one warp that lie side by side, or whole warps, which are the block
then. Folds go by halves inside a warp, through shared memory from warp to warp; every thread of the
team has the result, which depends on nothing but the size of the team.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from ..llvm.builder import Value
from ..llvm.loops import Carried
from ..llvm.reductions import Reduction
from ..llvm.text import Operand
from .emitter import Word
from .warps import EVERYBODY, WARP, WarpEmitter


class TeamEmitter(WarpEmitter):
    """`team` threads work together; `member` is this thread's number among them."""

    team = 1
    member: Word = 0
    here: Word = ""  # whether the team has a row of its own; if not, it repeats the last one

    def stand_at_own_row(self) -> None:
        """Find this thread's row and its number in the team, and set the outer loops' variables."""
        plan = self.layout
        rows, teams = math.prod(self.kernel.extents), plan.threads // self.team
        thread, row = self.thread(), self.block_number()
        self.member = thread
        if teams > 1:
            self.member = thread & self.team - 1
            number = thread >> self.team.bit_length() - 1
            first = row * teams
            row = first + self.widened(number)
            if rows % teams:
                self.here = row < rows
                row = self.least(row, rows - 1)
        self.stand_at(plan.outer.vars, row)

    def _each(self) -> Iterator[int]:
        if self.lanes > 1:
            yield from super()._each()
            return
        self.number, self.registers = 0, self.points[0]
        self.forget()
        yield 0
        self.forget()

    def meet(self) -> None:
        """Wait for the team; what its threads wrote before is seen by all of them afterwards."""
        if self.team > WARP:
            self.barrier()
        elif self.team > 1:
            self.nvvm("llvm.nvvm.bar.warp.sync", EVERYBODY)

    def folded(self, fold: Reduction, ends: Sequence[Carried]) -> Operand:
        """The fold of what all threads of the team have come to, each the value `ends` of its own."""
        texts = self.fold_lanes(fold, [c.text for c in ends], min(self.team, WARP))
        if self.team > WARP:
            texts = self._fold_warps(fold, texts)
        return fold.result(Operand(texts[-1], True))

    def _fold_warps(self, fold: Reduction, texts: list[Value]) -> list[Value]:
        """The first lane of each warp leaves its value in shared memory, where every warp folds them."""
        warps = self.team // WARP
        lane = self.thread() & WARP - 1
        warp = self.thread() >> WARP.bit_length() - 1
        places = [self.shared(d, warps) for d in fold.dtypes]
        with self.when(lane.eq(0)):
            for place, text, dtype in zip(places, texts, fold.dtypes, strict=True):
                self.store_elements(dtype, text, self.in_shared(dtype, place, warp), 1)
        self.barrier()
        here = lane & warps - 1
        found = [
            self.load_elements(dtype, self.in_shared(dtype, place, here), 1)
            for place, dtype in zip(places, fold.dtypes, strict=True)
        ]
        return self.fold_lanes(fold, found, warps)
