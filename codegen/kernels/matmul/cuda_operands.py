"""Tiles of an operand of a product: how a block brings them to shared memory, and where elements are.

A tile lies in shared memory as its operand lies in memory: in *lines* of neighbours, along k or along
the rows. Lines are made of chunks of 16 bytes, whose places in the line are exchanged from line to line
(chunk c of line i is at c ^ key(i)), so that threads that read down the lines meet all banks.

Threads share a tile by *units* of neighbours; each has a few of them, its parts, in the same places of
every tile. What does not change from tile to tile is computed once, before the first.
"""

from __future__ import annotations

import math
from contextlib import nullcontext
from typing import TYPE_CHECKING, NamedTuple

from ...cuda.emitter import GLOBAL, SHARED
from ...llvm.instructions import SCALAR_TYPES, constant
from ...loop_ir.index import Index, Var, variables
from ...schedule.survey import indices_of
from .cuda_sources import Source, lie
from .cuda_tiles import CHUNK

if TYPE_CHECKING:
    from .cuda_emitter import ProductEmitter


def _name(pointer: str) -> str:
    """A pointer without its address space."""
    return pointer.rsplit(" ", 1)[-1]


BANKS = 128  # bytes that shared memory gives at a time
FEW = 12  # units of a thread up to which what is known of each before the first tile stays in registers


