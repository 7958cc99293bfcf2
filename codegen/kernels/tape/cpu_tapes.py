"""Tapes: growable stacks in native memory, for what a loop of unknown length must remember.

A tape is a struct that the handle points at: the link of the call's list of tapes, the top of the stack,
and the bounds of the block that the top is in. Blocks are linked to the ones below; a block that has
become empty is freed, and all that is left is freed when the entry returns, whatever happened. So a tape
needs no owner, and one that is never read leaks nothing. An empty tape gives zeros, and for a tape in
a record a null handle, which the first push on it replaces. Records are rounded to 16 bytes and do not
cross blocks; blocks double in size up to a limit.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from ...llvm.builder import NULL, Value, constant, symbol
from ...llvm.modules import Function
from ...loop_ir.kernel import Array
from ...loop_ir.steps import StoreRoot, TapeNew, TapePop, TapePush
from ..stores.layout import free_all, nothing

if TYPE_CHECKING:
    from ...program.entry import EntryEmitter

_WORD = 8
_STORES = 8  # where in a call's lists that of its containers is
_FIRST_BLOCK = 1 << 9
_LARGEST_BLOCK = 1 << 24

# Byte offsets. A tape: the next tape of the call, its block, top and end of the stack, the next block's
# size. A block: the one below, what the top and the end were when it was begun, then the records.
_LINK, _BLOCK, _TOP, _END, _SIZE, _TAPE_BYTES = 0, 8, 16, 24, 32, 40
_BELOW, _SAVED_TOP, _SAVED_END, _BLOCK_HEAD = 0, 8, 16, 32


@cache
def runtime() -> tuple[Function, ...]:
    """What entries with tapes call."""
    return new_tape(), _open(new_tape()), _push(), _pop(), _room(), _free_all()


@cache
def new_tape() -> Function:
    """An empty tape in the call's list; null if there is no memory."""
    f = Function("ptr", "tape_new", internal=True, tapes="ptr")
    tape = f.call("ptr", "malloc", _TAPE_BYTES)
    out, made = f.later("out"), f.later("made")
    f.branch(tape.eq(NULL), out, made)
    f.at(made)
    f.store(f.load("ptr", f.tapes), tape, _LINK)
    f.store(tape, f.tapes)
    for field in (_BLOCK, _TOP, _END):
        f.store(NULL, tape, field)
    f.store(f.literal("i64", _FIRST_BLOCK), tape, _SIZE)
    f.jump(out)
    f.at(out)
    f.ret(tape)
    return f


def _open(new: Function) -> Function:
    """The tape behind a handle: a new one if it is null, as an empty tape gave for one in a record."""
    f = Function("ptr", "tape_open", internal=True, handle="ptr", tapes="ptr")
    make, out = f.later("make"), f.later("out", tape="ptr")
    old = f.load("ptr", f.handle)
    f.fork(old.eq(NULL), make, (), out, (old,))
    f.at(make)
    made = f.run(new, f.tapes)
    f.store(made, f.handle)
    f.jump(out, made)
    f.ret(*f.at(out))
    return f


@cache
def _push() -> Function:
    """Space for n bytes on top of the tape; null if there is no memory."""
    f = Function("ptr", "tape_push", internal=True, tape="ptr", n="i64")
    here, grow, none, made = (f.later(name) for name in ("here", "grow", "none", "made"))
    top_at, end_at = f.offset(f.tape, _TOP), f.offset(f.tape, _END)
    top, end = f.load("ptr", top_at), f.load("ptr", end_at)
    first = top.to("ptrtoint", "i64")
    room = end.to("ptrtoint", "i64") - first
    f.branch(room.uge(f.n), here, grow)
    f.at(here)
    f.store(f.offset(top, f.n), top_at)
    f.ret(top)
    f.at(grow)
    size_at = f.offset(f.tape, _SIZE)
    size = f.load("i64", size_at)
    space = f.larger(f.n, size)
    block = f.call("ptr", "malloc", space + _BLOCK_HEAD)
    f.branch(block.eq(NULL), none, made)
    f.at(none)
    f.ret(NULL)
    f.at(made)
    twice = size * 2
    f.store(f.select(twice.ugt(_LARGEST_BLOCK), _LARGEST_BLOCK, twice), size_at)
    block_at = f.offset(f.tape, _BLOCK)
    f.store(f.load("ptr", block_at), block, _BELOW)
    f.store(top, block, _SAVED_TOP)
    f.store(end, block, _SAVED_END)
    f.store(block, block_at)
    data = f.offset(block, _BLOCK_HEAD)
    f.store(f.offset(data, f.n), top_at)
    f.store(f.offset(data, space), end_at)
    f.ret(data)
    return f


