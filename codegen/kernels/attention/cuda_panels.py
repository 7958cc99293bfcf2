"""Rows of matrices on their way to shared memory, and where their elements are there.

A panel has a line for each row. Lines begin an odd number of chunks of 16 bytes apart, so that the same
chunk of eight lines, and neighbouring chunks of one, lie in all banks. What is beyond the matrices is
zero. Copies are asynchronous where the GPU has such copies of what the operand's alignment allows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING

from ...cuda.emitter import GLOBAL
from ...llvm.instructions import SCALAR_TYPES
from ...llvm.loops import Values
from ..matmul.cuda_tiles import CHUNK
from .cuda_plan import Matrices, line_bytes

if TYPE_CHECKING:
    from .cuda_attention import AttentionEmitter


WRITTEN_OUT = 8  # units of a thread below each other; more of them are a loop


def bare(pointer: str) -> str:
    """A pointer without its address space."""
    return pointer.rsplit(" ", 1)[-1]


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
        self.base = ""

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

    def stand(self, places: Sequence[str]) -> None:
        """Find this thread's part of the copies; `places` are the batch's indices."""
        e, op, view = self.e, self.e.b.value_of, self.view
        ty, threads = e.b.index_type, e.tile.threads
        self.base = e.matrix(view, places)
        units = -(-self.length * self.item // self.unit)
        per_unit = self.unit // self.item
        self.passes = max(threads // units, 1)  # lines in one pass
        self.across = -(-units // threads)  # passes for one line
        self.units = units
        thread = e.tid
        self.mine = ""
        if self.across == 1:
            if self.passes * units < threads:
                self.mine = op(f"icmp ult i32 {thread}, {self.passes * units}")
            self.first = op(f"udiv i32 {thread}, {units}") if self.passes > 1 else "0"
            place = op(f"urem i32 {thread}, {units}") if units < threads else thread
            if self.passes == 1 and self.mine:
                place = op(f"select i1 {self.mine}, i32 {thread}, i32 0")
        else:
            self.first, place = "0", thread
        self.column = op(f"mul i32 {place}, {per_unit}") if per_unit > 1 else place
        inside = op(f"mul i32 {place}, {self.unit}")
        row = op(f"mul i32 {self.first}, {self.line}")
        self.target = op(f"add i32 {op(f'add i32 {row}, {inside}')}, {self.start}")
        column = op(f"mul {ty} {e.b.widened(self.column)}, {view.column}")
        row = op(f"mul {ty} {e.b.widened(self.first)}, {view.row}")
        self.source = op(f"add {ty} {row}, {column}")

    def copy(self, first: str, stage: str, column: str = "0") -> None:
        """Begin to copy the rows from `first` on, and their columns from `column` on, to a stage."""
        e, op, ty = self.e, self.e.b.value_of, self.e.b.index_type
        start = op(f"add {ty} {op(f'mul {ty} {first}, {self.view.row}')}, {self.source}")
        if column != "0":
            more = op(f"mul {ty} {column}, {self.view.column}")
            start = op(f"add {ty} {start}, {more}")
        target = op(f"add i32 {self.target}, {stage}")
        row = op(f"add {ty} {first}, {e.b.widened(self.first)}")
        threads, per_unit = e.tile.threads, self.unit // self.item
        for c in range(self.across):
            mine = self.mine
            if (c + 1) * threads > self.units and self.across > 1:
                mine = op(f"icmp ult i32 {e.tid}, {self.units - c * threads}")
            inside = ""
            if column != "0" or (self.length > self.width):
                at = op(f"add {ty} {column}, {e.b.widened(self.column)}")
                at = op(f"add {ty} {at}, {c * threads * per_unit}")
                inside = op(f"icmp slt {ty} {at}, {self.width}")
            start_c = op(f"add {ty} {start}, {c * threads * per_unit * self.view.column}")
            target_c = op(f"add i32 {target}, {c * threads * self.unit}")
            self._copy_lines(row, start_c, target_c, mine, inside)

    def _copy_lines(self, row: str, start: str, target: str, mine: str, inside: str) -> None:
        """Units below each other: `row` is the first one's row, `start` its place in memory."""
        op, ty = self.e.b.value_of, self.e.b.index_type
        step = self.passes * WRITTEN_OUT
        if self.lines <= 2 * step:
            self._lines(range(0, self.lines, self.passes), "0", row, start, target, mine, inside)
            return

        def some(first: str, values: Values) -> Values:
            narrow = self.e.narrowed(first)
            below = op(f"add {ty} {start}, {op(f'mul {ty} {first}, {self.view.row}')}")
            place = op(f"add i32 {target}, {op(f'mul i32 {narrow}, {self.line}')}")
            at = op(f"add {ty} {row}, {first}")
            lines = range(0, step, self.passes)
            self._lines(lines, narrow, at, below, place, mine, inside)
            return []

        self.e.loops.loop("0", str(self.lines), step, [], some)

    def _lines(
        self, lines: range, first: str, row: str, start: str, target: str, mine: str, inside: str
    ) -> None:
        e, op, ty = self.e, self.e.b.value_of, self.e.b.index_type
        whole = self.lines % (lines.stop if first != "0" else self.passes) == 0
        for p in lines:
            here, there = mine, inside
            if not whole and self.passes > 1 and (first != "0" or p + self.passes > self.lines):
                line = op(f"add i32 {first}, {self.first}")
                here = e.both(here, op(f"icmp slt i32 {line}, {self.lines - p}"))
            if self.total % self.lines:
                below = op(f"icmp slt {ty} {op(f'add {ty} {row}, {p}')}, {self.total}")
                there = e.both(there, below)
            with e.b.when(here) if here else nullcontext():
                source = op(f"add {ty} {start}, {p * self.view.row}")
                self._move(source, op(f"add i32 {target}, {p * self.line}"), there)

    def _move(self, source: str, target: str, there: str) -> None:
        """One unit; zeros where `there` is false."""
        e, op, ty = self.e, self.e.b.value_of, self.e.b.index_type
        if there:
            source = op(f"select i1 {there}, {ty} {source}, {ty} 0")
        element = SCALAR_TYPES[self.view.array.dtype]
        pointer = op(f"getelementptr {element}, ptr {self.base}, {ty} {source}")
        place = e.shared_at(target)
        if self.asynchronous:
            kind = "cg" if self.unit == CHUNK else "ca"
            name = f"llvm.nvvm.cp.async.{kind}.shared.global.{self.unit}"
            operands = [bare(place), pointer]
            if there:
                operands.append(op(f"select i1 {there}, i32 {self.unit}, i32 0"))
            e.b.nvvm(f"{name}.s" if there else name, *operands)
            return
        word = f"i{8 * min(self.unit, 4)}"
        word = f"<{self.unit // 4} x i32>" if self.unit > 4 else word
        value = e.b.fresh_of(f"load {word}, ptr {GLOBAL}{pointer}, align {self.unit}")
        if there:
            zero = "zeroinitializer" if self.unit > 4 else "0"
            value = op(f"select i1 {there}, {word} {value}, {word} {zero}")
        e.b.lines.append(f"  store {word} {value}, ptr {place}, align {self.unit}")

    # In shared memory.

    def offset(self, line: str, chunk: str, size: int) -> str:
        """The byte of a stage at which a piece of `size` bytes of a line begins."""
        op = self.e.b.value_of
        text = op(f"mul i32 {line}, {self.line}") if line != "0" else "0"
        if chunk != "0":
            text = op(f"add i32 {text}, {op(f'mul i32 {chunk}, {size}')}")
        return text

    def at(self, stage: str, offset: str, lines: int, nbytes: int = 0) -> str:
        """The place `lines` lines and some bytes after an offset."""
        text = self.e.b.value_of(f"add i32 {offset}, {stage}")
        return self.e.shared_at(text, self.start + lines * self.line + nbytes)

    def load(self, place: str, count: int) -> list[str]:
        """`count` neighbours, as numbers of the sums' dtype."""
        e = self.e
        stored = {"f16": "half", "bf16": "bfloat", "f32": "float", "f64": "double"}[e.step.element]
        if self.item >= 4:
            stored = SCALAR_TYPES[self.view.array.dtype]
        ty = f"<{count} x {stored}>" if count > 1 else stored
        value = e.b.fresh_of(f"load {ty}, ptr {place}, align {math.gcd(count * self.item, CHUNK)}")
        if stored in ("half", "bfloat"):
            wide = f"<{count} x float>" if count > 1 else "float"
            value, ty = e.b.value_of(f"fpext {ty} {value} to {wide}"), wide
        if count == 1:
            return [value]
        return [e.b.value_of(f"extractelement {ty} {value}, i32 {k}") for k in range(count)]
