"""The places of sorted elements of 64 bits, by sorting numbers that hold part of the key and the place.

Of the bits in which keys of a row differ, the upper ones that fit beside a place are its prefix. The
numbers (prefix << bits of a place) | place are all different, so sorting them is stable. Where more bits
differ, runs of equal prefixes are sorted in the same way by what their keys differ in.
"""

from __future__ import annotations

from ..limits import limits
from ..sort_blocks import MOST_BLOCKS, place_bits
from .quicksort import DEPTH
from .row_parts import CUT_ROW, EACH_BLOCK, NEXT_BLOCK, Fields

DECLARATIONS = frozenset({"declare i64 @llvm.ctlz.i64(i64, i1)"})


def places_functions(name: str, row: str, n: int) -> tuple[str, ...]:
    """`void @name_row(ptr keys, ptr target, ptr scratch, ptr counts, i64 n)`: the lower bits of the
    target are places. `keys` stay. `@row_row` and `@row_quick` are those of `quicksort`."""
    fields = {
        "name": name,
        "row": row,
        "bits": place_bits(n),
        "mask": (1 << place_bits(n)) - 1,
        "left": 64 - place_bits(n),
        "depth": DEPTH,
        "block": limits().sort_block,
        "most": MOST_BLOCKS,
        "words": 2 * MOST_BLOCKS,
    }
    return tuple(text.format(**fields) for text in (_VARY, _PACK, _SCAN, _REFINE, _ROW))


_FIELDS = Fields("ptr keys, ptr to, i64 n, i64 length, i64 kept, i64 shift")

# From the bits %varying that differ: those that count (%kept), and how far down the prefix is moved.
_PREFIX = """  %zeros = call i64 @llvm.ctlz.i64(i64 %varying, i1 false)
  %same = icmp eq i64 %varying, 0
  %zeros_in = select i1 %same, i64 0, i64 %zeros
  %ones = lshr i64 -1, %zeros_in
  %kept = select i1 %same, i64 0, i64 %ones
  %differing = sub i64 64, %zeros
  %over = sub i64 %differing, {left}
  %exact = icmp sle i64 %over, 0
  %shift = select i1 %exact, i64 0, i64 %over
"""

# %packed from %key and %place.
_NUMBER = """  %counting = and i64 %key, %kept
  %prefix = lshr i64 %counting, %shift
  %upper = shl i64 %prefix, {bits}
  %packed = or i64 %upper, %place
"""

# The bits that are set in any key of a block, and those that are set in all.
_VARY = (
    "define internal void @{name}_vary(ptr %ctx, i64 %lo, i64 %hi) nounwind {{\nentry:\n"
    + _FIELDS.load()
    + EACH_BLOCK
    + """  br label %each
each:
  %i = phi i64 [ %start, %block ], [ %i_next, %one ]
  %any = phi i64 [ 0, %block ], [ %any_next, %one ]
  %all = phi i64 [ -1, %block ], [ %all_next, %one ]
  %some = icmp slt i64 %i, %stop
  br i1 %some, label %one, label %done
one:
  %key_at = getelementptr i64, ptr %keys, i64 %i
  %key = load i64, ptr %key_at, align 8
  %any_next = or i64 %any, %key
  %all_next = and i64 %all, %key
  %i_next = add i64 %i, 1
  br label %each
done:
  %twice = mul i64 %b, 2
  %any_at = getelementptr i64, ptr %to, i64 %twice
  store i64 %any, ptr %any_at, align 8
  %all_at = getelementptr i64, ptr %any_at, i64 1
  store i64 %all, ptr %all_at, align 8
  br label %next
"""
    + NEXT_BLOCK
)

_PACK = (
    "define internal void @{name}_pack(ptr %ctx, i64 %lo, i64 %hi) nounwind {{\nentry:\n"
    + _FIELDS.load()
    + EACH_BLOCK
    + """  br label %each
each:
  %place = phi i64 [ %start, %block ], [ %place_next, %one ]
  %some = icmp slt i64 %place, %stop
  br i1 %some, label %one, label %done
one:
  %key_at = getelementptr i64, ptr %keys, i64 %place
  %key = load i64, ptr %key_at, align 8
"""
    + _NUMBER
    + """  %put_at = getelementptr i64, ptr %to, i64 %place
  store i64 %packed, ptr %put_at, align 8
  %place_next = add i64 %place, 1
  br label %each
done:
  br label %next
"""
    + NEXT_BLOCK
)

