"""Blocks that take tiles of rows in turns, and count what comes before theirs.

A tile learns from its predecessors by looking back: each shows how many elements it has of each kind as
soon as it knows, and how many there are up to its end as soon as it knows that. A word has a count and
what it counts, so that words need no order among each other. Tiles are handed out in order, so that
whoever is waited for has begun.
"""

from __future__ import annotations

from collections.abc import Callable

from ...cuda.emitter import GLOBAL
from ...cuda.warps import EVERYBODY, WARP
from ...schedule.sort_blocks import U32
from .cuda_elements import Element, ElementEmitter

SHOWN = 1 << 30  # added to a tile's own count,
KNOWN = 1 << 31  # or to the count up to its end
COUNT = SHOWN - 1


class TurnEmitter(ElementEmitter):
    """Emits kernels with words of 32 bits in memory; %table has `kinds` of them for each tile."""

    kinds: int

    def take_turn(self, mine: str) -> None:
        """Put the number of this block's tile into the shared word `mine`: one thread does so."""
        self.put_word(mine, "0", self.add(f"{GLOBAL}%ticket", "1", "device"))

    def before(
        self, here: str, first: str, start: str, total: str, then: Callable[[str], None]
    ) -> None:
        """Do something with how many elements come before those that the word `here` of the table
        counts, which are `total`. In the `first` tile of a row there are `start`."""
        op = self.b.value_of
        with self.b.when(first):
            self._show(here, KNOWN, op(f"add i32 {start}, {total}"))
            then(start)
        with self.b.when(op(f"xor i1 {first}, true")):
            self._show(here, SHOWN, total)
            found = self._look_back(here)
            self._show(here, KNOWN, op(f"add i32 {found}, {total}"))
            then(found)

    def _show(self, here: str, state: int, count: str) -> None:
        """Let the tiles that follow see a count."""
        text = self.b.value_of(f"or i32 {count}, {state}")
        self.store_word(text, self.in_table("%table", here), "atomic ")

    def _look_back(self, here: str) -> str:
        """How many elements of the row come before those that the word `here` of the table counts."""
        ty = self.b.index_type
        look, done = self.b.later("look"), self.b.later("known")
        start = self.b.value_of(f"sub {ty} {here}, {self.kinds}")
        at, so_far = self.b.parameters(look, ty, "i32")
        self.b.jump(look, start, 0)
        self.b.at(look)
        with self.b.scope():
            word = self.load_word(self.in_table("%table", at), "atomic ")
            count = self.b.value_of(f"and i32 {word}, {COUNT}")  # 0 while nothing is shown
            total = so_far + count
            shown = self.b.value_of(f"icmp ne i32 {word}, 0")
            step = self.b.value_of(f"select i1 {shown}, {ty} {self.kinds}, {ty} 0")
            before = at - step
            known = self.b.value_of(f"icmp slt i32 {word}, 0")
        self.b.fork(known, done, (), look, (before, total))
        self.b.at(done)
        return total

    def lane_scan(self, own: str) -> str:
        """The running sum over the lanes of a warp."""
        op = self.b.value_of
        for k in range(WARP.bit_length() - 1):
            name = "llvm.nvvm.shfl.sync.up.i32p"
            pair = self.b.nvvm(name, EVERYBODY, own, str(1 << k), "0", fresh=True)
            other = op(f"extractvalue {{ i32, i1 }} {pair}, 0")
            some = op(f"extractvalue {{ i32, i1 }} {pair}, 1")
            own = op(f"select i1 {some}, i32 {op(f'add i32 {own}, {other}')}, i32 {own}")
        return own

    # Digits.

    @property
    def word_type(self) -> str:
        """The type that digits are taken from."""
        return "i64" if self.dtype.itemsize == 8 else "i32"

    def bits_of(self, item: Element, shift: int, bits: int) -> str:
        ty, op = self.word_type, self.b.value_of
        moved = op(f"lshr {ty} {self.wide(item)}, {shift}") if shift else self.wide(item)
        return self.as_word(op(f"and {ty} {moved}, {(1 << bits) - 1}"))

    def wide(self, item: Element) -> str:
        key = self.key(item)
        narrow = self.dtype.itemsize < 4
        return self.b.value_of(f"zext {self.element} {key} to i32") if narrow else key

    def as_word(self, text: str) -> str:
        return self.b.value_of(f"trunc i64 {text} to i32") if self.word_type == "i64" else text

    # Words.

    def in_table(self, name: str, at: str) -> str:
        return self.b.element_at(U32, f"{GLOBAL}{name}", at)

    def get_word(self, memory: str, at: str) -> str:
        return self.load_word(self.b.in_shared(U32, memory, at), "")

    def put_word(self, memory: str, at: str, text: str) -> None:
        self.store_word(text, self.b.in_shared(U32, memory, at))

    def load_word(self, place: str, atomic: str) -> str:
        order = ' syncscope("device") monotonic' if atomic else ""
        return self.b.fresh_of(f"load {atomic}i32, ptr {place}{order}, align 4")

    def store_word(self, text: str, place: str, atomic: str = "") -> None:
        order = ' syncscope("device") monotonic' if atomic else ""
        self.b.lines.append(f"  store {atomic}i32 {text}, ptr {place}{order}, align 4")

    def add(self, place: str, text: str, scope: str) -> str:
        """Add atomically; what was there before."""
        return self.b.fresh_of(
            f'atomicrmw add ptr {place}, i32 {text} syncscope("{scope}") monotonic'
        )
