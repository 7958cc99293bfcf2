"""Sorting one long row of unsigned keys: least significant digit first, as LLVM functions.

For each digit: count the digits of each block of the row, add up where each block's elements with
that digit go, move them there. Blocks are cut by the length of the row alone and keep their order, so
the sort is stable and the result the same for any number of threads. Digits that are the same
everywhere are skipped: small numbers of a wide type take few passes.
"""

from __future__ import annotations

from ..limits import limits
from ..sort_blocks import DIGIT, MOST_BLOCKS
from .row_parts import CUT_ROW, EACH_BLOCK, NEXT_BLOCK, Fields


def radix_functions(name: str, element: str, key: str, load_key: str) -> tuple[str, ...]:
    """`void @name_row(ptr keys, ptr target, ptr scratch, ptr counts, i64 n)` and what it calls.

    `element` is the LLVM type of what moves, `key` that of its key (i8 to i64). `load_key` is text that
    sets %key to the key of element %i of %from. Fills `target`, and uses `scratch` and `counts`.
    """
    bits = int(key[1:])
    fields = {
        "name": name,
        "E": element,
        "size": int(element[1:]) // 8,
        "K": key,
        "load_key": load_key,
        "digit": DIGIT,
        "count": 1 << DIGIT,
        "table": 2 << DIGIT,
        "table_bytes": 8 << DIGIT,
        "mask": (1 << DIGIT) - 1,
        "bits": bits,
        "block": limits().sort_block,
        "most": MOST_BLOCKS,
        "words": 2 * MOST_BLOCKS,
    }
    fields["widen"] = f"%word = {f'zext {key} %key to i64' if bits < 64 else 'or i64 %key, 0'}"
    return tuple(text.format(**fields) for text in (_VARY, _COUNT, _PLACE, _MOVE, _ROW))


# `length` is that of a block, `shift` that of the digit.
_FIELDS = Fields("ptr from, ptr to, ptr counts, i64 n, i64 length, i64 shift")


def _part(name: str, before: str, phis: str, body: str, then: str) -> str:
    """A function over the blocks lo..hi of a row: `before` each block; `body` for element %i, whose key
    is %word; `then` after the block. `phis` are more variables of the loop over elements."""
    return (
        f"define internal void @{{name}}_{name}(ptr %ctx, i64 %lo, i64 %hi) nounwind {{{{\nentry:\n"
        + _FIELDS.load()
        + EACH_BLOCK
        + before
        + "  br label %each\neach:\n  %i = phi i64 [ %start, %block ], [ %i_next, %look ]\n"
        + phis
        + "  %some = icmp slt i64 %i, %stop\n  br i1 %some, label %look, label %done\nlook:\n"
        + "{load_key}  {widen}\n"
        + body
        + "  %i_next = add i64 %i, 1\n  br label %each\ndone:\n"
        + then
        + "  br label %next\n"
        + NEXT_BLOCK
    )


# The bits that are set in any key of a block, and those that are set in all.
_VARY = _part(
    "vary",
    before="",
    phis="""  %any = phi i64 [ 0, %block ], [ %any_next, %look ]
  %all = phi i64 [ -1, %block ], [ %all_next, %look ]
""",
    body="""  %any_next = or i64 %any, %word
  %all_next = and i64 %all, %word
""",
    then="""  %twice = mul i64 %b, 2
  %any_at = getelementptr i64, ptr %to, i64 %twice
  store i64 %any, ptr %any_at, align 8
  %all_at = getelementptr i64, ptr %any_at, i64 1
  store i64 %all, ptr %all_at, align 8
""",
)

_DIGIT = """  %down = lshr i64 %word, %shift
  %digit = and i64 %down, {mask}
"""

# How often each digit occurs in a block. Two tables take turns: neighbours are often equal.
_COUNT = _part(
    "count",
    before="""  %first = mul i64 %b, {table}
  %even = getelementptr i32, ptr %counts, i64 %first
  %odd = getelementptr i32, ptr %even, i64 {count}
  call void @llvm.memset.p0.i64(ptr align 4 %even, i8 0, i64 {table_bytes}, i1 false)
""",
    phis="""  %here = phi ptr [ %even, %block ], [ %there, %look ]
  %there = phi ptr [ %odd, %block ], [ %here, %look ]
""",
    body=_DIGIT
    + """  %place = getelementptr i32, ptr %here, i64 %digit
  %before = load i32, ptr %place, align 4
  %after = add i32 %before, 1
  store i32 %after, ptr %place, align 4
""",
    then="",
)

# From counts to places: the first of digit 0 in block 0, in block 1, ... of digit 1 in block 0, ...
_PLACE = """define internal void @{name}_place(ptr %counts, i64 %blocks) nounwind {{
entry:
  br label %digits
digits:
  %d = phi i64 [ 0, %entry ], [ %d_next, %counted ]
  %sum = phi i32 [ 0, %entry ], [ %total, %counted ]
  %more = icmp slt i64 %d, {count}
  br i1 %more, label %blocks_of, label %out
blocks_of:
  br label %each
each:
  %b = phi i64 [ 0, %blocks_of ], [ %b_next, %add ]
  %total = phi i32 [ %sum, %blocks_of ], [ %total_next, %add ]
  %some = icmp slt i64 %b, %blocks
  br i1 %some, label %add, label %counted
add:
  %row = mul i64 %b, {table}
  %at = add i64 %row, %d
  %even_at = getelementptr i32, ptr %counts, i64 %at
  %even = load i32, ptr %even_at, align 4
  %odd_at = getelementptr i32, ptr %even_at, i64 {count}
  %odd = load i32, ptr %odd_at, align 4
  store i32 %total, ptr %even_at, align 4
  %both = add i32 %even, %odd
  %total_next = add i32 %total, %both
  %b_next = add i64 %b, 1
  br label %each
counted:
  %d_next = add i64 %d, 1
  br label %digits
out:
  ret void
}}
"""

