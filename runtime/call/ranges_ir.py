"""Sorting ranges of memory, as LLVM: what shares bytes with what is then seen in one walk."""

from __future__ import annotations

from ...codegen.llvm.builder import Value
from ...codegen.llvm.modules import Function


def sort_pairs() -> Function:
    """`void sort_pairs(pairs, n)`: n pairs of words by their first, as unsigned numbers.

    Shell's sort: no memory of its own, linear but for the logarithm on pairs that are in order.
    """
    f = Function("void", "sort_pairs", internal=True, pairs="ptr", n="i64")
    pairs, n = f.args
    seconds = f.offset(pairs, 8)
    walk, insert, sift = (
        f.block("walk", gap="i64"),
        f.block("insert", i="i64"),
        f.block("sift", j="i64"),
    )
    take, compare, move, place = (f.block(name) for name in ("take", "compare", "move", "place"))
    walked, again, done = f.block("walked"), f.block("again"), f.block("done")

    def first(i: Value) -> Value:
        return f.load("i64", pairs, i + i, "i64")

    def second(i: Value) -> Value:
        return f.load("i64", seconds, i + i, "i64")

    def put(i: Value, one: Value, other: Value) -> None:
        f.store(one, pairs, i + i, "i64")
        f.store(other, seconds, i + i, "i64")

    def smaller(gap: Value) -> Value:
        return f.larger(gap * 5 // 11, 1)

    f.jump(walk, smaller(n))
    (gap,) = f.at(walk)
    f.jump(insert, gap)
    (i,) = f.at(insert)
    f.branch(i < n, take, walked, likely=True)
    f.at(take)
    low, tail = first(i), second(i)
    f.jump(sift, i)
    (j,) = f.at(sift)
    f.branch(j < gap, place, compare)
    f.at(compare)
    before = j - gap
    other = first(before)
    f.branch(other.ugt(low), move, place)
    f.at(move)
    put(j, other, second(before))
    f.jump(sift, before)
    f.at(place)
    put(j, low, tail)
    f.jump(insert, i + 1)
    f.at(walked)
    f.branch(gap.eq(1), done, again)
    f.at(again)
    f.jump(walk, smaller(gap))
    f.at(done)
    f.ret()
    return f
