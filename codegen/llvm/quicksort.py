"""Sorting rows of unsigned keys by vectorised quicksort, for CPUs that compress vectors.

A row is partitioned around a pivot from one buffer into the other: each vector of keys stores those up
to the pivot at the front and the others at the back. Parts of at most a block of keys are sorted in
registers by a bitonic network. The first rounds of long rows cut them into segments that threads then
sort on their own. The sorted values of a row are unique, so neither threads nor pivots show; equal
zeros of floats, whose codes differ, are put back into their first order at the end.
"""

from __future__ import annotations

from ..limits import limits
from .row_parts import Fields
from .sorting_network import block_function

SEGMENTS = 32  # at the most: a power of two
DEPTH = 64  # partitions of a part after which pivots are taken to be bad


def quicksort_functions(
    name: str, merge: str, bits: int, registers: int, zeros: bool
) -> tuple[str, ...]:
    """`void @name_row(ptr keys, ptr target, ptr scratch, ptr counts, i64 n)` and what it calls.

    Blocks have so many `registers`. `@merge_row` sorts as `@name_row` in n log n steps: for rows that
    pivots cut badly. `zeros`: the codes of the two zeros count as equal and stay in their order.
    """
    lanes = 512 // bits
    fields = {
        "name": name,
        "merge": merge,
        "E": f"i{bits}",
        "V": f"<{lanes} x i{bits}>",
        "M": f"<{lanes} x i1>",
        "W": lanes,
        "most": registers * lanes,
        "size": bits // 8,
        "suffix": f"v{lanes}i{bits}",
        "splat": f"<{lanes} x i32> zeroinitializer",
        "segment": limits().sort_segment,
        "long": 2 * limits().sort_segment,
        "segments": SEGMENTS,
        "slots": SEGMENTS + 1,
        "depth": DEPTH,
        "minus": (1 << (bits - 1)) - 1,
        "plus": 1 << (bits - 1),
        "first": ", ".join(f"i32 {i % lanes}" for i in range(1, lanes + 1)),
        "second": ", ".join(f"i32 {i % lanes}" for i in range(2, lanes + 2)),
        "third": ", ".join(f"i32 {(i + 3) % lanes}" for i in range(lanes)),
        "sixth": ", ".join(f"i32 {(i + 6) % lanes}" for i in range(lanes)),
    }
    restore = (_RESTORE, _ROW_ZEROS) if zeros else (_ROW,)
    texts = tuple(t.format(**fields) for t in (_MEDIAN, _PART, _QUICK, _CUT, _SEGMENTS, *restore))
    return (block_function(f"{name}_block", bits, lanes, registers), *texts)


def quicksort_declarations(bits: int) -> frozenset[str]:
    """Declarations of the intrinsics that `quicksort_functions` calls."""
    lanes = 512 // bits
    vector, mask, suffix = f"<{lanes} x i{bits}>", f"<{lanes} x i1>", f"v{lanes}i{bits}"
    return frozenset(
        {
            f"declare {vector} @llvm.umin.{suffix}({vector}, {vector})",
            f"declare {vector} @llvm.umax.{suffix}({vector}, {vector})",
            f"declare {vector} @llvm.masked.load.{suffix}.p0(ptr, {mask}, {vector})",
            f"declare void @llvm.masked.store.{suffix}.p0({vector}, ptr, {mask})",
            f"declare void @llvm.masked.compressstore.{suffix}({vector}, ptr, {mask})",
            f"declare i{lanes} @llvm.ctpop.i{lanes}(i{lanes})",
        }
    )


def _median_text(out: str, x: str, y: str, z: str) -> str:
    """Set %`out` to the median of three vectors."""
    umin, umax = "call {V} @llvm.umin.{suffix}", "call {V} @llvm.umax.{suffix}"
    return (
        f"  %{out}_low = {umin}({{V}} %{x}, {{V}} %{y})\n"
        f"  %{out}_high = {umax}({{V}} %{x}, {{V}} %{y})\n"
        f"  %{out}_cap = {umin}({{V}} %{out}_high, {{V}} %{z})\n"
        f"  %{out} = {umax}({{V}} %{out}_low, {{V}} %{out}_cap)\n"
    )


