"""The products inside attention: scores of rows and columns, and sums of columns weighted by them.

Both ways of multiplying answer the same questions. `lanes` threads of a warp share a row; a thread has
`held_rows` of them, `held_columns` scores of each, and some columns of each sum. On tensor cores (see
`tensor_cores` for who has what) the scores of a thread are, in another order of the columns, the operand
of the next product: nothing passes through memory. By ordinary arithmetic a thread wants all scores of
its rows: they do.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...cuda.emitter import Word
from ...llvm.builder import Value
from ...llvm.instructions import SCALAR_TYPES, suffix
from ...llvm.loops import Values
from ..matmul.cuda_fragments import lane_bits
from .cuda_panels import Panel
from .cuda_plan import line_bytes

if TYPE_CHECKING:
    from .cuda_attention import AttentionEmitter


class Products:
    """What both ways share. Scores and sums are lists, row by row."""

    lanes: int  # threads that share a row
    held_rows: int
    held_columns: int
    neighbours: int  # columns of a sum that a thread has side by side

    def __init__(self, e: AttentionEmitter) -> None:
        self.e = e
        tile = e.tile
        self.lane = e.tid & 31
        warp = e.tid >> 5
        self.warp_row = warp * tile.rows if tile.warps > 1 else 0
        self.sum_type = SCALAR_TYPES[e.step.real]

    def _bits(self, shift: int, mask: int, scale: int = 1) -> Value:
        return lane_bits(self.lane, shift, mask, scale)

    # Where this thread's part of a panel begins, which is the same for all blocks of columns.

    @abstractmethod
    def as_rows(self, panel: Panel) -> Word:
        """Of a panel that is the left operand of scores."""

    @abstractmethod
    def as_columns(self, panel: Panel) -> Word:
        """Of one that is the right operand of scores."""

    @abstractmethod
    def as_summed(self, panel: Panel) -> Word:
        """Of one whose lines are summed."""

    # What a thread has.

    @abstractmethod
    def row(self, r: int) -> Value:
        """The number of a thread's row in its block."""

    @abstractmethod
    def column(self, j: int) -> Value:
        """The number of a thread's column among those of the block of columns."""

    def held(self, width: int) -> int:
        """How many elements of one row of a sum a thread has."""
        return width // self.lanes

    @abstractmethod
    def sum_column(self, k: int) -> Value:
        """The column of a thread's k-th element of a row of a sum; `neighbours` lie side by side."""

    @abstractmethod
    def scores(
        self, sums: Sequence[Value], left: Panel, at: Word, right: Panel, stage: Word
    ) -> list[Value]:
        """Products of the rows and columns in two panels, added to `sums`."""

    @abstractmethod
    def accumulate(
        self, sums: Sequence[Value], weights: Sequence[Value], panel: Panel, stage: Word
    ) -> list[Value]:
        """`sums`, and the columns in a panel times their weights."""

    def finish_reading(self) -> None:
        """Nobody reads the weights any more: there may be others."""


class PlainProducts(Products):
    """Products by ordinary arithmetic. A warp's threads lie 4 x 8."""

    lanes = 8

    def __init__(self, e: AttentionEmitter) -> None:
        super().__init__(e)
        self.size = e.step.real.itemsize
        self.neighbours = 16 // self.size
        self.held_rows, self.held_columns = e.tile.rows // 4, e.tile.columns // 8
        self.weight_line = line_bytes(e.tile.columns, self.size)
        self.first_row = self.warp_row + self._bits(3, 3)
        at = self.first_row * self.weight_line
        self.row_at, self.weight_at = at, at + self._bits(0, 7, self.size)

    def as_rows(self, panel: Panel) -> Word:
        return panel.offset(self.first_row, 0, 0)

    def as_columns(self, panel: Panel) -> Word:
        return panel.offset(self._bits(0, 7), 0, 0)

    def as_summed(self, panel: Panel) -> Word:
        return self._bits(0, 7, self.neighbours * panel.item)

    def row(self, r: int) -> Value:
        return self.first_row + 4 * r

    def column(self, j: int) -> Value:
        return self._bits(0, 7) + 8 * j

    def sum_column(self, k: int) -> Value:
        n = self.neighbours
        first = self._bits(0, 7) * n
        return first + (k // n * n * 8 + k % n)

    def scores(
        self, sums: Sequence[Value], left: Panel, at: Word, right: Panel, stage: Word
    ) -> list[Value]:
        n = self.neighbours
        item, row, column = left.item, self.as_rows(left), self.as_columns(right)

        def step(k: Word, carried: Values) -> Values:
            totals = [c.value for c in carried]
            begin = self.e.b.narrowed(k) * item
            here, there = at + begin, stage + begin
            xs = [left.load(left.at(here, row, 4 * r), n) for r in range(self.held_rows)]
            for j in range(self.held_columns):
                y = right.load(right.at(there, column, 8 * j), n)
                for r, x in enumerate(xs):
                    slot = r * self.held_columns + j
                    for u, v in zip(x, y, strict=True):
                        totals[slot] = self._multiply_add(u, v, totals[slot])
            return self.e.carried(totals)

        values = self.e.loops.loop(0, left.length, n, self.e.carried(sums), step)
        return [c.value for c in values]

    def accumulate(
        self, sums: Sequence[Value], weights: Sequence[Value], panel: Panel, stage: Word
    ) -> list[Value]:
        e, n = self.e, self.neighbours
        self._put(weights)
        held, offset = len(sums) // self.held_rows, self.as_summed(panel)

        def step(j: Word, carried: Values) -> Values:
            totals = [c.value for c in carried]
            at = self.row_at + e.b.narrowed(j) * self.size
            xs = [
                self._take(e.shared_at(at, e.weights_at + 4 * r * self.weight_line))
                for r in range(self.held_rows)
            ]
            begin = stage + e.b.narrowed(j) * panel.line
            for line in range(n):
                for k in range(0, held, n):
                    address = panel.at(begin, offset, line, 8 * k * panel.item)
                    ys = panel.load(address, n)
                    for r, x in enumerate(xs):
                        for c, y in enumerate(ys):
                            totals[r * held + k + c] = self._multiply_add(
                                x[line], y, totals[r * held + k + c]
                            )
            return self.e.carried(totals)

        values = e.loops.loop(0, e.tile.columns, n, self.e.carried(sums), step)
        return [c.value for c in values]

    def finish_reading(self) -> None:
        self.e.b.nvvm("llvm.nvvm.bar.warp.sync", -1)

    def _put(self, weights: Sequence[Value]) -> None:
        """Show the weights to the other threads of the warp."""
        e = self.e
        for k, text in enumerate(weights):
            r, j = divmod(k, self.held_columns)
            address = e.shared_at(self.weight_at, self._weight(r, j))
            e.b.store(text, address, align=self.size)
        e.b.nvvm("llvm.nvvm.bar.warp.sync", -1)

    def _weight(self, r: int, j: int) -> int:
        """The byte of a weight after this thread's first one."""
        return self.e.weights_at + 4 * r * self.weight_line + 8 * j * self.size

    def _take(self, address: Value) -> list[Value]:
        ty = f"<{self.neighbours} x {self.sum_type}>"
        value = self.e.b.load(ty, address, align=16)
        return [self.e.b.extract(value, k) for k in range(self.neighbours)]

    def _multiply_add(self, x: Value, y: Value, z: Value) -> Value:
        return self.e.b.nvvm(f"llvm.fma.{suffix(self.e.step.real, 1)}", x, y, z)
