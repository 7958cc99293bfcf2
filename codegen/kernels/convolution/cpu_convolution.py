"""A convolution as LLVM functions: blocks of positions around micro-kernels (see `schedule.conv_plan`).

    void @conv(ptr %ctx, i64 %lo, i64 %hi)      %ctx: x, w, y

does the units lo..hi. A unit copies the window of x that its positions cover to a scratch block on the
stack, with zeros beyond the edges, so that a micro-kernel finds every operand at a fixed distance from
the first: the positions of a tile differ by constants, its sum runs over taps and channels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, MutableMapping, Sequence
from contextlib import contextmanager
from itertools import product

from ...llvm.builder import Value, constant
from ...llvm.modules import Defined
from ...llvm.text import TextEmitter
from ...llvm.whole import Whole, Word, constant_of
from ...scalar import DType
from ...schedule.conv_plan import Phase, phases
from ...schedule.tiled import Convolution
from ...target import Target
from ..matmul.cpu_gemm import loop, steps
from ..matmul.cpu_tiles import ROWS_AHEAD, Sum, element, has_fma, lane_mask, store_tile, sum_tile

FAR_BYTES = 1 << 14  # a panel of w of this size does not stay in the nearest cache
Define = Callable[[str, str], str]  # a function's text without its name, a hint -> its name
TRIPS = ("t0", "t1", "t2")  # parameters: over how many taps sums run


def convolution(
    step: Convolution, target: Target, definitions: MutableMapping[str, str], define: Define
) -> tuple[str, set[str]]:
    """The function's text from its parameter list on, and declarations of what it calls."""
    return _Convolution(step, target, definitions, define).function()


def moved(e: Whole, dtype: DType, base: Value, by: Iterable[tuple[Word, int]]) -> Value:
    """The address `base` moved by steps: pairs of how many and how long, in elements."""
    return element(e, dtype, base, *(e.times(i, n) for i, n in by))


class _Run:
    """One phase at run time: constants if there is one phase, else words of a table."""

    def __init__(self, words: Sequence[Word]) -> None:
        self.positions, self.taps = words[:3], words[3:6]
        self.x, self.w, self.y = words[6:9]  # offsets of its first position and tap, in elements


