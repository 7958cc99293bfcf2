"""A part of a sorted row, without sorting the row: top-k, partitions, medians.

A sample of the row, sorted, gives bounds between which the part lies in all likelihood. One pass counts
the elements below the lower bound and collects those between the two; only these are sorted. Where
the part turns out to reach beyond the bounds the whole row is sorted after all: the result is exact.
(Bounds from a sample are R. Floyd's and R. Rivest's, Expected time bounds for selection, 1975.)
"""

from __future__ import annotations

import math

from ...llvm.builder import Value, bits_of, vector
from ...llvm.modules import Function
from ...schedule.sort_blocks import MOST_BLOCKS
from .cpu_row_parts import Fields, cut_row, each_block, part, put_pair, run_parts, sort_row

SAMPLE = 4096


def bounds(n: int, start: int, stop: int) -> tuple[int, int]:
    """Ranks in the sorted sample that elements start..stop of the sorted row lie between.

    Four standard deviations and a few more on either side; -1 and SAMPLE stand for no bound.
    """

    def margin(rank: int) -> float:
        q = rank / n
        return 8 + 4 * math.sqrt(SAMPLE * q * (1 - q))

    low = math.floor(start / n * SAMPLE - margin(start))
    high = math.ceil(stop / n * SAMPLE + margin(stop))
    return max(low, -1), min(high, SAMPLE)


def window_functions(
    name: str, sort: Function, size: int, n: int, start: int, stop: int, zeros: bool
) -> tuple[Function, Function]:
    """`void @name_row(...)`, last, as `sort` of one row, but only start..stop of the target is filled.

    `size` is that of an element in bytes. `zeros`: the two zeros of encoded floats are equal.
    """
    element = f"i{8 * size}"
    row = Fields(
        **dict.fromkeys(("keys", "to"), "ptr"),
        **dict.fromkeys(("n", "length"), "i64"),
        **dict.fromkeys(("low", "high"), element),
        counts="ptr",
    )
    scan = _scan(f"{name}_scan", row, element, 64 // size)
    return scan, _window(name, row, scan, sort, n, start, stop, element, zeros)


def _scan(name: str, fields: Fields, element: str, lanes: int) -> Function:
    """Blocks lo..hi of the row: count what is below the bounds, collect what is between them."""
    f = part(name)
    word, size = f"i{lanes}", bits_of(element) // 8
    row = fields.load(f)
    lows, highs = f.splat(row.low, lanes), f.splat(row.high, lanes)
    with each_block(f, row.n, row.length) as (b, start, stop):
        with f.loop(i=start, below=0, slot=start) as loop:
            after = loop.i + lanes
            whole = after <= stop
            loop.going(loop.i < stop)
            off = lanes - (stop - loop.i)
            inside = f.literal(word, -1) >> f.select(whole, 0, off).trunc(word)
            mask = inside.to("bitcast", vector(lanes, "i1"))
            x = f.load_masked(f.offset(row.keys, loop.i, element), mask, lows, size)
            less, greater = x.ult(lows), x.ugt(highs)
            count = f.intrinsic("ctpop", word, less.to("bitcast", word))
            below = loop.below + count.zext("i64")
            here = ((less | greater).to("bitcast", word) ^ -1) & inside
            with f.loop(word=here, slot=loop.slot) as bits:
                bits.going(bits.word.ne(0))
                lane = f.intrinsic("cttz", word, bits.word, True)
                y = f.load(element, row.keys, loop.i + lane.zext("i64"), element)
                f.store(y, row.to, bits.slot, element)
                slot = bits.slot + 1
                bits.next(bits.word & bits.word - 1, slot)
            loop.next(after, below, bits.slot)
        put_pair(f, row.counts, b, loop.below, loop.slot - start)
    f.ret()
    return f


def _window(
    name: str,
    fields: Fields,
    scan: Function,
    sort: Function,
    n: int,
    start: int,
    stop: int,
    element: str,
    zeros: bool,
) -> Function:
    f = sort_row(name)
    size = bits_of(element) // 8
    counts = f.alloca(f"[{2 * MOST_BLOCKS} x i64]", align=8)
    context = fields.allocate(f)
    stride = n // SAMPLE
    with f.loop(s=0) as sample:
        at = sample.s * stride + sample.s * 7919 % stride
        x = f.load(element, f.keys, at, element)
        f.store(x, f.target, sample.s, element)
        after = sample.s + 1
        sample.repeat(after < SAMPLE, after)
    spare = f.offset(f.scratch, SAMPLE, element)
    f.run(sort, f.target, f.scratch, spare, f.counts, SAMPLE)

    def bound(rank: int, otherwise: int) -> Value:
        """The element of the sorted sample with this rank."""
        if rank < 0:
            return f.literal(element, otherwise)
        return f.load(element, f.scratch, rank, element)

    first, last = bounds(n, start, stop)
    low, high = bound(first, 0), bound(last if last < SAMPLE else -1, -1)
    if zeros:  # one of two equal zeros as a bound: both are inside
        middle = 1 << (8 * size - 1)
        low = f.select(low.eq(middle), middle - 1, low)
        high = f.select(high.eq(middle - 1), middle, high)
    blocks, length = cut_row(f, f.n)
    context.store(keys=f.keys, to=f.target, n=f.n, length=length, low=low, high=high, counts=counts)
    run_parts(f, scan, context, blocks)
    with f.loop(b=0, below=0, got=0) as gather:
        pair = f.offset(counts, gather.b * 2, "i64")
        below = gather.below + f.load("i64", pair)
        got_here = f.load("i64", pair, 1, "i64")
        block = f.offset(f.target, gather.b * length, element)
        f.move(f.offset(f.target, gather.got, element), block, got_here * size)
        got = gather.got + got_here
        after = gather.b + 1
        gather.repeat(after < blocks, after, below, got)
    part_only, all = f.later("part"), f.later("all")
    above_start = below <= start
    f.branch(above_start & (below + got >= stop), part_only, all)
    f.at(part_only)
    f.run(sort, f.target, f.scratch, f.keys, f.counts, got)
    sorted_part = f.offset(f.scratch, start - below, element)
    f.copy(f.offset(f.target, start, element), sorted_part, (stop - start) * size)
    f.ret()
    f.at(all)
    f.run(sort, *f.args)
    f.ret()
    return f