# Runs of equal prefixes in lo..hi are sorted by the rest of their keys.
_SCAN = """define internal void @{name}_scan(ptr %keys, ptr %target, ptr %scratch, i64 %lo, i64 %hi)
    nounwind {{
entry:
  br label %run
run:
  %i = phi i64 [ %lo, %entry ], [ %j, %next ]
  %open = icmp slt i64 %i, %hi
  br i1 %open, label %first, label %out
first:
  %i_at = getelementptr i64, ptr %target, i64 %i
  %x = load i64, ptr %i_at, align 8
  br label %more
more:
  %before = phi i64 [ %i, %first ], [ %j, %look ]
  %j = add i64 %before, 1
  %inside = icmp slt i64 %j, %hi
  br i1 %inside, label %look, label %end
look:
  %j_at = getelementptr i64, ptr %target, i64 %j
  %y = load i64, ptr %j_at, align 8
  %differs = xor i64 %x, %y
  %equal = icmp ule i64 %differs, {mask}
  br i1 %equal, label %more, label %end
end:
  %length = sub i64 %j, %i
  %several = icmp sgt i64 %length, 1
  br i1 %several, label %refine, label %next
refine:
  call void @{name}_refine(ptr %keys, ptr %target, ptr %scratch, i64 %i, i64 %j)
  br label %next
next:
  br label %run
out:
  ret void
}}
"""

# Sort lo..hi of the target, whose places ascend, by what their keys differ in.
_REFINE = (
    """define internal void @{name}_refine(ptr %keys, ptr %target, ptr %scratch, i64 %lo, i64 %hi)
    nounwind {{
entry:
  br label %look
look:
  %i = phi i64 [ %lo, %entry ], [ %i_next, %look ]
  %any = phi i64 [ 0, %entry ], [ %any_next, %look ]
  %all = phi i64 [ -1, %entry ], [ %all_next, %look ]
  %i_at = getelementptr i64, ptr %target, i64 %i
  %x = load i64, ptr %i_at, align 8
  %from = and i64 %x, {mask}
  %from_at = getelementptr i64, ptr %keys, i64 %from
  %k = load i64, ptr %from_at, align 8
  %any_next = or i64 %any, %k
  %all_next = and i64 %all, %k
  %i_next = add i64 %i, 1
  %i_more = icmp slt i64 %i_next, %hi
  br i1 %i_more, label %look, label %looked
looked:
  %varying = xor i64 %any_next, %all_next
  %equal = icmp eq i64 %varying, 0
  br i1 %equal, label %out, label %prepare
prepare:
"""
    + _PREFIX
    + """  br label %each
each:
  %j = phi i64 [ %lo, %prepare ], [ %j_next, %each ]
  %j_at = getelementptr i64, ptr %target, i64 %j
  %y = load i64, ptr %j_at, align 8
  %place = and i64 %y, {mask}
  %key_at = getelementptr i64, ptr %keys, i64 %place
  %key = load i64, ptr %key_at, align 8
"""
    + _NUMBER
    + """  store i64 %packed, ptr %j_at, align 8
  %j_next = add i64 %j, 1
  %j_more = icmp slt i64 %j_next, %hi
  br i1 %j_more, label %each, label %sort
sort:
  %here = getelementptr i64, ptr %target, i64 %lo
  %spare = getelementptr i64, ptr %scratch, i64 %lo
  %m = sub i64 %hi, %lo
  call void @{row}_quick(ptr %here, ptr %spare, ptr %here, ptr %here, i64 %m, i64 {depth})
  br i1 %exact, label %out, label %again
again:
  call void @{name}_scan(ptr %keys, ptr %target, ptr %scratch, i64 %lo, i64 %hi)
  br label %out
out:
  ret void
}}
"""
)

_ROW = (
    """define internal void @{name}_row(ptr %keys, ptr %target, ptr %scratch, ptr %counts, i64 %n)
    nounwind {{
entry:
  %found = alloca [{words} x i64], align 8
"""
    + _FIELDS.allocate()
    + CUT_ROW
    + _FIELDS.store(keys="%keys", to="%found", n="%n", length="%length", kept="0", shift="0")
    + """  call void @jitney_parallel_for(ptr @{name}_vary, ptr %ctx, i64 %blocks, i64 1)
  br label %gather
gather:
  %b = phi i64 [ 0, %entry ], [ %b_next, %gather ]
  %any = phi i64 [ 0, %entry ], [ %any_next, %gather ]
  %all = phi i64 [ -1, %entry ], [ %all_next, %gather ]
  %twice = mul i64 %b, 2
  %any_word = getelementptr i64, ptr %found, i64 %twice
  %any_here = load i64, ptr %any_word, align 8
  %all_word = getelementptr i64, ptr %any_word, i64 1
  %all_here = load i64, ptr %all_word, align 8
  %any_next = or i64 %any, %any_here
  %all_next = and i64 %all, %all_here
  %b_next = add i64 %b, 1
  %more = icmp slt i64 %b_next, %blocks
  br i1 %more, label %gather, label %gathered
gathered:
  %varying = xor i64 %any_next, %all_next
"""
    + _PREFIX
    + _FIELDS.store(to="%scratch", kept="%kept", shift="%shift")
    + """  call void @jitney_parallel_for(ptr @{name}_pack, ptr %ctx, i64 %blocks, i64 1)
  call void @{row}_row(ptr %scratch, ptr %target, ptr %scratch, ptr %counts, i64 %n)
  br i1 %exact, label %out, label %scan
scan:
  call void @{name}_scan(ptr %keys, ptr %target, ptr %scratch, i64 0, i64 %n)
  br label %out
out:
  ret void
}}
"""
)
