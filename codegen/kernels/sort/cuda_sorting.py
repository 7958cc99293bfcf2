"""Sorting rows of encoded elements (`lower_sorting`): a stable merge sort whose merges are cut evenly.

    tiles:   a block sorts what its threads hold: ITEMS of each in registers, then runs that are merged
             in shared memory, twice as long each time. Several short rows fit one block.
    merge:   a launch for each further doubling: a block merges a tile's worth of two runs

Who merges what follows from the *merge path*: the first d elements of the result are the first i of one
run and the first d - i of the other, and i is found by bisection. So every thread makes the same number
of elements, however the values are spread (O. Green, R. McColl, D. Bader, GPU merge path, 2012).
"""

from __future__ import annotations

from collections.abc import Callable, MutableMapping, Sequence
from typing import NamedTuple

from ...cuda.emitter import Word, fits_32_bits
from ...cuda.target import CudaTarget
from ...llvm.builder import Condition, Value
from ...llvm.loops import Values
from ...llvm.text import Operand
from ...loop_ir.kernel import Array
from ...loop_ir.steps import Sort
from .cuda_elements import Element, ElementEmitter

ITEMS = 4  # elements of a thread
THREADS = 256  # of a block, at the most

Reader = Callable[[Value], Element]


class SortPlan(NamedTuple):
    """`rows` of `n` elements; a block of `threads` sorts segments of `width` elements each."""

    rows: int
    n: int
    threads: int
    width: int
    index_type: str

    @property
    def tile(self) -> int:
        return self.threads * ITEMS

    @property
    def parts(self) -> int:
        """How many tiles a row is cut into."""
        return -(-self.n // self.tile)

    @property
    def blocks(self) -> int:
        return -(-self.rows // (self.tile // self.width)) if self.parts == 1 else self.merge_blocks

    @property
    def merge_blocks(self) -> int:
        return self.rows * self.parts

    @property
    def merges(self) -> list[int]:
        """The lengths of the runs that go into each merge."""
        return [self.tile << k for k in range((self.parts - 1).bit_length())]


def sort_plan(step: Sort) -> SortPlan:
    """How the rows of a sort are cut into tiles and blocks, by shape alone."""
    n = step.keys.shape[step.axis]
    rows = step.keys.size // (n * (2 if step.kind == "pairs" else 1))
    width = min(max(1 << (n - 1).bit_length(), ITEMS), THREADS * ITEMS)
    threads = min(max(width // ITEMS * rows, CudaTarget.WARP), THREADS)
    threads = 1 << (threads - 1).bit_length()
    small = fits_32_bits([2 * step.keys.size + 4 * THREADS * ITEMS])
    return SortPlan(rows, n, threads, width, "i32" if small else "i64")


class SortEmitter(ElementEmitter):
    """Emits the kernel that sorts tiles, or one that merges; from `source` to `result`."""

    def __init__(
        self,
        step: Sort,
        plan: SortPlan,
        source: Array,
        result: Array,
        target: CudaTarget,
        definitions: MutableMapping[str, str],
    ) -> None:
        super().__init__(step, plan.index_type, source, result, target, definitions)
        self.layout = plan
        self.memory = [self.b.shared(self.dtype, plan.tile) for _ in range(self.parts)]

    def tiles(self) -> None:
        """Sort every tile of the source."""
        plan = self.layout
        if plan.parts == 1:
            first = self.times(self.b.block_number(), plan.tile // plan.width)
            positions = [self._position_in_rows(first, e) for e in self._striped()]
        else:
            row, start = self._part()
            positions = [self._position_in_row(row, start, e) for e in self._striped()]
        for local, (inside, position) in zip(self._striped(), positions, strict=True):
            self.put(local, self.fetch(inside, position))
        self.b.barrier()
        items = self._sorted_registers(self._take())
        passes = (plan.width // ITEMS).bit_length() - 1

        def double(number: Value, values: Values) -> Values:
            self.b.barrier()
            self._give(self._elements(values))
            self.b.barrier()
            run = ITEMS << self.b.narrowed(number)
            out = self.tid * ITEMS
            twice = run << 1
            into = out & twice - 1
            first = out - into
            second = first + run
            bits = passes + ITEMS.bit_length()
            split = self._split(into, run, run, bits, first, second, self.get)
            return self._carried(self._merged(into, split, first, run, second, run))

        items = self._elements(self.loops.loop(0, passes, 1, self._carried(items), double))
        self.b.barrier()
        self._give(items)
        self.b.barrier()
        for local, (inside, position) in zip(self._striped(), positions, strict=True):
            self.deposit(inside, position, self.get(local))

    def merge(self) -> None:
        """Merge neighbouring runs of %run elements, which is a multiple of a tile's."""
        plan, ty = self.layout, self.b.index_type
        self.run_length, bits = (self.b.parameter(ty, name) for name in ("run", "bits"))
        row, start = self._part()
        mask = (self.run_length << 1) - 1
        into = start & mask
        first = start - into
        second = first + self.run_length
        m: Word = self._clamped(plan.n, first)
        k: Word = self._clamped(plan.n, second)
        until = self.smaller(into + plan.tile, m + k)
        base = self.times(row, plan.n)
        a, b = (base + x for x in (first, second))
        i, end = (self._split(d, m, k, bits, a, b, self.element_at) for d in (into, until))
        m = self.b.narrowed(end - i)  # of this tile, from each run
        total = self.b.narrowed(until - into)
        k = total - m
        from_a = a + i
        from_b = b + (into - i)
        from_b = from_b - self.b.widened(m)
        inside = {e: e < total for e in self._striped()}
        for local, on in inside.items():
            left = local < m
            origin = self.b.select(left, from_a, from_b)
            position = origin + self.b.widened(local)
            self.put(local, self.fetch(on, position))
        self.b.barrier()
        out = self.smaller(self.tid * ITEMS, total)
        length = plan.tile.bit_length()
        split = self._split(out, m, k, length, 0, m, self.get)
        items = self._merged(out, split, 0, m, m, k)
        self.b.barrier()
        self._give(items)
        self.b.barrier()
        to = base + start
        for local, on in inside.items():
            self.deposit(on, to + self.b.widened(local), self.get(local))

    # Where this thread's elements are.

    def _striped(self) -> list[Value]:
        """Positions in the tile that threads move: neighbouring threads, neighbouring positions."""
        threads = self.layout.threads
        return [self.tid + k * threads for k in range(ITEMS)]

    def _part(self) -> tuple[Word, Word]:
        """The row, and the first position in it, of this block's tile."""
        block = self.b.block_number()
        row = block // self.layout.parts
        return row, self.times(block % self.layout.parts, self.layout.tile)

    def _position_in_rows(self, first: Word, local: Value) -> tuple[Condition, Word]:
        """Whether a position in a tile of short rows is an element, and which."""
        plan = self.layout
        at = local & plan.width - 1
        row = first + self.b.widened(local >> plan.width.bit_length() - 1)
        short, inside = at < plan.n, row < plan.rows
        position = self.times(row, plan.n) + self.b.widened(at)
        return short & inside, position

    def _position_in_row(self, row: Word, start: Word, local: Value) -> tuple[Condition, Word]:
        plan = self.layout
        at = start + self.b.widened(local)
        inside = at < plan.n
        return inside, self.times(row, plan.n) + at

    # Merging.

    def _split(
        self,
        total: Value,
        m: Word,
        k: Word,
        bits: int | Value,
        first: Word,
        second: Word,
        read: Reader,
    ) -> Value:
        """How many of the first `total` merged elements are of the first run.

        The runs begin at the positions `first` and `second` of what `read` reads, and have m and k
        elements. Positions are i32, or indices where `bits`, the length of the answer, is a parameter.
        """
        least = total - k
        low = self.b.select(least > 0, least, 0)
        ends: Values = [Operand(t, True) for t in (low, self.smaller(total, m))]
        last = second + (total - 1)

        def halve(_: Value, values: Values) -> Values:
            low, high = (v.value for v in values)
            on = low < high
            middle = low + high >> 1
            mine, other = first + middle, last - middle
            # Where the search has ended, the positions may be outside.
            x, y = (read(self.b.select(on, at, first)) for at in (mine, other))
            less = self._less(y, x)
            down, up = (on & c for c in (less, ~less))
            low = self.b.select(up, middle + 1, low)
            high = self.b.select(down, middle, high)
            return [Operand(low, True), Operand(high, True)]

        return self.loops.loop(0, bits, 1, ends, halve)[0].value

    def _merged(
        self, out: Value, split: Value, first: Word, m: Word, second: Word, k: Word
    ) -> list[Element]:
        """ITEMS elements from position `out` on of two runs in shared memory, m and k long."""
        i = first + split
        j = second + (out - split)
        ends = first + m, second + k
        x, y = self.get(self._inside(i)), self.get(self._inside(j))
        merged: list[Element] = []
        for _ in range(ITEMS):
            more_x, more_y = (at < end for at, end in zip((i, j), ends, strict=True))
            sooner = ~(more_y & self._less(y, x))
            take_x = more_x & sooner
            merged.append(self.chosen(take_x, x, y))
            if len(merged) == ITEMS:
                break
            next_i, next_j = i + 1, j + 1
            new = self.get(self._inside(self.b.select(take_x, next_i, next_j)))
            x, y = self.chosen(take_x, new, x), self.chosen(take_x, y, new)
            i = self.b.select(take_x, next_i, i)
            j = self.b.select(take_x, j, next_j)
        return merged

    def _sorted_registers(self, items: list[Element]) -> list[Element]:
        """Neighbours are exchanged until they are in order, equal ones never."""
        items = list(items)
        for turn in range(ITEMS):
            for k in range(turn % 2, ITEMS - 1, 2):
                x, y = items[k], items[k + 1]
                swap = self._less(y, x)
                items[k], items[k + 1] = self.chosen(swap, y, x), self.chosen(swap, x, y)
        return items

    # Elements.

    def _less(self, x: Element, y: Element) -> Value:
        """Whether the key of x comes before that of y."""
        return self.key(x).ult(self.key(y))

    def _carried(self, items: Sequence[Element]) -> Values:
        return [Operand(value, True) for item in items for value in item]

    def _elements(self, values: Values) -> list[Element]:
        texts, parts = [v.value for v in values], len(self.memory)
        return [tuple(texts[k : k + parts]) for k in range(0, len(texts), parts)]

    def _own(self) -> list[Value]:
        """Positions of the elements that this thread sorts: side by side."""
        first = self.tid * ITEMS
        return [first + k for k in range(ITEMS)]

    def _take(self) -> list[Element]:
        return [self.get(local) for local in self._own()]

    def _give(self, items: Sequence[Element]) -> None:
        for local, item in zip(self._own(), items, strict=True):
            self.put(local, item)

    def _clamped(self, end: Word, start: Value) -> Value:
        """How many elements of a run from `start` on are before `end`."""
        left = end - start
        some = left > 0
        left = self.b.select(some, left, 0)
        return self.smaller(left, self.run_length)

    def _inside(self, local: Value) -> Value:
        """A position in the tile: the last one instead of one beyond it."""
        return self.smaller(local, self.layout.tile - 1)