# A key near the median: of three vectors, then twice of three lanes.
_MEDIAN = (
    """define internal {E} @{name}_median(ptr %from, i64 %n) nounwind {{
entry:
  %last = sub i64 %n, {W}
  %middle = lshr i64 %last, 1
  %y_at = getelementptr {E}, ptr %from, i64 %middle
  %z_at = getelementptr {E}, ptr %from, i64 %last
  %x = load {V}, ptr %from, align {size}
  %y = load {V}, ptr %y_at, align {size}
  %z = load {V}, ptr %z_at, align {size}
"""
    + _median_text("m", "x", "y", "z")
    + """  %m1 = shufflevector {V} %m, {V} poison, <{W} x i32> <{first}>
  %m2 = shufflevector {V} %m, {V} poison, <{W} x i32> <{second}>
"""
    + _median_text("p", "m", "m1", "m2")
    + """  %p1 = shufflevector {V} %p, {V} poison, <{W} x i32> <{third}>
  %p2 = shufflevector {V} %p, {V} poison, <{W} x i32> <{sixth}>
"""
    + _median_text("q", "p", "p1", "p2")
    + """  %found = extractelement {V} %q, i64 0
  ret {E} %found
}}
"""
)

# Move the keys up to the pivot to the front of `to`, the others to its back; how many are in front.
_PART = """define internal i64 @{name}_part(ptr %from, ptr %to, i64 %n, {E} %pivot) nounwind {{
entry:
  %pivot1 = insertelement {V} poison, {E} %pivot, i64 0
  %pivots = shufflevector {V} %pivot1, {V} poison, {splat}
  %rest = urem i64 %n, {W}
  %whole = sub i64 %n, %rest
  br label %each
each:
  %i = phi i64 [ 0, %entry ], [ %i_next, %look ]
  %l = phi i64 [ 0, %entry ], [ %l_next, %look ]
  %some = icmp ult i64 %i, %whole
  br i1 %some, label %look, label %last
look:
  %x_at = getelementptr {E}, ptr %from, i64 %i
  %x = load {V}, ptr %x_at, align {size}
  %low = icmp ule {V} %x, %pivots
  %high = xor {M} %low, splat (i1 true)
  %word = bitcast {M} %low to i{W}
  %got = call i{W} @llvm.ctpop.i{W}(i{W} %word)
  %got_wide = zext i{W} %got to i64
  %i_next = add i64 %i, {W}
  %l_next = add i64 %l, %got_wide
  %left = sub i64 %n, %i_next
  %r = add i64 %left, %l_next
  %l_at = getelementptr {E}, ptr %to, i64 %l
  %r_at = getelementptr {E}, ptr %to, i64 %r
  call void @llvm.masked.compressstore.{suffix}({V} %x, ptr align {size} %l_at, {M} %low)
  call void @llvm.masked.compressstore.{suffix}({V} %x, ptr align {size} %r_at, {M} %high)
  br label %each
last:
  %y_at = getelementptr {E}, ptr %from, i64 %whole
  %off = sub i64 {W}, %rest
  %off_word = trunc i64 %off to i{W}
  %full = icmp eq i64 %rest, 0
  %shift = select i1 %full, i{W} 0, i{W} %off_word
  %bits = lshr i{W} -1, %shift
  %there = select i1 %full, i{W} 0, i{W} %bits
  %lanes = bitcast i{W} %there to {M}
  %y = call {V} @llvm.masked.load.{suffix}.p0(ptr align {size} %y_at, {M} %lanes, {V} zeroinitializer)
  %y_up_to = icmp ule {V} %y, %pivots
  %y_low = and {M} %y_up_to, %lanes
  %y_high = xor {M} %y_low, %lanes
  %y_word = bitcast {M} %y_low to i{W}
  %y_got = call i{W} @llvm.ctpop.i{W}(i{W} %y_word)
  %y_wide = zext i{W} %y_got to i64
  %total = add i64 %l, %y_wide
  %front_at = getelementptr {E}, ptr %to, i64 %l
  %back_at = getelementptr {E}, ptr %to, i64 %total
  call void @llvm.masked.compressstore.{suffix}({V} %y, ptr align {size} %front_at, {M} %y_low)
  call void @llvm.masked.compressstore.{suffix}({V} %y, ptr align {size} %back_at, {M} %y_high)
  ret i64 %total
}}
"""

