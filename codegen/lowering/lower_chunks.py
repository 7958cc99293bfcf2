"""Reductions with few results and many elements: by chunks, whose partial results are reduced then.

    before: s = sum(x: 2000 x 2000)     after: p[c] = sum of rows 8c .. 8c+7;  s = sum(p)

So all cores work, and the result is the same for any number of them. A sum of squared deviations takes
one pass over memory where the sum of the same elements has been asked for (`_deviations`).
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from ...ir.graph import Op, Value
from ...ir.record import record
from ..loop_ir.index import Index, Var, of_var
from ..loop_ir.kernel import Array, Chunks, Stage
from ..math import EXPANSIONS
from ..math.combiners import FOLDS
from ..scalar import DType, Expr, binary, compare, const, convert, select
from ..schedule.schedule import collapse
from ..schedule.survey import survey
from .lower import Lowering, indices, variables
from .pointwise import IndexTuple, Pointwise, as_index, index_value

U8 = np.dtype(np.uint8)
MOST = 1 << 14  # partial results per result
SHORT = 8  # a loop too short to be vectorised if there is a longer one


@record
class Chunking:
    """How the elements of a reduction are cut into chunks.

    The loops `dims` are those that count chunks (`heads`), those of the results, and those of one chunk,
    whose first is `length` long and may be shorter in the last chunk. `where` gives each axis's index.
    """

    dims: tuple[Var, ...]
    heads: tuple[Var, ...]
    rows: tuple[Var, ...]
    where: IndexTuple
    chunks: Chunks | None
    length: int
    rest: int  # elements for each iteration of that loop

    @property
    def outer(self) -> int:
        return len(self.heads) + len(self.rows)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(v.extent for v in self.dims[: self.outer])

    def elements(self, counter: Index, dtype: DType) -> Expr:
        """How many elements the chunk has whose position in the loop that is cut is `counter`."""
        if self.chunks is None:
            return const(self.length * self.rest, dtype)
        left = index_value(counter * -self.chunks.length + self.chunks.total)
        return convert(binary("min", left, self.length) * self.rest, dtype)


def reduce_to(
    low: Lowering, op: Op, p: Pointwise, array: Array, dims: tuple[Var, ...], rank: int, expr: Expr
) -> None:
    """Emit the stage that folds `expr` over the dims behind the first `rank`."""
    stage = Stage(array, dims, expr, "reduce", op.name, rank, loc=op.loc, ops=[op.name])
    low.emit(p, stage)


def reduce_by_chunks(
    low: Lowering, op: Op, outer_dims: list[int], axes: list[int], array: Array
) -> None:
    """Fill `array` with the reduction `op` of its operand over `axes`."""
    source = op.operands[0]
    if op.name == "sum" and _deviations(low, op, axes, array):
        return
    cut = _cut(low, op, outer_dims, axes)
    p = low.point()
    partial = _partial(low, op, p, cut, p.at(source, cut.where))
    if op.name == "sum":
        low.partial_sums[source, tuple(axes)] = (partial, cut)
    _reduce_partials(low, op, op.name, partial, array)


def _partial(low: Lowering, op: Op, p: Pointwise, cut: Chunking, expr: Expr) -> Array:
    """The reduction of each chunk."""
    partial = Array(cut.shape, expr.dtype, name="partial")
    stage = Stage(partial, cut.dims, expr, "reduce", op.name, cut.outer, loc=op.loc, ops=[op.name])
    stage.chunks = cut.chunks
    stage.partial = len(cut.heads)
    low.emit(p, stage)
    return partial


def sum_partials(low: Lowering, op: Op, partial: Array, array: Array) -> None:
    """Sum partial results over their leading dims into `array`."""
    _reduce_partials(low, op, "sum", partial, array)


def _reduce_partials(low: Lowering, op: Op, fold: str, partial: Array, array: Array) -> None:
    results = variables(array.shape)
    again = variables(partial.shape[: len(partial.shape) - len(results)])
    p = low.point()
    expr = p.load(partial, (*indices(again), *indices(results)), None)
    stage = Stage(
        array, (*results, *again), expr, "reduce", fold, len(results), loc=op.loc, ops=[fold]
    )
    low.emit(p, stage)


def _deviations(low: Lowering, op: Op, axes: list[int], array: Array) -> bool:
    """A sum of (x - m)**2 over axes along which m is the same, where sums of chunks of x exist.

        sum of (x - m)**2 over a chunk = sum of (x - c)**2 + n * (c - m)**2, c the mean of the chunk

    holds for any m. The first term is taken while the chunk is in cache from its sum, so a variance
    reads memory once; and it is as exact as the two passes that it replaces, or more.
    """
    square = op.operands[0].op
    if square is None or square.name != "mul" or square.operands[0] is not square.operands[1]:
        return False
    difference = square.operands[0]
    if difference.dtype.kind != "f" or difference in low.arrays:
        return False
    if difference.op is None or difference.op.name != "sub":
        return False
    x, shift = difference.op.operands
    partial = low.partial_sums.get((x, tuple(axes)))
    if partial is None or not _same_along(shift, axes):
        return False
    sums, cut = partial
    dtype = array.dtype
    at_partial = indices(cut.dims[: cut.outer])
    p = low.point()
    counter = at_partial[len(cut.heads) - 1]
    mean = binary("div", p.load(sums, at_partial, None), cut.elements(counter, dtype))
    d = binary("sub", p.at(x, cut.where), mean)
    squares = _partial(low, op, p, cut, binary("mul", d, d))
    results = variables(array.shape)
    again = tuple(Var("c", v.extent) for v in cut.heads)
    p = low.point()
    at = (*indices(again), *indices(results))
    n = cut.elements(at[len(again) - 1], dtype)
    others = iter(indices(results))
    zero = Index()
    shift_at = tuple(zero if d in axes else next(others) for d in range(len(x.shape)))
    away = binary("div", p.load(sums, at, None), n) - p.at(shift, shift_at)
    expr = p.load(squares, at, None) + n * (away * away)
    reduce_to(low, op, p, array, (*results, *again), len(results), expr)
    return True


def _same_along(value: Value, axes: list[int]) -> bool:
    """Whether a value is a broadcast along all of `axes`."""
    op = value.op
    return op is not None and op.name == "broadcast" and not set(axes) & set(op.attrs["dims"])


def _cut(low: Lowering, op: Op, outer_dims: list[int], axes: list[int]) -> Chunking:
    source = op.operands[0]
    rows = tuple(Var(f"i{d}", source.shape[d]) for d in outer_dims)
    at_rows = dict(zip(outer_dims, map(of_var, rows), strict=True))
    loops, env = _walk(low, op, at_rows, axes)
    extents = [v.extent for v in loops]
    rest = [math.prod(extents[k + 1 :]) for k in range(len(loops))]
    chunk = max(low.context.chunk // max(math.prod(v.extent for v in rows), 1) // 64 * 64, 64)
    while math.prod(extents) > MOST * chunk:
        chunk *= 2
    at = next(k for k, n in enumerate(rest) if n <= chunk)  # the loop that chunks are cut from
    length = min(chunk // rest[at], extents[at])
    count = -(-extents[at] // length)
    if rest[at] > 1:  # evenly; but chunks of a loop of vectors are whole vectors
        length = -(-extents[at] // count)
    c, r, along, chunks = _chunked(at, length, extents[at])
    step = {loops[at]: along}
    where = at_rows | {d: i.substitute(step) for d, i in env.items()}
    heads = (*loops[:at], c)
    return Chunking(
        dims=(*heads, *rows, r, *loops[at + 1 :]),
        heads=heads,
        rows=rows,
        where=tuple(where[d] for d in range(len(source.shape))),
        chunks=chunks,
        length=length,
        rest=rest[at],
    )


def _chunked(axis: int, length: int, total: int) -> tuple[Var, Var, Index, Chunks | None]:
    """A loop as one over chunks, number `axis` of its stage's, and one within them: both loops, what the
    loop is in them, and which chunk is shorter, if one is."""
    c, r = Var("c", -(-total // length)), Var("r", length)
    return (
        c,
        r,
        of_var(c) * length + of_var(r),
        Chunks(axis, length, total) if total % length else None,
    )


def search_by_chunks(low: Lowering, op: Op, outer_dims: list[int], axis: int, array: Array) -> None:
    """argmax and argmin by chunks: the best of each and its index, then the first best chunk."""
    source = op.operands[0]
    total = source.shape[axis]
    length = max(low.context.chunk, -(-total // MOST))
    rows = [Var(f"i{d}", source.shape[d]) for d in outer_dims]
    c, r, along, chunks = _chunked(len(rows), length, total)
    at = dict(zip(outer_dims, map(of_var, rows), strict=True)) | {axis: along}
    shape = (*(v.extent for v in rows), c.extent)
    dims = (*rows, c, r)
    p = low.point()
    value = p.at(source, tuple(at[d] for d in range(len(source.shape))))
    if value.dtype.kind == "b":
        value = convert(value, U8)
    best = Array(shape, value.dtype, name="best")
    position = Array(shape, array.dtype, name="index")
    for made, name in ((best, op.name[3:]), (position, op.name)):
        stage = Stage(made, dims, value, "reduce", name, len(dims) - 1, loc=op.loc, ops=[op.name])
        stage.chunks = chunks
        low.emit(p, stage)
    chosen = Array(array.shape, array.dtype, name="chosen")
    results, again = variables(array.shape), Var("c", c.extent)
    p = low.point()
    expr = p.load(best, (*indices(results), of_var(again)), None)
    reduce_to(low, op, p, chosen, (*results, again), len(results), expr)
    p = low.point()
    chunk = as_index(p.load(chosen, indices(results), None), 0, c.extent - 1)
    index = p.load(position, (*indices(results), chunk), None)
    low.emit(p, Stage(array, results, index + index_value(chunk * length), ops=[op.name]))


def scan_stage(
    op: Op,
    array: Array,
    dims: tuple[Var, ...],
    value: Expr,
    index: IndexTuple,
    *,
    fold: str,
    backwards: bool = False,
) -> Stage:
    """Running folds over the last of the loops."""
    last, ops = len(dims) - 1, [op.name]
    return Stage(
        array, dims, value, "scan", fold, last, index, ops=ops, loc=op.loc, reverse=backwards
    )


def scan_by_chunks(
    low: Lowering, op: Op, fold: str, length: int, head: int, backwards: bool = False
) -> Array:
    """The running sum (product, maximum, minimum) of few long rows, from either end.

    before: y = cumsum(x)
    after:  s[c] = sum of chunk c;  t = cumsum(s);  y in chunk c starts from t[c - 1]

    The loop over chunks stands at `head` among those over rows. A scan from the end goes `backwards`, or
    along flipped elements.
    """
    source, axis, dtype = op.operands[0], op.attrs["axis"], op.result.dtype
    total = source.shape[axis]
    outer_dims = [d for d in range(len(source.shape)) if d != axis]
    array = low.array_for(op.result)

    def loops() -> tuple[tuple[Var, ...], IndexTuple, Chunks | None]:
        """The loops over the rows, the chunks and a chunk, where they are in the source, and chunks."""
        rows = {d: Var(f"i{d}", source.shape[d]) for d in outer_dims}
        c, r, along, chunks = _chunked(head, length, total)
        if op.attrs["reverse"] and not backwards:
            along = -along + (total - 1)
        where = tuple(along if d == axis else of_var(rows[d]) for d in range(len(source.shape)))
        outer = [*rows.values()]
        outer.insert(head, c)
        return (*outer, r), where, chunks

    running = partial(scan_stage, op, fold=fold, backwards=backwards)
    dims, where, chunks = loops()
    shape = tuple(v.extent for v in dims[:-1])
    sums, before = Array(shape, dtype, name="sums"), Array(shape, dtype, name="before")
    p = low.point()
    last = len(dims) - 1
    stage = Stage(sums, dims, p.at(source, where), "reduce", fold, last, loc=op.loc, ops=[fold])
    stage.chunks = chunks
    low.emit(p, stage)
    own = variables(shape)
    p = low.point()
    order = (*own[:head], *own[head + 1 :], own[head])
    low.emit(p, running(before, order, p.load(sums, indices(own), None), indices(own)))
    dims, where, chunks = loops()
    p = low.point()
    x = p.at(source, where)
    at, r = [*indices(dims[:-1])], index_value(of_var(dims[-1]))
    c, count = index_value(at[head]), shape[head]
    later = compare("lt", c, count - 1) if backwards else compare("ge", c, 1)
    first = compare("eq", r, length - 1 if backwards else 0)
    at[head] += 1 if backwards else -1
    start = EXPANSIONS[FOLDS[fold]](p.load(before, tuple(at), later), x)
    stage = running(array, dims, select(first & later, start, x), where)
    stage.chunks = chunks
    low.emit(p, stage)
    return array


def _walk(
    low: Lowering, op: Op, rows: dict[int, Index], axes: list[int]
) -> tuple[list[Var], dict[int, Index]]:
    """Loops over the elements of one result, in the order that suits memory, and each axis in them.

    Neighbouring loops that every access walks as one are one.
    """
    source = op.operands[0]
    by_axis = {d: Var(f"r{d}", source.shape[d]) for d in axes}
    where = rows | {d: of_var(v) for d, v in by_axis.items()}
    p = low.point()
    expr = p.at(source, tuple(where[d] for d in range(len(source.shape))))
    flats = survey(
        Stage(Array((), op.result.dtype), tuple(by_axis.values()), expr, outer=0)
    ).indices
    strides = {d: sum(abs(flat.coeff(v)) for flat in flats) for d, v in by_axis.items()}
    order = [by_axis[d] for d in sorted(axes, key=lambda d: -strides[d])]
    loops = collapse(order, flats)
    env = {d: loops.env[v] for d, v in by_axis.items()}
    walk = list(loops.vars)
    longest = max(walk, key=lambda v: v.extent)
    if walk[-1].extent < SHORT:
        walk.remove(longest)
        walk.append(longest)
    return walk, env
