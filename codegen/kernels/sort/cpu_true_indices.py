"""Where rows of truths are true, or rows of bytes are 1, then 2, and so on, as LLVM functions.

A long row is cut into blocks, which threads take from each other: they count what is true in each block,
and when it is known where the indices of a block begin, write them. Blocks are cut by the length of the
row alone. 64 truths are one word, whose bits are taken one after the other. Classes follow each other.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace

from ...limits import limits
from ...llvm.builder import OpenLoop, Value, vector_constant
from ...llvm.modules import Function
from ...loop_ir.steps import TrueIndices
from ...schedule.sort_blocks import MOST_BLOCKS
from .cpu_row_parts import Fields, cut_row, each_block, part, run_parts

_TRUTHS = "<64 x i8>"


def true_index_functions(step: TrueIndices) -> tuple[Function, ...]:
    """`void @name(ptr mask, ptr target, i64 rows)`, last, and what it calls."""
    n, size = step.mask.shape[-1], step.target.shape[-1]
    name = f"true_indices_{n}_{size}_{step.classes}"
    count, write = _count(f"{name}_count", n), _write(f"{name}_write", n, size)
    row = _row(f"{name}_row", n, size, step.classes, count, write)
    return (count, write, row, *_rows(name, row, n, size))


_ROW = Fields(mask="ptr", target="ptr", starts="ptr", length="i64", **{"class": "i64"})


@contextmanager
def _words(
    f: Function, row: SimpleNamespace, start: Value, stop: Value, **carried: Value | int
) -> Iterator[tuple[OpenLoop, Value]]:
    """Walk the words of a block: each has a bit for each of the 64 truths from `loop.i` on, or for those
    left. What is carried follows `loop.i`."""
    wanted = getattr(row, "class").trunc("i8")
    wanted_bytes = f.splat(wanted, 64)
    with f.loop(i=start, **carried) as loop:
        loop.going(loop.i < stop)
        whole, rest, ready = f.later("vector"), f.later("single"), f.later("ready", word="i64")
        address = f.offset(row.mask, loop.i)
        f.branch(loop.i + 64 <= stop, whole, rest)
        f.at(whole)
        truths = f.load(_TRUTHS, address, align=1)
        f.jump(ready, truths.eq(wanted_bytes).to("bitcast", "i64"))
        f.at(rest)
        with f.loop(j=0, bits=0) as single:
            bit = f.load("i8", address, single.j).eq(wanted).zext("i64") << single.j
            bits = single.bits | bit
            after = single.j + 1
            single.repeat(loop.i + after < stop, after, bits)
        f.jump(ready, bits)
        (word,) = f.at(ready)
        yield loop, word


def _count(name: str, n: int) -> Function:
    f = part(name)
    row = _ROW.load(f)
    with each_block(f, n, row.length) as (b, start, stop):
        with _words(f, row, start, stop, count=0) as (loop, word):
            loop.next(loop.i + 64, loop.count + f.intrinsic("ctpop", "i64", word))
        f.store(loop.count, row.starts, b, "i64")
    f.ret()
    return f


def _write(name: str, n: int, size: int) -> Function:
    f = part(name)
    row = _ROW.load(f)
    with each_block(f, n, row.length) as (b, start, stop):
        first = f.load("i64", row.starts, b, "i64")
        with _words(f, row, start, stop, p=first) as (loop, word):
            with f.loop(left=word, p=loop.p) as bits:
                bits.going(bits.left.ne(0) & (bits.p < size))
                lane = f.intrinsic("cttz", "i64", bits.left, True)
                f.store(loop.i + lane, row.target, bits.p, "i64")
                bits.next(bits.left & bits.left - 1, bits.p + 1)
            loop.next(loop.i + 64, bits.p)
    f.ret()
    return f


def _row(name: str, n: int, size: int, classes: int, count: Function, write: Function) -> Function:
    f = Function("void", name, internal=True, mask="ptr", target="ptr")
    starts = f.alloca(f"[{MOST_BLOCKS} x i64]", align=8)
    context = _ROW.allocate(f)
    blocks, length = cut_row(f, n)
    context.store(mask=f.mask, target=f.target, starts=starts, length=length)
    with f.loop(number=1, before=0) as loop:
        context.store(**{"class": loop.number})
        run_parts(f, count, context, blocks)
        with f.loop(b=0, sum=loop.before) as add:
            address = f.offset(starts, add.b, "i64")
            here = f.load("i64", address)
            f.store(add.sum, address)
            total = add.sum + here
            after = add.b + 1
            add.repeat(after < blocks, after, total)
        run_parts(f, write, context, blocks)
        following = loop.number + 1
        loop.repeat(following <= classes, following, total)
    nowhere = vector_constant("i64", [n] * 8)
    with f.loop(p=total) as fill:
        after = fill.p + 8
        fill.going(after <= size)
        f.store(nowhere, f.target, fill.p, "i64", align=8)
        fill.next(after)
    with f.each(size, fill.p) as q:
        f.store(f.literal("i64", n), f.target, q, "i64")
    f.ret()
    return f


_ROWS = Fields(mask="ptr", target="ptr")


def _rows(name: str, row: Function, n: int, size: int) -> tuple[Function, Function]:
    """The function that does rows lo..hi, and the one that shares rows among threads."""
    some = part(f"{name}_rows")
    memory = _ROWS.load(some)
    with some.each(some.hi, some.lo) as r:
        mask = some.offset(memory.mask, r * n)
        some.run(row, mask, some.offset(memory.target, r * size, "i64"))
    some.ret()
    every = Function("void", name, internal=True, mask="ptr", target="ptr", rows="i64")
    context = _ROWS.allocate(every)
    context.store(mask=every.mask, target=every.target)
    run_parts(every, some, context, every.rows, max(1, limits().truths_at_once // (n + size + 1)))
    every.ret()
    return some, every
