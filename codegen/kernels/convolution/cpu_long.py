"""A convolution with few positions and many taps as LLVM functions (see `conv_plan.LongCut`).

    void @conv(ptr %ctx, i64 %lo, i64 %hi)      %ctx: x, w, partial results

does the units lo..hi. A tile holds some images and features of one position; its sum runs over taps and
channels, x and w being read where they lie. Taps that reach beyond an edge of x are left out.
"""

from __future__ import annotations

from collections.abc import MutableMapping, Sequence
from functools import reduce

from ...llvm.builder import Value, constant
from ...llvm.modules import Defined
from ...llvm.text import TextEmitter
from ...llvm.whole import Whole, Word, constant_of
from ...schedule.conv_plan import Reach
from ...schedule.tiled import LongConvolution
from ...target import Target
from ..matmul.cpu_gemm import loop, steps
from ..matmul.cpu_tiles import Sum, element, has_fma, lane_mask, store_tile, sum_tile
from .cpu_convolution import Define, moved


def long_convolution(
    step: LongConvolution, target: Target, definitions: MutableMapping[str, str], define: Define
) -> tuple[str, set[str]]:
    """The function's text from its parameter list on, and declarations of what it calls."""
    return _LongConvolution(step, target, definitions, define).function()


class _LongConvolution:
    def __init__(
        self,
        step: LongConvolution,
        target: Target,
        definitions: MutableMapping[str, str],
        define: Define,
    ) -> None:
        self.step, self.cut = step, step.cut
        self.target = target
        self.define = define
        self.dtype = step.y.dtype
        self.e = Whole(target, 1, definitions=definitions)
        self.declarations: set[str] = set()
        self.panels = -(-step.features // self.cut.panel)
        # partial results: chunk, group, positions, image, feature
        self.per_position = step.images * step.features
        self.group = self.per_position * step.positions
        self.chunk = self.group * step.groups

    def function(self) -> tuple[str, set[str]]:
        e, step = self.e, self.step
        context, lo, hi = e.takes(ctx="ptr", lo="i64", hi="i64")
        self.x, self.w, self.y = (e.argument(context, i) for i in range(3))
        with loop(e, lo, hi, 1) as u:
            rest, panel = e.split(u, self.panels if self.cut.split_panels else 1)
            rest, position = e.split(rest, step.positions if self.cut.split_positions else 1)
            chunk, group = e.split(rest, step.groups)
            self._unit(chunk, group, position, panel)
        e.ret()
        return e.unnamed(noalias=("ctx",)), self.declarations | set(e.declarations)

    def _moved(self, base: Value, *by: tuple[Word, int]) -> Value:
        return moved(self.e, self.dtype, base, by)

    def _unit(self, chunk: Word, group: Word, position: Word, panel: Word) -> None:
        e, step, cut = self.e, self.step, self.cut
        x = element(e, self.dtype, self.x, step.x_offset)
        x = self._moved(x, (group, step.x_strides[0]))
        w = element(e, self.dtype, self.w, step.w_offset)
        w = self._moved(w, (group, step.w_strides[0]))
        y = self._moved(self.y, (chunk, self.chunk), (group, self.group))
        _, height, _ = step.dims
        across = -(-step.channels // cut.channels)
        down = -(-max(height.most, 1) // cut.rows)
        runs = across * down
        first = e.split(e.times(chunk, runs), cut.chunks)[0]
        last = e.split(e.times(e.plus(chunk, 1), runs), cut.chunks)[0]
        with loop(e, first, last, 1) as run:
            channels, rows = e.split(run, down)
            channel = e.times(channels, cut.channels)
            depth = e.least(e.minus(step.channels, channel), cut.channels)
            row = e.times(rows, cut.rows)
            a = self._moved(x, (channel, step.x_strides[5]))
            b = self._moved(w, (channel, step.w_strides[4]))
            begin, end = (
                (position, e.plus(position, 1)) if cut.split_positions else (0, step.positions)
            )
            with steps(e, begin, end, 1) as p:
                self._position(a, b, self._moved(y, (p, self.per_position)), p, row, depth, panel)

    def _position(
        self, x: Value, w: Value, y: Value, position: Word, row: Word, depth: Word, panel: Word
    ) -> None:
        """One run of one position: all images, some or all panels of features."""
        e, step, cut = self.e, self.step, self.cut
        depths, heights, widths = step.dims
        rest, column = e.split(position, len(widths.positions))
        at_depth, at_row = e.split(rest, len(heights.positions))
        in_depth = self._meeting(depths, at_depth)
        in_height = self._meeting(heights, at_row)
        in_width = self._meeting(widths, column)
        rows = e.least(e.minus(in_height[1], row), cut.rows)
        planes = in_depth[1]
        columns = in_width[1]
        x_steps = [d.source_step * s for d, s in zip(step.dims, step.x_strides[2:5], strict=True)]
        w_steps = [d.tap_step * s for d, s in zip(step.dims, step.w_strides[1:4], strict=True)]
        some = [e.word(n) > 0 for n in (rows, planes, columns) if constant_of(n) != 1]
        with e.where(reduce(e.both, some, None)):
            sources = (in_depth[2], in_height[2], in_width[2])
            taps = (in_depth[0], in_height[0], in_width[0])
            x = self._moved(x, *zip(sources, step.x_strides[2:5], strict=True), (row, x_steps[1]))
            w = self._moved(w, *zip(taps, step.w_strides[1:4], strict=True), (row, w_steps[1]))
            sizes = (planes, depth, rows, columns)
            whole, rest_ = divmod(step.features, cut.panel)
            if cut.split_panels and self.panels > 1:
                if whole:
                    with e.when(e.word(panel) < whole):
                        self._images(x, w, y, panel, cut.panel, sizes)
                if rest_:
                    with e.when(e.word(panel).eq(whole)):
                        self._images(x, w, y, whole, rest_, sizes)
                return
            if whole:
                with steps(e, 0, whole, 1) as p:
                    self._images(x, w, y, p, cut.panel, sizes)
            if rest_:
                self._images(x, w, y, whole, rest_, sizes)

    def _meeting(self, dim: Reach, position: Word) -> tuple[Word, Word, Word]:
        """First tap, number of taps and first element of x at a position."""
        e = self.e
        at = constant_of(position)
        if at is not None:
            m = dim.positions[at]
            return m.tap, m.count, m.source
        words = [n for m in dim.positions for n in (m.tap, m.count, m.source)]
        row = e.offset(e.table([constant("i64", n) for n in words]), e.word(position), "[3 x i64]")
        return e.constant_word(row, 0), e.constant_word(row, 1), e.constant_word(row, 2)

    def _images(
        self, x: Value, w: Value, y: Value, panel: Word, features: int, sizes: Sequence[Word]
    ) -> None:
        e, step, cut = self.e, self.step, self.cut
        b = self._moved(w, (panel, cut.panel))
        c = self._moved(y, (panel, cut.panel))
        whole, rest = divmod(step.images, cut.tile_rows)

        def tile(rows: int, i: Word) -> None:
            micro_kernel = self._tile(rows, features)
            a = self._moved(x, (i, step.x_strides[1]))
            out = self._moved(c, (i, step.features))
            e.run(micro_kernel, a, b, out, *sizes)

        if whole:
            with steps(e, 0, whole * cut.tile_rows, cut.tile_rows) as i:
                tile(cut.tile_rows, i)
        if rest:
            tile(rest, whole * cut.tile_rows)

    def _tile(self, rows: int, features: int) -> Defined:
        """The micro-kernel

        void @tile(ptr a, ptr b, ptr c, i64 planes, i64 channels, i64 rows, i64 columns)

        which adds to c.
        """
        step, cut = self.step, self.cut
        e = TextEmitter(self.target, cut.lanes)
        counts = dict.fromkeys(("t0", "t1", "t2", "t3"), "i64")
        a, b, c, *trips = e.takes(a="ptr", b="ptr", c="ptr", **counts)
        a_rows = [element(e, self.dtype, a, i * step.x_strides[1]) for i in range(rows)]
        c_rows = [element(e, self.dtype, c, i * step.features) for i in range(rows)]
        last = features % cut.lanes
        mask = lane_mask(e, constant("i32", last)) if last else None
        spatial = [
            (d.source_step * s, d.tap_step * t)
            for d, s, t in zip(step.dims, step.x_strides[2:5], step.w_strides[1:4], strict=True)
        ]
        channel = (step.x_strides[5], step.w_strides[4])
        walks = (spatial[0], channel, spatial[1], spatial[2])
        loops = [Sum(n, *walk) for n, walk in zip(trips, walks, strict=True)]
        loops = [s for s, n in zip(loops, self._longest(), strict=True) if n > 1]
        tile = sum_tile(
            e,
            self.dtype,
            a_rows,
            b,
            -(-features // cut.lanes),
            loops,
            fused=has_fma(self.target),
            mask=mask,
        )
        store_tile(e, self.dtype, tile, c_rows, mask=mask, add=True)
        self.declarations |= set(e.declarations)
        e.ret()
        text = e.unnamed(noalias=("a", "b", "c"), attributes="noinline nounwind")
        return Defined(self.define(text, "long_tile"), e.types)

    def _longest(self) -> tuple[int, int, int, int]:
        """The trip counts of the loops of a run, at the most."""
        depth, height, width = self.step.dims
        return depth.most, self.cut.channels, min(height.most, self.cut.rows), width.most
