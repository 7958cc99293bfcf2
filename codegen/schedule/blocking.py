"""How a matrix product is cut: tiles for the registers, panels and blocks for the caches and threads.

    for each unit (what threads share): a batch index, a block of rows, a group of panels
        for each run of `depth` along k
            for each panel of B (a tile's width): for each tile of rows: one micro-kernel

The rows of A in a block times one run of k stay in the second-level cache while B's panels pass by:
copied, where they are many, for rows that are a power of two apart keep each other out of the caches.
What is decided here depends on the shapes, the target and what the user asks alone, so the sums are
always the same ones in the same order, however many threads there are.
"""

from __future__ import annotations

import math

from ...ir.record import record
from ..limits import limits
from ..loop_ir.steps import Matmul
from ..scalar import DType
from ..sizes import has_size
from ..target import Target
from .knobs import done, refused

LOAD_BYTES = 40  # bytes of B that a core gets from its second-level cache per cycle
MANY = 8  # units that are enough for the threads, if the caches do not want more
FLOPS_PER_NS = 100.0


@record
class Blocking:
    """Sizes in elements: `rows` and `columns` of a tile (the last ones may be smaller)."""

    rows: int
    vectors: int
    lanes: int
    depth: int
    block: int  # rows of a unit
    group: int  # panels of a unit
    copied: bool  # A's part of a unit is copied, run by run, so that it lies close together

    @property
    def panel(self) -> int:
        return self.vectors * self.lanes

    def blocks(self, step: Matmul) -> int:
        return -(-step.m // self.block)

    def groups(self, step: Matmul) -> int:
        return -(-panels(step.n, self.panel) // self.group)

    def units(self, step: Matmul) -> int:
        return step.batch * self.blocks(step) * self.groups(step)

    def grain(self, step: Matmul) -> int:
        """How many units a thread takes at a time; all of them if they are not worth sharing."""
        units = self.units(step)
        shares = min(step.flops / (limits().shared_ns * FLOPS_PER_NS), 64.0)
        return units if shares < 2 else max(int(units / shares), 1)


def panels(n: int, panel: int) -> int:
    """How many panels of `panel` columns n columns make, the last of which may be narrower."""
    return -(-n // panel)


def tile_shapes(target: Target) -> list[tuple[int, int]]:
    """The (rows, vectors) of tiles that the registers hold, with a row of B and an element of A."""
    registers = target.registers
    return [(min((registers - v - 1) // v, 14), v) for v in range(1, 5)]


def tile_for(target: Target, dtype: DType, batch: int, m: int, n: int, k: int) -> tuple[int, int]:
    """The (rows, vectors) of a matrix product's tiles."""
    return tile_over(target, dtype, _block(dtype, batch, m, n, k), n)


def tile_over(target: Target, dtype: DType, m: int, n: int) -> tuple[int, int]:
    """The (rows, vectors) of the tile that covers a block of m x n in the fewest cycles."""
    lanes = target.lanes(dtype.itemsize)
    width = -(-n // lanes)
    best = (math.inf, 1, 1)
    for most, vectors in tile_shapes(target):
        if vectors > width:
            continue
        for rows in range(min(most, m), 0, -1):
            cycles = 0.0
            for r, down in ((rows, m // rows), (m % rows, 1)):
                for v, across in ((vectors, width // vectors), (width % vectors, 1)):
                    if r and v:
                        cycles += down * across * tile_cycles(target, r, v)
            # Fewer rows than fit are worth it only if they save something.
            best = min(best, (cycles * (1 + 0.001 * (most - rows)), -rows, -vectors))
    return -best[1], -best[2]


def _block(dtype: DType, batch: int, m: int, n: int, k: int) -> int:
    """Rows of a unit: few enough for the cache, and for several threads where there is work."""
    if batch > 1 and m * n * k * 2.0 < MANY * limits().unit_flops:
        return m
    size = dtype.itemsize
    most = max(limits().block_bytes // min(k * size, limits().run_bytes), 8)
    if (
        k * n * size <= limits().soon_bytes
    ):  # then it is C that should still be near for who reads it
        most = min(most, max(limits().result_bytes // (n * size), limits().least_rows))
    worth = min(2.0 * m * n * k / limits().unit_flops, MANY, m // limits().unit_rows)
    count = max(-(-m // most), int(worth), 1)
    if count > 1:  # an even number of even parts: threads come in pairs
        count += count % 2
    return -(-m // count)


def tile_cycles(target: Target, rows: int, vectors: int) -> float:
    """What one k of a tile takes: multiply-adds, two a cycle, but four at least for their latency;
    or the loads of a row of B. Every load gets in the way a little."""
    traffic = vectors * target.vector_bits / 8 / LOAD_BYTES
    loads = rows + vectors
    wide = vectors * target.vector_bits / 512
    return max(rows * vectors / 2, 4.0, traffic, loads / 2) + 0.05 * rows + 0.12 * wide


def blocking(step: Matmul, target: Target) -> Blocking:
    """Tiles, panels and runs of a product on a target, by its shape, strides and dtype, and by how many
    rows the user wants to go together."""
    dtype, m, n, k = step.c.dtype, step.m, step.n, step.k
    rows, vectors = tile_for(target, dtype, step.batch, m, n, k)
    sized = has_size((m,))
    lanes = target.lanes(dtype.itemsize)
    far = not step.panel and abs(step.b_strides[1]) * k * dtype.itemsize > 1 << 16
    longest = limits().shallow if far else limits().run_bytes // dtype.itemsize
    runs = -(-k // longest)
    depth = k if runs == 1 else -(-k // runs // 8) * 8
    block = _asked(step, _block(dtype, step.batch, m, n, k))
    if sized:  # there may be few rows, and still several threads
        block = min(block, -(-limits().least_rows // rows) * rows)
    count = panels(n, vectors * lanes)
    group = count
    if step.batch == 1 and block == m:
        parts = int(min(2.0 * m * n * k / limits().unit_flops, MANY, count))
        group = -(-count // max(parts, 1))
    nbytes = min(block, m) * min(depth, k) * dtype.itemsize
    copied = step.panel > 0 and group >= limits().copied_panels and nbytes >= limits().copied_bytes
    return Blocking(rows, vectors, lanes, depth, block, group, copied)


def _asked(step: Matmul, block: int) -> int:
    """Rows of a unit: as many as the user asks for, or `block`."""
    knobs = None if step.loc is None else step.loc.knobs
    if knobs is None:
        return block
    for name in ("lanes", "unroll"):
        if getattr(knobs, name) is not None:
            refused(
                knobs, name, "a product's vectors are those that fill the registers: choose tile="
            )
    if knobs.tile is None:
        return block
    if knobs.tile > step.m:
        refused(knobs, "tile", f"the product has {step.m} rows: choose no more")
        return block
    done(knobs, "tile")
    return knobs.tile
