"""Strided views, NumPy's `as_strided` over indices: where an element comes from is an affine function of
where it goes.

    strided(x; shape, start, steps)     element p of the result is x[start + steps @ p]

`steps` has a row for each axis of x, with an entry for each of the result. So are sliding windows
(`x[i + j]`), diagonals and what is sheared; kernels treat it as index arithmetic. All that is read lies
within x.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...batching.transform import BatchBuilder, Batched, Marks
from ...build import Builder
from ...cost import Cost
from ...graph import Op, Value
from ...opdef import GraphError
from ...types import I64, TensorType
from ..families import ANY, Arg, Array, Example, check_kind, linear

Ints = tuple[int, ...]
MOST = 8  # reads for each element of a cotangent, beyond which what it adds to is scattered


def reach(start: int, steps: Sequence[int], shape: Sequence[int]) -> tuple[int, int]:
    """The least and the greatest of `start + steps @ p` over the positions p in `shape`."""
    ends = [step * (n - 1) for step, n in zip(steps, shape, strict=True)]
    return start + sum(min(0, e) for e in ends), start + sum(max(0, e) for e in ends)


def _infer_strided(
    x: TensorType, *, shape: Ints, start: Ints, steps: tuple[Ints, ...]
) -> TensorType:
    check_kind(x, ANY)
    if len(start) != x.rank or len(steps) != x.rank or any(len(r) != len(shape) for r in steps):
        raise GraphError(f"start={start} and steps={steps} do not lead from {shape} into {x}")
    for n, first, row in zip(x.shape, start, steps, strict=True):
        low, high = reach(first, row, shape)
        if 0 not in shape and (low < 0 or high >= n):
            raise GraphError(f"start={start} and steps={steps} leave {x} for {shape}")
    return x.with_shape(shape)


def _strided(x: Array, *, shape: Ints, start: Ints, steps: tuple[Ints, ...]) -> Array:
    if 0 in shape:
        return np.empty(shape, x.dtype)
    strides = tuple(
        sum(row[d] * stride for row, stride in zip(steps, x.strides, strict=True))
        for d in range(len(shape))
    )
    where: tuple[Any, ...] = (*(slice(a, None) for a in start), ...)
    first = x[where]
    plain = first.view(f"V{x.itemsize}")  # NumPy does not know small floats here
    return np.lib.stride_tricks.as_strided(plain, shape, strides, writeable=False).view(x.dtype)


class _Position(NamedTuple):
    """Where along an axis of the cotangent something is: `start + steps @ p`, in units of `1 / unit`."""

    start: int
    steps: list[int]
    unit: int


def _pivots(steps: tuple[Ints, ...], shape: Ints) -> list[tuple[int, int]] | None:
    """For each axis of the operand an axis of the result that it determines, in an order in which later
    ones do not depend on those before; None if there is none."""
    rows, order = set(range(len(steps))), []
    while rows:
        found = [
            (abs(steps[a][d]) * shape[d], a, d)
            for a in rows
            for d in range(len(shape))
            if steps[a][d] and not any(steps[other][d] for other in rows if other != a)
            and (abs(steps[a][d]) == 1 or sum(bool(row[d]) for row in steps) == 1)
        ]  # fmt: skip
        if not found:
            return None
        _, a, d = max(found)
        rows.remove(a)
        order.append((a, d))
    return order


def _positions(op: Op, pivots: list[tuple[int, int]], others: list[int]) -> dict[int, _Position]:
    """Where in the cotangent an element of the operand finds what was read of it, for each position
    along the axes of the result that the operand does not determine, which follow its own."""
    start, steps = op.attrs["start"], op.attrs["steps"]
    rank = len(steps)
    width = rank + len(others)
    solved = {
        o: _Position(0, [int(i == rank + j) for i in range(width)], 1) for j, o in enumerate(others)
    }
    for a, d in reversed(pivots):
        row, sign = steps[a], 1 if steps[a][d] > 0 else -1
        first, along = -start[a], [int(i == a) for i in range(width)]
        for other, step in enumerate(row):
            if step and other != d:
                first -= step * solved[other].start
                along = [x - step * y for x, y in zip(along, solved[other].steps, strict=True)]
        solved[d] = _Position(sign * first, [sign * x for x in along], abs(row[d]))
    return solved


def _transpose_strided(b: Builder, op: Op, ct: Value, i: int) -> Value:
    """The sum, over the axes that the operand does not determine, of a strided view of the cotangent
    between zeros."""
    source = op.operands[0]
    if 0 in ct.shape:
        return b.zeros(source.tensor)
    pivots = _pivots(op.attrs["steps"], ct.shape)
    known = {d for _, d in pivots or ()}
    others = [d for d in range(len(ct.shape)) if d not in known]
    shape = (*source.shape, *(ct.shape[d] for d in others))
    if pivots is not None and (summed := _of_product(b, op, ct, pivots, others)) is not None:
        return summed
    if pivots is None or math.prod(shape) > MOST * max(math.prod(ct.shape), source.tensor.size):
        return _scattered(b, op, ct)
    positions = _positions(op, pivots, others)
    axes = list(range(len(ct.shape)))
    terms = _between_zeros(b, ct, [positions[d] for d in axes], shape)
    return b.sum(terms, axes=tuple(range(len(source.shape), len(shape))))


def _between_zeros(b: Builder, ct: Value, positions: Sequence[_Position], shape: Ints) -> Value:
    """A strided view of this shape of a cotangent between zeros; `positions` are along its axes."""
    start, low, high, gaps = [], [], [], []
    for at, n in zip(positions, ct.shape, strict=True):
        least, greatest = reach(at.start, at.steps, shape)
        low.append(max(0, -least))
        high.append(max(0, greatest - (n - 1) * at.unit))
        gaps.append(at.unit - 1)
        start.append(at.start + low[-1])
    frame = {"low": tuple(low), "high": tuple(high), "interior": tuple(gaps)}
    steps = tuple(tuple(at.steps) for at in positions)
    zero = b.full((), 0, ct.dtype)
    return b.strided(b.pad(ct, zero, **frame), shape=shape, start=tuple(start), steps=steps)


def _of_product(
    b: Builder, op: Op, ct: Value, pivots: list[tuple[int, int]], others: list[int]
) -> Value | None:
    """Of windows that were multiplied by weights the cotangent is a product, for each element of each
    window: what is summed of it is a product of windows of its first factor.

        sum_j pad(dot(y, w))[i - j, j]  =  dot(pad(y)[i - j], w)

    None where the cotangent is no such product, or the weights are not along just the windows' axes."""
    product = ct.op
    while product is not None and product.name == "transpose":
        if product.attrs["perm"] != tuple(range(len(ct.shape))):
            return None
        product = product.operands[0].op
    if product is None or product.name != "dot" or any(product.attrs["batch"]):
        return None
    contract = product.attrs["contract"]
    free = [
        [d for d in range(len(v.shape)) if d not in contracted]
        for v, contracted in zip(product.operands, contract, strict=True)
    ]
    first = len(free[0])
    placed = [*range(first)], [*range(first, len(ct.shape))]  # among the axes of the cotangent
    side = next((k for k in (0, 1) if placed[k] == others), None)
    if side is None or not others:
        return None
    weights, factor = product.operands[side], product.operands[1 - side]
    source, summed = op.operands[0], contract[1 - side]
    known = _positions(op, pivots, others)
    rank, more = len(source.shape), len(summed)
    along = dict(zip(free[1 - side], placed[1 - side], strict=True))
    width = rank + len(others)
    positions = [
        _Position(
            known[along[k]].start, [*known[along[k]].steps, *[0] * more], known[along[k]].unit
        )
        if k in along
        else _Position(0, [int(i == width + summed.index(k)) for i in range(width + more)], 1)
        for k in range(len(factor.shape))
    ]
    shape = (*source.shape, *(ct.shape[d] for d in others), *(factor.shape[k] for k in summed))
    terms = _between_zeros(b, factor, positions, shape)
    axes = tuple(range(rank, width + more)), (*free[side], *contract[side])
    return b.op("dot", terms, weights, contract=axes, batch=((), ()))