# Sort the keys of `from`, partitioned into `a`, then back and forth between `a` and `b`, into `out`,
# which is `a` or `b`. Does not write `from` unless it is one of them.
_QUICK = """define internal void @{name}_quick(ptr %from, ptr %a, ptr %b, ptr %out, i64 %n, i64 %depth)
    nounwind {{
entry:
  br label %head
head:                                             ; the upper part goes on here
  %x = phi ptr [ %from, %entry ], [ %a_up, %both ], [ %z, %equal ]
  %y = phi ptr [ %a, %entry ], [ %b_up, %both ], [ %y, %equal ]
  %z = phi ptr [ %b, %entry ], [ %a_up, %both ], [ %z, %equal ]
  %o = phi ptr [ %out, %entry ], [ %o_up, %both ], [ %o, %equal ]
  %m = phi i64 [ %n, %entry ], [ %m_up, %both ], [ %below, %equal ]
  %d = phi i64 [ %depth, %entry ], [ %d_next, %both ], [ %d_next, %equal ]
  %small = icmp ule i64 %m, {most}
  br i1 %small, label %block, label %large
block:
  call void @{name}_block(ptr %x, ptr %o, i64 %m)
  ret void
large:
  %d_next = sub i64 %d, 1
  %deep = icmp eq i64 %d, 0
  br i1 %deep, label %merge, label %part
merge:
  call void @{merge}_row(ptr %x, ptr %y, ptr %y, ptr %y, i64 %m)
  %there = icmp eq ptr %y, %o
  br i1 %there, label %done, label %copy
copy:
  %bytes = mul i64 %m, {size}
  call void @llvm.memcpy.p0.p0.i64(ptr %o, ptr %y, i64 %bytes, i1 false)
  br label %done
done:
  ret void
part:
  %pivot = call {E} @{name}_median(ptr %x, i64 %m)
  %l = call i64 @{name}_part(ptr %x, ptr %y, i64 %m, {E} %pivot)
  %all = icmp eq i64 %l, %m
  br i1 %all, label %top, label %both
both:
  call void @{name}_quick(ptr %y, ptr %z, ptr %y, ptr %o, i64 %l, i64 %d_next)
  %a_up = getelementptr {E}, ptr %y, i64 %l
  %b_up = getelementptr {E}, ptr %z, i64 %l
  %o_up = getelementptr {E}, ptr %o, i64 %l
  %m_up = sub i64 %m, %l
  br label %head
top:                                              ; the pivot is the largest: keys equal to it are done
  %zero = icmp eq {E} %pivot, 0
  %less = sub {E} %pivot, 1
  br i1 %zero, label %fill, label %again
again:
  %under = call i64 @{name}_part(ptr %y, ptr %z, i64 %m, {E} %less)
  br label %fill
fill:
  %below = phi i64 [ 0, %top ], [ %under, %again ]
  br label %each
each:
  %i = phi i64 [ %below, %fill ], [ %i_next, %put ]
  %some = icmp ult i64 %i, %m
  br i1 %some, label %put, label %equal
put:
  %put_at = getelementptr {E}, ptr %o, i64 %i
  store {E} %pivot, ptr %put_at, align {size}
  %i_next = add i64 %i, 1
  br label %each
equal:
  br label %head
}}
"""

# Parts of a row: keys, where they go, where segments start, where they will after this round.
_FIELDS = Fields("ptr from, ptr to, ptr starts, ptr cuts, ptr target")

# Walk the segments lo..hi: the %m keys from %start on are at %x, and their place is %y.
_EACH_SEGMENT = (
    "entry:\n"
    + _FIELDS.load()
    + """  br label %head
head:
  %s = phi i64 [ %lo, %entry ], [ %s_next, %next ]
  %more = icmp ult i64 %s, %hi
  br i1 %more, label %one, label %out
one:
  %s_next = add i64 %s, 1
  %start_at = getelementptr i64, ptr %starts, i64 %s
  %start = load i64, ptr %start_at, align 8
  %stop_at = getelementptr i64, ptr %start_at, i64 1
  %stop = load i64, ptr %stop_at, align 8
  %m = sub i64 %stop, %start
  %x = getelementptr {E}, ptr %from, i64 %start
  %y = getelementptr {E}, ptr %to, i64 %start
"""
)

# Cut segments lo..hi in two.
_CUT = (
    "define internal void @{name}_cut(ptr %ctx, i64 %lo, i64 %hi) nounwind {{\n"
    + _EACH_SEGMENT
    + """  %twice = mul i64 %s, 2
  %cut_at = getelementptr i64, ptr %cuts, i64 %twice
  store i64 %start, ptr %cut_at, align 8
  %small = icmp ule i64 %m, {most}
  br i1 %small, label %copy, label %part
copy:
  %bytes = mul i64 %m, {size}
  call void @llvm.memcpy.p0.p0.i64(ptr %y, ptr %x, i64 %bytes, i1 false)
  br label %next
part:
  %pivot = call {E} @{name}_median(ptr %x, i64 %m)
  %l = call i64 @{name}_part(ptr %x, ptr %y, i64 %m, {E} %pivot)
  br label %next
next:
  %lower = phi i64 [ %m, %copy ], [ %l, %part ]
  %cut = add i64 %start, %lower
  %upper_at = getelementptr i64, ptr %cut_at, i64 1
  store i64 %cut, ptr %upper_at, align 8
  br label %head
out:
  ret void
}}
"""
)

# Sort segments lo..hi into the target.
_SEGMENTS = (
    "define internal void @{name}_segments(ptr %ctx, i64 %lo, i64 %hi) nounwind {{\n"
    + _EACH_SEGMENT
    + """  %z = getelementptr {E}, ptr %target, i64 %start
  call void @{name}_quick(ptr %x, ptr %y, ptr %x, ptr %z, i64 %m, i64 {depth})
  br label %next
next:
  br label %head
out:
  ret void
}}
"""
)

