"""Reductions: the dims in `axes` are removed, the dtype stays (integers wrap).

max and min propagate NaN, and share their derivative evenly among ties. argmax and argmin give the
first occurrence, and the first NaN if there is one. Reductions of bool are `any` and `all`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...batching.transform import leading, shift
from ...build import Builder, Grads, Wanted
from ...cost import Cost
from ...graph import Op, Value
from ...opdef import GraphError
from ...types import I64, TensorType, is_float
from ..composed import composed_rules
from ..families import (
    ANY,
    NUMBER,
    Arg,
    Example,
    check_axes,
    check_axis,
    check_kind,
    examples,
    linear,
    opaque,
)

Ints = tuple[int, ...]


def _infer_over(kinds: str, has_identity: bool = True) -> Callable[..., TensorType]:
    def infer(x: TensorType, *, axes: Ints) -> TensorType:
        check_kind(x, kinds)
        check_axes(axes, x.rank)
        result = x.with_shape(n for d, n in enumerate(x.shape) if d not in axes)
        if not has_identity and x.size == 0 and result.size != 0:
            raise GraphError(f"reduces zero elements of {x} over axes={axes}: there is no result")
        return result

    return infer


def _infer_arg(x: TensorType, *, axis: int) -> TensorType:
    check_kind(x, ANY)
    check_axis(axis, x.rank)
    result = TensorType(x.shape[:axis] + x.shape[axis + 1 :], I64)
    if x.shape[axis] == 0 and result.size != 0:
        raise GraphError(f"looks for an index among zero elements of {x} along axis {axis}")
    return result


def identity(fold: str, dtype: np.dtype[Any]) -> Any:
    """What leaves the fold of that name unchanged: what it gives of no elements."""
    if fold in ("sum", "prod"):
        return 0 if fold == "sum" else 1
    if fold in ("any", "all"):
        return fold == "all"
    if is_float(dtype):
        return -np.inf if fold == "max" else np.inf
    info = np.iinfo(dtype)
    return int(info.min if fold == "max" else info.max)


def restore(b: Builder, reduced: Value, shape: Ints, axes: Ints) -> Value:
    """`reduced` repeated along the reduced `axes`, so that it has the operand's `shape` again."""
    remaining = tuple(d for d in range(len(shape)) if d not in axes)
    return b.op("broadcast", reduced, shape=shape, dims=remaining)


_EXAMPLES = examples((3, 4), axes=(1,)) + examples((2, 3, 2), axes=(0, 2)) + examples((2,), axes=())
_DISTINCT = (
    Example((Arg((3, 4), distinct=True),), {"axes": (1,)}),
    Example((Arg((2, 3, 2), distinct=True),), {"axes": (0, 2)}),
    Example((Arg((2,), distinct=True),), {"axes": ()}),
)

linear(
    "sum",
    _infer_over(NUMBER),
    lambda x, *, axes: np.sum(x, axes, x.dtype),
    lambda b, op, ct, i: restore(b, ct, op.operands[0].shape, op.attrs["axes"]),
    moves=False,
    kinds=NUMBER,
    cost=Cost.FOLD,
    combiner="add",
    wraps=True,
    unbounded=True,
    batch=leading(axes=shift),
    attrs=("axes",),
    examples=_EXAMPLES + examples((0, 2), axes=(0,)),
)

# prod: differentiated as a tree of multiplications, so zeros need no special case at any order.