class _Convolution:
    def __init__(
        self,
        step: Convolution,
        target: Target,
        definitions: MutableMapping[str, str],
        define: Define,
    ) -> None:
        self.step, self.cut, self.axes = step, step.cut, step.axes
        self.target = target
        self.define = define
        self.dtype = step.y.dtype
        self.size = self.dtype.itemsize
        self.e = Whole(target, 1, definitions=definitions)
        self.declarations: set[str] = set()
        cut = self.cut
        self.blocks = -(-step.channels // cut.channels)
        self.counts = (
            self.axes[0].positions,
            -(-self.axes[1].positions // cut.block_rows),
            -(-self.axes[2].positions // cut.block_columns),
        )
        if cut.direct:
            self.pitches: tuple[int, ...] = step.x_strides[2:]
        else:
            height = self.axes[1].extent(cut.block_rows)
            self.width = self.axes[2].extent(cut.block_columns)
            self.pitches = (
                height * self.width * cut.channels,
                self.width * cut.channels,
                cut.channels,
            )
            self.scratch = self.axes[0].extent(1) * self.pitches[0]
        self.phases = phases(self.axes)
        # B of a panel: taps, channels, features
        unit = cut.channels * cut.panel
        self.tap_pitches = (
            self.axes[1].taps * self.axes[2].taps * unit,
            self.axes[2].taps * unit,
            unit,
        )
        self.panel_size = self.axes[0].taps * self.tap_pitches[0]
        self.panels = -(-step.features // cut.panel)

    @property
    def units(self) -> int:
        return (
            self.step.groups * self.step.images * self.counts[0] * self.counts[1] * self.counts[2]
        )

    def function(self) -> tuple[str, set[str]]:
        e = self.e
        context, lo, hi = e.takes(ctx="ptr", lo="i64", hi="i64")
        self.x, self.w, self.y = (e.argument(context, i) for i in range(3))
        if not self.cut.direct:
            self.memory = e.stack(f"[{self.scratch * self.size} x i8]", name="scratch")
        with loop(e, lo, hi, 1) as u:
            self._unit(u)
        e.ret()
        return e.unnamed(noalias=("ctx",)), self.declarations | set(e.declarations)

    def _unit(self, u: Word) -> None:
        e, step, cut = self.e, self.step, self.cut
        rest, column_block = e.split(u, self.counts[2])
        rest, row_block = e.split(rest, self.counts[1])
        rest, plane = e.split(rest, self.counts[0])
        group, image = e.split(rest, step.images)
        at = (plane, e.times(row_block, cut.block_rows), e.times(column_block, cut.block_columns))
        x = self._moved(self.x, [(group, step.x_strides[0]), (image, step.x_strides[1])])
        x = element(e, self.dtype, x, step.x_offset)
        y = self._moved(self.y, [(group, step.y_strides[0]), (image, step.y_strides[1])])
        y = self._moved(
            y, [(i, a.step * s) for i, a, s in zip(at, self.axes, step.y_strides[2:], strict=True)]
        )
        w = self._moved(self.w, [(group, self.blocks * self.panels * self.panel_size)])
        with steps(e, 0, self.blocks, 1) as block:
            first = e.times(block, cut.channels)
            depth = e.least(e.minus(step.channels, first), cut.channels)
            if cut.direct:
                a = self._moved(
                    x,
                    [
                        (i, ax.source_step * s)
                        for i, ax, s in zip(at, self.axes, step.x_strides[2:], strict=True)
                    ],
                )
                offset = sum(
                    ax.base * s for ax, s in zip(self.axes, step.x_strides[2:], strict=True)
                )
                a = element(e, self.dtype, a, offset)
            else:
                a = self.memory
                self._pack(element(e, self.dtype, x, first), at, depth)
            panels = self._moved(w, [(block, self.panels * self.panel_size)])
            add = False if self.blocks == 1 else block.ne(0)
            with self._each_phase() as run:
                self._phase(run, at, a, panels, y, depth, add)

    def _moved(self, base: Value, by: Sequence[tuple[Word, int]]) -> Value:
        return moved(self.e, self.dtype, base, by)

    # The scratch block.

    def _pack(self, x: Value, at: Sequence[Word], depth: Word) -> None:
        """Copy the window of x under the block at positions `at`, zeros beyond the edges."""
        e, (planes, rows, columns) = self.e, self.axes
        starts = [
            e.plus(e.times(i, a.source_step), a.base) for i, a in zip(at, self.axes, strict=True)
        ]
        left = e.minus(rows.positions, at[1])
        count = e.times(e.minus(e.least(left, self.cut.block_rows), 1), rows.source_step)
        count = e.plus(count, rows.extent(1))
        begin = e.most(e.minus(0, starts[2]), 0)
        begin = e.least(begin, self.width)
        end = e.most(e.least(e.minus(columns.size, starts[2]), self.width), begin)
        pixel = self.cut.channels * self.size
        with (
            steps(e, 0, planes.extent(1), 1) as p,
            loop(e, 0, count, 1) as r,
        ):
            target = self._moved(self.memory, [(p, self.pitches[0]), (r, self.pitches[1])])
            plane, row = e.plus(starts[0], p), e.plus(starts[1], r)
            inside = plane.ult(planes.size)
            row_inside = row.ult(rows.size)
            inside = inside & row_inside
            some = e.select(inside, end, begin)
            self._clear(target, e.times(begin, pixel))
            rest = self._moved(target, [(some, self.cut.channels)])
            self._clear(rest, e.times(e.minus(self.width, some), pixel))
            self._copy_row(x, (plane, row, starts[2]), target, begin, some, depth)

    def _copy_row(
        self, x: Value, start: Sequence[Word], target: Value, begin: Word, end: Word, depth: Word
    ) -> None:
        """Positions begin..end of one row of the scratch block."""
        e, step = self.e, self.step
        column = e.plus(start[2], begin)
        positions = zip((start[0], start[1], column), step.x_strides[2:], strict=True)
        source = self._moved(x, list(positions))
        to = self._moved(target, [(begin, self.cut.channels)])
        dense = step.x_strides[4] == step.channels == self.cut.channels
        if dense:
            self._memcpy(to, source, e.times(e.minus(end, begin), step.channels * self.size))
            return
        with loop(e, begin, end, 1) as i:
            k = e.minus(i, begin)
            one = self._moved(source, [(k, step.x_strides[4])])
            self._memcpy(self._moved(to, [(k, self.cut.channels)]), one, e.times(depth, self.size))

    def _clear(self, target: Value, nbytes: Word) -> None:
        if constant_of(nbytes) != 0:
            self.e.fill(target, 0, nbytes)

    def _memcpy(self, target: Value, source: Value, nbytes: Word) -> None:
        self.e.copy(target, source, nbytes)

    # Phases.

    def _words(self, phase: tuple[Phase, ...]) -> list[int]:
        x = sum(
            (p.source - a.base) * s for p, a, s in zip(phase, self.axes, self.pitches, strict=True)
        )
        w = sum(p.tap * s for p, s in zip(phase, self.tap_pitches, strict=True))
        y = sum(p.first * s for p, s in zip(phase, self.step.y_strides[2:], strict=True))
        return [*(p.positions for p in phase), *(p.taps for p in phase), x, w, y]

    @contextmanager
    def _each_phase(self) -> Iterator[_Run]:
        """Emit the body for each phase: once if there is one, else in a loop over a table of them."""
        e = self.e
        rows = [self._words(p) for p in self.phases]
        if len(rows) == 1:
            yield _Run(rows[0])
            return
        table = e.table([constant("i64", n) for row in rows for n in row])
        with loop(e, 0, len(rows), 1) as i:
            row = e.offset(table, i, f"[{len(rows[0])} x i64]")
            yield _Run([e.constant_word(row, k) for k in range(len(rows[0]))])

    def _phase(
        self,
        run: _Run,
        at: Sequence[Word],
        a: Value,
        w: Value,
        y: Value,
        depth: Word,
        add: Value | bool,
    ) -> None:
        """The positions of one phase that lie in the block at `at`."""
        e, step, cut = self.e, self.step, self.cut
        a = element(e, self.dtype, a, run.x)
        w = element(e, self.dtype, w, run.w)
        y = element(e, self.dtype, y, run.y)
        rows = e.least(e.minus(run.positions[1], at[1]), cut.block_rows)
        columns = e.least(e.minus(run.positions[2], at[2]), cut.block_columns)
        if constant_of(run.positions[0]) != 1 or constant_of(at[0]) != 0:
            here = e.word(at[0]) < run.positions[0]
            rows = e.select(here, rows, 0)
        whole, rest = divmod(step.features, cut.panel)
        for panels, features in ((whole, cut.panel), (1, rest)):
            if not panels or not features:
                continue
            with steps(e, 0, panels, 1) as p:
                panel = p if features == cut.panel else whole
                b = self._moved(w, [(panel, self.panel_size)])
                c = self._moved(y, [(panel, cut.panel)])
                self._rows(run, a, b, c, rows, columns, features, depth, add)

    def _rows(
        self,
        run: _Run,
        a: Value,
        b: Value,
        c: Value,
        rows: Word,
        columns: Word,
        features: int,
        depth: Word,
        add: Value | bool,
    ) -> None:
        """Tiles of several rows first, then rows that are left one by one."""
        e, high = self.e, self.cut.rows
        main = rows
        if high > 1:
            main = e.minus(rows, e.split(e.most(rows, 0), high)[1])
        args = (run, a, b, c, columns, features, depth, add)
        if constant_of(main) != 0:
            with steps(e, 0, main, high) as i:
                self._columns(high, i, *args)
        if high > 1 and main != rows:
            with loop(e, main, rows, 1) as i:
                self._columns(1, i, *args)

    def _columns(
        self,
        high: int,
        row: Word,
        run: _Run,
        a: Value,
        b: Value,
        c: Value,
        columns: Word,
        features: int,
        depth: Word,
        add: Value | bool,
    ) -> None:
        e, cut, step = self.e, self.cut, self.step
        _, vertical, horizontal = self.axes
        a = self._moved(a, [(row, vertical.source_step * self.pitches[1])])
        c = self._moved(c, [(row, vertical.step * step.y_strides[3])])

        def tile(wide: int, column: Word) -> None:
            micro_kernel = self._tile(high, wide, features)
            left = self._moved(a, [(column, horizontal.source_step * self.pitches[2])])
            out = self._moved(c, [(column, horizontal.step * step.y_strides[4])])
            e.run(micro_kernel, left, b, out, *run.taps, depth, add)

        _, rest = e.split(e.most(columns, 0), cut.columns)
        main = e.minus(columns, rest)
        if constant_of(main) != 0:
            with steps(e, 0, main, cut.columns) as j:
                tile(cut.columns, j)
        for wide in self._leftovers():
            if constant_of(rest) not in (None, wide):
                continue
            with e.when(rest.eq(wide)):
                tile(wide, main)

    def _leftovers(self) -> list[int]:
        """How many positions a row of a block may have beyond its whole tiles."""
        rests = set()
        for p in self.axes[2].phases:
            for start in range(0, self.axes[2].positions, self.cut.block_columns):
                positions = min(p.positions - start, self.cut.block_columns)
                rests.add(max(positions, 0) % self.cut.columns)
        return sorted(rests - {0})

    # Micro-kernels.

    def _tile(self, high: int, wide: int, features: int) -> Defined:
        """The micro-kernel

        void @tile(ptr a, ptr b, ptr c, i64 taps..., i64 depth, i1 add)
        """
        cut, step = self.cut, self.step
        e = TextEmitter(self.target, cut.lanes)
        _, vertical, horizontal = self.axes
        positions = list(product(range(high), range(wide)))

        names = dict.fromkeys(TRIPS, "i64") | {"depth": "i64", "add": "i1"}
        a, b, c, *taps, depth_left, adds = e.takes(a="ptr", b="ptr", c="ptr", **names)

        def offsets(rows: int, columns: int) -> list[int]:
            return [i * rows + j * columns for i, j in positions]

        a_rows = [
            element(e, self.dtype, a, offset)
            for offset in offsets(
                vertical.source_step * self.pitches[1], horizontal.source_step * self.pitches[2]
            )
        ]
        vectors = -(-features // cut.lanes)
        one = len(self.phases) == 1
        counts: Sequence[Word] = self._words(self.phases[0])[3:6] if one else taps
        loops = [
            Sum(n, ax.source_tap * pitch, ax.tap_step * tap)
            for n, ax, pitch, tap in zip(
                counts, self.axes, self.pitches, self.tap_pitches, strict=True
            )
        ]
        loops.append(Sum(cut.channels if self.blocks == 1 else depth_left, 1, cut.panel))
        far = self.panel_size * self.size >= FAR_BYTES
        tile = sum_tile(
            e,
            self.dtype,
            a_rows,
            b,
            vectors,
            merged(loops),
            fused=has_fma(self.target),
            soon=ROWS_AHEAD * cut.panel if far else 0,
        )
        last = features % cut.lanes
        mask = lane_mask(e, constant("i32", last)) if last else None
        c_rows = [
            element(e, self.dtype, c, offset)
            for offset in offsets(
                vertical.step * step.y_strides[3], horizontal.step * step.y_strides[4]
            )
        ]
        more, new = e.later("more"), e.later("new")
        for block, add in ((more, True), (new, False)):
            if self.blocks > 1:
                if add:
                    e.branch(adds, more, new)
                e.at(block)
            elif add:
                continue
            with e.scope():
                store_tile(e, self.dtype, tile, c_rows, mask=mask, add=add)
            e.ret()
        self.declarations |= set(e.declarations)
        text = e.unnamed(noalias=("a", "b", "c"), attributes="noinline nounwind")
        return Defined(self.define(text, "conv_tile"), e.types)


def merged(loops: Sequence[Sum]) -> list[Sum]:
    """Loops of a sum, neighbours that walk both operands as one taken together."""
    joined = [loops[-1]]
    for outer in reversed(loops[:-1]):
        inner = joined[0]
        times, n = constant_of(outer.n), constant_of(inner.n)
        if times == 1:
            continue
        if (
            times is not None
            and n is not None
            and constant_of(outer.a) == n * inner.a
            and constant_of(outer.b) == n * inner.b
        ):
            joined[0] = Sum(times * n, inner.a, inner.b)
        else:
            joined.insert(0, outer)
    return joined
