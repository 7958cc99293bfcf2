"""Micro-kernels: a tile of C held in registers while products are summed into it.

    C[i, j] += sum over k of A(i, k) * B(k, j)      i < rows, j < vectors * lanes

`sum_tile` emits the sum into any function: rows of A are pointers, whose elements are broadcast; a
row of B is `vectors` vectors side by side; the sum runs over a nest of loops, each of which moves A
and B by a stride. So A may be a matrix, its transpose, a packed block, or the pixels under a
convolution's window; B a packed panel, or a matrix as it lies. `store_tile` puts the tile away.

    e = TextEmitter(target, width=lanes)
    tile = sum_tile(e, F32, rows, b, vectors, [Sum(3, a_row, 1536), Sum(n, 1, 64)])
    store_tile(e, F32, tile, c_rows)

`tile_function` wraps both in a function for matrices, whose strides and depth are arguments: one
function serves all products of a program that have tiles of its shape. The shapes that the registers
of a machine hold are listed by `codegen.schedule.blocking.tile_shapes`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from operator import or_
from typing import NamedTuple

from ....ir.types import I32
from ...llvm.builder import Number, Value, symbol, vector_constant, zeros
from ...llvm.instructions import SCALAR_TYPES, constant, type_text
from ...llvm.text import Operand, TextEmitter
from ...module import TOLD_WORD
from ...scalar import DType
from ...target import Target

LINE = 64  # bytes of a cache line
ROWS_AHEAD = 8  # of a panel of B: what the nearest cache is asked for before it is used

Tile = list[list[Value]]  # per row, per vector


class Sum(NamedTuple):
    """One loop of a sum, outermost first: `n` iterations (at least 1), and by how many elements each
    of them moves A and B. All three are i64s."""

    n: Value | Number
    a: Value | Number
    b: Value | Number


class Fetch(NamedTuple):
    """Memory to ask for while a sum runs: from `pointer` on, `step` bytes further with each iteration of
    the innermost loop, into the cache of that `level`."""

    pointer: Value
    step: Value
    level: int


class TileFunction(NamedTuple):
    """A micro-kernel: its whole definition, what it takes, and what it refers to."""

    name: str
    text: str
    types: Sequence[str]
    declarations: frozenset[str]
    result: str = "void"

    @property
    def address(self) -> Value:
        return symbol(self.name)


def has_fma(target: Target) -> bool:
    """Whether a fused multiply-add is one instruction."""
    return target.has("fma") or "aarch64" in target.triple or "arm64" in target.triple


def multiply_add(e: TextEmitter, dtype: DType, fused: bool, a: Value, b: Value, c: Value) -> Value:
    """c + a * b in all lanes."""
    if dtype.kind == "f" and fused:
        return e.intrinsic("fma", type_text(dtype, e.width), a, b, c)
    f = "f" if dtype.kind == "f" else ""
    return e.binary(f"{f}add", c, e.binary(f"{f}mul", a, b))


def element(e: TextEmitter, dtype: DType, base: Value, *offsets: Value | Number) -> Value:
    """The address `base` moved by element offsets."""
    pointer = base
    for offset in offsets:
        if not isinstance(offset, Value) or offset.number != 0:
            pointer = e.offset(pointer, offset, SCALAR_TYPES[dtype])
    return pointer


def sum_tile(
    e: TextEmitter,
    dtype: DType,
    rows: Sequence[Value],
    b: Value,
    vectors: int,
    loops: Sequence[Sum],
    *,
    fused: bool,
    mask: Value | None = None,
    ahead: Sequence[Fetch] = (),
    soon: int = 0,
) -> Tile:
    """Emit a tile's sum; returns its values. `e.width` is the lanes of one vector.

    rows:   a pointer to each row's first element of A
    b:      a pointer to the first row of B; `mask` says which lanes of its last vector exist
    ahead:  what is wanted next, and fetched meanwhile
    soon:   how many elements before it is used a row of B is fetched into the nearest cache (0: never),
            if the loads leave room for that: a machine with half as many registers has none to spare
    """
    lanes = e.width
    ty = type_text(dtype, lanes)
    tile: Tile = [[zeros(ty)] * vectors for _ in rows]
    loads = len(rows) + vectors + len(_lines(dtype, vectors * lanes)) + len(ahead)
    soon = soon if 4 * loads <= 3 * len(rows) * vectors else 0  # of two in each cycle

    def walk(level: int, a_at: Value | Number, b_at: Value | Number, tile: Tile) -> Tile:
        if level == len(loops):
            return _products(e, dtype, rows, a_at, b, b_at, vectors, mask, tile, fused, soon)
        extent, a_step, b_step = loops[level]
        if not isinstance(extent, Value) and extent == 1:
            return walk(level + 1, a_at, b_at, tile)
        top, leave = e.later("sum"), e.later("summed")
        first = [value for row in tile for value in row]
        i, at_a, at_b, *sums = e.parameters(top, "i64", "i64", "i64", *[ty] * len(first))
        carried = [sums[k : k + vectors] for k in range(0, len(sums), vectors)]
        e.jump(top, 0, a_at, b_at, *first)
        e.at(top)
        with e.scope():
            if level == len(loops) - 1:
                _fetch(e, ahead, i)
            new = walk(level + 1, at_a, at_b, carried)
            following = e.stepped(i, 1, "nuw nsw")
            moved = [e.stepped(at_a, a_step), e.stepped(at_b, b_step)]
            ends = [value for row in new for value in row]
            e.fork(following < extent, top, (following, *moved, *ends), leave)
        e.at(leave)
        return new

    return walk(0, 0, 0, tile)


def _fetch(e: TextEmitter, ahead: Sequence[Fetch], i: Value) -> None:
    """Ask for the lines that iteration `i` is to bring nearer."""
    for pointer, step, level in ahead:
        e.prefetch(e.offset(pointer, i * step), level)


def _lines(dtype: DType, count: int) -> range:
    """Where the cache lines of so many elements side by side begin."""
    return range(0, count, LINE // dtype.itemsize)


def _products(
    e: TextEmitter,
    dtype: DType,
    rows: Sequence[Value],
    a_at: Value | Number,
    b: Value,
    b_at: Value | Number,
    vectors: int,
    mask: Value | None,
    tile: Tile,
    fused: bool,
    soon: int,
) -> Tile:
    """One k: a row of B, times an element of each row of A."""
    lanes = e.width
    b_row = element(e, dtype, b, b_at)
    if soon:
        for first in _lines(dtype, vectors * lanes):
            e.prefetch(element(e, dtype, b_row, soon + first), 1)
    right = [
        e.load_elements(
            dtype,
            element(e, dtype, b_row, v * lanes),
            lanes,
            mask=mask if v == vectors - 1 else None,
        )
        for v in range(vectors)
    ]
    new: Tile = []
    for row, sums in zip(rows, tile, strict=True):
        value = e.load_elements(dtype, element(e, dtype, row, a_at), 1)
        left = e.spread(Operand(value, True), dtype)
        new.append(
            [multiply_add(e, dtype, fused, left, x, s) for x, s in zip(right, sums, strict=True)]
        )
    return new


def store_tile(
    e: TextEmitter,
    dtype: DType,
    tile: Tile,
    rows: Sequence[Value],
    *,
    mask: Value | None = None,
    add: bool = False,
) -> list[Value]:
    """Write a tile to `rows` of C (pointers), or `add` it to what is there. Gives what was written."""
    written: list[Value] = []
    lanes = e.width
    plus = "fadd" if dtype.kind == "f" else "add"
    for row, values in zip(rows, tile, strict=True):
        for v, value in enumerate(values):
            at = element(e, dtype, row, v * lanes)
            on = mask if v == len(values) - 1 else None
            if add:
                old = e.load_elements(dtype, at, lanes, mask=on)
                value = e.binary(plus, old, value)
            e.store_elements(dtype, value, at, mask=on)
            written.append(value)
    return written


def _tell(e: TextEmitter, dtype: DType, values: Sequence[Value], kinds: str, status: Value) -> None:
    """Note in the status block if elements of these vectors are of such kinds."""
    if kinds == "nan":
        pairs = zip(values[::2], [*values[1::2], *values[-1:]], strict=False)
        tests = [e.compare_floats("uno", a, b) for a, b in pairs]
    else:
        how, infinity = ("oeq" if kinds == "inf" else "ueq"), constant(math.inf, dtype, e.width)
        sizes = [e.intrinsic("fabs", v.type, v) for v in values]
        tests = [e.compare_floats(how, size, infinity) for size in sizes]
    some = reduce(or_, tests)
    with e.when(some if e.width == 1 else some.to("bitcast", f"i{e.width}").ne(0)):
        e.store(e.literal("i64", 1), e.offset(status, TOLD_WORD, "i64"))


def lane_mask(e: TextEmitter, count: Value) -> Value:
    """The lanes below `count` (an i32)."""
    spread = e.spread(Operand(count, True), I32)
    return e.compare("slt", vector_constant("i32", range(e.width)), spread)


def tile_function(
    target: Target,
    dtype: DType,
    rows: int,
    vectors: int,
    *,
    adjacent: bool = False,
    masked: bool = False,
    panel: int = 0,
    a_step: int = 0,
    watched: str = "",
) -> TileFunction:
    """A micro-kernel for matrices, as an LLVM function:

        void @name(ptr a, i64 a_step, ptr b, i64 b_step, ptr c, i64 c_step, i64 depth, i1 add,
                   i32 last, ptr next, i64 next_step, ptr status)

    C[i, j] (+)= sum over k < depth of A(i, k) * B(k, j); `add` says whether to add. Steps are in
    elements: those of B and C lead from row to row. Rows of A are `a_step` apart and a row's
    elements side by side, or, if `adjacent`, a column's elements are side by side and columns
    `a_step` apart. If `masked`, only `last` lanes of the last vector exist, in B and in C. If B lies
    in panels of `panel` columns (0: it does not) that are farther than the nearest cache, its rows
    are fetched some iterations ahead, C at the start, and `next_step` bytes from `next` on at each k. An
    `a_step` known here, a constant for all calls, needs no arithmetic on addresses. Elements of C that
    are `watched` for, see `Matmul`, are noted in the status block; else there is no such argument.
    """
    lanes = target.lanes(dtype.itemsize)
    kind = ("t" if adjacent else "") + ("m" if masked else "") + (f"p{panel}" if panel else "")
    kind += f"s{a_step}" if a_step else ""
    kind += "w" + watched.replace(" ", "") if watched else ""
    element_name = f"{dtype.kind}{dtype.itemsize * 8}"
    name = f"tile_{element_name}_{rows}x{vectors}{'_' + kind if kind else ''}"
    e = TextEmitter(target, lanes)
    a, own_step, b, b_step, c, c_step, depth, adds, last, following, following_step, *status = (
        e.takes(
            a="ptr",
            a_step="i64",
            b="ptr",
            b_step="i64",
            c="ptr",
            c_step="i64",
            depth="i64",
            add="i1",
            last="i32",
            next="ptr",
            next_step="i64",
            **({"status": "ptr"} if watched else {}),
        )
    )
    mask = lane_mask(e, last) if masked else None
    across = a_step or own_step
    step = 1 if adjacent else across
    a_rows = _rows(e, dtype, a, step, rows)
    loop = Sum(depth, across if adjacent else 1, panel or b_step)
    fused = has_fma(target)
    c_rows = _rows(e, dtype, c, c_step, rows)
    ahead: list[Fetch] = []
    if panel:
        for row in c_rows:
            for first in _lines(dtype, vectors * lanes):
                e.prefetch(element(e, dtype, row, first), 1, write=True)
        ahead.append(Fetch(following, following_step, 2))
    tile = sum_tile(
        e,
        dtype,
        a_rows,
        b,
        vectors,
        [loop],
        fused=fused,
        mask=mask,
        ahead=ahead,
        soon=ROWS_AHEAD * panel,
    )
    more, new = e.later("more"), e.later("new")
    e.branch(adds, more, new)
    for block, add in ((more, True), (new, False)):
        e.at(block)
        with e.scope():
            written = store_tile(e, dtype, tile, c_rows, mask=mask, add=add)
            if watched:
                _tell(e, dtype, written, watched, status[0])
        e.ret()
    text = f"define internal void @{name}{e.unnamed(attributes='noinline nounwind')}"
    return TileFunction(name, text, e.types, frozenset(e.declarations))


def _rows(
    e: TextEmitter, dtype: DType, base: Value, step: Value | Number, count: int
) -> list[Value]:
    """Pointers to `count` rows that are `step` elements apart."""
    rows = [base]
    for i in range(1, count):
        offset = e.binary("mul nsw", step, i) if isinstance(step, Value) else i * step
        rows.append(element(e, dtype, base, offset))
    return rows
