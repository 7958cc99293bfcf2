"""Sequences: records one after the other, with room behind them, and before them where some were taken.

So taking from either end, and adding to either, costs the same however long a sequence is.
"""

from __future__ import annotations

from functools import cache

from ...llvm.builder import NULL, Builder, Value, constant
from .layout import (
    BLOCK,
    END,
    FIRST,
    LEAST_BYTES,
    LENGTH,
    Records,
    StoreFunction,
    first_of,
    length_of,
    new,
)

# Of any records: sizes are in bytes


@cache
def reserve() -> StoreFunction:
    """Room for `more` bytes behind the `used` ones; false if there is no memory."""
    f = StoreFunction("i1", "reserve", s="ptr", used="i64", more="i64")
    first, end = first_of(f, f.s), f.load("ptr", f.s, END)
    room = _difference(end, first) - f.used
    enough, look, shift, larger = (f.later(n) for n in ("enough", "look", "shift", "larger"))
    f.branch(room.uge(f.more), enough, look)
    f.at(enough)
    f.ret(constant("i1", 1))
    f.at(look)
    block = f.load("ptr", f.s, BLOCK)
    before = _difference(first, block)
    f.branch(before.uge(f.used) & (before + room).uge(f.more), shift, larger)
    f.at(shift)
    f.move(block, first, f.used)
    f.store(block, f.s, FIRST)
    f.ret(constant("i1", 1))
    f.at(larger)
    f.ret(f.run(_moved(), f.s, f.used, f.used + f.more + LEAST_BYTES, 0))
    return f


@cache
def reserve_before() -> StoreFunction:
    """Room for `more` bytes before the `used` ones."""
    f = StoreFunction("i1", "reserve_before", s="ptr", used="i64", more="i64")
    before = _difference(first_of(f, f.s), f.load("ptr", f.s, BLOCK))
    enough, larger = f.later("enough"), f.later("larger")
    f.branch(before.uge(f.more), enough, larger)
    f.at(enough)
    f.ret(constant("i1", 1))
    f.at(larger)
    room = f.used + f.more + LEAST_BYTES
    f.ret(f.run(_moved(), f.s, f.used, room, room))
    return f


@cache
def _moved() -> StoreFunction:
    """The `used` bytes into a new block, with so many bytes of room behind and before them."""
    f = StoreFunction("i1", "moved", s="ptr", used="i64", behind="i64", before="i64")
    space = f.used + f.behind + f.before
    made = f.allocate(space)
    there, none = f.later("there"), f.later("none")
    f.branch(made.eq(NULL), none, there)
    f.at(none)
    f.ret(constant("i1", 0))
    f.at(there)
    first = f.offset(made, f.before)
    f.copy(first, first_of(f, f.s), f.used)
    f.leave_block(f.s)
    f.store(made, f.s, BLOCK)
    f.store(first, f.s, FIRST)
    f.store(f.offset(made, space), f.s, END)
    f.ret(constant("i1", 1))
    return f


def _difference(a: Value, b: Value) -> Value:
    return a.to("ptrtoint", "i64") - b.to("ptrtoint", "i64")


@cache
def delete() -> StoreFunction:
    """Take out the record of `n` bytes at place `i`, which is there."""
    f = StoreFunction("void", "delete", s="ptr", n="i64", i="i64")
    first, length = first_of(f, f.s), length_of(f, f.s)
    f.store(length - 1, f.s, LENGTH)
    at_start, inside = f.later("at_start"), f.later("inside")
    f.branch(f.i.eq(0), at_start, inside)
    f.at(at_start)
    f.store(f.offset(first, f.n), f.s, FIRST)
    f.ret()
    f.at(inside)
    at = f.offset(first, f.i * f.n)
    f.move(at, f.offset(at, f.n), (length - 1 - f.i) * f.n)
    f.ret()
    return f


@cache
def open_gap() -> StoreFunction:
    """Room for a record of `n` bytes at place `i`, clamped as `list.insert` does: where. There is room
    at the end."""
    f = StoreFunction("ptr", "open_gap", s="ptr", n="i64", i="i64")
    length = length_of(f, f.s)
    i = f.select(f.i < 0, f.i + length, f.i)
    i = f.select(i < 0, 0, i)
    i = f.select(i > length, length, i)
    at = f.offset(first_of(f, f.s), i * f.n)
    f.move(f.offset(at, f.n), at, (length - i) * f.n)
    f.store(length + 1, f.s, LENGTH)
    f.ret(at)
    return f


@cache
def extend() -> StoreFunction:
    """Add what is in another sequence, or in this one."""
    f = StoreFunction("i1", "extend", s="ptr", other="ptr", n="i64")
    length, more = length_of(f, f.s), length_of(f, f.other)
    good, bad = f.later("good"), f.later("bad")
    f.branch(f.run(reserve(), f.s, length * f.n, more * f.n), good, bad)
    f.at(bad)
    f.ret(constant("i1", 0))
    f.at(good)
    f.copy(f.offset(first_of(f, f.s), length * f.n), first_of(f, f.other), more * f.n)
    f.store(length + more, f.s, LENGTH)
    f.ret(constant("i1", 1))
    return f


