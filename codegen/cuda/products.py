"""Products of matrices on ordinary arithmetic: a tile of the result per block, a piece of it per thread.

    for k0 in 0, DEPTH, 2 * DEPTH, ...:
        the block:   a's rows and b's columns, DEPTH of them, to shared memory
                     (the next ones are on their way to registers meanwhile)
        a thread:    for each k: its rows and columns from shared memory; a multiply-add for each pair

Every element is one chain of multiply-adds in the order of k, so results depend on nothing but the
operands. Any strides will do. Rows and columns beyond the ends are zeros, and are not stored. Kernels
for tensor cores belong beside this one: what chooses between them is `ProgramBuilder.matmul`.
"""

from __future__ import annotations

import math
from collections.abc import MutableMapping
from typing import NamedTuple

from ..kernel import Array
from ..llvm.instructions import SCALAR_TYPES, constant, suffix
from ..llvm.loops import Carried, Values
from ..steps import Matmul
from .emitter import ThreadEmitter, fits_32_bits
from .target import CudaTarget

THREADS = 256
DEPTH = 16
SKEW = 4  # elements added to a row in shared memory, so that columns lie in different banks
QUAD = 4  # elements that a thread has side by side

# Rows and columns of a thread, and how well such a piece uses the arithmetic, 1 at the best.
PIECES = {
    (8, 8): 1.0,
    (8, 4): 0.8,
    (4, 8): 0.8,
    (4, 4): 0.6,
    (2, 4): 0.4,
    (4, 2): 0.4,
    (1, 4): 0.25,
}
SHAPES = [(16, 16), (8, 32), (32, 8)]  # of the threads of a block