_ROW = (
    """define internal void @{name}_row(ptr %keys, ptr %target, ptr %scratch, ptr %counts, i64 %n)
    nounwind {{
entry:
  %long = icmp uge i64 %n, {long}
  br i1 %long, label %prepare, label %short
short:
  call void @{name}_quick(ptr %keys, ptr %target, ptr %scratch, ptr %target, i64 %n, i64 {depth})
  br label %sorted
prepare:
  %even = alloca [{slots} x i64], align 8
  %odd = alloca [{slots} x i64], align 8
"""
    + _FIELDS.allocate()
    + _FIELDS.store(target="%target")
    + """  store i64 0, ptr %even, align 8
  br label %round
round:
  %count = phi i64 [ 1, %prepare ], [ %count_next, %round ]
  %from = phi ptr [ %keys, %prepare ], [ %to, %round ]
  %to = phi ptr [ %target, %prepare ], [ %to_next, %round ]
  %to_next = phi ptr [ %scratch, %prepare ], [ %to, %round ]
  %starts = phi ptr [ %even, %prepare ], [ %cuts, %round ]
  %cuts = phi ptr [ %odd, %prepare ], [ %starts, %round ]
  %end_at = getelementptr i64, ptr %starts, i64 %count
  store i64 %n, ptr %end_at, align 8
"""
    + _FIELDS.store(**{"from": "%from"}, to="%to", starts="%starts", cuts="%cuts")
    + """  call void @jitney_parallel_for(ptr @{name}_cut, ptr %ctx, i64 %count, i64 1)
  %count_next = mul i64 %count, 2
  %length = mul i64 %count_next, {segment}
  %coarse = icmp ult i64 %length, %n
  %few = icmp ult i64 %count_next, {segments}
  %again = and i1 %coarse, %few
  br i1 %again, label %round, label %cut
cut:
  %last_at = getelementptr i64, ptr %cuts, i64 %count_next
  store i64 %n, ptr %last_at, align 8
"""
    + _FIELDS.store(**{"from": "%to"}, to="%to_next", starts="%cuts")
    + """  call void @jitney_parallel_for(ptr @{name}_segments, ptr %ctx, i64 %count_next, i64 1)
  br label %sorted
sorted:
  ret void
}}
"""
)

_ROW_ZEROS = _ROW.replace(
    "  ret void", "  call void @{name}_restore(ptr %keys, ptr %target, i64 %n)\n  ret void"
)

# Where the row has both zeros, let them follow each other as they did in the keys.
_RESTORE = """define internal void @{name}_restore(ptr %keys, ptr %sorted, i64 %n) nounwind {{
entry:
  br label %search
search:                                           ; the first key from -0.0 on
  %lo = phi i64 [ 0, %entry ], [ %lo_next, %probe ]
  %hi = phi i64 [ %n, %entry ], [ %hi_next, %probe ]
  %open = icmp ult i64 %lo, %hi
  br i1 %open, label %probe, label %found
probe:
  %sum = add i64 %lo, %hi
  %mid = lshr i64 %sum, 1
  %mid_at = getelementptr {E}, ptr %sorted, i64 %mid
  %k = load {E}, ptr %mid_at, align {size}
  %before = icmp ult {E} %k, {minus}
  %mid_up = add i64 %mid, 1
  %lo_next = select i1 %before, i64 %mid_up, i64 %lo
  %hi_next = select i1 %before, i64 %hi, i64 %mid
  br label %search
found:
  %inside = icmp ult i64 %lo, %n
  br i1 %inside, label %first, label %out
first:
  %first_at = getelementptr {E}, ptr %sorted, i64 %lo
  %f = load {E}, ptr %first_at, align {size}
  %negative = icmp eq {E} %f, {minus}
  br i1 %negative, label %each, label %out
each:
  %i = phi i64 [ 0, %first ], [ %i_next, %next ]
  %p = phi i64 [ %lo, %first ], [ %p_next, %next ]
  %some = icmp ult i64 %i, %n
  br i1 %some, label %look, label %out
look:
  %x_at = getelementptr {E}, ptr %keys, i64 %i
  %x = load {E}, ptr %x_at, align {size}
  %off = sub {E} %x, {minus}
  %is_zero = icmp ult {E} %off, 2
  br i1 %is_zero, label %put, label %next
put:
  %p_at = getelementptr {E}, ptr %sorted, i64 %p
  store {E} %x, ptr %p_at, align {size}
  %p_put = add i64 %p, 1
  br label %next
next:
  %p_next = phi i64 [ %p, %look ], [ %p_put, %put ]
  %i_next = add i64 %i, 1
  br label %each
out:
  ret void
}}
"""
