"""Windows whose length is a value, too: bounded_slice and bounded_update_slice.

    bounded_slice([a, b, c, d], 1, 2; axes=(0,), steps=(1,))   ->   [b, c, 0, 0]

The shape is static: the axis that is cut bounds what is cut from it. Of the result's elements along an
axis the first `count` are there; the others are zeros. Counts and starts are clamped so that the window
fits. Where each example has a window of its own, the batched ops are gathers and choices.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...batching.transform import BatchBuilder, Batched, shift
from ...build import Builder
from ...cost import Cost
from ...graph import Op, Value
from ...opdef import GraphError
from ...types import I64, TensorType
from ..families import ANY, Arg, Array, Example, check_dtype, check_kind, linear

Ints = tuple[int, ...]


def most(size: int, step: int) -> int:
    """How many elements of an axis a window with this step can have."""
    return -(-size // abs(step))


def _check(x: TensorType, ends: Sequence[TensorType], axes: Ints, steps: Ints) -> None:
    if len(ends) != 2 * len(axes) or len(steps) != len(axes) or 0 in steps:
        raise GraphError(f"{len(ends)} starts and counts, axes={axes} and steps={steps} for {x}")
    if list(axes) != sorted(set(axes)) or any(not 0 <= axis < x.rank for axis in axes):
        raise GraphError(f"axes={axes} of {x}")
    for end in ends:
        check_dtype(end, "i64", "a start or count")
        if end.shape != ():
            raise GraphError(f"a start or count has type {end}; it must be 0-d")


def clamped(start: int, count: int, size: int, step: int) -> tuple[int, int]:
    """A window of an axis, moved and shortened so that it fits."""
    count = min(max(count, 0), most(size, step))
    if not count:
        return 0, 0
    span = (count - 1) * abs(step)
    low = min(max(start - (span if step < 0 else 0), 0), size - 1 - span)
    return low + (span if step < 0 else 0), count


def _window(
    x: Array, ends: Sequence[Array], axes: Ints, steps: Ints
) -> tuple[tuple[slice, ...], tuple[Array | slice, ...]]:
    """Which of the result's elements are there, and where they are in `x` (an index of axes each)."""
    here, there = [slice(None)] * x.ndim, [np.arange(n) for n in x.shape]
    for k, (axis, step) in enumerate(zip(axes, steps, strict=True)):
        start, count = clamped(int(ends[k]), int(ends[len(axes) + k]), x.shape[axis], step)
        here[axis] = slice(count)
        there[axis] = start + step * np.arange(count)
    return tuple(here), np.ix_(*there) if there else ()


def _bounded_slice(x: Array, *ends: Array, axes: Ints, steps: Ints) -> Array:
    here, there = _window(x, ends, axes, steps)
    out = np.zeros_like(x)
    out[here] = x[there]
    return out


def _bounded_update_slice(x: Array, u: Array, *ends: Array, axes: Ints, steps: Ints) -> Array:
    here, there = _window(x, ends, axes, steps)
    out = x.copy()
    out[there] = u[here]
    return out


class _Windows:
    """The windows of a batched op, one for each example: starts and counts that fit, as i64[size]."""

    def __init__(
        self, b: BatchBuilder, op: Op, ends: Sequence[Value], batched: Sequence[bool]
    ) -> None:
        self.b, self.axes, self.steps = b, op.attrs["axes"], op.attrs["steps"]
        self.shape = (b.size, *op.operands[0].shape)
        spread = b.spread_all(ends, batched)
        self.starts, self.counts = [], []
        for k, (axis, step) in enumerate(zip(self.axes, self.steps, strict=True)):
            size = op.operands[0].shape[axis]
            count = self._between(spread[len(self.axes) + k], 0, most(size, step))
            room = b.mul(b.maximum(b.sub(count, self._all(1)), self._all(0)), self._all(abs(step)))
            low = spread[k] if step > 0 else b.sub(spread[k], room)
            low = b.minimum(b.maximum(low, self._all(0)), b.sub(self._all(size - 1), room))
            self.starts.append(low if step > 0 else b.add(low, room))
            self.counts.append(count)

    def _all(self, number: int) -> Value:
        return self.b.full((self.b.size,), number, I64)

    def _between(self, x: Value, low: int, high: int) -> Value:
        return self.b.minimum(self.b.maximum(x, self._all(low)), self._all(high))

    def along(self, k: int, value: Value) -> Value:
        """A number for each example, along the examples and the k-th axis."""
        return self.b.broadcast(value, shape=(self.b.size, self.shape[self.axes[k] + 1]), dims=(0,))

    def places(self, k: int) -> Value:
        size = self.shape[self.axes[k] + 1]
        return self.b.iota(shape=(self.b.size, size), dtype=I64, axis=1)

    def taken(self, x: Value, k: int, index: Value) -> Value:
        """The elements of `x` at positions along the k-th axis, clipped into it."""
        b, axis = self.b, self.axes[k] + 1
        rows = b.gather(x, b.examples(index.shape), index, axes=(0, axis), mode="clip")
        order = list(range(2, len(self.shape)))
        order.insert(axis - 1, 1)
        return b.transpose(rows, perm=(0, *order))

    def spread(self, k: int, mask: Value) -> Value:
        return self.b.broadcast(mask, shape=self.shape, dims=(0, self.axes[k] + 1))


