"""Products of matrices: a tile of the result per block, a piece of it per warp, in registers.

    stages of shared memory are filled ahead:   a's rows and b's columns, `depth` elements of each
    for k0 in 0, depth, 2 * depth, ...:
        wait until the oldest stage is there, and everybody is done with the one before
        begin to fill the one before with what comes `stages - 1` steps later
        each warp: its rows and columns from the oldest stage, multiplied into registers

Copies are asynchronous where the GPU and the operands' alignment allow; other operands, and those that
are computed on the way (`cuda_sources`), pass through registers: they are read before the multiplication
and written after it, or read after it if there are many. Any strides will do. Rows and columns beyond
the ends are zeros, and are not stored. An element is one chain of multiply-adds in the order of k. Steps
that do something with each element of the result (`cuda_epilogues`) are done before it is stored.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from typing import Protocol

from ...cuda.emitter import Word
from ...cuda.target import CudaTarget
from ...llvm.builder import Value, constant
from ...llvm.loops import Values
from ...llvm.text import Operand
from ...loop_ir.kernel import Array
from .cuda_operands import OperandTile
from .cuda_plain import PlainMultiplier
from .cuda_products import Product
from .cuda_results import Result, ResultEmitter
from .cuda_sources import Source, computed, lying
from .cuda_tensor_cores import TensorMultiplier
from .cuda_tiles import ACROSS, DOWN, Tile

IN_REGISTERS = 16  # copies of a thread that wait in registers while it multiplies


class Multiplier(Protocol):
    """How the threads of a block multiply what is in shared memory."""

    accumulators: int  # of a thread

    def reading(self, side: OperandTile, threads: int) -> tuple[int, int]:
        """Of how many neighbouring lines of an operand threads read at a time, and chunks of each."""
        ...

    def multiply(self, stage: Word, sums: list[Value]) -> list[Value]:
        """The accumulators with the products of one stage added."""
        ...

    def results(self) -> Iterator[Result]:
        """Where the accumulators stand in the tile."""
        ...


class ProductEmitter(ResultEmitter):
    """Emits the kernel of one product. How a tile is multiplied is the `multiplier`'s."""

    end: Word  # of the sum

    @property
    def uneven(self) -> bool:
        """Whether a sum may end inside a stage, or before the first ones."""
        k, total, depth = self.step.k, self.product.total, self.tile.depth
        short = total and total - (self.product.parts - 1) * k < self.tile.stages * depth
        return bool(k % depth or total % depth or short)

    def __init__(
        self,
        product: Product,
        tile: Tile,
        target: CudaTarget,
        definitions: MutableMapping[str, str],
        alignments: Mapping[Array, int],
    ) -> None:
        super().__init__(product, tile, target, definitions, alignments, product.arrays)
        step, self.tile = self.step, tile
        form = PlainMultiplier if tile.atom is None else TensorMultiplier
        self.multiplier: Multiplier = form(self, tile)
        self.accumulators = self.multiplier.accumulators
        left = OperandTile(self, self._source(step.a), step.m, tile.m, DOWN)
        right = OperandTile(self, self._source(step.b), step.n, tile.n, ACROSS)
        self.left, self.right = left, right
        right.start = left.nbytes
        self.stage_bytes = left.nbytes + right.nbytes
        self.asynchronous = [s for s in (left, right) if target.arch >= 80 and s.asynchronous]
        self.fetched = [s for s in (left, right) if s not in self.asynchronous]
        self.stage_count = tile.stages if self.asynchronous else 2
        self.buffer = self.b.shared_block(self.stage_count * self.stage_bytes)

    def _source(self, array: Array) -> Source:
        """What an operand is; rows of b's are its columns."""
        step = self.step
        stage = self.product.computed.get(array)
        if stage is not None:
            return computed(stage)
        if array is step.a:
            return lying(array, step.a_offset, step.a_strides, (step.batch, step.m, step.k))
        batch, k, column = step.b_strides
        return lying(array, step.b_offset, (batch, column, k), (step.batch, step.n, step.k))

    def results(self) -> Iterator[Result]:
        return self.multiplier.results()

    # The body.

    def body(self) -> None:
        """The kernel: find the block's tile and the warp's piece, multiply, store."""
        tile = self.tile
        self.stand_at_tile(self.b.block_number())
        thread = self.b.thread()
        self.lane_number = thread & 31
        warp = thread >> 5
        down, across = (self.b.binary(f, warp, tile.across) for f in ("udiv", "urem"))
        self.warp_m = down * tile.rows
        self.warp_n = across * tile.columns
        self.end: Word = self.step.k
        if self.product.total:
            part = self.batch
            if self.step.batch > self.product.parts:
                part = part // (self.step.batch // self.product.parts)
            before = part * self.step.k
            left = self.product.total - before
            self.end = self.indices.least(left, self.end)
        self.left.stand(self.batch, self.m0)
        self.right.stand(self.batch, self.n0)
        self.store_results(self._pipeline())

    def _pipeline(self) -> list[Value]:
        """The loop over k."""
        count = self.accumulators
        depth, ahead = self.tile.depth, self.stage_count - 1
        for s in range(ahead):
            if s * depth < self.step.k:
                self._copy(s * depth, s * self.stage_bytes)
                self._put(self._fetch(s * depth), s * self.stage_bytes)
            self._commit()
        values = self.zeros()
        values += [Operand(constant("i32", s * self.stage_bytes), True) for s in (0, ahead)]
        early = sum(len(side.parts) for side in self.fetched) <= IN_REGISTERS

        def turn(k0: Value, carried: Values) -> Values:
            *sums, now, free = (c.value for c in carried)
            after = k0 + ahead * depth
            fetched = self._fetch(self._least_k(after)) if early else None
            if self.asynchronous:
                self.b.nvvm("llvm.nvvm.cp.async.wait.group", ahead - 1)
            self.b.barrier()
            if self.asynchronous:
                with self.b.when(after < self.end):
                    self._copy(after, free)
            self._commit()
            sums = self.multiplier.multiply(now, sums)
            self._put(fetched or self._fetch(self._least_k(after)), free)
            new = [*sums, self._next(now), self._next(free)]
            return [c._replace(value=t) for c, t in zip(carried, new, strict=True)]

        return [c.value for c in self.loops.loop(0, self.end, depth, values, turn)[:count]]

    def _commit(self) -> None:
        if self.asynchronous:
            self.b.nvvm("llvm.nvvm.cp.async.commit.group")

    def _copy(self, k0: Word, stage: Word) -> None:
        """Begin to fill a stage with what needs no registers on the way."""
        for side in self.asynchronous:
            side.copy(k0, stage)

    def _fetch(self, k0: Word) -> list[list[Value]]:
        """What else goes into a stage, on its way in registers."""
        return [side.fetch(k0) for side in self.fetched]

    def _put(self, fetched: list[list[Value]], stage: Word) -> None:
        for side, values in zip(self.fetched, fetched, strict=True):
            side.put(values, stage)

    def _next(self, stage: Value) -> Value:
        after = stage + self.stage_bytes
        last = after.eq(self.stage_count * self.stage_bytes)
        return self.b.select(last, 0, after)

    def _least_k(self, k0: Value) -> Value:
        """The step of k that is fetched next: the first one once more when there is no other."""
        more = k0 < self.end
        return self.b.select(more, k0, 0)