# Each element to the next place of its digit.
_MOVE = _part(
    "move",
    before="""  %first = mul i64 %b, {table}
  %places = getelementptr i32, ptr %counts, i64 %first
""",
    phis="",
    body=_DIGIT
    + """  %place = getelementptr i32, ptr %places, i64 %digit
  %p = load i32, ptr %place, align 4
  %p_next = add i32 %p, 1
  store i32 %p_next, ptr %place, align 4
  %p_wide = zext i32 %p to i64
  %x_at = getelementptr {E}, ptr %from, i64 %i
  %x = load {E}, ptr %x_at, align {size}
  %y_at = getelementptr {E}, ptr %to, i64 %p_wide
  store {E} %x, ptr %y_at, align {size}
""",
    then="",
)

_ROW = (
    """define internal void @{name}_row(ptr %keys, ptr %target, ptr %scratch, ptr %counts, i64 %n)
    nounwind {{
entry:
  %found = alloca [{words} x i64], align 8
"""
    + _FIELDS.allocate()
    + CUT_ROW
    + _FIELDS.store(
        **{"from": "%keys"}, to="%found", counts="%counts", n="%n", length="%length", shift="0"
    )
    + """  call void @jitney_parallel_for(ptr @{name}_vary, ptr %ctx, i64 %blocks, i64 1)
  br label %gather
gather:
  %b = phi i64 [ 0, %entry ], [ %b_next, %gather ]
  %any = phi i64 [ 0, %entry ], [ %any_next, %gather ]
  %all = phi i64 [ -1, %entry ], [ %all_next, %gather ]
  %twice = mul i64 %b, 2
  %any_at = getelementptr i64, ptr %found, i64 %twice
  %any_here = load i64, ptr %any_at, align 8
  %all_at = getelementptr i64, ptr %any_at, i64 1
  %all_here = load i64, ptr %all_at, align 8
  %any_next = or i64 %any, %any_here
  %all_next = and i64 %all, %all_here
  %b_next = add i64 %b, 1
  %more = icmp slt i64 %b_next, %blocks
  br i1 %more, label %gather, label %gathered
gathered:
  %varying = xor i64 %any_next, %all_next
  br label %plan
plan:                                             ; an odd number of passes goes to the target first
  %q = phi i64 [ 0, %gathered ], [ %q_next, %plan ]
  %odd = phi i1 [ false, %gathered ], [ %odd_next, %plan ]
  %q_down = lshr i64 %varying, %q
  %q_digit = and i64 %q_down, {mask}
  %q_counts = icmp ne i64 %q_digit, 0
  %odd_next = xor i1 %odd, %q_counts
  %q_next = add i64 %q, {digit}
  %q_more = icmp ult i64 %q_next, {bits}
  br i1 %q_more, label %plan, label %planned
planned:
  %other = select i1 %odd_next, ptr %target, ptr %scratch
  %another = select i1 %odd_next, ptr %scratch, ptr %target
  br label %pass
pass:
  %shift = phi i64 [ 0, %planned ], [ %shift_next, %passed ]
  %from = phi ptr [ %keys, %planned ], [ %from_next, %passed ]
  %to = phi ptr [ %other, %planned ], [ %to_next, %passed ]
  %spare = phi ptr [ %another, %planned ], [ %spare_next, %passed ]
  %down = lshr i64 %varying, %shift
  %digit = and i64 %down, {mask}
  %needed = icmp ne i64 %digit, 0
  br i1 %needed, label %work, label %passed
work:
"""
    + _FIELDS.store(**{"from": "%from"}, to="%to", shift="%shift")
    + """  call void @jitney_parallel_for(ptr @{name}_count, ptr %ctx, i64 %blocks, i64 1)
  call void @{name}_place(ptr %counts, i64 %blocks)
  call void @jitney_parallel_for(ptr @{name}_move, ptr %ctx, i64 %blocks, i64 1)
  br label %passed
passed:
  %from_next = phi ptr [ %from, %pass ], [ %to, %work ]
  %to_next = phi ptr [ %to, %pass ], [ %spare, %work ]
  %spare_next = phi ptr [ %spare, %pass ], [ %to, %work ]
  %shift_next = add i64 %shift, {digit}
  %again = icmp ult i64 %shift_next, {bits}
  br i1 %again, label %pass, label %done
done:
  %there = icmp eq ptr %from_next, %target
  br i1 %there, label %out, label %copy
copy:                                             ; all keys are equal
  %bytes = mul i64 %n, {size}
  call void @llvm.memcpy.p0.p0.i64(ptr %target, ptr %from_next, i64 %bytes, i1 false)
  br label %out
out:
  ret void
}}
"""
)