@cache
def _room() -> Function:
    """The tape, or a new one if it is null, with room for n bytes; null if there is no memory."""
    f = Function("ptr", "tape_room", internal=True, tape="ptr", n="i64", tapes="ptr")
    make, none, there, out = (
        f.later("make"),
        f.later("none"),
        f.later("there", t="ptr"),
        f.later("out"),
    )
    f.fork(f.tape.eq(NULL), make, (), there, (f.tape,))
    f.at(make)
    made = f.run(new_tape(), f.tapes)
    f.fork(made.eq(NULL), none, (), there, (made,))
    (tape,) = f.at(there)
    record = f.run(_push(), tape, f.n)
    f.branch(record.eq(NULL), none, out)
    f.at(out)
    f.store(record, tape, _TOP)
    f.ret(tape)
    f.at(none)
    f.ret(NULL)
    return f


@cache
def _pop() -> Function:
    """Drop the block that a pop has emptied, then take n bytes off. Null if the tape is empty."""
    f = Function("ptr", "tape_pop", internal=True, tape="ptr", n="i64")
    begin, look, inside, drop, take, nothing = (
        f.later(name) for name in ("begin", "look", "inside", "drop", "take", "nothing")
    )
    f.branch(f.tape.eq(NULL), nothing, begin)
    f.at(begin)
    top_at, end_at, block_at = (f.offset(f.tape, field) for field in (_TOP, _END, _BLOCK))
    f.jump(look)
    f.at(look)
    block = f.load("ptr", block_at)
    f.branch(block.eq(NULL), nothing, inside)
    f.at(inside)
    top = f.load("ptr", top_at)
    f.branch(top.eq(f.offset(block, _BLOCK_HEAD)), drop, take)
    f.at(drop)
    below, old_top, old_end = (
        f.load("ptr", block, field) for field in (_BELOW, _SAVED_TOP, _SAVED_END)
    )
    for value, slot in ((below, block_at), (old_top, top_at), (old_end, end_at)):
        f.store(value, slot)
    f.call("void", "free", block)
    f.jump(look)
    f.at(take)
    record = f.offset(top, 0 - f.n)
    f.store(record, top_at)
    f.ret(record)
    f.at(nothing)
    f.ret(NULL)
    return f


def _free_all() -> Function:
    f = Function("void", "tapes_free", internal=True, tapes="ptr")
    with f.loop(tape=f.load("ptr", f.tapes)) as each:
        each.going(each.tape.ne(NULL))
        with f.loop(block=f.load("ptr", each.tape, _BLOCK)) as blocks:
            blocks.going(blocks.block.ne(NULL))
            below = f.load("ptr", blocks.block, _BELOW)
            f.call("void", "free", blocks.block)
            blocks.next(below)
        link = f.load("ptr", each.tape, _LINK)
        f.call("void", "free", each.tape)
        each.next(link)
    f.ret()
    return f


# What scalar code does with a tape where it stands.


def with_room(b: Any, tape: Value, nbytes: int, tapes: Value) -> Value:
    """The tape with room for a record; null if there is no memory. Mostly there is room."""
    look, more, out = b.later("look"), b.later("more"), b.later("room", tape="ptr")
    b.fork(tape.eq(NULL), more, (), look, hint=b.unlikely())
    b.at(look)
    with b.scope():
        room = b.load("ptr", tape, _END, align=8).to("ptrtoint", "i64")
        room = room - b.load("ptr", tape, _TOP, align=8).to("ptrtoint", "i64")
        b.fork(room.ult(nbytes), more, (), out, (tape,), hint=b.unlikely())
    b.at(more)
    with b.scope():
        b.jump(out, b.run(_room(), tape, nbytes, tapes))
    found: Value = b.at(out)[0]
    return found


def push_there(b: Any, tape: Value, nbytes: int) -> Value:
    """Where the record is that comes on top of a tape with room for it."""
    top: Value = b.load("ptr", tape, _TOP, align=8)
    b.store(b.offset(top, nbytes), tape, _TOP, align=8)
    return top


