"""Teams of threads that work on one row: values passed between them, and folds over all of them.

A team is a power of two: lanes of one warp that lie side by side, or whole warps, which are the block
then. Folds go by halves inside a warp, through shared memory from warp to warp; every thread of the
team has the result, which depends on nothing but the size of the team.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..llvm.builder import Condition, Value
from ..llvm.indices import IndexEmitter
from ..llvm.reductions import Reduction
from ..llvm.text import Operand
from ..loop_ir.index import Var
from .emitter import ThreadBuilder
from .warps import EVERYBODY, WARP, Warp


class Team:
    """`size` threads work together; `member` is this thread's number among them."""

    def __init__(self, b: ThreadBuilder, indices: IndexEmitter, size: int) -> None:
        self.b, self.indices, self.warp = b, indices, Warp(b, indices.exprs)
        self.size = size
        self.member: Value
        # Whether the team has a row of its own, if that is in doubt; if not, it repeats the last one.
        self.here: Condition | None = None

    def stand_at_own_row(self, loops: Sequence[Var], threads: int) -> None:
        """Find this thread's row and its number in the team, and set the outer loops' variables.

        `threads` are those of the block.
        """
        rows, teams = math.prod(v.extent for v in loops), threads // self.size
        thread, row = self.b.thread(), self.b.block_number()
        self.member = thread
        if teams > 1:
            self.member = thread & self.size - 1
            number = thread >> self.size.bit_length() - 1
            first = row * teams
            row = first + self.b.widened(number)
            if rows % teams:
                self.here = row < rows
                row = self.indices.least(row, rows - 1)
        self.indices.stand_at(loops, row)

    def meet(self) -> None:
        """Wait for the team; what its threads wrote before is seen by all of them afterwards."""
        if self.size > WARP:
            self.b.barrier()
        elif self.size > 1:
            self.b.nvvm("llvm.nvvm.bar.warp.sync", EVERYBODY)

    def folded(self, fold: Reduction, ends: Sequence[Operand]) -> Operand:
        """The fold of what all threads of the team have come to, each the value `ends` of its own."""
        texts = self.warp.fold_lanes(fold, [c.value for c in ends], min(self.size, WARP))
        if self.size > WARP:
            texts = self._fold_warps(fold, texts)
        return fold.result(Operand(texts[-1], True))

    def _fold_warps(self, fold: Reduction, texts: list[Value]) -> list[Value]:
        """The first lane of each warp leaves its value in shared memory, where every warp folds them."""
        warps = self.size // WARP
        lane = self.b.thread() & WARP - 1
        warp = self.b.thread() >> WARP.bit_length() - 1
        buffers = [self.b.shared(d, warps) for d in fold.dtypes]
        with self.b.when(lane.eq(0)):
            for buffer, text, dtype in zip(buffers, texts, fold.dtypes, strict=True):
                self.b.store_elements(dtype, text, self.b.in_shared(dtype, buffer, warp))
        self.b.barrier()
        here = lane & warps - 1
        parts = [
            self.b.load_elements(dtype, self.b.in_shared(dtype, buffer, here), 1)
            for buffer, dtype in zip(buffers, fold.dtypes, strict=True)
        ]
        return self.warp.fold_lanes(fold, parts, warps)
