"""Attention as LLVM functions: blocks of queries against blocks of keys (see `tiled.Attention`).

    void @attention(ptr %ctx, i64 %lo, i64 %hi)

does the units lo..hi: forward a block of queries each, backward all queries of one batch element.
The scores of a block of keys and a block of queries stand transposed in a scratch block on the stack,
a row per key: maxima and sums over keys are then taken lane by lane. The forward pass keeps a running
maximum and sum for each query, and scales what it has when a block of keys raises the maximum.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from ....ir.types import I64
from ...llvm.builder import Value, vector_constant
from ...llvm.instructions import constant, type_text
from ...llvm.scalars import ScalarEmitter
from ...llvm.text import Operand, TextEmitter
from ...llvm.whole import Whole, constant_of
from ...math import EXPANSIONS
from ...scalar import Expr, const, eq, select, var
from ...schedule.blocking import tile_over
from ...schedule.tiled import Attention, AttentionGrad, View
from ...target import Target
from ..convolution.cpu_convolution import argument, moved
from ..matmul.cpu_gemm import loop, steps
from ..matmul.cpu_tiles import Function, element, lane_mask, tile_function

Define = Callable[[str, str], str]


class Blocks:
    """What both directions share: units, scores of a block, products of small matrices."""

    def __init__(self, step: Attention | AttentionGrad, target: Target, define: Define) -> None:
        self.step = step
        self.target = target
        self.define = define
        self.dtype = step.k.array.dtype
        self.size = self.dtype.itemsize
        self.lanes = target.lanes(self.size)
        self.queries, self.keys = step.block
        self.e = Whole(target, 1)
        self.tiles: dict[str, Function] = {}
        self.declarations: set[str] = set()
        self.vector = type_text(self.dtype, self.lanes)
        self.pointers: dict[int, str] = {}

    def finished(self, body: Callable[[str], None]) -> tuple[str, list[Function], set[str]]:
        e = self.e
        for position, array in enumerate([*self.step.reads, *self.step.writes]):
            self.pointers[id(array)] = argument(e, position)
        with loop(e, "%lo", "%hi", 1) as u:
            body(u)
        e.ret()
        text = f"(ptr noalias %ctx, i64 %lo, i64 %hi) nounwind {{\n{e.code.text()}\n}}\n"
        return text, list(self.tiles.values()), self.declarations | set(e.declarations)

    def scratch(self, name: str, elements: int) -> str:
        self.e.code.start.append(f"  {name} = alloca [{elements * self.size} x i8], align 64")
        return name

    def batch_indices(self, u: str) -> list[Value]:
        """The index of a batch element along each dim."""
        indices = []
        for n in reversed(self.step.batch):
            u, i = self.e.split(u, n)
            indices.append(i)
        return indices[::-1]

    def at(self, view: View, batch: Sequence[str], row: str = "0") -> str:
        """The address of a row of a matrix."""
        by = [*zip(batch, view.batch, strict=True), (row, view.row)]
        base = element(self.e, self.dtype, self.pointers[id(view.array)], str(view.offset))
        return moved(self.e, self.dtype, base, by)

    def product(
        self,
        a: str,
        a_step: int,
        b: str,
        b_step: int,
        c: str,
        c_step: int,
        rows: str,
        most: Sequence[int],
        depth: str,
        columns: int,
        add: str,
        adjacent: bool = False,
    ) -> None:
        """C[i, j] (+)= sum over k < depth of A(i, k) * B(k, j); `most`: the values that `rows` has."""
        e = self.e
        high, vectors = tile_over(self.target, self.dtype, max(most), columns)
        whole, rest = divmod(columns, vectors * self.lanes)
        a_row = 1 if adjacent else a_step
        for panels, width in ((whole, vectors * self.lanes), (1, rest)):
            if not panels or not width:
                continue
            with steps(e, "0", str(panels), 1) as p:
                panel = p if width == vectors * self.lanes else str(whole)
                b_at = moved(e, self.dtype, b, [(panel, vectors * self.lanes)])
                c_at = moved(e, self.dtype, c, [(panel, vectors * self.lanes)])

                def tile(
                    count: int, i: str, width: int = width, b_at: str = b_at, c_at: str = c_at
                ) -> None:
                    last = width % self.lanes
                    function = tile_function(
                        self.target,
                        self.dtype,
                        count,
                        -(-width // self.lanes),
                        adjacent=adjacent,
                        masked=last > 0,
                    )
                    self.tiles[function.name] = function
                    left = moved(e, self.dtype, a, [(i, a_row)])
                    out = moved(e, self.dtype, c_at, [(i, c_step)])
                    e.line(
                        f"call void @{function.name}(ptr {left}, i64 {a_step}, ptr {b_at}, "
                        f"i64 {b_step}, ptr {out}, i64 {c_step}, i64 {depth}, i1 {add}, i32 {last}, "
                        "ptr null, i64 0)"
                    )

                self.tiled(rows, high, {n % high for n in most} - {0}, tile)

    def tiled(self, rows: str, high: int, left: set[int], tile: Callable[[int, str], None]) -> None:
        """Whole tiles of `high` rows, then one of those in `left` if rows remain."""
        e = self.e
        _, rest = e.split(rows, high)
        main = e.minus(rows, rest)
        if constant_of(main) != 0:
            with steps(e, "0", main, high) as i:
                tile(high, i)
        for count in sorted(left):
            if constant_of(rest) == count:
                tile(count, main)
            elif constant_of(rest) is None:
                with self.only_if(rest.eq(count)):
                    tile(count, main)

    @contextmanager
    def only_if(self, test: str) -> Iterator[None]:
        """What is emitted inside of the `with` runs if the i1 `test` holds."""
        e = self.e
        inside, after = e.later("then"), e.later("rest")
        e.branch(test, inside, after)
        e.at(inside)
        with e.scope():
            yield
        e.jump(after)
        e.at(after)

    @property
    def query_counts(self) -> list[int]:
        return [n for n in (min(self.queries, self.step.rows), self.step.rows % self.queries) if n]

    @property
    def key_counts(self) -> list[int]:
        return [n for n in (min(self.keys, self.step.columns), self.step.columns % self.keys) if n]

    @contextmanager
    def key_blocks(self, first: str, count: str) -> Iterator[tuple[str, str]]:
        """Blocks of keys that some of the `count` queries from `first` see: first key, number."""
        e, step = self.e, self.step
        limit = str(step.columns)
        if step.causal:
            limit = e.least(e.plus(first, count), step.columns)
        with steps(e, "0", limit, self.keys) as j:
            yield j, e.least(e.minus(str(step.columns), j), self.keys)

    def scores(
        self, p: str, k: str, q: str, bias: str, first: str, count: str, key: str, keys: str
    ) -> None:
        """p[key, query], bias added, what is not visible at minus infinity."""
        e, step = self.e, self.step
        self.product(
            k, step.k.row, q, self.queries, p, self.queries, keys, self.key_counts,
            str(step.depth), self.queries, "false",
        )  # fmt: skip
        if step.bias is not None:
            at = moved(e, self.dtype, bias, [(key, step.bias.row)])
            name = self.define(self._bias(), "attention_bias")
            e.line(f"call void @{name}(ptr {p}, ptr {at}, i64 {keys}, i64 {count})")
        if step.causal:
            name = self.define(self._mask(), "attention_mask")
            last = e.plus(key, e.minus(keys, "1"))
            with self.only_if(last > first):
                e.line(f"call void @{name}(ptr {p}, i64 {first}, i64 {key}, i64 {keys})")

    # Functions over lanes.

    def lanewise(self, signature: str, body: Callable[[ScalarEmitter], None]) -> str:
        """The text of a function that works on vectors."""
        b = TextEmitter(self.target, self.lanes)
        body(ScalarEmitter(b))
        self.declarations |= set(b.declarations)
        assert not b.definitions, "lane functions use no tables"
        b.ret()
        return f"({signature}) noinline nounwind {{\n{b.code.text()}\n}}\n"

    def load(self, e: ScalarEmitter, at: str, mask: str = "") -> Expr:
        """A vector in memory, as a variable of an expression."""
        text = e.b.load_elements(self.dtype, at, self.lanes, mask=mask)
        x = var(text, self.dtype)
        e.bind(text, text, uniform=False)
        return x

    def columns(self) -> range:
        return range(0, self.queries, self.lanes)

    def value(self, e: ScalarEmitter, expr: Expr) -> str:
        return e.emit(expr)

    def _mask(self) -> str:
        def body(e: ScalarEmitter) -> None:
            with loop(e.b, "0", "%n", 1) as j:
                key = e.b.word("%key") + j
                ahead = key - "%first"
                row = row_at(e.b, self.dtype, "%p", j, self.queries)
                spread = e.b.spread(Operand(ahead, True), I64)
                for v in self.columns():
                    numbers = vector_constant("i64", range(v, v + self.lanes))
                    seen = e.b.compare("sge", numbers, spread)
                    at = element(e.b, self.dtype, row, str(v))
                    old = e.b.load_elements(self.dtype, at, self.lanes)
                    never = constant(float("-inf"), self.dtype, self.lanes)
                    new = e.b.select(seen, old, never)
                    e.b.store_elements(self.dtype, new, at, self.lanes)

        return self.lanewise("ptr %p, i64 %first, i64 %key, i64 %n", body)

    def _bias(self) -> str:
        bias = self.step.bias
        assert bias is not None

        def body(e: ScalarEmitter) -> None:
            masks = []
            for v in self.columns():
                left = e.b.word("%count") - v
                masks.append(lane_mask(e.b, left.trunc("i32")))
            with loop(e.b, "0", "%n", 1) as j:
                row = row_at(e.b, self.dtype, "%p", j, self.queries)
                source = row_at(e.b, self.dtype, "%bias", j, bias.row)
                for v, mask in zip(self.columns(), masks, strict=True):
                    at = element(e.b, self.dtype, row, str(v))
                    more = self.load(e, element(e.b, self.dtype, source, str(v)), mask)
                    e.b.store_elements(self.dtype, e.emit(self.load(e, at) + more), at, self.lanes)

        return self.lanewise("ptr %p, ptr %bias, i64 %n, i64 %count", body)


def row_at(b: TextEmitter, dtype: object, base: str, i: str, step: int) -> str:
    """The address of element `step * i` from `base` on: of row i, where rows are `step` apart."""
    return element(b, dtype, base, i * step)  # type: ignore[arg-type]


def attention(
    step: Attention, target: Target, define: Define
) -> tuple[str, list[Function], set[str]]:
    """The function's text from its parameter list on, micro-kernels, and declarations."""
    return _Forward(step, target, define).function()


