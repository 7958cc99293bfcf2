"""Blocks that take tiles of rows in turns, and count what comes before theirs.

A tile learns from its predecessors by looking back: each shows how many elements it has of each kind as
soon as it knows, and how many there are up to its end as soon as it knows that. A word has a count and
what it counts, so that words need no order among each other. Tiles are handed out in order, so that
whoever is waited for has begun. (D. Merrill, M. Garland, Single-pass parallel prefix scan with decoupled
look-back, 2016.)
"""

from __future__ import annotations

from collections.abc import Callable

from ...cuda.emitter import Word
from ...cuda.warps import EVERYBODY, WARP
from ...llvm.builder import Value
from ...schedule.sort_blocks import U32
from .cuda_elements import Element, ElementEmitter

SHOWN = 1 << 30  # added to a tile's own count,
COMPLETE = 1 << 31  # or to the count up to its end
COUNT = SHOWN - 1


class LookBackEmitter(ElementEmitter):
    """Emits kernels with words of 32 bits in memory; `shown` has `kinds` of them for each tile."""

    kinds: int
    ticket: Value  # a word that counts blocks
    shown: Value

    def take_turn(self, mine: Value) -> None:
        """Put the number of this block's tile into the shared word `mine`: one thread does so."""
        self.put_word(mine, 0, self.add(self.ticket, 1, "device"))

    def before(
        self, here: Word, first: Value, start: Word, total: Word, then: Callable[[Word], None]
    ) -> None:
        """Do something with how many elements come before those that the word `here` of the table
        counts, which are `total`. In the `first` tile of a row there are `start`."""
        with self.b.when(first):
            self._show(here, COMPLETE, start + total)
            then(start)
        with self.b.when(~first):
            self._show(here, SHOWN, total)
            before = self._look_back(here)
            self._show(here, COMPLETE, before + total)
            then(before)

    def _show(self, here: Word, state: int, count: Word) -> None:
        """Let the tiles that follow see a count."""
        text = count | state
        self.store_word(text, self.in_table(self.shown, here), atomic=True)

    def _look_back(self, here: Word) -> Value:
        """How many elements of the row come before those that the word `here` of the table counts."""
        ty = self.b.index_type
        look, done = self.b.later("look"), self.b.later("known")
        start = here - self.kinds
        at, so_far = self.b.parameters(look, ty, "i32")
        self.b.jump(look, start, 0)
        self.b.at(look)
        with self.b.scope():
            word = self.load_word(self.in_table(self.shown, at), atomic=True)
            count = word & COUNT  # 0 while nothing is shown
            total = so_far + count
            shown = word.ne(0)
            step = self.b.select(shown, self.b.literal(ty, self.kinds), 0)
            before = at - step
            complete = word < 0
        self.b.fork(complete, done, (), look, (before, total))
        self.b.at(done)
        return total

    def lane_scan(self, own: Word) -> Word:
        """The running sum over the lanes of a warp."""
        for k in range(WARP.bit_length() - 1):
            name = "llvm.nvvm.shfl.sync.up.i32p"
            pair = self.b.nvvm(name, EVERYBODY, own, 1 << k, 0, fresh=True)
            other = self.b.field(pair, 0)
            some = self.b.field(pair, 1)
            own = self.b.select(some, own + other, own)
        return own

    # Digits.

    @property
    def word_type(self) -> str:
        """The type that digits are taken from."""
        return "i64" if self.dtype.itemsize == 8 else "i32"

    def bits_of(self, item: Element, shift: int, bits: int) -> Value:
        moved = self.wide(item) >> shift if shift else self.wide(item)
        return self.as_word(moved & (1 << bits) - 1)

    def wide(self, item: Element) -> Value:
        key = self.key(item)
        narrow = self.dtype.itemsize < 4
        return key.zext("i32") if narrow else key

    def as_word(self, text: Value) -> Value:
        return text.trunc("i32") if self.word_type == "i64" else text

    # Words.

    def in_table(self, table: Value, at: Value | int) -> Value:
        return self.b.element_at(U32, table, at)

    def get_word(self, memory: Value, at: Value | int) -> Value:
        return self.load_word(self.b.in_shared(U32, memory, at))

    def put_word(self, memory: Value, at: Value | int, word: Value | int) -> None:
        self.store_word(word, self.b.in_shared(U32, memory, at))

    def load_word(self, address: Value, atomic: bool = False) -> Value:
        if atomic:
            return self.b.load_atomic("i32", address, 'syncscope("device") monotonic')
        return self.b.load("i32", address, align=4)

    def word32(self, word: Word) -> Value:
        """A word as a value, which may be a number."""
        return word if isinstance(word, Value) else self.b.literal("i32", word)

    def store_word(self, word: Word | int, address: Value, atomic: bool = False) -> None:
        value = self.word32(word)
        if atomic:
            self.b.store_atomic(value, address, 'syncscope("device") monotonic')
        else:
            self.b.store(value, address, align=4)

    def add(self, address: Value, word: Value | int, scope: str) -> Value:
        """Add atomically; what was there before."""
        value = self.word32(word)
        return self.b.update_atomic("add", address, value, f'syncscope("{scope}") monotonic')
