"""Products of matrices by ordinary arithmetic: each thread multiplies a piece of its warp's tile."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ...cuda.emitter import Word
from ...llvm.builder import Value
from ...llvm.instructions import suffix
from .cuda_operands import OperandTile
from .cuda_results import Result
from .cuda_tiles import ACROSS, DOWN, Tile

if TYPE_CHECKING:
    from .cuda_emitter import ProductEmitter


class PlainMultiplier:
    """Multiplies by ordinary arithmetic. A warp's threads lie 4 x 8; rows of a thread are neighbours
    where the operand's rows are neighbours in memory, and else as far apart as there are threads."""

    def __init__(self, e: ProductEmitter, tile: Tile) -> None:
        self.e = e
        self.rows, self.columns = tile.rows // DOWN, tile.columns // ACROSS
        self.accumulators = self.rows * self.columns

    def reading(self, side: OperandTile, threads: int) -> tuple[int, int]:
        return (threads if side.along_k else 1), 1

    def _width(self, side: OperandTile, count: int) -> int:
        """How many of a thread's rows are neighbours."""
        return 1 if side.along_k else min(count, 4, side.chunk)

    def _mine(self, side: OperandTile) -> tuple[Value, int, int]:
        """This thread's first row of an operand, its number of rows, and threads that share them."""
        lane = self.e.lane_number
        if side is self.e.left:
            thread, warp = lane >> 3, self.e.warp_m
            count, threads = self.rows, DOWN
        else:
            thread, warp = lane & 7, self.e.warp_n
            count, threads = self.columns, ACROSS
        start = thread * self._width(side, count)
        return warp + start, count, threads

    def _take(self, side: OperandTile, stage: Word, k: int) -> Iterator[list[Value]]:
        """This thread's rows of an operand, column by column of the chunk that begins at k.

        What lies along k is read all at once, the rest when it is wanted: registers are few.
        """
        first, count, threads = self._mine(side)
        if side.along_k:
            at = [
                side.chunk_at(stage, first, i * threads, 0, k // side.chunk) for i in range(count)
            ]
            rows = [side.load(address, side.chunk) for address in at]
            yield from (list(column) for column in zip(*rows, strict=True))
            return
        width = self._width(side, count)
        for j in range(side.chunk):
            at = [
                side.element_at(stage, first, i * threads, 0, k + j) for i in range(0, count, width)
            ]
            yield [x for address in at for x in side.load(address, width)]

    def multiply(self, stage: Word, sums: list[Value]) -> list[Value]:
        sums, chunk = list(sums), self.e.left.chunk
        for k in range(0, self.e.tile.depth, chunk):
            columns = zip(
                self._take(self.e.left, stage, k), self._take(self.e.right, stage, k), strict=True
            )
            for xs, ys in columns:
                for i, x in enumerate(xs):
                    for j, y in enumerate(ys):
                        at = i * self.columns + j
                        sums[at] = self._multiply_add(x, y, sums[at])
        return sums

    def _multiply_add(self, x: Value, y: Value, z: Value) -> Value:
        dtype = self.e.step.c.dtype
        if dtype.kind == "f":
            return self.e.b.nvvm(f"llvm.fma.{suffix(dtype, 1)}", x, y, z)
        return x * y + z

    def results(self) -> Iterator[Result]:
        first_row, rows, down = self._mine(self.e.left)
        first_column, columns, across = self._mine(self.e.right)
        tall, wide = self._width(self.e.left, rows), self._width(self.e.right, columns)
        for i in range(rows):
            row = first_row + (i // tall * tall * down + i % tall)
            for j in range(0, columns, wide):
                column = first_column + j * across
                yield Result(row, column, [i * columns + j + d for d in range(wide)])