class _Forward(Blocks):
    step: Attention

    def function(self) -> tuple[str, list[Function], set[str]]:
        self.p = self.scratch("%scores", self.keys * self.queries)
        self.top = self.scratch("%top", self.queries)
        self.total = self.scratch("%total", self.queries)
        self.factor = self.scratch("%factor", self.queries)
        return self.finished(self._unit)

    def _unit(self, u: str) -> None:
        e, step = self.e, self.step
        rest, block = e.split(u, -(-step.rows // self.queries))
        batch = self.batch_indices(rest)
        first = e.times(block, self.queries)
        count = e.least(e.minus(str(step.rows), first), self.queries)
        q = self.at(step.q, batch, block)
        k, v = self.at(step.k, batch), self.at(step.v, batch)
        bias = ""
        if step.bias is not None:
            bias = moved(e, self.dtype, self.at(step.bias, batch), [(first, 1)])
        y = self.at(step.y, batch, first)
        for memory, value in ((self.top, "-inf"), (self.total, "0")):
            for i in self.columns():
                at = element(e, self.dtype, memory, str(i))
                e.store(constant(float(value), self.dtype, self.lanes), at, align=64)
        fold = self.define(self._fold(), "attention_fold")
        scale = self.define(self._scale(), "attention_scale")
        finish = self.define(self._finish(), "attention_finish")
        with self.key_blocks(first, count) as (key, keys):
            kb = moved(e, self.dtype, k, [(key, step.k.row)])
            self.scores(self.p, kb, q, bias, first, count, key, keys)
            e.line(
                f"call void @{fold}(ptr {self.p}, ptr {self.top}, ptr {self.total}, "
                f"ptr {self.factor}, i64 {keys})"
            )
            add = "false"
            if key != "0":
                add = e.word(key).ne(0)
                with self.only_if(add):
                    e.line(f"call void @{scale}(ptr {y}, ptr {self.factor}, i64 {count})")
            vb = moved(e, self.dtype, v, [(key, step.v.row)])
            self.product(
                self.p, self.queries, vb, step.v.row, y, step.y.row, count, self.query_counts,
                keys, step.width, add, adjacent=True,
            )  # fmt: skip
        lse = self.at(step.lse, batch, first)
        e.line(
            f"call void @{finish}(ptr {self.top}, ptr {self.total}, ptr {self.factor}, ptr {lse}, "
            f"i64 {count})"
        )
        e.line(f"call void @{scale}(ptr {y}, ptr {self.factor}, i64 {count})")

    def _fold(self) -> str:
        """Take a block of scores into the running maxima and sums; leaves exponentials."""
        infinity = const(float("-inf"), self.dtype)

        def body(e: ScalarEmitter) -> None:
            with loop(e.b, "0", str(self.queries), self.lanes) as v:
                m_at, l_at, f_at = (
                    element(e.b, self.dtype, x, v) for x in ("%top", "%total", "%factor")
                )
                before = e.b.load_elements(self.dtype, m_at, self.lanes)
                top = self._reduced(e, v, before, self._greater)
                old, new = self._variable(e, before), self._variable(e, top)
                safe = e.emit(select(eq(new, infinity), const(0, self.dtype), new))
                factor = e.emit(EXPANSIONS["exp"](old - self._variable(e, safe)))
                zero = "zeroinitializer"
                sums = self._reduced(e, v, zero, lambda e, at, s: self._exponential(e, at, s, safe))
                total = self.load(e, l_at) * self._variable(e, factor) + self._variable(e, sums)
                e.b.store_elements(self.dtype, e.emit(total), l_at, self.lanes)
                e.b.store_elements(self.dtype, top, m_at, self.lanes)
                e.b.store_elements(self.dtype, factor, f_at, self.lanes)

        return self.lanewise("ptr %p, ptr %top, ptr %total, ptr %factor, i64 %n", body)

    def _variable(self, e: ScalarEmitter, text: str) -> Expr:
        e.bind(text, text, uniform=False)
        return var(text, self.dtype)

    def _reduced(
        self,
        e: ScalarEmitter,
        column: str,
        start: str,
        combine: Callable[[ScalarEmitter, str, str], str],
    ) -> str:
        """A value carried down one column of the scores."""
        base = element(e.b, self.dtype, "%p", column)
        head, inside, leave = (e.b.later(h) for h in ("for", "do", "end"))
        j, carried = e.b.parameters(head, "i64", self.vector)
        e.b.jump(head, 0, start)
        e.b.at(head)
        e.b.branch(j < "%n", inside, leave)
        with e.b.scope():
            e.b.at(inside)
            new = combine(e, row_at(e.b, self.dtype, base, j, self.queries), carried)
            e.b.jump(head, e.b.stepped(j, 1), new)
        e.b.at(leave)
        return carried

    def _greater(self, e: ScalarEmitter, at: str, top: str) -> str:
        value = e.b.load_elements(self.dtype, at, self.lanes)
        more = e.b.compare_floats("ogt", value, top)
        return e.b.select(more, value, top)

    def _exponential(self, e: ScalarEmitter, at: str, total: str, top: str) -> str:
        value = self.load(e, at) - self._variable(e, top)
        text = e.emit(EXPANSIONS["exp"](value))
        e.b.store_elements(self.dtype, text, at, self.lanes)
        return total + text

    def _finish(self) -> str:
        """Factors 1 / sum, and lse. A row that saw nothing is NaN, as 0 / 0 is."""
        infinity = const(float("-inf"), self.dtype)

        def body(e: ScalarEmitter) -> None:
            for v in self.columns():
                top, total = (
                    self.load(e, element(e.b, self.dtype, x, str(v))) for x in ("%top", "%total")
                )
                total = select(eq(top, infinity), const(float("nan"), self.dtype), total)
                factor = e.emit(const(1, self.dtype) / total)
                e.b.store_elements(
                    self.dtype, factor, element(e.b, self.dtype, "%factor", str(v)), self.lanes
                )
                lse = e.emit(top + EXPANSIONS["log"](total))
                left = e.b.word("%count") - v
                mask = lane_mask(e.b, left.trunc("i32"))
                at = element(e.b, self.dtype, "%lse", str(v))
                e.b.store_elements(self.dtype, lse, at, self.lanes, mask=mask)

        return self.lanewise("ptr %top, ptr %total, ptr %factor, ptr %lse, i64 %count", body)

    def _scale(self) -> str:
        """Multiply each row of y by its factor."""
        step = self.step

        def body(e: ScalarEmitter) -> None:
            last = step.width % self.lanes
            mask = lane_mask(e.b, str(last)) if last else ""
            with loop(e.b, "0", "%count", 1) as i:
                factor = e.b.load_elements(self.dtype, element(e.b, self.dtype, "%factor", i), 1)
                f = e.b.spread(Operand(factor, True), self.dtype)
                row = row_at(e.b, self.dtype, "%y", i, step.y.row)
                for v in range(0, step.width, self.lanes):
                    on = mask if v + self.lanes > step.width else ""
                    at = element(e.b, self.dtype, row, str(v))
                    old = e.b.load_elements(self.dtype, at, self.lanes, mask=on)
                    new = old * f
                    e.b.store_elements(self.dtype, new, at, self.lanes, mask=on)

        return self.lanewise("ptr %y, ptr %factor, i64 %count", body)
