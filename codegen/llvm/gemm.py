"""A matrix product as LLVM functions: blocks of rows and panels of columns around micro-kernels.

    void @gemm(ptr %ctx, i64 %lo, i64 %hi)      %ctx: A, B, C

does the units lo..hi of a `Matmul` (see `codegen.blocking`). Each unit writes its own part of C, and
sums along k in the same order whoever does it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ..blocking import Blocking, panels
from ..steps import Matmul
from ..target import Target
from .text import TextEmitter
from .tiles import Function, element, tile_function

FAR_BYTES = 1 << 18  # a packed B of this size may not be in the nearer caches: it is fetched ahead


def gemm(step: Matmul, cut: Blocking, target: Target) -> tuple[str, list[Function]]:
    """The function's text from its parameter list on, and the micro-kernels that it calls."""
    return _Gemm(step, cut, target).function()


class _Gemm:
    def __init__(self, step: Matmul, cut: Blocking, target: Target) -> None:
        self.step = step
        self.cut = cut
        self.target = target
        self.dtype = step.c.dtype
        self.e = TextEmitter(target, [], 1)
        self.tiles: dict[str, Function] = {}
        _, row, column = step.a_strides
        self.adjacent = column != 1 and row == 1
        assert column == 1 or row == 1 or step.k == 1, "A has neither rows nor columns side by side"
        self.a_step = column if self.adjacent else row
        self.panels = panels(step.n, cut.panel)
        whole, rest = divmod(step.n, cut.panel)
        self.whole = whole
        self.vectors_left = -(-rest // cut.lanes)
        self.lanes_left = rest % cut.lanes

    def function(self) -> tuple[str, list[Function]]:
        e, step, cut = self.e, self.step, self.cut
        self.a, self.b, self.c = (self._argument(i) for i in range(3))
        with loop(e, "%lo", "%hi", 1) as u:
            group, rest = self._split(u, cut.groups(step))
            block, batch = self._split(rest, cut.blocks(step))
            a = self._moved(self.a, batch, step.a_strides[0])
            b = self._moved(self.b, batch, step.b_strides[0])
            c = self._moved(self.c, batch, step.m * step.n)
            self._unit(a, b, c, block, group)
        head = "(ptr noalias %ctx, i64 %lo, i64 %hi) nounwind {\nentry:\n"
        text = head + "\n".join(e.lines) + "\n  ret void\n}\n"
        return text, list(self.tiles.values())

    def _argument(self, position: int) -> str:
        at = self.e.value_of(f"getelementptr ptr, ptr %ctx, i64 {position}")
        return self.e.value_of(f"load ptr, ptr {at}, align 8")

    def _split(self, u: str, n: int) -> tuple[str, str]:
        """u % n, u // n"""
        if n == 1:
            return "0", u
        e = self.e
        return e.value_of(f"urem i64 {u}, {n}"), e.value_of(f"udiv i64 {u}, {n}")

    def _moved(self, base: str, i: str, step: int) -> str:
        if i == "0" or step == 0 or self.step.batch == 1:
            return base
        return element(self.e, self.dtype, base, self.e.value_of(f"mul i64 {i}, {step}"))

    def _times(self, i: str, n: int) -> str:
        return str(int(i) * n) if i.isdigit() else self.e.value_of(f"mul i64 {i}, {n}")

    def _least(self, i: str, limit: int) -> str:
        if i.isdigit():
            return str(min(int(i), limit))
        below = self.e.value_of(f"icmp slt i64 {i}, {limit}")
        return self.e.value_of(f"select i1 {below}, i64 {i}, i64 {limit}")

    def _unit(self, a: str, b: str, c: str, block: str, group: str) -> None:
        """One block of rows times one group of panels."""
        e, step, cut = self.e, self.step, self.cut
        first = self._times(block, cut.block)
        last = self._least(self._plus(first, cut.block), step.m)
        begin = self._times(group, cut.group)
        end = self._least(self._plus(begin, cut.group), self.panels)
        with steps(e, "0", str(step.k), cut.depth) as k:
            depth = self._least(self._minus(step.k, k), cut.depth)
            add = "false" if k == "0" else e.value_of(f"icmp ne i64 {k}, 0")
            a_at = element(e, self.dtype, a, self._times(k, step.a_strides[2]))
            if self.whole:
                stop = self._least(end, self.whole)
                with loop(e, begin, stop, 1) as p:
                    self._panel(a_at, b, c, p, k, depth, add, first, last, cut.vectors, 0)
            if self.vectors_left:
                with self._only_if(f"icmp eq i64 {end}, {self.panels}", end == str(self.panels)):
                    self._panel(
                        a_at,
                        b,
                        c,
                        str(self.whole),
                        k,
                        depth,
                        add,
                        first,
                        last,
                        self.vectors_left,
                        self.lanes_left,
                    )

    def _plus(self, i: str, n: int) -> str:
        return str(int(i) + n) if i.isdigit() else self.e.value_of(f"add i64 {i}, {n}")

    def _minus(self, n: int, i: str) -> str:
        return str(n - int(i)) if i.isdigit() else self.e.value_of(f"sub i64 {n}, {i}")

    def _panel(
        self,
        a: str,
        b: str,
        c: str,
        p: str,
        k: str,
        depth: str,
        add: str,
        first: str,
        last: str,
        vectors: int,
        lanes: int,
    ) -> None:
        """The block's rows times one panel."""
        e, step, cut = self.e, self.step, self.cut
        size = self.dtype.itemsize
        ahead = step.panel > 0 and step.k * step.n * size >= FAR_BYTES
        if step.panel:
            row = e.value_of(f"add i64 {self._times(p, step.k)}, {k}")
            b_at = element(e, self.dtype, b, self._times(row, cut.panel))
            b_step = cut.panel
        else:
            b_step = step.b_strides[1]
            offsets = self._times(k, b_step), self._times(p, cut.panel)
            b_at = element(e, self.dtype, b, *offsets)
        c_at = element(e, self.dtype, c, self._times(p, cut.panel))

        tiles = -(-min(cut.block, step.m) // cut.rows)
        share = -(-cut.panel * size // tiles)  # of the next panel's rows, brought in by each tile
        following = element(e, self.dtype, b_at, str(step.k * cut.panel)) if ahead else "null"

        def tile(rows: int, i: str) -> None:
            fetch = following
            if ahead:
                number = e.value_of(f"sub i64 {i}, {first}")
                number = e.value_of(f"udiv i64 {number}, {cut.rows}")
                offset = e.value_of(f"mul i64 {number}, {depth}")
                offset = e.value_of(f"mul i64 {offset}, {share}")
                fetch = e.value_of(f"getelementptr i8, ptr {following}, i64 {offset}")
            function = tile_function(
                self.target,
                self.dtype,
                rows,
                vectors,
                adjacent=self.adjacent,
                masked=lanes > 0,
                ahead=ahead,
            )
            self.tiles[function.name] = function
            left = element(e, self.dtype, a, self._times(i, step.a_strides[1]))
            out = element(e, self.dtype, c_at, self._times(i, step.n))
            e.lines.append(
                f"  call void @{function.name}(ptr {left}, i64 {self.a_step}, ptr {b_at}, "
                f"i64 {b_step}, ptr {out}, i64 {step.n}, i64 {depth}, i1 {add}, i32 {lanes}, "
                f"ptr {fetch}, i64 {share})"
            )

        whole, rest = self._row_tiles(cut.block)
        final_whole, final_rest = self._row_tiles(step.m - (cut.blocks(step) - 1) * cut.block)
        alike = whole == final_whole
        stop = self._plus(first, whole)
        is_final = f"icmp eq i64 {last}, {step.m}"
        if not alike:
            final_stop = self._plus(first, final_whole)
            stop = e.value_of(f"select i1 {e.value_of(is_final)}, i64 {final_stop}, i64 {stop}")
        with loop(e, first, stop, cut.rows) as i:
            tile(cut.rows, i)
        if alike and rest == final_rest:
            if rest:
                tile(rest, stop)
            return
        for count, test in ((rest, f"icmp ne i64 {last}, {step.m}"), (final_rest, is_final)):
            if count:
                with self._only_if(test, False):
                    tile(count, stop)

    def _row_tiles(self, n: int) -> tuple[int, int]:
        """Rows of n that whole tiles cover, and what is left."""
        return n // self.cut.rows * self.cut.rows, n % self.cut.rows

    @contextmanager
    def _only_if(self, test: str, always: bool) -> Iterator[None]:
        """What the unit does that has the last part."""
        e = self.e
        if always:
            yield
            return
        inside, after = e.new_label("then"), e.new_label("rest")
        e.lines.append(f"  br i1 {e.value_of(test)}, label %{inside}, label %{after}")
        e.start_block(inside)
        with e.scope():
            yield
        e.lines.append(f"  br label %{after}")
        e.start_block(after)


@contextmanager
def loop(e: TextEmitter, lo: str, hi: str, step: int) -> Iterator[str]:
    """`with loop(e, lo, hi, step) as i:` emits `for i in range(lo, hi, step)` around the body."""
    head, inside, leave = (e.new_label(h) for h in ("for", "do", "end"))
    before, i = e.block, f"%i{next(e.names)}"
    e.lines.append(f"  br label %{head}")
    e.start_block(head)
    phi = len(e.lines)
    e.lines.append(f"  {i}c = icmp slt i64 {i}, {hi}")
    e.lines.append(f"  br i1 {i}c, label %{inside}, label %{leave}")
    with e.scope():
        e.start_block(inside)
        yield i
        e.lines.append(f"  {i}n = add nsw i64 {i}, {step}")
        e.lines.append(f"  br label %{head}")
    e.lines.insert(phi, f"  {i} = phi i64 [ {lo}, %{before} ], [ {i}n, %{e.block} ]")
    e.start_block(leave)


@contextmanager
def steps(e: TextEmitter, lo: str, hi: str, step: int) -> Iterator[str]:
    """Like `loop`, without a loop where there is one trip."""
    if lo.isdigit() and hi.isdigit() and int(hi) - int(lo) <= step:
        yield lo
    else:
        with loop(e, lo, hi, step) as i:
            yield i
