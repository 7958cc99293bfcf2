"""Reductions over axes of size 0 or 1, of broadcasts, and of each other.

All rules are exact, or more accurate than what they replace as noted. A sum starts from 0.0, so the
sum of -0.0 alone is 0.0: where a float sum disappears, `+ 0.0` stays.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ...graph import Op, Value
from ...opdef import OPS
from ...ops.folds.reductions import identity
from .rewrite import Replacement, Rewriter, Rule, on

_FOLDS = tuple(n for n, d in OPS.items() if d.combiner and "axes" in d.attrs)
_SCANS = tuple(n for n, d in OPS.items() if d.combiner and "reverse" in d.attrs)


def _as_sum(b: Rewriter, op: Op, x: Value) -> Value:
    """`x` as the result of `op`: a float sum never gives -0.0."""
    if op.name == "sum" and x.dtype.kind == "f":
        total: Value = b.add(x, b.full_like(x, 0))
        return total
    return x


def _short(b: Rewriter, op: Op) -> Replacement:
    """Over nothing: the neutral element. Over axes of size 1: a reshape."""
    (x,) = op.operands
    axes = op.attrs["axes"]
    if 0 in x.shape:
        result = op.results[0]
        return b.full_like(result, identity(op.name, result.dtype))
    short = [d for d in axes if x.shape[d] == 1]
    if len(short) == len(axes):
        return _as_sum(b, op, b.reshape(x, shape=op.results[0].shape))
    if not short:
        return None
    axes_left = [d for d in range(len(x.shape)) if d not in short]
    x = b.reshape(x, shape=tuple([x.shape[d] for d in axes_left]))
    return b.op(op.name, x, axes=tuple([i for i, d in enumerate(axes_left) if d in axes]))


def _of_broadcast(b: Rewriter, op: Op) -> Replacement:
    """Over axes that only repeat: max and min see each element once, a sum counts them."""
    inner = op.operands[0].op
    assert inner is not None
    (x,) = inner.operands
    shape, dims = inner.attrs["shape"], inner.attrs["dims"]
    axes = op.attrs["axes"]
    repeated = [d for d in axes if d not in dims]
    if not repeated or 0 in shape or op.name == "prod":
        return None
    count = math.prod(shape[d] for d in repeated)
    if op.name == "sum":
        if x.dtype.kind == "f" and count > 2 ** (24 if x.dtype.itemsize == 4 else 53):
            return None
        x = b.mul(x, b.full_like(x, _wrapped(count, x.dtype)))
    # What is left: the other reduced axes, and a broadcast along the repeated axes that stay.
    rest = tuple([i for i, d in enumerate(dims) if d in axes])
    if rest:
        x = b.op(op.name, x, axes=rest)
    else:
        x = _as_sum(b, op, x)
    axes_left = [d for d in range(len(shape)) if d not in axes]
    dims_left = tuple([i for i, d in enumerate(axes_left) if d in dims])
    return b.broadcast(x, shape=tuple([shape[d] for d in axes_left]), dims=dims_left)


def _wrapped(count: int, dtype: Any) -> int:
    if dtype.kind == "f":
        return count
    bits = 8 * dtype.itemsize
    count %= 1 << bits
    return count - (1 << bits) if dtype.kind == "i" and count >> (bits - 1) else count


def _of_strided(b: Rewriter, op: Op) -> Replacement:
    """Along a window forwards, where it is read backwards: loops read vectors so."""
    inner = op.operands[0].op
    assert inner is not None
    shape, start, rows = inner.results[0].shape, list(inner.attrs["start"]), inner.attrs["steps"]
    turned = [d for d in op.attrs["axes"] if min((row[d] for row in rows), default=0) < 0]
    turned = [d for d in turned if max(row[d] for row in rows) <= 0]
    if not turned:
        return None
    for i, row in enumerate(rows):
        start[i] += sum([row[d] * (shape[d] - 1) for d in turned])
    steps = tuple([tuple([abs(s) if d in turned else s for d, s in enumerate(r)]) for r in rows])
    x = b.strided(inner.operands[0], shape=shape, start=tuple(start), steps=steps)
    return b.op(op.name, x, axes=op.attrs["axes"])


def _of_same(b: Rewriter, op: Op) -> Replacement:
    """max(max(x)) over both sets of axes at once; sums and products of integers likewise."""
    inner = op.operands[0].op
    assert inner is not None
    (x,) = inner.operands
    if not OPS[op.definition.combiner].idempotent and x.dtype.kind not in "iu":
        return None
    first = inner.attrs["axes"]
    left = [d for d in range(len(x.shape)) if d not in first]
    axes = sorted([*first, *(left[d] for d in op.attrs["axes"])])
    return b.op(op.name, x, axes=tuple(axes))


def _scan(b: Rewriter, op: Op) -> Replacement:
    x = op.operands[0]
    if x.shape[op.attrs["axis"]] > 1:
        return None
    return _as_sum(b, op, x)


def _extremum_index(b: Rewriter, op: Op) -> Replacement:
    """argmax, argmin and argsort along an axis of size 1 give 0."""
    size = op.operands[0].shape[op.attrs["axis"]]
    return b.full_like(op.results[0], 0) if size == 1 else None


def _for_each(
    names: tuple[str, ...],
    apply: Callable[[Rewriter, Op], Replacement],
    same: bool = False,
    of: str = "",
) -> list[Rule]:
    return [on(name, apply, of=name if same else of) for name in names]


REDUCTIONS = [
    # Over no axis, over axes of size 1, over no elements.
    *_for_each(_FOLDS, _short),
    # Over repeated elements: max, min, any and all exactly; n * x rounds once, a sum up to n times.
    *_for_each(_FOLDS, _of_broadcast, of="broadcast"),
    # Over windows that are read backwards; sums and products round otherwise.
    *_for_each(_FOLDS, _of_strided, of="strided"),
    # Reductions of themselves: exact where the order does not matter.
    *_for_each(_FOLDS, _of_same, same=True),
    # Scans and sorts along an axis of at most one element.
    *_for_each((*_SCANS, "sort"), _scan),
    *_for_each(("argmax", "argmin", "argsort"), _extremum_index),
]
