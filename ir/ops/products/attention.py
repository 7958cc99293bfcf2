"""attention: softmax(scale * q @ k^T + bias) @ v, row by row, for kernels that keep no T x S matrix.

    q: [*B, T, D]   k: [*B, S, D]   v: [*B, S, E]   bias: [*B (each dim that or 1), T, S], optional
    -> y: [*B, T, E], lse: [*B, T]       (lse: the logarithm of each row's sum of exponentials)

lse is float32 where the others are smaller floats.

With `causal`, row t sees the keys 0..t. `attention_grad` gives the cotangents of q, k and v from that
of y; it computes the scores again, from `lse`. What else is asked for (tangents, higher derivatives,
the cotangent of a bias or of lse) is differentiated as the composition that the op stands for.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...batching.transform import BatchBuilder, Batched
from ...build import Builder, Grads, Wanted
from ...cost import Cost
from ...graph import Op, Value
from ...opdef import GraphError
from ...types import F32, I64, TensorType, is_small
from ..composed import composed_rules
from ..families import FLOAT, Array, check_kind, check_same, examples, opaque

Types = tuple[TensorType, ...]


def _check(q: TensorType, k: TensorType, v: TensorType, bias: Types, scale: float) -> None:
    for type in (q, k, v, *bias):
        check_kind(type, FLOAT)
        if type.dtype != q.dtype or type.rank != q.rank:
            raise GraphError(f"{q} and {type} differ in dtype or rank")
    if not isinstance(scale, float):
        raise GraphError(f"scale={scale!r} is not a float")
    batch = q.shape[:-2]
    fits = k.shape[:-2] == v.shape[:-2] == batch and k.shape[-2] == v.shape[-2]
    if q.rank < 2 or not fits or q.shape[-1] != k.shape[-1] or 0 in (*k.shape[-2:], v.shape[-1]):
        raise GraphError(f"{q}, {k} and {v} are not [*B, T, D], [*B, S, D] and [*B, S, E]")
    whole = (*batch, q.shape[-2], k.shape[-2])
    for b in bias:
        if b.shape[-2:] != whole[-2:] or any(
            m not in (1, n) for m, n in zip(b.shape, whole, strict=True)
        ):
            raise GraphError(f"the bias {b} does not broadcast to the scores {whole}")


def _infer(
    q: TensorType, k: TensorType, v: TensorType, *bias: TensorType, scale: float, causal: bool
) -> Types:
    _check(q, k, v, bias, scale)
    return q.with_shape((*q.shape[:-1], v.shape[-1])), _lse(q)


def _lse(q: TensorType) -> TensorType:
    return q.with_shape(q.shape[:-1]).with_dtype(F32 if is_small(q.dtype) else q.dtype)


def _visible(t: int, s: int) -> Array:
    return np.arange(s) <= np.arange(t)[:, None]


def _scores(q: Array, k: Array, bias: Sequence[Array], scale: float, causal: bool) -> Array:
    s = np.matmul(q * q.dtype.type(scale), k.swapaxes(-1, -2))
    for b in bias:
        s = s + b
    return np.where(_visible(*s.shape[-2:]), s, s.dtype.type(-np.inf)) if causal else s


def _reference(
    q: Array, k: Array, v: Array, *bias: Array, scale: float, causal: bool
) -> tuple[Array, Array]:
    s = _scores(q, k, bias, scale, causal)
    top = s.max(-1, keepdims=True)
    e = np.exp(s - top)
    total = e.sum(-1, keepdims=True)
    return np.matmul(e / total, v), (top + np.log(total))[..., 0]


# The same in ops


def _batch_axes(x: Value) -> tuple[int, ...]:
    return tuple(range(len(x.shape) - 2))


def _product(b: Builder, x: Value, y: Value, axis_x: int, axis_y: int) -> Value:
    """Products of matrices summed over one axis of each, -1 or -2."""
    lead, rank = _batch_axes(x), len(x.shape)
    contract = ((rank + axis_x,), (rank + axis_y,))
    return b.op("dot", x, y, contract=contract, batch=(lead, lead))


def _along(b: Builder, row: Value, like: Value) -> Value:
    """One value per row, repeated along the row."""
    return b.op("broadcast", row, shape=like.shape, dims=tuple(range(len(like.shape) - 1)))


def _composed_scores(
    b: Builder, q: Value, k: Value, bias: Sequence[Value], scale: float, causal: bool
) -> Value:
    scores = _product(b, b.op("mul", q, b.full_like(q, scale)), k, -1, -1)
    for extra in bias:
        scores = b.op("add", scores, b.broadcast_to(extra, scores.shape))
    if causal:
        shape = scores.shape[-2:]
        dims = (len(scores.shape) - 2, len(scores.shape) - 1)
        row, column = (b.op("iota", shape=shape, dtype=I64, axis=axis) for axis in (0, 1))
        seen = b.op("le", column, row)
        seen = b.op("broadcast", seen, shape=scores.shape, dims=dims)
        scores = b.op("select", seen, scores, b.full_like(scores, -np.inf))
    return scores


def _converted(b: Builder, x: Value, like: TensorType) -> Value:
    return x if x.dtype == like.dtype else b.op("convert", x, dtype=like.dtype)


def _compose(
    b: Builder, q: Value, k: Value, v: Value, *bias: Value, scale: float, causal: bool
) -> list[Value]:
    scores = _composed_scores(b, q, k, bias, scale, causal)
    axes = (len(scores.shape) - 1,)
    top = b.op("stop_gradient", b.op("max", scores, axes=axes))
    e = b.op("exp", b.op("sub", scores, _along(b, top, scores)))
    total = b.op("sum", e, axes=axes)
    y = _product(b, b.op("div", e, _along(b, total, e)), v, -1, -2)
    lse = b.op("add", top, b.op("log", total))
    return [y, _converted(b, lse, _lse(q.tensor))]


def _compose_grad(
    b: Builder,
    q: Value,
    k: Value,
    v: Value,
    y: Value,
    lse: Value,
    ct: Value,
    *bias: Value,
    scale: float,
    causal: bool,
) -> list[Value]:
    scores = _composed_scores(b, q, k, bias, scale, causal)
    row_sums = _converted(b, lse, scores.tensor)
    p = b.op("exp", b.op("sub", scores, _along(b, row_sums, scores)))
    axes = (len(scores.shape) - 1,)
    share = b.op("sum", b.op("mul", ct, y), axes=axes)
    dp = b.op("sub", _product(b, ct, v, -1, -1), _along(b, share, p))
    ds = b.op("mul", b.op("mul", p, dp), b.full_like(p, scale))
    return [_product(b, ds, k, -1, -2), _product(b, ds, q, -2, -2), _product(b, p, ct, -2, -2)]


_composed_jvp, _composed_vjp = composed_rules(_compose)


def _vjp(b: Builder, op: Op, cotangents: Sequence[Value | None], wanted: Wanted) -> Grads:
    ct, of_lse = cotangents
    if of_lse is not None or any(wanted[3:]):
        return _composed_vjp(b, op, cotangents, wanted)
    if ct is None:
        return [None] * len(wanted)
    q, k, v, *bias = op.operands
    gradients = b.op("attention_grad", q, k, v, *op.results, ct, *bias, **op.attrs)
    return [
        f if w else None for f, w in zip((*gradients, *[None] * len(bias)), wanted, strict=True)
    ]


def _batch(b: BatchBuilder, op: Op, operands: Sequence[Value], batched: Sequence[bool]) -> Batched:
    """One more dim of the batch; a bias that all examples share is not repeated."""
    plain = 3 if op.name == "attention" else 6
    spread = b.spread_all(operands[:plain], batched[:plain])
    for bias, flag in zip(operands[plain:], batched[plain:], strict=True):
        spread.append(bias if flag else b.reshape(bias, shape=(1, *bias.shape)))
    return list(b.op(op.name, *spread, **op.attrs)), [True] * len(op.results)


opaque(
    "attention",
    _infer,
    _reference,
    jvp=_composed_jvp,
    vjp=_vjp,
    cost=Cost.DEAR,
    batch=_batch,
    kinds=FLOAT,
    attrs=("scale", "causal"),
    examples=examples((2, 3), (4, 3), (4, 2), scale=0.5, causal=False)
    + examples((2, 5, 3), (2, 4, 3), (2, 4, 2), scale=0.7, causal=True)
    + examples((2, 2, 3, 1), (2, 2, 4, 1), (2, 2, 4, 3), (2, 1, 3, 4), scale=1.0, causal=False)
    + examples((0, 2, 3), (0, 4, 3), (0, 4, 2), scale=0.5, causal=True),
    doc="softmax(scale * q @ k^T + bias) @ v, and the logarithms of the sums",
)


def _infer_grad(
    q: TensorType,
    k: TensorType,
    v: TensorType,
    y: TensorType,
    lse: TensorType,
    ct: TensorType,
    *bias: TensorType,
    scale: float,
    causal: bool,
) -> Types:
    _check(q, k, v, bias, scale)
    check_same((y, ct, q.with_shape((*q.shape[:-1], v.shape[-1]))))
    check_same((lse.with_dtype(q.dtype), q.with_shape(q.shape[:-1])))
    if lse.dtype not in (q.dtype, _lse(q).dtype):
        raise GraphError(f"{lse} are not the row sums of {q}")
    return q, k, v


def _reference_grad(
    q: Array,
    k: Array,
    v: Array,
    y: Array,
    lse: Array,
    ct: Array,
    *bias: Array,
    scale: float,
    causal: bool,
) -> tuple[Array, Array, Array]:
    p = np.exp(_scores(q, k, bias, scale, causal) - lse[..., None])
    share = (ct * y).sum(-1, keepdims=True)
    ds = p * (np.matmul(ct, v.swapaxes(-1, -2)) - share) * q.dtype.type(scale)
    turned = ds.swapaxes(-1, -2)
    return np.matmul(ds, k), np.matmul(turned, q), np.matmul(p.swapaxes(-1, -2), ct)


_jvp_grad, _vjp_grad = composed_rules(_compose_grad)
opaque(
    "attention_grad",
    _infer_grad,
    _reference_grad,
    jvp=_jvp_grad,
    vjp=_vjp_grad,
    cost=Cost.DEAR,
    batch=_batch,
    kinds=FLOAT,
    attrs=("scale", "causal"),
    examples=examples((2, 3), (4, 3), (4, 2), (2, 2), (2,), (2, 2), scale=0.5, causal=False)
    + examples(
        (2, 5, 3), (2, 4, 3), (2, 4, 2), (2, 5, 2), (2, 5), (2, 5, 2), scale=0.7, causal=True
    ),
    doc="cotangents of q, k and v of `attention`, from its results and the cotangent of y",
)
