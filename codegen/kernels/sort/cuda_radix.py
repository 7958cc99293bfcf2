"""Sorting long rows of encoded elements by digits, from the last one on, each pass stable.

count:   how often each digit has each value, in each row
sweep:   a launch for each digit: a block takes the next tile of a row, ranks its elements among
         those of the tile with the same digit, learns from the tiles before how many of them come
         first, and writes elements with equal digits side by side

A. Adinets, D. Merrill, Onesweep: a faster least significant digit radix sort for GPUs (2022).
"""

from __future__ import annotations

from collections.abc import Callable, MutableMapping

from ...cuda.emitter import GLOBAL, Word, fits_32_bits
from ...cuda.target import CudaTarget
from ...cuda.warps import EVERYBODY, WARP
from ...llvm.builder import Value
from ...llvm.loops import Values
from ...loop_ir.kernel import Array
from ...loop_ir.steps import Sort
from ...schedule.sort_blocks import U32, U64
from .cuda_elements import Element
from .cuda_look_back import LookBackEmitter
from .cuda_radix_plan import THREADS, VALUES, RadixPlan

WARPS = THREADS // WARP
RESIDENTS = 2  # blocks that share a multiprocessor
EACH = 4  # elements that a thread looks at together
EACH_COUNTS = 16  # elements that a thread counts, at the least


