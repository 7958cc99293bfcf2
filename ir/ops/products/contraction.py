"""dot: the one contraction. matmul, tensordot, einsum and inner products are all this op.

    dot(a, b; contract=((a axes), (b axes)), batch=((a axes), (b axes)))

sums products over the paired `contract` axes, separately for each index of the paired `batch` axes.
Result dims: batch, a's free dims, b's free dims, each in order. Integers wrap.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ...batching.transform import BatchBuilder, Batched, Marks, shift
from ...build import Builder, Grads, Wanted
from ...graph import Op, Value
from ...opdef import GraphError
from ...types import TensorType
from ..families import NUMBER, Array, check_kind, examples, opaque

Ints = tuple[int, ...]
Pairs = tuple[Ints, Ints]


def free_axes(rank: int, contract: Sequence[int], batch: Sequence[int]) -> Ints:
    """The axes of one operand that are neither contracted nor batch axes."""
    return tuple(d for d in range(rank) if d not in contract and d not in batch)


def _infer_dot(a: TensorType, b: TensorType, *, contract: Pairs, batch: Pairs) -> TensorType:
    check_kind(a, NUMBER)
    check_kind(b, NUMBER)
    if a.dtype != b.dtype:
        raise GraphError(f"operand dtypes {a} and {b} differ; convert one of them")
    for side, x in enumerate((a, b)):
        used = contract[side] + batch[side]
        if len(set(used)) != len(used) or any(not 0 <= d < x.rank for d in used):
            raise GraphError(f"contract={contract} batch={batch} misnames the axes of {x}")
    for left, right in (contract, batch):
        if [a.shape[d] for d in left] != [b.shape[d] for d in right]:
            raise GraphError(f"{a} and {b} do not match along contract={contract} batch={batch}")
    free_a = free_axes(a.rank, contract[0], batch[0])
    free_b = free_axes(b.rank, contract[1], batch[1])
    return a.with_shape([a.shape[d] for d in batch[0] + free_a] + [b.shape[d] for d in free_b])


def _dot(a: Array, b: Array, *, contract: Pairs, batch: Pairs) -> Array:
    free_a = free_axes(a.ndim, contract[0], batch[0])
    free_b = free_axes(b.ndim, contract[1], batch[1])

    def size(x: Array, axes: Ints) -> int:
        return math.prod(x.shape[d] for d in axes)

    outer = [a.shape[d] for d in batch[0]]
    k = size(a, contract[0])
    left = a.transpose(batch[0] + free_a + contract[0]).reshape([*outer, size(a, free_a), k])
    right = b.transpose(batch[1] + contract[1] + free_b).reshape([*outer, k, size(b, free_b)])
    shape = outer + [a.shape[d] for d in free_a] + [b.shape[d] for d in free_b]
    return np.matmul(left, right).reshape(shape)


def _jvp_dot(b: Builder, op: Op, tangents: Sequence[Value | None]) -> list[Value | None]:
    left, right = op.operands
    total: Value | None = None
    for t, make in zip(
        tangents,
        (lambda t: (t, right), lambda t: (left, t)),
        strict=True,
    ):
        if t is not None:
            part = b.op("dot", *make(t), **op.attrs)
            total = part if total is None else b.op("add", total, part)
    return [total]


def _cotangent(b: Builder, op: Op, ct: Value, side: int) -> Value:
    """ct contracted with the other operand over that operand's free dims, dims back in place."""
    this, other = op.operands[side], op.operands[1 - side]
    contract, batch = op.attrs["contract"], op.attrs["batch"]
    free_this = free_axes(len(this.shape), contract[side], batch[side])
    free_other = free_axes(len(other.shape), contract[1 - side], batch[1 - side])
    n = len(batch[0])
    # ct has dims batch, a's free, b's free: those of `other` start after the others of `this`.
    begin = n + len(free_this) if side == 0 else n
    in_ct = tuple(range(begin, begin + len(free_other)))
    lead = tuple(range(n))
    # The result's dims: batch, then this one's free dims and other's contracted dims, which come in
    # the order of other's axes. The operands are ordered so that a matrix product needs no transpose.
    order = sorted(range(len(contract[1 - side])), key=lambda i: contract[1 - side][i])
    contracted = tuple(contract[side][i] for i in order)
    if side == 0:
        part = b.op("dot", ct, other, contract=(in_ct, free_other), batch=(lead, batch[1]))
        axes = batch[side] + free_this + contracted
    else:
        part = b.op("dot", other, ct, contract=(free_other, in_ct), batch=(batch[0], lead))
        axes = batch[side] + contracted + free_this
    return b.op("transpose", part, perm=tuple(np.argsort(axes).tolist()))


def _vjp_dot(b: Builder, op: Op, cotangents: Sequence[Value], wanted: Wanted) -> Grads:
    (ct,) = cotangents
    return [_cotangent(b, op, ct, side) if want else None for side, want in enumerate(wanted)]


def _batch_dot(b: BatchBuilder, op: Op, operands: Sequence[Value], batched: Marks) -> Batched:
    """Both batched: one more batch axis. One: a free axis of that operand, moved to the front."""
    left, right = operands
    contract, batch = op.attrs["contract"], op.attrs["batch"]
    first = len(batch[0])
    axes = [
        (shift(contract[side]), shift(batch[side]))
        if batched[side]
        else (contract[side], batch[side])
        for side in (0, 1)
    ]
    free = [
        free_axes(len(v.shape), contract[side], batch[side]) for side, v in enumerate(op.operands)
    ]
    if all(batched):
        axes = [(contracted, (0, *rest)) for contracted, rest in axes]
        axis = 0
    elif batched[1] and free[0] and not free[1]:  # in the other order the axis is where it belongs
        left, right = right, left
        axes.reverse()
        axis = first
    else:
        axis = first if batched[0] else first + len(free[0])
    (left_contract, left_batch), (right_contract, right_batch) = axes
    z = b.dot(
        left, right, contract=(left_contract, right_contract), batch=(left_batch, right_batch)
    )
    return [b.moved(z, axis, 0)], [True]


opaque(
    "dot",
    _infer_dot,
    _dot,
    family="bilinear",
    jvp=_jvp_dot,
    vjp=_vjp_dot,
    batch=_batch_dot,
    kinds=NUMBER,
    wraps=True,
    unbounded=True,
    attrs=("contract", "batch"),
    examples=examples((2, 3), (3, 4), contract=((1,), (0,)), batch=((), ()))
    + examples((2, 3, 4), (3, 2, 5, 4), contract=((2,), (3,)), batch=((0,), (1,)))
    + examples((2, 3, 4), (4, 3), contract=((1, 2), (1, 0)), batch=((), ()))
    + examples((3,), (2,), contract=((), ()), batch=((), ()))
    + examples((2, 0), (0, 3), contract=((1,), (0,)), batch=((), ())),
)
