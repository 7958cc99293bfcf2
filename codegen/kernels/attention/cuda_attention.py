"""Attention as kernels that keep no matrix of scores: what they share (see `attention_plan`).

    rows to shared memory; the first block of columns too
    for each block of columns that some row sees:
        wait until it is there, and everybody is done with the one before
        begin to bring the next one
        scores = rows @ columns^T                            in registers
        forward:   weights = exp(scores - the largest so far); what is summed so far is scaled down to it
        backward:  weights = exp(scores - lse); slopes = weights * (ct @ v^T - share)
        sums += weights (slopes) @ columns                   in registers

Nothing passes between warps but the operands: a warp has all scores of its rows. Blocks that nobody
sees are not visited, and what is hidden is looked at only in blocks where something is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, MutableMapping, Sequence

from ...cuda.emitter import GLOBAL, SHARED, ThreadBuilder, fits_32_bits
from ...cuda.target import CudaTarget
from ...llvm.indices import IndexEmitter
from ...llvm.instructions import SCALAR_TYPES, number, suffix
from ...llvm.loops import Carried, LoopEmitter, Values
from ...llvm.scalars import ScalarEmitter
from ...loop_ir.kernel import Array
from ...math import EXPANSIONS
from ...scalar import var
from .cuda_panels import Panel
from .cuda_plan import SMALL, AttentionStep, AttentionTile, Matrices, padded
from .cuda_products import PlainProducts, Products
from .cuda_tensor_cores import TensorProducts

LOG2_E, LN_2 = 1.4426950408889634, 0.6931471805599453
Number = int | str  # of a block: known, or the text of an index


class AttentionEmitter:
    """What the kernels share: operands in shared memory, the walk over columns, results."""

    def __init__(
        self,
        step: AttentionStep,
        tile: AttentionTile,
        target: CudaTarget,
        definitions: MutableMapping[str, str],
        alignments: Mapping[Array, int],
    ) -> None:
        arrays = list(dict.fromkeys([*step.reads, *step.writes]))
        ty = "i32" if _small(step, tile) else "i64"
        self.b = ThreadBuilder(target, ty, arrays, definitions)
        self.exprs = ScalarEmitter(self.b)
        self.indices = IndexEmitter(self.exprs)
        self.loops = LoopEmitter(self.indices)
        self.step, self.tile, self.alignments = step, tile, alignments
        self.b.written = set(step.writes)
        self.real = SCALAR_TYPES[step.real]
        self.never = number(float("-inf"), step.real)
        self.zero = number(0.0, step.real)
        # Weights that are rounded to 16 bits, or may be, need no better exponentials.
        self.fast = step.element in SMALL or (step.element == "f32" and target.tf32)
        self.factor = step.scale * (LOG2_E if self.fast else 1.0)
        x = var("x", step.real)
        self.elementary = {name: EXPANSIONS[name](x) for name in ("exp", "log")}
        self.tid = self.b.thread()
        self.products: Products = (
            PlainProducts(self) if tile.atom is None else TensorProducts(self, tile.atom)
        )
        self.weights_at = 0
        self._lay_out()

    # Shared memory.

    def _lay_out(self) -> None:
        """Panels, and where each begins. Panels of columns begin anew in each stage."""
        self.score_panels: list[tuple[Panel, Panel]] = []
        self.sum_panels: list[Panel] = []
        self.column_panels: list[Panel] = []  # each operand once
        self.vectors: list[Panel] = []
        at = self._whole_panels() if self.tile.whole else self._passing_panels()
        self.memory = self.b.shared_block(-(-at // 16) * 16)
        self.asynchronous = any(p.asynchronous for p in self._all_panels)

    def _whole_panels(self) -> int:
        step, tile = self.step, self.tile
        size = step.q.array.dtype.itemsize
        rows, at = [], 0
        for view, _, n in step.pairs:
            length = padded(n, size, tile.atom)
            rows.append(Panel(self, view, tile.height, step.rows, n, length, at))
            at += rows[-1].nbytes
        self.weights_at, at = at, at + self._weight_bytes
        first, known = at, {}
        for view, n in step.passing:
            length = tile.length(step, view, n)
            panel = Panel(self, view, tile.columns, step.columns, n, length, at)
            known[id(view)] = panel
            at += panel.nbytes
        self.score_panels = [
            (left, known[id(m)]) for left, (_, m, _) in zip(rows, step.pairs, strict=True)
        ]
        self.sum_panels = [known[id(m)] for m, _ in step.sums]
        self.column_panels = list(known.values())
        self.stage_bytes = -(-(self._lay_out_vectors(at) - first) // 16) * 16
        return first + tile.stages * self.stage_bytes

    def _passing_panels(self) -> int:
        step, tile = self.step, self.tile
        first = end = self._weight_bytes
        for rows, columns, n in step.pairs:
            left = Panel(self, rows, tile.height, step.rows, n, tile.width, first)
            at = first + left.nbytes
            right = Panel(self, columns, tile.columns, step.columns, n, tile.width, at)
            self.score_panels.append((left, right))
            end = at + right.nbytes
        self.sum_panels = [
            Panel(self, m, tile.columns, step.columns, n, tile.width, first) for m, n in step.sums
        ]
        return self._lay_out_vectors(end)

    @property
    def _all_panels(self) -> list[Panel]:
        pairs = [p for pair in self.score_panels for p in pair]
        return list(dict.fromkeys([*pairs, *self.sum_panels, *self.vectors]))

    @property
    def _weight_bytes(self) -> int:
        products = self.products
        return products.weight_line * self.tile.height if isinstance(products, PlainProducts) else 0

    def _lay_out_vectors(self, at: int) -> int:
        """lse and share, where they belong to what passes by."""
        step, tile = self.step, self.tile
        if step.kind == "keys":
            for vector in step.given[1:]:
                panel = Panel(self, vector, tile.columns, step.columns, 1, 1, at, crosswise=True)
                self.vectors.append(panel)
                at += -(-panel.nbytes // 16) * 16
        return at

    def shared_at(self, offset: str, more: int = 0) -> str:
        """The place `offset` + `more` bytes into the block's shared memory."""
        place = self.b.value_of(f"getelementptr i8, ptr {self.memory}, i32 {offset}")
        if more:
            place = self.b.value_of(f"getelementptr i8, ptr {SHARED}{place}, i32 {more}")
        return f"{SHARED}{place}"

    # Numbers.

    def both(self, first: str, second: str) -> str:
        """Two conditions, the first maybe none."""
        return self.b.value_of(f"and i1 {first}, {second}") if first else second

    def narrowed(self, text: str) -> str:
        """An index that is small, in 32 bits."""
        if self.b.index_type == "i32" or text[0] != "%":
            return text
        return self.b.value_of(f"trunc i64 {text} to i32")

    def sum_of(self, a: Number, b: Number) -> Number:
        if isinstance(a, int) and isinstance(b, int):
            return a + b
        return self.b.value_of(f"add {self.b.index_type} {a}, {b}")

    def difference(self, a: Number, b: Number) -> Number:
        if isinstance(a, int) and isinstance(b, int):
            return a - b
        return self.b.value_of(f"sub {self.b.index_type} {a}, {b}")

    def lesser(self, a: Number, b: Number) -> Number:
        if isinstance(a, int) and isinstance(b, int):
            return min(a, b)
        return self.indices.least(str(a), str(b))

    def greater(self, a: Number, b: Number) -> Number:
        if isinstance(a, int) and isinstance(b, int):
            return max(a, b)
        ty = self.b.index_type
        above = self.b.value_of(f"icmp sgt {ty} {a}, {b}")
        return self.b.value_of(f"select i1 {above}, {ty} {a}, {ty} {b}")

    def quotient(self, a: Number, n: int) -> Number:
        """Of a number that is not negative."""
        return (
            a // n if isinstance(a, int) else self.b.value_of(f"udiv {self.b.index_type} {a}, {n}")
        )

    def product(self, a: Number, n: int) -> Number:
        return a * n if isinstance(a, int) else self.b.value_of(f"mul {self.b.index_type} {a}, {n}")

    # Arithmetic on numbers of the sums' dtype.

    def real_op(self, name: str, *operands: str) -> str:
        """`fadd`, `fmul` and such, or an intrinsic of LLVM: `fma`, `maxnum`."""
        if name in ("fma", "maxnum"):
            return self.b.nvvm(f"llvm.{name}.{suffix(self.step.real, 1)}", *operands)
        return self.b.value_of(f"{name} {self.real} {', '.join(operands)}")

    def times(self, text: str, factor: float) -> str:
        if factor == 1.0:
            return text
        return self.real_op("fmul", text, number(factor, self.step.real))

    def less(self, text: str, shift: str) -> str:
        """text * factor - shift, rounded once; `shift` is negative already."""
        return self.real_op("fma", text, number(self.factor, self.step.real), shift)

    def negative(self, text: str) -> str:
        return self.b.value_of(f"fneg {self.real} {text}")

    def power(self, text: str) -> str:
        """e ** text; 2 ** text where exponentials are `fast`."""
        if self.fast:
            return self.b.nvvm("llvm.nvvm.ex2.approx.ftz.f32", text)
        return self.function("exp", text)

    def logarithm(self, text: str) -> str:
        """Of base e, or 2 where exponentials are `fast`."""
        if self.fast:
            return self.b.nvvm("llvm.nvvm.lg2.approx.ftz.f", text)
        return self.function("log", text)

    def function(self, name: str, text: str) -> str:
        self.exprs.forget()
        self.exprs.bind("x", text)
        return self.exprs.emit(self.elementary[name])

    def pair(self, x: str, y: str) -> str:
        """Two numbers as elements of 16 bits."""
        if self.step.element == "bf16":
            if self.b.device.arch >= 80:
                return self.b.nvvm("llvm.nvvm.ff2bf16x2.rn", y, x)
            low, high = self._rounded(x), self._rounded(y)
            low = self.b.value_of(f"lshr i32 {low}, 16")
            word = self.b.value_of(f"or i32 {low}, {self.b.value_of(f'and i32 {high}, -65536')}")
            return self.b.value_of(f"bitcast i32 {word} to <2 x bfloat>")
        vector = self.b.value_of(f"insertelement <2 x float> poison, float {x}, i32 0")
        vector = self.b.value_of(f"insertelement <2 x float> {vector}, float {y}, i32 1")
        return self.b.value_of(f"fptrunc <2 x float> {vector} to <2 x half>")

    def _rounded(self, number: str) -> str:
        """A number whose upper 16 bits are the nearest bfloat16."""
        op = self.b.value_of
        bits = op(f"bitcast float {number} to i32")
        last = op(f"and i32 {op(f'lshr i32 {bits}, 16')}, 1")
        rounded = op(f"add i32 {op(f'add i32 {bits}, 32767')}, {last}")
        nan = op(f"fcmp uno float {number}, {number}")
        return op(f"select i1 {nan}, i32 {op(f'or i32 {bits}, 4194304')}, i32 {rounded}")

    def over_row(self, name: str, text: str) -> str:
        """A fold over the threads that share a row."""
        distance = self.products.lanes // 2
        while distance:
            text = self.real_op(name, text, self._exchanged(text, distance))
            distance //= 2
        return text

    def _exchanged(self, text: str, distance: int) -> str:
        shuffle = "llvm.nvvm.shfl.sync.bfly."
        if self.real == "float":
            return self.b.nvvm(f"{shuffle}f32", "-1", text, str(distance), "31", fresh=True)
        bits = self.b.value_of(f"bitcast double {text} to <2 x i32>")
        vector = "poison"
        for k in range(2):
            part = self.b.value_of(f"extractelement <2 x i32> {bits}, i32 {k}")
            part = self.b.nvvm(f"{shuffle}i32", "-1", part, str(distance), "31", fresh=True)
            vector = self.b.value_of(f"insertelement <2 x i32> {vector}, i32 {part}, i32 {k}")
        return self.b.value_of(f"bitcast <2 x i32> {vector} to double")

    # Global memory.

    def matrix(self, view: Matrices, places: Sequence[str]) -> str:
        """The first element of one matrix."""
        op, ty = self.b.value_of, self.b.index_type
        at = str(view.offset)
        for place, stride in zip(places, view.batch, strict=True):
            if stride:
                at = op(f"add {ty} {at}, {op(f'mul {ty} {place}, {stride}')}")
        return self.b.element_at(view.array.dtype, self.b.pointers[view.array], at)

    def element(self, base: str, view: Matrices, row: str, column: str) -> str:
        """The place of an element of a matrix."""
        op, ty = self.b.value_of, self.b.index_type
        at = op(f"mul {ty} {row}, {view.row}")
        if view.column:
            at = op(f"add {ty} {at}, {op(f'mul {ty} {column}, {view.column}')}")
        return self.b.element_at(view.array.dtype, base, at)

    def read(self, view: Matrices, place: str) -> str:
        """An element as a number of the sums' dtype."""
        item = view.array.dtype.itemsize
        if item >= 4:
            value = self.b.fresh_of(
                f"load {SCALAR_TYPES[view.array.dtype]}, ptr {place}, align {item}"
            )
            return value
        half = "half" if self.step.element == "f16" else "bfloat"
        value = self.b.fresh_of(f"load {half}, ptr {place}, align 2")
        return self.b.value_of(f"fpext {half} {value} to float")

    def write(self, view: Matrices, place: str, texts: Sequence[str]) -> None:
        """Store neighbours: one, or as many as lie side by side, aligned."""
        item, count = view.array.dtype.itemsize, len(texts)
        if item == 2:
            padded_texts = [*texts, *texts][: max(count, 2)]
            vectors = [self.pair(*padded_texts[k : k + 2]) for k in range(0, count, 2)]
            half = "half" if self.step.element == "f16" else "bfloat"
            if count == 1:
                one = self.b.value_of(f"extractelement <2 x {half}> {vectors[0]}, i32 0")
                self.b.lines.append(f"  store {half} {one}, ptr {place}, align 2")
                return
            for k, vector in enumerate(vectors):
                at = self.b.value_of(f"getelementptr i8, ptr {place}, i32 {4 * k}")
                self.b.lines.append(f"  store <2 x {half}> {vector}, ptr {GLOBAL}{at}, align 4")
            return
        if count == 1:
            self.b.lines.append(f"  store {self.real} {texts[0]}, ptr {place}, align {item}")
            return
        vector, ty = "poison", f"<{count} x {self.real}>"
        for k, text in enumerate(texts):
            vector = self.b.value_of(f"insertelement {ty} {vector}, {self.real} {text}, i32 {k}")
        self.b.lines.append(f"  store {ty} {vector}, ptr {place}, align {count * item}")

    def together(self, view: Matrices, width: int) -> int:
        """How many neighbours of a result are stored at a time."""
        count, item = self.products.neighbours, view.array.dtype.itemsize
        strides = (*view.batch, view.row, view.offset, width)
        aligned = self.alignments[view.array] % (count * item) == 0
        fits = aligned and view.column == 1 and not any(s % count for s in strides)
        return count if fits else 1

    # Walks.

    def zeros(self, count: int) -> list[str]:
        return [self.zero] * count

    def carried(self, texts: Sequence[str]) -> Values:
        return [Carried(text, True, self.real) for text in texts]

    def repeat(
        self, first: Number, last: Number, values: Values, body: Callable[[str, Values], Values]
    ) -> Values:
        """for i in range(first, last), written out where there are no trips."""
        if isinstance(first, int) and isinstance(last, int) and first >= last:
            return values
        return self.loops.loop(str(first), str(last), 1, values, body)


def _small(step: AttentionStep, tile: AttentionTile) -> bool:
    """Whether positions fit 32 bits, also those beyond the ends."""
    rows = max(step.queries, step.keys) + max(tile.height, tile.columns)
    columns = max(step.depth, step.width, step.keys) + max(tile.width, tile.columns)
    views = [step.q, step.k, step.v, *step.given, *step.results]
    views += [step.bias] if step.bias else []
    ends = []
    for view in views:
        batch = (step.parts, *step.batch)[-len(view.batch) :] if view.batch else ()
        end = sum(abs(s) * n for s, n in zip(view.batch, batch, strict=True))
        ends.append(abs(view.offset) + end + abs(view.row) * rows + abs(view.column) * columns)
    return fits_32_bits([8 * max(ends), tile.blocks(step), math.prod(step.batch) * rows])
