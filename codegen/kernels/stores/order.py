"""Sequences in order: heaps as `heapq` keeps them, binary search, and a stable sort."""

from __future__ import annotations

from functools import cache

from ...llvm.builder import NULL, Builder, Value, constant
from .layout import LENGTH, Records, StoreFunction, first_of, length_of

_RUN = 12  # records that are sorted by insertion


# Heaps. The steps are those of `heapq`, so that the lists are the same.


@cache
def sift_down(records: Records) -> StoreFunction:
    """Record `position` goes up, towards `start`, past what is greater."""
    f = StoreFunction("void", f"sift_down_{records.name}", s="ptr", start="i64", position="i64")
    first, n = first_of(f, f.s), records.nbytes
    item = records.load(f, f.offset(first, f.position * n))
    with f.loop(at=f.position) as loop:
        loop.going(loop.at > f.start)
        parent = (loop.at - 1) >> 1
        above = f.offset(first, parent * n)
        loop.going(records.less(f, item, records.load(f, above)))
        records.copy(f, f.offset(first, loop.at * n), above)
        loop.next(parent)
    records.store(f, f.offset(first, loop.at * n), item)
    f.ret()
    return f


@cache
def sift_up(records: Records) -> StoreFunction:
    """Record `start` goes down to a leaf, smaller children up, and then up to its place."""
    f = StoreFunction("void", f"sift_up_{records.name}", s="ptr", start="i64")
    first, n = first_of(f, f.s), records.nbytes
    end, limit = length_of(f, f.s), length_of(f, f.s) >> 1
    item = records.load(f, f.offset(first, f.start * n))
    with f.loop(at=f.start) as loop:
        loop.going(loop.at < limit)
        left = loop.at * 2 + 1
        right = f.select(left + 1 < end, left + 1, left)
        smaller = records.less(
            f,
            records.load(f, f.offset(first, left * n)),
            records.load(f, f.offset(first, right * n)),
        )
        child = f.select(smaller, left, right)
        records.copy(f, f.offset(first, loop.at * n), f.offset(first, child * n))
        loop.next(child)
    records.store(f, f.offset(first, loop.at * n), item)
    f.run(sift_down(records), f.s, f.start, loop.at)
    f.ret()
    return f


@cache
def heapify(records: Records) -> StoreFunction:
    """Make a heap of a sequence."""
    f = StoreFunction("void", f"heapify_{records.name}", s="ptr")
    with f.loop(left=length_of(f, f.s) >> 1) as loop:
        loop.going(loop.left > 0)
        f.run(sift_up(records), f.s, loop.left - 1)
        loop.next(loop.left - 1)
    f.ret()
    return f


@cache
def take_least(records: Records) -> StoreFunction:
    """After the first record was read: the last one takes its place, and sinks. There is one."""
    f = StoreFunction("void", f"take_least_{records.name}", s="ptr")
    last = length_of(f, f.s) - 1
    f.store(last, f.s, LENGTH)
    with f.when(last.ne(0)):
        first = first_of(f, f.s)
        records.copy(f, first, f.offset(first, last * records.nbytes))
        f.run(sift_up(records), f.s, 0)
    f.ret()
    return f


# Search and sort


@cache
def bisect(records: Records, right: bool) -> StoreFunction:
    """Where in `start` to `stop` a record belongs, before or behind its equals."""
    name = f"bisect_{'right' if right else 'left'}_{records.name}"
    f = StoreFunction("i64", name, s="ptr", start="i64", stop="i64", **records.params("x"))
    wanted, first = f.args[3:], first_of(f, f.s)
    with f.loop(low=f.start, high=f.stop) as loop:
        loop.going(loop.low < loop.high)
        middle = (loop.low + loop.high) >> 1
        here = records.load(f, f.offset(first, middle * records.nbytes))
        if right:
            up = ~records.less(f, wanted, here)
        else:
            up = records.less(f, here, wanted)
        loop.next(f.select(up, middle + 1, loop.low), f.select(up, loop.high, middle))
    f.ret(loop.low)
    return f


