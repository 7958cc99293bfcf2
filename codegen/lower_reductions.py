"""Lowering of reductions and scans.

A reduction with few results and many elements goes by chunks, whose partial results are reduced then. So
all cores work, and the result is the same for any number of them:

    before: s = sum(x: 2000 x 2000)     after: p[c] = sum of rows 8c .. 8c+7;  s = sum(p)
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

from ..ir.graph import Op, Value
from .index import Index, Var, contiguous_strides, linear, of_var
from .kernel import Access, Array, Chunks, Stage
from .lower import Lowering, indices, lowering, variables
from .pointwise import Pointwise
from .scalar import Expr, const
from .schedule import collapse
from .survey import survey

IDENTITIES = {"sum": 0, "prod": 1, "any": False, "all": True}
SCANS = {"cumsum": "sum", "cumprod": "prod", "cummax": "max", "cummin": "min"}
CHUNK = 1 << 14  # elements that one partial result covers, at the least
MOST = 1024  # partial results per result
ALIGN_BYTES = 1 << 17  # arrays that do not stay in the nearer caches
SHORT = 8  # a loop too short to be vectorised if there is a longer one


@lowering("sum", "prod", "max", "min", "any", "all", "argmax", "argmin")
def _reduction(low: Lowering, op: Op) -> None:
    with _aligned(low, op.operands[0]):
        _reduce_aligned(low, op)


@contextmanager
def _aligned(low: Lowering, source: Value) -> Iterator[None]:
    """Copies of large arrays whose fastest axis is not that of the others that `source` is made of.

    In x * x.T one of the two would be read across its rows, a line of cache for each element. A copy in
    the order of the other is a kernel of its own, which goes by squares (see `llvm.transposes`).
    """
    before = dict(low.arrays)
    dims = variables(source.shape)
    p = low.point()
    p.at(source, indices(dims))
    fastest: dict[Var, list[Access]] = {}
    for access in p.reads:
        flat = linear(access.index, access.array.strides)
        along = [v for v in dims if v.extent > 1 and abs(flat.coeff(v)) == 1]
        if access.array.nbytes >= ALIGN_BYTES and along and set(map(type, flat.terms)) == {Var}:
            fastest.setdefault(along[-1], []).append(access)
    if len(fastest) > 1:
        fast = max(fastest, key=lambda v: (len(fastest[v]), dims.index(v)))
        values = {array: value for value, array in before.items()}
        straight = {a.array for a in fastest[fast]}
        for access in (a for v, found in fastest.items() if v is not fast for a in found):
            value = values.get(access.array)
            if value is not None and access.array in straight:  # it is read both ways
                for turned in _transposes(low, source, value):
                    low.materialise(turned)
                continue
            here = [d for d, i in enumerate(access.index) if i.coeff(fast)]
            if value is not None and len(here) == 1 and low.arrays[value] is access.array:
                low.arrays[value] = _copy_with_fastest(low, access.array, here[0])
    yield
    for value, array in before.items():
        low.arrays[value] = array


def _transposes(low: Lowering, source: Value, of: Value) -> list[Value]:
    """The transposes of `of` that are inlined in `source`."""
    found: list[Value] = []
    pending, seen = [source], {source}
    while pending:
        value = pending.pop()
        if value in low.arrays or value.op is None:
            continue
        if value.op.name == "transpose" and value.op.operands[0] is of:
            found.append(value)
        new = [v for v in value.op.operands if v not in seen]
        pending += new
        seen.update(new)
    return found


def _copy_with_fastest(low: Lowering, array: Array, axis: int) -> Array:
    """A copy of an array in memory of which `axis` is the fastest."""
    shape = array.shape
    order = [d for d in range(len(shape)) if d != axis] + [axis]
    packed = contiguous_strides(tuple(shape[d] for d in order))
    strides = tuple(packed[order.index(d)] for d in range(len(shape)))
    copy = Array(shape, array.dtype, strides=strides, name="turned")
    dims = variables(shape)
    p = low.point()
    value = p.load(array, indices(dims), None)
    loops = tuple(dims[d] for d in order)
    low.emit(p, Stage(copy, loops, value, index=indices(dims), ops=["copy"]))
    return copy


def _reduce_aligned(low: Lowering, op: Op) -> None:
    source = op.operands[0]
    axes = sorted(op.attrs["axes"] if "axes" in op.attrs else (op.attrs["axis"],))
    kept = [d for d in range(len(source.shape)) if d not in axes]
    array = low.array_for(op.result)
    n = math.prod(source.shape[d] for d in axes)
    rows = math.prod(source.shape[d] for d in kept)
    if n == 0:
        dims = variables(op.result.shape)
        identity = const(IDENTITIES[op.name], op.result.dtype)
        low.emit(low.point(), Stage(array, dims, identity, ops=[op.name], loc=op.loc))
    elif n >= 4 * CHUNK and rows * 8 < n and not op.name.startswith("arg"):
        _split_reduction(low, op, kept, axes, array)
    else:
        outer = [Var(f"i{d}", source.shape[d]) for d in kept]
        inner = [Var(f"r{d}", source.shape[d]) for d in axes]
        by_axis = dict(zip([*kept, *axes], [*outer, *inner], strict=True))
        p = low.point()
        expr = p.at(source, tuple(of_var(by_axis[d]) for d in range(len(source.shape))))
        _reduce(low, op, p, array, (*outer, *inner), len(outer), expr)
    low.arrays[op.result] = array


def _reduce(
    low: Lowering, op: Op, p: Pointwise, array: Array, dims: tuple[Var, ...], kept: int, expr: Expr
) -> None:
    stage = Stage(array, dims, expr, "reduce", op.name, kept, loc=op.loc, ops=[op.name])
    low.emit(p, stage)


def _split_reduction(low: Lowering, op: Op, kept: list[int], axes: list[int], array: Array) -> None:
    """Fill `array` with the reduction `op` of its operand over `axes`."""
    source = op.operands[0]
    rows = [Var(f"i{d}", source.shape[d]) for d in kept]
    at_rows = dict(zip(kept, map(of_var, rows), strict=True))
    loops, env = _walk(low, op, at_rows, axes)
    extents = [v.extent for v in loops]
    rest = [math.prod(extents[k + 1 :]) for k in range(len(loops))]
    chunk = max(CHUNK // max(math.prod(v.extent for v in rows), 1) // 64 * 64, 64)
    while math.prod(extents) > MOST * chunk:
        chunk *= 2
    cut = next(k for k, n in enumerate(rest) if n <= chunk)  # the loop that chunks are cut from
    length = min(chunk // rest[cut], extents[cut])
    count = -(-extents[cut] // length)
    if rest[cut] > 1:  # evenly; but chunks of a loop of vectors are whole vectors
        length = -(-extents[cut] // count)
        count = -(-extents[cut] // length)
    c, r = Var("c", count), Var("r", length)
    step = {loops[cut]: of_var(c) * length + of_var(r)}
    where = at_rows | {d: i.substitute(step) for d, i in env.items()}
    p = low.point()
    expr = p.at(source, tuple(where[d] for d in range(len(source.shape))))
    heads = [*loops[:cut], c]
    partial = Array(
        (*(v.extent for v in heads), *(v.extent for v in rows)), array.dtype, name="partial"
    )
    dims = (*heads, *rows, r, *loops[cut + 1 :])
    stage = Stage(
        partial, dims, expr, "reduce", op.name, len(heads) + len(rows), loc=op.loc, ops=[op.name]
    )
    if count * length != extents[cut]:
        stage.chunks = Chunks(cut, length, extents[cut])
    stage.partial = len(heads)
    low.emit(p, stage)
    _reduce_partials(low, op, op.name, partial, array)


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
    found = survey(Stage(Array((), op.result.dtype), tuple(by_axis.values()), expr, kept=0)).indices
    strides = {d: sum(abs(flat.coeff(v)) for flat in found) for d, v in by_axis.items()}
    order = [by_axis[d] for d in sorted(axes, key=lambda d: -strides[d])]
    loops = collapse(order, found)
    env = {d: loops.env[v] for d, v in by_axis.items()}
    walk = list(loops.vars)
    longest = max(walk, key=lambda v: v.extent)
    if walk[-1].extent < SHORT:
        walk.remove(longest)
        walk.append(longest)
    return walk, env


@lowering(*SCANS)
def _scan(low: Lowering, op: Op) -> None:
    """A running sum (product, maximum, minimum) along one axis, from either end."""
    source, axis = op.operands[0], op.attrs["axis"]
    dims = variables(source.shape)
    where = list(indices(dims))
    if op.attrs["reverse"]:
        where[axis] = -where[axis] + (source.shape[axis] - 1)
    p = low.point()
    expr = p.at(source, tuple(where))
    array = low.array_for(op.result)
    order = (*(v for d, v in enumerate(dims) if d != axis), dims[axis])
    low.emit(
        p,
        Stage(
            array,
            order,
            expr,
            "scan",
            SCANS[op.name],
            len(dims) - 1,
            tuple(where),
            ops=[op.name],
            loc=op.loc,
        ),
    )
    low.arrays[op.result] = array
