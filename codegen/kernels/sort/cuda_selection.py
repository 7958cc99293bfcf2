"""Parts of sorted rows without sorting the rows: the largest few, a median.

    tally:   count the values that a digit has among the elements whose digits before are those that are
             looked for; every block first looks at the counts of the digit before
    settle:  what the counts of the last digit say
    gather:  a block takes the next tile of a row, and learns from the tiles before how many elements
             they have at the lower end, between the ends and at the upper end

So three passes over a row of 32-bit keys, and one to take what is wanted, whatever the values are.
"""

from __future__ import annotations

from collections.abc import MutableMapping

from ...cuda.emitter import GLOBAL, Word, fits_32_bits
from ...cuda.target import CudaTarget
from ...cuda.warps import EVERYBODY, WARP
from ...llvm.builder import Condition, Value
from ...llvm.loops import Values
from ...schedule.sort_blocks import U32
from .cuda_elements import Element
from .cuda_look_back import LookBackEmitter
from .cuda_select_plan import BINS, KINDS, STATE, THREADS, Select

WARPS = THREADS // WARP
RESIDENTS = 3  # blocks that share a multiprocessor, where they gather
EACH = 4  # elements that a thread looks at together
KIND = 28  # bits of a rank in a warp, below the number of a kind
MANY = 16  # elements of a thread that tallies, at the least
OWN = BINS // THREADS  # values of a digit that one thread adds up


