"""What comes of a product of matrices: where its tiles are, and what is done with their elements.

Emitters say how a tile is multiplied (`cuda_emitter`, `cuda_warpgroups`); sums in registers are stored
here, or what the steps that follow element by element make of them (`cuda_epilogues`).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from typing import NamedTuple, Protocol

from ...cuda.emitter import Word, fits_32_bits
from ...cuda.lanes import LaneEmitter
from ...cuda.schedule import Schedule
from ...cuda.target import CudaTarget
from ...llvm.builder import Value
from ...llvm.instructions import constant
from ...llvm.loops import Values
from ...llvm.text import Operand
from ...loop_ir.index import Index, Var, delinearise, of_var
from ...loop_ir.kernel import Array, Kernel
from ...loop_ir.steps import Matmul
from ...schedule.schedule import Loops
from ...schedule.signature import Signature
from ...schedule.survey import survey
from .cuda_products import Product, dims_of, rows_and_columns

GROUP = 8  # rows of tiles that are done together: what they read is still in the cache


class AnyTile(Protocol):
    """A tile of the result: its rows and columns, elements of a step of the sum, threads of a block."""

    @property
    def m(self) -> int: ...
    @property
    def n(self) -> int: ...
    @property
    def depth(self) -> int: ...
    @property
    def threads(self) -> int: ...


class Result(NamedTuple):
    """Neighbours in a row of the tile: the row and the first column in it, numbers of accumulators."""

    row: Word
    column: Word
    numbers: list[int]


class ResultEmitter(LaneEmitter):
    """Emits the kernel of one product. `arrays` are what it takes pointers to."""

    step: Matmul
    accumulators: int  # of a thread
    batch: Word  # the matrix of the batch at hand, and the tile's first row and column in it
    m0: Word
    n0: Word

    def __init__(
        self,
        product: Product,
        tile: AnyTile,
        target: CudaTarget,
        definitions: MutableMapping[str, str],
        alignments: Mapping[Array, int],
        arrays: Sequence[Array],
    ) -> None:
        step = self.step = product.matmul
        self.product, self.alignments, self.shape = product, alignments, tile
        self.row = Var("row", step.batch * step.m)
        self.column = Var("column", step.n)
        kernel = product.epilogue or Kernel((), [])
        surveys = {s: survey(s) for s in (*kernel.stages, *product.computed.values())}
        loops = Loops((self.row, self.column), self._env(kernel))
        index_type = "i32" if self._small(product, tile) else "i64"
        plan = Schedule("scalar", loops, [], surveys, index_type, threads=tile.threads)
        own = Signature(None, list(arrays), dict.fromkeys([*arrays, *product.hidden, step.c], 0))
        super().__init__(kernel, own, plan, target, definitions, alignments)
        self.b.written = set(product.writes)
        self.indices.env.update(loops.env)

    def _env(self, kernel: Kernel) -> dict[Var, Index]:
        """The epilogue's loops in terms of the row, counted over the batch, and the column."""
        if not kernel.stages:
            return {}
        walk = dims_of(kernel, self.step)
        split = rows_and_columns(walk[1], self.row.extent) if walk is not None else None
        assert walk is not None and split is not None, "the loops are the result's dims"
        order, shape = walk
        dims = (
            *delinearise(of_var(self.row), shape[:split]),
            *delinearise(of_var(self.column), shape[split:]),
        )
        return {
            s.dims[d]: index for s in kernel.stages for d, index in zip(order, dims, strict=True)
        }

    @staticmethod
    def _small(product: Product, tile: AnyTile) -> bool:
        """Whether positions fit 32 bits, also those of the rows beyond the end."""
        step = product.matmul
        a = (step.batch, step.m + tile.m, step.k + tile.depth)
        b = (step.batch, step.k + tile.depth, step.n + tile.n)
        ends = [
            sum(abs(s) * n for s, n in zip(strides, counts, strict=True))
            for strides, counts in ((step.a_strides, a), (step.b_strides, b))
        ]
        ends += [step.batch * step.k, step.batch * step.n]
        rows = step.batch * step.m + tile.m
        sizes = [
            abs(s) * n for x in product.arrays for s, n in zip(x.strides, x.shape, strict=True)
        ]
        return fits_32_bits([*ends, rows * (step.n + tile.n), 8 * sum(sizes)])

    def zeros(self) -> Values:
        """The accumulators at the start."""
        zero = constant(0, self.step.c.dtype, 1)
        return [Operand(zero, True) for _ in range(self.accumulators)]

    def stand_at_tile(self, q: Word) -> None:
        """Find tile number `q`: neighbours in this order read what is still in the cache."""
        tile = self.shape
        block_m, block_n, self.batch = self._tile(q)
        self.m0 = block_m * tile.m
        self.n0 = block_n * tile.n

    def _tile(self, q: Word) -> tuple[Word, Word, Word]:
        """A tile's row and its column of tiles, its matrix of the batch."""
        step, tile = self.step, self.shape
        tm, tn = -(-step.m // tile.m), -(-step.n // tile.n)
        batch: Word = q // (tm * tn) if step.batch > 1 else 0
        q = q % (tm * tn) if step.batch > 1 else q
        if tm <= GROUP or tn == 1:
            return q % tm, q // tm, batch
        first = q // (GROUP * tn) * GROUP
        q = q % (GROUP * tn)
        height = self.indices.least(tm - first, GROUP)
        q = self.indices.as_index(q)
        block_m = first + q % height
        return block_m, q // height, batch

    @abstractmethod
    def results(self) -> Iterator[Result]:
        """Where the accumulators stand in the tile."""

    # The result.

    def store_results(self, sums: list[Value]) -> None:
        step, tile = self.step, self.shape
        first_row = self.batch * step.m
        for result in self.results():
            row = self.m0 + self.b.widened(result.row)
            column = self.n0 + self.b.widened(result.column)
            together = math.gcd(len(result.numbers), step.n)
            for j in range(0, len(result.numbers), together):
                at = column + j if j else column
                inside = []
                if step.m % tile.m:
                    inside.append(row < step.m)
                if step.n % tile.n:
                    inside.append(at < step.n)
                self.indices.positions[self.row] = first_row + row
                texts = [sums[k] for k in result.numbers[j : j + together]]
                if not inside:
                    self._finish(at, texts)
                    continue
                both = inside[0] if len(inside) == 1 else inside[0] & inside[1]
                with self.b.when(both):
                    self._finish(at, texts)

    def _finish(self, column: Word, sums: list[Value]) -> None:
        """Store neighbours of the result, or what the epilogue makes of them."""
        c = self.step.c
        self.memory.lanes, self.memory.first = len(sums), column
        self.memory.points = [{c: Operand(text, True)} for text in sums]
        self.memory.registers = self.memory.points[0]
        self.indices.positions[self.column] = column
        self.exprs.forget()
        for _ in self.memory.each():
            if self.product.stored:
                flat = of_var(self.row) * self.step.n + of_var(self.column)
                self.memory.write(c.dtype, self.b.pointers[c], flat, self.memory.registers[c])
            for stage in self.kernel.stages:
                self.stages.store_stage(stage)
        self.memory.flush()
        self.exprs.forget()
