"""Attention on GPUs as plain data: what is computed, and how it is cut into blocks.

    forward   y and lse: a block of queries stays, keys and values pass by
    queries   dq:        a block of queries stays, keys and values pass by
    keys      dk, dv:    a block of keys and values stays, queries pass by

What stays is called *rows*, what passes by *columns*. A warp has some of a block's rows and meets all
columns, a block of them at a time; what it has to sum stays in its registers. Operands too wide for that
are summed in *slices*, a block for each; operands too wide for shared memory pass it in *panels*.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product
from typing import Literal

from ....ir.record import record, replace
from ...cuda.target import CudaTarget
from ...loop_ir.kernel import Array
from ...loop_ir.steps import Tiled
from ...scalar import DType
from ..matmul.cuda_tiles import BF16, CHUNK, F16, F64, F64_LARGE, Atom, atom_for

Kind = Literal["forward", "queries", "keys"]
SMALL = ("f16", "bf16")  # elements of 16 bits


@record(frozen=False, eq=False)
class Matrices:
    """Matrices in an array: strides, in elements, of the dims of the batch, of rows and of columns."""

    array: Array
    batch: tuple[int, ...]
    row: int
    column: int = 1
    offset: int = 0


@record(frozen=False, eq=False)
class AttentionStep(Tiled):
    """One kernel. `element` is what 16 or more bits of the operands are.

    `forward` has y and lse as results, with `parts` more in front: part p has seen `length` keys, and
    y is zero and lse minus infinity where it saw none. The others have the cotangent of y, lse, and the
    sums of y times its cotangent over each row.
    """

    kind: Kind
    element: str
    q: Matrices
    k: Matrices
    v: Matrices
    bias: Matrices | None
    backward_inputs: tuple[Matrices, ...]  # ct, lse, share
    results: tuple[Matrices, ...]
    batch: tuple[int, ...]
    queries: int
    keys: int
    depth: int
    width: int
    scale: float
    causal: bool
    parts: int = 1
    length: int = 0

    @property
    def reads(self) -> list[Array]:
        views = (
            self.q,
            self.k,
            self.v,
            *((self.bias,) if self.bias else ()),
            *self.backward_inputs,
        )
        return list(dict.fromkeys(v.array for v in views))

    @property
    def writes(self) -> list[Array]:
        return [v.array for v in self.results]

    @property
    def flops(self) -> int:
        seen = self.queries * self.keys // (2 if self.causal else 1)
        sums = sum(w for _, _, w in self.pairs) + sum(w for _, w in self.sums)
        return 2 * math.prod(self.batch) * seen * (sums + 10)

    # What stays, and what passes by.

    @property
    def rows(self) -> int:
        return self.keys if self.kind == "keys" else self.queries

    @property
    def columns(self) -> int:
        return self.queries if self.kind == "keys" else self.keys

    @property
    def pairs(self) -> list[tuple[Matrices, Matrices, int]]:
        """Rows and columns whose products are wanted, and over how many elements: the scores, and for
        derivatives the cotangents of the probabilities."""
        products = [(self.q, self.k, self.depth)]
        if self.kind != "forward":
            products.append((self.backward_inputs[0], self.v, self.width))
        return [(k, q, n) for q, k, n in products] if self.kind == "keys" else products

    @property
    def sums(self) -> list[tuple[Matrices, int]]:
        """The columns of which weighted sums are wanted, and their widths."""
        match self.kind:
            case "forward":
                return [(self.v, self.width)]
            case "queries":
                return [(self.k, self.depth)]
        return [(self.q, self.depth), (self.backward_inputs[0], self.width)]

    @property
    def passing(self) -> list[tuple[Matrices, int]]:
        """The operands that pass by, each once, and their widths."""
        operands = [*((m, n) for _, m, n in self.pairs), *self.sums]
        return list({id(m): (m, n) for m, n in operands}.values())

    @property
    def real(self) -> DType:
        """The dtype of sums."""
        return DType("f8" if self.element == "f64" else "f4")


@record
class AttentionTile:
    """`rows` of each warp, `columns` at a time, `width` of each sum in one block; `stages` blocks of
    columns in shared memory at a time. Without `whole`, operands pass shared memory in panels of
    `width`."""

    warps: int
    rows: int
    columns: int
    width: int
    stages: int
    whole: bool
    atom: Atom | None = None

    @property
    def threads(self) -> int:
        return 32 * self.warps

    @property
    def height(self) -> int:
        return self.warps * self.rows

    def slices(self, step: AttentionStep) -> int:
        """Blocks that share the widths of the sums."""
        return max(-(-w // self.width) for _, w in step.sums)

    def length(self, step: AttentionStep, view: Matrices, width: int) -> int:
        """Elements in a line of an operand that passes by wholly."""
        length = padded(width, view.array.dtype.itemsize, self.atom)
        summed = any(view is m for m, _ in step.sums)
        return max(length, self.slices(step) * self.width) if summed else length

    def blocks(self, step: AttentionStep) -> int:
        down = -(-step.rows // self.height)
        return math.prod(step.batch) * down * self.slices(step) * step.parts

    @property
    def note(self) -> str:
        """The tile in a few words."""
        how = self.atom.element + " on tensor cores" if self.atom else "by ordinary arithmetic"
        return f"blocks of {self.height} x {self.columns}, {self.threads} threads, {how}"


def atoms_for(element: str, target: CudaTarget) -> list[Atom | None]:
    """The instructions that multiply exactly enough, the best one first; None: ordinary arithmetic."""
    if element in SMALL:
        return [{"f16": F16, "bf16": BF16}[element] if target.arch >= 80 else None]
    atom = atom_for(DType({"f32": "f4", "f64": "f8"}[element]), target)
    return [F64_LARGE, F64] if atom is F64_LARGE else [atom]


def line_bytes(elements: int, size: int) -> int:
    """From line to line of shared memory: an odd number of chunks, so that the same chunk of eight
    lines is in all banks."""
    return (-(-elements * size // CHUNK) | 1) * CHUNK


def padded(width: int, itemsize: int, atom: Atom | None) -> int:
    """A width that instructions divide: zeros are added."""
    unit = 128 // itemsize if atom is None and itemsize > 2 else 32 if atom is None else 16
    return -(-width // unit) * unit


# Registers of 32 bits of a thread that sums and scores had better not exceed, and may not: the rest
# holds operands.
REGISTERS = {"f16": (160,), "bf16": (160,), "f32": (160,), "f64": (112, 160)}
WIDTHS = (256, 128, 64)  # of slices
# Shared memory of a multiprocessor in KiB, by architecture. A block may have 1 less.
SHARED = {75: 65, 80: 164, 86: 100, 87: 164, 89: 100, 90: 228, 100: 228, 103: 228, 110: 228}


def tiles_for(step: AttentionStep, target: CudaTarget) -> list[AttentionTile]:
    """Tiles, the one first with which attention is done soonest.

    All have the same columns, which follow from shapes and the architecture: results depend neither on
    the tile nor on how many multiprocessors there are.
    """
    ranked = sorted(candidates(step, target), key=lambda tile: _time(step, tile))
    best = ranked[0]
    needed = -(-step.rows // best.rows)
    counts = [n for n in (4, 2, 1) if n <= best.warps and (n == 1 or n // 2 < needed)]
    tiles = [replace(best, warps=n) for n in counts]
    first = next((t for t in tiles if t.blocks(step) >= target.sms), tiles[-1])
    alike = [t for t in ranked if (t.columns, t.atom) == (best.columns, best.atom)]
    room = room_of(replace(best, warps=1), target)
    larger = [replace(t, warps=8) for t in alike if shared_bytes(step, replace(t, warps=8)) <= room]
    return list(dict.fromkeys([first, *tiles, *alike, *larger]))


def _time(step: AttentionStep, tile: AttentionTile) -> float:
    """How long one element of the scores takes, in some unit: elements that are read from shared memory
    for it, and what is done once per row and block of columns."""
    widths = sum(min(w, tile.width) for _, w in step.sums)
    reading = sum(n for _, _, n in step.pairs) * (1 / tile.rows + 1 / tile.columns)
    reading += widths / tile.rows
    scaling = 8 + (widths / 32 if step.kind == "forward" else 0)
    time = reading + scaling / tile.columns
    time *= tile.slices(step) * (1 if tile.whole else 2) * (2 if tile.atom is F64 else 1)
    for size, n in ((tile.rows, step.rows), (tile.columns, step.columns)):
        time *= -(-n // size) * size / n
    return time / min(tile.warps, 4)


def candidates(step: AttentionStep, target: CudaTarget) -> Iterator[AttentionTile]:
    """Tiles whose sums fit registers and whose operands fit shared memory."""
    for registers in REGISTERS[step.element]:
        tiles = [
            tile
            for atom in atoms_for(step.element, target)
            for tile in _candidates(step, target, atom, registers)
        ]
        yield from tiles
        if tiles:
            return


def _candidates(
    step: AttentionStep, target: CudaTarget, atom: Atom | None, registers: int
) -> Iterator[AttentionTile]:
    size = step.q.array.dtype.itemsize
    widest = padded(max(w for _, w in step.sums), size, atom)
    widths = sorted({min(widest, n) for n in WIDTHS}, reverse=True)
    sizes = product((True, False), widths, (32, 16, 8), (64, 32, 16))
    for whole, width, rows, columns in sizes:
        sums = len(step.sums) * width + len(step.pairs) * columns
        held = rows * sums // 32 * (step.real.itemsize // 4)
        if rows < (atom.m if atom else 8) or held > registers:
            continue
        tiles = (AttentionTile(n, rows, columns, width, 2, whole, atom) for n in (4, 2, 1))
        yield from [t for t in tiles if shared_bytes(step, t) <= room_of(t, target)][:1]


def room_of(tile: AttentionTile, target: CudaTarget) -> int:
    """Bytes of shared memory that a block may have: large ones leave some for another."""
    whole = SHARED.get(target.arch, 100)
    return (whole // 2 if whole > 65 and tile.warps > 1 else whole) - 1 << 10


def shared_bytes(step: AttentionStep, tile: AttentionTile) -> int:
    """Of shared memory that a block needs."""
    size = step.q.array.dtype.itemsize
    weights = 0
    if tile.atom is None:
        weights = tile.height * line_bytes(tile.columns, step.real.itemsize)
    if not tile.whole:
        lines = tile.height + tile.columns
        return weights + lines * line_bytes(tile.width, size)
    rows = sum(line_bytes(padded(n, size, tile.atom), size) for _, _, n in step.pairs)
    columns = sum(line_bytes(tile.length(step, m, n), size) for m, n in step.passing)
    if step.kind == "keys":
        columns += 2 * step.real.itemsize
    return weights + tile.height * rows + tile.stages * tile.columns * columns