def _var(var: Var, times: int = 1) -> Index:
    """A position that is known in parts only: also one of a loop of one trip, whose tile is longer."""
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

    def stand(self, batch: str, first: str) -> None:
        """Find this thread's part of the copies; `first`: the tile's first row."""
        e, op, ty, threads = self.e, self.e.b.value_of, self.e.b.index_type, self.e.tile.threads
        per_line = self.line_bytes // self.item // self.width
        line = op(f"udiv i32 {e.b.thread()}, {per_line}") if per_line < threads else "0"
        unit = op(f"urem i32 {e.b.thread()}, {per_line}") if per_line < threads else e.b.thread()
        along = op(f"mul i32 {unit}, {self.width}")
        self.k: str
        row, self.k = (line, along) if self.along_k else (along, line)
        at_row = op(f"add {ty} {first}, {e.b.widened(row)}")
        chunk = op(f"udiv i32 {along}, {self.chunk}")
        within = op(f"mul i32 {op(f'urem i32 {along}, {self.chunk}')}, {self.item}")
        s = self.source
        e.indices.positions[s.batch] = batch
        self.step = Var("step", s.k.extent)  # which column the tile begins with
        self.lane = Var("lane", self.width)
        self.parts: list[_Part] = []
        for c in range(-(-self.units // threads)):
            lines, ahead = divmod(c * threads, per_line)
            ahead *= self.width
            rows, ks = (lines, ahead) if self.along_k else (ahead, lines)
            mine = inside = ""
            if (c + 1) * threads > self.units:
                mine = inside = op(f"icmp ult i32 {e.b.thread()}, {self.units - c * threads}")
            if self.rows % self.size:
                there = op(f"add {ty} {at_row}, {rows}")
                inside = self._both(inside, op(f"icmp slt {ty} {there}, {self.rows}"))
            shared = self._in_stage(line, lines, chunk, ahead // self.chunk, within)
            at = self._positions(at_row, rows, ks, mine, first)
            self.parts.append(self._part(_Part(mine, inside, ks, shared, at)))

    def _positions(
        self, at_row: str, rows: int, ks: int, mine: str, first: str
    ) -> dict[Var, Index]:
        """A part's row and place in the sum: `step` is known when the tile is, `lane` runs over units.

        Both are counted in units along lines, so that neighbours are known to be neighbours. Where a
        part is not `mine`, but read all the same, it is one at the beginning of the tile.
        """
        s, e, w = self.source, self.e, self.width
        row, k = Var("row", s.row.extent), Var("k", s.k.extent)
        column = e.b.widened(self.k)
        if s.value is not None and mine:
            ty = e.b.index_type
            if self.along_k:
                own = self._plus(at_row, rows)
                at_row, rows = e.b.value_of(f"select i1 {mine}, {ty} {own}, {ty} {first}"), 0
            else:
                column = e.b.value_of(f"select i1 {mine}, {ty} {column}, {ty} 0")
        if s.value is not None and self.rows % self.size:  # nothing is read beyond the last row
            last = self.rows - (1 if self.along_k else w)
            at_row = e.indices.least(self._plus(at_row, rows), str(last))
            rows = 0
        lane = _var(self.lane)
        if self.along_k:
            e.indices.positions[row], e.indices.positions[k] = at_row, self._units(column)
            return {s.row: _var(row) + rows, s.k: _var(self.step, w) + _var(k, w) + (lane + ks)}
        e.indices.positions[row], e.indices.positions[k] = self._units(at_row), column
        return {s.row: _var(row, w) + (lane + rows), s.k: _var(self.step) + (_var(k) + ks)}

    def _units(self, at: str) -> str:
        """A multiple of the width, counted in units."""
        if self.width == 1:
            return at
        if at[0] != "%":
            return str(int(at) // self.width)
        return self.e.b.value_of(f"lshr {self.e.b.index_type} {at}, {self.width.bit_length() - 1}")

    def _plus(self, at: str, count: int) -> str:
        return self.e.b.value_of(f"add {self.e.b.index_type} {at}, {count}") if count else at

    def _both(self, first: str, second: str) -> str:
        return self.e.b.value_of(f"and i1 {first}, {second}") if first else second

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
        early = few or all(isinstance(a, Var) for a in flat.terms)  # else registers would run out
        moving = {a: c for a, c in flat.terms.items() if not early or self._moves(Index(0, {a: 1}))}
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
        return part._replace(inside=self._both(part.inside, e.exprs.operand(s.guard).text))

    def _text_of_fixed(self, index: Index) -> None:
        """Compute before the first tile what does not change in a sum."""
        for atom, coeff in index.terms.items():
            if not self._moves(Index(0, {atom: 1})):
                self.e.indices.value(Index(0, {atom: coeff}))

    def _moves(self, index: Index) -> bool:
        """Whether a position changes from tile to tile."""
        return self.step in variables(index)

    # From memory to shared memory.

    def _stand_at(self, k0: str) -> None:
        self.e.indices.positions[self.step] = self._units(k0) if self.along_k else k0

    def _within(self, part: _Part, k0: str) -> str:
        """Whether a part's columns are before the end of the sum ("": surely)."""
        e, op, ty = self.e, self.e.b.value_of, self.e.b.index_type
        if not e.uneven:
            return ""
        k = op(f"add {ty} {k0}, {op(f'add {ty} {e.b.widened(self.k)}, {part.k}')}")
        return op(f"icmp slt {ty} {k}, {e.end}")

    def _source(self, part: _Part, k0: str) -> tuple[str, str]:
        """Where a part of the columns from k0 on begins, and whether it is inside ("": surely)."""
        e, op, s = self.e, self.e.b.value_of, self.source
        assert s.array is not None
        self._stand_at(k0)
        here = part.inside
        within = self._within(part, k0)
        if within:
            here = self._both(here, within)
        if part.guarded:
            assert s.guard is not None
            e.indices.env.update(part.at)
            e.exprs.forget()
            here = self._both(here, e.exprs.operand(s.guard).text)
        source = part.source
        if part.moving.terms:
            source = e.b.element_at(s.dtype, source, e.indices.value(part.moving))
        if part.offset:
            source = e.b.element_at(s.dtype, source, str(part.offset))
        if here:
            home = _name(e.b.pointers[s.array])
            source = f"select i1 {here}, ptr {GLOBAL}{_name(source)}, ptr {GLOBAL}{home}"
            source = f"{GLOBAL}{op(source)}"
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
                operands.append(e.b.value_of(f"select i1 {here}, i32 {nbytes}, i32 0"))
            with e.b.when(part.mine) if part.mine else nullcontext():
                e.b.nvvm(f"{name}.s" if here else name, *operands)

    def fetch(self, k0: str) -> list[str]:
        """This thread's elements of the columns from k0 on, in registers; zeros beyond the ends."""
        e, op = self.e, self.e.b.value_of
        found = []
        for part in self.parts:
            if self.source.value is not None:
                value, here = self._computed(part, k0), self._within(part, k0)
            else:
                source, here = self._source(part, k0)
                value = e.b.fresh_of(
                    f"load {self.unit}, ptr {source}, align {self.width * self.item}"
                )
            if here:
                value = op(f"select i1 {here}, {self.unit} {value}, {self.unit} {self.zero}")
            found.append(value)
        return found

    def _computed(self, part: _Part, k0: str) -> str:
        """A unit of what is computed; beyond the end of the sum its last one."""
        e, op, ty, s = self.e, self.e.b.value_of, self.e.b.index_type, self.source
        assert s.value is not None
        self._stand_at(k0)
        at = dict(part.at)
        if e.uneven:
            unit = self.width if self.along_k else 1
            place = at[s.k].substitute({self.lane: Index()})
            count = op(f"sub {ty} {e.end}, {unit}")
            text = e.indices.least(e.indices.value(place), count)
            k = Var("k", s.k.extent)
            e.indices.positions[k] = self._units(text) if self.along_k else text
            at[s.k] = _var(k, unit) + (_var(self.lane) if self.along_k else 0)
        e.indices.env.update(at)
        texts = e.memory.at_lanes(self.lane, self.width, s.value)
        if self.width == 1:
            return texts[0]
        vector = "poison"
        for j, one in enumerate(texts):
            vector = op(f"insertelement {self.unit} {vector}, {self.element} {one}, i32 {j}")
        return vector

    @property
    def unit(self) -> str:
        """The LLVM type of what is copied together."""
        return self.element if self.width == 1 else f"<{self.width} x {self.element}>"

    @property
    def zero(self) -> str:
        return constant(0, self.source.dtype, 1) if self.width == 1 else "zeroinitializer"

    def put(self, values: list[str], stage: str) -> None:
        """Store what `fetch` has found in a stage of shared memory."""
        e = self.e
        for part, value in zip(self.parts, values, strict=True):
            place = self._place(part.shared, stage)
            text = f"  store {self.unit} {value}, ptr {place}, align {self.width * self.item}"
            with e.b.when(part.mine) if part.mine else nullcontext():
                e.b.lines.append(text)

    # In shared memory. Rows, columns and chunks are the sum of a text and a number; numbers have no
    # bit in common with what the texts of chunks may be.

    def _key(self, line: str) -> str:
        """Lines that are read at a time have different keys, or lie in different banks."""
        op = self.e.b.value_of
        if self.keys < 2:
            return "0"
        text = op(f"udiv i32 {line}, {self.spread}") if self.spread > 1 else line
        text = op(f"urem i32 {text}, {self.keys}")
        return op(f"mul i32 {text}, {self.together}") if self.together > 1 else text

    def _in_stage(self, line: str, lines: int, chunk: str, chunks: int, within: str) -> str:
        """The byte at which something begins: in line + lines, chunk + chunks of it."""
        op = self.e.b.value_of
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
        whole = e.b.value_of(f"add i32 {at}, {stage}")
        place = e.b.value_of(f"getelementptr i8, ptr {e.buffer}, i32 {whole}")
        return f"{SHARED}{place}"

    def chunk_at(self, stage: str, line: str, lines: int, chunk: str, chunks: int) -> str:
        """The place of a whole chunk."""
        return self._place(self._in_stage(line, lines, chunk, chunks, "0"), stage)

    def element_at(self, stage: str, row: str, rows: int, k: str, ks: int) -> str:
        """The place of the element in row + rows and column k + ks; the numbers are whole chunks."""
        op = self.e.b.value_of
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
        value = e.b.fresh_of(f"load {ty}, ptr {place}, align {align}")
        if count == 1:
            return [value]
        return [e.b.value_of(f"extractelement {ty} {value}, i32 {j}") for j in range(count)]


class _Part(NamedTuple):
    """A unit of a thread: whether the thread has it at all ("": surely), whether its row is inside the
    operand, its column as seen from the thread's first, its place in a stage, and its row and column.

    Of copies also: the part of their place in memory that stays as it is, the part that moves from tile
    to tile, and a number; whether a guard must be asked each time.
    """

    mine: str
    inside: str
    k: int
    shared: str
    at: dict[Var, Index]
    source: str = ""
    moving: Index = Index()
    offset: int = 0
    guarded: bool = False
