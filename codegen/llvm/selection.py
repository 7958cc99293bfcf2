"""A part of a sorted row, without sorting the row: top-k, partitions, medians.

A sample of the row, sorted, gives bounds between which the part lies in all likelihood. One pass counts
the elements below the lower bound and collects those between the two; only these are sorted. Where
the part turns out to reach beyond the bounds the whole row is sorted after all: the result is exact.
"""

from __future__ import annotations

import math

from ..limits import limits
from ..sort_blocks import MOST_BLOCKS
from .row_parts import CUT_ROW, EACH_BLOCK, NEXT_BLOCK, Fields

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
    name: str, row: str, size: int, n: int, start: int, stop: int, zeros: bool
) -> tuple[str, ...]:
    """`void @name_row(...)` as `@row_row` of `radix`, but only start..stop of the target is filled.

    `size` is that of an element in bytes. `zeros`: the two zeros of encoded floats are equal.
    """
    low, high = bounds(n, start, stop)
    bits = 8 * size
    element = f"i{bits}"
    lanes = 64 // size
    middle = 1 << (bits - 1)
    fields = {
        "name": name,
        "row": row,
        "E": element,
        "size": size,
        "W": lanes,
        "V": f"<{lanes} x {element}>",
        "sample": SAMPLE,
        "stride": n // SAMPLE,
        "low": _bound(element, "low", low, "0"),
        "high": _bound(element, "high", high if high < SAMPLE else -1, "-1"),
        # One of two equal zeros as a bound: both are inside.
        "low_zero": f"{middle if zeros else 0}",
        "low_moved": f"{middle - 1 if zeros else 0}",
        "high_zero": f"{middle - 1 if zeros else -1}",
        "high_moved": f"{middle if zeros else -1}",
        "start": start,
        "stop": stop,
        "count": stop - start,
        "block": limits().sort_block,
        "most": MOST_BLOCKS,
        "words": 2 * MOST_BLOCKS,
    }
    return tuple(text.format(**fields) for text in (_SCAN, _WINDOW))


def _bound(element: str, name: str, rank: int, otherwise: str) -> str:
    """Text that sets %name to the element of the sorted sample with this rank."""
    if rank < 0:
        return f"  %{name} = add {element} 0, {otherwise}\n"
    return (
        f"  %{name}_rank = getelementptr {element}, ptr %scratch, i64 {rank}\n"
        f"  %{name} = load {element}, ptr %{name}_rank, align {int(element[1:]) // 8}\n"
    )


_FIELDS = Fields("ptr keys, ptr to, i64 n, i64 length, {E} low, {E} high, ptr counts")

# Blocks lo..hi of the row: count what is below the bounds, collect what is between them.
_SCAN = (
    """define internal void @{name}_scan(ptr %ctx, i64 %lo, i64 %hi) nounwind {{
entry:
"""
    + _FIELDS.load()
    + """  %low1 = insertelement {V} poison, {E} %low, i64 0
  %lows = shufflevector {V} %low1, {V} poison, <{W} x i32> zeroinitializer
  %high1 = insertelement {V} poison, {E} %high, i64 0
  %highs = shufflevector {V} %high1, {V} poison, <{W} x i32> zeroinitializer
"""
    + EACH_BLOCK
    + """  br label %each
each:
  %i = phi i64 [ %start, %block ], [ %i_next, %collected ]
  %below = phi i64 [ 0, %block ], [ %below_next, %collected ]
  %place = phi i64 [ %start, %block ], [ %place_next, %collected ]
  %i_next = add i64 %i, {W}
  %whole = icmp sle i64 %i_next, %stop
  %some = icmp slt i64 %i, %stop
  br i1 %some, label %look, label %done
look:
  %left = sub i64 %stop, %i
  %off = sub i64 {W}, %left
  %shift = select i1 %whole, i64 0, i64 %off
  %shift_word = trunc i64 %shift to i{W}
  %lanes = lshr i{W} -1, %shift_word
  %mask = bitcast i{W} %lanes to <{W} x i1>
  %x_at = getelementptr {E}, ptr %keys, i64 %i
  %x = call {V} @llvm.masked.load.v{W}{E}.p0(ptr align {size} %x_at, <{W} x i1> %mask, {V} %lows)
  %less = icmp ult {V} %x, %lows
  %greater = icmp ugt {V} %x, %highs
  %less_word = bitcast <{W} x i1> %less to i{W}
  %less_count = call i{W} @llvm.ctpop.i{W}(i{W} %less_word)
  %less_wide = zext i{W} %less_count to i64
  %below_next = add i64 %below, %less_wide
  %outside = or <{W} x i1> %less, %greater
  %outside_word = bitcast <{W} x i1> %outside to i{W}
  %between = xor i{W} %outside_word, -1
  %here = and i{W} %between, %lanes
  br label %bits
bits:
  %word = phi i{W} [ %here, %look ], [ %word_next, %bit ]
  %place_next = phi i64 [ %place, %look ], [ %place_after, %bit ]
  %any = icmp ne i{W} %word, 0
  br i1 %any, label %bit, label %collected
bit:
  %lane = call i{W} @llvm.cttz.i{W}(i{W} %word, i1 true)
  %lane_wide = zext i{W} %lane to i64
  %at = add i64 %i, %lane_wide
  %from_at = getelementptr {E}, ptr %keys, i64 %at
  %y = load {E}, ptr %from_at, align {size}
  %y_at = getelementptr {E}, ptr %to, i64 %place_next
  store {E} %y, ptr %y_at, align {size}
  %place_after = add i64 %place_next, 1
  %word_less = sub i{W} %word, 1
  %word_next = and i{W} %word, %word_less
  br label %bits
collected:
  br label %each
done:
  %twice = mul i64 %b, 2
  %below_at = getelementptr i64, ptr %counts, i64 %twice
  store i64 %below, ptr %below_at, align 8
  %got_at = getelementptr i64, ptr %below_at, i64 1
  %got = sub i64 %place, %start
  store i64 %got, ptr %got_at, align 8
  br label %next
"""
    + NEXT_BLOCK
)

