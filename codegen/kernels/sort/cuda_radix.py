"""Sorting long rows of encoded elements by digits, from the last one on, each pass stable.

count:   how often each digit has each value, in each row
sweep:   a launch for each digit: a block takes the next tile of a row, ranks its elements among
         those of the tile with the same digit, learns from the tiles before how many of them come
         first, and writes elements with equal digits side by side
"""

from __future__ import annotations

from collections.abc import Callable, MutableMapping

from ...cuda.emitter import GLOBAL, SHARED, fits_32_bits
from ...cuda.target import CudaTarget
from ...cuda.warps import EVERYBODY, WARP
from ...llvm.loops import Values
from ...loop_ir.kernel import Array
from ...loop_ir.steps import Sort
from ...schedule.sort_blocks import U32, U64
from .cuda_elements import Element
from .cuda_radix_plan import THREADS, VALUES, RadixPlan
from .cuda_turns import TurnEmitter

WARPS = THREADS // WARP
RESIDENTS = 2  # blocks that share a multiprocessor
EACH = 4  # elements that a thread looks at together
EACH_COUNTS = 16  # elements that a thread counts, at the least


def count_blocks(plan: RadixPlan, target: CudaTarget) -> int:
    """Blocks that count the digits of one row."""
    enough = max(4 * target.sms // plan.rows, 1)
    return min(-(-plan.n // (THREADS * EACH_COUNTS)), enough)


class RadixEmitter(TurnEmitter):
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
        plan, op, ty = self.cut, self.b.value_of, self.b.index_type
        self.b.written = set()
        self.b.scalars = [f"ptr {GLOBAL}align 4 %counts"]
        words = len(plan.shifts) * VALUES
        self.table = self.b.shared(U32, words)
        self._each_word(words, lambda place: self.put_word(self.table, place, "0"))
        self.b.barrier()
        block = self.b.block_number()
        row = op(f"udiv {ty} {block}, {blocks}")
        part = self.narrow(op(f"urem {ty} {block}, {blocks}"))
        base = self.times(row, plan.n)
        first = op(f"add i32 {op(f'mul i32 {part}, {EACH * THREADS}')}, {self.tid}")

        def look(at: str, values: Values) -> Values:
            for on, item in self.several(base, at, plan.n, EACH, THREADS):
                with self.b.when(on):
                    for k, shift in enumerate(plan.shifts):
                        digit = self.bits_of(item, shift, plan.bits[k])
                        word = op(f"add i32 {digit}, {k * VALUES}") if k else digit
                        self.add(self.b.in_shared(U32, self.table, word), "1", "block")
            return values

        self.loops.loop(self.b.widened(first), str(plan.n), blocks * EACH * THREADS, [], look)
        self.b.barrier()
        start = self.times(row, words)

        def flush(place: str) -> None:
            found = self.get_word(self.table, place)
            with self.b.when(op(f"icmp ne i32 {found}, 0")):
                at = op(f"add {ty} {start}, {self.b.widened(place)}")
                self.add(self.in_table("%counts", at), found, "device")

        self._each_word(words, flush)

    def _each_word(self, count: int, body: Callable[[str], None]) -> None:
        """Do something at each of so many places, each of them in one thread."""
        for k in range(0, count, THREADS):
            place = self.b.value_of(f"add i32 {self.tid}, {k}")
            if k + THREADS <= count:
                body(place)
                continue
            with self.b.when(self.b.value_of(f"icmp slt i32 {place}, {count}")):
                body(place)

    # Moving.

    def sweep(self) -> None:
        """One pass, by the digit of which %shift and %mask tell."""
        plan, op = self.cut, self.b.value_of
        pointers = [f"ptr {GLOBAL}align 4 %{n}" for n in ("counts", "ticket", "table", "next")]
        self.b.scalars = [*pointers, f"{self.word_type} %shift", f"{self.word_type} %mask"]
        each = self.dtype.itemsize
        tile_bytes = plan.tile * each
        block = self.b.shared_block(max(self.parts * tile_bytes, WARPS * VALUES * 4))
        self.counters = block
        self.memory = [block, self._offset(block, tile_bytes)][: self.parts]
        self.starts, self.offsets = self.b.shared(U32, VALUES), self.b.shared(U32, VALUES)
        self.scratch = self.b.shared(U32, 2 * VALUES // WARP)
        self.mine, self.again = self.b.shared(U32, 1), self.b.shared(U64, 1)
        self.lane_number = op(f"and i32 {self.tid}, {WARP - 1}")
        self.warp = op(f"lshr i32 {self.tid}, {WARP.bit_length() - 1}")
        tile = self._next_tile()
        row = op(f"udiv i32 {tile}, {plan.parts}")
        self.part = op(f"urem i32 {tile}, {plan.parts}")
        start = op(f"mul i32 {self.part}, {plan.tile}")
        self.base = self.times(self.b.widened(row), plan.n)
        self.count_here = self.smaller("i32", op(f"sub i32 {plan.n}, {start}"), str(plan.tile))
        items = self._fetched(start)
        ranks = self._ranked(items)
        self._learn(tile, row)
        self._spread(items, ranks)

    def _next_tile(self) -> str:
        """The number of this block's tile; meanwhile all counters are set to 0."""
        op = self.b.value_of
        with self.b.when(op(f"icmp eq i32 {self.tid}, 0")):
            self.take_turn(self.mine)
            self.b.lines.append(f"  store {self.word_type} %shift, ptr {self.again}, align 8")
        for k in range(0, WARPS * VALUES, THREADS):
            self.put_word(self.counters, op(f"add i32 {self.tid}, {k}"), "0")
        self.b.barrier()
        return self.get_word(self.mine, "0")

    def _fetched(self, start: str) -> list[Element]:
        """Each warp takes a piece of the tile, neighbouring lanes neighbouring elements."""
        op, ty, items = self.b.value_of, self.b.index_type, self.cut.items
        first = op(f"add i32 {op(f'mul i32 {self.warp}, {WARP * items}')}, {self.lane_number}")
        found = []
        origin = op(f"add {ty} {self.base}, {self.b.widened(start)}")
        for k in range(items):
            local = op(f"add i32 {first}, {k * WARP}")
            inside = op(f"icmp slt i32 {local}, {self.count_here}")
            place = op(f"add {ty} {origin}, {self.b.widened(local)}")
            found.append(self.fetch(inside, place))
        return found

    def _ranked(self, items: list[Element]) -> list[str]:
        """For each element, how many of the warp's with its digit come before it."""
        op = self.b.value_of
        own = op(f"mul i32 {self.warp}, {VALUES}")
        below = self.b.nvvm("llvm.nvvm.read.ptx.sreg.lanemask.lt")
        found = []
        for item in items:
            digit = self._digit(item)
            peers = self._peers(digit)
            counter = op(f"add i32 {own}, {digit}")
            before = self.b.nvvm("llvm.ctpop.i32", op(f"and i32 {peers}, {below}"))
            old = self.get_word(self.counters, counter)
            many = op(f"add i32 {old}, {self.b.nvvm('llvm.ctpop.i32', peers)}")
            self.b.nvvm("llvm.nvvm.bar.warp.sync", EVERYBODY)
            with self.b.when(op(f"icmp eq i32 {before}, 0")):
                self.put_word(self.counters, counter, many)
            self.b.nvvm("llvm.nvvm.bar.warp.sync", EVERYBODY)
            found.append(op(f"add i32 {old}, {before}"))
        return found

    def _peers(self, digit: str) -> str:
        """The lanes that have the same digit."""
        peers = ""
        for k in range(max(self.cut.bits)):
            bit = self.b.value_of(f"and i32 {digit}, {1 << k}")
            on = self.b.value_of(f"icmp ne i32 {bit}, 0")
            ballot = self.b.nvvm("llvm.nvvm.vote.ballot.sync", EVERYBODY, on, fresh=True)
            flip = self.b.value_of(f"select i1 {on}, i32 0, i32 -1")
            same = self.b.value_of(f"xor i32 {ballot}, {flip}")
            peers = self.b.value_of(f"and i32 {peers}, {same}") if peers else same
        return peers

    def _learn(self, tile: str, row: str) -> None:
        """Set `starts` to where digits begin in the tile, `offsets` to how far from there the places of
        their elements in the row are, and counters to how many elements the warps before have.

        One thread for each value of the digit; the other threads do the same but write nothing.
        """
        plan, op, ty = self.cut, self.b.value_of, self.b.index_type
        value = op(f"and i32 {self.tid}, {VALUES - 1}")
        owns = op(f"icmp slt i32 {self.tid}, {VALUES}")
        self.b.barrier()
        places = [op(f"add i32 {value}, {w * VALUES}") for w in range(WARPS)]
        total = "0"
        for place in places:
            total = op(f"add i32 {total}, {self.get_word(self.counters, place)}")
        at = self.times(self.b.widened(row), len(plan.shifts) * VALUES)
        at = op(f"add {ty} {at}, {self.b.widened(value)}")
        everywhere = self.load_word(self.in_table("%counts", at), "")
        scans = [self.lane_scan(x) for x in (total, everywhere)]
        self.b.barrier()
        with self.b.when(owns):
            before = "0"
            for place in places:
                own = self.get_word(self.counters, place)
                self.put_word(self.counters, place, before)
                before = op(f"add i32 {before}, {own}")
        ends = op(f"and i1 {owns}, {op(f'icmp eq i32 {self.lane_number}, {WARP - 1}')}")
        with self.b.when(ends):
            for k, scan in enumerate(scans):
                self.put_word(self.scratch, op(f"add i32 {self.warp}, {k * VALUES // WARP}"), scan)
        self.b.barrier()
        start, base = (
            op(f"sub i32 {op(f'add i32 {scan}, {self._before_warp(k)}')}, {own}")
            for k, (scan, own) in enumerate(zip(scans, (total, everywhere), strict=True))
        )
        with self.b.when(owns):
            self.put_word(self.starts, value, start)
            here = op(
                f"add {ty} {self.times(self.b.widened(tile), VALUES)}, {self.b.widened(value)}"
            )
            self.store_word("0", self.in_table("%next", here))
            first = op(f"icmp eq i32 {self.part}, 0")

            def keep(before: str) -> None:
                self.put_word(self.offsets, value, op(f"sub i32 {before}, {start}"))

            self.before(here, first, base, total, keep)
        self.b.barrier()

    def _before_warp(self, k: int) -> str:
        """The sum of what the warps before this one have left in `scratch`."""
        op, warps = self.b.value_of, VALUES // WARP
        mine = op(f"and i32 {self.warp}, {warps - 1}")
        total = "0"
        for w in range(warps - 1):
            found = self.get_word(self.scratch, str(k * warps + w))
            counts = op(f"icmp sgt i32 {mine}, {w}")
            total = op(f"add i32 {total}, {op(f'select i1 {counts}, i32 {found}, i32 0')}")
        return total

    def _spread(self, items: list[Element], ranks: list[str]) -> None:
        """Elements in the order of their digits go to shared memory, and from there to the result."""
        op, ty = self.b.value_of, self.b.index_type
        own = op(f"mul i32 {self.warp}, {VALUES}")
        # Digits are computed once more, from a shift of which the compiler does not know that it is the
        # same: the registers in which it would keep all digits are too many.
        shift = self.b.fresh_of(f"load {self.word_type}, ptr {self.again}, align 8")
        targets = []
        for item, rank in zip(items, ranks, strict=True):
            digit = self._digit(item, shift)
            start = self.get_word(self.starts, digit)
            before = self.get_word(self.counters, op(f"add i32 {own}, {digit}"))
            targets.append(op(f"add i32 {op(f'add i32 {start}, {before}')}, {rank}"))
        self.b.barrier()  # from here on the elements are where the counters were
        for target, item in zip(targets, items, strict=True):
            self.put(target, item)
        self.b.barrier()
        for k in range(self.cut.items):
            local = op(f"add i32 {self.tid}, {k * THREADS}")
            inside = op(f"icmp slt i32 {local}, {self.count_here}")
            item = self.get(local)
            offset = self.get_word(self.offsets, self._digit(item))
            place = op(f"add {ty} {self.base}, {self.b.widened(op(f'add i32 {offset}, {local}'))}")
            self.deposit(inside, place, item)

    # Digits and words.

    def _digit(self, item: Element, shift: str = "%shift") -> str:
        ty, op = self.word_type, self.b.value_of
        return self.as_word(op(f"and {ty} {op(f'lshr {ty} {self.wide(item)}, {shift}')}, %mask"))

    def _offset(self, base: str, nbytes: int) -> str:
        space, name = base.rsplit(" ", 1)
        return f"{space} {self.b.value_of(f'getelementptr i8, ptr {SHARED}{name}, i32 {nbytes}')}"
