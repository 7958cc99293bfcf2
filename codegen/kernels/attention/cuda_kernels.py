"""The kernels of attention: what is done with a block of scores, and with the sums at the end."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping, Sequence

from ...cuda.emitter import Word
from ...cuda.target import CudaTarget
from ...llvm.builder import Value
from ...loop_ir.kernel import Array
from .cuda_attention import LN_2, LOG2_E
from .cuda_plan import AttentionStep, AttentionTile
from .cuda_walk import BlockEmitter

NAN = float("nan")


class ForwardEmitter(BlockEmitter):
    """y and lse. Carries of each row the largest score so far, this thread's sum of exponentials, and
    sums of values."""

    def start(self) -> list[Value]:
        # Scores are scaled when exponents are made of them, if nothing comes in between.
        self.raw = self.fast and self.step.bias is None and self.step.scale > 0
        rows = self.products.held_rows
        return [self.never] * rows + self.zeros(rows + self.held)

    def visit(self, block: Word, values: list[Value], stage: Word, hides: bool) -> list[Value]:
        """One block of columns: new maxima, to which what is summed so far is scaled, and sums."""
        rows, n = self.products.held_rows, self.products.held_columns
        tops, totals, sums = values[:rows], values[rows : 2 * rows], values[2 * rows :]
        scores = self.products_of(0, block, stage)
        if not self.raw:
            if self.step.bias is None:
                scores = [self.times(s, self.factor) for s in scores]
            else:
                biases = self.biases(block)
                scores = [self.less(s, b) for s, b in zip(scores, biases, strict=True)]
        if hides:
            scores = self.shown(block, scores, self.never)
        held = len(sums) // rows
        new_tops, new_totals, weights = [], [], []
        for r in range(rows):
            own = scores[r * n : (r + 1) * n]
            top = self.over_row("maxnum", self._largest(own))
            top = self.real_op("maxnum", tops[r], top)
            shift = self._shift(top)
            factor = self.power(self._exponent(tops[r], shift))
            exps = [self.power(self._exponent(s, shift)) for s in own]
            total = self.real_op("fmul", totals[r], factor)
            new_totals.append(self.real_op("fadd", total, self._sum(exps)))
            new_tops.append(top)
            weights += exps
            for k in range(r * held, (r + 1) * held):
                sums[k] = self.real_op("fmul", sums[k], factor)
        sums = self.add(0, sums, weights, block, stage)
        return [*new_tops, *new_totals, *sums]

    def _largest(self, texts: Sequence[Value]) -> Value:
        while len(texts) > 1:
            pairs = zip(texts[::2], texts[1::2], strict=True)
            texts = [self.real_op("maxnum", x, y) for x, y in pairs]
        return texts[0]

    def _sum(self, texts: Sequence[Value]) -> Value:
        while len(texts) > 1:
            texts = [
                self.real_op("fadd", x, y) for x, y in zip(texts[::2], texts[1::2], strict=True)
            ]
        return texts[0]

    def _shift(self, top: Value) -> Value:
        """What is added to exponents: minus the largest score; nothing if nothing has been seen."""
        nothing = self.b.compare_floats("oeq", top, self.never)
        top = self.b.select(nothing, self.zero, top)
        return self.negative(self.times(top, self.factor) if self.raw else top)

    def _exponent(self, score: Value, shift: Value) -> Value:
        return self.less(score, shift) if self.raw else self.real_op("fadd", score, shift)

    def finish(self, values: list[Value]) -> None:
        """Store y = sums / totals and lse = top + log(total)."""
        rows = self.products.held_rows
        tops, totals, sums = values[:rows], values[rows : 2 * rows], values[2 * rows :]
        held = len(sums) // rows
        y, lse = self.step.results
        parts = self.step.parts > 1
        batch = [self.part, *self.batch_indices] if parts else self.batch_indices
        base = self.matrix(lse, batch)
        first = self.tid & self.products.lanes - 1
        owner = first.eq(0)
        if self.tile.slices(self.step) > 1:
            owner = owner & self.indices.as_index(self.slice).eq(0)
        one = self.number(1.0)
        for r in range(rows):
            total = self.over_row("fadd", totals[r])
            nothing = self.b.compare_floats("oeq", total, self.zero)
            share = self.real_op("fdiv", one, total)
            if parts:
                share = self.b.select(nothing, self.zero, share)
            for k in range(r * held, (r + 1) * held):
                sums[k] = self.real_op("fmul", sums[k], share)
            top = self.times(tops[r], self.factor) if self.raw else tops[r]
            logsum = self.real_op("fadd", top, self.logarithm(total))
            logsum = self.times(logsum, LN_2) if self.fast else logsum
            other = self.number(float("-inf") if parts else NAN)
            logsum = self.b.select(nothing, other, logsum)
            mine = owner
            if self.step.rows % self.tile.height:
                there = self.rows[r] < self.step.rows
                mine = owner & there
            with self.b.when(mine):
                self.write(lse, self.element(base, lse, self.rows[r], 0), [logsum])
        self.store_sums(y, self.step.width, sums, batch)


class BackwardEmitter(BlockEmitter):
    """What both derivatives share: weights from lse, slopes from `share`."""

    def start(self) -> list[Value]:
        if self.step.kind == "queries":
            _, lse, share = self.step.backward_inputs
            last = self.step.rows - 1
            rows = self.rows
            if self.step.rows % self.tile.height:
                rows = [self.indices.least(r, last) for r in rows]
            self.row_shifts, self.row_shares = (
                [self.read(v, self.element(base, v, r, 0)) for r in rows]
                for v, base in ((v, self.matrix(v, self.batch_indices)) for v in (lse, share))
            )
            self.row_shifts = [self._shift(x) for x in self.row_shifts]
        return self.zeros(self.held * len(self.step.sums))

    def _shift(self, lse: Value) -> Value:
        """What is added to exponents."""
        return self.negative(self.times(lse, LOG2_E) if self.fast else lse)

    def _column_numbers(self, stage: Word) -> tuple[list[Value], list[Value]]:
        """lse and share of the columns."""
        rows = []
        for panel in self.vectors:
            columns = [self.products.column(j) for j in range(self.products.held_columns)]
            rows.append(
                [panel.load(panel.at(stage, panel.offset(c, 0, 0), 0), 1)[0] for c in columns]
            )
        shifts, shares = rows
        return [self._shift(x) for x in shifts], shares

    def visit(self, block: Word, values: list[Value], stage: Word, hides: bool) -> list[Value]:
        """One block of columns: weights from scores and lse, slopes from these, and both summed."""
        rows, n = self.products.held_rows, self.products.held_columns
        scores = self.products_of(0, block, stage)
        if self.step.kind == "keys":
            shifts, shares = (line * rows for line in self._column_numbers(stage))
        else:
            shifts, shares = (
                [x for x in line for _ in range(n)] for line in (self.row_shifts, self.row_shares)
            )
        if self.step.bias is not None:
            added = zip(self.biases(block), shifts, strict=True)
            shifts = [self.real_op("fadd", b, s) for b, s in added]
        scores = [self.less(x, s) for x, s in zip(scores, shifts, strict=True)]
        if hides:
            scores = self.shown(block, scores, self.never)
        weights = [self.power(x) for x in scores]
        slopes = self.products_of(1, block, stage)
        slopes = [
            self.real_op("fmul", p, self.real_op("fsub", d, s))
            for p, d, s in zip(weights, slopes, shares, strict=True)
        ]
        new = self.add(0, values[: self.held], slopes, block, stage)
        if self.step.kind == "keys":
            self.products.finish_reading()
            new += self.add(1, values[self.held :], weights, block, stage)
        return new

    def finish(self, values: list[Value]) -> None:
        sums = [self.times(x, self.step.scale) for x in values[: self.held]]
        self.store_sums(self.step.results[0], self.step.sums[0][1], sums, self.batch_indices)
        if self.step.kind == "keys":
            self.store_sums(
                self.step.results[1], self.step.sums[1][1], values[self.held :], self.batch_indices
            )


def attention_emitter(
    step: AttentionStep,
    tile: AttentionTile,
    target: CudaTarget,
    definitions: MutableMapping[str, str],
    alignments: Mapping[Array, int],
) -> BlockEmitter:
    """The emitter of the forward or of a backward kernel; `alignments` are in bytes."""
    form = ForwardEmitter if step.kind == "forward" else BackwardEmitter
    return form(step, tile, target, definitions, alignments)