def count_blocks(plan: RadixPlan, target: CudaTarget) -> int:
    """Blocks that count the digits of one row."""
    enough = max(4 * target.sms // plan.rows, 1)
    return min(-(-plan.n // (THREADS * EACH_COUNTS)), enough)


class RadixEmitter(LookBackEmitter):
    """Emits the kernel that counts, or one that moves elements from `source` to `result`."""

    kinds = VALUES

    def __init__(
        self,
        step: Sort,
        plan: RadixPlan,
        source: Array,
        result: Array,
        target: CudaTarget,
        definitions: MutableMapping[str, str],
    ) -> None:
        small = fits_32_bits([2 * step.keys.size + plan.tile * plan.rows, 2 * plan.words])
        super().__init__(step, "i32" if small else "i64", source, result, target, definitions)
        self.cut = plan
        self.b.attributes["nvvm.minctasm"] = str(RESIDENTS)

    # Counting.

    def count(self, blocks: int) -> None:
        """Add to the counts of a row, `blocks` blocks for each."""
        plan = self.cut
        self.b.written = set()
        self.counts = self.b.parameter(GLOBAL, "counts", align=4)
        words = len(plan.shifts) * VALUES
        self.table = self.b.shared(U32, words)
        self._each_word(words, lambda entry: self.put_word(self.table, entry, 0))
        self.b.barrier()
        block = self.b.block_number()
        row = block // blocks
        part = self.b.narrowed(block % blocks)
        base = self.times(row, plan.n)
        first = part * (EACH * THREADS) + self.tid

        def look(at: Value, values: Values) -> Values:
            for on, item in self.several(base, at, plan.n, EACH, THREADS):
                with self.b.when(on):
                    for k, shift in enumerate(plan.shifts):
                        digit = self.bits_of(item, shift, plan.bits[k])
                        word = digit + k * VALUES if k else digit
                        self.add(self.b.in_shared(U32, self.table, word), 1, "block")
            return values

        self.loops.loop(self.b.widened(first), plan.n, blocks * EACH * THREADS, [], look)
        self.b.barrier()
        start = self.times(row, words)

        def flush(entry: Value) -> None:
            count = self.get_word(self.table, entry)
            with self.b.when(count.ne(0)):
                at = start + self.b.widened(entry)
                self.add(self.in_table(self.counts, at), count, "device")

        self._each_word(words, flush)

    def _each_word(self, count: int, body: Callable[[Value], None]) -> None:
        """Do something at each of so many entries, each of them in one thread."""
        for k in range(0, count, THREADS):
            entry = self.tid + k
            if k + THREADS <= count:
                body(entry)
                continue
            with self.b.when(entry < count):
                body(entry)

    # Moving.

    def sweep(self) -> None:
        """One pass, by the digit of which %shift and %mask tell."""
        plan = self.cut
        self.counts, self.ticket, self.shown, self.coming = (
            self.b.parameter(GLOBAL, n, align=4) for n in ("counts", "ticket", "table", "next")
        )
        self.shift, self.mask_of_digit = (
            self.b.parameter(self.word_type, n) for n in ("shift", "mask")
        )
        each = self.dtype.itemsize
        tile_bytes = plan.tile * each
        block = self.b.shared_block(max(self.parts * tile_bytes, WARPS * VALUES * 4))
        self.counters = block
        self.memory = [block, self.b.offset(block, tile_bytes)][: self.parts]
        self.starts, self.offsets = self.b.shared(U32, VALUES), self.b.shared(U32, VALUES)
        self.scratch = self.b.shared(U32, 2 * VALUES // WARP)
        self.mine, self.again = self.b.shared(U32, 1), self.b.shared(U64, 1)
        self.lane_number = self.tid & WARP - 1
        self.warp = self.tid >> WARP.bit_length() - 1
        tile = self._next_tile()
        row = tile // plan.parts
        self.part = tile % plan.parts
        start = self.part * plan.tile
        self.base = self.times(self.b.widened(row), plan.n)
        self.count_here = self.smaller(plan.n - start, plan.tile)
        items = self._fetched(start)
        ranks = self._ranked(items)
        self._learn(tile, row)
        self._spread(items, ranks)

    def _next_tile(self) -> Value:
        """The number of this block's tile; meanwhile all counters are set to 0."""
        with self.b.when(self.tid.eq(0)):
            self.take_turn(self.mine)
            self.b.store(self.shift, self.again, align=8)
        for k in range(0, WARPS * VALUES, THREADS):
            self.put_word(self.counters, self.tid + k, 0)
        self.b.barrier()
        return self.get_word(self.mine, 0)

    def _fetched(self, start: Value) -> list[Element]:
        """Each warp takes a piece of the tile, neighbouring lanes neighbouring elements."""
        items = self.cut.items
        first = self.warp * (WARP * items) + self.lane_number
        elements = []
        origin = self.base + self.b.widened(start)
        for k in range(items):
            local = first + k * WARP
            inside = local < self.count_here
            position = origin + self.b.widened(local)
            elements.append(self.fetch(inside, position))
        return elements

    def _ranked(self, items: list[Element]) -> list[Value]:
        """For each element, how many of the warp's with its digit come before it."""
        own = self.warp * VALUES
        below = self.b.nvvm("llvm.nvvm.read.ptx.sreg.lanemask.lt")
        ranks = []
        for item in items:
            digit = self._digit(item, self.shift)
            peers = self._peers(digit)
            counter = own + digit
            before = self.b.nvvm("llvm.ctpop.i32", peers & below)
            old = self.get_word(self.counters, counter)
            many = old + self.b.nvvm("llvm.ctpop.i32", peers)
            self.b.nvvm("llvm.nvvm.bar.warp.sync", EVERYBODY)
            with self.b.when(before.eq(0)):
                self.put_word(self.counters, counter, many)
            self.b.nvvm("llvm.nvvm.bar.warp.sync", EVERYBODY)
            ranks.append(old + before)
        return ranks

    def _peers(self, digit: Value) -> Word:
        """The lanes that have the same digit."""
        peers: Value | None = None
        for k in range(max(self.cut.bits)):
            on = (digit & 1 << k).ne(0)
            ballot = self.b.nvvm("llvm.nvvm.vote.ballot.sync", EVERYBODY, on, fresh=True)
            flip = self.b.select(on, self.b.literal("i32", 0), -1)
            same = ballot ^ flip
            peers = same if peers is None else peers & same
        assert peers is not None, "a digit has bits"
        return peers

    def _learn(self, tile: Value, row: Value) -> None:
        """Set `starts` to where digits begin in the tile, `offsets` to how far from there the positions
        of their elements in the row are, and counters to how many elements the warps before have.

        One thread for each value of the digit; the other threads do the same but write nothing.
        """
        plan = self.cut
        value = self.tid & VALUES - 1
        owns = self.tid < VALUES
        self.b.barrier()
        entries = [value + w * VALUES for w in range(WARPS)]
        total: Word = 0
        for entry in entries:
            total = total + self.get_word(self.counters, entry)
        at = self.times(self.b.widened(row), len(plan.shifts) * VALUES)
        at = at + self.b.widened(value)
        everywhere = self.load_word(self.in_table(self.counts, at))
        scans = [self.lane_scan(x) for x in (total, everywhere)]
        self.b.barrier()
        with self.b.when(owns):
            before: Word = 0
            for entry in entries:
                own = self.get_word(self.counters, entry)
                self.put_word(self.counters, entry, before)
                before = before + own
        ends = owns & self.lane_number.eq(WARP - 1)
        with self.b.when(ends):
            for k, scan in enumerate(scans):
                self.put_word(self.scratch, self.warp + k * VALUES // WARP, scan)
        self.b.barrier()
        start, base = (
            scan + self._before_warp(k) - own
            for k, (scan, own) in enumerate(zip(scans, (total, everywhere), strict=True))
        )
        with self.b.when(owns):
            self.put_word(self.starts, value, start)
            here = self.times(self.b.widened(tile), VALUES) + self.b.widened(value)
            self.store_word(0, self.in_table(self.coming, here))
            first = self.part.eq(0)

            def keep(before: Word) -> None:
                self.put_word(self.offsets, value, before - start)

            self.before(here, first, base, total, keep)
        self.b.barrier()

    def _before_warp(self, k: int) -> Word:
        """The sum of what the warps before this one have left in `scratch`."""
        warps = VALUES // WARP
        mine = self.warp & warps - 1
        total: Word = 0
        for w in range(warps - 1):
            count = self.get_word(self.scratch, k * warps + w)
            counts = mine > w
            total = total + self.b.select(counts, count, 0)
        return total

    def _spread(self, items: list[Element], ranks: list[Value]) -> None:
        """Elements in the order of their digits go to shared memory, and from there to the result."""
        own = self.warp * VALUES
        # Digits are computed once more, from a shift of which the compiler does not know that it is the
        # same: the registers in which it would keep all digits are too many.
        shift = self.b.load(self.word_type, self.again, align=8)
        targets = []
        for item, rank in zip(items, ranks, strict=True):
            digit = self._digit(item, shift)
            start = self.get_word(self.starts, digit)
            before = self.get_word(self.counters, own + digit)
            targets.append(start + before + rank)
        self.b.barrier()  # from here on the elements are where the counters were
        for target, item in zip(targets, items, strict=True):
            self.put(target, item)
        self.b.barrier()
        for k in range(self.cut.items):
            local = self.tid + k * THREADS
            inside = local < self.count_here
            item = self.get(local)
            offset = self.get_word(self.offsets, self._digit(item, self.shift))
            position = self.base + self.b.widened(offset + local)
            self.deposit(inside, position, item)

    # Digits and words.

    def _digit(self, item: Element, shift: Value) -> Value:
        return self.as_word(self.wide(item) >> shift & self.mask_of_digit)