def multiply_tree(b: Builder, x: Value, *, axes: Ints) -> Value:
    """The product over `axes`, as multiplications of halves."""
    remaining = tuple(d for d in range(len(x.shape)) if d not in axes)
    outer = tuple(x.shape[d] for d in remaining)
    n = math.prod(x.shape[d] for d in axes)
    flat = b.op("reshape", b.op("transpose", x, perm=(*axes, *remaining)), shape=(n, *outer))

    def rows(v: Value, start: int, stop: int) -> Value:
        k = len(outer)
        return b.slice(v, start=(start, *(0,) * k), stop=(stop, *outer), step=(1,) * (k + 1))

    while n > 1:
        half = n // 2
        product = b.op("mul", rows(flat, 0, half), rows(flat, half, 2 * half))
        if n % 2:
            product = b.op("concat", product, rows(flat, n - 1, n), axis=0)
        flat, n = product, half + n % 2
    if n == 0:
        return b.full(outer, 1, x.dtype)
    return b.op("reshape", flat, shape=outer)


_jvp_prod, _vjp_prod = composed_rules(multiply_tree)
opaque(
    "prod",
    _infer_over(NUMBER),
    lambda x, *, axes: np.prod(x, axes, x.dtype),
    family="reduction",
    jvp=_jvp_prod,
    vjp=_vjp_prod,
    kinds=NUMBER,
    combiner="mul",
    wraps=True,
    unbounded=True,
    batch=leading(axes=shift),
    attrs=("axes",),
    examples=_EXAMPLES + examples((5,), axes=(0,)) + examples((0, 2), axes=(0,)),
)

# max and min


def _winners(b: Builder, op: Op) -> tuple[Value, Value]:
    """A mask of the elements that equal the result, and their count as floats."""
    (x,) = op.operands
    axes = op.attrs["axes"]
    mask = b.op("eq", x, restore(b, op.result, x.shape, axes))
    return mask, b.op("sum", b.op("convert", mask, dtype=x.dtype), axes=axes)


def _jvp_extremum(b: Builder, op: Op, tangents: Sequence[Value]) -> list[Value | None]:
    (t,) = tangents
    mask, count = _winners(b, op)
    chosen = b.op("select", mask, t, b.full_like(t, 0))
    return [b.op("div", b.op("sum", chosen, axes=op.attrs["axes"]), count)]


def _vjp_extremum(b: Builder, op: Op, cotangents: Sequence[Value], wanted: Wanted) -> Grads:
    (ct,) = cotangents
    mask, count = _winners(b, op)
    share = restore(b, b.op("div", ct, count), op.operands[0].shape, op.attrs["axes"])
    return [b.op("select", mask, share, b.full_like(share, 0))]


def _extremum(name: str, combiner: str, reference: Callable[..., Any]) -> None:
    opaque(
        name,
        _infer_over(NUMBER, has_identity=False),
        lambda x, *, axes: reference(x, axis=axes),
        family="reduction",
        combiner=combiner,
        jvp=_jvp_extremum,
        vjp=_vjp_extremum,
        kinds=NUMBER,
        batch=leading(axes=shift),
        attrs=("axes",),
        examples=_DISTINCT,
    )


_extremum("max", "maximum", np.max)
_extremum("min", "minimum", np.min)

# Without derivatives.


def _undifferentiated(
    name: str,
    infer: Callable[..., TensorType],
    function: Callable[..., Any],
    kinds: str,
    attr: str,
    *samples: Example,
    combiner: str = "",
) -> None:
    opaque(
        name,
        infer,
        lambda x, **attrs: function(x, attrs[attr]),
        family="reduction",
        combiner=combiner,
        batch=leading(**{attr: shift}),
        kinds=kinds,
        attrs=(attr,),
        examples=samples,
    )


_undifferentiated("any", _infer_over("b"), np.any, "b", "axes", *_EXAMPLES, combiner="bitwise_or")
_undifferentiated("all", _infer_over("b"), np.all, "b", "axes", *_EXAMPLES, combiner="bitwise_and")
_ALONG = (*examples((3, 4), axis=1), *examples((2, 3, 2), axis=0), *examples((5,), axis=0))
_undifferentiated("argmax", _infer_arg, np.argmax, ANY, "axis", *_ALONG)
_undifferentiated("argmin", _infer_arg, np.argmin, ANY, "axis", *_ALONG)
