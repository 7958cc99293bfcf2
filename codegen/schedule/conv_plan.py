"""How a convolution is cut: phases of a dilated operand, tiles for the registers, blocks for the caches.

A convolution whose x is dilated (as every transposed one) only meets elements of x at each L-th position
and tap. So it is several plain convolutions, its *phases*, each over its own positions and taps.

    for each unit (what threads share): a group, an image, a block of positions
        for each block of channels
            copy the window of x that the block covers, zeros beyond its edges, to a scratch block
            for each phase: for each panel of features: for each tile of positions: one micro-kernel

The scratch block stays in the second-level cache; no element is stored once per tap. Where nothing
lies beyond the edges x is read where it is. Shapes and target alone decide, so sums are always the same
ones in the same order, however many threads there are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product

from ...ir.ops.products.convolution import Window
from ...ir.record import record
from ..limits import limits
from ..scalar import DType
from ..target import Target
from .blocking import tile_cycles, tile_over, tile_shapes

UNITS = 16  # of this many units there should be at least, where they are worth it


@record
class Phase:
    """Along one dim: every `step`-th position from `first`, every `tap_step`-th tap from `tap`.

    The tap `tap` at the position `first` stands on element `source` of x (maybe beyond an edge).
    """

    first: int
    positions: int
    tap: int
    taps: int
    source: int


@record
class Axis:
    """One spatial dim. Neighbouring positions of a phase are `step` apart in y and `source_step` in x,
    neighbouring taps `tap_step` in w and `source_tap` in x."""

    size: int
    taps: int
    step: int
    tap_step: int
    source_step: int
    source_tap: int
    phases: tuple[Phase, ...]

    @property
    def base(self) -> int:
        """The least element of x that the first position of a phase meets."""
        return min(p.source for p in self.phases)

    @property
    def positions(self) -> int:
        """Positions of the longest phase."""
        return max(p.positions for p in self.phases)

    def extent(self, positions: int) -> int:
        """How many elements of x so many neighbouring positions of all phases cover."""
        last = max(p.source + (p.taps - 1) * self.source_tap for p in self.phases)
        return last - self.base + (positions - 1) * self.source_step + 1

    @property
    def inside(self) -> bool:
        """Whether no position reaches beyond an edge."""
        return self.base >= 0 and all(
            p.source + (p.positions - 1) * self.source_step + (p.taps - 1) * self.source_tap
            < self.size
            for p in self.phases
        )


def axis(d: Window) -> tuple[Axis, bool]:
    """The phases of one dim that have taps, and whether there are positions without any."""
    along = math.gcd(d.stride, d.lhs_dilation)
    across = math.gcd(d.rhs_dilation, d.lhs_dilation)
    step, tap_step = d.lhs_dilation // along, d.lhs_dilation // across
    phases = []
    count = min(step, d.positions)
    for first in range(count):
        at = first * d.stride - d.low
        tap = next(
            (
                k
                for k in range(min(tap_step, d.taps))
                if (at + k * d.rhs_dilation) % d.lhs_dilation == 0
            ),
            None,
        )
        if tap is not None:
            source = (at + tap * d.rhs_dilation) // d.lhs_dilation
            positions, taps = -(-(d.positions - first) // step), -(-(d.taps - tap) // tap_step)
            phases.append(Phase(first, positions, tap, taps, source))
    result = Axis(
        d.size, d.taps, step, tap_step, d.stride // along, d.rhs_dilation // across, tuple(phases)
    )
    return result, len(phases) < count


@record
class Cut:
    """Sizes of tiles and blocks, in positions, vectors and channels."""

    rows: int  # of a tile: positions along the dim before the last one
    columns: int  # of a tile: positions along the last dim
    vectors: int
    lanes: int
    block_rows: int
    block_columns: int
    channels: int  # of a block
    direct: bool  # x is read where it is

    @property
    def panel(self) -> int:
        return self.vectors * self.lanes


def cut(
    axes: Sequence[Axis], channels: int, features: int, images: int, dtype: DType, target: Target
) -> Cut:
    """How to cut a convolution over three dims (the first ones may be trivial)."""
    depth, height, width = axes
    rows, columns, vectors = _tile(height.positions, width.positions, features, dtype, target)
    lanes = target.lanes(dtype.itemsize)
    direct = all(a.inside for a in axes)
    blocks = 1 if direct else -(-channels // limits().channels)
    per_block = -(-channels // blocks)
    per_position = depth.extent(1) * per_block * dtype.itemsize
    wide = width.positions
    room = limits().window_bytes
    while wide > columns and height.extent(rows) * width.extent(wide) * per_position > room:
        wide = -(-wide // 2 // columns) * columns
    high = rows
    while (
        high < height.positions
        and height.extent(high + rows) * width.extent(wide) * per_position <= room
    ):
        high += rows
    taps = math.prod(a.taps for a in axes)
    flops = 2.0 * wide * features * channels * taps
    others = images * depth.positions * -(-width.positions // wide)
    # Rows of a unit, for there to be enough units.
    most = max(-(-height.positions * others // UNITS), 1)
    worth = max(math.ceil(limits().window_flops / flops), 1)
    high = min(high, max(most, worth))
    high = max(high // rows, 1) * rows
    count = -(-height.positions // high)
    high = -(-height.positions // count // rows) * rows  # blocks of about the same size
    return Cut(rows, columns, vectors, lanes, high, wide, per_block, direct)


def _tile(
    height: int, width: int, features: int, dtype: DType, target: Target
) -> tuple[int, int, int]:
    """(rows, columns, vectors) of the tile that does all positions and features in the fewest cycles."""
    across = -(-features // target.lanes(dtype.itemsize))
    best = (math.inf, 1, 1, 1)
    for most, vectors in tile_shapes(target):
        if vectors > across:
            continue
        choices = [(1, c) for c in range(1, min(most, width) + 1)]
        if 2 * width <= most and height > 1:
            choices = [(r, width) for r in range(1, min(most // width, height) + 1)]
        for rows, columns in choices:
            cycles = 0.0
            for r, down in ((rows, height // rows), (1, height % rows)):
                for c, along in ((columns, width // columns), (width % columns, 1)):
                    for v, panels in ((vectors, across // vectors), (across % vectors, 1)):
                        if down and along and panels and c and v:
                            cycles += down * along * panels * tile_cycles(target, r * c, v)
            best = min(best, (cycles, -rows, -columns, -vectors))
    return -best[1], -best[2], -best[3]


def phases(axes: Sequence[Axis]) -> list[tuple[Phase, ...]]:
    """Every combination of a phase of each dim: the plain convolutions that make a dilated one."""
    return list(product(*(a.phases for a in axes)))


# Few positions and many taps: the gradient of a kernel


@record
class Meeting:
    """At a position along a dim: taps `tap`, `tap + tap_step`, ... meet elements of x from `source`."""

    tap: int
    count: int
    source: int


@record
class Reach:
    """One spatial dim seen from its positions; neighbouring taps are `source_step` apart in x."""

    tap_step: int
    source_step: int
    positions: tuple[Meeting, ...]

    @property
    def most(self) -> int:
        return max(m.count for m in self.positions)


def reach(d: Window) -> Reach:
    """Which taps meet the source, of each position along a dim."""
    across = math.gcd(d.rhs_dilation, d.lhs_dilation)
    tap_step, source_step = d.lhs_dilation // across, d.rhs_dilation // across
    meetings = []
    for p in range(d.positions):
        met = [
            k
            for k in range(d.taps)
            if (at := p * d.stride + k * d.rhs_dilation - d.low) % d.lhs_dilation == 0
            and 0 <= at // d.lhs_dilation < d.size
        ]
        first = met[0] if met else 0
        source = (p * d.stride + first * d.rhs_dilation - d.low) // d.lhs_dilation
        meetings.append(Meeting(first, len(met), source if met else 0))
    return Reach(tap_step, source_step, tuple(meetings))


def meets(d: Window) -> bool:
    """Whether any tap meets an element of x at any position."""
    return any(m.count for m in reach(d).positions)


PARTIAL_BYTES = 8 << 20  # of all partial results
CHUNKS = 16


@record
class LongCut:
    """How sums over many taps are cut: into runs, each kept in registers, and chunks of runs.

    A run covers `channels` channels, `rows` taps along the dim before the last, and all along the
    last. Each of `chunks` chunks of runs has partial results of its own. Chunks, and where these are
    few, positions and panels of features, are what threads share.
    """

    tile_rows: int
    vectors: int
    lanes: int
    channels: int
    rows: int
    chunks: int
    split_positions: bool
    split_panels: bool

    @property
    def panel(self) -> int:
        return self.vectors * self.lanes


def long_cut(
    dims: Sequence[Reach],
    images: int,
    channels: int,
    features: int,
    groups: int,
    dtype: DType,
    target: Target,
) -> LongCut:
    """The cut of a convolution with few positions and many taps."""
    rows, vectors = tile_over(target, dtype, images, features)
    _, height, width = dims
    run = min(max(-(-limits().window_run // max(width.most, 1)), 1), max(height.most, 1))
    along = min(max(limits().window_run // max(width.most * run, 1), 1), channels)
    runs = -(-channels // along) * -(-max(height.most, 1) // run)
    positions = math.prod(len(d.positions) for d in dims)
    nbytes = groups * images * features * positions * dtype.itemsize
    chunks = max(min(CHUNKS, runs, PARTIAL_BYTES // max(nbytes, 1)), 1)
    few = groups * chunks < CHUNKS
    return LongCut(rows, vectors, target.lanes(dtype.itemsize), along, run, chunks, few, few)
