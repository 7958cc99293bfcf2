"""Rows of matrices on their way to shared memory, and where their elements are there.

A panel has a line for each row. Lines begin an odd number of chunks of 16 bytes apart, so that the same
chunk of eight lines, and neighbouring chunks of one, lie in all banks. What is beyond the matrices is
zero. Copies are asynchronous where the GPU has such copies of what the operand's alignment allows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...cuda.emitter import Word, is_zero
from ...llvm.builder import Condition, Value, constant, zeros
from ...llvm.instructions import SCALAR_TYPES
from ...llvm.loops import Values
from ..matmul.cuda_tiles import CHUNK
from .cuda_plan import Matrices, line_bytes

if TYPE_CHECKING:
    from .cuda_attention import AttentionEmitter


WRITTEN_OUT = 8  # units of a thread below each other; more of them are a loop


class Panel:
    """`lines` rows of matrices of `total` rows and `width` columns; a line holds `length` of these.

    The panel begins at byte `start` of shared memory, or of a stage of it. With `crosswise` the matrices
    have one column, and there is but one line, of `lines` elements.
    """

    def __init__(
        self,
        e: AttentionEmitter,
        view: Matrices,
        lines: int,
        total: int,
        width: int,
        length: int,
        start: int,
        crosswise: bool = False,
    ) -> None:
        self.e, self.view, self.start = e, view, start
        self.lines, self.total, self.width, self.length = lines, total, width, length
        self.item = view.array.dtype.itemsize
        self.line = self.item if crosswise else line_bytes(length, self.item)
        self.nbytes = lines * self.line
        self.unit = self.item if crosswise else self._unit()
        self.asynchronous = e.b.device.arch >= 80 and self.unit >= 4
        self.base: Value  # of the matrix

    def _unit(self) -> int:
        """Bytes that are copied together."""
        view, item = self.view, self.item
        if view.column != 1 and self.width > 1:
            return item
        steps = [s for s, n in zip(view.batch, self.e.step.batch, strict=True) if n > 1]
        if self.total > 1:
            steps.append(view.row)
        together = math.gcd(self.e.alignments[view.array], CHUNK)
        return math.gcd(together, *(s * item for s in (*steps, view.offset, self.width)))

    # From memory to shared memory.

    def stand(self, batch: Sequence[Word]) -> None:
        """Find this thread's part of the copies; `batch` are the batch's indices."""
        e, view = self.e, self.view
        threads = e.tile.threads
        self.base = e.matrix(view, batch)
        units = -(-self.length * self.item // self.unit)
        per_unit = self.unit // self.item
        self.passes = max(threads // units, 1)  # lines in one pass
        self.across = -(-units // threads)  # passes for one line
        self.units = units
        thread = e.tid
        self.mine: Condition | None = None
        if self.across == 1:
            if self.passes * units < threads:
                self.mine = thread.ult(self.passes * units)
            self.first = thread // units if self.passes > 1 else 0
            unit = thread % units if units < threads else thread
            if self.passes == 1 and self.mine is not None:
                unit = self.e.b.select(self.mine, thread, 0)
        else:
            self.first, unit = 0, thread
        self.column = unit * per_unit if per_unit > 1 else unit
        inside = unit * self.unit
        row = self.first * self.line
        self.target = row + inside + self.start
        column = e.b.widened(self.column) * view.column
        row = e.b.widened(self.first) * view.row
        self.source = row + column

    def copy(self, first: Word, stage: Word, column: Word = 0) -> None:
        """Begin to copy the rows from `first` on, and their columns from `column` on, to a stage."""
        e = self.e
        start = first * self.view.row + self.source
        if not is_zero(column):
            more = column * self.view.column
            start = start + more
        target = self.target + stage
        row = e.indices.as_index(first) + e.b.widened(self.first)
        threads, per_unit = e.tile.threads, self.unit // self.item
        for c in range(self.across):
            mine = self.mine
            if (c + 1) * threads > self.units and self.across > 1:
                mine = e.tid.ult(self.units - c * threads)
            inside: Condition | None = None
            if not is_zero(column) or (self.length > self.width):
                at = column + e.b.widened(self.column)
                at = at + c * threads * per_unit
                inside = at < self.width
            start_c = start + c * threads * per_unit * self.view.column
            target_c = target + c * threads * self.unit
            self._copy_lines(row, start_c, target_c, mine, inside)

    def _copy_lines(
        self,
        row: Value,
        start: Word,
        target: Value,
        mine: Condition | None,
        inside: Condition | None,
    ) -> None:
        """Units below each other: `row` is the first one's row, `start` its offset in memory."""
        step = self.passes * WRITTEN_OUT
        if self.lines <= 2 * step:
            self._lines(range(0, self.lines, self.passes), 0, row, start, target, mine, inside)
            return

        def some(first: Value, values: Values) -> Values:
            narrow = self.e.b.narrowed(first)
            below = start + first * self.view.row
            into = target + narrow * self.line
            at = row + first
            lines = range(0, step, self.passes)
            self._lines(lines, narrow, at, below, into, mine, inside)
            return []

        self.e.loops.loop(0, self.lines, step, [], some)

    def _lines(
        self,
        lines: range,
        first: Word,
        row: Value,
        start: Word,
        target: Value,
        mine: Condition | None,
        inside: Condition | None,
    ) -> None:
        e = self.e
        whole = self.lines % (self.passes if is_zero(first) else lines.stop) == 0
        for p in lines:
            here, there = mine, inside
            if (
                not whole
                and self.passes > 1
                and (not is_zero(first) or p + self.passes > self.lines)
            ):
                line = first + self.first
                here = e.b.both(here, line < self.lines - p)
            if self.total % self.lines:
                below = row + p < self.total
                there = e.b.both(there, below)
            with e.b.where(here):
                source = start + p * self.view.row
                self._move(source, target + p * self.line, there)

    def _move(self, source: Word, target: Value, there: Condition | None) -> None:
        """One unit; zeros where `there` is false."""
        e = self.e
        if there is not None:
            source = self.e.b.select(there, source, 0)
        element = SCALAR_TYPES[self.view.array.dtype]
        pointer = self.e.b.offset(self.base, source, element)
        address = e.shared_at(target)
        if self.asynchronous:
            kind = "cg" if self.unit == CHUNK else "ca"
            name = f"llvm.nvvm.cp.async.{kind}.shared.global.{self.unit}"
            operands: list[Value] = [address, pointer]
            if there is not None:
                operands.append(self.e.b.select(there, constant("i32", self.unit), 0))
            e.b.nvvm(f"{name}.s" if there is not None else name, *operands)
            return
        word = f"i{8 * min(self.unit, 4)}"
        word = f"<{self.unit // 4} x i32>" if self.unit > 4 else word
        value = e.b.load(word, pointer, align=self.unit)
        if there is not None:
            value = self.e.b.select(there, value, zeros(word) if self.unit > 4 else 0)
        e.b.store(value, address, align=self.unit)

    # In shared memory.

    def offset(self, line: Word, chunk: Word, size: int) -> Word:
        """The byte of a stage at which a piece of `size` bytes of a line begins."""
        text = line * self.line
        if not is_zero(chunk):
            text = text + chunk * size
        return text

    def at(self, stage: Word, offset: Word, lines: int, nbytes: int = 0) -> Value:
        """The address `lines` lines and some bytes after an offset."""
        text = offset + stage
        return self.e.shared_at(text, self.start + lines * self.line + nbytes)

    def load(self, address: Value, count: int) -> list[Value]:
        """`count` neighbours, as numbers of the sums' dtype."""
        e = self.e
        stored = {"f16": "half", "bf16": "bfloat", "f32": "float", "f64": "double"}[e.step.element]
        if self.item >= 4:
            stored = SCALAR_TYPES[self.view.array.dtype]
        ty = f"<{count} x {stored}>" if count > 1 else stored
        value = e.b.load(ty, address, align=math.gcd(count * self.item, CHUNK))
        if stored in ("half", "bfloat"):
            wide = f"<{count} x float>" if count > 1 else "float"
            value, ty = value.to("fpext", wide), wide
        if count == 1:
            return [value]
        return [e.b.extract(value, k) for k in range(count)]