def tally_blocks(step: Select, target: CudaTarget) -> int:
    """How many blocks tally a row: as many as it fills, and as the GPU runs of all rows."""
    enough = max(8 * target.sms // step.rows, 1)
    return min(-(-step.n // (THREADS * MANY)), enough)


class SelectEmitter(LookBackEmitter):
    """Emits one of the kernels. `counts` points at the first of all words."""

    kinds = KINDS

    def __init__(
        self,
        step: Select,
        target: CudaTarget,
        definitions: MutableMapping[str, str],
        fills: bool,
    ) -> None:
        counts = [step.words, 2 * step.keys.size + step.tile * step.rows, step.target.size]
        index_type = "i32" if fits_32_bits(counts) else "i64"
        result = step.target if fills else step.keys
        super().__init__(step, index_type, step.keys, result, target, definitions)
        self.b.written = {result} if fills else set()
        self.step = step
        self.counts = self.b.parameter(GLOBAL, "counts", align=4)
        self.lane_number = self.tid & WARP - 1
        self.warp = self.tid >> WARP.bit_length() - 1
        self.scratch, self.answer = self.b.shared(U32, 3 * WARPS), self.b.shared(U32, 4)

    # Searching.

    def tally(self, digit: int, blocks: int) -> None:
        """Count the values of a digit, `blocks` blocks for each row."""
        step = self.step
        block = self.b.block_number()
        row = block // blocks
        part = self.word32(self.b.narrowed(block % blocks))
        tables = [self.b.shared(U32, BINS) for _ in step.ends]
        for table in tables:
            for k in range(OWN):
                self.put_word(table, self.tid + k * THREADS, 0)
        first = part.eq(0)
        states = [self._state(digit, row, e, first) for e in range(len(step.ends))]
        self.b.barrier()
        high, low = step.cuts[digit : digit + 2]
        base = self.times(row, step.n)
        start = part * (EACH * THREADS) + self.tid

        def look(at: Value, values: Values) -> Values:
            for on, item in self.several(base, at, step.n, EACH, THREADS):
                value = self.bits_of(item, low, high - low)
                for table, (prefix, *_) in zip(tables, states, strict=True):
                    here = on
                    if digit:
                        before = self.wide(item) >> high
                        same = before.eq(prefix)
                        here = on & same
                    with self.b.when(here):
                        self.add(self.b.in_shared(U32, table, value), 1, "block")
            return values

        self.loops.loop(self.b.widened(start), step.n, blocks * EACH * THREADS, [], look)
        self.b.barrier()
        for e, table in enumerate(tables):
            for k in range(OWN):
                entry = self.tid + k * THREADS
                count = self.get_word(table, entry)
                with self.b.when(count.ne(0)):
                    self.add(self._bin(digit, row, e, entry), count, "device")

    def settle(self) -> None:
        """Note what all digits have come to; a block for each row."""
        for e in range(len(self.step.ends)):
            self._state(len(self.step.cuts) - 1, self.b.block_number(), e, True)

    def _state(self, digit: int, row: Word, e: int, notes: Condition) -> tuple[Value, Value, Value]:
        """What is known before a digit is looked at: the digits before it, the rank that is looked for
        among the elements that have them, and how many these are. Where it `notes`, the block writes
        that down."""
        step = self.step
        first = (
            self.b.literal(self.word_type, 0),
            self.b.literal("i32", step.ends[e]),
            self.b.literal("i32", step.n),
        )
        if not digit:
            return first
        prefix, rank, _ = self._noted(digit - 1, row, e) if digit > 1 else first
        value, rank, count = self._value_at(digit - 1, row, e, rank)
        bits = step.cuts[digit - 1] - step.cuts[digit]
        wide = value.zext("i64") if self.word_type == "i64" else value
        if digit > 1:
            wide = prefix << bits | wide
        one = self.tid.eq(0)
        with self.b.when(one & notes if notes is not True else one):
            self._note_down(digit, row, e, (wide, rank, count))
        return wide, rank, count

    def _value_at(self, digit: int, row: Word, e: int, rank: Word) -> tuple[Value, Value, Value]:
        """The value that a digit has at a rank of the sorted elements, the rank among those that have
        it too, and how many these are."""
        own = self.tid * OWN
        entries = [self._bin(digit, row, e, own + k) for k in range(OWN)]
        counts = [self.load_word(entry) for entry in entries]
        total = counts[0]
        for count in counts[1:]:
            total = total + count
        ends = self.lane_scan(total)
        with self.b.when(self.lane_number.eq(WARP - 1)):
            self.put_word(self.scratch, self.warp, ends)
        self.b.barrier()
        before, _ = self._around(0)
        start = before + (ends - total)
        after = start + total
        wanted = self.word32(rank)
        here = wanted.uge(start)
        with self.b.when(here & wanted.ult(after)):
            words = [own, start, counts[0]]
            for k, count in enumerate(counts[1:], 1):
                start = start + counts[k - 1]
                on = wanted.uge(start)
                new = (own + k, start, count)
                words = [self.b.select(on, a, b) for a, b in zip(new, words, strict=True)]
            words[1] = wanted - words[1]
            for k, text in enumerate(words):
                self.put_word(self.answer, k, text)
        self.b.barrier()
        value, rest, count = (self.get_word(self.answer, k) for k in range(3))
        self.b.barrier()
        return value, rest, count

    def _around(self, k: int) -> tuple[Word, Word]:
        """The sum of the words k that the warps before this one left in `scratch`, and that of all."""
        before, total = self.b.literal("i32", 0), self.b.literal("i32", 0)
        for w in range(WARPS):
            word = self.get_word(self.scratch, k * WARPS + w)
            total = total + word
            if w + 1 < WARPS:
                on = self.warp > w
                before = self.b.select(on, total, before)
        return before, total

    # Taking.

    def collect(self) -> None:
        """The kernel that gathers: tiles in turns, elements sorted by where they are to the ends."""
        step = self.step
        mine = self.b.shared(U32, 1)
        self.b.attributes["nvvm.minctasm"] = str(RESIDENTS)
        self.ticket, self.shown = (
            self.b.parameter(GLOBAL, name, align=4) for name in ("ticket", "table")
        )
        with self.b.when(self.tid.eq(0)):
            self.take_turn(mine)
        self.b.barrier()
        tile = self.get_word(mine, 0)
        row, part = tile // step.parts, tile % step.parts
        states = [
            self._noted(len(step.cuts) - 1, self.b.widened(row), e) for e in range(len(step.ends))
        ]
        items = self._fetched(row, part)
        kinds, bases = self._kinds(states)
        below = self.b.nvvm("llvm.nvvm.read.ptx.sreg.lanemask.lt")
        counts: list[Word] = [0] * len(kinds)
        ranks: list[Value] = []
        for inside, item in items:
            rank: Word = -1  # a number of the kind above its rank; this is of no kind
            for k, condition in enumerate(self._conditions(kinds, states, item)):
                on = condition & inside
                votes = self.b.nvvm("llvm.nvvm.vote.ballot.sync", EVERYBODY, on, fresh=True)
                before = self.b.nvvm("llvm.ctpop.i32", votes & below)
                own = counts[k] + before | k << KIND
                rank = self.b.select(on, own, rank)
                many = self.b.nvvm("llvm.ctpop.i32", votes)
                counts[k] = counts[k] + many
            ranks.append(self.word32(rank))
        offsets = self._learn(tile, part, counts)
        width = step.stop - step.start
        start = self.times(self.b.widened(row), width)
        moves = [a + b for a, b in zip(offsets, bases, strict=True)]
        for (_, item), rank in zip(items, ranks, strict=True):
            kind, move = rank >> KIND, moves[0]
            for k, other in enumerate(moves[1:], 1):
                on = kind.eq(k)
                move = self.b.select(on, other, move)
            slot = (rank & (1 << KIND) - 1) + move
            some = rank.ne(-1)
            wanted = some & slot.ult(width)
            self.deposit(wanted, start + self.b.widened(slot), item)

    def _fetched(self, row: Value, part: Value) -> list[tuple[Value, Element]]:
        """Each warp takes a piece of the tile, neighbouring lanes neighbouring elements."""
        step = self.step
        begin = part * step.tile
        piece = self.warp * (WARP * step.items)
        first = begin + piece + self.lane_number
        base = self.times(self.b.widened(row), step.n)
        elements = []
        for k in range(step.items):
            local = first + k * WARP
            inside = local < step.n
            position = base + self.b.widened(local)
            elements.append((inside, self.fetch(inside, position)))
        return elements

    def _kinds(self, states: list[tuple[Value, Value, Value]]) -> tuple[list[str], list[Word]]:
        """What elements may be, and where those of a kind begin in the target: the first of those at
        the lower end, and the last of those at the upper end, may lie outside."""
        step = self.step
        width = step.stop - step.start
        kinds: list[str] = []
        bases: list[Word] = []
        middle: Word = 0
        if step.start:
            _, rank, count = states[0]
            kinds.append("low")
            bases.append(0 - rank)
            middle = count - rank
        kinds.append("middle")
        bases.append(middle)
        if step.stop < step.n:
            kinds.append("high")
            bases.append(width - 1 - states[-1][1])
        return kinds, bases

    def _conditions(
        self, kinds: list[str], states: list[tuple[Value, Value, Value]], item: Element
    ) -> list[Value]:
        """Whether an element is of each of the kinds; of one at the most."""
        key, last = self.wide(item), self.step.cuts[-1]
        if last:
            key = key >> last
        low, high = states[0][0], states[-1][0]
        always = self.b.literal("i1", True)
        above = key.ugt(low) if "low" in kinds else always
        under = key.ult(high) if "high" in kinds else always
        classes = []
        for kind in kinds:
            if kind == "low":
                classes.append(key.eq(low))
            elif kind == "middle":
                classes.append(above & under)
            else:
                classes.append(above & key.eq(high))
        return classes

    def _learn(self, tile: Value, part: Value, counts: list[Word]) -> list[Value]:
        """How many elements of each kind come before those of this warp, which has `counts`."""
        with self.b.when(self.lane_number.eq(0)):
            for k, count in enumerate(counts):
                self.put_word(self.scratch, self.warp + k * WARPS, count)
        self.b.barrier()
        around = [self._around(k) for k in range(len(counts))]
        first = part.eq(0)
        total = around[0][1]
        for k, (_, other) in enumerate(around[1:], 1):
            mine = self.tid.eq(k)
            total = self.b.select(mine, other, total)
        with self.b.when(self.tid < len(counts)):
            here = self.times(self.b.widened(tile), KINDS)
            here = here + self.b.widened(self.tid)
            self.before(here, first, 0, total, lambda n: self.put_word(self.answer, self.tid, n))
        self.b.barrier()
        return [self.get_word(self.answer, k) + before for k, (before, _) in enumerate(around)]

    # Words.

    def _end(self, row: Word, e: int, each: int) -> Word:
        """The first of a row's words that belong to an end, `each` of them to each."""
        whole = self.times(row, len(self.step.ends) * each)
        return whole + e * each if e else whole

    def _bin(self, digit: int, row: Word, e: int, value: Value) -> Value:
        at = self._end(row, e, BINS) + self.step.tables(digit)
        return self.in_table(self.counts, at + self.b.widened(value))

    def _words(self, digit: int, row: Word, e: int) -> list[Value]:
        at = self._end(row, e, STATE) + self.step.states(digit)
        return [self.in_table(self.counts, at + k) for k in range(STATE)]

    def _note_down(self, digit: int, row: Word, e: int, state: tuple[Value, Value, Value]) -> None:
        prefix, rank, count = state
        high: Word = 0
        if self.word_type == "i64":
            high = (prefix >> 32).trunc("i32")
            prefix = prefix.trunc("i32")
        texts = (prefix, high, rank, count)
        for address, text in zip(self._words(digit, row, e), texts, strict=True):
            self.store_word(text, address)

    def _noted(self, digit: int, row: Word, e: int) -> tuple[Value, Value, Value]:
        prefix, high, rank, count = (
            self.load_word(address) for address in self._words(digit, row, e)
        )
        if self.word_type == "i64":
            upper = high.zext("i64") << 32
            prefix = upper | prefix.zext("i64")
        return prefix, rank, count