class Tile(NamedTuple):
    """A block's tile of the result: threads down and across, rows and columns of each."""

    down: int
    across: int
    rows: int
    columns: int

    @property
    def m(self) -> int:
        return self.down * self.rows

    @property
    def n(self) -> int:
        return self.across * self.columns

    def blocks(self, step: Matmul) -> int:
        return step.batch * -(-step.m // self.m) * -(-step.n // self.n)


def tile_for(step: Matmul, target: CudaTarget) -> Tile:
    """The tile with which a product is done soonest, by a simple model: waves of blocks."""

    def cost(tile: Tile) -> float:
        waves = -(-tile.blocks(step) // target.sms)
        return waves * tile.m * tile.n / PIECES[tile.rows, tile.columns]

    size = step.c.dtype.itemsize
    tiles = [
        Tile(down, across, rows, columns)
        for down, across in SHAPES
        for rows, columns in PIECES
        if rows * columns * size <= 256  # bytes of registers
    ]
    return min(tiles, key=cost)


class ProductEmitter(ThreadEmitter):
    """Emits the kernel of one product."""

    def __init__(
        self,
        step: Matmul,
        tile: Tile,
        target: CudaTarget,
        definitions: MutableMapping[str, str],
    ) -> None:
        counts = [
            abs(s) * n for s, n in zip(step.a_strides, (step.batch, step.m, step.k), strict=True)
        ]
        counts += [
            abs(s) * n for s, n in zip(step.b_strides, (step.batch, step.k, step.n), strict=True)
        ]
        small = fits_32_bits([sum(counts), step.batch * step.m * step.n + tile.m * tile.n])
        arrays = list(dict.fromkeys((step.a, step.b, step.c)))
        super().__init__(
            target, "i32" if small else "i64", arrays, dict.fromkeys(arrays, 0), definitions
        )
        self.step, self.tile = step, tile
        self.dtype = step.c.dtype
        self.element = SCALAR_TYPES[self.dtype]
        self.written = {step.c}

    def body(self) -> None:
        step, tile, op = self.step, self.tile, self.value_of
        ty = self.index_type
        tm, tn = -(-step.m // tile.m), -(-step.n // tile.n)
        q = self.block_number()
        block_n = op(f"urem {ty} {q}, {tn}")
        q = op(f"udiv {ty} {q}, {tn}")
        block_m = op(f"urem {ty} {q}, {tm}")
        batch = op(f"udiv {ty} {q}, {tm}")
        self.m0, self.n0 = op(f"mul {ty} {block_m}, {tile.m}"), op(f"mul {ty} {block_n}, {tile.n}")
        t = self.thread()
        self.across = op(f"urem i32 {t}, {tile.across}")
        self.down = op(f"udiv i32 {t}, {tile.across}")
        left = _Side(self, step.a, step.a_offset, step.a_strides, batch, self.m0, step.m, tile.m)
        b_strides = (step.b_strides[0], step.b_strides[2], step.b_strides[1])
        right = _Side(self, step.b, step.b_offset, b_strides, batch, self.n0, step.n, tile.n)
        zero = constant(0, self.dtype, 1)
        sums = tile.rows * tile.columns
        values: Values = [Carried(zero, True, self.element) for _ in range(sums)]
        values += [Carried(x, True, self.element) for x in (*left.fetch("0"), *right.fetch("0"))]

        def turn(k: str, carried: Values) -> Values:
            found = [c.text for c in carried]
            self.barrier()
            left.put(found[sums : sums + left.count])
            right.put(found[sums + left.count :])
            self.barrier()
            after = op(f"add {ty} {k}, {DEPTH}")
            fetched = [*left.fetch(after), *right.fetch(after)]
            new = self._multiply(left, right, found[:sums])
            return [c._replace(text=t) for c, t in zip(carried, [*new, *fetched], strict=True)]

        ends = self._loop("0", str(step.k), DEPTH, values, turn)
        self._store_tile(batch, [c.text for c in ends[:sums]])

    def _multiply(self, left: _Side, right: _Side, sums: list[str]) -> list[str]:
        tile, sums = self.tile, list(sums)
        for k in range(DEPTH):
            rows = left.take(k, self.down, tile.rows, tile.down)
            columns = right.take(k, self.across, tile.columns, tile.across)
            for i, x in enumerate(rows):
                for j, y in enumerate(columns):
                    at = i * tile.columns + j
                    sums[at] = self._multiply_add(x, y, sums[at])
        return sums

    def _multiply_add(self, x: str, y: str, z: str) -> str:
        ty = self.element
        if self.dtype.kind == "f":
            return self.intrinsic(f"llvm.fma.{suffix(self.dtype, 1)}", x, y, z)
        return self.value_of(f"add {ty} {self.value_of(f'mul {ty} {x}, {y}')}, {z}")

    def _store_tile(self, batch: str, sums: list[str]) -> None:
        step, tile, op, ty = self.step, self.tile, self.value_of, self.index_type
        base = op(f"mul {ty} {batch}, {step.m * step.n}")
        columns = [
            op(f"add {ty} {self.n0}, {self.widened(self._own(self.across, j, tile.across))}")
            for j in range(tile.columns)
        ]
        for i in range(tile.rows):
            row = op(f"add {ty} {self.m0}, {self.widened(self._own(self.down, i, tile.down))}")
            with self.only_if(op(f"icmp slt {ty} {row}, {step.m}")):
                first = op(f"add {ty} {base}, {op(f'mul {ty} {row}, {step.n}')}")
                width = 1 if step.n % QUAD else min(tile.columns, QUAD)
                for j in range(0, tile.columns, width):
                    with self.only_if(op(f"icmp slt {ty} {columns[j]}, {step.n}")):
                        at = op(f"add {ty} {first}, {columns[j]}")
                        place = self._address(self.dtype, self.pointers[step.c], at)
                        values = sums[i * tile.columns + j : i * tile.columns + j + width]
                        self._store_group(values, place)

    def _store_group(self, texts: list[str], place: str) -> None:
        if len(texts) == 1:
            self.store(self.dtype, texts[0], place, 1)
            return
        vector, ty = "poison", f"<{len(texts)} x {self.element}>"
        for k, text in enumerate(texts):
            vector = self.value_of(f"insertelement {ty} {vector}, {self.element} {text}, i32 {k}")
        align = min(len(texts) * self.dtype.itemsize, 16)
        self.lines.append(f"  store {ty} {vector}, ptr {place}, align {align}")

    def _own(self, thread: str, k: int, threads: int) -> str:
        """The k-th row (or column) of a thread in the tile: groups of neighbours, far apart."""
        group, within = divmod(k, QUAD)
        total = self.tile.rows if thread == self.down else self.tile.columns
        width = min(total, QUAD)
        start = self.value_of(f"mul i32 {thread}, {width}")
        return self.value_of(f"add i32 {start}, {group * threads * width + within}")


class _Side:
    """One operand: how a block brings DEPTH of its columns to shared memory, `size` rows of them.

    Rows here are a's rows or b's columns; strides are those of batch, row, and the dim summed over.
    """

    def __init__(
        self,
        e: ProductEmitter,
        array: Array,
        offset: int,
        strides: tuple[int, int, int],
        batch: str,
        first: str,
        rows: int,
        size: int,
    ) -> None:
        self.e, self.rows, self.size = e, rows, size
        self.count = size * DEPTH // THREADS
        self.stride = size + SKEW
        ty, op = e.index_type, e.value_of
        self.memory = e.shared(e.dtype, DEPTH * self.stride)
        self.pointer = e.pointers[array]
        _, by_row, by_k = strides
        base = op(f"add {ty} {op(f'mul {ty} {batch}, {strides[0]}')}, {offset}")
        self.places: list[tuple[str, str, str, str]] = []  # inside, k, position at k0 = 0, shared
        along_k = abs(by_k) <= abs(by_row)  # neighbouring threads read neighbours in memory
        for c in range(self.count):
            number = op(f"add i32 {e.thread()}, {c * THREADS}")
            k, row = (
                (op(f"urem i32 {number}, {DEPTH}"), op(f"udiv i32 {number}, {DEPTH}"))
                if along_k
                else (op(f"udiv i32 {number}, {size}"), op(f"urem i32 {number}, {size}"))
            )
            shared = op(f"add i32 {op(f'mul i32 {k}, {self.stride}')}, {row}")
            at_row = op(f"add {ty} {first}, {e.widened(row)}")
            inside = op(f"icmp slt {ty} {at_row}, {rows}")
            position = op(f"add {ty} {base}, {op(f'mul {ty} {at_row}, {by_row}')}")
            self.places.append((inside, e.widened(k), position, shared))
        self.by_k = by_k

    def fetch(self, k0: str) -> list[str]:
        """This thread's elements of the columns from k0 on; zeros beyond the ends."""
        e, op, ty = self.e, self.e.value_of, self.e.index_type
        found = []
        for inside, k, position, _ in self.places:
            at_k = op(f"add {ty} {k0}, {k}")
            here = op(f"and i1 {inside}, {op(f'icmp slt {ty} {at_k}, {e.step.k}')}")
            at = op(f"add {ty} {position}, {op(f'mul {ty} {at_k}, {self.by_k}')}")
            at = op(f"select i1 {here}, {ty} {at}, {ty} 0")
            value = e.load(e.dtype, e._address(e.dtype, self.pointer, at), 1)
            zero = constant(0, e.dtype, 1)
            found.append(op(f"select i1 {here}, {e.element} {value}, {e.element} {zero}"))
        return found

    def put(self, values: list[str]) -> None:
        e = self.e
        for (_, _, _, shared), value in zip(self.places, values, strict=True):
            e.store(e.dtype, value, e.in_shared(e.dtype, self.memory, shared), 1)

    def take(self, k: int, thread: str, count: int, threads: int) -> list[str]:
        """A thread's rows at column k, neighbours by one access."""
        e, op = self.e, self.e.value_of
        width = min(count, QUAD)
        ty = f"<{width} x {e.element}>" if width > 1 else e.element
        align = min(math.gcd(width * e.dtype.itemsize, SKEW * e.dtype.itemsize), 16)
        found: list[str] = []
        for group in range(count // width):
            start = op(f"mul i32 {thread}, {width}")
            at = op(f"add i32 {start}, {k * self.stride + group * threads * width}")
            vector = e.fresh(
                f"load {ty}, ptr {e.in_shared(e.dtype, self.memory, at)}, align {align}"
            )
            if width == 1:
                found.append(vector)
                continue
            found += [op(f"extractelement {ty} {vector}, i32 {j}") for j in range(width)]
        return found
