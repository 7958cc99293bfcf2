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

from ..llvm.builder import Value, symbol
from ..llvm.modules import Function
from ..loop_ir.kernel import Array


class Share(NamedTuple):
    """A function, the word where its context begins, and how much of its range a unit is."""

    name: str
    word: int
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
    f = Function("void", "rows", shared="ptr", lo="i64", hi="i64")
    context = f.shared
    memory: dict[Array, Value] = {}
    if own:
        context = f.alloca(f"[{words} x ptr]", align=8)
        f.copy(context, f.shared, 8 * words, align=8)
    for word in own:
        if word.array not in memory:
            memory[word.array] = f.alloca(f"[{word.nbytes} x i8]", align=64)
    with f.loop(u=f.lo) as loop:
        loop.going(loop.u < f.hi)
        following = f.stepped(loop.u, 1)
        for word in own:
            back = f.binary("mul nsw", loop.u, -word.nbytes)
            base = f.offset(memory[word.array], f.stepped(back, word.offset))
            f.store(base, context, word.word, "ptr")
        for share in shares:
            lo = f.binary("mul nsw", loop.u, share.each)
            hi = f.least(f.stepped(lo, share.each), share.range)
            kernel = symbol(share.name)
            f.call("void", kernel, f.offset(context, share.word, "ptr"), lo, hi)
        loop.next(following)
    f.ret()
    return f.unnamed(noalias=("shared",))
