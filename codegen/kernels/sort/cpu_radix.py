"""Sorting one long row of unsigned keys: least significant digit first, as LLVM functions.

For each digit: count the digits of each block of the row, add up where each block's elements with
that digit go, move them there. Blocks are cut by the length of the row alone and keep their order, so
the sort is stable and the result the same for any number of threads. Digits that are the same
everywhere are skipped: small numbers of a wide type take few passes.
"""

from __future__ import annotations

from ...llvm.builder import Value, bits_of
from ...llvm.modules import Function
from ...schedule.sort_blocks import DIGIT, MOST_BLOCKS
from .cpu_row_parts import (
    Fields,
    LoadKey,
    cut_row,
    each_block,
    gather_bits,
    part,
    run_parts,
    sort_row,
    varying_bits,
)

DIGITS = 1 << DIGIT
TABLE = 2 * DIGITS  # counts of a block


# `length` is that of a block, `shift` that of the digit.
_ROW = Fields(source="ptr", to="ptr", counts="ptr", n="i64", length="i64", shift="i64")


def radix_functions(
    name: str, element: str, key_bits: int, load_key: LoadKey
) -> tuple[Function, ...]:
    """`void @name_row(ptr keys, ptr target, ptr scratch, ptr counts, i64 n)` and what it calls.

    `element` is the LLVM type of what moves; keys have 8 to 64 bits. The row's function fills `target`,
    and uses `scratch` and `counts`.
    """

    def word(f: Function, row: Value, i: Value) -> Value:
        key = load_key(f, row, i)
        return key if key.type == "i64" else key.zext("i64")

    vary, count = varying_bits(f"{name}_vary", _ROW, word), _count(f"{name}_count", word)
    offsets, move = _offsets(f"{name}_place"), _move(f"{name}_move", word, element)
    return vary, count, offsets, move, _row(name, element, key_bits, (vary, count, offsets, move))


def _digit(word: Value, shift: Value) -> Value:
    return word >> shift & DIGITS - 1


def _add_one(f: Function, address: Value) -> Value:
    before = f.load("i32", address)
    f.store(before + 1, address)
    return before


def _count(name: str, word: LoadKey) -> Function:
    """How often each digit occurs in a block. Two tables take turns: neighbours are often equal."""
    f = part(name)
    row = _ROW.load(f)
    with each_block(f, row.n, row.length) as (b, start, stop):
        even = f.offset(row.counts, b * TABLE, "i32")
        odd = f.offset(even, DIGITS, "i32")
        f.fill(even, 0, 4 * TABLE, align=4)
        with f.loop(i=start, here=even, there=odd) as loop:
            loop.going(loop.i < stop)
            digit = _digit(word(f, row.source, loop.i), row.shift)
            _add_one(f, f.offset(loop.here, digit, "i32"))
            loop.next(loop.i + 1, loop.there, loop.here)
    f.ret()
    return f


def _offsets(name: str) -> Function:
    """From counts to offsets: the first of digit 0 in block 0, in block 1, ... of digit 1 in block 0."""
    f = Function("void", name, internal=True, counts="ptr", blocks="i64")
    with f.loop(d=0, sum=f.literal("i32", 0)) as digits:
        digits.going(digits.d < DIGITS)
        with f.loop(b=0, total=digits.sum) as loop:
            loop.going(loop.b < f.blocks)
            even_at = f.offset(f.counts, loop.b * TABLE + digits.d, "i32")
            even = f.load("i32", even_at)
            odd = f.load("i32", even_at, DIGITS, "i32")
            f.store(loop.total, even_at)
            total = loop.total + (even + odd)
            loop.next(loop.b + 1, total)
        digits.next(digits.d + 1, loop.total)
    f.ret()
    return f


def _move(name: str, word: LoadKey, element: str) -> Function:
    """Each element to the next slot of its digit."""
    f = part(name)
    row = _ROW.load(f)
    with each_block(f, row.n, row.length) as (b, start, stop):
        heads = f.offset(row.counts, b * TABLE, "i32")
        with f.each(stop, start) as i:
            digit = _digit(word(f, row.source, i), row.shift)
            slot = _add_one(f, f.offset(heads, digit, "i32")).zext("i64")
            f.store(f.load(element, row.source, i, element), row.to, slot, element)
    f.ret()
    return f


def _row(
    name: str, element: str, key_bits: int, parts: tuple[Function, Function, Function, Function]
) -> Function:
    vary, count, offset, move = parts
    f = sort_row(name)
    pairs = f.alloca(f"[{2 * MOST_BLOCKS} x i64]", align=8)
    context = _ROW.allocate(f)
    blocks, length = cut_row(f, f.n)
    context.store(source=f.keys, to=pairs, counts=f.counts, n=f.n, length=length, shift=0)
    run_parts(f, vary, context, blocks)
    varying = gather_bits(f, pairs, blocks)
    # An odd number of passes goes to the target first.
    with f.loop(q=0, odd=f.literal("i1", 0)) as passes:
        odd = passes.odd ^ _digit(varying, passes.q).ne(0)
        after = passes.q + DIGIT
        passes.repeat(after.ult(key_bits), after, odd)
    first, second = f.select(odd, f.target, f.scratch), f.select(odd, f.scratch, f.target)
    with f.loop(shift=0, start=f.keys, to=first, spare=second) as loop:
        work = f.later("work")
        passed = f.later("passed", start="ptr", to="ptr", spare="ptr")
        needed = _digit(varying, loop.shift).ne(0)
        f.fork(needed, work, (), passed, (loop.start, loop.to, loop.spare))
        f.at(work)
        context.store(source=loop.start, to=loop.to, shift=loop.shift)
        run_parts(f, count, context, blocks)
        f.run(offset, f.counts, blocks)
        run_parts(f, move, context, blocks)
        f.jump(passed, loop.to, loop.spare, loop.to)
        start, to, spare = f.at(passed)
        after = loop.shift + DIGIT
        loop.repeat(after.ult(key_bits), after, start, to, spare)
    with f.when(start.ne(f.target)):  # all keys are equal
        f.copy(f.target, start, f.n * (bits_of(element) // 8))
    f.ret()
    return f
