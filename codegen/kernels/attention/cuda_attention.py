"""Attention as kernels that keep no matrix of scores: what they share (see `cuda_plan`).

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
from typing import Any

from ...cuda.emitter import ThreadBuilder, Word, fits_32_bits
from ...cuda.target import CudaTarget
from ...llvm.builder import Value
from ...llvm.indices import IndexEmitter
from ...llvm.instructions import SCALAR_TYPES, suffix
from ...llvm.loops import LoopEmitter, Values
from ...llvm.scalars import ScalarEmitter
from ...llvm.text import Operand
from ...loop_ir.kernel import Array
from ...math import EXPANSIONS
from ...scalar import var
from .cuda_panels import Panel
from .cuda_plan import SMALL, AttentionStep, AttentionTile, Matrices, padded
from .cuda_products import PlainProducts, Products
from .cuda_tensor_cores import TensorProducts

LOG2_E, LN_2 = 1.4426950408889634, 0.6931471805599453
Number = Value | int  # of a block: known, or an index


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
        self.never = self.number(float("-inf"))
        self.zero = self.number(0.0)
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
        first, panels = at, {}
        for view, n in step.passing:
            length = tile.length(step, view, n)
            panel = Panel(self, view, tile.columns, step.columns, n, length, at)
            panels[id(view)] = panel
            at += panel.nbytes
        self.score_panels = [
            (left, panels[id(m)]) for left, (_, m, _) in zip(rows, step.pairs, strict=True)
        ]
        self.sum_panels = [panels[id(m)] for m, _ in step.sums]
        self.column_panels = list(panels.values())
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
            for vector in step.backward_inputs[1:]:
                panel = Panel(self, vector, tile.columns, step.columns, 1, 1, at, crosswise=True)
                self.vectors.append(panel)
                at += -(-panel.nbytes // 16) * 16
        return at

    def shared_at(self, offset: Word, more: int = 0) -> Value:
        """The address `offset` + `more` bytes into the block's shared memory."""
        return self.b.offset(self.b.offset(self.memory, offset), more)

    # Numbers.

    def lesser(self, a: Number, b: Number) -> Number:
        return min(a, b) if isinstance(a, int) and isinstance(b, int) else self.indices.least(a, b)

    def greater(self, a: Number, b: Number) -> Number:
        if isinstance(a, int) and isinstance(b, int):
            return max(a, b)
        return self.chosen(a > b, a, b)

    def chosen(self, condition: Any, a: Number, b: Number) -> Number:
        if isinstance(condition, bool):
            return a if condition else b
        return self.b.select(condition, self.indices.as_index(a), self.indices.as_index(b))

    # Arithmetic on numbers of the sums' dtype.

    def real_op(self, name: str, *operands: Value) -> Value:
        """`fadd`, `fmul` and such, or an intrinsic of LLVM: `fma`, `maxnum`."""
        if name in ("fma", "maxnum"):
            return self.b.nvvm(f"llvm.{name}.{suffix(self.step.real, 1)}", *operands)
        return self.b.binary(name, *operands)

    def number(self, value: float) -> Value:
        """A constant of the sums' dtype."""
        return self.b.scalar(value, self.step.real)

    def times(self, text: Value, factor: float) -> Value:
        if factor == 1.0:
            return text
        return self.real_op("fmul", text, self.number(factor))

    def less(self, text: Value, shift: Value) -> Value:
        """text * factor - shift, rounded once; `shift` is negative already."""
        return self.real_op("fma", text, self.number(self.factor), shift)

    def negative(self, text: Value) -> Value:
        return self.b.negated(text)

    def power(self, text: Value) -> Value:
        """e ** text; 2 ** text where exponentials are `fast`."""
        if self.fast:
            return self.b.nvvm("llvm.nvvm.ex2.approx.ftz.f32", text)
        return self.function("exp", text)

    def logarithm(self, text: Value) -> Value:
        """Of base e, or 2 where exponentials are `fast`."""
        if self.fast:
            return self.b.nvvm("llvm.nvvm.lg2.approx.ftz.f", text)
        return self.function("log", text)

    def function(self, name: str, text: Value) -> Value:
        self.exprs.forget()
        self.exprs.bind("x", text)
        return self.exprs.emit(self.elementary[name])

    def pair(self, x: Value, y: Value) -> Value:
        """Two numbers as elements of 16 bits."""
        if self.step.element == "bf16":
            if self.b.device.arch >= 80:
                return self.b.nvvm("llvm.nvvm.ff2bf16x2.rn", y, x)
            low, high = self._rounded(x), self._rounded(y)
            low = low >> 16
            word = low | high & -65536
            return word.to("bitcast", "<2 x bfloat>")
        return self.b.packed([x, y]).to("fptrunc", "<2 x half>")

    def _rounded(self, number: Value) -> Value:
        """A number whose upper 16 bits are the nearest bfloat16."""
        bits = number.to("bitcast", "i32")
        last = bits >> 16 & 1
        rounded = bits + 32767 + last
        nan = self.b.compare_floats("uno", number, number)
        return self.b.select(nan, bits | 4194304, rounded)

    def over_row(self, name: str, text: Value) -> Value:
        """A fold over the threads that share a row."""
        distance = self.products.lanes // 2
        while distance:
            text = self.real_op(name, text, self._exchanged(text, distance))
            distance //= 2
        return text

    def _exchanged(self, text: Value, distance: int) -> Value:
        shuffle = "llvm.nvvm.shfl.sync.bfly."
        if self.real == "float":
            return self.b.nvvm(f"{shuffle}f32", -1, text, distance, 31, fresh=True)
        bits = text.to("bitcast", "<2 x i32>")
        parts = [
            self.b.nvvm(f"{shuffle}i32", -1, self.b.extract(bits, k), distance, 31, fresh=True)
            for k in range(2)
        ]
        return self.b.packed(parts).to("bitcast", "double")

    # Global memory.

    def matrix(self, view: Matrices, batch: Sequence[Word]) -> Value:
        """The first element of one matrix."""
        at: Word = view.offset
        for index, stride in zip(batch, view.batch, strict=True):
            if stride:
                at = at + index * stride
        return self.b.element_at(view.array.dtype, self.b.pointers[view.array], at)

    def element(self, base: Value, view: Matrices, row: Word, column: Word) -> Value:
        """The address of an element of a matrix."""
        at = row * view.row
        if view.column:
            at = at + column * view.column
        return self.b.element_at(view.array.dtype, base, at)

    def read(self, view: Matrices, address: Value) -> Value:
        """An element as a number of the sums' dtype."""
        item = view.array.dtype.itemsize
        if item >= 4:
            value = self.b.load(SCALAR_TYPES[view.array.dtype], address, align=item)
            return value
        half = "half" if self.step.element == "f16" else "bfloat"
        value = self.b.load(half, address, align=2)
        return value.to("fpext", "float")

    def write(self, view: Matrices, address: Value, texts: Sequence[Value]) -> None:
        """Store neighbours: one, or as many as lie side by side, aligned."""
        item, count = view.array.dtype.itemsize, len(texts)
        if item == 2:
            padded_texts = [*texts, *texts][: max(count, 2)]
            vectors = [self.pair(*padded_texts[k : k + 2]) for k in range(0, count, 2)]
            if count == 1:
                one = self.b.extract(vectors[0], 0)
                self.b.store(one, address, align=2)
                return
            for k, vector in enumerate(vectors):
                at = self.b.offset(address, 4 * k, "i8")
                self.b.store(vector, at, align=4)
            return
        if count == 1:
            self.b.store(texts[0], address, align=item)
            return
        self.b.store(self.b.packed(texts), address, align=count * item)

    def together(self, view: Matrices, width: int) -> int:
        """How many neighbours of a result are stored at a time."""
        count, item = self.products.neighbours, view.array.dtype.itemsize
        strides = (*view.batch, view.row, view.offset, width)
        aligned = self.alignments[view.array] % (count * item) == 0
        fits = aligned and view.column == 1 and not any(s % count for s in strides)
        return count if fits else 1

    # Walks.

    def zeros(self, count: int) -> list[Value]:
        return [self.zero] * count

    def carried(self, texts: Sequence[Value]) -> Values:
        return [Operand(value, True) for value in texts]

    def repeat(
        self, first: Number, last: Number, values: Values, body: Callable[[Value, Values], Values]
    ) -> Values:
        """for i in range(first, last), written out where there are no iterations."""
        if isinstance(first, int) and isinstance(last, int) and first >= last:
            return values
        return self.loops.loop(first, last, 1, values, body)


def _small(step: AttentionStep, tile: AttentionTile) -> bool:
    """Whether positions fit 32 bits, also those beyond the ends."""
    rows = max(step.queries, step.keys) + max(tile.height, tile.columns)
    columns = max(step.depth, step.width, step.keys) + max(tile.width, tile.columns)
    views = [step.q, step.k, step.v, *step.backward_inputs, *step.results]
    views += [step.bias] if step.bias else []
    ends = []
    for view in views:
        batch = (step.parts, *step.batch)[-len(view.batch) :] if view.batch else ()
        end = sum(abs(s) * n for s, n in zip(view.batch, batch, strict=True))
        ends.append(abs(view.offset) + end + abs(view.row) * rows + abs(view.column) * columns)
    return fits_32_bits([8 * max(ends), tile.blocks(step), math.prod(step.batch) * rows])
