"""Movement: ops that only say where each element goes. All are linear.

Kernels treat them as index arithmetic. `start`, `step`, `low`, ... have one entry per axis.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ...batching.transform import SIZE, BatchBuilder, Batched, Marks, first, leading, shift
from ...build import Builder
from ...cost import Cost
from ...graph import Op, Value
from ...opdef import GraphError
from ...types import TensorType
from ..families import ANY, Array, check_axes, check_axis, check_kind, examples, linear

Ints = tuple[int, ...]


def _check_lengths(rank: int, **per_axis: Sequence[int]) -> None:
    for name, values in per_axis.items():
        if not isinstance(values, tuple) or len(values) != rank:
            raise GraphError(f"{name}={values!r} must be a tuple with one entry per axis ({rank})")


# reshape


def _infer_reshape(x: TensorType, *, shape: Ints) -> TensorType:
    check_kind(x, ANY)
    if not isinstance(shape, tuple) or any(n < 0 for n in shape) or math.prod(shape) != x.size:
        raise GraphError(f"cannot reshape {x} to {shape}")
    return x.with_shape(shape)


linear(
    "reshape",
    _infer_reshape,
    lambda x, *, shape: x.reshape(shape),
    lambda b, op, ct, i: b.reshape(ct, shape=op.operands[0].shape),
    cost=Cost.FREE,
    pointwise=True,
    view=True,
    batch=leading(shape=SIZE),
    attrs=("shape",),
    examples=examples((2, 6), shape=(3, 1, 4)) + examples((0, 2), shape=(5, 0)),
)

# transpose


def _infer_transpose(x: TensorType, *, perm: Ints) -> TensorType:
    check_kind(x, ANY)
    if not isinstance(perm, tuple) or sorted(perm) != list(range(x.rank)):
        raise GraphError(f"perm={perm!r} does not permute the axes of {x}")
    return x.with_shape(x.shape[p] for p in perm)


linear(
    "transpose",
    _infer_transpose,
    lambda x, *, perm: x.transpose(perm),
    lambda b, op, ct, i: b.transpose(ct, perm=tuple(np.argsort(op.attrs["perm"]).tolist())),
    cost=Cost.FREE,
    pointwise=True,
    view=True,
    batch=leading(perm=lambda perm: (0, *shift(perm))),
    attrs=("perm",),
    examples=examples((2, 3, 4), perm=(2, 0, 1)) + examples((), perm=()),
)

# broadcast


def _infer_broadcast(x: TensorType, *, shape: Ints, dims: Ints) -> TensorType:
    check_kind(x, ANY)
    if not isinstance(shape, tuple) or len(dims) != x.rank:
        raise GraphError(f"dims={dims} does not place each axis of {x} in {shape}")
    check_axes(dims, len(shape))
    if any(shape[d] != n for d, n in zip(dims, x.shape, strict=True)):
        raise GraphError(f"cannot broadcast {x} to {shape} with dims={dims}: sizes differ")
    return x.with_shape(shape)


def _broadcast(x: Array, *, shape: Ints, dims: Ints) -> Array:
    sizes = dict(zip(dims, x.shape, strict=True))
    return np.broadcast_to(x.reshape([sizes.get(d, 1) for d in range(len(shape))]), shape)


def _transpose_broadcast(b: Builder, op: Op, ct: Value, i: int) -> Value:
    new = tuple(d for d in range(len(op.attrs["shape"])) if d not in op.attrs["dims"])
    return b.sum(ct, axes=new)


linear(
    "broadcast",
    _infer_broadcast,
    _broadcast,
    _transpose_broadcast,
    cost=Cost.FREE,
    pointwise=True,
    view=True,
    repeats=True,
    batch=leading(shape=SIZE, dims=lambda dims: (0, *shift(dims))),
    attrs=("shape", "dims"),
    examples=examples((3,), shape=(2, 3, 4), dims=(1,))
    + examples((), shape=(2, 2), dims=())
    + examples((2,), shape=(2, 0), dims=(0,)),
    doc="axis i of the operand becomes axis dims[i] of the result; the others repeat",
)

# slice


def _infer_slice(x: TensorType, *, start: Ints, stop: Ints, step: Ints) -> TensorType:
    check_kind(x, ANY)
    _check_lengths(x.rank, start=start, stop=stop, step=step)
    for n, a, z, s in zip(x.shape, start, stop, step, strict=True):
        if not 0 <= a <= z <= n or s < 1:
            raise GraphError(f"start={start} stop={stop} step={step} is not a region of {x}")
    return x.with_shape(-((a - z) // s) for a, z, s in zip(start, stop, step, strict=True))


def _region(start: Ints, stop: Ints, step: Ints) -> tuple[slice, ...]:
    return tuple(slice(a, z, s) for a, z, s in zip(start, stop, step, strict=True))


def _transpose_slice(b: Builder, op: Op, ct: Value, i: int) -> Value:
    """Zeros with `ct` in the sliced part: a pad."""
    source = op.operands[0]
    if 0 in ct.shape:
        return b.zeros(source.tensor)
    start, step = op.attrs["start"], op.attrs["step"]
    high = tuple(
        n - (a + (k - 1) * s + 1)
        for n, k, a, s in zip(source.shape, ct.shape, start, step, strict=True)
    )
    zero = b.const(0, ct.dtype)
    return b.pad(ct, zero, low=start, high=high, interior=tuple(s - 1 for s in step))


linear(
    "slice",
    _infer_slice,
    lambda x, *, start, stop, step: x[_region(start, stop, step)],
    _transpose_slice,
    cost=Cost.FREE,
    pointwise=True,
    view=True,
    batch=leading(start=first(0), stop=SIZE, step=first(1)),
    attrs=("start", "stop", "step"),
    examples=examples((5, 7), start=(1, 0), stop=(5, 6), step=(2, 3))
    + examples((3,), start=(2,), stop=(2,), step=(1,)),
)

# flip


def _infer_flip(x: TensorType, *, axes: Ints) -> TensorType:
    check_kind(x, ANY)
    check_axes(axes, x.rank)
    return x


linear(
    "flip",
    _infer_flip,
    lambda x, *, axes: np.flip(x, axes),
    lambda b, op, ct, i: b.flip(ct, axes=op.attrs["axes"]),
    cost=Cost.FREE,
    pointwise=True,
    view=True,
    batch=leading(axes=shift),
    attrs=("axes",),
    examples=examples((2, 3, 2), axes=(0, 1)) + examples((3,), axes=()),
)

# pad


def _infer_pad(
    x: TensorType, value: TensorType, *, low: Ints, high: Ints, interior: Ints
) -> TensorType:
    check_kind(x, ANY)
    check_kind(value, ANY)
    if value.shape != () or value.dtype != x.dtype:
        raise GraphError(f"the padding value of {x} has type {value}; it must be a 0-d {x.dtype}")
    _check_lengths(x.rank, low=low, high=high, interior=interior)
    if any(n < 0 for n in low + high + interior):
        raise GraphError(f"negative padding: low={low} high={high} interior={interior}")
    return x.with_shape(
        lo + n + max(n - 1, 0) * gap + hi
        for n, lo, hi, gap in zip(x.shape, low, high, interior, strict=True)
    )


def _inner(shape: Ints, low: Ints, interior: Ints) -> dict[str, Ints]:
    """Where the operand lies in the padded result, as attributes of a slice."""
    stop = tuple(
        lo + n + max(n - 1, 0) * gap for n, lo, gap in zip(shape, low, interior, strict=True)
    )
    return {"start": low, "stop": stop, "step": tuple(gap + 1 for gap in interior)}


def _pad(x: Array, value: Array, *, low: Ints, high: Ints, interior: Ints) -> Array:
    inner = _inner(x.shape, low, interior)
    out = np.full([n + hi for n, hi in zip(inner["stop"], high, strict=True)], value, x.dtype)
    out[_region(**inner)] = x
    return out


def _transpose_pad(b: Builder, op: Op, ct: Value, i: int) -> Value:
    x = op.operands[0]
    inner = _inner(x.shape, op.attrs["low"], op.attrs["interior"])
    if i == 0:
        return b.slice(ct, **inner)
    # Zeros over the inner part, and not sum(ct) - sum(inner): nothing cancels.
    border = b.update_slice(ct, b.zeros(x.tensor), start=inner["start"], step=inner["step"])
    return b.sum(border, axes=tuple(range(len(ct.shape))))


def _batch_pad(b: BatchBuilder, op: Op, operands: Sequence[Value], batched: Marks) -> Batched:
    """A padding value for each example: x is written into an array of them."""
    x, value = operands
    low, high, interior = ((0, *op.attrs[name]) for name in ("low", "high", "interior"))
    if not batched[1]:
        return [b.pad(x, value, low=low, high=high, interior=interior)], [True]
    x = b.spread(x, batched[0])
    frame = b.broadcast(value, shape=(b.size, *op.result.shape), dims=(0,))
    inner = _inner(x.shape, low, interior)
    return [b.update_slice(frame, x, start=inner["start"], step=inner["step"])], [True]


linear(
    "pad",
    _infer_pad,
    _pad,
    _transpose_pad,
    cost=Cost.CHEAP,
    pointwise=True,
    batch=_batch_pad,
    attrs=("low", "high", "interior"),
    examples=examples((2, 3), (), low=(1, 0), high=(0, 2), interior=(1, 2))
    + examples((0,), (), low=(1,), high=(1,), interior=(3,)),
    doc="`interior` puts that many padding values between neighbours",
)

# concat


def _infer_concat(*xs: TensorType, axis: int) -> TensorType:
    if not xs:
        raise GraphError("takes at least one operand")
    for x in xs:
        check_kind(x, ANY)
    first = xs[0]
    check_axis(axis, first.rank)
    for x in xs[1:]:
        if (
            x.dtype != first.dtype
            or x.rank != first.rank
            or any(a != b for d, (a, b) in enumerate(zip(x.shape, first.shape)) if d != axis)  # noqa: B905
        ):
            raise GraphError(f"cannot join {first} and {x} along axis {axis}")
    return first.with_shape(
        sum(x.shape[axis] for x in xs) if d == axis else n for d, n in enumerate(first.shape)
    )


def _transpose_concat(b: Builder, op: Op, ct: Value, i: int) -> Value:
    axis = op.attrs["axis"]
    before = sum(v.shape[axis] for v in op.operands[:i])
    shape = op.operands[i].shape
    start = tuple(before if d == axis else 0 for d in range(len(shape)))
    stop = tuple(a + n for a, n in zip(start, shape, strict=True))
    return b.slice(ct, start=start, stop=stop, step=(1,) * len(shape))


linear(
    "concat",
    _infer_concat,
    lambda *xs, axis: np.concatenate(xs, axis),
    _transpose_concat,
    cost=Cost.CHEAP,
    batch=leading(axis=shift),
    attrs=("axis",),
    examples=examples((2, 1), (2, 3), (2, 0), axis=1) + examples((2,), axis=0),
)

# update_slice


def _infer_update_slice(x: TensorType, u: TensorType, *, start: Ints, step: Ints) -> TensorType:
    check_kind(x, ANY)
    check_kind(u, ANY)
    _check_lengths(x.rank, start=start, step=step)
    if u.dtype != x.dtype or u.rank != x.rank:
        raise GraphError(f"cannot write {u} into {x}: dtypes or ranks differ")
    for n, k, a, s in zip(x.shape, u.shape, start, step, strict=True):
        if a < 0 or s < 1 or a > n or (k > 0 and a + (k - 1) * s >= n):
            raise GraphError(f"{u} at start={start} step={step} does not fit into {x}")
    return x


def _written(u: Ints, start: Ints, step: Ints) -> dict[str, Ints]:
    """The region that an update of shape `u` writes, as attributes of a slice."""
    stop = tuple(a + max((n - 1) * s + 1, 0) for n, a, s in zip(u, start, step, strict=True))
    return {"start": start, "stop": stop, "step": step}


def _update_slice(x: Array, u: Array, *, start: Ints, step: Ints) -> Array:
    out = x.copy()
    out[_region(**_written(u.shape, start, step))] = u
    return out


def _transpose_update_slice(b: Builder, op: Op, ct: Value, i: int) -> Value:
    u = op.operands[1]
    start, step = op.attrs["start"], op.attrs["step"]
    if i == 0:
        return b.update_slice(ct, b.zeros(u.tensor), start=start, step=step)
    if 0 in u.shape:
        return b.zeros(u.tensor)
    return b.slice(ct, **_written(u.shape, start, step))


linear(
    "update_slice",
    _infer_update_slice,
    _update_slice,
    _transpose_update_slice,
    cost=Cost.CHEAP,
    overwritten=lambda b, op: b.slice(op.operands[0], **_written(op.operands[1].shape, **op.attrs)),
    batch=leading(start=first(0), step=first(1)),
    attrs=("start", "step"),
    examples=examples((5, 4), (2, 2), start=(1, 0), step=(2, 3))
    + examples((4,), (0,), start=(4,), step=(2,)),
    doc="a copy of x with u written to x[start : start + step * n : step]",
)
