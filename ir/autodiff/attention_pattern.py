"""Attention as people write it, found in a graph:

    s = dot(q, k) * scale;  s = select(mask, s, -inf) or s + bias       (all but the product optional)
    e = exp(s - max(s));  y = dot(e / sum(e), v)                        (max and sum along each row)

`find` gives what the `attention` op takes. The pass `recognise_attention` puts the op instead of a
found y; reverse mode differentiates y as that op, so that nothing of the size of s is kept for it.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..build import Builder
from ..graph import Op, Value, uniform
from ..record import field, record
from ..types import BOOL, is_float

LOW = -1e30  # a score from here on has no weight beside another
LEAST = 1 << 10  # scores of one batch element from which the kernels are worth it

Perm = tuple[int, ...]


@record(frozen=False)
class AttentionPattern:
    """A found attention: operands with the order of their axes, what is done to the scores."""

    q: tuple[Value, Perm]
    k: tuple[Value, Perm]
    v: tuple[Value, Perm]
    shape: tuple[int, ...]  # of the scores
    scale: float = 1.0
    causal: bool = False
    masks: list[tuple[Value, float]] = field(default_factory=list)
    biases: list[Value] = field(default_factory=list)
    # What makes y of q, k and v, y's own op not counted.
    inner: set[Op] = field(default_factory=set)

    def operands(self, b: Builder, env: dict[Value, Value]) -> list[Value]:
        """The operands of the op, appended to b's graph."""
        operands = [b.transpose(env.get(x, x), perm=perm) for x, perm in (self.q, self.k, self.v)]
        dtype = operands[0].dtype
        extra: list[Value] = []
        for mask, low in self.masks:
            seen = self._compact(b, env, mask)
            extra.append(
                b.select(seen, b.full(seen.shape, 0, dtype), b.full(seen.shape, low, dtype))
            )
        extra += [self._compact(b, env, bias) for bias in self.biases]
        if extra:
            shape = np.broadcast_shapes(*(x.shape for x in extra))
            total = b.broadcast_to(extra[0], shape)
            for more in extra[1:]:
                total = b.add(total, b.broadcast_to(more, shape))
            operands.append(total)
        return operands

    @property
    def attrs(self) -> dict[str, Any]:
        return {"scale": self.scale, "causal": self.causal}

    def _compact(self, b: Builder, env: dict[Value, Value], x: Value) -> Value:
        """What was broadcast to the scores, with 1 for what all share, except in the last two dims."""
        if x.op is None or x.op.name != "broadcast":
            return env.get(x, x)
        (source,), dims = x.op.operands, x.op.attrs["dims"]
        ones = tuple(n if d in dims else 1 for d, n in enumerate(self.shape))
        small = b.reshape(env.get(source, source), shape=ones)
        return b.broadcast_to(small, (*ones[:-2], *self.shape[-2:]))


def find(op: Op) -> AttentionPattern | None:
    """The attention whose result `op` computes, if it does."""
    if op.name != "dot" or not is_float(op.result.dtype) or op.result.dtype.itemsize < 2:
        return None
    p, v = op.operands
    rank = len(p.shape)
    (contracted, cv), (batch, bv) = op.attrs["contract"], op.attrs["batch"]
    if rank < 2 or contracted != (rank - 1,) or batch != tuple(range(rank - 2)):
        return None
    free = [d for d in range(len(v.shape)) if d not in cv and d not in bv]
    if len(free) != 1 or not _worth(p.shape, v.shape[free[0]]):
        return None
    inner: set[Op] = set()
    e, total = _binary(p, "div", inner)
    if e is None or total is None or _of_row(total, "sum", inner) is not e:
        return None
    shifted = _unary(e, "exp", inner)
    if shifted is None:
        return None
    s, top = _binary(shifted, "sub", inner)
    if s is None or top is None or _of_row(top, "max", inner) is not s:
        return None
    attention = AttentionPattern((v, ()), (v, ()), (v, (*bv, *cv, *free)), p.shape, inner=inner)
    return attention if _scores(attention, s) else None


def _worth(scores: tuple[int, ...], width: int) -> bool:
    return math.prod(scores[-2:]) >= LEAST and 0 not in (*scores, width)


def _made_by(x: Value, name: str, inner: set[Op]) -> Op | None:
    if x.op is None or x.op.name != name:
        return None
    inner.add(x.op)
    return x.op


def _binary(x: Value, name: str, inner: set[Op]) -> tuple[Value | None, Value | None]:
    op = _made_by(x, name, inner)
    return (None, None) if op is None else (op.operands[0], op.operands[1])


def _unary(x: Value, name: str, inner: set[Op]) -> Value | None:
    op = _made_by(x, name, inner)
    return None if op is None else op.operands[0]


