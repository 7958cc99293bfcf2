"""Tables from keys to values: entries in the order in which keys came, and an index by their hashes.

An entry is a hash, a key and a value; the hash of one that was removed is -1. The index is a power of
two of places, at least three for each entry, so that a search ends after one or two, with the entries'
numbers: -1 for none, -2 for one that was removed. A table that is full is made anew, without what was
removed.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from ...llvm.builder import NULL, Value, constant
from .layout import (
    BLOCK,
    CHANGES,
    FIRST,
    INDEX,
    LENGTH,
    MASK,
    PASSED,
    TAKEN,
    WORD,
    DTypes,
    Records,
    StoreFunction,
    first_of,
    length_of,
    new,
)
from .sequences import reserve

_GOLDEN, _MIX = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9
LEAST_PLACES = 16  # places of an index
PER_ENTRY = 3  # places for each entry, at least
ZERO = Value("double", "0x0000000000000000")


class Entries(NamedTuple):
    """What the entries of a table are made of."""

    key: DTypes
    value: DTypes

    @property
    def keys(self) -> Records:
        return Records(self.key, WORD)

    @property
    def whole(self) -> Records:
        return Records((*self.key, *self.value), WORD)

    @property
    def name(self) -> str:
        return f"{Records(self.key).name}_{Records(self.value).name}"

    @property
    def nbytes(self) -> int:
        return self.whole.nbytes


@cache
def hashed(key: DTypes) -> StoreFunction:
    """A hash of at least 0. Keys that are equal have the same: -0.0 that of 0.0."""
    records = Records(key)
    f = StoreFunction("i64", f"hash_{records.name}", **records.params("k"))
    total: Value | None = None
    for value, dtype in zip(f.args, key, strict=True):
        if dtype.kind == "f":
            value = value if dtype.itemsize == 8 else f.convert("fpext", value, "double")
            value = (value + ZERO).to("bitcast", "i64")
        elif value.type != "i64":
            value = f.convert("sext" if dtype.kind == "i" else "zext", value, "i64")
        total = value if total is None else mixed(total, value)
    assert total is not None
    f.ret(hash_of(total))
    return f


def mixed(total: Value, value: Value) -> Value:
    """What the values of a key so far, and one more, come to. It begins with 0."""
    return (total ^ (total >> 29)) * _signed(_MIX) + value


def hash_of(total: Value) -> Value:
    """The hash of a key whose values come to this."""
    total = total * _signed(_GOLDEN)
    return ((total ^ (total >> 32)) << 1) >> 1


def _signed(number: int) -> int:
    return number - (1 << 64) if number >> 63 else number


@cache
def _place(key: DTypes, nbytes: int) -> StoreFunction:
    """The place in the index that leads to a key, or -1."""
    keys = Records(key, WORD)
    name = f"place_{keys.name}_{nbytes}"
    f = StoreFunction("i64", name, t="ptr", h="i64", **keys.params("k"))
    wanted = f.args[2:]
    index, mask = f.load("ptr", f.t, INDEX), f.load("i64", f.t, MASK)
    first = first_of(f, f.t)
    none, begin = f.later("none"), f.later("begin")
    f.branch(index.eq(NULL), none, begin)
    f.at(none)
    f.ret(constant("i64", -1))
    f.at(begin)
    with f.loop(i=f.h & mask) as loop:
        number = f.load("i32", index, loop.i, "i32", align=4)
        look, on, found, after = (f.later(n) for n in ("look", "on", "found", "after"))
        f.branch(number < 0, after, look)
        f.at(look)
        entry = f.offset(first, number.sext("i64") * nbytes)
        f.branch(keys.equal(f, keys.load(f, entry), wanted), found, on)
        f.at(found)
        f.ret(loop.i)
        f.at(after)
        f.branch(number.eq(-1), none, on)
        f.at(on)
        loop.next((loop.i + 1) & mask)
    f.unreachable()
    return f


def _of_key(name: str, entries: Entries, missing: Value) -> tuple[StoreFunction, Value]:
    """The beginning of a function of a table and a key, and where the key is in the index; it gives
    `missing` where it is not."""
    f = StoreFunction(missing.type, f"{name}_{entries.name}", t="ptr", **entries.keys.params("k"))
    key = f.args[1:]
    h = f.run(hashed(entries.key), *key)
    position = f.run(_place(entries.key, entries.nbytes), f.t, h, *key)
    there, none = f.later("there"), f.later("none")
    f.branch(position < 0, none, there)
    f.at(none)
    f.ret(missing)
    f.at(there)
    return f, position


@cache
def find(entries: Entries) -> StoreFunction:
    """The number of the entry of a key, or -1."""
    f, position = _of_key("find_in", entries, constant("i64", -1))
    f.ret(f.load("i32", f.load("ptr", f.t, INDEX), position, "i32", align=4).sext("i64"))
    return f


@cache
def put(entries: Entries) -> StoreFunction:
    """A key and its value, in place of the value that it has or at the end; false if there is no memory.
    Entries move only where a key is added: loops may run over a table whose values are changed."""
    whole = entries.whole
    f = StoreFunction("i1", f"put_{entries.name}", t="ptr", **whole.params("x"))
    values = f.args[1:]
    key = values[: len(entries.key)]
    h = f.run(hashed(entries.key), *key)
    place = f.run(_place(entries.key, entries.nbytes), f.t, h, *key)
    old, fresh, none, there = (f.later(name) for name in ("old", "fresh", "none", "there"))
    f.branch(place < 0, fresh, old)
    f.at(old)
    number = f.load("i32", f.load("ptr", f.t, INDEX), place, "i32", align=4).sext("i64")
    here = f.offset(first_of(f, f.t), number * entries.nbytes)
    whole.store(f, here, values[len(entries.key) :], len(entries.key))
    f.ret(constant("i1", 1))
    f.at(fresh)
    f.branch(f.run(room(entries.nbytes), f.t), there, none)
    f.at(none)
    f.ret(constant("i1", 0))
    f.at(there)
    taken = f.load("i64", f.t, TAKEN)
    entry = f.offset(first_of(f, f.t), taken * entries.nbytes)
    f.store(h, entry)
    whole.store(f, entry, values)
    f.store(taken + 1, f.t, TAKEN)
    f.store(length_of(f, f.t) + 1, f.t, LENGTH)
    f.store(f.load("i64", f.t, CHANGES) + 1, f.t, CHANGES)
    f.run(note(), f.load("ptr", f.t, INDEX), f.load("i64", f.t, MASK), h, taken)
    f.ret(constant("i1", 1))
    return f


@cache
def note() -> StoreFunction:
    """Note entry `number` at the first free place of the index for its hash."""
    f = StoreFunction("void", "note", index="ptr", mask="i64", h="i64", number="i64")
    with f.loop(i=f.h & f.mask) as loop:
        at = f.offset(f.index, loop.i, "i32")
        loop.going(f.load("i32", at, align=4).ne(-1))
        loop.next((loop.i + 1) & f.mask)
    f.store(f.number.trunc("i32"), f.offset(f.index, loop.i, "i32"), align=4)
    f.ret()
    return f


@cache
def room(nbytes: int) -> StoreFunction:
    """Room for one more entry; false if there is no memory."""
    f = StoreFunction("i1", f"room_{nbytes}", t="ptr")
    mask, taken = f.load("i64", f.t, MASK), f.load("i64", f.t, TAKEN)
    enough, full = f.later("enough"), f.later("full")
    f.branch(((taken + 1) * PER_ENTRY).ule(mask + 1) & mask.ne(0), enough, full)
    f.at(enough)
    f.ret(constant("i1", 1))
    f.at(full)
    wanted = (length_of(f, f.t) + 1) * (2 * PER_ENTRY)
    with f.loop(size=LEAST_PLACES) as sizes:
        sizes.going(sizes.size < wanted)
        sizes.next(sizes.size * 2)
    f.ret(f.run(rebuild(nbytes), f.t, f.t, sizes.size))
    return f


@cache
def rebuild(nbytes: int) -> StoreFunction:
    """The live entries of `source`, which may be the table itself, with an index of so many places;
    false if there is no memory."""
    f = StoreFunction("i1", f"rebuild_{nbytes}", t="ptr", source="ptr", size="i64")
    most = f.size // PER_ENTRY + 1
    index, block = f.allocate(f.size * 4), f.allocate(most * nbytes)
    none, there = f.later("none"), f.later("there")
    f.branch(index.eq(NULL) | block.eq(NULL), none, there)
    f.at(none)
    f.release(index)
    f.release(block)
    f.ret(constant("i1", 0))
    f.at(there)
    f.fill(index, -1, f.size * 4, align=4)
    mask, first = f.size - 1, first_of(f, f.source)
    records = Records(())
    records.nbytes = nbytes
    with f.loop(i=0, to=0) as loop:
        loop.going(loop.i < f.load("i64", f.source, TAKEN))
        entry = f.offset(first, loop.i * nbytes)
        h = f.load("i64", entry)
        with f.when(h >= 0):
            records.copy(f, f.offset(block, loop.to * nbytes), entry)
            f.run(note(), index, mask, h, loop.to)
        loop.next(loop.i + 1, loop.to + (h >= 0).zext("i64"))
    f.release(f.load("ptr", f.t, INDEX))
    f.leave_block(f.t)
    for value, field in ((index, INDEX), (block, BLOCK), (block, FIRST)):
        f.store(value, f.t, field)
    f.store(f.literal("i64", 0), f.t, PASSED)
    for value, field in ((mask, MASK), (loop.to, TAKEN), (loop.to, LENGTH)):
        f.store(value, f.t, field)
    f.ret(constant("i1", 1))
    return f


@cache
def _forget(nbytes: int) -> StoreFunction:
    """Free a place of the index. What was put behind it because it was taken moves up: a mark that
    something was here would stay, and an index full of marks has no end to a search."""
    f = StoreFunction("void", f"forget_{nbytes}", t="ptr", hole="i64")
    index, mask, first = f.load("ptr", f.t, INDEX), f.load("i64", f.t, MASK), first_of(f, f.t)
    with f.loop(free=f.hole, i=(f.hole + 1) & mask) as loop:
        number = f.load("i32", f.offset(index, loop.i, "i32"), align=4)
        loop.going(number.ne(-1))
        h = f.load("i64", f.offset(first, number.sext("i64") * nbytes))
        moves = ((loop.i - h) & mask) >= ((loop.i - loop.free) & mask)
        with f.when(moves):
            f.store(number, f.offset(index, loop.free, "i32"), align=4)
        loop.next(f.select(moves, loop.i, loop.free), (loop.i + 1) & mask)
    f.store(constant("i32", -1), f.offset(index, loop.free, "i32"), align=4)
    f.ret()
    return f


@cache
def remove(entries: Entries) -> StoreFunction:
    """Take a key out: where its entry was, or null. The entry can still be read."""
    f, position = _of_key("remove", entries, NULL)
    at = f.offset(f.load("ptr", f.t, INDEX), position, "i32")
    number = f.load("i32", at, align=4).sext("i64")
    entry = f.offset(first_of(f, f.t), number * entries.nbytes)
    f.run(_forget(entries.nbytes), f.t, position)
    f.store(constant("i64", -1), entry)
    f.store(length_of(f, f.t) - 1, f.t, LENGTH)
    f.ret(entry)
    return f


@cache
def clear() -> StoreFunction:
    """Take all entries out."""
    f = StoreFunction("void", "clear_table", t="ptr")
    for field in (TAKEN, LENGTH, PASSED):
        f.store(f.literal("i64", 0), f.t, field)
    index = f.load("ptr", f.t, INDEX)
    with f.when(index.ne(NULL)):
        f.fill(index, -1, (f.load("i64", f.t, MASK) + 1) * 4, align=4)
    f.ret()
    return f


@cache
def last(nbytes: int) -> StoreFunction:
    """The number of the last live entry, or -1. What was removed behind it is forgotten, so that it is
    passed over once."""
    f = StoreFunction("i64", f"last_{nbytes}", t="ptr")
    first = first_of(f, f.t)
    with f.loop(i=f.load("i64", f.t, TAKEN)) as loop:
        loop.going(loop.i > 0)
        loop.going(f.load("i64", f.offset(first, (loop.i - 1) * nbytes)) < 0)
        loop.next(loop.i - 1)
    f.store(loop.i, f.t, TAKEN)
    f.ret(loop.i - 1)
    return f


@cache
def first(nbytes: int) -> StoreFunction:
    """The number of the first live entry, or -1. Where it is found is noted for the next time."""
    f = StoreFunction("i64", f"first_{nbytes}", t="ptr")
    entries, taken = first_of(f, f.t), f.load("i64", f.t, TAKEN)
    with f.loop(i=f.load("i64", f.t, PASSED)) as loop:
        loop.going(loop.i < taken)
        loop.going(f.load("i64", f.offset(entries, loop.i * nbytes)) < 0)
        loop.next(loop.i + 1)
    f.store(loop.i, f.t, PASSED)
    f.ret(f.select(loop.i < taken, loop.i, -1))
    return f


@cache
def positions(nbytes: int) -> StoreFunction:
    """The numbers of the live entries, as a new sequence; null if there is no memory."""
    f = StoreFunction("ptr", f"positions_{nbytes}", t="ptr", root="ptr")
    made, none = f.run(new(), f.root), f.later("none")
    there, begin = f.later("there"), f.later("begin")
    f.branch(made.eq(NULL), none, there)
    f.at(there)
    length = length_of(f, f.t)
    f.branch(f.run(reserve(), made, 0, length * WORD), begin, none)
    f.at(none)
    f.ret(NULL)
    f.at(begin)
    entries, target = first_of(f, f.t), first_of(f, made)
    with f.loop(i=0, to=0) as loop:
        loop.going(loop.i < f.load("i64", f.t, TAKEN))
        alive = f.load("i64", f.offset(entries, loop.i * nbytes)) >= 0
        with f.when(alive):
            f.store(loop.i, target, loop.to, "i64")
        loop.next(loop.i + 1, loop.to + alive.zext("i64"))
    f.store(length, made, LENGTH)
    f.ret(made)
    return f


@cache
def copy(nbytes: int) -> StoreFunction:
    """A new table with the same entries; null if there is no memory."""
    f = StoreFunction("ptr", f"copy_{nbytes}", t="ptr", root="ptr")
    made, none, there, good = (
        f.run(new(), f.root),
        f.later("none"),
        f.later("there"),
        f.later("good"),
    )
    f.branch(made.eq(NULL), none, there)
    f.at(there)
    size = f.load("i64", f.t, MASK) + 1
    size = f.select(size < LEAST_PLACES, LEAST_PLACES, size)
    f.branch(f.run(rebuild(nbytes), made, f.t, size), good, none)
    f.at(none)
    f.ret(NULL)
    f.at(good)
    f.ret(made)
    return f
