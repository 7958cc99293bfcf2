"""Where rows of truths are true, or rows of bytes are 1, then 2, and so on, as LLVM functions.

A long row is cut into blocks, which threads take from each other: they count what is true in each block,
and when it is known where the places of a block begin, write them. Blocks are cut by the length of the
row alone. 64 truths are one word, whose bits are taken one after the other. Classes follow each other.
"""

from __future__ import annotations

from ..limits import limits
from ..sort_blocks import MOST_BLOCKS
from ..steps import TruePlaces
from .row_parts import CUT_ROW, EACH_BLOCK, NEXT_BLOCK, Fields

DECLARATIONS = frozenset(
    {
        "declare i64 @llvm.ctpop.i64(i64)",
        "declare i64 @llvm.cttz.i64(i64, i1)",
        "declare void @jitney_parallel_for(ptr, ptr, i64, i64)",
    }
)


def places_functions(step: TruePlaces) -> tuple[str, tuple[str, ...]]:
    """The name of `void @name(ptr mask, ptr target, i64 rows)`, and the texts of all functions."""
    n, size = step.mask.shape[-1], step.target.shape[-1]
    name = f"true_places_{n}_{size}_{step.classes}"
    fields = {
        "name": name,
        "n": n,
        "size": size,
        "classes": step.classes,
        "block": limits().sort_block,
        "most": MOST_BLOCKS,
        "grain": max(1, limits().truths_at_once // (n + size + 1)),
    }
    return name, tuple(text.format(**fields) for text in (_COUNT, _WRITE, _ROW, _ROWS))


_FIELDS = Fields("ptr mask, ptr target, ptr starts, i64 length, i64 class")

# Walk the words of a block: %word has a bit for each of the 64 truths from %i on, or for those left.
_WORDS = """  %class_byte = trunc i64 %class to i8
  %class1 = insertelement <64 x i8> poison, i8 %class_byte, i64 0
  %class_bytes = shufflevector <64 x i8> %class1, <64 x i8> poison, <64 x i32> zeroinitializer
  br label %words
words:
  %i = phi i64 [ %start, %block ], [ %i_next, %worded ]
  {phi}
  %some = icmp slt i64 %i, %stop
  br i1 %some, label %look, label %done
look:
  %i_next = add i64 %i, 64
  %whole = icmp sle i64 %i_next, %stop
  %x_at = getelementptr i8, ptr %mask, i64 %i
  br i1 %whole, label %vector, label %single
vector:
  %x = load <64 x i8>, ptr %x_at, align 1
  %true = icmp eq <64 x i8> %x, %class_bytes
  %all = bitcast <64 x i1> %true to i64
  br label %ready
single:
  %j = phi i64 [ 0, %look ], [ %j_next, %single ]
  %bits = phi i64 [ 0, %look ], [ %bits_next, %single ]
  %y_at = getelementptr i8, ptr %x_at, i64 %j
  %y = load i8, ptr %y_at, align 1
  %set = icmp eq i8 %y, %class_byte
  %one = zext i1 %set to i64
  %bit = shl i64 %one, %j
  %bits_next = or i64 %bits, %bit
  %j_next = add i64 %j, 1
  %at = add i64 %i, %j_next
  %more_single = icmp slt i64 %at, %stop
  br i1 %more_single, label %single, label %ready
ready:
  %word = phi i64 [ %all, %vector ], [ %bits_next, %single ]
"""

_COUNT = (
    """define internal void @{name}_count(ptr %ctx, i64 %lo, i64 %hi) nounwind {{
entry:
  %n = add i64 0, {n}
"""
    + _FIELDS.load()
    + EACH_BLOCK
    + _WORDS.replace("{phi}", "%count = phi i64 [ 0, %block ], [ %count_next, %worded ]")
    + """  %here = call i64 @llvm.ctpop.i64(i64 %word)
  %count_next = add i64 %count, %here
  br label %worded
worded:
  br label %words
done:
  %count_at = getelementptr i64, ptr %starts, i64 %b
  store i64 %count, ptr %count_at, align 8
  br label %next
"""
    + NEXT_BLOCK
)

_WRITE = (
    """define internal void @{name}_write(ptr %ctx, i64 %lo, i64 %hi) nounwind {{
entry:
  %n = add i64 0, {n}
"""
    + _FIELDS.load()
    + EACH_BLOCK.replace(
        "  %start = mul",
        "  %first_at = getelementptr i64, ptr %starts, i64 %b\n"
        "  %first = load i64, ptr %first_at, align 8\n"
        "  %start = mul",
    )
    + _WORDS.replace("{phi}", "%p = phi i64 [ %first, %block ], [ %p_word, %worded ]")
    + """  br label %bits_of
bits_of:
  %left = phi i64 [ %word, %ready ], [ %left_next, %put ]
  %p_word = phi i64 [ %p, %ready ], [ %p_next, %put ]
  %any = icmp ne i64 %left, 0
  %room = icmp slt i64 %p_word, {size}
  %puts = and i1 %any, %room
  br i1 %puts, label %put, label %worded
put:
  %lane = call i64 @llvm.cttz.i64(i64 %left, i1 true)
  %place = add i64 %i, %lane
  %p_at = getelementptr i64, ptr %target, i64 %p_word
  store i64 %place, ptr %p_at, align 8
  %p_next = add i64 %p_word, 1
  %less = sub i64 %left, 1
  %left_next = and i64 %left, %less
  br label %bits_of
worded:
  br label %words
done:
  br label %next
"""
    + NEXT_BLOCK
)

_ROW = (
    """define internal void @{name}_row(ptr %mask, ptr %target) nounwind {{
entry:
  %n = add i64 0, {n}
  %starts = alloca [{most} x i64], align 8
"""
    + _FIELDS.allocate()
    + CUT_ROW
    + _FIELDS.store(mask="%mask", target="%target", starts="%starts", length="%length")
    + """  br label %class_of
class_of:
  %class = phi i64 [ 1, %entry ], [ %class_next, %write ]
  %before = phi i64 [ 0, %entry ], [ %sum_next, %write ]
"""
    + _FIELDS.store(**{"class": "%class"})
    + """  call void @jitney_parallel_for(ptr @{name}_count, ptr %ctx, i64 %blocks, i64 1)
  br label %add
add:
  %b = phi i64 [ 0, %class_of ], [ %b_next, %add ]
  %sum = phi i64 [ %before, %class_of ], [ %sum_next, %add ]
  %at = getelementptr i64, ptr %starts, i64 %b
  %count = load i64, ptr %at, align 8
  store i64 %sum, ptr %at, align 8
  %sum_next = add i64 %sum, %count
  %b_next = add i64 %b, 1
  %more = icmp slt i64 %b_next, %blocks
  br i1 %more, label %add, label %write
write:
  call void @jitney_parallel_for(ptr @{name}_write, ptr %ctx, i64 %blocks, i64 1)
  %class_next = add i64 %class, 1
  %classes_left = icmp sle i64 %class_next, {classes}
  br i1 %classes_left, label %class_of, label %fill
fill:
  %p = phi i64 [ %sum_next, %write ], [ %p_vector, %vector ]
  %p_vector = add i64 %p, 8
  %whole = icmp sle i64 %p_vector, {size}
  br i1 %whole, label %vector, label %rest
vector:
  %v_at = getelementptr i64, ptr %target, i64 %p
  store <8 x i64> splat (i64 {n}), ptr %v_at, align 8
  br label %fill
rest:
  %q = phi i64 [ %p, %fill ], [ %q_next, %one ]
  %some = icmp slt i64 %q, {size}
  br i1 %some, label %one, label %out
one:
  %q_at = getelementptr i64, ptr %target, i64 %q
  store i64 {n}, ptr %q_at, align 8
  %q_next = add i64 %q, 1
  br label %rest
out:
  ret void
}}
"""
)

_ROW_FIELDS = Fields("ptr mask, ptr target")

_ROWS = (
    """define internal void @{name}_rows(ptr %ctx, i64 %lo, i64 %hi) nounwind {{
entry:
"""
    + _ROW_FIELDS.load()
    + """  br label %head
head:
  %r = phi i64 [ %lo, %entry ], [ %r_next, %row ]
  %more = icmp slt i64 %r, %hi
  br i1 %more, label %row, label %out
row:
  %m = mul i64 %r, {n}
  %m_at = getelementptr i8, ptr %mask, i64 %m
  %t = mul i64 %r, {size}
  %t_at = getelementptr i64, ptr %target, i64 %t
  call void @{name}_row(ptr %m_at, ptr %t_at)
  %r_next = add i64 %r, 1
  br label %head
out:
  ret void
}}

define internal void @{name}(ptr %mask, ptr %target, i64 %rows) nounwind {{
entry:
"""
    + _ROW_FIELDS.allocate()
    + _ROW_FIELDS.store(mask="%mask", target="%target")
    + """  call void @jitney_parallel_for(ptr @{name}_rows, ptr %ctx, i64 %rows, i64 {grain})
  ret void
}}
"""
)
