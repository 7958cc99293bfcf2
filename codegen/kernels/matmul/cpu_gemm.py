"""A matrix product as LLVM functions: blocks of rows and panels of columns around micro-kernels.

    void @gemm(ptr %ctx, i64 %lo, i64 %hi)      %ctx: A, B, C; the status block, if C is watched

does the units lo..hi of a `Matmul` (see `schedule.blocking`). Each unit writes its own part of C, and
sums along k in the same order whoever does it. The blocks are those that caches hold (K. Goto, R. van
de Geijn, Anatomy of high-performance matrix multiplication, 2008).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import NamedTuple

from ...llvm.builder import NULL, Number, Value
from ...llvm.text import TextEmitter
from ...llvm.whole import Whole, Word, constant_of
from ...loop_ir.steps import Matmul
from ...schedule.blocking import Blocking, panels
from ...sizes import factor_of, size_of
from ...target import Target
from .cpu_tiles import LINE, TileFunction, element, tile_function

FAR_BYTES = 1 << 18  # a packed B of this size may not be in the nearer caches: it is fetched ahead


def gemm(step: Matmul, cut: Blocking, target: Target) -> tuple[str, list[TileFunction], set[str]]:
    """The function's text from its parameter list on, the micro-kernels, and declarations."""
    return _Gemm(step, cut, target).function()


class _Run(NamedTuple):
    """A unit's rows, `first` to `last`, and one run along k: where its parts of A and C begin; B."""

    rows: Value
    b: Value
    c: Value
    first: Value
    last: Value
    k: Word
    depth: Value
    add: Value | bool


