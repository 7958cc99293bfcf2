"""Lowering of attention and its derivative: operands brought into the form that the kernels read."""

from __future__ import annotations

from ....ir.graph import Op, Value
from ...limits import limits
from ...loop_ir.index import Index, Var, linear, of_var
from ...loop_ir.kernel import Array, Stage
from ...lowering.lower import Lowering, indices, lowering, variables
from ...lowering.pointwise import index_value
from ...scalar import compare, const, select
from ...schedule.tiled import Attention, AttentionGrad, View
from ..convolution.lower_convolution import adjacent


@lowering("attention")
def _attention(low: Lowering, op: Op) -> None:
    q, k, v, *bias = op.operands
    block = _block(low, q)
    packed = _packed(low, q, block[0], op.attrs["scale"])
    left, right = _matrix(low, k), _matrix(low, v)
    more = _bias(low, bias)
    y = _result(low, op.results[0])
    lse = low.arrays[op.results[1]] = low.array_for(op.results[1])
    if 0 in q.shape[:-1]:
        return
    low.items.append(
        Attention(
            packed,
            left,
            right,
            more,
            y,
            _rows(lse),
            q.shape[:-2],
            q.shape[-2],
            k.shape[-2],
            q.shape[-1],
            v.shape[-1],
            op.attrs["causal"],
            block,
            loc=op.loc,
        )
    )


@lowering("attention_grad")
def _attention_grad(low: Lowering, op: Op) -> None:
    q, k, v, y, lse, ct, *bias = op.operands
    block = _block(low, q)
    scale = op.attrs["scale"]
    qt, ctt = _packed(low, q, block[0], scale), _packed(low, ct, block[0], 1.0)
    share = row_products(low, y, ct, op)
    views = [_matrix(low, x) for x in (q, k, v, ct)]
    row_sums = _adjacent_rows(low, lse)
    more = _bias(low, bias)
    dq, dk, dv = (_result(low, r) for r in op.results)
    if 0 in q.shape[:-1]:
        for result, view in zip(op.results, (dq, dk, dv), strict=True):
            dims = variables(view.array.shape)
            low.emit(low.point(), Stage(view.array, dims, const(0, result.dtype), loc=op.loc))
        return
    low.items.append(
        AttentionGrad(
            views[0],
            qt,
            views[1],
            views[2],
            more,
            row_sums,
            _rows(share),
            views[3],
            ctt,
            dq,
            dk,
            dv,
            q.shape[:-2],
            q.shape[-2],
            k.shape[-2],
            q.shape[-1],
            v.shape[-1],
            scale,
            op.attrs["causal"],
            block,
            loc=op.loc,
        )
    )


def _block(low: Lowering, q: Value) -> tuple[int, int]:
    lanes = low.context.target.lanes(q.dtype.itemsize)
    vectors = min(-(-q.shape[-2] // lanes), limits().attention_vectors)
    return max(vectors, 1) * lanes, limits().attention_keys


def _packed(low: Lowering, x: Value, block: int, scale: float) -> View:
    """Scaled blocks of rows, transposed: [*batch, block, column, row], filled up with zeros."""
    *batch, rows, columns = x.shape
    count = -(-rows // block)
    array = Array((*batch, count, columns, block), x.dtype, name="blocks")
    dims = variables(array.shape)
    *at, b, column, i = indices(dims)
    row = b * block + i
    p = low.point()
    position = (*at, row, column)
    if rows % block:
        inside = compare("lt", index_value(row), rows)
        p.masks.append(inside)
        value = select(inside, p.at(x, position, inside), const(0, x.dtype))
    else:
        value = p.at(x, position)
    if scale != 1.0:
        value = value * scale
    loc = x.op.loc if x.op else None
    low.emit(p, Stage(array, dims, value, ops=["pack"], loc=loc))
    return View(array, array.strides[:-3], columns * block)


def _matrix(low: Lowering, x: Value) -> View:
    array, strides, offset = adjacent(low, x, -1, "rows")
    return View(array, strides[:-2], strides[-2], offset)


def _bias(low: Lowering, bias: list[Value]) -> View | None:
    """A bias with neighbours along the queries side by side; a dim of size 1 serves all."""
    if not bias:
        return None
    array, strides, offset = adjacent(low, bias[0], -2, "bias")
    batch = zip(bias[0].shape[:-2], strides[:-2], strict=True)
    return View(array, tuple(0 if n == 1 else s for n, s in batch), strides[-1], offset)


def _rows(array: Array) -> View:
    """One element per row."""
    return View(array, array.strides[:-1], 1)


def _adjacent_rows(low: Lowering, x: Value) -> View:
    """One element per row, side by side, of a value that may lie otherwise."""
    array, strides, offset = adjacent(low, x, -1, "row sums")
    return View(array, strides[:-1], 1, offset)


def _result(low: Lowering, value: Value) -> View:
    array, dims, index = low.destination(value, adjacent=True)
    flat = linear(index, array.strides)
    strides = tuple(flat.coeff(v) for v in dims)
    return View(array, strides[:-2], strides[-2])


def row_products(low: Lowering, y: Value, ct: Value, op: Op) -> Array:
    """The sum of y times its cotangent over each row."""
    *rows, last = variables(y.shape)
    array = Array(y.shape[:-1], y.dtype, name="share")
    p = low.point()
    position: tuple[Index, ...] = tuple(map(of_var, (*rows, last)))
    value = p.at(y, position) * p.at(ct, position)
    dims: tuple[Var, ...] = (*rows, last)
    low.emit(p, Stage(array, dims, value, "reduce", "sum", len(rows), ops=["dot"], loc=op.loc))
    return array
