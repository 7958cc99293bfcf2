"""How products of matrices are cut into tiles, and by which instructions a tile is multiplied.

    c is cut into tiles, one for each block; a tile into those of warps; the sum into steps of `depth`

Ordinary arithmetic has every dtype: each thread multiplies a piece of the warp's tile. Tensor cores
multiply small matrices that the threads of a warp hold together (an `Atom`). In either case an element
is one chain of sums in the order of k, so results do not depend on tiles: a simple model chooses them
by how many multiprocessors there are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from ....ir.record import record
from ...cuda.intrinsics import INTRINSICS
from ...cuda.target import CudaTarget
from ...loop_ir.steps import Matmul
from ...scalar import DType

if TYPE_CHECKING:
    from .cuda_warpgroups import WarpgroupTile

CHUNK = 16  # bytes that are copied together at the most
DOWN, ACROSS = 4, 8  # how the threads of a warp share its tile on ordinary arithmetic
ACCUMULATOR_BYTES = 512  # of a thread
# Bytes that the stages of a block may take together where copies are asynchronous.
SHARED = 96 << 10


@record
class Atom:
    """An instruction of tensor cores: c[m, n] += a[m, k] @ b[k, n] by the threads of a warp.

    `element` is what it makes of the operands' elements, which lie in memory with `itemsize` bytes.
    """

    name: str
    m: int
    n: int
    k: int
    element: str
    itemsize: int


BF16 = Atom("mma.m16n8k16.row.col.bf16", 16, 8, 16, "bf16", 2)
F16 = Atom("mma.m16n8k16.row.col.f32.f32", 16, 8, 16, "f16", 2)
TF32 = Atom("mma.m16n8k8.row.col.tf32", 16, 8, 8, "tf32", 4)
F64 = Atom("mma.m8n8k4.row.col.f64", 8, 8, 4, "f64", 8)
F64_LARGE = Atom("mma.m16n8k16.row.col.f64", 16, 8, 16, "f64", 8)


@record
class Tile:
    """Warps down and across a block's tile of the result; rows and columns of each warp.

    `stages` steps of the sum, `depth` elements each, are in shared memory at a time.
    """

    down: int
    across: int
    rows: int
    columns: int
    depth: int
    stages: int
    atom: Atom | None = None

    @property
    def threads(self) -> int:
        return 32 * self.down * self.across

    @property
    def m(self) -> int:
        return self.down * self.rows

    @property
    def n(self) -> int:
        return self.across * self.columns

    def blocks(self, step: Matmul) -> int:
        return step.batch * -(-step.m // self.m) * -(-step.n // self.n)

    @property
    def note(self) -> str:
        """The tile in a few words."""
        how = self.atom.element + " on tensor cores" if self.atom else "by ordinary arithmetic"
        return f"tiles of {self.m} x {self.n}, {self.threads} threads, {how}"


def atom_for(dtype: DType, target: CudaTarget) -> Atom | None:
    """The instruction that multiplies exactly enough; None: ordinary arithmetic does."""
    if dtype.kind != "f" or target.arch < 80:
        return None
    if dtype.itemsize == 4:
        return TF32 if target.tf32 else None
    if target.arch // 10 == 9 and target.ptx >= INTRINSICS[f"llvm.nvvm.{F64_LARGE.name}"].ptx:
        return F64_LARGE
    return F64 if target.arch in (80, 90, 100) else None  # others have hardly any units for it


def atom_of(step: Matmul, target: CudaTarget) -> Atom | None:
    """The instruction that multiplies a product's operands; None: ordinary arithmetic does."""
    if step.element:
        return {"f16": F16, "bf16": BF16}[step.element]
    return atom_for(step.c.dtype, target)


def takes(element: str, target: CudaTarget) -> bool:
    """Whether tensor cores multiply floats of 16 bits."""
    return element in ("f16", "bf16") and target.arch >= 80


def tile_for(step: Matmul, target: CudaTarget) -> Tile:
    """The tile with which a product is done soonest, by a simple model."""
    tile = tiles_for(step, target)[0]
    assert isinstance(tile, Tile), "there are no others"
    return tile