def _batch_bounded_slice(
    b: BatchBuilder, op: Op, operands: Sequence[Value], batched: Sequence[bool]
) -> Batched:
    x, *ends = operands
    attrs = {"axes": shift(op.attrs["axes"]), "steps": op.attrs["steps"]}
    if not any(batched[1:]):
        return [b.bounded_slice(x, *ends, **attrs)], [True]
    x = b.spread(x, batched[0])
    if 0 in x.shape:
        return [x], [True]
    windows = _Windows(b, op, ends, batched[1:])
    for k, step in enumerate(windows.steps):
        indices = windows.places(k)
        by = b.mul(indices, b.full_like(indices, step))
        x = windows.taken(x, k, b.add(windows.along(k, windows.starts[k]), by))
        there = windows.spread(k, b.lt(indices, windows.along(k, windows.counts[k])))
        x = b.select(there, x, b.zeros(x.tensor))
    return [x], [True]


def _batch_bounded_update_slice(
    b: BatchBuilder, op: Op, operands: Sequence[Value], batched: Sequence[bool]
) -> Batched:
    (x, u), ends = b.spread_all(operands[:2], batched[:2]), operands[2:]
    attrs = {"axes": shift(op.attrs["axes"]), "steps": op.attrs["steps"]}
    if not any(batched[2:]):
        return [b.bounded_update_slice(x, u, *ends, **attrs)], [True]
    if 0 in x.shape or not op.attrs["axes"]:
        return [x if 0 in x.shape else u], [True]
    windows = _Windows(b, op, ends, batched[2:])
    written = None
    for k, step in enumerate(windows.steps):
        away = b.sub(windows.places(k), windows.along(k, windows.starts[k]))
        away = away if step > 0 else b.neg(away)
        by, zero = b.full_like(away, abs(step)), b.full_like(away, 0)
        index = b.floor_divide(away, by)
        inside = b.bitwise_and(b.ge(away, zero), b.lt(index, windows.along(k, windows.counts[k])))
        inside = b.bitwise_and(inside, b.eq(b.remainder(away, by), zero))
        u = windows.taken(u, k, index)
        mask = windows.spread(k, inside)
        written = mask if written is None else b.bitwise_and(written, mask)
    return [b.select(written, u, x)], [True]


def _infer_slice(x: TensorType, *ends: TensorType, axes: Ints, steps: Ints) -> TensorType:
    check_kind(x, ANY)
    _check(x, ends, axes, steps)
    return x


def _infer_update(
    x: TensorType, u: TensorType, *ends: TensorType, axes: Ints, steps: Ints
) -> TensorType:
    check_kind(x, ANY)
    if u != x:
        raise GraphError(f"cannot write {u} into a window of {x}: types differ")
    _check(x, ends, axes, steps)
    return x


linear(
    "bounded_slice",
    _infer_slice,
    _bounded_slice,
    lambda b, op, ct, i: b.op(
        "bounded_update_slice", b.zeros(op.operands[0].tensor), ct, *op.operands[1:], **op.attrs
    ),
    cost=Cost.CHEAP,
    pointwise=True,
    batch=_batch_bounded_slice,
    linear_in=(0,),
    attrs=("axes", "steps"),
    examples=(
        Example((Arg((5,)), Arg((), "i64", 4), Arg((), "i64", 6)), {"axes": (0,), "steps": (1,)}),
        Example(
            (Arg((5, 4)), *(Arg((), "i64", 6) for _ in range(4))),
            {"axes": (0, 1), "steps": (2, -1)},
        ),
    ),
    doc="the window of `count` elements from `start` on, by `step`, along each of `axes`; then zeros",
)


def _transpose_update(b: Builder, op: Op, ct: Value, i: int) -> Value:
    _, u, *ends = op.operands
    if i == 0:
        return b.op("bounded_update_slice", ct, b.zeros(u.tensor), *ends, **op.attrs)
    return b.op("bounded_slice", ct, *ends, **op.attrs)


linear(
    "bounded_update_slice",
    _infer_update,
    _bounded_update_slice,
    _transpose_update,
    cost=Cost.CHEAP,
    pointwise=True,
    batch=_batch_bounded_update_slice,
    linear_in=(0, 1),
    attrs=("axes", "steps"),
    examples=(
        Example(
            (Arg((5,)), Arg((5,)), Arg((), "i64", 4), Arg((), "i64", 6)),
            {"axes": (0,), "steps": (1,)},
        ),
        Example(
            (Arg((5, 4)), Arg((5, 4)), *(Arg((), "i64", 6) for _ in range(4))),
            {"axes": (0, 1), "steps": (2, -1)},
        ),
    ),
    doc="a copy of x with the first elements of u written to such a window",
)
