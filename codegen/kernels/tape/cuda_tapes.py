"""Tapes that the device keeps by itself: kernels that put records on a heap, and take them off.

The heap is a range of memory of which the host only knows how large it is. It begins with a state:

    0   bytes in use, from the first record on     8   the last record, 0 for none
    16  the record at hand: where its values are   24  bytes that were wanted, at the most
    32  how many tapes there are

Records follow: {the one below on its tape, the one before it on the heap, whether it was taken off},
then the values, each at a multiple of 16 bytes. A handle is the address of a word that names the top of
a tape; these words stand at the end of the heap. The room of records that were taken off is used again
as soon as no later one is left. Where there is no room, a record is not kept, and the state says how
much there should have been: the host runs the program again.
"""

from __future__ import annotations

import math
from collections.abc import MutableMapping, Sequence

from ....ir.types import I64
from ...cuda.emitter import GLOBAL, ThreadBuilder, Word
from ...cuda.target import CudaTarget
from ...llvm.builder import Value, zeros
from ...llvm.indices import IndexEmitter
from ...llvm.loops import LoopEmitter, Values
from ...llvm.scalars import ScalarEmitter
from ...loop_ir.kernel import Array

STATE_BYTES = 64
RECORD_BYTES = 32  # in front of the values of a record
HANDLE_BYTES = 8
THREADS = 256
SMALL = 1 << 12  # bytes of a value that one block copies
PEAK = 24  # where the state says how much was wanted


def record_bytes(values: Sequence[Array]) -> int:
    """Bytes of a record on the heap: its header, and its values, each rounded up to 16."""
    return RECORD_BYTES + sum(_rounded(a.nbytes) for a in values)


