"""Sets as CPython has them: which key lies where, and so their order, is that of its `setobject.c`.

A table of a power of two of entries, each a hash and a key. The hash tells that nothing is in an entry
(`EMPTY`), or that something was (`GONE`): the last of those that a search for a new key passes gets it.
A key is looked for at its hash, at nine entries more in a row if these do not leave the table, and then
somewhere else, as all of the hash's bits say. No table is more than three fifths full.

A header's `TAKEN` counts entries with those that are gone, `LENGTH` without; `FINGER` is where `pop`
looks first. A set without a table stands for one of the least size.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from ...llvm.builder import NULL, Builder, Value, constant
from .hashes import hash_like_python
from .layout import (
    BLOCK,
    CHANGES,
    END,
    FIRST,
    LENGTH,
    LENT,
    MASK,
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

FINGER = END
EMPTY_BYTE = 0x80
EMPTY = int.from_bytes([EMPTY_BYTE] * 8, "little", signed=True)
GONE = -1  # no hash of Python's
LEAST = 8  # entries of a table
_IN_A_ROW = 9
_SHIFT = 5
_MANY = 50000  # from so many keys on tables are doubled only


class Members:
    """What the entries of a set are: `form` tells how tuples are in keys (`hashes`)."""

    def __init__(self, key: DTypes, form: str) -> None:
        self.keys, self.form = Records(key, WORD), form
        self.nbytes = self.keys.nbytes

    @property
    def identity(self) -> tuple[DTypes, str]:
        return self.keys.dtypes, self.form

    @property
    def name(self) -> str:
        return f"{self.keys.name}_{self.form.translate(_NAMED)}"


_NAMED = str.maketrans({"(": "a", ")": "z", ".": "x", "N": "n", "?": "u"})


def is_live(b: Builder, h: Value) -> Value:
    """Whether a key is in an entry with this hash."""
    return h.ne(EMPTY) & h.ne(GONE)


def _size(b: Builder, s: Value) -> Value:
    """How many entries the table of a set has; 0 if there is none."""
    return b.select(first_of(b, s).eq(NULL), 0, b.load("i64", s, MASK) + 1)


@contextmanager
def entries(f: StoreFunction, s: Value, nbytes: int) -> Iterator[tuple[Value, Value, Value]]:
    """What is done for each key that is there, in order: its place, the address of that, its hash."""
    table = first_of(f, s)
    with f.each(_size(f, s)) as i:
        at = f.offset(table, i * nbytes)
        h = f.load("i64", at)
        with f.when(is_live(f, h)):
            yield i, at, h


@contextmanager
def _search(
    f: Builder, table: Value, mask: Value, h: Value, nbytes: int
) -> Iterator[tuple[Value, Value]]:
    """A walk over the entries where a key may be, with the last one passed from which one is gone, or
    null. What is written inside leaves it."""
    with f.loop(i=h & mask, step=0, rest=h, gone=NULL) as loop:
        at = f.offset(table, (loop.i + loop.step) * nbytes)
        yield at, loop.gone
        last = f.select((loop.i + _IN_A_ROW).ule(mask), _IN_A_ROW, f.literal("i64", 0))
        more = loop.step < last
        rest = loop.rest >> _SHIFT
        away = (loop.i * 5 + 1 + rest) & mask
        loop.next(
            f.select(more, loop.i, away),
            f.select(more, loop.step + 1, 0),
            f.select(more, loop.rest, rest),
            f.select(f.load("i64", at).eq(GONE), at, loop.gone),
        )
    f.unreachable()


@cache
def free_entry(nbytes: int) -> StoreFunction:
    """The first empty entry for a hash."""
    f = StoreFunction("ptr", f"free_entry_{nbytes}", table="ptr", mask="i64", h="i64")
    with _search(f, f.table, f.mask, f.h, nbytes) as (at, _):
        found, on = f.later("found"), f.later("on")
        f.branch(f.load("i64", at).eq(EMPTY), found, on)
        f.at(found)
        f.ret(at)
        f.at(on)
    return f


@cache
def _seek(key: DTypes, form: str, adds: bool) -> StoreFunction:
    """The entry with a key, or the empty one where the search for it ends; if it `adds`, the last one on
    the way from which a key is gone, if there is one. There is a table."""
    members = Members(key, form)
    keys, name = members.keys, f"{'seek_or_reuse' if adds else 'seek'}_{members.name}"
    f = StoreFunction("ptr", name, s="ptr", h="i64", **keys.params("k"))
    wanted, table, mask = f.args[2:], first_of(f, f.s), f.load("i64", f.s, MASK)
    with _search(f, table, mask, f.h, members.nbytes) as (at, gone):
        found, other, same, on, end = map(f.later, ("found", "other", "same", "on", "end"))
        h = f.load("i64", at)
        f.branch(h.eq(EMPTY), end, other)
        f.at(end)
        f.ret(f.select(gone.eq(NULL), at, gone) if adds else at)
        f.at(other)
        f.branch(h.eq(f.h), same, on)
        f.at(same)
        f.branch(keys.equal(f, keys.load(f, at), wanted), found, on)
        f.at(found)
        f.ret(at)
        f.at(on)
    return f


@cache
def _sized(nbytes: int) -> StoreFunction:
    """The keys in a new table of so many entries, without what is gone; false: there is no memory."""
    f = StoreFunction("i1", f"sized_{nbytes}", s="ptr", size="i64")
    table, none, there = f.allocate(f.size * nbytes), f.later("none"), f.later("there")
    f.branch(table.eq(NULL), none, there)
    f.at(none)
    f.ret(constant("i1", 0))
    f.at(there)
    f.fill(table, EMPTY_BYTE, f.size * nbytes, align=8)
    records = Records(())
    records.nbytes = nbytes
    with entries(f, f.s, nbytes) as (_, at, h):
        records.copy(f, f.run(free_entry(nbytes), table, f.size - 1, h), at)
    f.leave_block(f.s)
    f.store(table, f.s, BLOCK)
    f.store(table, f.s, FIRST)
    f.store(f.size - 1, f.s, MASK)
    f.store(length_of(f, f.s), f.s, TAKEN)
    f.ret(constant("i1", 1))
    return f


@cache
def _resize(nbytes: int) -> StoreFunction:
    """A new table of the least size above `most`."""
    f = StoreFunction("i1", f"resize_{nbytes}", s="ptr", most="i64")
    with f.loop(size=LEAST) as sizes:
        sizes.going(sizes.size <= f.most)
        sizes.next(sizes.size * 2)
    f.ret(f.run(_sized(nbytes), f.s, sizes.size))
    return f


def _grown(f: Builder, used: Value) -> Value:
    return f.select(used > _MANY, used * 2, used * 4)


@cache
def _ready(nbytes: int) -> StoreFunction:
    """A table, if there is none; false if there is no memory."""
    f = StoreFunction("i1", f"ready_{nbytes}", s="ptr")
    none, there = f.later("none"), f.later("there")
    f.branch(first_of(f, f.s).eq(NULL), none, there)
    f.at(none)
    f.ret(f.run(_sized(nbytes), f.s, LEAST))
    f.at(there)
    f.ret(constant("i1", 1))
    return f


@cache
def put_in(key: DTypes, form: str) -> StoreFunction:
    """Add a key with its hash, if it is not there."""
    members = Members(key, form)
    keys = members.keys
    f = StoreFunction("i1", f"put_{members.name}", s="ptr", h="i64", **keys.params("k"))
    none, begin, fresh, there = (f.later(n) for n in ("none", "begin", "fresh", "there"))
    f.branch(f.run(_ready(members.nbytes), f.s), begin, none)
    f.at(none)
    f.ret(constant("i1", 0))
    f.at(begin)
    at = f.run(_seek(key, form, True), *f.args)
    old = f.load("i64", at)
    f.branch(is_live(f, old), there, fresh)
    f.at(there)
    f.ret(constant("i1", 1))
    f.at(fresh)
    f.store(f.h, at)
    keys.store(f, at, f.args[2:])
    taken, used = f.load("i64", f.s, TAKEN) + old.eq(EMPTY).zext("i64"), length_of(f, f.s) + 1
    f.store(taken, f.s, TAKEN)
    f.store(used, f.s, LENGTH)
    f.store(f.load("i64", f.s, CHANGES) + 1, f.s, CHANGES)
    room, full = f.later("room"), f.later("full")
    f.branch(old.eq(GONE) | ((taken * 5) < (f.load("i64", f.s, MASK) * 3)), room, full)
    f.at(room)
    f.ret(constant("i1", 1))
    f.at(full)
    f.ret(f.run(_resize(members.nbytes), f.s, _grown(f, used)))
    return f


@cache
def put(key: DTypes, form: str) -> StoreFunction:
    """Add a key; false if there is no memory."""
    members = Members(key, form)
    f = StoreFunction("i1", f"add_{members.name}", s="ptr", **members.keys.params("k"))
    h = f.run(hash_like_python(key, form), *f.args[1:])
    f.ret(f.run(put_in(key, form), f.s, h, *f.args[1:]))
    return f


@cache
def find_in(key: DTypes, form: str) -> StoreFunction:
    """The entry with a key and its hash, or null."""
    members = Members(key, form)
    f = StoreFunction("ptr", f"find_{members.name}", s="ptr", h="i64", **members.keys.params("k"))
    none, look = f.later("none"), f.later("look")
    f.branch(first_of(f, f.s).eq(NULL), none, look)
    f.at(none)
    f.ret(NULL)
    f.at(look)
    at = f.run(_seek(key, form, False), *f.args)
    f.ret(f.select(f.load("i64", at).eq(EMPTY), NULL, at))
    return f


@cache
def find(key: DTypes, form: str) -> StoreFunction:
    """0 if a key is there, else -1."""
    members = Members(key, form)
    f = StoreFunction("i64", f"has_{members.name}", s="ptr", **members.keys.params("k"))
    h = f.run(hash_like_python(key, form), *f.args[1:])
    at = f.run(find_in(key, form), f.s, h, *f.args[1:])
    f.ret(f.select(at.eq(NULL), f.literal("i64", -1), 0))
    return f


def take_out(f: StoreFunction, s: Value, at: Value) -> None:
    """Let the key in an entry be gone."""
    f.store(f.literal("i64", GONE), at)
    f.store(length_of(f, s) - 1, s, LENGTH)


@cache
def remove(key: DTypes, form: str) -> StoreFunction:
    """Take a key out: where its entry was, or null."""
    members = Members(key, form)
    f = StoreFunction("ptr", f"remove_from_{members.name}", s="ptr", **members.keys.params("k"))
    h = f.run(hash_like_python(key, form), *f.args[1:])
    at = f.run(find_in(key, form), f.s, h, *f.args[1:])
    with f.when(at.ne(NULL)):
        take_out(f, f.s, at)
    f.ret(at)
    return f


@cache
def pop(nbytes: int) -> StoreFunction:
    """Take out the key that is found first from the finger on: its entry, or null if there is none."""
    f = StoreFunction("ptr", f"pop_{nbytes}", s="ptr")
    none, some = f.later("none"), f.later("some")
    f.branch(length_of(f, f.s).eq(0), none, some)
    f.at(none)
    f.ret(NULL)
    f.at(some)
    table, mask = first_of(f, f.s), f.load("i64", f.s, MASK)
    with f.loop(i=f.load("i64", f.s, FINGER) & mask) as loop:
        at = f.offset(table, loop.i * nbytes)
        loop.going(~is_live(f, f.load("i64", at)))
        loop.next((loop.i + 1) & mask)
    at = f.offset(table, loop.i * nbytes)
    take_out(f, f.s, at)
    f.store(loop.i + 1, f.s, FINGER)
    f.ret(at)
    return f


@cache
def clear() -> StoreFunction:
    """Take all keys out. The finger stays."""
    f = StoreFunction("void", "clear_set", s="ptr")
    f.leave_block(f.s)
    for field in (BLOCK, FIRST):
        f.store(NULL, f.s, field)
    for field in (TAKEN, LENGTH, MASK):
        f.store(f.literal("i64", 0), f.s, field)
    f.ret()
    return f


@cache
def first(nbytes: int) -> StoreFunction:
    """The number of the first entry with a key, or -1."""
    f = StoreFunction("i64", f"first_member_{nbytes}", s="ptr")
    with entries(f, f.s, nbytes) as (i, _, _):
        f.ret(i)
        f.at(f.later("never"))
    f.ret(constant("i64", -1))
    return f


@cache
def positions(nbytes: int) -> StoreFunction:
    """The numbers of the entries with keys, as a new sequence; null if there is no memory."""
    f = StoreFunction("ptr", f"members_{nbytes}", s="ptr", root="ptr")
    made, none, there, begin = (f.run(new(), f.root), *map(f.later, ("none", "there", "begin")))
    f.branch(made.eq(NULL), none, there)
    f.at(there)
    f.branch(f.run(reserve(), made, 0, length_of(f, f.s) * WORD), begin, none)
    f.at(none)
    f.ret(NULL)
    f.at(begin)
    target = first_of(f, made)
    with entries(f, f.s, nbytes) as (i, _, _):
        count = length_of(f, made)
        f.store(i, target, count, "i64")
        f.store(count + 1, made, LENGTH)
    f.ret(made)
    return f


@cache
def room(nbytes: int) -> StoreFunction:
    """A table into which so many more keys go at once; false if there is no memory."""
    f = StoreFunction("i1", f"room_for_{nbytes}", s="ptr", more="i64")
    small, enough = f.later("small"), f.later("enough")
    mask = f.select(first_of(f, f.s).eq(NULL), LEAST - 1, f.load("i64", f.s, MASK))
    full = ((f.load("i64", f.s, TAKEN) + f.more) * 5) >= (mask * 3)
    f.branch(full, small, enough)
    f.at(small)
    f.ret(f.run(_resize(nbytes), f.s, (length_of(f, f.s) + f.more) * 2))
    f.at(enough)
    f.ret(f.run(_ready(nbytes), f.s))
    return f


@cache
def shrink(nbytes: int) -> StoreFunction:
    """A new table where more than a quarter of the entries are gone."""
    f = StoreFunction("i1", f"shrink_{nbytes}", s="ptr")
    used = length_of(f, f.s)
    fine, more = f.later("fine"), f.later("more")
    f.branch((f.load("i64", f.s, TAKEN) - used) <= (f.load("i64", f.s, MASK) >> 2), fine, more)
    f.at(fine)
    f.ret(constant("i1", 1))
    f.at(more)
    f.ret(f.run(_resize(nbytes), f.s, _grown(f, used)))
    return f


@cache
def swap() -> StoreFunction:
    """Let two sets have each other's keys. Their fingers stay."""
    f = StoreFunction("void", "swap_sets", one="ptr", two="ptr")
    for field in (BLOCK, FIRST, LENGTH, MASK, TAKEN, LENT):
        mine, others = f.load("i64", f.one, field), f.load("i64", f.two, field)
        f.store(others, f.one, field)
        f.store(mine, f.two, field)
    f.store(f.load("i64", f.one, CHANGES) + 1, f.one, CHANGES)
    f.ret()
    return f


@cache
def sized(nbytes: int) -> StoreFunction:
    """An empty table of so many entries, and where `pop` looks first; false if there is no memory."""
    f = StoreFunction("i1", f"laid_out_{nbytes}", s="ptr", size="i64", finger="i64")
    f.store(f.finger, f.s, FINGER)
    f.ret(f.run(_sized(nbytes), f.s, f.size))
    return f


@cache
def write(key: DTypes, form: str) -> StoreFunction:
    """Write a key, or that one is gone, into entry `i`, which is empty."""
    members = Members(key, form)
    params = members.keys.params("k")
    f = StoreFunction("void", f"write_{members.name}", s="ptr", i="i64", live="i1", **params)
    at = f.offset(first_of(f, f.s), f.i * members.nbytes)
    h = f.run(hash_like_python(key, form), *f.args[3:])
    f.store(f.select(f.live, h, GONE), at)
    members.keys.store(f, at, f.args[3:])
    f.store(f.load("i64", f.s, TAKEN) + 1, f.s, TAKEN)
    f.store(length_of(f, f.s) + f.live.zext("i64"), f.s, LENGTH)
    f.ret()
    return f
