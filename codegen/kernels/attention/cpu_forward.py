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
from ...llvm.builder import NULL, Value, vector_constant, zeros
from ...llvm.builder import constant as whole_constant
from ...llvm.instructions import constant, type_text
from ...llvm.modules import Defined
from ...llvm.scalars import ScalarEmitter
from ...llvm.text import Operand, TextEmitter
from ...llvm.whole import Whole, Word, constant_of
from ...math import EXPANSIONS
from ...scalar import DType, Expr, const, eq, select, var
from ...schedule.blocking import tile_over
from ...schedule.tiled import Attention, AttentionGrad, View
from ...target import Target
from ..convolution.cpu_convolution import moved
from ..matmul.cpu_gemm import loop, steps
from ..matmul.cpu_tiles import TileFunction, element, lane_mask, tile_function

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
        self.context, self.lo, self.hi = self.e.takes(ctx="ptr", lo="i64", hi="i64")
        self.tiles: dict[str, TileFunction] = {}
        self.declarations: set[str] = set()
        self.vector = type_text(self.dtype, self.lanes)
        self.pointers: dict[int, Value] = {}

    def finished(self, body: Callable[[Value], None]) -> tuple[str, list[TileFunction], set[str]]:
        e = self.e
        for position, array in enumerate([*self.step.reads, *self.step.writes]):
            self.pointers[id(array)] = e.argument(self.context, position)
        with loop(e, self.lo, self.hi, 1) as u:
            body(u)
        e.ret()
        return (
            e.unnamed(noalias=("ctx",)),
            list(self.tiles.values()),
            self.declarations | set(e.declarations),
        )

    def scratch(self, name: str, elements: int) -> Value:
        """Memory on the stack."""
        return self.e.stack(f"[{elements * self.size} x i8]", name=name)

    def batch_indices(self, u: Value) -> list[Value]:
        """The index of a batch element along each dim."""
        indices = []
        for n in reversed(self.step.batch):
            u, i = self.e.split(u, n)
            indices.append(i)
        return indices[::-1]

    def at(self, view: View, batch: Sequence[Word], row: Word = 0) -> Value:
        """The address of a row of a matrix."""
        by = [*zip(batch, view.batch, strict=True), (row, view.row)]
        base = element(self.e, self.dtype, self.pointers[id(view.array)], view.offset)
        return moved(self.e, self.dtype, base, by)

    def product(
        self,
        a: Value,
        a_step: int,
        b: Value,
        b_step: int,
        c: Value,
        c_step: int,
        rows: Word,
        most: Sequence[int],
        depth: Word,
        columns: int,
        add: Value | bool,
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
            with steps(e, 0, panels, 1) as p:
                panel = p if width == vectors * self.lanes else whole
                b_at = moved(e, self.dtype, b, [(panel, vectors * self.lanes)])
                c_at = moved(e, self.dtype, c, [(panel, vectors * self.lanes)])

                def tile(
                    count: int, i: Word, width: int = width, b_at: Value = b_at, c_at: Value = c_at
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
                    sizes = (c_step, depth, add, last)
                    e.run(function, left, a_step, b_at, b_step, out, *sizes, NULL, 0)

                self.tiled(rows, high, {n % high for n in most} - {0}, tile)

    def tiled(
        self, rows: Word, high: int, left: set[int], tile: Callable[[int, Value], None]
    ) -> None:
        """Whole tiles of `high` rows, then one of those in `left` if rows remain."""
        e = self.e
        _, rest = e.split(rows, high)
        main = e.minus(rows, rest)
        if constant_of(main) != 0:
            with steps(e, 0, main, high) as i:
                tile(high, i)
        for count in sorted(left):
            if constant_of(rest) == count:
                tile(count, main)
            elif constant_of(rest) is None:
                with self.e.when(rest.eq(count)):
                    tile(count, main)

    @property
    def query_counts(self) -> list[int]:
        return [n for n in (min(self.queries, self.step.rows), self.step.rows % self.queries) if n]

    @property
    def key_counts(self) -> list[int]:
        return [n for n in (min(self.keys, self.step.columns), self.step.columns % self.keys) if n]

    @contextmanager
    def key_blocks(self, first: Word, count: Word) -> Iterator[tuple[Value, Value]]:
        """Blocks of keys that some of the `count` queries from `first` see: first key, number."""
        e, step = self.e, self.step
        limit: Word = step.columns
        if step.causal:
            limit = e.least(e.plus(first, count), step.columns)
        with steps(e, 0, limit, self.keys) as j:
            yield j, e.least(e.minus(step.columns, j), self.keys)

    def scores(
        self,
        p: Value,
        k: Value,
        q: Value,
        bias: Value | None,
        first: Value,
        count: Value,
        key: Value,
        keys: Value,
    ) -> None:
        """p[key, query], bias added, what is not visible at minus infinity."""
        e, step = self.e, self.step
        self.product(
            k, step.k.row, q, self.queries, p, self.queries, keys, self.key_counts,
            step.depth, self.queries, False,
        )  # fmt: skip
        if step.bias is not None and bias is not None:
            at = moved(e, self.dtype, bias, [(key, step.bias.row)])
            e.run(self._bias(), p, at, keys, count)
        if step.causal:
            mask = self._mask()
            last = e.plus(key, e.minus(keys, 1))
            with self.e.when(last > first):
                e.run(mask, p, first, key, keys)

    # Functions over lanes.

    def lanewise(self, name: str, body: Callable[..., None], **params: str) -> Defined:
        """A function that works on vectors: `body` is given an emitter and what it takes."""
        b = TextEmitter(self.target, self.lanes)
        body(ScalarEmitter(b), *b.takes(**params))
        self.declarations |= set(b.declarations)
        assert not b.definitions, "lane functions use no tables"
        b.ret()
        text = b.unnamed(attributes="noinline nounwind")
        return Defined(self.define(text, name), b.types)

    def load(self, e: ScalarEmitter, at: Value, mask: Value | None = None) -> Expr:
        """A vector in memory, as a variable of an expression."""
        return self.variable(e, e.b.load_elements(self.dtype, at, self.lanes, mask=mask))

    def variable(self, e: ScalarEmitter, value: Value) -> Expr:
        """A vector as a variable of an expression."""
        e.bind(value, value, uniform=False)
        return var(value, self.dtype)

    def columns(self) -> range:
        return range(0, self.queries, self.lanes)

    def _mask(self) -> Defined:
        def body(e: ScalarEmitter, p: Value, first: Value, key: Value, n: Value) -> None:
            with loop(e.b, 0, n, 1) as j:
                ahead = key + j - first
                row = row_at(e.b, self.dtype, p, j, self.queries)
                spread = e.b.spread(Operand(ahead, True), I64)
                for v in self.columns():
                    numbers = vector_constant("i64", range(v, v + self.lanes))
                    seen = e.b.compare("sge", numbers, spread)
                    at = element(e.b, self.dtype, row, v)
                    old = e.b.load_elements(self.dtype, at, self.lanes)
                    never = constant(float("-inf"), self.dtype, self.lanes)
                    new = e.b.select(seen, old, never)
                    e.b.store_elements(self.dtype, new, at)

        return self.lanewise("attention_mask", body, p="ptr", first="i64", key="i64", n="i64")

    def _bias(self) -> Defined:
        bias = self.step.bias
        assert bias is not None

        def body(e: ScalarEmitter, p: Value, biases: Value, n: Value, count: Value) -> None:
            masks = []
            for v in self.columns():
                masks.append(lane_mask(e.b, (count - v).trunc("i32")))
            with loop(e.b, 0, n, 1) as j:
                row = row_at(e.b, self.dtype, p, j, self.queries)
                source = row_at(e.b, self.dtype, biases, j, bias.row)
                for v, mask in zip(self.columns(), masks, strict=True):
                    at = element(e.b, self.dtype, row, v)
                    more = self.load(e, element(e.b, self.dtype, source, v), mask)
                    e.b.store_elements(self.dtype, e.emit(self.load(e, at) + more), at)

        return self.lanewise("attention_bias", body, p="ptr", bias="ptr", n="i64", count="i64")


def row_at(b: TextEmitter, dtype: DType, base: Value, i: Value, step: int) -> Value:
    """The address of row i, `step` elements from the next one."""
    """The address of element `step * i` from `base` on: of row i, where rows are `step` apart."""
    return element(b, dtype, base, i * step)


def attention(
    step: Attention, target: Target, define: Define
) -> tuple[str, list[TileFunction], set[str]]:
    """The function's text from its parameter list on, micro-kernels, and declarations."""
    return _Forward(step, target, define).function()


class _Forward(Blocks):
    step: Attention

    def function(self) -> tuple[str, list[TileFunction], set[str]]:
        self.p = self.scratch("scores", self.keys * self.queries)
        self.top = self.scratch("top", self.queries)
        self.total = self.scratch("total", self.queries)
        self.factor = self.scratch("factor", self.queries)
        return self.finished(self._unit)

    def _unit(self, u: Value) -> None:
        e, step = self.e, self.step
        rest, block = e.split(u, -(-step.rows // self.queries))
        batch = self.batch_indices(rest)
        first = e.times(block, self.queries)
        count = e.least(e.minus(step.rows, first), self.queries)
        q = self.at(step.q, batch, block)
        k, v = self.at(step.k, batch), self.at(step.v, batch)
        bias = None
        if step.bias is not None:
            bias = moved(e, self.dtype, self.at(step.bias, batch), [(first, 1)])
        y = self.at(step.y, batch, first)
        for memory, value in ((self.top, "-inf"), (self.total, "0")):
            for i in self.columns():
                at = element(e, self.dtype, memory, i)
                e.store(constant(float(value), self.dtype, self.lanes), at, align=64)
        fold, scale, finish = self._fold(), self._scale(), self._finish()
        with self.key_blocks(first, count) as (key, keys):
            kb = moved(e, self.dtype, k, [(key, step.k.row)])
            self.scores(self.p, kb, q, bias, first, count, key, keys)
            e.run(fold, self.p, self.top, self.total, self.factor, keys)
            add: Value | bool = False
            if key.number != 0:
                add = key.ne(0)
                with self.e.when(add):
                    e.run(scale, y, self.factor, count)
            vb = moved(e, self.dtype, v, [(key, step.v.row)])
            self.product(
                self.p, self.queries, vb, step.v.row, y, step.y.row, count, self.query_counts,
                keys, step.width, add, adjacent=True,
            )  # fmt: skip
        lse = self.at(step.lse, batch, first)
        e.run(finish, self.top, self.total, self.factor, lse, count)
        e.run(scale, y, self.factor, count)

    def _fold(self) -> Defined:
        """Take a block of scores into the running maxima and sums; leaves exponentials."""
        infinity = const(float("-inf"), self.dtype)

        def body(
            e: ScalarEmitter, p: Value, tops: Value, totals: Value, factors: Value, n: Value
        ) -> None:
            with loop(e.b, 0, self.queries, self.lanes) as v:
                m_at, l_at, f_at = (element(e.b, self.dtype, x, v) for x in (tops, totals, factors))
                before = e.b.load_elements(self.dtype, m_at, self.lanes)
                scores = element(e.b, self.dtype, p, v)
                top = self._reduced(e, scores, n, before, self._greater)
                old, new = self.variable(e, before), self.variable(e, top)
                safe = e.emit(select(eq(new, infinity), const(0, self.dtype), new))
                factor = e.emit(EXPANSIONS["exp"](old - self.variable(e, safe)))
                zero = zeros(self.vector)
                sums = self._reduced(
                    e, scores, n, zero, lambda e, at, s: self._exponential(e, at, s, safe)
                )
                total = self.load(e, l_at) * self.variable(e, factor) + self.variable(e, sums)
                e.b.store_elements(self.dtype, e.emit(total), l_at)
                e.b.store_elements(self.dtype, top, m_at)
                e.b.store_elements(self.dtype, factor, f_at)

        return self.lanewise(
            *("attention_fold", body), p="ptr", top="ptr", total="ptr", factor="ptr", n="i64"
        )

    def _reduced(
        self,
        e: ScalarEmitter,
        base: Value,
        n: Value,
        start: Value,
        combine: Callable[[ScalarEmitter, Value, Value], Value],
    ) -> Value:
        """A value carried down a column of the scores: n rows from `base` on."""
        head, inside, leave = (e.b.later(h) for h in ("for", "do", "end"))
        j, carried = e.b.parameters(head, "i64", self.vector)
        e.b.jump(head, 0, start)
        e.b.at(head)
        e.b.branch(j < n, inside, leave)
        with e.b.scope():
            e.b.at(inside)
            new = combine(e, row_at(e.b, self.dtype, base, j, self.queries), carried)
            e.b.jump(head, e.b.stepped(j, 1), new)
        e.b.at(leave)
        return carried

    def _greater(self, e: ScalarEmitter, at: Value, top: Value) -> Value:
        value = e.b.load_elements(self.dtype, at, self.lanes)
        more = e.b.compare_floats("ogt", value, top)
        return e.b.select(more, value, top)

    def _exponential(self, e: ScalarEmitter, at: Value, total: Value, top: Value) -> Value:
        value = self.load(e, at) - self.variable(e, top)
        power = e.emit(EXPANSIONS["exp"](value))
        e.b.store_elements(self.dtype, power, at)
        return total + power

    def _finish(self) -> Defined:
        """Factors 1 / sum, and lse. A row that saw nothing is NaN, as 0 / 0 is."""
        infinity = const(float("-inf"), self.dtype)

        def body(
            e: ScalarEmitter, tops: Value, totals: Value, factors: Value, lses: Value, count: Value
        ) -> None:
            for v in self.columns():
                top, total = (self.load(e, element(e.b, self.dtype, x, v)) for x in (tops, totals))
                total = select(eq(top, infinity), const(float("nan"), self.dtype), total)
                factor = e.emit(const(1, self.dtype) / total)
                e.b.store_elements(self.dtype, factor, element(e.b, self.dtype, factors, v))
                lse = e.emit(top + EXPANSIONS["log"](total))
                mask = lane_mask(e.b, (count - v).trunc("i32"))
                at = element(e.b, self.dtype, lses, v)
                e.b.store_elements(self.dtype, lse, at, mask=mask)

        params = dict.fromkeys(("top", "total", "factor", "lse"), "ptr")
        return self.lanewise("attention_finish", body, **params, count="i64")

    def _scale(self) -> Defined:
        """Multiply each row of y by its factor."""
        step = self.step

        def body(e: ScalarEmitter, y: Value, factors: Value, count: Value) -> None:
            last = step.width % self.lanes
            mask = lane_mask(e.b, whole_constant("i32", last)) if last else None
            with loop(e.b, 0, count, 1) as i:
                factor = e.b.load_elements(self.dtype, element(e.b, self.dtype, factors, i), 1)
                f = e.b.spread(Operand(factor, True), self.dtype)
                row = row_at(e.b, self.dtype, y, i, step.y.row)
                for v in range(0, step.width, self.lanes):
                    on = mask if v + self.lanes > step.width else None
                    at = element(e.b, self.dtype, row, v)
                    old = e.b.load_elements(self.dtype, at, self.lanes, mask=on)
                    new = old * f
                    e.b.store_elements(self.dtype, new, at, mask=on)

        return self.lanewise("attention_scale", body, y="ptr", factor="ptr", count="i64")
