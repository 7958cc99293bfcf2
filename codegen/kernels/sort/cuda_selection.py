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

from ...cuda.emitter import GLOBAL, fits_32_bits
from ...cuda.target import CudaTarget
from ...cuda.warps import EVERYBODY, WARP
from ...llvm.loops import Values
from ...schedule.sort_blocks import U32
from .cuda_elements import Element
from .cuda_select_plan import BINS, KINDS, STATE, THREADS, Select
from .cuda_turns import TurnEmitter

WARPS = THREADS // WARP
RESIDENTS = 3  # blocks that share a multiprocessor, where they gather
EACH = 4  # elements that a thread looks at together
KIND = 28  # bits of a rank in a warp, below the number of a kind
MANY = 16  # elements of a thread that tallies, at the least
OWN = BINS // THREADS  # values of a digit that one thread adds up


def tally_blocks(step: Select, target: CudaTarget) -> int:
    """Blocks that tally one row."""
    enough = max(8 * target.sms // step.rows, 1)
    return min(-(-step.n // (THREADS * MANY)), enough)


class SelectEmitter(TurnEmitter):
    """Emits one of the kernels. %counts points at the first of all words."""

    kinds = KINDS

    def __init__(
        self, step: Select, target: CudaTarget, definitions: MutableMapping[str, str], fills: bool
    ) -> None:
        counts = [step.words, 2 * step.keys.size + step.tile * step.rows, step.target.size]
        index_type = "i32" if fits_32_bits(counts) else "i64"
        result = step.target if fills else step.keys
        super().__init__(step, index_type, step.keys, result, target, definitions)
        self.b.written = {result} if fills else set()
        self.step = step
        self.b.scalars = [f"ptr {GLOBAL}align 4 %counts"]
        self.lane_number = self.b.value_of(f"and i32 {self.tid}, {WARP - 1}")
        self.warp = self.b.value_of(f"lshr i32 {self.tid}, {WARP.bit_length() - 1}")
        self.scratch, self.found = self.b.shared(U32, 3 * WARPS), self.b.shared(U32, 4)

    # Searching.

    def tally(self, digit: int, blocks: int) -> None:
        """Count the values of a digit, `blocks` blocks for each row."""
        step, op, ty = self.step, self.b.value_of, self.b.index_type
        block = self.b.block_number()
        row = op(f"udiv {ty} {block}, {blocks}")
        part = self.narrow(op(f"urem {ty} {block}, {blocks}"))
        tables = [self.b.shared(U32, BINS) for _ in step.ends]
        for table in tables:
            for k in range(OWN):
                self.put_word(table, op(f"add i32 {self.tid}, {k * THREADS}"), "0")
        first = op(f"icmp eq i32 {part}, 0")
        states = [self._state(digit, row, e, first) for e in range(len(step.ends))]
        self.b.barrier()
        high, low = step.cuts[digit : digit + 2]
        base = self.times(row, step.n)
        start = op(f"add i32 {op(f'mul i32 {part}, {EACH * THREADS}')}, {self.tid}")

        def look(at: str, values: Values) -> Values:
            for on, item in self.several(base, at, step.n, EACH, THREADS):
                value = self.bits_of(item, low, high - low)
                for table, (prefix, *_) in zip(tables, states, strict=True):
                    here = on
                    if digit:
                        before = op(f"lshr {self.word_type} {self.wide(item)}, {high}")
                        same = op(f"icmp eq {self.word_type} {before}, {prefix}")
                        here = op(f"and i1 {on}, {same}")
                    with self.b.when(here):
                        self.add(self.b.in_shared(U32, table, value), "1", "block")
            return values

        self.loops.loop(self.b.widened(start), str(step.n), blocks * EACH * THREADS, [], look)
        self.b.barrier()
        for e, table in enumerate(tables):
            for k in range(OWN):
                place = op(f"add i32 {self.tid}, {k * THREADS}")
                count = self.get_word(table, place)
                with self.b.when(op(f"icmp ne i32 {count}, 0")):
                    self.add(self._bin(digit, row, e, place), count, "device")

    def settle(self) -> None:
        """Note what all digits have come to; a block for each row."""
        for e in range(len(self.step.ends)):
            self._state(len(self.step.cuts) - 1, self.b.block_number(), e, "true")

    def _state(self, digit: int, row: str, e: int, notes: str) -> tuple[str, str, str]:
        """What is known before a digit is looked at: the digits before it, the place that is looked for
        among the elements that have them, and how many these are. Where it `notes`, the block writes
        that down."""
        step, op = self.step, self.b.value_of
        if not digit:
            return "0", str(step.ends[e]), str(step.n)
        prefix, rank, _ = (
            self._noted(digit - 1, row, e) if digit > 1 else ("0", str(step.ends[e]), "")
        )
        value, rank, count = self._value_at(digit - 1, row, e, rank)
        bits = step.cuts[digit - 1] - step.cuts[digit]
        wide = op(f"zext i32 {value} to i64") if self.word_type == "i64" else value
        if digit > 1:
            wide = op(f"or {self.word_type} {op(f'shl {self.word_type} {prefix}, {bits}')}, {wide}")
        one = op(f"icmp eq i32 {self.tid}, 0")
        with self.b.when(op(f"and i1 {one}, {notes}") if notes != "true" else one):
            self._note_down(digit, row, e, (wide, rank, count))
        return wide, rank, count

    def _value_at(self, digit: int, row: str, e: int, rank: str) -> tuple[str, str, str]:
        """The value that a digit has at a place of the sorted elements, the place among those that have
        it too, and how many these are."""
        op = self.b.value_of
        own = op(f"mul i32 {self.tid}, {OWN}")
        places = [self._bin(digit, row, e, op(f"add i32 {own}, {k}")) for k in range(OWN)]
        counts = [self.load_word(place, "") for place in places]
        total = counts[0]
        for count in counts[1:]:
            total = op(f"add i32 {total}, {count}")
        ends = self.lane_scan(total)
        with self.b.when(op(f"icmp eq i32 {self.lane_number}, {WARP - 1}")):
            self.put_word(self.scratch, self.warp, ends)
        self.b.barrier()
        before, _ = self._around(0)
        start = op(f"add i32 {before}, {op(f'sub i32 {ends}, {total}')}")
        after = op(f"add i32 {start}, {total}")
        here = op(f"icmp uge i32 {rank}, {start}")
        with self.b.when(op(f"and i1 {here}, {op(f'icmp ult i32 {rank}, {after}')}")):
            found = [own, start, counts[0]]
            for k, count in enumerate(counts[1:], 1):
                start = op(f"add i32 {start}, {counts[k - 1]}")
                on = op(f"icmp uge i32 {rank}, {start}")
                new = (op(f"add i32 {own}, {k}"), start, count)
                found = [
                    op(f"select i1 {on}, i32 {a}, i32 {b}") for a, b in zip(new, found, strict=True)
                ]
            found[1] = op(f"sub i32 {rank}, {found[1]}")
            for k, text in enumerate(found):
                self.put_word(self.found, str(k), text)
        self.b.barrier()
        value, rest, count = (self.get_word(self.found, str(k)) for k in range(3))
        self.b.barrier()
        return value, rest, count

    def _around(self, k: int) -> tuple[str, str]:
        """The sum of the words k that the warps before this one left in `scratch`, and that of all."""
        op, before, total = self.b.value_of, "0", "0"
        for w in range(WARPS):
            found = self.get_word(self.scratch, str(k * WARPS + w))
            total = op(f"add i32 {total}, {found}")
            if w + 1 < WARPS:
                on = op(f"icmp sgt i32 {self.warp}, {w}")
                before = op(f"select i1 {on}, i32 {total}, i32 {before}")
        return before, total

    # Taking.

    def collect(self) -> None:
        step, op, ty = self.step, self.b.value_of, self.b.index_type
        mine = self.b.shared(U32, 1)
        self.b.attributes["nvvm.minctasm"] = str(RESIDENTS)
        self.b.scalars += [f"ptr {GLOBAL}align 4 %ticket", f"ptr {GLOBAL}align 4 %table"]
        with self.b.when(op(f"icmp eq i32 {self.tid}, 0")):
            self.take_turn(mine)
        self.b.barrier()
        tile = self.get_word(mine, "0")
        row, part = op(f"udiv i32 {tile}, {step.parts}"), op(f"urem i32 {tile}, {step.parts}")
        states = [
            self._noted(len(step.cuts) - 1, self.b.widened(row), e) for e in range(len(step.ends))
        ]
        items = self._fetched(row, part)
        kinds, bases = self._kinds(states)
        below = self.b.nvvm("llvm.nvvm.read.ptx.sreg.lanemask.lt")
        counts, ranks = ["0"] * len(kinds), []
        for inside, item in items:
            rank = "-1"  # a number of the kind above its rank; this is of no kind
            for k, condition in enumerate(self._conditions(kinds, states, item)):
                on = op(f"and i1 {condition}, {inside}")
                votes = self.b.nvvm("llvm.nvvm.vote.ballot.sync", EVERYBODY, on, fresh=True)
                before = self.b.nvvm("llvm.ctpop.i32", op(f"and i32 {votes}, {below}"))
                own = op(f"or i32 {op(f'add i32 {counts[k]}, {before}')}, {k << KIND}")
                rank = op(f"select i1 {on}, i32 {own}, i32 {rank}")
                many = self.b.nvvm("llvm.ctpop.i32", votes)
                counts[k] = op(f"add i32 {counts[k]}, {many}")
            ranks.append(rank)
        offsets = self._learn(tile, part, counts)
        width = step.stop - step.start
        start = self.times(self.b.widened(row), width)
        moves = [op(f"add i32 {a}, {b}") for a, b in zip(offsets, bases, strict=True)]
        for (_, item), rank in zip(items, ranks, strict=True):
            kind, move = op(f"lshr i32 {rank}, {KIND}"), moves[0]
            for k, other in enumerate(moves[1:], 1):
                on = op(f"icmp eq i32 {kind}, {k}")
                move = op(f"select i1 {on}, i32 {other}, i32 {move}")
            place = op(f"add i32 {op(f'and i32 {rank}, {(1 << KIND) - 1}')}, {move}")
            some = op(f"icmp ne i32 {rank}, -1")
            wanted = op(f"and i1 {some}, {op(f'icmp ult i32 {place}, {width}')}")
            self.deposit(wanted, op(f"add {ty} {start}, {self.b.widened(place)}"), item)

    def _fetched(self, row: str, part: str) -> list[tuple[str, Element]]:
        """Each warp takes a piece of the tile, neighbouring lanes neighbouring elements."""
        step, op, ty = self.step, self.b.value_of, self.b.index_type
        begin = op(f"mul i32 {part}, {step.tile}")
        piece = op(f"mul i32 {self.warp}, {WARP * step.items}")
        first = op(f"add i32 {op(f'add i32 {begin}, {piece}')}, {self.lane_number}")
        base = self.times(self.b.widened(row), step.n)
        found = []
        for k in range(step.items):
            local = op(f"add i32 {first}, {k * WARP}")
            inside = op(f"icmp slt i32 {local}, {step.n}")
            place = op(f"add {ty} {base}, {self.b.widened(local)}")
            found.append((inside, self.fetch(inside, place)))
        return found

    def _kinds(self, states: list[tuple[str, str, str]]) -> tuple[list[str], list[str]]:
        """What elements may be, and where those of a kind begin in the target: the first of those at
        the lower end, and the last of those at the upper end, may lie outside."""
        step, op = self.step, self.b.value_of
        width = step.stop - step.start
        kinds, bases, middle = [], [], "0"
        if step.start:
            _, rank, count = states[0]
            kinds.append("low")
            bases.append(op(f"sub i32 0, {rank}"))
            middle = op(f"sub i32 {count}, {rank}")
        kinds.append("middle")
        bases.append(middle)
        if step.stop < step.n:
            kinds.append("high")
            bases.append(op(f"sub i32 {width - 1}, {states[-1][1]}"))
        return kinds, bases

    def _conditions(
        self, kinds: list[str], states: list[tuple[str, str, str]], item: Element
    ) -> list[str]:
        """Whether an element is of each of the kinds; of one at the most."""
        op, word = self.b.value_of, self.word_type
        key, last = self.wide(item), self.step.cuts[-1]
        if last:
            key = op(f"lshr {word} {key}, {last}")
        low = states[0][0] if "low" in kinds else ""
        high = states[-1][0] if "high" in kinds else ""
        above = op(f"icmp ugt {word} {key}, {low}") if low else "true"
        under = op(f"icmp ult {word} {key}, {high}") if high else "true"
        found = []
        for kind in kinds:
            if kind == "low":
                found.append(op(f"icmp eq {word} {key}, {low}"))
            elif kind == "middle":
                found.append(op(f"and i1 {above}, {under}"))
            else:
                found.append(op(f"and i1 {above}, {op(f'icmp eq {word} {key}, {high}')}"))
        return found

    def _learn(self, tile: str, part: str, counts: list[str]) -> list[str]:
        """How many elements of each kind come before those of this warp, which has `counts`."""
        op, ty = self.b.value_of, self.b.index_type
        with self.b.when(op(f"icmp eq i32 {self.lane_number}, 0")):
            for k, count in enumerate(counts):
                self.put_word(self.scratch, op(f"add i32 {self.warp}, {k * WARPS}"), count)
        self.b.barrier()
        around = [self._around(k) for k in range(len(counts))]
        first = op(f"icmp eq i32 {part}, 0")
        total = around[0][1]
        for k, (_, other) in enumerate(around[1:], 1):
            mine = op(f"icmp eq i32 {self.tid}, {k}")
            total = op(f"select i1 {mine}, i32 {other}, i32 {total}")
        with self.b.when(op(f"icmp slt i32 {self.tid}, {len(counts)}")):
            here = self.times(self.b.widened(tile), KINDS)
            here = op(f"add {ty} {here}, {self.b.widened(self.tid)}")
            self.before(here, first, "0", total, lambda n: self.put_word(self.found, self.tid, n))
        self.b.barrier()
        return [
            op(f"add i32 {self.get_word(self.found, str(k))}, {before}")
            for k, (before, _) in enumerate(around)
        ]

    # Words.

    def _end(self, row: str, e: int, each: int) -> str:
        """The first of a row's words that belong to an end, `each` of them to each."""
        whole = self.times(row, len(self.step.ends) * each)
        return self.b.value_of(f"add {self.b.index_type} {whole}, {e * each}") if e else whole

    def _bin(self, digit: int, row: str, e: int, value: str) -> str:
        ty, op = self.b.index_type, self.b.value_of
        at = op(f"add {ty} {self._end(row, e, BINS)}, {self.step.tables(digit)}")
        return self.in_table("%counts", op(f"add {ty} {at}, {self.b.widened(value)}"))

    def _places(self, digit: int, row: str, e: int) -> list[str]:
        ty, op = self.b.index_type, self.b.value_of
        at = op(f"add {ty} {self._end(row, e, STATE)}, {self.step.states(digit)}")
        return [self.in_table("%counts", op(f"add {ty} {at}, {k}")) for k in range(STATE)]

    def _note_down(self, digit: int, row: str, e: int, state: tuple[str, str, str]) -> None:
        op, (prefix, rank, count) = self.b.value_of, state
        high = "0"
        if self.word_type == "i64":
            high = op(f"trunc i64 {op(f'lshr i64 {prefix}, 32')} to i32")
            prefix = op(f"trunc i64 {prefix} to i32")
        texts = (prefix, high, rank, count)
        for place, text in zip(self._places(digit, row, e), texts, strict=True):
            self.store_word(text, place)

    def _noted(self, digit: int, row: str, e: int) -> tuple[str, str, str]:
        op = self.b.value_of
        prefix, high, rank, count = (
            self.load_word(place, "") for place in self._places(digit, row, e)
        )
        if self.word_type == "i64":
            upper = op(f"shl i64 {op(f'zext i32 {high} to i64')}, 32")
            prefix = op(f"or i64 {upper}, {op(f'zext i32 {prefix} to i64')}")
        return prefix, rank, count