def _scattered(b: Builder, op: Op, ct: Value) -> Value:
    source = op.operands[0]
    if source.shape == ():
        return b.sum(ct, axes=tuple(range(len(ct.shape))))
    indices = list(_indices(b, op))
    axes = tuple(range(len(source.shape)))
    zeros = b.zeros(source.tensor)
    return b.op("scatter", zeros, ct, *indices, axes=axes, mode="clip", combine="add")


def _indices(b: Builder, op: Op) -> Iterator[Value]:
    """The index along each axis of the operand, for each element of the result."""
    shape = op.attrs["shape"]
    for first, row in zip(op.attrs["start"], op.attrs["steps"], strict=True):
        index = b.full(shape, first, I64)
        for axis, step in enumerate(row):
            if step:
                along = b.iota(shape=shape, dtype=I64, axis=axis)
                index = b.add(index, b.mul(along, b.full(shape, step, I64)))
        yield index


def _batch_strided(b: BatchBuilder, op: Op, operands: Sequence[Value], batched: Marks) -> Batched:
    shape, start, steps = (op.attrs[name] for name in ("shape", "start", "steps"))
    own = (1, *(0 for _ in shape))
    rows = (own, *((0, *row) for row in steps))
    return [b.strided(operands[0], shape=(b.size, *shape), start=(0, *start), steps=rows)], [True]


linear(
    "strided",
    _infer_strided,
    _strided,
    _transpose_strided,
    cost=Cost.FREE,
    pointwise=True,
    view=True,
    repeats=True,
    batch=_batch_strided,
    attrs=("shape", "start", "steps"),
    examples=(
        Example((Arg((6,)),), {"shape": (4, 3), "start": (0,), "steps": ((1, 1),)}),  # windows
        Example((Arg((9,)),), {"shape": (3, 2), "start": (8,), "steps": ((-3, 1 - 2),)}),
        Example(
            (Arg((4, 5)),), {"shape": (4,), "start": (0, 1), "steps": ((1,), (1,))}
        ),  # a diagonal
        Example(
            (Arg((5, 3)),), {"shape": (3, 3), "start": (2, 0), "steps": ((1, -1), (0, 1))}
        ),  # sheared
        Example(
            (Arg((2, 7)),), {"shape": (3, 2, 2), "start": (0, 0), "steps": ((0, 1, 0), (2, 0, 2))}
        ),
        Example((Arg((3,)),), {"shape": (0, 2), "start": (0,), "steps": ((1, 1),)}),
        Example((Arg(()),), {"shape": (2,), "start": (), "steps": ()}),
    ),
    doc="element p of the result is x[start + steps @ p]",
)