def pop_there(b: Any, tape: Value, nbytes: int) -> Value:
    """Where the record is that has been on top; zeros, if there was none."""
    look, in_block, take = b.later("look"), b.later("in_block"), b.later("take")
    other, out = b.later("other"), b.later("popped", record="ptr")
    b.fork(tape.eq(NULL), other, (), look, hint=b.unlikely())
    b.at(look)
    with b.scope():
        block, top = (b.load("ptr", tape, field, align=8) for field in (_BLOCK, _TOP))
        b.fork(block.eq(NULL), other, (), in_block, hint=b.unlikely())
        b.at(in_block)
        b.fork(top.eq(b.offset(block, _BLOCK_HEAD)), other, (), take, hint=b.unlikely())
        b.at(take)
        record = b.offset(top, -nbytes)
        b.store(record, tape, _TOP, align=8)
        b.jump(out, record)
    b.at(other)
    with b.scope():
        record = b.run(_pop(), tape, nbytes)
        b.jump(out, b.select(record.ne(NULL), record, b.table(nothing(nbytes), "nothing")))
    found: Value = b.at(out)[0]
    return found


def wrapper(body: Function, name: str) -> Function:
    """The entry around what was to be it, which takes the lists of tapes and containers, too."""
    body.name, body.address, body.internal = "body", symbol("body"), True
    f = Function("i32", name, args="ptr")
    tapes = f.alloca("[2 x ptr]", align=8)
    stores = f.offset(tapes, _STORES)
    f.store(NULL, tapes)
    f.store(NULL, stores)
    code = f.run(body, f.args[0], tapes)
    f.call("void", "tapes_free", tapes)
    f.call("void", free_all().address, stores)
    f.ret(code)
    return f


def _tapes(e: EntryEmitter) -> Value:
    """The lists of tapes and of containers, for which the entry gets one more parameter."""
    if e.tapes is None:
        *_, e.tapes = e.f.takes(args="ptr", tapes="ptr")
        e.add((*runtime(), free_all()))
    return e.tapes


def root(e: EntryEmitter, step: StoreRoot) -> None:
    """Where the list of the call's containers, or of its tapes, is."""
    stores = e.f.offset(_tapes(e), 0 if step.tapes else _STORES)
    e.f.store(stores.to("ptrtoint", "i64"), e.pointer(step.handle), align=8)


def new(e: EntryEmitter, step: TapeNew) -> None:
    """An empty tape; the call fails, at `step.site`, where there is no memory."""
    tape = e.f.call("ptr", symbol("tape_new"), _tapes(e))
    e.fail_if(tape.eq(NULL), step.site)
    e.f.store(tape, e.pointer(step.handle), align=8)


def push(e: EntryEmitter, step: TapePush) -> None:
    """One more record: copies of the step's arrays; the call fails where there is no memory."""
    tape = e.f.call("ptr", symbol("tape_open"), e.pointer(step.handle), _tapes(e))
    e.fail_if(tape.eq(NULL), step.site)
    record = e.f.call("ptr", symbol("tape_push"), tape, _record_bytes(step))
    e.fail_if(record.eq(NULL), step.site)
    for at, array, nbytes in _addresses(e, record, step):
        e.copy(at, e.pointer(array), nbytes)


def pop(e: EntryEmitter, step: TapePop) -> None:
    """The last record, taken off and copied to the step's arrays; zeros where there is none."""
    f = e.f
    tape = f.load("ptr", e.pointer(step.handle), align=8)
    record = f.call("ptr", symbol("tape_pop"), tape, _record_bytes(step))
    full, empty, end = f.later("record"), f.later("zeros"), f.later("popped")
    f.branch(record.eq(NULL), empty, full)
    f.at(full)
    for at, array, nbytes in _addresses(e, record, step):
        e.copy(e.pointer(array), at, nbytes)
    f.jump(end)
    f.at(empty)
    for array in step.values:
        if array.nbytes:
            f.fill(e.pointer(array), 0, array.nbytes, align=1)
    f.jump(end)
    f.at(end)


def _addresses(
    e: EntryEmitter, record: Value, step: TapePush | TapePop
) -> list[tuple[Value, Array, int]]:
    """Where in a record each value is."""
    offsets, _ = places([array.nbytes for array in step.values])
    return [
        (e.f.offset(record, constant("i64", offset)), array, array.nbytes)
        for array, offset in zip(step.values, offsets, strict=True)
        if array.nbytes
    ]


def _record_bytes(step: TapePush | TapePop) -> int:
    return places([array.nbytes for array in step.values])[1]


def places(sizes: Sequence[int]) -> tuple[list[int], int]:
    """Where in a record values of so many bytes are, and how many bytes it has: numbers one after the
    other, then arrays, which begin at multiples of 16."""
    order = sorted(range(len(sizes)), key=lambda k: sizes[k] > _WORD)
    offsets, end = [0] * len(sizes), 0
    for k in order:
        unit = _WORD if sizes[k] <= _WORD else 16
        offsets[k] = -(-end // unit) * unit
        end = offsets[k] + -(-sizes[k] // unit) * unit
    return offsets, max(-(-end // 16) * 16, 16)
