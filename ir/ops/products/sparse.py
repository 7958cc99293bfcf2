"""Products with matrices of which only some elements are there: rows of column numbers and elements.

    sparse_dot(starts, ends, columns, data, x)                  y[r] = sum of data[k] * x[columns[k]]
    sparse_dot_t(starts, ends, columns, data, y; size)          x[columns[k]] += data[k] * y[r]
    sparse_rows(starts, ends; size)                             the row of each element, or -1

for k from `starts[r]` to before `ends[r]`, for each row r. `x` and `y` are matrices. Starts do not fall,
and rows do not overlap. The second is the product with the transposed matrix, which has `size` rows.

On CPUs each is a nest of loops, whose sums stay in registers, eight columns of a matrix at a time; rows
are shared among threads, or columns where rows add to one place. On GPUs rows are added by scatters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...batching.transform import BatchBuilder, Batched, Marks, batch_each
from ...build import Builder, Grads, Wanted
from ...graph import Graph, Op, Value
from ...opdef import OPS, GraphError, OpDef, register
from ...types import I64, TensorType
from ..families import NUMBER, Array, check_kind

ABREAST = 8  # columns whose sums are in registers at a time
Step = Callable[[Builder, Sequence[Value], Value, Sequence[Value]], list[Value]]


def _check(starts: TensorType, ends: TensorType, columns: TensorType, data: TensorType) -> None:
    check_kind(data, NUMBER)
    if any(t.rank != 1 or t.dtype.kind not in "iu" for t in (starts, ends, columns)):
        raise GraphError("starts, ends and columns are 1-d and of integers")
    if starts.shape != ends.shape or columns.shape != data.shape:
        raise GraphError(f"{starts} and {ends}, or {columns} and {data}, differ in shape")


def _infer(
    starts: TensorType, ends: TensorType, columns: TensorType, data: TensorType, x: TensorType
) -> TensorType:
    _check(starts, ends, columns, data)
    if x.rank != 2 or x.dtype != data.dtype:
        raise GraphError(f"{x} is no matrix of {data.dtype}")
    return x.with_shape((starts.shape[0], x.shape[1]))


def _infer_t(
    starts: TensorType,
    ends: TensorType,
    columns: TensorType,
    data: TensorType,
    y: TensorType,
    *,
    size: int,
) -> TensorType:
    _check(starts, ends, columns, data)
    if y.rank != 2 or y.dtype != data.dtype or y.shape[0] != starts.shape[0]:
        raise GraphError(f"{y} has not one row of {data.dtype} for each of {starts}")
    return y.with_shape((size, y.shape[1]))


def _places(starts: Array, ends: Array) -> tuple[Array, Array]:
    """The number of the row, and k, of each element that is in a row."""
    counts = np.maximum(ends - starts, 0).astype(np.int64)
    rows = np.repeat(np.arange(len(starts)), counts)
    first = np.repeat(starts.astype(np.int64) - (np.cumsum(counts) - counts), counts)
    return rows, first + np.arange(len(rows))


def _dot(starts: Array, ends: Array, columns: Array, data: Array, x: Array) -> Array:
    rows, k = _places(starts, ends)
    result = np.zeros((len(starts), x.shape[1]), data.dtype)
    np.add.at(result, rows, data[k, None] * x[columns[k]])
    return result


def _dot_t(
    starts: Array, ends: Array, columns: Array, data: Array, y: Array, *, size: int
) -> Array:
    rows, k = _places(starts, ends)
    result = np.zeros((size, y.shape[1]), data.dtype)
    np.add.at(result, columns[k], data[k, None] * y[rows])
    return result


def _infer_rows(starts: TensorType, ends: TensorType, *, size: int) -> TensorType:
    _check(starts, ends, starts, starts)
    return TensorType((size,), I64)


def _rows(starts: Array, ends: Array, *, size: int) -> Array:
    result = np.full(size, -1)
    rows, k = _places(starts, ends)
    result[k] = rows
    return result


# Derivatives: each is linear in `data` and in the matrix.


def _inner(b: Builder, where: Sequence[Value], y: Value, x: Value) -> Value:
    """Of each element of the matrix the inner product of its rows in y and x; 0 for those in no row."""
    starts, ends, columns = where
    rows = b.op("sparse_rows", starts, ends, size=columns.shape[0])
    inside = b.op("ge", rows, b.full_like(rows, 0))
    pair = [
        b.gather(v, b.convert(i, dtype=I64), axes=(0,), mode="clip")
        for v, i in ((y, rows), (x, columns))
    ]
    total = b.op("sum", b.mul(*pair), axes=(1,))
    return b.select(inside, total, b.full_like(total, 0))


def _jvp(b: Builder, op: Op, tangents: Sequence[Value | None]) -> list[Value | None]:
    *where, data, x = op.operands
    total: Value | None = None
    for pair in ((tangents[3], x), (data, tangents[4])):
        if None not in pair:
            part = b.op(op.name, *where, *pair, **op.attrs)
            total = part if total is None else b.add(total, part)
    return [total]


def _vjp(b: Builder, op: Op, cotangents: Sequence[Value], wanted: Wanted) -> Grads:
    *where, data, x = op.operands
    (ct,) = cotangents
    grads: Grads = [None] * 5
    if wanted[3]:
        pair = (ct, x) if op.name == "sparse_dot" else (x, ct)
        grads[3] = _inner(b, where, *pair)
    if wanted[4] and op.name == "sparse_dot":
        grads[4] = b.op("sparse_dot_t", *where, data, ct, size=x.shape[0])
    elif wanted[4]:
        grads[4] = b.op("sparse_dot", *where, data, ct)
    return grads


# Batching: more columns of the matrices, or one matrix with those of all examples as its blocks.


def _batch(b: BatchBuilder, op: Op, operands: Sequence[Value], batched: Marks) -> Batched:
    size, (rows, width) = b.size, op.operands[4].shape
    if not any(batched[:4]):
        x = b.transpose(operands[4], perm=(1, 0, 2))
        x = b.reshape(x, shape=(rows, size * width))
        y = b.op(op.name, *operands[:4], x, **op.attrs)
        y = b.reshape(y, shape=(y.shape[0], size, width))
        return [b.transpose(y, perm=(1, 0, 2))], [True]
    starts, ends, columns, data, x = b.spread_all(operands, batched)
    span = rows if op.name == "sparse_dot" else op.attrs["size"]
    count = data.shape[1]

    def apart(v: Value, step: int) -> Value:
        """Numbers of each example behind those of the ones before."""
        wide = b.convert(v, dtype=I64)
        example = b.op("iota", shape=wide.shape, dtype=I64, axis=0)
        wide = b.add(wide, b.mul(example, b.full_like(example, step)))
        return b.reshape(wide, shape=(wide.tensor.size,))

    where = (apart(starts, count), apart(ends, count), apart(columns, span))
    attrs: dict[str, Any] = {"size": size * span} if op.name == "sparse_dot_t" else {}
    whole = b.reshape(x, shape=(size * rows, width))
    y = b.op(op.name, *where, b.reshape(data, shape=(size * count,)), whole, **attrs)
    return [b.reshape(y, shape=(size, y.shape[0] // size, width))], [True]


# As loops


def _loop(
    b: Builder,
    length: int,
    consts: Sequence[Value],
    state: Sequence[Value],
    step: Step,
    apart: bool,
) -> list[Value]:
    """`state = step(b, consts, i, state)` for i in range(length), whose iterations may be `apart`."""
    graph = Graph("run")
    inner = Builder(graph, b.loc)
    fixed = [graph.add_param(v.type) for v in consts]
    i = graph.add_param(TensorType((), I64))
    carried = [graph.add_param(v.type) for v in state]
    new = step(inner, fixed, i, carried)
    graph.outputs = [inner.add(i, inner.const(1, I64)), *new]
    attrs = {"independent": True} if apart else {}
    op = b.append(
        OPS["scan"],
        [*consts, b.const(0, I64), *state],
        {
            "consts": len(fixed),
            "carries": 1 + len(new),
            "length": length,
            "reverse": False,
            **attrs,
        },
        [graph],
    )
    return list(op.results[1:])


def _elements(
    b: Builder,
    start: Value,
    stop: Value,
    consts: Sequence[Value],
    state: Sequence[Value],
    step: Step,
) -> list[Value]:
    """As `_loop`, for k from `start` to before `stop`, one after the other."""
    graphs, parts = [], []
    for name in ("goes on", "run"):
        graph = Graph(name)
        end, *fixed = [graph.add_param(v.type) for v in (stop, *consts)]
        k, *carried = [graph.add_param(v.type) for v in (start, *state)]
        graphs.append(graph)
        parts.append((Builder(graph, b.loc), end, fixed, k, carried))
    first, end, _, k, _ = parts[0]
    graphs[0].outputs = [first.op("lt", k, end)]
    inner, _, fixed, k, carried = parts[1]
    new = step(inner, fixed, k, carried)
    graphs[1].outputs = [inner.add(k, inner.const(1, I64)), *new]
    attrs = {"consts": 1 + len(consts)}
    op = b.append(OPS["while"], [stop, *consts, start, *state], attrs, graphs)
    return list(op.results[1:])


def _at(b: Builder, x: Value, *index: Value) -> Value:
    axes = tuple(range(len(index)))
    wide = [b.convert(i, dtype=I64) for i in index]
    return b.gather(x, *wide, axes=axes, mode="check", names=axes)


def _put(b: Builder, x: Value, value: Value, row: Value, column: Value, combine: str) -> Value:
    return b.scatter(
        x, value, row, column, axes=(0, 1), mode="check", combine=combine, names=(0, 1)
    )


def _blocks(b: Builder, width: int, state: Value, consts: Sequence[Value], block: Any) -> Value:
    """`state = block(b, consts, first column, how many, state)` for all columns, some at a time."""
    full, rest = divmod(width, ABREAST)

    def step(b: Builder, fixed: Sequence[Value], i: Value, carried: Sequence[Value]) -> list[Value]:
        return [block(b, fixed, b.mul(i, b.const(ABREAST, I64)), ABREAST, carried[0])]

    if full == 1:
        state = block(b, consts, b.const(0, I64), ABREAST, state)
    elif full:
        (state,) = _loop(b, full, consts, [state], step, apart=True)
    return block(b, consts, b.const(full * ABREAST, I64), rest, state) if rest else state


def _columns(b: Builder, first: Value, count: int) -> list[Value]:
    return [b.add(first, b.const(q, I64)) if q else first for q in range(count)]


def _compose(
    b: Builder, starts: Value, ends: Value, columns: Value, data: Value, x: Value
) -> list[Value]:
    """For each row, for some columns of x at a time, for each element."""
    n, width = starts.shape[0], x.shape[1]
    zeros = b.full((n, width), 0, data.dtype)

    def row(b: Builder, fixed: Sequence[Value], r: Value, carried: Sequence[Value]) -> list[Value]:
        low, high = (b.convert(_at(b, v, r), dtype=I64) for v in fixed[:2])

        def block(
            b: Builder, given: Sequence[Value], first: Value, count: int, out: Value
        ) -> Value:
            low, high, r, *rest = given

            def add(
                b: Builder, given: Sequence[Value], k: Value, sums: Sequence[Value]
            ) -> list[Value]:
                columns, data, x, first = given
                element, at = _at(b, data, k), _at(b, columns, k)
                return [
                    b.add(total, b.mul(element, _at(b, x, at, c)))
                    for total, c in zip(sums, _columns(b, first, count), strict=True)
                ]

            zero = b.const(0, out.dtype)
            sums = _elements(b, low, high, [*rest, first], [zero] * count, add)
            for total, c in zip(sums, _columns(b, first, count), strict=True):
                out = _put(b, out, total, r, c, "set")
            return out

        return [_blocks(b, width, carried[0], [low, high, r, *fixed[2:]], block)]

    if not n or not width:
        return [zeros]
    return _loop(b, n, [starts, ends, columns, data, x], [zeros], row, apart=True)


def _compose_t(
    b: Builder, starts: Value, ends: Value, columns: Value, data: Value, y: Value, *, size: int
) -> list[Value]:
    """For some columns of y at a time, for each row, for each element."""
    n, width = y.shape
    zeros = b.full((size, width), 0, data.dtype)

    def block(b: Builder, given: Sequence[Value], first: Value, count: int, out: Value) -> Value:
        def row(
            b: Builder, given: Sequence[Value], r: Value, carried: Sequence[Value]
        ) -> list[Value]:
            starts, ends, columns, data, y, first = given
            low, high = (b.convert(_at(b, v, r), dtype=I64) for v in (starts, ends))
            values = [_at(b, y, r, c) for c in _columns(b, first, count)]

            def add(
                b: Builder, given: Sequence[Value], k: Value, state: Sequence[Value]
            ) -> list[Value]:
                columns, data, first, *values = given
                (out,) = state
                element, at = _at(b, data, k), b.convert(_at(b, columns, k), dtype=I64)
                for value, c in zip(values, _columns(b, first, count), strict=True):
                    out = _put(b, out, b.mul(element, value), at, c, "add")
                return [out]

            return _elements(b, low, high, [columns, data, first, *values], carried, add)

        (out,) = _loop(b, n, [*given, first], [out], row, apart=False)
        return out

    if not n or not size:
        return [zeros]
    return [_blocks(b, width, zeros, [starts, ends, columns, data, y], block)]


def _compose_rows(b: Builder, starts: Value, ends: Value, *, size: int) -> list[Value]:
    def row(b: Builder, fixed: Sequence[Value], r: Value, carried: Sequence[Value]) -> list[Value]:
        low, high = (b.convert(_at(b, v, r), dtype=I64) for v in fixed)

        def put(
            b: Builder, given: Sequence[Value], k: Value, state: Sequence[Value]
        ) -> list[Value]:
            options: dict[str, Any] = {"axes": (0,), "mode": "check", "names": (0,)}
            return [b.scatter(state[0], given[0], k, combine="set", **options)]

        return _elements(b, low, high, [r], carried, put)

    none = b.full((size,), -1, I64)
    n = starts.shape[0]
    return _loop(b, n, [starts, ends], [none], row, apart=True) if n and size else [none]


def counted_rows(b: Builder, starts: Value, ends: Value, *, size: int) -> Value:
    """`sparse_rows` without loops: by how many starts and ends each element has behind it, or is at."""

    def passed(bounds: Value) -> Value:
        zeros = b.full((size + 1,), 0, I64)
        ones = b.full(bounds.shape, 1, I64)
        marks = b.scatter(
            zeros, ones, b.convert(bounds, dtype=I64), axes=(0,), mode="clip", combine="add"
        )
        within = b.slice(marks, start=(0,), stop=(size,), step=(1,))
        return b.op("cumsum", within, axis=0, reverse=False)

    begun = passed(starts)
    row = b.sub(begun, b.full_like(begun, 1))
    return b.select(b.op("gt", begun, passed(ends)), row, b.full_like(row, -1))


def scattered(
    b: Builder, starts: Value, ends: Value, columns: Value, data: Value, x: Value, *, size: int = -1
) -> Value:
    """Either product without loops, for GPUs."""
    n, width = columns.shape[0], x.shape[1]
    number = counted_rows(b, starts, ends, size=n)
    inside = b.op("ge", number, b.full_like(number, 0))
    rows = b.op("maximum", number, b.full_like(number, 0))
    across = b.convert(columns, dtype=I64)
    read, written = (across, rows) if size < 0 else (rows, across)
    used = b.select(inside, data, b.full_like(data, 0))
    spread = b.broadcast(used, shape=(n, width), dims=(0,))
    terms = b.mul(spread, b.gather(x, read, axes=(0,), mode="clip"))
    zeros = b.full((starts.shape[0] if size < 0 else size, width), 0, data.dtype)
    return b.scatter(zeros, terms, written, axes=(0,), mode="clip", combine="add")


register(
    OpDef(
        "sparse_rows",
        "composition",
        _infer_rows,
        _rows,
        lambda b, op, tangents: [None],  # of integers
        lambda b, op, cotangents, wanted: [None, None],
        batch=batch_each,
        dtypes="iu",
        attrs=("size",),
        doc="of each of `size` elements the row that it is in, -1 where it is in none",
        extra={"compose": _compose_rows, "examples": ()},
    )
)
_ATTRS: dict[str, tuple[Any, Any, Any, tuple[str, ...]]] = {
    "sparse_dot": (_infer, _dot, _compose, ()),
    "sparse_dot_t": (_infer_t, _dot_t, _compose_t, ("size",)),
}
for _name, (_rule, _reference, _loops, _attrs) in _ATTRS.items():
    register(
        OpDef(
            _name,
            "composition",
            _rule,
            _reference,
            _jvp,
            _vjp,
            batch=_batch,
            dtypes=NUMBER,
            attrs=_attrs,
            doc="rows of a sparse matrix times a matrix",
            extra={"compose": _loops, "examples": ()},
        )
    )
