"""Argsort of elements of 64 bits, by sorting numbers that hold part of the key and the index.

Of the bits in which keys of a row differ, the upper ones that fit beside an index are its prefix. The
numbers (prefix << bits of an index) | index are all different, so sorting them is stable. Where more
bits differ, runs of equal prefixes are sorted in the same way by what their keys differ in.
"""

from __future__ import annotations

from typing import NamedTuple

from ...llvm.builder import Value
from ...llvm.modules import Function
from ...schedule.sort_blocks import MOST_BLOCKS, index_bits
from .cpu_quicksort import DEPTH, Quicksort
from .cpu_row_parts import (
    Fields,
    cut_row,
    each_block,
    gather_bits,
    load_word,
    part,
    run_parts,
    sort_row,
    varying_bits,
)

_ROW = Fields(source="ptr", to="ptr", n="i64", length="i64", prefix_mask="i64", shift="i64")


def argsort_functions(name: str, sort: Quicksort, n: int) -> tuple[Function, ...]:
    """`void @name_row(ptr keys, ptr target, ptr scratch, ptr counts, i64 n)`, last: the lower
    bits of the target are indices. `keys` stay."""
    bits = index_bits(n)
    memory = dict.fromkeys(("keys", "target", "scratch"), "ptr")
    scan, refine = (
        Function("void", f"{name}_{part}", internal=True, **memory, lo="i64", hi="i64")
        for part in ("scan", "refine")
    )
    _scan(scan, refine, bits)
    _refine(refine, scan, sort.quick, bits)
    vary, pack = varying_bits(f"{name}_vary", _ROW, load_word), _pack(f"{name}_pack", bits)
    return vary, pack, scan, refine, _row(name, sort.row, vary, pack, scan, bits)


class _Prefix(NamedTuple):
    """Bits that count, how far they are moved down, and whether none is lost by that."""

    mask: Value
    shift: Value
    exact: Value


def _prefix(f: Function, varying: Value, bits: int) -> _Prefix:
    """The prefix of keys that differ in these bits."""
    zeros = f.intrinsic("ctlz", "i64", varying, False)
    same = varying.eq(0)
    ones = f.literal("i64", -1) >> f.select(same, 0, zeros)
    prefix_mask = f.select(same, 0, ones)
    over = 64 - zeros - (64 - bits)
    exact = over <= 0
    return _Prefix(prefix_mask, f.select(exact, 0, over), exact)


def _number(key: Value, index: Value, prefix_mask: Value, shift: Value, bits: int) -> Value:
    return (key & prefix_mask) >> shift << bits | index


def _pack(name: str, bits: int) -> Function:
    f = part(name)
    row = _ROW.load(f)
    with each_block(f, row.n, row.length) as (_, start, stop), f.each(stop, start) as index:
        key = load_word(f, row.source, index)
        f.store(_number(key, index, row.prefix_mask, row.shift, bits), row.to, index, "i64")
    f.ret()
    return f


def _scan(f: Function, refine: Function, bits: int) -> None:
    """Runs of equal prefixes in lo..hi are sorted by the rest of their keys."""
    with f.loop(i=f.lo) as runs:
        runs.going(runs.i < f.hi)
        x = f.load("i64", f.target, runs.i, "i64")
        with f.loop(before=runs.i) as run:
            j = run.before + 1
            run.going(j < f.hi)
            y = f.load("i64", f.target, j, "i64")
            run.repeat((x ^ y).ule((1 << bits) - 1), j)
        with f.when(j - runs.i > 1):
            f.run(refine, f.keys, f.target, f.scratch, runs.i, j)
        runs.next(j)
    f.ret()


def _refine(f: Function, scan: Function, quick: Function, bits: int) -> None:
    """Sort lo..hi of the target, whose indices ascend, by what their keys differ in."""
    mask = (1 << bits) - 1
    out, again = f.later("out"), f.later("again")
    with f.loop(i=f.lo, any=0, all=-1) as look:
        index = f.load("i64", f.target, look.i, "i64") & mask
        key = f.load("i64", f.keys, index, "i64")
        any, all = look.any | key, look.all & key
        after = look.i + 1
        look.repeat(after < f.hi, after, any, all)
    varying = any ^ all
    prepare = f.later("prepare")
    f.branch(varying.eq(0), out, prepare)
    f.at(prepare)
    prefix_mask, shift, exact = _prefix(f, varying, bits)
    with f.loop(j=f.lo) as each:
        at = f.offset(f.target, each.j, "i64")
        index = f.load("i64", at) & mask
        key = f.load("i64", f.keys, index, "i64")
        f.store(_number(key, index, prefix_mask, shift, bits), at)
        after = each.j + 1
        each.repeat(after < f.hi, after)
    here, spare = f.offset(f.target, f.lo, "i64"), f.offset(f.scratch, f.lo, "i64")
    f.run(quick, here, spare, here, here, f.hi - f.lo, DEPTH)
    f.branch(exact, out, again)
    f.at(again)
    f.run(scan, *f.args)
    f.jump(out)
    f.at(out)
    f.ret()


def _row(
    name: str, sort: Function, vary: Function, pack: Function, scan: Function, bits: int
) -> Function:
    f = sort_row(name)
    pairs = f.alloca(f"[{2 * MOST_BLOCKS} x i64]", align=8)
    context = _ROW.allocate(f)
    blocks, length = cut_row(f, f.n)
    context.store(source=f.keys, to=pairs, n=f.n, length=length, prefix_mask=0, shift=0)
    run_parts(f, vary, context, blocks)
    prefix_mask, shift, exact = _prefix(f, gather_bits(f, pairs, blocks), bits)
    context.store(to=f.scratch, prefix_mask=prefix_mask, shift=shift)
    run_parts(f, pack, context, blocks)
    f.run(sort, f.scratch, f.target, f.scratch, f.counts, f.n)
    out, rest = f.later("out"), f.later("scan")
    f.branch(exact, out, rest)
    f.at(rest)
    f.run(scan, f.keys, f.target, f.scratch, 0, f.n)
    f.jump(out)
    f.at(out)
    f.ret()
    return f