def _before(b: Builder, keys: Records, descending: Value, a: Value, c: Value) -> Value:
    """Whether the record at one address has to stand before that at another one."""
    x, y = keys.load(b, a), keys.load(b, c)
    return b.select(descending, keys.less(b, y, x), keys.less(b, x, y))


@cache
def sort(records: Records, keys: int) -> StoreFunction:
    """Sort by the first `keys` values of each record, equals in the order that they have; false if there
    is no memory. Short runs by insertion, then merges from one block to the other and back."""
    f = StoreFunction("i1", f"sort_{records.name}_by_{keys}", s="ptr", descending="i1")
    n, by = records.nbytes, Records(records.dtypes[:keys])
    length, first = length_of(f, f.s), first_of(f, f.s)
    with f.loop(start=0) as runs:
        runs.going(runs.start < length)
        stop = f.least(runs.start + _RUN, length)
        f.run(
            _insertion(records, keys),
            f.offset(first, runs.start * n),
            stop - runs.start,
            f.descending,
        )
        runs.next(runs.start + _RUN)
    short, long, none, there = (f.later(name) for name in ("short", "long", "none", "there"))
    f.branch(length <= _RUN, short, long)
    f.at(short)
    f.ret(constant("i1", 1))
    f.at(long)
    other = f.allocate(length * n)
    f.branch(other.eq(NULL), none, there)
    f.at(none)
    f.ret(constant("i1", 0))
    f.at(there)
    with f.loop(width=_RUN, here=first, there=other) as passes:
        passes.going(passes.width < length)
        with f.loop(start=0) as pairs:
            pairs.going(pairs.start < length)
            middle = f.least(pairs.start + passes.width, length)
            stop = f.least(middle + passes.width, length)
            _merge(f, records, by, passes.here, passes.there, pairs.start, middle, stop)
            pairs.next(stop)
        passes.next(passes.width * 2, passes.there, passes.here)
    with f.when(passes.here.ne(first)):
        f.copy(first, other, length * n)
    f.release(other)
    f.ret(constant("i1", 1))
    return f


def _merge(
    f: StoreFunction,
    records: Records,
    by: Records,
    source: Value,
    target: Value,
    start: Value,
    middle: Value,
    stop: Value,
) -> None:
    """Two runs of `source` that follow one another, as one run of `target`."""
    n = records.nbytes
    with f.loop(to=start, left=start, right=middle) as loop:
        loop.going(loop.to < stop)
        some, both, left, right, on = (f.later(k) for k in ("some", "both", "left", "right", "on"))
        a, b = f.parameters(on, "i64", "i64")
        a_at, b_at = f.offset(source, loop.left * n), f.offset(source, loop.right * n)
        here = f.offset(target, loop.to * n)
        f.branch(loop.left < middle, some, right)
        f.at(some)
        f.branch(loop.right < stop, both, left)
        f.at(both)
        f.branch(_before(f, by, f.descending, b_at, a_at), right, left)
        f.at(left)
        records.copy(f, here, a_at)
        f.jump(on, loop.left + 1, loop.right)
        f.at(right)
        records.copy(f, here, b_at)
        f.jump(on, loop.left, loop.right + 1)
        f.at(on)
        loop.next(loop.to + 1, a, b)


@cache
def _insertion(records: Records, keys: int) -> StoreFunction:
    """Sort `length` records at `first`."""
    f = StoreFunction(
        "void",
        f"insertion_{records.name}_by_{keys}",
        first="ptr",
        length="i64",
        descending="i1",
    )
    n, by = records.nbytes, Records(records.dtypes[:keys])
    with f.each(f.length, f.literal("i64", 1)) as i:
        item = records.load(f, f.offset(f.first, i * n))
        with f.loop(at=i) as loop:
            loop.going(loop.at > 0)
            previous = f.offset(f.first, (loop.at - 1) * n)
            there = by.load(f, previous)
            loop.going(f.select(f.descending, by.less(f, there, item), by.less(f, item, there)))
            records.copy(f, f.offset(f.first, loop.at * n), previous)
            loop.next(loop.at - 1)
        records.store(f, f.offset(f.first, loop.at * n), item)
    f.ret()
    return f
