"""The products inside attention on tensor cores.

A thread has scores of a row in pairs of neighbours, in the order in which it has elements of the left
operand of the next product: of 16 bits those two are one word of it; of more bits one follows the other
in an order of the sum of its own, in which the lines of the right operand are then read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ...cuda.emitter import Word
from ...llvm.builder import Value
from ...llvm.loops import Values
from ..matmul.cuda_fragments import Fragments
from ..matmul.cuda_tiles import Atom
from .cuda_panels import Panel
from .cuda_products import Products

if TYPE_CHECKING:
    from .cuda_attention import AttentionEmitter

AT_ONCE = 128  # instructions on small matrices that are written out, at the most


class TensorProducts(Products):
    """Products by the instruction `atom`."""

    lanes = 4
    neighbours = 2

    def __init__(self, e: AttentionEmitter, atom: Atom) -> None:
        super().__init__(e)
        self.atom, self.fragments = atom, Fragments(e.b, atom)
        self.held_rows, self.held_columns = e.tile.rows // 8, e.tile.columns // 4
        self.tall = atom.m // 8  # rows of a thread in one small matrix
        self.count = e.tile.rows // atom.m  # small matrices of a warp
        self.ldmatrix = atom.itemsize < 8

    def as_rows(self, panel: Panel) -> Word:
        size = 16 if self.ldmatrix else panel.item
        line, chunk = (self._bits(0, 15), self._bits(4, 1)) if self.ldmatrix else self._cell
        return panel.offset(self.warp_row + line, chunk, size)

    def as_columns(self, panel: Panel) -> Word:
        if not self.ldmatrix:
            return panel.offset(*self._cell, panel.item)
        line = self._bits(0, 7) + self._bits(4, 1, 8)
        return panel.offset(line, self._bits(3, 1), 16)

    def as_summed(self, panel: Panel) -> Word:
        if self.atom.itemsize == 2:
            return panel.offset(self._bits(0, 15), self._bits(4, 1), 16)
        return panel.offset(self._bits(0, 3, 2), self._bits(2, 7), panel.item)

    @property
    def _cell(self) -> tuple[Value, Value]:
        """The row and column of this thread in a small matrix of rows of four."""
        return self._bits(2, 7), self._bits(0, 3)

    def row(self, r: int) -> Value:
        return self.warp_row + self._bits(2, 7) + 8 * r

    def column(self, j: int) -> Value:
        return self._bits(0, 3, 2) + (8 * (j // 2) + j % 2)

    def sum_column(self, k: int) -> Value:
        return self.column(k)

    def scores(
        self, sums: Sequence[Value], left: Panel, at: Word, right: Panel, stage: Word
    ) -> list[Value]:
        steps = left.length // self.atom.k
        once = min(max(AT_ONCE // (self.count * self.e.tile.columns // 8), 1), steps)
        while steps % once:
            once -= 1
        if once == steps:
            return self._scores(sums, left, at, right, stage, steps)
        nbytes = self.atom.k * left.item

        def some(step: Value, carried: Values) -> Values:
            begin = self.e.b.narrowed(step) * nbytes
            here, there = (begin + x for x in (at, stage))
            texts = [c.value for c in carried]
            scores = self._scores(texts, left, here, right, there, once)
            return self.e.carried(scores)

        values = self.e.loops.loop(0, steps, once, self.e.carried(sums), some)
        return [c.value for c in values]

    def _scores(
        self, sums: Sequence[Value], left: Panel, at: Word, right: Panel, stage: Word, steps: int
    ) -> list[Value]:
        """The first `steps` steps of the sum."""
        totals = list(sums)
        for step in range(steps):
            rows = [self._rows(left, at, i, step) for i in range(self.count)]
            for n, y in enumerate(self._columns(right, stage, step)):
                for i, x in enumerate(rows):
                    self._multiply(totals, self.held_columns, i, n, x, y)
        return totals

    def accumulate(
        self, sums: Sequence[Value], weights: Sequence[Value], panel: Panel, stage: Word
    ) -> list[Value]:
        totals = list(sums)
        held = len(totals) // self.held_rows
        for step in range(self.e.tile.columns // self.atom.k):
            rows = [self._weights(weights, i, step) for i in range(self.count)]
            for n, y in enumerate(self._lines(panel, stage, step, held // 2)):
                for i, x in enumerate(rows):
                    self._multiply(totals, held, i, n, x, y)
        return totals

    def _multiply(
        self, sums: list[Value], length: int, i: int, n: int, x: Sequence[Value], y: Sequence[Value]
    ) -> None:
        """Small matrix i of the rows times the n-th of the columns; `length` sums in a row."""
        slots = [
            (i * self.tall + r) * length + 2 * n + c for r in range(self.tall) for c in range(2)
        ]
        new = self.fragments.multiply(x, y, [sums[p] for p in slots])
        for p, total in zip(slots, new, strict=True):
            sums[p] = total

    # Operands.

    def _rows(self, panel: Panel, at: Word, i: int, step: int) -> list[Value]:
        """This thread's part of rows: small matrix i, step of the sum."""
        atom, offset = self.atom, self.as_rows(panel)
        if not self.ldmatrix:
            return [
                self._element(panel, at, offset, atom.m * i + 8 * r, atom.k * step + k)
                for k in range(0, atom.k, 4)
                for r in range(self.tall)
            ]
        address = panel.at(at, offset, 16 * i, 32 * step)
        return self.fragments.four(address, False)

    def _columns(self, panel: Panel, stage: Word, step: int) -> Iterator[list[Value]]:
        """This thread's part of columns: 8 after the other, step of the sum."""
        atom, offset = self.atom, self.as_columns(panel)
        for n in range(0, self.e.tile.columns, 16 if self.ldmatrix else 8):
            if self.ldmatrix:
                address = panel.at(stage, offset, n, 32 * step)
                four = self.fragments.four(address, False)
                yield four[:2]
                yield four[2:]
            else:
                first = atom.k * step
                yield [
                    self._element(panel, stage, offset, n, first + k) for k in range(0, atom.k, 4)
                ]

    def _lines(self, panel: Panel, stage: Word, step: int, count: int) -> Iterator[list[Value]]:
        """This thread's part of what is summed: 8 columns after the other, step of the sum over lines.

        Lines come in the order in which `_weights` has them.
        """
        atom, offset = self.atom, self.as_summed(panel)
        if atom.itemsize == 2:
            for n in range(0, count, 2):
                address = panel.at(stage, offset, 16 * step, 16 * n)
                four = self.fragments.four(address, True)
                yield four[:2]
                yield four[2:]
            return
        lines = [8 * (j // 2) + j % 2 for j in range(atom.k // 4 * step, atom.k // 4 * (step + 1))]
        for n in range(count):
            yield [self._element(panel, stage, offset, j, 8 * n) for j in lines]

    def _weights(self, weights: Sequence[Value], i: int, step: int) -> list[Value]:
        """Scores of this thread as rows of an operand: small matrix i, step of the sum."""
        atom, length = self.atom, self.held_columns
        rows = [weights[(self.tall * i + r) * length :][:length] for r in range(self.tall)]
        if atom.itemsize == 2:
            return [
                self._pair(rows[r][4 * step + 2 * k], rows[r][4 * step + 2 * k + 1])
                for k in range(2)
                for r in range(2)
            ]
        operands = [
            rows[r][atom.k // 4 * step + k] for k in range(atom.k // 4) for r in range(self.tall)
        ]
        return [self.fragments.number(x) for x in operands]

    def _pair(self, x: Value, y: Value) -> Value:
        """Two numbers as one word of the operand."""
        pair = self.e.pair(x, y)
        if self.atom.element == "f16":
            return pair
        return pair.to("bitcast", "i32")

    def _element(self, panel: Panel, stage: Word, offset: Word, lines: int, columns: int) -> Value:
        (value,) = panel.load(panel.at(stage, offset, lines, columns * panel.item), 1)
        return self.fragments.number(value)