class _Gemm:
    def __init__(self, step: Matmul, cut: Blocking, target: Target) -> None:
        self.step = step
        self.cut = cut
        self.target = target
        self.dtype = step.c.dtype
        self.size = self.dtype.itemsize
        self.e = Whole(target, 1)
        self.tiles: dict[str, TileFunction] = {}
        _, row, column = step.a_strides
        self.adjacent = column != 1 and row == 1
        assert column == 1 or row == 1 or step.k == 1, "A has neither rows nor columns side by side"
        self.a_step = column if self.adjacent else row
        if cut.copied:
            # An odd number of cache lines: neighbours do not compete for the same cache sets.
            length = cut.block if self.adjacent else cut.depth
            self.a_step = (-(-length * self.size // LINE) | 1) * LINE // self.size
        self.panels = panels(step.n, cut.panel)
        whole, rest = divmod(step.n, cut.panel)
        self.whole = whole
        self.vectors_left = -(-rest // cut.lanes)
        self.lanes_left = rest % cut.lanes

    def function(self) -> tuple[str, list[TileFunction], set[str]]:
        e, step, cut = self.e, self.step, self.cut
        context, lo, hi = e.takes(ctx="ptr", lo="i64", hi="i64")
        self.a, self.b, self.c = (e.argument(context, i) for i in range(3))
        self.status = [e.argument(context, 3)] if step.watched else []
        self.m, self.k = self._length(context, step.m), self._length(context, step.k)
        if cut.copied:
            nbytes = self.a_step * (cut.depth if self.adjacent else cut.block) * self.size
            self.rows = e.stack(f"[{nbytes} x i8]", LINE, "rows")
        with loop(e, lo, hi, 1) as u:
            rest, group = e.split(u, cut.groups(step))
            batch, block = e.split(rest, cut.blocks(step))
            batch = e.word(0) if step.batch == 1 else batch
            a = self._moved(self.a, (batch, step.a_strides[0]))
            b = self._moved(self.b, (batch, step.b_strides[0]))
            c = self._moved(self.c, (batch, step.m * step.n))
            self._unit(a, b, c, block, group)
        e.ret()
        return e.unnamed(noalias=("ctx",)), list(self.tiles.values()), set(e.declarations)

    def _length(self, context: Value, extent: int) -> Word:
        """An extent, or a multiple of the length of the axis that it goes by."""
        size = size_of(extent)
        if size is None:
            return extent
        assert not self.step.watched, "the third word is the length"
        return self.e.times(self.e.load("i64", self.e.argument(context, 3)), factor_of(extent))

    def _moved(self, base: Value, *by: tuple[Word, int]) -> Value:
        """The address `base` moved by steps: pairs of how many and how long, in elements."""
        return element(self.e, self.dtype, base, *(self.e.times(i, n) for i, n in by))

    def _unit(self, a: Value, b: Value, c: Value, block: Value, group: Value) -> None:
        """One block of rows times one group of panels."""
        e, step, cut = self.e, self.step, self.cut
        first = e.times(block, cut.block)
        last = e.least(e.plus(first, cut.block), self.m)
        begin = e.times(group, cut.group)
        if step.upper:
            begin = e.most(begin, e.split(first, cut.panel)[0])
        end = e.least(e.plus(begin, cut.group), self.panels)
        c = self._moved(c, (first, step.n))
        if isinstance(self.k, Value):
            self._clear(c, e.minus(last, first))
        with steps(e, 0, self.k, cut.depth) as k:
            depth = e.least(e.minus(self.k, k), cut.depth)
            add = False if k.number == 0 else k.ne(0)
            rows = self._moved(a, (k, step.a_strides[2]), (first, step.a_strides[1]))
            if cut.copied:
                rows = self._copy(rows, e.minus(last, first), depth)
            run = _Run(rows, b, c, first, last, k, depth, add)
            if self.whole:
                stop = e.least(end, self.whole)
                with loop(e, begin, stop, 1) as p:
                    self._panel(run, p, cut.vectors, 0)
            if self.vectors_left:
                always = end.number == self.panels and not step.upper
                with nullcontext() if always else e.when(end.eq(self.panels)):
                    self._panel(run, self.whole, self.vectors_left, self.lanes_left)

    def _clear(self, c: Value, rows: Value) -> None:
        """Nothing is summed where the length is 0."""
        e, step = self.e, self.step
        with e.when(e.word(self.k).eq(0)):
            e.fill(c, 0, e.times(rows, step.n * self.size))

    def _copy(self, rows: Value, count: Value, depth: Value) -> Value:
        """The block's part of A close together; pieces are side by side as they are in memory."""
        e, step = self.e, self.step
        pieces, length, stride = count, depth, step.a_strides[1]
        if self.adjacent:
            pieces, length, stride = depth, count, step.a_strides[2]
        nbytes = e.times(length, self.size)
        with loop(e, 0, pieces, 1) as i:
            source, to = self._moved(rows, (i, stride)), self._moved(self.rows, (i, self.a_step))
            e.copy(to, source, nbytes)
        return self.rows

    def _panel(self, run: _Run, p: Word, vectors: int, lanes: int) -> None:
        """The block's rows times one panel."""
        e, step, cut = self.e, self.step, self.cut
        b_step = cut.panel if step.panel else step.b_strides[1]
        if step.panel:
            row = e.plus(e.times(p, step.k), run.k)
            b_at = self._moved(run.b, (row, cut.panel))
        else:
            b_at = self._moved(run.b, (run.k, b_step), (p, cut.panel))
        c_at = self._moved(run.c, (p, cut.panel))

        far = step.panel > 0 and step.k * step.n * self.size >= FAR_BYTES
        tiles = -(-min(cut.block, step.m) // cut.rows)
        # Of the next panel's rows, brought in by each tile.
        share = -(-cut.panel * self.size // tiles)
        following = element(e, self.dtype, b_at, step.k * cut.panel) if far else NULL

        def tile(rows: int, i: Word) -> None:
            fetch = following
            if far:
                number, _ = e.split(i, cut.rows)
                offset = e.times(e.times(number, run.depth), share)
                fetch = e.offset(following, offset)
            function = tile_function(
                self.target,
                self.dtype,
                rows,
                vectors,
                adjacent=self.adjacent,
                masked=lanes > 0,
                panel=cut.panel if far else 0,
                a_step=self.a_step if cut.copied else 0,
                watched=step.watched,
            )
            self.tiles[function.name] = function
            a_row = 1 if self.adjacent else self.a_step if cut.copied else step.a_strides[1]
            left, out = self._moved(run.rows, (i, a_row)), self._moved(c_at, (i, step.n))
            sizes = (step.n, run.depth, run.add, lanes)
            e.run(
                function, left, self.a_step, b_at, b_step, out, *sizes, fetch, share, *self.status
            )

        if isinstance(self.m, Value):
            self._any_rows(tile, e.minus(run.last, run.first))
            return
        whole, rest = self._row_tiles(cut.block)
        final_whole, final_rest = self._row_tiles(step.m - (cut.blocks(step) - 1) * cut.block)
        alike = whole == final_whole
        stop: Word = whole
        last = run.last
        if not alike:
            stop = e.select(last.eq(step.m), e.word(final_whole), whole)
        with loop(e, 0, stop, cut.rows) as i:
            tile(cut.rows, i)
        if alike and rest == final_rest:
            if rest:
                tile(rest, stop)
            return
        for count, how in ((rest, "ne"), (final_rest, "eq")):
            if count:
                with e.when(e.compare(how, last, step.m)):
                    tile(count, stop)

    def _any_rows(self, tile: Callable[[int, Word], None], count: Value) -> None:
        """Tiles for so many rows: whole ones, then those of 8, 4, 2 and 1 that are left."""
        e, rows = self.e, self.cut.rows
        at = e.minus(count, e.split(count, rows)[1])
        with loop(e, 0, at, rows) as i:
            tile(rows, i)
        few = 1 << (rows - 1).bit_length() - 1 if rows > 1 else 0
        while few:
            left = e.minus(count, at)
            take = e.compare("sge", left, few)
            with e.when(take):
                tile(few, at)
            at = e.plus(at, e.select(take, e.word(few), 0))
            few //= 2

    def _row_tiles(self, n: int) -> tuple[int, int]:
        """Rows of n that whole tiles cover, and what is left."""
        return n // self.cut.rows * self.cut.rows, n % self.cut.rows


@contextmanager
def loop(
    e: TextEmitter, lo: Value | Number, hi: Value | Number, step: Value | Number
) -> Iterator[Value]:
    """`with loop(e, lo, hi, step) as i:` emits `for i in range(lo, hi, step)` around the body."""
    head, inside, leave = (e.later(h) for h in ("for", "do", "end"))
    (i,) = e.parameters(head, "i64")
    e.jump(head, lo)
    e.at(head)
    e.branch(i < hi, inside, leave)
    with e.scope():
        e.at(inside)
        yield i
        e.jump(head, e.stepped(i, step))
    e.at(leave)


@contextmanager
def steps(e: Whole, lo: Word, hi: Word, step: int) -> Iterator[Value]:
    """Like `loop`, without a loop where there is one iteration."""
    first, last = constant_of(lo), constant_of(hi)
    if first is not None and last is not None and last - first <= step:
        yield e.word(first)
    else:
        with loop(e, lo, hi, step) as i:
            yield i
