"""Products of matrices: a tile of the result per block, a piece of it per warp, in registers.

    stages of shared memory are filled ahead:   a's rows and b's columns, `depth` elements of each
    for k0 in 0, depth, 2 * depth, ...:
        wait until the oldest stage is there, and everybody is done with the one before
        begin to fill the one before with what comes `stages - 1` steps later
        each warp: its rows and columns from the oldest stage, multiplied into registers

Copies are asynchronous where the GPU and the operands' alignment allow; otherwise they pass through
registers, to one of two stages while the other is worked on, or after that if there are many. Any
strides will do. Rows and columns beyond the ends are zeros, and are not stored. An element is one chain
of multiply-adds in the order of k. Steps that do something with each element of the result
(`epilogues`) are done before it is stored.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from typing import NamedTuple

from ..index import Index, Var, delinearise, of_var
from ..kernel import Array, Kernel
from ..llvm.instructions import SCALAR_TYPES, constant
from ..llvm.loops import Carried, Values
from ..llvm.text import Operand
from ..schedule import Loops
from ..signature import Signature
from ..steps import Matmul
from ..survey import survey
from .emitter import fits_32_bits
from .lanes import LaneEmitter
from .operands import OperandTile
from .products import Product, dims_of, rows_and_columns
from .schedule import Schedule
from .target import CudaTarget
from .tiles import ACROSS, DOWN, Tile

IN_REGISTERS = 16  # copies of a thread that wait in registers while it multiplies
GROUP = 8  # rows of blocks that are done together: what they read is still in the cache


class Result(NamedTuple):
    """Neighbours in a row of the tile: the row and the first column in it, numbers of accumulators."""

    row: str
    column: str
    numbers: list[int]


class ProductEmitter(LaneEmitter):
    """Emits the kernel of one product; how a tile is multiplied is for subclasses."""

    step: Matmul
    accumulators: int  # of a thread
    end: str  # of the sum

    @property
    def uneven(self) -> bool:
        """Whether the sum ends inside a stage."""
        return any(k % self.tile.depth for k in (self.step.k, self.product.total))

    def __init__(
        self,
        product: Product,
        tile: Tile,
        target: CudaTarget,
        definitions: MutableMapping[str, str],
        alignments: Mapping[Array, int],
    ) -> None:
        step = self.step = product.matmul
        self.product, self.tile, self.alignments = product, tile, alignments
        self.row = Var("row", step.batch * step.m)
        self.column = Var("column", step.n)
        kernel = product.epilogue or Kernel((), [])
        surveys = {s: survey(s) for s in kernel.stages}
        loops = Loops((self.row, self.column), self._env(kernel))
        index_type = "i32" if self._small(product, tile) else "i64"
        plan = Schedule("scalar", loops, [], surveys, index_type, threads=tile.threads)
        arrays = product.arrays
        own = Signature(None, arrays, dict.fromkeys([*arrays, *product.hidden, step.c], 0))
        super().__init__(kernel, own, plan, target, definitions, alignments)
        self.written = set(product.writes)
        self.env.update(loops.env)
        b_strides = (step.b_strides[0], step.b_strides[2], step.b_strides[1])
        left = OperandTile(self, step.a, step.a_offset, step.a_strides, step.m, tile.m, DOWN)
        right = OperandTile(self, step.b, step.b_offset, b_strides, step.n, tile.n, ACROSS)
        self.left, self.right = left, right
        right.start = left.nbytes
        self.stage_bytes = left.nbytes + right.nbytes
        self.asynchronous = target.arch >= 80 and left.asynchronous and right.asynchronous
        self.stages = tile.stages if self.asynchronous else 2
        self.memory = self.shared_block(self.stages * self.stage_bytes)

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
    def _small(product: Product, tile: Tile) -> bool:
        """Whether positions fit 32 bits, also those of the rows beyond the end."""
        step = product.matmul
        a = (step.batch, step.m + tile.m, step.k + tile.depth)
        b = (step.batch, step.k + tile.depth, step.n + tile.n)
        ends = [
            sum(abs(s) * n for s, n in zip(strides, counts, strict=True))
            for strides, counts in ((step.a_strides, a), (step.b_strides, b))
        ]
        rows = step.batch * step.m + tile.m
        sizes = [
            abs(s) * n for x in product.arrays for s, n in zip(x.strides, x.shape, strict=True)
        ]
        return fits_32_bits([*ends, rows * (step.n + tile.n), 8 * sum(sizes)])

    def reading(self, side: OperandTile, threads: int) -> tuple[int, int]:
        """Of how many neighbouring lines of an operand threads read at a time, and chunks of each."""
        raise NotImplementedError

    # The body.

    def body(self) -> None:
        op, ty, tile = self.value_of, self.index_type, self.tile
        block_m, block_n, self.batch = self._block()
        self.m0 = op(f"mul {ty} {block_m}, {tile.m}")
        self.n0 = op(f"mul {ty} {block_n}, {tile.n}")
        thread = self.thread()
        self.lane_number = op(f"and i32 {thread}, 31")
        warp = op(f"lshr i32 {thread}, 5")
        down, across = (op(f"{f} i32 {warp}, {tile.across}") for f in ("udiv", "urem"))
        self.warp_m = op(f"mul i32 {down}, {tile.rows}")
        self.warp_n = op(f"mul i32 {across}, {tile.columns}")
        self.end = str(self.step.k)
        if self.product.total:
            before = op(f"mul {ty} {self.batch}, {self.step.k}")
            left = op(f"sub {ty} {self.product.total}, {before}")
            self.end = self.least(left, self.end)
        self.left.stand(self.batch, self.m0)
        self.right.stand(self.batch, self.n0)
        ends = self._pipeline() if self.asynchronous else self._exchange()
        self._store_results(ends)

    def _block(self) -> tuple[str, str, str]:
        """The block's tile: its row and its column of tiles, its matrix of the batch."""
        op, ty, step, tile = self.value_of, self.index_type, self.step, self.tile
        tm, tn = -(-step.m // tile.m), -(-step.n // tile.n)
        q = self.block_number()
        batch = op(f"udiv {ty} {q}, {tm * tn}") if step.batch > 1 else "0"
        q = op(f"urem {ty} {q}, {tm * tn}") if step.batch > 1 else q
        if tm <= GROUP or tn == 1:
            return op(f"urem {ty} {q}, {tm}"), op(f"udiv {ty} {q}, {tm}"), batch
        first = op(f"mul {ty} {op(f'udiv {ty} {q}, {GROUP * tn}')}, {GROUP}")
        q = op(f"urem {ty} {q}, {GROUP * tn}")
        height = self.least(op(f"sub {ty} {tm}, {first}"), str(GROUP))
        block_m = op(f"add {ty} {first}, {op(f'urem {ty} {q}, {height}')}")
        return block_m, op(f"udiv {ty} {q}, {height}"), batch

    def zeros(self) -> Values:
        zero = constant(0, self.step.c.dtype, 1)
        ty = SCALAR_TYPES[self.step.c.dtype]
        return [Carried(zero, True, ty) for _ in range(self.accumulators)]

    def _pipeline(self) -> list[str]:
        """The loop over k with asynchronous copies."""
        op, ty, count = self.value_of, self.index_type, self.accumulators
        depth, ahead = self.tile.depth, self.stages - 1
        for s in range(ahead):
            if s * depth < self.step.k:
                self._copy(str(s * depth), str(s * self.stage_bytes))
            self.intrinsic("llvm.nvvm.cp.async.commit.group")
        values = self.zeros()
        values += [Carried(str(s * self.stage_bytes), True, "i32") for s in (0, ahead)]

        def turn(k0: str, carried: Values) -> Values:
            *sums, now, free = (c.text for c in carried)
            self.intrinsic("llvm.nvvm.cp.async.wait.group", str(ahead - 1))
            self.barrier()
            after = op(f"add {ty} {k0}, {ahead * depth}")
            with self.only_if(op(f"icmp slt {ty} {after}, {self.end}")):
                self._copy(after, free)
            self.intrinsic("llvm.nvvm.cp.async.commit.group")
            sums = self.multiply(now, sums)
            new = [*sums, self._next(now), self._next(free)]
            return [c._replace(text=t) for c, t in zip(carried, new, strict=True)]

        return [c.text for c in self._loop("0", self.end, depth, values, turn)[:count]]

    def _copy(self, k0: str, stage: str) -> None:
        self.left.copy(k0, stage)
        self.right.copy(k0, stage)

    def _next(self, stage: str) -> str:
        after = self.value_of(f"add i32 {stage}, {self.stage_bytes}")
        last = self.value_of(f"icmp eq i32 {after}, {self.stages * self.stage_bytes}")
        return self.value_of(f"select i1 {last}, i32 0, i32 {after}")

    def _exchange(self) -> list[str]:
        """The loop over k with copies by way of registers, to two stages in turn."""
        op, ty, count = self.value_of, self.index_type, self.accumulators
        depth = self.tile.depth
        self._put(self._fetch("0"), "0")
        early = len(self.left.parts) + len(self.right.parts) <= IN_REGISTERS
        values = [*self.zeros(), Carried("0", True, "i32")]

        def turn(k0: str, carried: Values) -> Values:
            *sums, now = (c.text for c in carried)
            after = self._least_k(op(f"add {ty} {k0}, {depth}"))
            found = self._fetch(after) if early else None
            self.barrier()
            sums = self.multiply(now, sums)
            other = self._next(now)
            self._put(found or self._fetch(after), other)
            new = [*sums, other]
            return [c._replace(text=t) for c, t in zip(carried, new, strict=True)]

        return [c.text for c in self._loop("0", self.end, depth, values, turn)[:count]]

    def _least_k(self, k0: str) -> str:
        """The step of k that is fetched next: the first one once more when there is no other."""
        op, ty = self.value_of, self.index_type
        more = op(f"icmp slt {ty} {k0}, {self.end}")
        return op(f"select i1 {more}, {ty} {k0}, {ty} 0")

    def _fetch(self, k0: str) -> tuple[list[str], list[str]]:
        return self.left.fetch(k0), self.right.fetch(k0)

    def _put(self, found: tuple[list[str], list[str]], stage: str) -> None:
        for side, values in zip((self.left, self.right), found, strict=True):
            side.put(values, stage)

    # What subclasses do.

    def multiply(self, stage: str, sums: list[str]) -> list[str]:
        """The accumulators with the products of one stage added."""
        raise NotImplementedError

    def results(self) -> Iterator[Result]:
        """Where the accumulators stand in the tile."""
        raise NotImplementedError

    # The result.

    def _store_results(self, sums: list[str]) -> None:
        op, ty, step, tile = self.value_of, self.index_type, self.step, self.tile
        first_row = op(f"mul {ty} {self.batch}, {step.m}")
        for result in self.results():
            row = op(f"add {ty} {self.m0}, {self.widened(result.row)}")
            column = op(f"add {ty} {self.n0}, {self.widened(result.column)}")
            together = len(result.numbers) if step.n % len(result.numbers) == 0 else 1
            for j in range(0, len(result.numbers), together):
                at = op(f"add {ty} {column}, {j}") if j else column
                inside = []
                if step.m % tile.m:
                    inside.append(op(f"icmp slt {ty} {row}, {step.m}"))
                if step.n % tile.n:
                    inside.append(op(f"icmp slt {ty} {at}, {step.n}"))
                self.at[self.row] = op(f"add {ty} {first_row}, {row}")
                texts = [sums[k] for k in result.numbers[j : j + together]]
                if not inside:
                    self._finish(at, texts)
                    continue
                both = inside[0] if len(inside) == 1 else op(f"and i1 {inside[0]}, {inside[1]}")
                with self.only_if(both):
                    self._finish(at, texts)

    def _finish(self, column: str, sums: list[str]) -> None:
        """Store neighbours of the result, or what the epilogue makes of them."""
        c = self.step.c
        self.lanes, self.first = len(sums), column
        self.points = [{c: Operand(text, True)} for text in sums]
        self.registers = self.points[0]
        self.at[self.column] = column
        self._forget()
        for _ in self._each():
            if self.product.stored:
                flat = of_var(self.row) * self.step.n + of_var(self.column)
                self._write(c.dtype, self.pointers[c], flat, self.registers[c])
            for stage in self.kernel.stages:
                self._store_stage(stage)
        self._flush()
        self._forget()
