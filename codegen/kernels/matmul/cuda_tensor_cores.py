"""Products of matrices on tensor cores: the threads of a warp hold small matrices together.

Thread 4 g + t of a warp has elements of a in row g and column t (or pairs, 2 t and 2 t + 1), of b in row
t and column g, of c in row g and columns 2 t and 2 t + 1; more of them lie 8 rows or 4 (or 8) columns
away. Where 32 bits of a row of an operand go to one thread, `ldmatrix` brings four matrices of 8 rows
of 16 bytes; it also turns over matrices of 16-bit elements. Other operands are read element by element.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ...cuda.emitter import Word
from ...llvm.builder import Value
from .cuda_fragments import Fragments, lane_bits
from .cuda_operands import OperandTile
from .cuda_results import Result
from .cuda_tiles import Tile

if TYPE_CHECKING:
    from .cuda_emitter import ProductEmitter


class TensorMultiplier:
    """Multiplies by the instruction `tile.atom`."""

    def __init__(self, e: ProductEmitter, tile: Tile) -> None:
        assert tile.atom is not None, "the tile is for tensor cores"
        self.e, self.atom, self.fragments = e, tile.atom, Fragments(e.b, tile.atom)
        self.down, self.across = tile.rows // self.atom.m, tile.columns // self.atom.n
        self.held = self.atom.m * self.atom.n // 32  # accumulators of one small matrix
        self.accumulators = self.down * self.across * self.held

    def reading(self, side: OperandTile, threads: int) -> tuple[int, int]:
        return (8, 1) if self._by_matrices(side) else (4, 2)

    def _by_matrices(self, side: OperandTile) -> bool:
        """Whether `ldmatrix` reads an operand."""
        return side.item == 2 or (side.item == 4 and side.along_k)

    def multiply(self, stage: Word, sums: list[Value]) -> list[Value]:
        sums, atom = list(sums), self.atom
        for step in range(self.e.tile.depth // atom.k):
            rows = [self._rows(stage, i, step) for i in range(self.down)]
            columns = self._columns(stage, step)
            for i, x in enumerate(rows):
                for j, y in enumerate(columns):
                    at = (i * self.across + j) * self.held
                    old = sums[at : at + self.held]
                    sums[at : at + self.held] = self.fragments.multiply(x, y, old)
        return sums

    def _lane(self, shift: int, mask: int, scale: int = 1) -> Value:
        return lane_bits(self.e.lane_number, shift, mask, scale)

    # Operands.

    def _rows(self, stage: Word, i: int, step: int) -> list[Value]:
        """This thread's part of a's rows of small matrix i."""
        side, atom = self.e.left, self.atom
        if not self._by_matrices(side):
            offsets = [(8 * r, k) for k in range(0, atom.k, 4) for r in range(atom.m // 8)]
            return [
                self._element(side, stage, self.e.warp_m, atom.m * i + r, atom.k * step + k)
                for r, k in offsets
            ]
        if side.along_k:
            line: Word = self.e.warp_m + self._lane(0, 15)
            chunk: Word = self._lane(4, 1)
            address = side.chunk_at(stage, line, 16 * i, chunk, 2 * step)
        else:
            line = self._lane(0, 7) + self._lane(4, 1, 8)
            chunk = (self.e.warp_m >> 3) + self._lane(3, 1)
            address = side.chunk_at(stage, line, 16 * step, chunk, 2 * i)
        return self.fragments.four(address, not side.along_k)

    def _columns(self, stage: Word, step: int) -> list[list[Value]]:
        """This thread's part of b's columns, of each small matrix."""
        side, atom = self.e.right, self.atom
        if not self._by_matrices(side):
            return [
                [
                    self._element(side, stage, self.e.warp_n, 8 * j, atom.k * step + k)
                    for k in range(0, atom.k, 4)
                ]
                for j in range(self.across)
            ]
        operands = []
        for pair in range(self.across // 2):
            if side.along_k:
                line = self.e.warp_n + self._lane(0, 7) + self._lane(4, 1, 8)
                address = side.chunk_at(stage, line, 16 * pair, self._lane(3, 1), 2 * step)
            else:
                chunk = (self.e.warp_n >> 3) + self._lane(4, 1)
                address = side.chunk_at(stage, self._lane(0, 15), 16 * step, chunk, 2 * pair)
            four = self.fragments.four(address, not side.along_k)
            operands += [four[:2], four[2:]]
        return operands

    def _element(self, side: OperandTile, stage: Word, warp: Value, row: int, k: int) -> Value:
        first = warp + self._lane(2, 7)
        address = side.element_at(stage, first, row, self._lane(0, 3), k)
        (value,) = side.load(address, 1)
        return self.fragments.number(value)

    # The result.

    def results(self) -> Iterator[Result]:
        row = self.e.warp_m + self._lane(2, 7)
        column = self.e.warp_n + self._lane(0, 3, 2)
        for i in range(self.down):
            for j in range(self.across):
                at = (i * self.across + j) * self.held
                for half in range(self.held // 2):
                    yield Result(
                        row + (self.atom.m * i + 8 * half),
                        column + 8 * j,
                        [at + 2 * half, at + 2 * half + 1],
                    )
