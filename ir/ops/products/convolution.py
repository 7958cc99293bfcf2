"""conv: correlation of a batch of images with a kernel, in any number of spatial dims.

    x: [G, N, *S, C]    w: [G, *K, C, O]    ->    y: [G, N, *P, O]

    y[g, n, p, o] = sum over k, c of x[g, n, (p * stride + k * rhs_dilation - low) / lhs_dilation, c]
                                     * w[g, k, c, o]

A position beyond the edges of x reads as zero; one between two elements (where the division leaves a
rest) contributes nothing. `G` is a batch dim of both operands: groups of channels, and what a batch of
images with a batch of kernels becomes. `low` and `high` pad (or, negative, crop) the dilated x.

The one form is closed under its own derivatives: with respect to x it is the convolution of the
cotangent with the flipped kernel, stride and dilation of x exchanged; with respect to w the
convolution of x with the cotangent, batch and channels exchanged, and stride and dilation of w.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from ...batching.transform import BatchBuilder, Batched
from ...build import Builder, Grads, Wanted
from ...graph import Op, Value
from ...opdef import GraphError
from ...types import TensorType
from ..families import NUMBER, Array, check_kind, examples, opaque

Ints = tuple[int, ...]
Attrs = dict[str, Any]  # of integers per spatial dim


class Window(NamedTuple):
    """One spatial dim of a convolution."""

    size: int  # of x
    taps: int  # of the kernel
    stride: int
    low: int
    high: int
    lhs_dilation: int
    rhs_dilation: int

    @property
    def positions(self) -> int:
        """How many positions the kernel is put to: the size of the result."""
        room = spread(self.size, self.lhs_dilation) + self.low + self.high
        room -= spread(self.taps, self.rhs_dilation)
        return room // self.stride + 1 if room >= 0 else 0


def spread(size: int, dilation: int) -> int:
    """The extent of `size` elements that stand `dilation` apart."""
    return (size - 1) * dilation + 1 if size else 0


def windows(x: Ints, w: Ints, attrs: Attrs) -> list[Window]:
    """The spatial dims of a convolution of operands with these shapes."""
    names = ("strides", "low", "high", "lhs_dilation", "rhs_dilation")
    return [Window(*dim) for dim in zip(x[2:-1], w[1:-2], *(attrs[n] for n in names), strict=True)]


def _infer(x: TensorType, w: TensorType, **attrs: Any) -> TensorType:
    check_kind(x, NUMBER)
    check_kind(w, NUMBER)
    rank = x.rank - 3
    if x.dtype != w.dtype:
        raise GraphError(f"operand dtypes {x} and {w} differ; convert one of them")
    if rank < 0 or w.rank != x.rank or x.shape[0] != w.shape[0] or x.shape[-1] != w.shape[-2]:
        raise GraphError(f"{x} and {w} are not [G, N, *S, C] and [G, *K, C, O]")
    for name, values in attrs.items():
        if not isinstance(values, tuple) or len(values) != rank:
            raise GraphError(f"{name}={values!r} must have one entry per spatial dim ({rank})")
        if name not in ("low", "high") and any(v < 1 for v in values):
            raise GraphError(f"{name}={values} must be positive")
    if 0 in w.shape[1:-2]:
        raise GraphError(f"the kernel {w} has no taps")
    sizes = [d.positions for d in windows(x.shape, w.shape, attrs)]
    return x.with_shape((*x.shape[:2], *sizes, w.shape[-1]))


def infer(
    x: TensorType,
    w: TensorType,
    *,
    strides: Ints,
    low: Ints,
    high: Ints,
    lhs_dilation: Ints,
    rhs_dilation: Ints,
) -> TensorType:
    """[G, N, *S, C] and [G, *K, C, O] give [G, N, *positions, O]; GraphError where they do not fit."""
    return _infer(
        x,
        w,
        strides=strides,
        low=low,
        high=high,
        lhs_dilation=lhs_dilation,
        rhs_dilation=rhs_dilation,
    )


class Tap(NamedTuple):
    """Where one tap of a kernel meets elements of x, along one dim."""

    first: int  # the first position p with the tap on an element (of x, or beyond an edge)
    step: int  # the distance between such positions
    source: int  # the element that it meets at `first`, maybe beyond the edges
    source_step: int


def tap_positions(d: Window, k: int) -> Tap | None:
    """The positions at which tap `k` does not stand between two elements; None if there are none."""
    step = d.lhs_dilation // np.gcd(d.stride, d.lhs_dilation).item()
    for p in range(step):
        at = p * d.stride + k * d.rhs_dilation - d.low
        if at % d.lhs_dilation == 0:
            return Tap(p, step, at // d.lhs_dilation, step * d.stride // d.lhs_dilation)
    return None


def _meetings(dims: list[Window]) -> Iterator[tuple[Ints, list[Tap]]]:
    """Every combination of taps that meets elements, with where it does."""
    for k in product(*(range(d.taps) for d in dims)):
        taps = [tap_positions(d, i) for d, i in zip(dims, k, strict=True)]
        if None not in taps:
            yield k, [t for t in taps if t is not None]


def reference(x: Array, w: Array, **attrs: Ints) -> Array:
    """One matrix product per tap."""
    dims = windows(x.shape, w.shape, attrs)
    out = np.zeros((*x.shape[:2], *(d.positions for d in dims), w.shape[-1]), x.dtype)
    reach = [(d.stride * d.positions + d.rhs_dilation * d.taps + abs(d.low)) for d in dims]
    padded = np.pad(x, [(0, 0), (0, 0), *((r, r) for r in reach), (0, 0)])
    for k, taps in _meetings(dims):
        at: list[Any] = []
        read: list[Any] = []
        for t, d, r in zip(taps, dims, reach, strict=True):
            count = max(-(-(d.positions - t.first) // t.step), 0)
            at.append(slice(t.first, None, t.step))
            begin = t.source + r
            read.append(slice(begin, begin + count * t.source_step, t.source_step))
        tap: tuple[Any, ...] = (slice(None), *k)
        kernel = w[tap].reshape(w.shape[0], *(1,) * len(dims), *w.shape[-2:])
        out[(..., *at, slice(None))] += np.matmul(padded[(..., *read, slice(None))], kernel)
    return out


def _jvp(b: Builder, op: Op, tangents: Sequence[Value | None]) -> list[Value | None]:
    x, w = op.operands
    of_x, of_w = tangents
    parts = [] if of_x is None else [b.op("conv", of_x, w, **op.attrs)]
    if of_w is not None:
        parts.append(b.op("conv", x, of_w, **op.attrs))
    return [b.op("add", *parts) if len(parts) == 2 else parts[0] if parts else None]


def _vjp(b: Builder, op: Op, cotangents: Sequence[Value], wanted: Wanted) -> Grads:
    (ct,) = cotangents
    rules = (_cotangent_of_x, _cotangent_of_w)
    return [rule(b, op, ct) if want else None for rule, want in zip(rules, wanted, strict=True)]


def fitted(dims: Sequence[Window], results: Sequence[int]) -> Attrs:
    """The attributes of a convolution over `dims`, with `high` such that `results` are its sizes."""
    high = [
        spread(d.taps, d.rhs_dilation) + (n - 1) * d.stride - spread(d.size, d.lhs_dilation) - d.low
        for d, n in zip(dims, results, strict=True)
    ]
    return {
        "strides": tuple(d.stride for d in dims),
        "low": tuple(d.low for d in dims),
        "high": tuple(high),
        "lhs_dilation": tuple(d.lhs_dilation for d in dims),
        "rhs_dilation": tuple(d.rhs_dilation for d in dims),
    }


def _cotangent_of_x(b: Builder, op: Op, ct: Value) -> Value:
    x, w = op.operands
    dims = windows(x.shape, w.shape, op.attrs)
    back = [
        Window(
            d.positions,
            d.taps,
            d.lhs_dilation,
            (d.taps - 1) * d.rhs_dilation - d.low,
            0,
            d.stride,
            d.rhs_dilation,
        )
        for d in dims
    ]
    rank = len(w.shape)
    flipped = b.flip(w, axes=tuple(range(1, rank - 2)))
    kernel = b.transpose(flipped, perm=(*range(rank - 2), rank - 1, rank - 2))
    return b.op("conv", ct, kernel, **fitted(back, [d.size for d in dims]))


def _cotangent_of_w(b: Builder, op: Op, ct: Value) -> Value:
    x, w = op.operands
    dims = windows(x.shape, w.shape, op.attrs)
    if any(d.positions == 0 for d in dims):
        return b.zeros(w.tensor)
    back = [
        Window(d.size, d.positions, d.rhs_dilation, d.low, 0, d.lhs_dilation, d.stride)
        for d in dims
    ]
    last = len(x.shape) - 1
    images = b.transpose(x, perm=(0, last, *range(2, last), 1))
    kernel = b.transpose(ct, perm=(0, *range(2, last), 1, last))
    gradient = b.op("conv", images, kernel, **fitted(back, [d.taps for d in dims]))
    return b.transpose(gradient, perm=(0, *range(2, last), 1, last))


def _batch(b: BatchBuilder, op: Op, operands: Sequence[Value], batched: Sequence[bool]) -> Batched:
    """The examples become images of one batch, channels of one result, or with both batched groups."""
    x, w = operands
    if all(batched):
        x, w = (b.reshape(v, shape=(v.shape[0] * v.shape[1], *v.shape[2:])) for v in (x, w))
        y = b.op("conv", x, w, **op.attrs)
        return [b.reshape(y, shape=(b.size, *op.result.shape))], [True]
    axis = 1 if batched[0] else len(op.result.shape) - 1
    if batched[0]:
        x = b.moved(x, 0, 1)
        x = b.reshape(x, shape=(x.shape[0], x.shape[1] * x.shape[2], *x.shape[3:]))
    else:
        w = b.moved(w, 0, len(w.shape) - 2)
        w = b.reshape(w, shape=(*w.shape[:-2], w.shape[-2] * w.shape[-1]))
    y = b.op("conv", x, w, **op.attrs)
    shape = op.result.shape
    y = b.reshape(y, shape=(*shape[:axis], b.size, *shape[axis:]))
    return [b.moved(y, axis, 0)], [True]


def _plain(rank: int, **changes: Ints) -> Attrs:
    ones, zeros = (1,) * rank, (0,) * rank
    plain = {"strides": ones, "low": zeros, "high": zeros}
    return plain | {"lhs_dilation": ones, "rhs_dilation": ones} | changes


opaque(
    "conv",
    infer,
    reference,
    family="bilinear",
    jvp=_jvp,
    vjp=_vjp,
    batch=_batch,
    kinds=NUMBER,
    attrs=("strides", "low", "high", "lhs_dilation", "rhs_dilation"),
    examples=examples((1, 2, 5, 3), (1, 3, 3, 2), **_plain(1, low=(1,), high=(1,)))
    + examples(
        (2, 1, 5, 4, 2), (2, 3, 2, 2, 1), **_plain(2, strides=(2, 1), low=(1, 0), high=(0, 2))
    )
    + examples(
        (1, 1, 3, 4, 1),
        (1, 2, 3, 1, 2),
        **_plain(
            2, strides=(3, 1), low=(1, -1), high=(1, 3), lhs_dilation=(2, 3), rhs_dilation=(1, 2)
        ),
    )
    + examples((1, 1, 2, 3, 2, 1), (1, 1, 2, 2, 1, 2), **_plain(3))
    + examples((3, 2, 4), (3, 4, 1), **_plain(0))
    + examples((1, 2, 2, 3), (1, 3, 3, 2), **_plain(1))
    + examples((1, 0, 4, 2), (1, 3, 2, 2), **_plain(1, low=(2,)))
    + examples((1, 2, 4, 0), (1, 3, 0, 2), **_plain(1)),
    doc="images [G, N, *S, C] correlated with a kernel [G, *K, C, O]",
)
