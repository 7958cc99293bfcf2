"""What two sets make: unions, intersections, differences, with their keys in the order of CPython's."""

from __future__ import annotations

from functools import cache

from ...llvm.blocks import Block
from ...llvm.builder import NULL, Value, constant
from .layout import (
    CHANGES,
    LENGTH,
    MASK,
    TAKEN,
    DTypes,
    Records,
    StoreFunction,
    first_of,
    length_of,
    new,
)
from .sets import Members, clear, entries, find_in, free_entry, put, put_in, room, shrink, take_out


@cache
def merge(key: DTypes, form: str) -> StoreFunction:
    """Add all keys of another set.

    Room is made for all at once; a table of the same size that is copied into an empty one stays as
    it is, and what goes into an empty one is not looked for."""
    members = Members(key, form)
    nbytes, keys = members.nbytes, members.keys
    f = StoreFunction("i1", f"merge_{members.name}", s="ptr", other="ptr")
    s, other = f.s, f.other
    done, begin, none = f.later("done"), f.later("begin"), f.later("none")
    f.branch(s.eq(other) | length_of(f, other).eq(0), done, begin)
    f.at(done)
    f.ret(constant("i1", 1))
    f.at(none)
    f.ret(constant("i1", 0))
    f.at(begin)
    f.require(f.run(room(nbytes), s, length_of(f, other)), none)
    f.store(f.load("i64", s, CHANGES) + 1, s, CHANGES)
    into, others = f.later("into"), f.later("others")
    f.branch(f.load("i64", s, TAKEN).eq(0), into, others)

    f.at(into)
    mask, table = f.load("i64", s, MASK), first_of(f, s)
    whole, single = f.later("whole"), f.later("single")
    clean = f.load("i64", other, TAKEN).eq(length_of(f, other))
    f.branch(mask.eq(f.load("i64", other, MASK)) & clean, whole, single)
    f.at(whole)
    f.copy(table, first_of(f, other), (mask + 1) * nbytes)
    counted = f.later("counted")
    f.jump(counted)
    f.at(single)
    records = Records(())
    records.nbytes = nbytes
    with entries(f, other, nbytes) as (_, at, h):
        records.copy(f, f.run(free_entry(nbytes), table, mask, h), at)
    f.jump(counted)
    f.at(counted)
    for field in (TAKEN, LENGTH):
        f.store(length_of(f, other), s, field)
    f.ret(constant("i1", 1))

    f.at(others)
    with entries(f, other, nbytes) as (_, at, h):
        f.require(f.run(put_in(key, form), s, h, *keys.load(f, at)), none)
    f.ret(constant("i1", 1))
    return f


@cache
def take_keys(key: DTypes, form: str, entry_bytes: int) -> StoreFunction:
    """Add all keys of a dict, whose entries are of so many bytes: room is made for all at once."""
    members = Members(key, form)
    f = StoreFunction("i1", f"take_keys_{members.name}_{entry_bytes}", s="ptr", table="ptr")
    none = f.later("none")
    f.require(f.run(room(members.nbytes), f.s, length_of(f, f.table)), none)
    first = first_of(f, f.table)
    with f.each(f.load("i64", f.table, TAKEN)) as i:
        at = f.offset(first, i * entry_bytes)
        with f.when(f.load("i64", at) >= 0):
            f.require(f.run(put(key, form), f.s, *members.keys.load(f, at)), none)
    f.ret(constant("i1", 1))
    f.at(none)
    f.ret(constant("i1", 0))
    return f


@cache
def copy(key: DTypes, form: str) -> StoreFunction:
    """A new set with the same keys; null if there is no memory."""
    f = StoreFunction("ptr", f"copy_{Members(key, form).name}", s="ptr", root="ptr")
    made, none = _fresh(f)
    f.require(f.run(merge(key, form), made, f.s), none)
    f.ret(made)
    return f


def _fresh(f: StoreFunction) -> tuple[Value, Block]:
    """A new set, and the block that gives null if there is no memory."""
    made, none, there = f.run(new(), f.root), f.later("none"), f.later("there")
    f.branch(made.eq(NULL), none, there)
    f.at(none)
    f.ret(NULL)
    f.at(there)
    return made, none


