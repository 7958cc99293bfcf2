"""Row blocks as an LLVM function: parts of several functions' ranges, one unit after the other.

    for u in range(lo, hi):
        first(ctx + 0, each0 * u, each0 * (u + 1))
        second(ctx + 3, each1 * u, each1 * (u + 1))

What lives within a unit only is on the stack. The functions reckon from the first row, so what they get
is where that row would be: the unit's rows come to lie in the unit's memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..kernel import Array


class Share(NamedTuple):
    """A function, the word where its context begins, and how much of its range a unit is."""

    name: str
    place: int
    each: int
    range: int


class Own(NamedTuple):
    """A word that points to memory of the unit's own: `nbytes` of it, what is `offset` from them on."""

    word: int
    nbytes: int
    offset: int
    array: Array


def function(shares: Sequence[Share], own: Sequence[Own], words: int) -> str:
    """The function's text, from its parameter list on."""
    lines = ["(ptr noalias %shared, i64 %lo, i64 %hi) nounwind {", "entry:"]
    context = "%shared"
    memory: dict[Array, str] = {}
    if own:
        context = "%ctx"
        lines += [
            f"  %ctx = alloca [{words} x ptr], align 8",
            "  call void @llvm.memcpy.p0.p0.i64(ptr align 8 %ctx, ptr align 8 %shared, "
            f"i64 {8 * words}, i1 false)",
        ]
    for word in own:
        if word.array not in memory:
            memory[word.array] = f"%own{len(memory)}"
            lines.append(f"  {memory[word.array]} = alloca [{word.nbytes} x i8], align 64")
    lines += [
        "  br label %head",
        "head:",
        "  %u = phi i64 [ %lo, %entry ], [ %next, %unit ]",
        "  %more = icmp slt i64 %u, %hi",
        "  br i1 %more, label %unit, label %end",
        "unit:",
        "  %next = add nsw i64 %u, 1",
    ]
    for k, word in enumerate(own):
        lines += [
            f"  %rows{k} = mul nsw i64 %u, {-word.nbytes}",
            f"  %back{k} = add nsw i64 %rows{k}, {word.offset}",
            f"  %base{k} = getelementptr i8, ptr {memory[word.array]}, i64 %back{k}",
            f"  %word{k} = getelementptr ptr, ptr %ctx, i64 {word.word}",
            f"  store ptr %base{k}, ptr %word{k}, align 8",
        ]
    for k, share in enumerate(shares):
        lines += [
            f"  %ctx{k} = getelementptr ptr, ptr {context}, i64 {share.place}",
            f"  %lo{k} = mul nsw i64 %u, {share.each}",
            f"  %to{k} = add nsw i64 %lo{k}, {share.each}",
            f"  %in{k} = icmp slt i64 %to{k}, {share.range}",
            f"  %hi{k} = select i1 %in{k}, i64 %to{k}, i64 {share.range}",
            f"  call void @{share.name}(ptr %ctx{k}, i64 %lo{k}, i64 %hi{k})",
        ]
    return "\n".join([*lines, "  br label %head", "end:", "  ret void", "}", ""])