def _rounded(nbytes: int) -> int:
    return -(-nbytes // 16) * 16


class TapeEmitter:
    """Emits one kernel; `values` are what a record holds, in order."""

    def __init__(
        self,
        target: CudaTarget,
        handle: Array,
        values: Sequence[Array],
        alignments: Sequence[int],
        definitions: MutableMapping[str, str],
    ) -> None:
        arrays = list(dict.fromkeys([handle, *values]))
        self.b = ThreadBuilder(target, "i64", arrays, definitions)
        self.loops = LoopEmitter(IndexEmitter(ScalarEmitter(self.b)))
        self.heap, self.end = (self.b.parameter(GLOBAL, name, align=64) for name in ("heap", "end"))
        self.handle, self.values = handle, values
        self.widths = [math.gcd(a.nbytes, n, 16) for a, n in zip(values, alignments, strict=True)]
        self.b.written = {handle, *values}

    # Kernels.

    def new(self) -> None:
        """Make a tape."""
        self._set_handle(self._new_handle())

    def push(self) -> None:
        """Make a record, with its small values."""
        with self.b.when(self._is_first()):
            with self.b.when(self._is_null(self._handle_now())):
                self._set_handle(self._new_handle())
            self._reserve(record_bytes(self.values))
        self.b.barrier()
        self._copy_small(store=True)

    def pop(self) -> None:
        """Take the last record off, and its small values."""
        with self.b.when(self._is_first()):
            self._set(16, 0)
            tape = self._handle_now()
            with self.b.when(self._is_some(tape)):
                top = self._word_at(tape, 0)
                with self.b.when(self._is_some(top)):
                    self._take_off(tape, top)
        self.b.barrier()
        self._copy_small(store=False)

    def copy_record(self, number: int, store: bool) -> None:
        """Copy a large value, to the record at hand or from it."""
        start = self.b.block_number() * THREADS
        at = start + self.b.widened(self.b.thread())
        count = self.values[number].nbytes // self.widths[number]
        with self.b.when(at < count):
            self._copy_at(number, at, store)

    def blocks(self, number: int) -> int:
        return -(-(self.values[number].nbytes // self.widths[number]) // THREADS)

    # The state and the records.

    def _is_first(self) -> Value:
        return self.b.thread().eq(0)

    def _is_null(self, word: Value) -> Value:
        return word.eq(0)

    def _is_some(self, word: Value) -> Value:
        return word.ne(0)

    def _get(self, offset: int) -> Value:
        return self.b.load("i64", self.heap, offset, align=8)

    def _set(self, offset: int, word: Word) -> None:
        self.b.store(self.b.word(word), self.heap, offset, align=8)

    def _word_at(self, address: Value, offset: int) -> Value:
        return self.b.load("i64", self._at(address, offset), align=8)

    def _set_word_at(self, address: Value, offset: int, word: Word) -> None:
        self.b.store(self.b.word(word), self._at(address, offset), align=8)

    def _at(self, address: Value, offset: int) -> Value:
        base = address.to("inttoptr", GLOBAL)
        return self.b.offset(base, offset, "i8") if offset else base

    def _handle_now(self) -> Value:
        return self.b.load_elements(I64, self.b.pointers[self.handle], 1)

    def _set_handle(self, word: Value) -> None:
        self.b.store_elements(I64, word, self.b.pointers[self.handle])

    def _heap_start(self) -> Value:
        return self.heap.to("ptrtoint", "i64") + STATE_BYTES

    def _wanted(self, used: Value, tapes: Value) -> Value:
        """Note how much is wanted now; whether that much is there."""
        handles = tapes * HANDLE_BYTES
        wanted = used + handles
        before = self._get(PEAK)
        more = wanted > before
        self._set(PEAK, self.b.select(more, wanted, before))
        end = self.end.to("ptrtoint", "i64")
        room = end - self._heap_start()
        return wanted <= room

    def _new_handle(self) -> Value:
        """The handle of a new, empty tape; 0 if there is no room."""
        tapes = self._get(32) + 1
        self._set(32, tapes)
        fits = self._wanted(self._get(0), tapes)
        end = self.end.to("ptrtoint", "i64")
        handles = tapes * HANDLE_BYTES
        handle = end - handles
        with self.b.when(fits):
            self._set_word_at(handle, 0, 0)
        return self.b.select(fits, handle, 0)

    def _reserve(self, nbytes: int) -> None:
        """Room for a record on top of the tape."""
        used = self._get(0)
        after = used + nbytes
        self._set(0, after)
        self._set(16, 0)
        fits = self._wanted(after, self._get(32))
        tape = self._handle_now()
        with self.b.when(fits & self._is_some(tape)):
            record = self._heap_start() + used
            for offset, word in ((0, self._word_at(tape, 0)), (8, self._get(8)), (16, 0)):
                self._set_word_at(record, offset, word)
            self._set_word_at(tape, 0, record)
            self._set(8, record)
            self._set(16, record + RECORD_BYTES)

    def _take_off(self, tape: Value, top: Value) -> None:
        """Take the top off, and give the room of records back that nobody needs, from the last on."""
        self._set_word_at(tape, 0, self._word_at(top, 0))
        self._set(16, top + RECORD_BYTES)
        self._set_word_at(top, 16, 1)
        start = self._heap_start()
        again, done = self.b.later("again"), self.b.later("kept")
        self.b.jump(again)
        self.b.at(again)
        with self.b.scope():
            last = self._get(8)
            taken, free = self.b.later("given"), self.b.later("free")
            self.b.branch(self._is_some(last), taken, done)
            self.b.at(taken)
            self.b.branch(self._is_some(self._word_at(last, 16)), free, done)
            self.b.at(free)
            self._set(0, last - start)
            self._set(8, self._word_at(last, 8))
            self.b.jump(again)
        self.b.at(done)

    # Values.

    def _offset(self, number: int) -> int:
        return sum(_rounded(a.nbytes) for a in self.values[:number])

    def is_small(self, number: int) -> bool:
        """Whether the block that makes the record copies the value."""
        return self.values[number].nbytes <= SMALL

    def _copy_small(self, store: bool) -> None:
        first = self.b.widened(self.b.thread())
        for number, array in enumerate(self.values):
            if not self.is_small(number) or not array.nbytes:
                continue

            def one(at: Value, values: Values, number: int = number) -> Values:
                self._copy_at(number, at, store)
                return values

            self.loops.loop(first, array.nbytes // self.widths[number], THREADS, [], one)

    def _copy_at(self, number: int, at: Word, store: bool) -> None:
        width = self.widths[number]
        ty = {16: "<4 x i32>"}.get(width, f"i{8 * width}")
        here = self._get(16)
        some = self._is_some(here)
        mine = self.b.offset(self.b.pointers[self.values[number]], at, ty)
        with self.b.when(some):
            base = self._at(here, self._offset(number))
            record = self.b.offset(base, at, ty)
            source, target = (mine, record) if store else (record, mine)
            self.b.store(self.b.load(ty, source, align=width), target, align=width)
        if not store:
            with self.b.when(~some):
                self.b.store(zeros(ty), mine, align=width)