def tiles_for(
    step: Matmul, target: CudaTarget, others: Iterable[tuple[WarpgroupTile, float]] = ()
) -> list[Tile | WarpgroupTile]:
    """Tiles for a product, soonest done first, by a simple model: waves of blocks.

    `others` are tiles of another kind, each with how much of the arithmetic's speed it reaches.
    """
    dtype = step.a.dtype if step.element else step.c.dtype
    atom = atom_of(step, target)
    fetch = FETCH if atom is None else FETCH_TENSOR

    def cost(option: tuple[Tile | WarpgroupTile, float]) -> float:
        tile, efficiency = option
        together = max(256 // tile.threads, 1)  # blocks that a multiprocessor runs side by side
        waves = -(-tile.blocks(step) // (target.sms * together))
        return waves * together * (tile.m * tile.n / efficiency + (tile.m + tile.n) * fetch)

    options: list[tuple[Tile | WarpgroupTile, float]] = [
        *candidates(dtype.itemsize, atom, target),
        *others,
    ]
    return [tile for tile, _ in sorted(options, key=cost)]


FETCH, FETCH_TENSOR = 8, 32  # multiply-adds in the time in which an element of an operand comes

# Rows and columns of a thread, and how much of the arithmetic's speed such a piece reaches.
PIECES = {(8, 8): 1.0, (8, 4): 0.8, (4, 8): 0.8, (4, 4): 0.6, (2, 4): 0.4}
WARPS = [(2, 4), (4, 2), (2, 2), (1, 4), (1, 8), (8, 1), (4, 1)]
# The same for warps on tensor cores.
WARP_TILES = {
    (64, 64): 1.0,
    (64, 32): 0.85,
    (32, 64): 0.85,
    (32, 32): 0.7,
    (16, 32): 0.45,
    (16, 16): 0.35,
}


def candidates(
    itemsize: int, atom: Atom | None, target: CudaTarget
) -> Iterator[tuple[Tile, float]]:
    """Tiles, each with how much of the arithmetic's speed it reaches."""
    shapes = (
        {(DOWN * r, ACROSS * c): f for (r, c), f in PIECES.items()} if atom is None else WARP_TILES
    )
    for (rows, columns), efficiency in shapes.items():
        accumulator = max(itemsize, 4)
        if rows * columns // 32 * accumulator > ACCUMULATOR_BYTES // (1 if atom else 2):
            continue
        for down, across in WARPS if atom is None else WARPS[:4]:
            if min(down * rows, across * columns) * itemsize < CHUNK:
                continue
            tile = tile_of(down, across, rows, columns, itemsize, atom, target)
            room = target.shared_bytes if atom is None else SHARED
            if tile.stages * (tile.m + tile.n) * tile.depth * itemsize <= room:
                yield tile, efficiency


def tile_of(
    down: int,
    across: int,
    rows: int,
    columns: int,
    itemsize: int,
    atom: Atom | None,
    target: CudaTarget,
) -> Tile:
    """A tile with as many stages as fit."""
    depth = 32 if atom is not None and itemsize == 2 else 16
    stage = (down * rows + across * columns) * depth * itemsize
    stages = 2
    if target.arch >= 80:  # copies are asynchronous
        room, most = (target.shared_bytes, 3) if atom is None else (SHARED, 4)
        stages = max(min(room // stage, most), 2)
    return Tile(down, across, rows, columns, depth, stages, atom)


BLOCKS_WANTED = 128
PART = 512  # elements of a sum in one part, at the least
# What the length of a part is a multiple of: no step of any kernel reaches into the next.
WHOLE = 64


def parts_of(m: int, n: int, k: int) -> tuple[int, int]:
    """Parts into which a long sum is cut, so that many blocks have work, and the length of each.

    By shape alone: results depend on it.
    """
    parts = min(BLOCKS_WANTED // (-(-m // 64) * -(-n // 64)), k // PART)
    if parts < 2:
        return 1, k
    length = -(-k // (WHOLE * parts)) * WHOLE
    return -(-k // length), length


def other_parts(m: int, n: int, k: int, sms: int) -> list[tuple[int, int]]:
    """Other numbers of parts that may be faster, and the lengths: for who measures."""
    cuts = []
    for parts in (1, 2, 4, 8, 16, 32, 64, 128):
        length = -(-k // (16 * parts)) * 16 if parts > 1 else k
        blocks = -(-m // 64) * -(-n // 64) * parts
        if parts == 1 or (length >= PART // 4 and blocks <= 4 * sms):
            cuts.append((-(-k // length), length))
    return cuts
