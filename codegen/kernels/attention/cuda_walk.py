"""The walk of a block of attention over its columns: which, in what order, and what is brought when."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence

from ...cuda.emitter import Word, is_zero
from ...llvm.builder import Condition, Value, constant
from ...llvm.loops import Values
from ...llvm.text import Operand
from .cuda_attention import LOG2_E, AttentionEmitter, Number
from .cuda_plan import Matrices


class BlockEmitter(AttentionEmitter):
    """The walk of a block over its columns."""

    def body(self) -> None:
        self._stand()
        self._range()
        values = self.carried(self.start())
        values = self._pipeline(values) if self.tile.whole else self._panelled(values)
        self.finish([c.value for c in values])

    # Where the block is.

    def _stand(self) -> None:
        """The block's rows, slice and part, and its indices in the batch."""
        step, tile = self.step, self.tile
        q = self.b.block_number()
        down = -(-step.rows // tile.height)
        indices: list[Word] = []
        for count in (tile.slices(step), down, step.parts, *reversed(step.batch[1:])):
            index: Word = q % count if count > 1 else 0
            q = q // count if count > 1 else q
            indices.append(index)
        slice_, block, self.part, *batch = indices
        if step.causal and step.kind != "keys":
            block = down - 1 - block  # those with the most work begin first
        self.batch_indices = [q, *reversed(batch)] if step.batch else []
        self.first_row = block * tile.height if down > 1 else 0
        self.slice: Word = slice_ * tile.width if tile.slices(step) > 1 else 0
        for panel in self._all_panels:
            panel.stand(self.batch_indices)
        for left, right in self.score_panels:  # once, and not in the loops
            self.products.as_rows(left)
            self.products.as_columns(right)
        for panel in self.sum_panels:
            self.products.as_summed(panel)
        if step.bias is not None:
            self.bias_base = self.matrix(step.bias, self.batch_indices)
        self.rows = [
            self.first_row + self.b.widened(self.products.row(r))
            for r in range(self.products.held_rows)
        ]

    def _range(self) -> None:
        """Blocks of columns that some row sees, and those among them where nothing is hidden."""
        step, tile = self.step, self.tile
        n, height = tile.columns, tile.height
        self.begin: Number = 0
        self.end: Number = step.columns  # of what may be seen at all
        first = self.first_row
        if step.parts > 1:
            self.begin = self.part * step.length
            self.end = self.lesser(self.begin + step.length, step.columns)
        low, high = self.begin // n, self.end
        clear_low, clear_high = low, self.end // n
        if step.causal and step.kind == "keys":
            low = first // n
            clear_low = (first + (height - 1 + n - 1)) // n
        elif step.causal:
            high = self.lesser(high, first + height)
            clear_high = self.lesser(clear_high, (first + 1) // n)
        high = (high + (n - 1)) // n
        if tile.atom is None and (step.causal or step.columns % n or step.parts > 1):
            clear_high = low  # a second copy of the loop would be longer than what it saves
        self.low = low
        self.clear_high = self.greater(clear_high, low)
        self.clear_low = self.lesser(self.greater(clear_low, low), self.clear_high)
        self.clear = self.clear_high - self.clear_low
        self.count = high - low
        self.hides = bool(step.causal or step.columns % n)

    def _block(self, i: Number) -> Number:
        """The i-th block of columns that is visited: clear ones, those before them, those after."""
        at = self.clear_low + i
        if self.step.kind != "keys" or not self.step.causal:
            return at
        rest = i - self.clear
        before = self.low + rest
        other = self.chosen(before >= self.clear_low, before + self.clear, before)
        return self.chosen(i < self.clear, at, other)

    # The walk.

    def _pipeline(self, values: Values) -> Values:
        """Operands are wholly in shared memory: blocks of columns in two stages."""
        for panel, _ in self.score_panels:
            panel.copy(self.first_row, 0)
        # Whether anybody sees the first block, where that is not sure.
        some: Condition | None = None
        if self.step.causal and self.step.kind == "keys" and self.step.keys > self.step.queries:
            some = self.indices.as_index(self.count) > 0
        with self.b.where(some):
            self._bring(self._block(0), 0)
        self._commit()
        state = [*values, Operand(constant("i32", 0), True)]

        def visit(i: Word, carried: Values, hides: bool) -> Values:
            *texts, now = (c.value for c in carried)
            self._wait()
            self.b.barrier()
            other = self.stage_bytes - now
            if self.asynchronous:
                self._bring_next(i, other)
            new = self.visit(self._block(i), texts, now, hides)
            if not self.asynchronous:
                self._bring_next(i, other)
            return [c._replace(value=t) for c, t in zip(carried, [*new, other], strict=True)]

        return self._over_all(state, visit)[:-1]

    def _over_all(self, values: Values, visit: Callable[[Word, Values, bool], Values]) -> Values:
        """All blocks of columns: first those that nothing hides, then the others."""
        values = self.repeat(0, self.clear, values, lambda i, v: visit(i, v, False))
        if self.hides or self.step.parts > 1:
            values = self.repeat(self.clear, self.count, values, lambda i, v: visit(i, v, True))
        return values

    def _bring_next(self, i: Word, stage: Word) -> None:
        after = i + 1
        with self.b.when(after < self.count):
            self._bring(self._block(after), stage)
        self._commit()

    def _bring(self, block: Number, stage: Word) -> None:
        """Begin to copy a block of columns."""
        first = block * self.tile.columns
        for panel in (*self.column_panels, *self.vectors):
            panel.copy(first, stage)

    def _commit(self) -> None:
        if self.asynchronous:
            self.b.nvvm("llvm.nvvm.cp.async.commit.group")

    def _wait(self) -> None:
        if self.asynchronous:
            self.b.nvvm("llvm.nvvm.cp.async.wait.group", 0)

    def _panelled(self, values: Values) -> Values:
        """Operands pass shared memory in panels, each waited for."""

        def visit(i: Word, carried: Values, hides: bool) -> Values:
            texts = [c.value for c in carried]
            new = self.visit(self._block(i), texts, 0, hides)
            return [c._replace(value=t) for c, t in zip(carried, new, strict=True)]

        return self._over_all(values, visit)

    def products_of(self, k: int, block: Word, stage: Word) -> list[Value]:
        """The k-th products of rows and columns."""
        step, products = self.step, self.products
        start = self.zeros(products.held_rows * products.held_columns)
        left, right = self.score_panels[k]
        if self.tile.whole:
            return products.scores(start, left, 0, right, stage)
        first = block * self.tile.columns

        def turn(i: Value, carried: Values) -> Values:
            column = i * self.tile.width
            self.b.barrier()
            left.copy(self.first_row, 0, column)
            right.copy(first, 0, column)
            if k == 0:
                for panel in self.vectors:
                    panel.copy(first, 0)
            self._commit()
            self._wait()
            self.b.barrier()
            return self.carried(products.scores([c.value for c in carried], left, 0, right, 0))

        steps = -(-step.pairs[k][2] // self.tile.width)
        return [c.value for c in self.repeat(0, steps, self.carried(start), turn)]

    def add(
        self, k: int, sums: Sequence[Value], weights: Sequence[Value], block: Word, stage: Word
    ) -> list[Value]:
        """The k-th sums with a block of columns, weighted, added."""
        panel = self.sum_panels[k]
        if self.tile.whole and not is_zero(self.slice):
            at = self.b.narrowed(self.slice) * panel.item
            stage = stage + at
        if not self.tile.whole:
            first = block * self.tile.columns
            self.b.barrier()
            panel.copy(first, 0, self.slice)
            self._commit()
            self._wait()
            self.b.barrier()
        return self.products.accumulate(sums, weights, panel, stage)

    # Scores.

    def shown(self, block: Word, texts: Sequence[Value], other: Value) -> list[Value]:
        """Scores, or `other` where a row does not see a column."""
        step = self.step
        first = block * self.tile.columns
        columns = self._columns(first)
        scores = list(texts)
        inside: list[Condition | None] = [None] * len(columns)
        if step.columns % self.tile.columns or step.parts > 1:
            inside = [c < self.end for c in columns]
        for r, row in enumerate(self.rows):
            for j, column in enumerate(columns):
                seen = inside[j]
                if step.causal:
                    query, key = (column, row) if step.kind == "keys" else (row, column)
                    seen = self.b.both(seen, key <= query)
                if seen is not None:
                    k = r * len(columns) + j
                    scores[k] = self.b.select(seen, scores[k], other)
        return scores

    def _columns(self, first: Word) -> list[Word]:
        return [
            first + self.b.widened(self.products.column(j))
            for j in range(self.products.held_columns)
        ]

    def biases(self, block: Word) -> list[Value]:
        """What is added to each score, in the unit of its exponent."""
        step, bias = self.step, self.step.bias
        assert bias is not None
        columns = self._columns(block * self.tile.columns)
        if step.columns % self.tile.columns:
            columns = [self.indices.least(c, step.columns - 1) for c in columns]
        rows = self.rows
        if step.rows % self.tile.height:
            rows = [self.indices.least(r, step.rows - 1) for r in rows]
        scores = []
        for row in rows:
            for column in columns:
                query, key = (column, row) if step.kind == "keys" else (row, column)
                value = self.read(bias, self.element(self.bias_base, bias, query, key))
                scores.append(self.times(value, LOG2_E) if self.fast else value)
        return scores

    # What kernels do.

    @abstractmethod
    def start(self) -> list[Value]:
        """What the walk carries, to begin with."""

    @abstractmethod
    def visit(self, block: Word, values: list[Value], stage: Word, hides: bool) -> list[Value]:
        """What it carries after a block of columns."""

    @abstractmethod
    def finish(self, values: list[Value]) -> None:
        """Store the results."""

    @property
    def held(self) -> int:
        """Elements of a sum that a thread has."""
        return self.products.held_rows * self.products.held(self.sum_width)

    @property
    def sum_width(self) -> int:
        return self.tile.width

    def store_sums(
        self, view: Matrices, width: int, sums: Sequence[Value], batch: Sequence[Word]
    ) -> None:
        """Store the sums of this thread's rows."""
        products = self.products
        base = self.matrix(view, batch)
        held = len(sums) // products.held_rows
        count, n = self.together(view, width), products.neighbours
        whole = (
            width % self.tile.width == 0 and self.tile.slices(self.step) * self.tile.width == width
        )
        for r, row in enumerate(self.rows):
            there: Condition | None = None
            if self.step.rows % self.tile.height:
                there = row < self.step.rows
            for k in range(0, held, n):
                for j in range(k, k + n, count):
                    column = self.b.widened(products.sum_column(j))
                    column = self.slice + column
                    inside = there
                    if not whole:
                        inside = self.b.both(there, column < width)
                    with self.b.where(inside):
                        address = self.element(base, view, row, column)
                        self.write(view, address, sums[r * held + j : r * held + j + count])