@cache
def repeat() -> StoreFunction:
    """As often as `times` what is there: `items *= times`."""
    f = StoreFunction("i1", "repeat", s="ptr", times="i64", n="i64")
    length = length_of(f, f.s)
    times = f.select(f.times < 0, 0, f.times)
    good, bad = f.later("good"), f.later("bad")
    f.branch(f.run(reserve(), f.s, length * f.n, length * times * f.n), good, bad)
    f.at(bad)
    f.ret(constant("i1", 0))
    f.at(good)
    first, nbytes = first_of(f, f.s), length * f.n
    with f.each(times, f.literal("i64", 1)) as k:
        f.copy(f.offset(first, k * nbytes), first, nbytes)
    f.store(length * times, f.s, LENGTH)
    f.ret(constant("i1", 1))
    return f


@cache
def part(words: int) -> StoreFunction:
    """A new sequence of `count` records from `start` on, each `step` after the one before; null if there
    is no memory."""
    f = StoreFunction(
        "ptr", f"part_{words}", s="ptr", root="ptr", start="i64", count="i64", step="i64"
    )
    n = 8 * words
    made, none, filled = f.run(new(), f.root), f.later("none"), f.later("filled")
    there, begin = f.later("there"), f.later("begin")
    f.branch(made.eq(NULL), none, there)
    f.at(there)
    f.branch(f.run(reserve(), made, 0, f.count * n), begin, none)
    f.at(none)
    f.ret(NULL)
    f.at(begin)
    source, target = first_of(f, f.s), first_of(f, made)
    records = Records(())
    records.nbytes = n
    with f.each(f.count) as k:
        records.copy(f, f.offset(target, k * n), f.offset(source, (f.start + k * f.step) * n))
    f.store(f.count, made, LENGTH)
    f.jump(filled)
    f.at(filled)
    f.ret(made)
    return f


@cache
def reverse(words: int) -> StoreFunction:
    """Turn the order around."""
    f = StoreFunction("void", f"reverse_{words}", s="ptr")
    n = 8 * words
    length = length_of(f, f.s)
    first = first_of(f, f.s)
    with f.each(length >> 1) as k:
        a, b = f.offset(first, k * n), f.offset(first, (length - 1 - k) * n)
        for offset in range(0, n, 8):
            x, y = f.load("i64", a, offset), f.load("i64", b, offset)
            f.store(y, a, offset)
            f.store(x, b, offset)
    f.ret()
    return f


# Of records with values that are compared or written


@cache
def find(records: Records) -> StoreFunction:
    """The first place from `start` on where a record is; -1: nowhere."""
    f = StoreFunction("i64", f"find_{records.name}", s="ptr", start="i64", **records.params("x"))
    wanted = f.args[2:]
    first, length = first_of(f, f.s), length_of(f, f.s)
    with f.loop(i=f.start) as loop:
        loop.going(loop.i < length)
        here = records.load(f, f.offset(first, loop.i * records.nbytes))
        loop.going(~records.equal(f, here, wanted))
        loop.next(loop.i + 1)
    f.ret(f.select(loop.i < length, loop.i, -1))
    return f


@cache
def count(records: Records) -> StoreFunction:
    """How often a record is there."""
    f = StoreFunction("i64", f"count_{records.name}", s="ptr", **records.params("x"))
    wanted = f.args[1:]
    first = first_of(f, f.s)
    with f.loop(i=0, found=0) as loop:
        loop.going(loop.i < length_of(f, f.s))
        here = records.load(f, f.offset(first, loop.i * records.nbytes))
        loop.next(loop.i + 1, loop.found + records.equal(f, here, wanted).zext("i64"))
    f.ret(loop.found)
    return f


@cache
def fill(records: Records) -> StoreFunction:
    """Add one record `n` times."""
    f = StoreFunction("i1", f"fill_{records.name}", s="ptr", n="i64", **records.params("x"))
    values = f.args[2:]
    length, n = length_of(f, f.s), f.select(f.n < 0, 0, f.n)
    good, bad = f.later("good"), f.later("bad")
    size = records.nbytes
    f.branch(f.run(reserve(), f.s, length * size, n * size), good, bad)
    f.at(bad)
    f.ret(constant("i1", 0))
    f.at(good)
    behind = f.offset(first_of(f, f.s), length * size)
    with f.each(n) as k:
        records.store(f, f.offset(behind, k * size), values)
    f.store(length + n, f.s, LENGTH)
    f.ret(constant("i1", 1))
    return f


def place_of(b: Builder, s: Value, i: Value) -> tuple[Value, Value]:
    """A place that may be counted from the end, from the start; and whether it is there."""
    length = length_of(b, s)
    i = b.select(i < 0, i + length, i)
    return i, i.ult(length)