@cache
def intersection(key: DTypes, form: str) -> StoreFunction:
    """A new set of what is in both: the smaller one is run over, the second if none is."""
    members = Members(key, form)
    f = StoreFunction("ptr", f"both_{members.name}", one="ptr", root="ptr", two="ptr")
    same, others = f.later("same"), f.later("others")
    f.branch(f.one.eq(f.two), same, others)
    f.at(same)
    f.ret(f.run(copy(key, form), f.one, f.root))
    f.at(others)
    made, none = _fresh(f)
    swapped = length_of(f, f.two) > length_of(f, f.one)
    walked, asked = f.select(swapped, f.one, f.two), f.select(swapped, f.two, f.one)
    _sift(f, members, made, walked, asked, True, none)
    f.ret(made)
    return f


def _sift(
    f: StoreFunction,
    members: Members,
    made: Value,
    walked: Value,
    asked: Value,
    wanted: bool,
    none: Block,
) -> None:
    """Into `made` what of one set is in another, or is not."""
    find, add = find_in(*members.identity), put_in(*members.identity)
    with entries(f, walked, members.nbytes) as (_, at, h):
        keys = members.keys.load(f, at)
        there = f.run(find, asked, h, *keys)
        with f.when(there.ne(NULL) if wanted else there.eq(NULL)):
            f.require(f.run(add, made, h, *keys), none)


@cache
def difference(key: DTypes, form: str) -> StoreFunction:
    """A new set of what is in the first alone. A second that is much smaller is taken out of a copy."""
    members = Members(key, form)
    f = StoreFunction("ptr", f"without_{members.name}", one="ptr", root="ptr", two="ptr")
    made, none = _fresh(f)
    few, many = f.later("few"), f.later("many")
    f.branch((length_of(f, f.one) >> 2) > length_of(f, f.two), few, many)
    f.at(few)
    f.require(f.run(merge(key, form), made, f.one), none)
    f.require(f.run(difference_update(key, form), made, f.two), none)
    f.ret(made)
    f.at(many)
    _sift(f, members, made, f.one, f.two, False, none)
    f.ret(made)
    return f


@cache
def difference_update(key: DTypes, form: str) -> StoreFunction:
    """Take out what is in another set; false if there is no memory."""
    members = Members(key, form)
    find, keys = find_in(key, form), members.keys
    f = StoreFunction("i1", f"take_all_{members.name}", s="ptr", other="ptr")
    s, other = f.s, f.other
    same, apart = f.later("same"), f.later("apart")
    f.branch(s.eq(other), same, apart)
    f.at(same)
    f.run(clear(), s)
    f.ret(constant("i1", 1))
    f.at(apart)
    few, many, after = f.later("few"), f.later("many"), f.later("after")
    f.branch(length_of(f, other) < length_of(f, s), few, many)
    f.at(few)
    with entries(f, other, members.nbytes) as (_, at, h):
        mine = f.run(find, s, h, *keys.load(f, at))
        with f.when(mine.ne(NULL)):
            take_out(f, s, mine)
    f.jump(after)
    f.at(many)
    with entries(f, s, members.nbytes) as (_, at, h):
        others = f.run(find, other, h, *keys.load(f, at))
        with f.when(others.ne(NULL)):
            take_out(f, s, at)
    f.jump(after)
    f.at(after)
    f.ret(f.run(shrink(members.nbytes), s))
    return f


@cache
def toggle(key: DTypes, form: str) -> StoreFunction:
    """Take out what is in another set, too, and add what is in that alone."""
    members = Members(key, form)
    f = StoreFunction("i1", f"toggle_{members.name}", s="ptr", other="ptr")
    s, other = f.s, f.other
    same, others, none = f.later("same"), f.later("others"), f.later("none")
    f.branch(s.eq(other), same, others)
    f.at(same)
    f.run(clear(), s)
    f.ret(constant("i1", 1))
    f.at(none)
    f.ret(constant("i1", 0))
    f.at(others)
    with entries(f, other, members.nbytes) as (_, at, h):
        keys = members.keys.load(f, at)
        mine = f.run(find_in(key, form), s, h, *keys)
        out, into, on = f.later("out"), f.later("into"), f.later("on")
        f.branch(mine.ne(NULL), out, into)
        f.at(out)
        take_out(f, s, mine)
        f.jump(on)
        f.at(into)
        f.require(f.run(put_in(key, form), s, h, *keys), none)
        f.jump(on)
        f.at(on)
    f.ret(constant("i1", 1))
    return f