def _of_row(x: Value, name: str, inner: set[Op]) -> Value | None:
    """What `x` is the reduction of along the last axis, repeated along it."""
    rank = len(x.shape)
    op = _made_by(x, "broadcast", inner)
    if op is None or op.attrs["dims"] not in (tuple(range(rank - 1)), tuple(range(rank))):
        return None
    y = op.operands[0]
    while y.op is not None and y.op.name in ("reshape", "stop_gradient"):
        inner.add(y.op)
        y = y.op.operands[0]
    reduction = _made_by(y, name, inner)
    if reduction is None or reduction.attrs["axes"] != (rank - 1,) or y.shape != x.shape[:-1]:
        return None
    return reduction.operands[0]


def _scores(attention: AttentionPattern, s: Value) -> bool:
    """Take apart what makes the scores, from the outside in."""
    scaled = False
    while s.op is not None:
        op = s.op
        attention.inner.add(op)
        if op.name == "select" and not scaled:
            low = _number(op.operands[2])
            if low is None or low > LOW:
                return False
            if _is_causal(op.operands[0]):
                attention.causal = True
            else:
                attention.masks.append((op.operands[0], low))
            s = op.operands[1]
        elif op.name in ("mul", "div"):
            factor = _number(op.operands[1])
            s = op.operands[0]
            if factor is None and op.name == "mul":
                factor, s = _number(op.operands[0]), op.operands[1]
            if not factor:
                return False
            attention.scale = (
                attention.scale * factor if op.name == "mul" else attention.scale / factor
            )
            scaled = True
        elif op.name == "add" and not scaled:
            bias = [x for x in op.operands if x.op is None or x.op.name not in _MADE]
            if len(bias) != 1:
                return False
            attention.biases.append(bias[0])
            s = next(x for x in op.operands if x is not bias[0])
        else:
            return op.name == "dot" and _product(attention, op)
    return False


_MADE = ("dot", "mul", "div", "select", "add")


def _product(attention: AttentionPattern, op: Op) -> bool:
    q, k = op.operands
    (cq, ck), (bq, bk) = op.attrs["contract"], op.attrs["batch"]
    free_q = [d for d in range(len(q.shape)) if d not in cq and d not in bq]
    free_k = [d for d in range(len(k.shape)) if d not in ck and d not in bk]
    if len(cq) != 1 or len(free_q) != 1 or len(free_k) != 1 or 0 in q.shape:
        return False
    attention.q = (q, (*bq, *free_q, *cq))
    attention.k = (k, (*bk, *free_k, *ck))
    return True


def _number(x: Value) -> float | None:
    """The number that all elements of a constant are."""
    value = uniform(x)
    return None if value is None else float(value)


def is_causal_bias(bias: Value) -> bool:
    """Whether a bias only hides from row t the columns after t."""
    if bias.op is None or bias.op.name != "select":
        return False
    mask, shown, hidden = bias.op.operands
    low = _number(hidden)
    return _number(shown) == 0 and low is not None and low <= LOW and _is_causal(mask)


def _is_causal(mask: Value) -> bool:
    """Whether a mask shows row t the columns 0..t, for all of the batch."""
    rows, columns = mask.shape[-2:]
    while mask.op is not None and mask.op.name in ("broadcast", "reshape"):
        source = mask.op.operands[0]
        if source.shape[-2:] != (rows, columns):
            return False
        rank, lead = len(mask.shape), math.prod(source.shape[:-2])
        if mask.op.name == "reshape" and (lead != 1 or math.prod(mask.shape[:-2]) != 1):
            return False
        if mask.op.name == "broadcast" and mask.op.attrs["dims"][-2:] != (rank - 2, rank - 1):
            return False
        mask = source
    op = mask.op
    if op is None or mask.dtype != BOOL:
        return False
    if op.name == "select":  # np.tril(np.ones(...))
        test, shown, hidden = op.operands
        return _number(shown) == 1 and _number(hidden) == 0 and _is_causal(test)
    if op.name == "constant":
        seen = np.arange(columns) <= np.arange(rows)[:, None]
        return bool(np.all(op.attrs["value"] == seen))
    if op.name not in ("le", "ge"):
        return False
    column, row = op.operands if op.name == "le" else reversed(op.operands)
    last = len(mask.shape) - 1
    return _counts(column) == last and _counts(row) == last - 1


def _counts(x: Value) -> int | None:
    """The axis along which `x` counts 0, 1, 2, ... being the same along the other."""
    axis: int | None = None
    dims: tuple[int, ...] = tuple(range(len(x.shape)))
    while x.op is not None and x.op.name in ("broadcast", "add"):
        if x.op.name == "broadcast":
            dims = tuple(dims[d] for d in x.op.attrs["dims"])
        elif _number(x.op.operands[1]) != 0:
            return None
        x = x.op.operands[0]
    if x.op is not None and x.op.name == "iota" and len(dims) == len(x.shape):
        axis = dims[x.op.attrs["axis"]]
    return axis
