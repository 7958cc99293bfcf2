"""Windows whose position is known only at run time: dynamic_slice and dynamic_update_slice.

Starts are clamped so that the window fits, as in JAX. Where each example has starts of its own, the
batched ops are a gather and a scatter.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...batching.transform import BatchBuilder, Batched, shift
from ...build import Builder
from ...cost import Cost
from ...graph import Op, Value
from ...opdef import GraphError
from ...types import I64, TensorType
from ..families import ANY, Arg, Array, Example, check_dtype, check_kind, linear

Ints = tuple[int, ...]


def _check_starts(x: TensorType, starts: Sequence[TensorType], sizes: Ints) -> None:
    if len(starts) != x.rank or len(sizes) != x.rank:
        raise GraphError(f"{len(starts)} starts and sizes={sizes} for {x}")
    for start in starts:
        check_dtype(start, "i64", "a start")
        if start.shape != ():
            raise GraphError(f"a start has type {start}; it must be 0-d")
    if any(not 0 <= k <= n for k, n in zip(sizes, x.shape, strict=True)):
        raise GraphError(f"a window of {sizes} does not fit into {x}")


def _window(x: Array, starts: Sequence[Array], sizes: Ints) -> tuple[slice, ...]:
    clamped = [min(max(int(a), 0), n - k) for a, n, k in zip(starts, x.shape, sizes, strict=True)]
    return tuple(slice(a, a + k) for a, k in zip(clamped, sizes, strict=True))


def _batched_window(
    b: BatchBuilder, shape: Ints, sizes: Ints, starts: Sequence[Value], batched: Sequence[bool]
) -> tuple[list[Value], Ints]:
    """Index arrays, one row per example, over the axes that a window does not cover whole."""
    axes = tuple(d for d, (n, k) in enumerate(zip(shape, sizes, strict=True)) if k != n)
    inner = (b.size, *(sizes[d] for d in axes))
    indices = []
    for i, d in enumerate(axes):
        start = b.spread(starts[d], batched[d])
        last = b.full_like(start, shape[d] - sizes[d])
        start = b.minimum(b.maximum(start, b.full_like(start, 0)), last)
        offset = b.iota(shape=inner, dtype=I64, axis=i + 1)
        indices.append(b.add(b.broadcast(start, shape=inner, dims=(0,)), offset))
    return indices, axes


def _window_order(rank: int, axes: Ints) -> Ints:
    """How the dimensions of an indexed window (example, `axes`, the others) go back in order."""
    order = (*axes, *(d for d in range(rank) if d not in axes))
    return (0, *(order.index(d) + 1 for d in range(rank)))


def _batch_dynamic_slice(
    b: BatchBuilder, op: Op, operands: Sequence[Value], batched: Sequence[bool]
) -> Batched:
    x, *starts = operands
    sizes, shape = op.attrs["sizes"], op.operands[0].shape
    if not any(batched[1:]):
        return [b.dynamic_slice(x, b.const(0, I64), *starts, sizes=(b.size, *sizes))], [True]
    indices, axes = _batched_window(b, shape, sizes, starts, batched[1:])
    if not axes:
        return [x], [batched[0]]
    if batched[0]:
        all_axes = (0, *shift(axes))
        window = b.gather(x, b.examples(indices[0].shape), *indices, axes=all_axes, mode="clip")
    else:
        window = b.gather(x, *indices, axes=axes, mode="clip")
    return [b.transpose(window, perm=_window_order(len(shape), axes))], [True]


def _infer_dynamic_slice(x: TensorType, *starts: TensorType, sizes: Ints) -> TensorType:
    check_kind(x, ANY)
    _check_starts(x, starts, sizes)
    return x.with_shape(sizes)


linear(
    "dynamic_slice",
    _infer_dynamic_slice,
    lambda x, *starts, sizes: x[_window(x, starts, sizes)],
    lambda b, op, ct, i: b.op(
        "dynamic_update_slice", b.zeros(op.operands[0].tensor), ct, *op.operands[1:]
    ),
    cost=Cost.CHEAP,
    pointwise=True,
    batch=_batch_dynamic_slice,
    linear_in=(0,),
    attrs=("sizes",),
    examples=(
        Example((Arg((5, 4)), Arg((), "i64", 9), Arg((), "i64", 2)), {"sizes": (2, 3)}),
        Example((Arg(()),), {"sizes": ()}),
    ),
    doc="the window at `starts`, which are clamped so that it fits",
)


def _infer_dynamic_update_slice(x: TensorType, u: TensorType, *starts: TensorType) -> TensorType:
    check_kind(x, ANY)
    check_kind(u, ANY)
    if u.dtype != x.dtype:
        raise GraphError(f"cannot write {u} into {x}: dtypes differ")
    _check_starts(x, starts, u.shape)
    return x


def _dynamic_update_slice(x: Array, u: Array, *starts: Array) -> Array:
    out = x.copy()
    out[_window(x, starts, u.shape)] = u
    return out


def _transpose_dynamic_update_slice(b: Builder, op: Op, ct: Value, i: int) -> Value:
    _, u, *starts = op.operands
    if i == 0:
        return b.op("dynamic_update_slice", ct, b.zeros(u.tensor), *starts)
    return b.op("dynamic_slice", ct, *starts, sizes=u.shape)


def _batch_dynamic_update_slice(
    b: BatchBuilder, op: Op, operands: Sequence[Value], batched: Sequence[bool]
) -> Batched:
    (x, u), starts = b.spread_all(operands[:2], batched[:2]), operands[2:]
    if not any(batched[2:]):
        return [b.dynamic_update_slice(x, u, b.const(0, I64), *starts)], [True]
    indices, axes = _batched_window(b, x.shape[1:], u.shape[1:], starts, batched[2:])
    if not axes:
        return [u], [True]
    order = _window_order(len(starts), axes)
    u = b.transpose(u, perm=tuple(order.index(d) for d in range(len(order))))
    all_indices = [b.examples(indices[0].shape), *indices]
    attrs = {"axes": (0, *shift(axes)), "mode": "clip", "combine": "set"}
    return [b.scatter(x, u, *all_indices, **attrs)], [True]


linear(
    "dynamic_update_slice",
    _infer_dynamic_update_slice,
    _dynamic_update_slice,
    _transpose_dynamic_update_slice,
    cost=Cost.CHEAP,
    overwritten=lambda b, op: b.op(
        "dynamic_slice", op.operands[0], *op.operands[2:], sizes=op.operands[1].shape
    ),
    batch=_batch_dynamic_update_slice,
    linear_in=(0, 1),
    examples=(Example((Arg((5, 4)), Arg((2, 3)), Arg((), "i64", 9), Arg((), "i64", 2))),),
    doc="a copy of x with u written at `starts`, which are clamped so that it fits",
)
