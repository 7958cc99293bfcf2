"""Sorting rows of unsigned keys by vectorised quicksort, for CPUs that compress vectors.

A row is partitioned around a pivot from one buffer into the other: each vector of keys stores those up
to the pivot at the front and the others at the back. Parts of at most a block of keys are sorted in
registers by a bitonic network. The first rounds of long rows cut them into segments that threads then
sort on their own. The sorted values of a row are unique, so neither threads nor pivots show; equal
zeros of floats, whose codes differ, are put back into their first order at the end.

B. Bramas, A novel hybrid quicksort algorithm vectorized using AVX-512 on Intel Skylake (2017).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from ...limits import limits
from ...llvm.builder import Value, bits_of, poison, vector
from ...llvm.modules import Function
from .cpu_network import block_function
from .cpu_row_parts import Fields, part, run_parts, sort_row

SEGMENTS = 32  # at the most: a power of two
DEPTH = 64  # partitions of a part after which pivots are taken to be bad


class _Keys(NamedTuple):
    """What is sorted, and how much of it is in registers."""

    element: str
    lanes: int
    block: int  # keys that the network takes
    to_memory: bool  # vectors are compressed by the instruction that stores them

    @property
    def vector(self) -> str:
        return vector(self.lanes, self.element)

    @property
    def size(self) -> int:
        return bits_of(self.element) // 8


class Quicksort(NamedTuple):
    """`row(keys, target, scratch, counts, n)`, `quick(from, a, b, out, n, depth)`, and all functions."""

    row: Function
    quick: Function
    functions: tuple[Function, ...]


def quicksort(
    name: str, merge: Function, bits: int, registers: int, zeros: bool, to_memory: bool
) -> Quicksort:
    """Functions that sort in blocks of so many `registers`.

    `merge` sorts rows in n log n steps: for those that pivots cut badly. `zeros`: the codes of the two
    zeros count as equal and stay in their order. `to_memory`: see `Target.compresses_to_memory`.
    """
    keys = _Keys(f"i{bits}", 512 // bits, registers * (512 // bits), to_memory)
    block = block_function(f"{name}_block", bits, registers)
    median, halves = _median(name, keys), _part(name, keys)
    quick = _quick(name, keys, block, merge, median, halves)
    cut, segments = _cut(name, keys, median, halves), _segments(name, keys, quick)
    restore = (_restore(name, keys),) if zeros else ()
    ascends = _ascends(name, keys)
    row = _row(name, keys, ascends, quick, cut, segments, *restore)
    functions = (block, median, halves, quick, ascends, cut, segments, *restore, row)
    return Quicksort(row, quick, functions)


def _median(name: str, keys: _Keys) -> Function:
    """A key near the median: of three vectors, then twice of three lanes."""
    f = Function(keys.element, f"{name}_median", internal=True, source="ptr", n="i64")

    def median(x: Value, y: Value, z: Value) -> Value:
        low, high = f.intrinsic("umin", x.type, x, y), f.intrinsic("umax", x.type, x, y)
        return f.intrinsic("umax", x.type, low, f.intrinsic("umin", x.type, high, z))

    def turned(x: Value, by: int) -> Value:
        order = [(i + by) % keys.lanes for i in range(keys.lanes)]
        return f.shuffle(x, poison(x.type), order)

    last = f.n - keys.lanes
    middle = last >> 1
    pivot = median(
        *(
            f.load(keys.vector, address, align=keys.size)
            for address in (
                f.source,
                f.offset(f.source, middle, keys.element),
                f.offset(f.source, last, keys.element),
            )
        )
    )
    pivot = median(pivot, turned(pivot, 1), turned(pivot, 2))
    pivot = median(pivot, turned(pivot, 3), turned(pivot, 6))
    f.ret(f.extract(pivot, 0))
    return f


def _part(name: str, keys: _Keys) -> Function:
    """Move the keys up to the pivot to the front of `to`, the others to its back; how many are first."""
    f = Function(
        *("i64", f"{name}_part"), internal=True, source="ptr", to="ptr", n="i64", pivot=keys.element
    )
    element, lanes, word = keys.element, keys.lanes, f"i{keys.lanes}"
    pivots = f.splat(f.pivot, lanes)
    rest = f.n % lanes
    whole = f.n - rest

    def count(mask: Value) -> Value:
        return f.intrinsic("ctpop", word, mask.to("bitcast", word)).zext("i64")

    def first(n: Value) -> Value:
        bits = (f.literal("i64", -1) << n) ^ -1
        return bits.trunc(word).to("bitcast", vector(lanes, "i1"))

    def put(x: Value, front: Value, low: Value, back: Value, high: Value) -> None:
        addresses = [f.offset(f.to, at, element) for at in (front, back)]
        for address, mask in zip(addresses, (low, high), strict=True):
            if keys.to_memory:
                f.store_compressed(x, address, mask, keys.size)
            else:
                f.store_masked(f.compress(x, mask), address, first(count(mask)), keys.size)

    with f.loop(i=0, l=0) as loop:
        loop.going(loop.i.ult(whole))
        x = f.load(keys.vector, f.source, loop.i, element, align=keys.size)
        low = x.ule(pivots)
        high = low ^ -1
        got = count(low)
        after = loop.i + lanes
        front = loop.l + got
        put(x, loop.l, low, f.n - after + front, high)
        loop.next(after, front)
    address = f.offset(f.source, whole, element)
    off = (lanes - rest).trunc(word)
    full = rest.eq(0)
    bits = f.literal(word, -1) >> f.select(full, 0, off)
    there = f.select(full, 0, bits).to("bitcast", vector(lanes, "i1"))
    y = f.load_masked(address, there, f.literal(keys.vector, 0), keys.size)
    low = y.ule(pivots) & there
    high = low ^ there
    total = loop.l + count(low)
    put(y, loop.l, low, total, high)
    f.ret(total)
    return f


def _quick(
    name: str, keys: _Keys, block: Function, merge: Function, median: Function, halves: Function
) -> Function:
    """Sort the keys of `source`, partitioned into `a`, then back and forth between `a` and `b`, into
    `out`, which is `a` or `b`. Does not write `source` unless it is one of them."""
    memory = dict.fromkeys(("source", "a", "b", "out"), "ptr")
    f = Function("void", f"{name}_quick", internal=True, **memory, n="i64", depth="i64")
    element, size = keys.element, keys.size
    head = f.later("head", x="ptr", y="ptr", z="ptr", o="ptr", m="i64", d="i64")
    f.jump(head, *f.args)
    x, y, z, o, m, d = f.at(head)
    in_block, large, slow, copy, done, cut, both, top = (
        f.later(n) for n in ("block", "large", "merge", "copy", "done", "part", "both", "top")
    )
    f.branch(m.ule(keys.block), in_block, large)
    f.at(in_block)
    f.run(block, x, o, m)
    f.ret()

    f.at(large)
    deeper = d - 1
    f.branch(d.eq(0), slow, cut)
    f.at(slow)
    f.run(merge, x, y, y, y, m)
    f.branch(y.eq(o), done, copy)
    f.at(copy)
    f.copy(o, y, m * size)
    f.jump(done)
    f.at(done)
    f.ret()

    f.at(cut)
    pivot = f.run(median, x, m)
    lower = f.run(halves, x, y, m, pivot)
    f.branch(lower.eq(m), top, both)
    f.at(both)
    f.run(f, y, z, y, o, lower, deeper)
    upper = [f.offset(p, lower, element) for p in (y, z, o)]
    f.jump(head, upper[0], upper[1], upper[0], upper[2], m - lower, deeper)

    f.at(top)  # the pivot is the largest: keys equal to it are done
    again, fill = f.later("again"), f.later("fill", below="i64")
    less = pivot - 1
    f.fork(pivot.eq(0), fill, (0,), again)
    f.at(again)
    f.jump(fill, f.run(halves, y, z, m, less))
    (below,) = f.at(fill)
    with f.loop(i=below) as loop:
        loop.going(loop.i.ult(m))
        f.store(pivot, o, loop.i, element)
        loop.next(loop.i + 1)
    f.jump(head, z, y, z, o, below, deeper)
    return f


# Parts of a row: keys, where they go, where segments start, where they will after this round.
_ROW = Fields(source="ptr", to="ptr", starts="ptr", cuts="ptr", target="ptr")


class _Segment(NamedTuple):
    """The m keys from `start` on are at `x`, and their index is `y`."""

    number: Value
    start: Value
    m: Value
    x: Value
    y: Value


@contextmanager
def _each_segment(
    f: Function, source: Value, to: Value, starts: Value, e: str
) -> Iterator[_Segment]:
    """Walk the segments lo..hi."""
    with f.loop(s=f.lo) as loop:
        loop.going(loop.s.ult(f.hi))
        after = loop.s + 1
        address = f.offset(starts, loop.s, "i64")
        start = f.load("i64", address)
        m = f.load("i64", address, 1, "i64") - start
        yield _Segment(loop.s, start, m, f.offset(source, start, e), f.offset(to, start, e))
        loop.next(after)


def _cut(name: str, keys: _Keys, median: Function, halves: Function) -> Function:
    """Cut segments lo..hi in two."""
    f = part(f"{name}_cut")
    row = _ROW.load(f)
    with _each_segment(f, row.source, row.to, row.starts, keys.element) as (s, start, m, x, y):
        address = f.offset(row.cuts, s * 2, "i64")
        f.store(start, address)
        copy, cut, following = f.later("copy"), f.later("part"), f.later("next", lower="i64")
        f.branch(m.ule(keys.block), copy, cut)
        f.at(copy)
        f.copy(y, x, m * keys.size)
        f.jump(following, m)
        f.at(cut)
        f.jump(following, f.run(halves, x, y, m, f.run(median, x, m)))
        (lower,) = f.at(following)
        f.store(start + lower, address, 1, "i64")
    f.ret()
    return f


def _segments(name: str, keys: _Keys, quick: Function) -> Function:
    """Sort segments lo..hi into the target."""
    f = part(f"{name}_segments")
    row = _ROW.load(f)
    with _each_segment(f, row.source, row.to, row.starts, keys.element) as (_, start, m, x, y):
        f.run(quick, x, y, x, f.offset(row.target, start, keys.element), m, DEPTH)
    f.ret()
    return f


def _ascends(name: str, keys: _Keys) -> Function:
    """Whether the keys are sorted; of others, vectors are looked at until one tells."""
    f = Function("i1", f"{name}_ascends", internal=True, keys="ptr", n="i64")
    last, word = f.n - keys.lanes, f"i{keys.lanes}"
    rest, falls, next_vector, next_key = (
        f.later("rest", i="i64"),
        *(f.later(hint) for hint in ("falls", "vector", "key")),
    )
    with f.loop(i=0) as loop:
        loop.going(loop.i < last)
        x, y = (
            f.load(keys.vector, f.keys, at, keys.element, align=keys.size)
            for at in (loop.i, loop.i + 1)
        )
        f.branch(x.ugt(y).to("bitcast", word).ne(0), falls, next_vector)
        f.at(next_vector)
        loop.next(loop.i + keys.lanes)
    f.jump(rest, loop.i)
    (first,) = f.at(rest)
    with f.loop(i=first) as loop:
        loop.going(loop.i + 1 < f.n)
        x, y = (f.load(keys.element, f.keys, at, keys.element) for at in (loop.i, loop.i + 1))
        f.branch(x.ugt(y), falls, next_key)
        f.at(next_key)
        loop.next(loop.i + 1)
    f.ret(f.literal("i1", 1))
    f.at(falls)
    f.ret(f.literal("i1", 0))
    return f


def _row(
    name: str,
    keys: _Keys,
    ascends: Function,
    quick: Function,
    cut: Function,
    segments: Function,
    restore: Function | None = None,
) -> Function:
    f = sort_row(name)
    hints = ("unsorted", "ready", "long", "short", "sorted")
    unsorted, ready, long, short, done = (f.later(hint) for hint in hints)
    f.branch(f.run(ascends, f.keys, f.n), ready, unsorted)
    f.at(ready)
    f.move(f.target, f.keys, f.n * keys.size)
    f.ret()

    f.at(unsorted)
    f.branch(f.n.uge(2 * limits().sort_segment), long, short)
    f.at(short)
    f.run(quick, f.keys, f.target, f.scratch, f.target, f.n, DEPTH)
    f.jump(done)

    f.at(long)
    even, odd = (f.alloca(f"[{SEGMENTS + 1} x i64]", align=8) for _ in range(2))
    context = _ROW.allocate(f)
    context.store(target=f.target)
    f.store(f.literal("i64", 0), even)
    memory = {"source": f.keys, "to": f.target, "spare": f.scratch, "starts": even, "cuts": odd}
    with f.loop(count=1, **memory) as loop:
        f.store(f.n, loop.starts, loop.count, "i64")
        context.store(source=loop.source, to=loop.to, starts=loop.starts, cuts=loop.cuts)
        run_parts(f, cut, context, loop.count)
        count = loop.count * 2
        coarse = (count * limits().sort_segment).ult(f.n)
        again = coarse & count.ult(SEGMENTS)
        loop.repeat(again, count, loop.to, loop.spare, loop.to, loop.cuts, loop.starts)
    f.store(f.n, loop.cuts, count, "i64")
    context.store(source=loop.to, to=loop.spare, starts=loop.cuts)
    run_parts(f, segments, context, count)
    f.jump(done)
    f.at(done)
    if restore is not None:
        f.run(restore, f.keys, f.target, f.n)
    f.ret()
    return f


def _restore(name: str, keys: _Keys) -> Function:
    """Where the row has both zeros, let them follow each other as they did in the keys."""
    f = Function("void", f"{name}_restore", internal=True, keys="ptr", sorted="ptr", n="i64")
    element = keys.element
    minus = (1 << (bits_of(element) - 1)) - 1  # the code of -0.0; that of 0.0 follows
    with f.loop(lo=0, hi=f.n) as search:  # the first key from -0.0 on
        search.going(search.lo.ult(search.hi))
        middle = search.lo + search.hi >> 1
        before = f.load(element, f.sorted, middle, element).ult(minus)
        after = middle + 1
        lo = f.select(before, after, search.lo)
        search.next(lo, f.select(before, search.hi, middle))
    first, zeros, out = f.later("first"), f.later("zeros"), f.later("out")
    f.branch(search.lo.ult(f.n), first, out)
    f.at(first)
    negative = f.load(element, f.sorted, search.lo, element).eq(minus)
    f.branch(negative, zeros, out)
    f.at(zeros)
    with f.loop(i=0, p=search.lo) as loop:
        loop.going(loop.i.ult(f.n))
        put, following = f.later("put"), f.later("next", p="i64")
        x = f.load(element, f.keys, loop.i, element)
        f.fork((x - minus).ult(2), put, (), following, (loop.p,))
        f.at(put)
        f.store(x, f.sorted, loop.p, element)
        f.jump(following, loop.p + 1)
        (p,) = f.at(following)
        loop.next(loop.i + 1, p)
    f.jump(out)
    f.at(out)
    f.ret()
    return f
