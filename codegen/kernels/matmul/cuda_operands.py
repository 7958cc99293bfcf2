"""Tiles of an operand of a product: how a block brings them to shared memory, and where elements are.

A tile lies in shared memory as its operand lies in memory: in *lines* of neighbours, along k or along
the rows. Lines are made of chunks of 16 bytes, whose positions in the line are exchanged from line to
line (chunk c of line i is at c ^ key(i)), so that threads that read down the lines meet all banks.

Threads share a tile by *units* of neighbours; each has a few of them, its parts, at the same positions
of every tile. What does not change from tile to tile is computed once, before the first.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from ...cuda.emitter import Word
from ...llvm.builder import Condition, Value, zeros
from ...llvm.instructions import SCALAR_TYPES, constant
from ...loop_ir.index import Index, Var, depends_on, variables
from ...loop_ir.kernel import indices_of
from .cuda_sources import Source, lie
from .cuda_tiles import CHUNK

if TYPE_CHECKING:
    from .cuda_emitter import ProductEmitter


BANKS = 128  # bytes that shared memory gives at a time
FEW = 12  # units of a thread up to which what is known of each before the first tile stays in registers


def _var(var: Var, times: int = 1) -> Index:
    """A position that is known in parts only: also one of a loop of length 1, whose tile is longer."""
    return Index(0, {var: times})


class OperandTile:
    """One operand. Its rows are a's rows or b's columns.

    `rows` rows of the operand, `size` of them in the tile; `threads` of a warp share its rows on
    ordinary arithmetic.
    """

    def __init__(
        self, e: ProductEmitter, source: Source, rows: int, size: int, threads: int
    ) -> None:
        self.e, self.source, self.rows, self.size, self.depth = e, source, rows, size, e.tile.depth
        self.item = source.dtype.itemsize
        self.element = SCALAR_TYPES[source.dtype]
        self.chunk = CHUNK // self.item  # elements
        ends = (e.step.k, e.product.total) if e.product.total else (e.step.k,)
        self.along_k, self.width = lie(source, ends, rows, e.alignments)
        self.lines, length = (size, self.depth) if self.along_k else (self.depth, size)
        self.per_line = length // self.chunk
        self.line_bytes = length * self.item
        lines, self.together = e.multiplier.reading(self, threads)
        self.keys = min(self.per_line, BANKS // CHUNK) // self.together if lines > 1 else 1
        self.spread = max(lines // self.keys, 1)
        self.start = 0  # where the tile begins in a stage: set by the emitter
        self.units = size * self.depth // self.width

    @property
    def nbytes(self) -> int:
        return self.size * self.depth * self.item

    @property
    def asynchronous(self) -> bool:
        """Whether a copy need not pass through registers."""
        return self.source.value is None and self.width * self.item in (4, 8, 16)

    # This thread's part of a tile.

    def stand(self, batch: Word, first: Word) -> None:
        """Find this thread's part of the copies; `first`: the tile's first row."""
        e, threads = self.e, self.e.tile.threads
        per_line = self.line_bytes // self.item // self.width
        line = e.b.thread() // per_line if per_line < threads else 0
        unit = e.b.thread() % per_line if per_line < threads else e.b.thread()
        along = unit * self.width
        self.k: Word
        row, self.k = (line, along) if self.along_k else (along, line)
        at_row = first + e.b.widened(row)
        chunk = along // self.chunk
        within = along % self.chunk * self.item
        s = self.source
        e.indices.positions[s.batch] = batch
        self.step = Var("step", s.k.extent)  # which column the tile begins with
        self.lane = Var("lane", self.width)
        self.parts: list[_Part] = []
        for c in range(-(-self.units // threads)):
            lines, ahead = divmod(c * threads, per_line)
            ahead *= self.width
            rows, ks = (lines, ahead) if self.along_k else (ahead, lines)
            mine: Condition | None = None
            if (c + 1) * threads > self.units:
                mine = e.b.thread().ult(self.units - c * threads)
            inside = mine
            if self.rows % self.size:
                inside = e.b.both(inside, at_row + rows < self.rows)
            shared = self._in_stage(line, lines, chunk, ahead // self.chunk, within)
            at = self._positions(at_row, rows, ks, mine, first)
            self.parts.append(self._part(_Part(mine, inside, ks, shared, at)))

    def _positions(
        self, at_row: Word, rows: int, ks: int, mine: Condition | None, first: Word
    ) -> dict[Var, Index]:
        """A part's row and position in the sum: `step` is that of the tile, `lane` runs over units.

        Both are counted in units along lines, so that neighbours are known to be neighbours. Where a
        part is not `mine`, but read all the same, it is one at the beginning of the tile.
        """
        s, e, w = self.source, self.e, self.width
        row, k = Var("row", s.row.extent), Var("k", s.k.extent)
        column = e.b.widened(self.k)
        if s.value is not None and mine is not None:
            if self.along_k:
                own = self._plus(at_row, rows)
                at_row, rows = e.b.select(mine, own, first), 0
            else:
                column = e.b.select(mine, column, 0)
        if s.value is not None and self.rows % self.size:  # nothing is read beyond the last row
            last = self.rows - (1 if self.along_k else w)
            at_row = e.indices.least(self._plus(at_row, rows), last)
            rows = 0
        lane = _var(self.lane)
        if self.along_k:
            e.indices.positions[row], e.indices.positions[k] = at_row, self._units(column)
            return {s.row: _var(row) + rows, s.k: _var(self.step, w) + _var(k, w) + (lane + ks)}
        e.indices.positions[row], e.indices.positions[k] = self._units(at_row), column
        return {s.row: _var(row, w) + (lane + rows), s.k: _var(self.step) + (_var(k) + ks)}

    def _units(self, at: Word) -> Word:
        """A multiple of the width, counted in units."""
        if self.width == 1:
            return at
        return at >> self.width.bit_length() - 1

    def _plus(self, at: Word, count: int) -> Word:
        return at + count if count else at

    def _part(self, part: _Part) -> _Part:
        """A part with all that can be said of it before the first tile."""
        s, e = self.source, self.e
        if s.value is not None:
            return part
        assert s.array is not None
        first = {self.lane: Index()}
        at = {var: index.substitute(first) for var, index in part.at.items()}
        part = part._replace(at=at)
        flat = s.flat.substitute(at)
        few = self.units <= FEW * self.e.tile.threads
        early = few or flat.affine  # else registers would run out
        moving = {a: c for a, c in flat.terms.items() if not early or depends_on(a, self.step)}
        fixed = {a: c for a, c in flat.terms.items() if a not in moving}
        home = e.b.pointers[s.array]
        part = part._replace(
            source=e.b.element_at(s.dtype, home, e.indices.value(Index(0, fixed)))
            if fixed
            else home,
            moving=Index(0, moving),
            offset=flat.const,
        )
        if s.guard is None:
            return part
        e.indices.env.update(at)
        inner = [index.substitute(at) for index in indices_of(s.guard)]
        if not early or any(map(self._moves, inner)):
            for index in inner if early else ():
                self._text_of_fixed(index)
            return part._replace(guarded=True)
        e.exprs.forget()
        return part._replace(inside=e.b.both(part.inside, e.exprs.operand(s.guard).value))

    def _text_of_fixed(self, index: Index) -> None:
        """Compute before the first tile what does not change in a sum."""
        for atom, coeff in index.terms.items():
            if not depends_on(atom, self.step):
                self.e.indices.value(Index(0, {atom: coeff}))

    def _moves(self, index: Index) -> bool:
        """Whether a position changes from tile to tile."""
        return self.step in variables(index)

    # From memory to shared memory.

    def _stand_at(self, k0: Word) -> None:
        self.e.indices.positions[self.step] = self._units(k0) if self.along_k else k0

    def _within(self, part: _Part, k0: Word) -> Condition | None:
        """Whether a part's columns are before the end of the sum (None: surely)."""
        e = self.e
        if not e.uneven:
            return None
        return e.indices.as_index(k0) + (e.b.widened(self.k) + part.k) < e.end

    def _source(self, part: _Part, k0: Word) -> tuple[Value, Condition | None]:
        """Where a part of the columns from k0 on begins, and whether it is inside (None: surely)."""
        e, s = self.e, self.source
        assert s.array is not None
        self._stand_at(k0)
        here = e.b.both(part.inside, self._within(part, k0))
        if part.guarded:
            assert s.guard is not None
            e.indices.env.update(part.at)
            e.exprs.forget()
            here = e.b.both(here, e.exprs.operand(s.guard).value)
        source = part.source
        assert source is not None, "`_part` has found it"
        if part.moving.terms:
            source = e.b.element_at(s.dtype, source, e.indices.value(part.moving))
        if part.offset:
            source = e.b.element_at(s.dtype, source, part.offset)
        if here is not None:
            source = e.b.select(here, source, e.b.pointers[s.array])
        return source, here

    def copy(self, k0: Word, stage: Word) -> None:
        """Start to copy the columns from k0 on to a stage of shared memory."""
        e, nbytes = self.e, self.width * self.item
        kind = "cg" if nbytes == CHUNK else "ca"
        name = f"llvm.nvvm.cp.async.{kind}.shared.global.{nbytes}"
        for part in self.parts:
            source, here = self._source(part, k0)
            target = self._address(part.shared, stage)
            operands = [target, source]
            if here is not None:
                operands.append(e.b.select(here, e.b.literal("i32", nbytes), 0))
            with e.b.where(part.mine):
                e.b.nvvm(f"{name}.s" if here is not None else name, *operands)

    def fetch(self, k0: Word) -> list[Value]:
        """This thread's elements of the columns from k0 on, in registers; zeros beyond the ends."""
        e = self.e
        values = []
        for part in self.parts:
            if self.source.value is not None:
                value, here = self._computed(part, k0), self._within(part, k0)
            else:
                source, here = self._source(part, k0)
                value = e.b.load(self.unit, source, align=self.width * self.item)
            if here is not None:
                value = self.e.b.select(here, value, self.zero)
            values.append(value)
        return values

    def _computed(self, part: _Part, k0: Word) -> Value:
        """A unit of what is computed; beyond the end of the sum its last one."""
        e, s = self.e, self.source
        assert s.value is not None
        self._stand_at(k0)
        at = dict(part.at)
        if e.uneven:
            unit = self.width if self.along_k else 1
            first = at[s.k].substitute({self.lane: Index()})
            count = e.end - unit
            text = e.indices.least(e.indices.value(first), count)
            k = Var("k", s.k.extent)
            e.indices.positions[k] = self._units(text) if self.along_k else text
            at[s.k] = _var(k, unit) + (_var(self.lane) if self.along_k else 0)
        e.indices.env.update(at)
        texts = e.memory.at_lanes(self.lane, self.width, s.value)
        if self.width == 1:
            return texts[0]
        return e.b.packed(texts)

    @property
    def unit(self) -> str:
        """The LLVM type of what is copied together."""
        return self.element if self.width == 1 else f"<{self.width} x {self.element}>"

    @property
    def zero(self) -> Value:
        return constant(0, self.source.dtype, 1) if self.width == 1 else zeros(self.unit)

    def put(self, values: list[Value], stage: Word) -> None:
        """Store what `fetch` has found in a stage of shared memory."""
        e = self.e
        for part, value in zip(self.parts, values, strict=True):
            address = self._address(part.shared, stage)
            with e.b.where(part.mine):
                e.b.store(value, address, align=self.width * self.item)

    # In shared memory. Rows, columns and chunks are the sum of a text and a number; numbers have no
    # bit in common with what the texts of chunks may be.

    def _key(self, line: Word) -> Word:
        """Lines that are read at a time have different keys, or lie in different banks."""
        if self.keys < 2:
            return 0
        text = line // self.spread if self.spread > 1 else line
        text = text % self.keys
        return text * self.together if self.together > 1 else text

    def _in_stage(self, line: Word, lines: int, chunk: Word, chunks: int, within: Word) -> Word:
        """The byte at which something begins: in line + lines, chunk + chunks of it."""
        period = self.keys * self.spread
        whole = line + lines if lines % period else line
        chunk = chunk ^ self._key(whole)
        if chunks:
            chunk = chunk ^ chunks
        at = line * self.line_bytes + within
        at = at + chunk * CHUNK
        return at + (self.start + lines * self.line_bytes)

    def _address(self, at: Word, stage: Word) -> Value:
        e = self.e
        whole = at + stage
        return e.b.offset(e.buffer, whole)

    def chunk_at(self, stage: Word, line: Word, lines: int, chunk: Word, chunks: int) -> Value:
        """The address of a whole chunk."""
        return self._address(self._in_stage(line, lines, chunk, chunks, 0), stage)

    def element_at(self, stage: Word, row: Word, rows: int, k: Word, ks: int) -> Value:
        """The address of the element in row + rows and column k + ks; the numbers are whole chunks."""
        line, lines, along, whole = (row, rows, k, ks) if self.along_k else (k, ks, row, rows)
        assert whole % self.chunk == 0, "numbers along a line are multiples of a chunk"
        chunk = along >> self.chunk.bit_length() - 1
        within = (along & self.chunk - 1) * self.item
        return self._address(self._in_stage(line, lines, chunk, whole // self.chunk, within), stage)

    def load(self, address: Value, count: int) -> list[Value]:
        """`count` neighbours."""
        e = self.e
        ty = f"<{count} x {self.element}>" if count > 1 else self.element
        align = math.gcd(count * self.item, CHUNK)
        value = e.b.load(ty, address, align=align)
        if count == 1:
            return [value]
        return [e.b.extract(value, j) for j in range(count)]


class _Part(NamedTuple):
    """A unit of a thread: whether the thread has it at all (None: surely), whether its row is inside the
    operand, its column as seen from the thread's first, its offset in a stage, and its row and column.

    Of copies also: the part of their offset in memory that stays as it is, the part that moves from tile
    to tile, and a number; whether a guard must be asked each time.
    """

    mine: Condition | None
    inside: Condition | None
    k: int
    shared: Word
    at: dict[Var, Index]
    source: Value | None = None
    moving: Index = Index()
    offset: int = 0
    guarded: bool = False