_WINDOW = (
    """define internal void @{name}_row(ptr %keys, ptr %target, ptr %scratch, ptr %counts, i64 %n)
    nounwind {{
entry:
  %found = alloca [{words} x i64], align 8
"""
    + _FIELDS.allocate()
    + """  br label %sample
sample:
  %s = phi i64 [ 0, %entry ], [ %s_next, %sample ]
  %base = mul i64 %s, {stride}
  %spread = mul i64 %s, 7919
  %offset = urem i64 %spread, {stride}
  %from = add i64 %base, %offset
  %from_at = getelementptr {E}, ptr %keys, i64 %from
  %x = load {E}, ptr %from_at, align {size}
  %sample_at = getelementptr {E}, ptr %target, i64 %s
  store {E} %x, ptr %sample_at, align {size}
  %s_next = add i64 %s, 1
  %s_more = icmp slt i64 %s_next, {sample}
  br i1 %s_more, label %sample, label %sampled
sampled:
  %spare = getelementptr {E}, ptr %scratch, i64 {sample}
  call void @{row}_row(ptr %target, ptr %scratch, ptr %spare, ptr %counts, i64 {sample})
{low}{high}  %low_is_zero = icmp eq {E} %low, {low_zero}
  %low_bound = select i1 %low_is_zero, {E} {low_moved}, {E} %low
  %high_is_zero = icmp eq {E} %high, {high_zero}
  %high_bound = select i1 %high_is_zero, {E} {high_moved}, {E} %high
"""
    + CUT_ROW
    + _FIELDS.store(
        keys="%keys",
        to="%target",
        n="%n",
        length="%length",
        low="%low_bound",
        high="%high_bound",
        counts="%found",
    )
    + """  call void @jitney_parallel_for(ptr @{name}_scan, ptr %ctx, i64 %blocks, i64 1)
  br label %gather
gather:
  %b = phi i64 [ 0, %sampled ], [ %b_next, %gather ]
  %below = phi i64 [ 0, %sampled ], [ %below_next, %gather ]
  %got = phi i64 [ 0, %sampled ], [ %got_next, %gather ]
  %twice = mul i64 %b, 2
  %below_at = getelementptr i64, ptr %found, i64 %twice
  %below_here = load i64, ptr %below_at, align 8
  %below_next = add i64 %below, %below_here
  %got_at = getelementptr i64, ptr %below_at, i64 1
  %got_here = load i64, ptr %got_at, align 8
  %block_start = mul i64 %b, %length
  %block_at = getelementptr {E}, ptr %target, i64 %block_start
  %dense_at = getelementptr {E}, ptr %target, i64 %got
  %bytes = mul i64 %got_here, {size}
  call void @llvm.memmove.p0.p0.i64(ptr %dense_at, ptr %block_at, i64 %bytes, i1 false)
  %got_next = add i64 %got, %got_here
  %b_next = add i64 %b, 1
  %b_more = icmp slt i64 %b_next, %blocks
  br i1 %b_more, label %gather, label %gathered
gathered:
  %above_start = icmp sle i64 %below_next, {start}
  %reach = add i64 %below_next, %got_next
  %below_stop = icmp sle i64 {stop}, %reach
  %good = and i1 %above_start, %below_stop
  br i1 %good, label %part, label %all
part:
  call void @{row}_row(ptr %target, ptr %scratch, ptr %keys, ptr %counts, i64 %got_next)
  %skip = sub i64 {start}, %below_next
  %part_at = getelementptr {E}, ptr %scratch, i64 %skip
  %start_at = getelementptr {E}, ptr %target, i64 {start}
  %part_bytes = mul i64 {count}, {size}
  call void @llvm.memcpy.p0.p0.i64(ptr %start_at, ptr %part_at, i64 %part_bytes, i1 false)
  ret void
all:
  call void @{row}_row(ptr %keys, ptr %target, ptr %scratch, ptr %counts, i64 %n)
  ret void
}}
"""
)
