"""Attention: `jt.dot_product_attention`."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from ...ir.graph import Value
from ...ir.types import finfo
from ..arrays.common import array, build, common_dtype
from ..arrays.elementwise import where
from ..arrays.table import function
from ..core.tracers import Tracer, as_value, wrap
from ..data.promotion import float_dtype
from ..messages import errors
from ..messages.errors import complain


@function("dot_product_attention", composed=True)
def dot_product_attention(
    query: Any,
    key: Any,
    value: Any,
    bias: Any = None,
    mask: Any = None,
    *,
    scale: float | None = None,
    is_causal: bool = False,
) -> Tracer:
    """`softmax(scale * query @ key^T + bias) @ value` for each head, as `jax.nn.dot_product_attention`.

    - `query` has the shape (..., T, N, H): batch dims, T places, N heads of H features;
      `key` is (..., S, K, H) and `value` (..., S, K, E). K divides N: each key serves N / K heads.
    - `bias` is added to the scores; where `mask` (bool) is false they are replaced by a very low
      number, so that a row without any visible key averages all values. Both broadcast to the shape
      of the scores, (..., N, T, S).
    - `scale` is `1 / sqrt(H)` by default. With `is_causal` place t sees the keys 0..t.

    The result has the shape (..., T, N, E). In compiled code the scores never stand in memory as a
    whole, neither in the derivative with respect to query, key and value; those of a bias do.

    >>> x = np.ones((2, 5, 4, 8))
    >>> jt.dot_product_attention(x, x, x, is_causal=True).shape
    (2, 5, 4, 8)
    """
    q, k, v = array(query), array(key), array(value)
    shown = {"query": q, "key": k, "value": v}
    if q.ndim < 3 or k.ndim != q.ndim or v.ndim != q.ndim:
        _refuse("query, key and value have the dims (..., place, head, feature)", shown)
    if k.shape[:-1] != v.shape[:-1] or q.shape[:-3] != k.shape[:-3]:
        _refuse("key and value have the same places and heads, and all three the same batch", shown)
    *batch, rows, heads, depth = q.shape
    columns, groups = k.shape[-3:-1]
    width = v.shape[-1]
    if k.shape[-1] != depth or not groups or heads % groups:
        _refuse(
            "query and key have the same features, and keys' heads divide those of query", shown
        )
    if not columns or not depth or not width:
        _refuse("there is at least one key, and one feature", shown)
    dtype = float_dtype(common_dtype(q, k, v))
    b = build()
    lead = tuple(range(len(batch)))
    n = len(batch)

    def by_head(x: Tracer, shared: int) -> Value:
        """[*batch, K, N / K, places, features]"""
        moved = b.transpose(as_value(x, dtype), perm=(*lead, n + 1, n, n + 2))
        *_, positions, features = moved.shape
        if shared == 1:
            return b.reshape(moved, shape=(*batch, groups, heads // groups, positions, features))
        whole = (*batch, groups, shared, positions, features)
        return b.broadcast(moved, shape=whole, dims=(*lead, n, n + 2, n + 3))

    share = heads // groups
    operands = [by_head(q, 1), *(by_head(x, share) if share > 1 else by_head(x, 1) for x in (k, v))]
    extra = _extra(bias, mask, dtype)
    if extra is not None:
        operands.append(_by_group(extra, (*batch, heads, rows, columns), groups, shown))
    factor = depth**-0.5 if scale is None else float(scale)
    y = b.attention(*operands, scale=factor, causal=bool(is_causal))[0]
    y = b.reshape(y, shape=(*batch, heads, rows, width))
    return wrap(b.transpose(y, perm=(*lead, n + 1, n, n + 2)), scalar=False)


def _extra(bias: Any, mask: Any, dtype: Any) -> Tracer | None:
    """What is added to the scores."""
    low = 0.7 * float(finfo(dtype).min)
    if mask is None:
        return None if bias is None else array(bias).astype(dtype)
    seen = array(mask)
    if seen.dtype != np.bool_:
        complain(
            errors.DTypeError,
            "dot_product_attention: the mask is not of dtype bool",
            "pass mask=mask != 0, or add numbers to the scores with bias=.",
            operands={"mask": seen},
        )
    return where(seen, 0.0 if bias is None else array(bias).astype(dtype), low).astype(dtype)


def _by_group(extra: Tracer, scores: tuple[int, ...], groups: int, shown: dict[str, Any]) -> Value:
    """[*batch, K, N / K, T, S], with 1 for what all share, except in the last two dims."""
    *batch, heads, rows, columns = scores
    shape = (1,) * (len(scores) - extra.ndim) + extra.shape
    fits = len(shape) == len(scores) and all(
        m in (1, n) for m, n in zip(shape, scores, strict=True)
    )
    if not fits:
        _refuse(f"bias and mask broadcast to the scores, {scores}", {**shown, "bias": extra})
    b = build()
    own = (*shape[:-2], rows, columns)
    spread = b.broadcast_to(b.reshape(as_value(extra), shape=shape), own)
    split = (1, 1) if shape[-3] == 1 else (groups, heads // groups)
    return b.reshape(spread, shape=(*shape[: len(batch)], *split, rows, columns))


def _refuse(rule: str, shown: dict[str, Any]) -> NoReturn:
    complain(
        errors.ShapeError,
        "dot_product_attention: shapes do not go together",
        f"{rule}.",
        operands=shown,
    )
