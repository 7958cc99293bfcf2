"""Tapes of programs whose tapes the device does not keep by itself (`heaps`): stacks that grow while a
program runs, for what the backward pass of a loop needs.

    tapes = Tapes(pool, stream)
    handle = tapes.new()
    tapes.push(handle, [(address, nbytes), ...]);  tapes.pop(handle, [(address, nbytes), ...])

Records are copied on the device. They stand one after the other in blocks that double in size up to a
limit; a block that has become empty is given back, and all that is left when the run's `Tapes` die. The
pool orders this by the stream, so nobody waits for the copies.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...ir.record import field, record
from .memory import DeviceBuffer, Pool

_FIRST_BLOCK = 1 << 14
_LARGEST_BLOCK = 1 << 26
_ALIGN = 256  # what each value of a record starts at a multiple of

Places = Sequence[tuple[int, int]]  # addresses and bytes


@record(frozen=False)
class _TapeBlock:
    buffer: DeviceBuffer
    used: int = 0


@record(frozen=False)
class _Tape:
    blocks: list[_TapeBlock] = field(default_factory=list)
    records: list[int] = field(default_factory=list)  # bytes of each, in its block
    following: int = _FIRST_BLOCK  # bytes of the next block


class Tapes:
    """The tapes of one run, by their handles: 1, 2, ..."""

    def __init__(self, pool: Pool, stream: int) -> None:
        self._pool, self._stream = pool, stream
        self._tapes: list[_Tape] = []

    def new(self) -> int:
        self._tapes.append(_Tape())
        return len(self._tapes)

    def push(self, handle: int, values: Places) -> None:
        """Put copies of what is at some places on a tape."""
        tape, copy = self._tapes[handle - 1], self._pool.context.copy
        nbytes = _room(values)
        if not tape.blocks or tape.blocks[-1].used + nbytes > tape.blocks[-1].buffer.nbytes:
            size = max(tape.following, nbytes)
            tape.following = min(2 * tape.following, _LARGEST_BLOCK)
            tape.blocks.append(_TapeBlock(self._pool.allocate(size, self._stream, "a tape")))
        block = tape.blocks[-1]
        at = block.buffer.address + block.used
        for source, length in values:
            copy(at, source, length, self._stream)
            at += _rounded(length)
        block.used += nbytes
        tape.records.append(nbytes)

    def pop(self, handle: int, values: Places) -> None:
        """Take the last record off, and put it to some places; zeros if there is none."""
        context = self._pool.context
        tape = self._tapes[handle - 1] if handle else None
        if tape is None or not tape.records:
            for target, length in values:
                context.fill(target, length, 1, 0, self._stream)
            return
        block = tape.blocks[-1]
        block.used -= tape.records.pop()
        at = block.buffer.address + block.used
        for target, length in values:
            context.copy(target, at, length, self._stream)
            at += _rounded(length)
        if not block.used:
            tape.blocks.pop()


def _rounded(nbytes: int) -> int:
    return -(-nbytes // _ALIGN) * _ALIGN


def _room(values: Places) -> int:
    return max(sum(_rounded(nbytes) for _, nbytes in values), _ALIGN)
