"""Tiles of an operand of a product: how a block brings them to shared memory, and where elements are.

A tile lies in shared memory as its operand lies in memory: in *lines* of neighbours, along k or along
the rows. Lines are made of chunks of 16 bytes, whose places in the line are exchanged from line to line
(chunk c of line i is at c ^ key(i)), so that threads that read down the lines meet all banks.
"""

from __future__ import annotations

import math
from contextlib import nullcontext
from typing import TYPE_CHECKING, NamedTuple

from ..kernel import Array
from ..llvm.instructions import SCALAR_TYPES, constant
from .emitter import GLOBAL, SHARED
from .tiles import CHUNK

if TYPE_CHECKING:
    from .product_emitter import ProductEmitter


def _name(pointer: str) -> str:
    """A pointer without its address space."""
    return pointer.rsplit(" ", 1)[1]


BANKS = 128  # bytes that shared memory gives at a time


class OperandTile:
    """One operand. Its rows are a's rows or b's columns; `strides` are those of batch, row and k.

    `rows` rows of the operand, `size` of them in the tile; `threads` of a warp share its rows on
    ordinary arithmetic.
    """

    def __init__(
        self,
        e: ProductEmitter,
        array: Array,
        offset: int,
        strides: tuple[int, int, int],
        rows: int,
        size: int,
        threads: int,
    ) -> None:
        self.e, self.array, self.offset, self.strides = e, array, offset, strides
        self.rows, self.size, self.depth = rows, size, e.tile.depth
        self.item = array.dtype.itemsize
        self.element = SCALAR_TYPES[array.dtype]
        self.chunk = CHUNK // self.item  # elements
        batch, by_row, by_k = strides
        self.along_k = by_k == 1 or (by_row != 1 and abs(by_k) <= abs(by_row))
        self.lines, length = (size, self.depth) if self.along_k else (self.depth, size)
        self.per_line = length // self.chunk
        self.line_bytes = length * self.item
        lines, self.together = e.reading(self, threads)
        self.keys = min(self.per_line, BANKS // CHUNK) // self.together if lines > 1 else 1
        self.spread = max(lines // self.keys, 1)
        self.start = 0  # where the tile begins in a stage: set by the emitter
        whole, along = (e.step.k, by_k) if self.along_k else (rows, by_row)
        ends = [whole, e.product.total] if self.along_k else [whole]
        others = [by_row if self.along_k else by_k, batch if e.step.batch > 1 else 0, offset, *ends]
        aligned = e.alignments[array] % CHUNK == 0 and not any(n % self.chunk for n in others)
        self.width = self.chunk if along == 1 and aligned else 1  # elements copied together
        self.units = size * self.depth // self.width

    @property
    def nbytes(self) -> int:
        return self.size * self.depth * self.item

    @property
    def asynchronous(self) -> bool:
        """Whether a copy need not pass through registers."""
        return self.width * self.item in (4, 8, 16)

    # From memory to shared memory.

    def stand(self, batch: str, first: str) -> None:
        """Find this thread's part of the copies; `first`: the tile's first row."""
        e, op, ty, threads = self.e, self.e.value_of, self.e.index_type, self.e.tile.threads
        _, by_row, by_k = self.strides
        per_line = self.line_bytes // self.item // self.width
        line = op(f"udiv i32 {e.thread()}, {per_line}") if per_line < threads else "0"
        x = op(f"urem i32 {e.thread()}, {per_line}") if per_line < threads else e.thread()
        along = op(f"mul i32 {x}, {self.width}")
        row, self.k = (line, along) if self.along_k else (along, line)
        at_row = op(f"add {ty} {first}, {e.widened(row)}")
        base = op(f"add {ty} {op(f'mul {ty} {batch}, {self.strides[0]}')}, {self.offset}")
        base = op(f"add {ty} {base}, {op(f'mul {ty} {at_row}, {by_row}')}")
        base = op(f"add {ty} {base}, {op(f'mul {ty} {e.widened(self.k)}, {by_k}')}")
        self.source = e._address(self.array.dtype, e.pointers[self.array], base)
        chunk = op(f"udiv i32 {along}, {self.chunk}")
        within = op(f"mul i32 {op(f'urem i32 {along}, {self.chunk}')}, {self.item}")
        self.parts: list[_Part] = []
        for c in range(-(-self.units // threads)):
            lines, ahead = divmod(c * threads, per_line)
            ahead *= self.width
            rows, ks = (lines, ahead) if self.along_k else (ahead, lines)
            mine = inside = ""
            if (c + 1) * threads > self.units:
                mine = inside = op(f"icmp ult i32 {e.thread()}, {self.units - c * threads}")
            if self.rows % self.size:
                there = op(f"add {ty} {at_row}, {rows}")
                inside = self._both(inside, op(f"icmp slt {ty} {there}, {self.rows}"))
            shared = self._in_stage(line, lines, chunk, ahead // self.chunk, within)
            self.parts.append(_Part(mine, inside, ks, rows * by_row + ks * by_k, shared))

    def _both(self, first: str, second: str) -> str:
        return self.e.value_of(f"and i1 {first}, {second}") if first else second

    def _source(self, part: _Part, k0: str) -> tuple[str, str]:
        """Where a part of the columns from k0 on begins, and whether it is inside ("": surely)."""
        e, op, ty = self.e, self.e.value_of, self.e.index_type
        here = part.inside
        if e.uneven:
            k = op(f"add {ty} {k0}, {op(f'add {ty} {e.widened(self.k)}, {part.k}')}")
            here = self._both(here, op(f"icmp slt {ty} {k}, {e.end}"))
        step = op(f"mul {ty} {k0}, {self.strides[2]}")
        source = e._address(self.array.dtype, self.source, step)
        if part.offset:
            source = e._address(self.array.dtype, source, str(part.offset))
        if here:
            home = _name(e.pointers[self.array])
            source = f"select i1 {here}, ptr {GLOBAL}{_name(source)}, ptr {GLOBAL}{home}"
            source = GLOBAL + op(source)
        return source, here

    def copy(self, k0: str, stage: str) -> None:
        """Start to copy the columns from k0 on to a stage of shared memory."""
        e, nbytes = self.e, self.width * self.item
        kind = "cg" if nbytes == CHUNK else "ca"
        name = f"llvm.nvvm.cp.async.{kind}.shared.global.{nbytes}"
        for part in self.parts:
            source, here = self._source(part, k0)
            target = self._place(part.shared, stage)
            operands = [_name(target), _name(source)]
            if here:
                operands.append(e.value_of(f"select i1 {here}, i32 {nbytes}, i32 0"))
            with e.only_if(part.mine) if part.mine else nullcontext():
                e.intrinsic(f"{name}.s" if here else name, *operands)

    def fetch(self, k0: str) -> list[str]:
        """This thread's elements of the columns from k0 on, in registers; zeros beyond the ends."""
        e, op = self.e, self.e.value_of
        found = []
        for part in self.parts:
            source, here = self._source(part, k0)
            value = e.fresh(f"load {self.unit}, ptr {source}, align {self.width * self.item}")
            if here:
                value = op(f"select i1 {here}, {self.unit} {value}, {self.unit} {self.zero}")
            found.append(value)
        return found

    @property
    def unit(self) -> str:
        """The LLVM type of what is copied together."""
        return self.element if self.width == 1 else f"<{self.width} x {self.element}>"

    @property
    def zero(self) -> str:
        return constant(0, self.array.dtype, 1) if self.width == 1 else "zeroinitializer"

    def put(self, values: list[str], stage: str) -> None:
        """Store what `fetch` has found in a stage of shared memory."""
        e = self.e
        for part, value in zip(self.parts, values, strict=True):
            place = self._place(part.shared, stage)
            text = f"  store {self.unit} {value}, ptr {place}, align {self.width * self.item}"
            with e.only_if(part.mine) if part.mine else nullcontext():
                e.lines.append(text)

    # In shared memory. Rows, columns and chunks are the sum of a text and a number; numbers have no
    # bit in common with what the texts of chunks may be.

    def _key(self, line: str) -> str:
        """Lines that are read at a time have different keys, or lie in different banks."""
        op = self.e.value_of
        if self.keys < 2:
            return "0"
        text = op(f"udiv i32 {line}, {self.spread}") if self.spread > 1 else line
        text = op(f"urem i32 {text}, {self.keys}")
        return op(f"mul i32 {text}, {self.together}") if self.together > 1 else text

    def _in_stage(self, line: str, lines: int, chunk: str, chunks: int, within: str) -> str:
        """The byte at which something begins: in line + lines, chunk + chunks of it."""
        op = self.e.value_of
        period = self.keys * self.spread
        whole = op(f"add i32 {line}, {lines}") if lines % period else line
        chunk = op(f"xor i32 {chunk}, {self._key(whole)}")
        if chunks:
            chunk = op(f"xor i32 {chunk}, {chunks}")
        at = op(f"add i32 {op(f'mul i32 {line}, {self.line_bytes}')}, {within}")
        at = op(f"add i32 {at}, {op(f'mul i32 {chunk}, {CHUNK}')}")
        return op(f"add i32 {at}, {self.start + lines * self.line_bytes}")

    def _place(self, at: str, stage: str) -> str:
        e = self.e
        whole = e.value_of(f"add i32 {at}, {stage}")
        return SHARED + e.value_of(f"getelementptr i8, ptr {e.memory}, i32 {whole}")

    def chunk_at(self, stage: str, line: str, lines: int, chunk: str, chunks: int) -> str:
        """The place of a whole chunk."""
        return self._place(self._in_stage(line, lines, chunk, chunks, "0"), stage)

    def element_at(self, stage: str, row: str, rows: int, k: str, ks: int) -> str:
        """The place of the element in row + rows and column k + ks; the numbers are whole chunks."""
        op = self.e.value_of
        line, lines, along, whole = (row, rows, k, ks) if self.along_k else (k, ks, row, rows)
        assert whole % self.chunk == 0, "numbers along a line are multiples of a chunk"
        chunk = op(f"lshr i32 {along}, {self.chunk.bit_length() - 1}")
        within = op(f"mul i32 {op(f'and i32 {along}, {self.chunk - 1}')}, {self.item}")
        return self._place(self._in_stage(line, lines, chunk, whole // self.chunk, within), stage)

    def load(self, place: str, count: int) -> list[str]:
        """`count` neighbours."""
        e = self.e
        ty = f"<{count} x {self.element}>" if count > 1 else self.element
        align = math.gcd(count * self.item, CHUNK)
        value = e.fresh(f"load {ty}, ptr {place}, align {align}")
        if count == 1:
            return [value]
        return [e.value_of(f"extractelement {ty} {value}, i32 {j}") for j in range(count)]


class _Part(NamedTuple):
    """A copy of a thread: whether it does it at all ("": surely), whether its row is inside the operand,
    its column and its place in memory as seen from the thread's first copy, its place in a stage."""

    mine: str
    inside: str
    k: int
    offset: int
    shared: str
