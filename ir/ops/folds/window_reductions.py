"""Window reductions: over a window that moves along every dim, as pooling does.

    window_sum(x; window, strides, low, high, dilation)       window_max, window_min, window_prod

All attributes have one entry per dim. Element p of the result covers the elements
`p * stride + k * dilation - low`, k below `window`; what lies beyond the edges takes no part, and a
window without elements gives 0, 1, or the least or greatest value of the dtype.

`window_argmax` and `window_argmin` say which element of the window, counted in C order, comes first
among the greatest (a NaN is greatest and least); -1 if there is none. `window_pick` reads those elements
and `window_put` adds to them: transposes of each other, and the derivatives of max and min.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np

from ...batching.transform import SIZE, first, leading
from ...build import Builder, Grads, Wanted
from ...cost import Cost
from ...graph import Op, Value
from ...opdef import GraphError
from ...types import I64, TensorType, is_float
from ..composed import composed_rules
from ..families import (
    ANY,
    NUMBER,
    REAL,
    Arg,
    Array,
    Example,
    check_dtype,
    check_kind,
    linear,
    opaque,
)
from .reductions import identity

Ints = tuple[int, ...]
Attrs = dict[str, Any]  # of integers per dim
ATTRS = ("window", "strides", "low", "high", "dilation")


def _check(rank: int, attrs: Attrs) -> None:
    for name, values in attrs.items():
        if not isinstance(values, tuple) or len(values) != rank:
            raise GraphError(f"{name}={values!r} must have one entry per dim ({rank})")
        least = 0 if name in ("low", "high") else 1
        if any(v < least for v in values):
            raise GraphError(f"{name}={values} must be at least {least}")


def covered(shape: Ints, attrs: Attrs) -> Ints:
    """The shape of the result: the positions at which the window fits into the padded operand."""
    sizes = []
    for n, k, s, low, high, d in zip(shape, *(attrs[a] for a in ATTRS), strict=True):
        room = n + low + high - ((k - 1) * d + 1)
        sizes.append(room // s + 1 if room >= 0 else 0)
    return tuple(sizes)


def _taps(shape: Ints, attrs: Attrs) -> Iterator[tuple[slice, ...]]:
    """For each element of the window where it is in the padded operand, at all positions."""
    sizes = covered(shape, attrs)
    for k in product(*(range(n) for n in attrs["window"])):
        yield tuple(
            slice(i * d, i * d + (n - 1) * s + 1 if n else i * d, s)
            for i, d, s, n in zip(k, attrs["dilation"], attrs["strides"], sizes, strict=True)
        )


def _padded(x: Array, fill: Any, attrs: Attrs) -> Array:
    widths = list(zip(attrs["low"], attrs["high"], strict=True))
    return np.pad(x, widths, constant_values=fill) if widths else x


def _examples(distinct: bool) -> tuple[Example, ...]:
    def one(shape: Ints, *values: Ints) -> Example:
        return Example((Arg(shape, distinct=distinct),), dict(zip(ATTRS, values, strict=True)))

    return (
        one((5,), (3,), (1,), (1,), (1,), (1,)),
        one((2, 5, 4), (1, 2, 3), (1, 2, 1), (0, 1, 2), (0, 0, 1), (1, 1, 1)),
        one((6, 5), (2, 2), (1, 3), (0, 1 if distinct else 3), (0, 1), (3, 2)),
        one((0, 3), (1, 2), (1, 1), (0, 0), (0, 0), (1, 1)),
        one((2,), (3,), (1,), (0,), (0,), (1,)),
        one((), (), (), (), (), ()),
    )


_SHIFTED = {n: first(0 if n in ("low", "high") else 1) for n in ATTRS}
_BATCH = leading(**_SHIFTED)


def _typed(rule: Callable[..., TensorType]) -> Callable[..., TensorType]:
    """The type rule that is `rule(*operands, attrs)` for attributes that fit the first operand."""

    def infer(
        *operands: TensorType, window: Ints, strides: Ints, low: Ints, high: Ints, dilation: Ints
    ) -> TensorType:
        attrs = dict(zip(ATTRS, (window, strides, low, high, dilation), strict=True))
        check_kind(operands[0], ANY)
        _check(operands[0].rank, attrs)
        return rule(*operands, attrs)

    return infer


def _covered(kinds: str, dtype: Any = None) -> Callable[..., TensorType]:
    """Of one operand: an element, or a number of type `dtype`, for each window."""

    def rule(x: TensorType, attrs: Attrs) -> TensorType:
        check_kind(x, kinds)
        return x.with_shape(covered(x.shape, attrs)).with_dtype(dtype or x.dtype)

    return _typed(rule)


def _folded(name: str, combine: Callable[..., Any]) -> Callable[..., Array]:
    def reference(x: Array, **attrs: Ints) -> Array:
        fill = identity(name, x.dtype)
        padded = _padded(x, fill, attrs)
        out = np.full(covered(x.shape, attrs), fill, x.dtype)
        for region in _taps(x.shape, attrs):
            out = combine(out, padded[region])
        return out

    return reference


# sum


def _transpose_sum(b: Builder, op: Op, ct: Value, i: int) -> Value:
    """The sum over a window of the spread cotangent: each element over the positions that cover it."""
    (x,) = op.operands
    window, strides, low, dilation = (op.attrs[n] for n in ("window", "strides", "low", "dilation"))
    if 0 in op.result.shape:
        return b.zeros(x.tensor)
    spread = [(n - 1) * s + 1 for n, s in zip(op.result.shape, strides, strict=True)]
    before = [(k - 1) * d - a for k, d, a in zip(window, dilation, low, strict=True)]
    after = [
        n + (k - 1) * d - a - m
        for n, k, d, a, m in zip(x.shape, window, dilation, before, spread, strict=True)
    ]
    wide = b.pad(
        ct,
        b.const(0, ct.dtype),
        low=tuple(max(a, 0) for a in before),
        high=tuple(max(a, 0) for a in after),
        interior=tuple(s - 1 for s in strides),
    )
    if min((*before, *after), default=0) < 0:
        start = tuple(max(-a, 0) for a in before)
        stop = tuple(n - max(-a, 0) for n, a in zip(wide.shape, after, strict=True))
        wide = b.slice(wide, start=start, stop=stop, step=(1,) * len(start))
    ones, zeros = (1,) * len(window), (0,) * len(window)
    return b.op(
        "window_sum", wide, window=window, strides=ones, low=zeros, high=zeros, dilation=dilation
    )


linear(
    "window_sum",
    _covered(NUMBER),
    _folded("sum", np.add),
    _transpose_sum,
    cost=Cost.FOLD,
    combiner="add",
    batch=_BATCH,
    moves=False,
    kinds=NUMBER,
    attrs=ATTRS,
    examples=_examples(distinct=False),
    doc="sums over a moving window",
)

# prod: differentiated as a chain of multiplications, so zeros need no special case


def multiply_taps(b: Builder, x: Value, **attrs: Ints) -> Value:
    """The product over each window, as multiplications of its elements, in pairs."""
    padded = b.pad(
        x,
        b.const(1, x.dtype),
        low=attrs["low"],
        high=attrs["high"],
        interior=(0,) * len(attrs["low"]),
    )
    parts = [
        b.slice(
            padded,
            start=tuple(r.start for r in region),
            stop=tuple(r.stop for r in region),
            step=tuple(r.step for r in region),
        )
        for region in _taps(x.shape, attrs)
    ]
    while len(parts) > 1:
        pairs = [b.op("mul", *parts[i : i + 2]) for i in range(0, len(parts) - 1, 2)]
        parts = pairs + parts[2 * len(pairs) :]
    return parts[0]


def _empty_or(rule: Callable[..., Any]) -> Callable[..., Any]:
    """A rule for results that are not empty; without elements there is no derivative."""

    def guarded(b: Builder, op: Op, values: Sequence[Value | None], *more: Any) -> Any:
        return [None] if 0 in op.result.shape else rule(b, op, values, *more)

    return guarded


_jvp_prod, _vjp_prod = composed_rules(multiply_taps)
opaque(
    "window_prod",
    _covered(NUMBER),
    _folded("prod", np.multiply),
    family="reduction",
    jvp=_empty_or(_jvp_prod),
    vjp=_empty_or(_vjp_prod),
    combiner="mul",
    batch=_BATCH,
    kinds=NUMBER,
    attrs=ATTRS,
    examples=_examples(distinct=False),
    doc="products over a moving window",
)

# which element of each window


def _which(better: Callable[..., Any]) -> Callable[..., Array]:
    def reference(x: Array, **attrs: Ints) -> Array:
        padded, inside = _padded(x, 0, attrs), _padded(np.ones(x.shape, bool), False, attrs)
        taps = np.full(covered(x.shape, attrs), -1, np.int64)
        best = np.zeros(taps.shape, x.dtype)
        for k, region in enumerate(_taps(x.shape, attrs)):
            value = padded[region]
            wins = (taps < 0) | better(value, best)
            if is_float(x.dtype):
                wins |= np.isnan(value) & ~np.isnan(best)
            wins = wins & inside[region]
            taps, best = np.where(wins, k, taps), np.where(wins, value, best)
        return taps

    return reference


def _argument_op(name: str, better: Callable[..., Any]) -> None:
    opaque(
        name,
        _covered(REAL, I64),
        _which(better),
        family="reduction",
        batch=_BATCH,
        kinds=REAL,
        attrs=ATTRS,
        examples=_examples(distinct=False),
        doc="the first extreme element of a moving window, -1 if the window has none",
    )


_argument_op("window_argmax", np.greater)
_argument_op("window_argmin", np.less)


@_typed
def _infer_pick(x: TensorType, which: TensorType, attrs: Attrs) -> TensorType:
    check_dtype(which, "i64", "which element")
    if which.shape != covered(x.shape, attrs):
        raise GraphError(f"{which} does not say which element for the windows of {x}")
    return x.with_shape(which.shape)


def _pick(x: Array, which: Array, **attrs: Ints) -> Array:
    padded = _padded(x, 0, attrs)
    out = np.zeros(which.shape, x.dtype)
    for k, region in enumerate(_taps(x.shape, attrs)):
        out = np.where(which == k, padded[region], out)
    return out


def _infer_put(
    u: TensorType,
    which: TensorType,
    *,
    window: Ints,
    strides: Ints,
    low: Ints,
    high: Ints,
    dilation: Ints,
    shape: Ints,
) -> TensorType:
    attrs = dict(zip(ATTRS, (window, strides, low, high, dilation), strict=True))
    check_kind(u, NUMBER)
    _check(u.rank, attrs)
    check_dtype(which, "i64", "which element")
    if u.shape != which.shape or len(shape) != u.rank or covered(shape, attrs) != u.shape:
        raise GraphError(f"{u} and {which} are not the windows of shape={shape}")
    return u.with_shape(shape)


def _put(u: Array, which: Array, *, shape: Ints, **attrs: Ints) -> Array:
    out = _padded(np.zeros(shape, u.dtype), 0, attrs)
    for k, region in enumerate(_taps(shape, attrs)):
        out[region] += np.where(which == k, u, u.dtype.type(0))
    inner = tuple(slice(a, a + n) for a, n in zip(attrs["low"], shape, strict=True))
    return out[inner]


def _attributes_of(op: Op) -> Attrs:
    return {n: op.attrs[n] for n in ATTRS}


def _with_positions(distinct: Sequence[Example], put: bool) -> tuple[Example, ...]:
    examples = []
    for example in distinct:
        shape = example.args[0].shape
        sizes = covered(shape, example.attrs)
        which = Arg(sizes, "i64", math.prod(example.attrs["window"]))
        operand = Arg(sizes if put else shape)
        examples.append(
            Example((operand, which), example.attrs | ({"shape": shape} if put else {}))
        )
    return tuple(examples)


linear(
    "window_pick",
    _infer_pick,
    _pick,
    lambda b, op, ct, i: b.op(
        "window_put", ct, op.operands[1], shape=op.operands[0].shape, **_attributes_of(op)
    ),
    cost=Cost.CHEAP,
    batch=_BATCH,
    linear_in=(0,),
    kinds=ANY,
    attrs=ATTRS,
    examples=_with_positions(_examples(distinct=False), put=False),
    doc="element `which` of each window; 0 where that lies beyond the edges",
)


linear(
    "window_put",
    _infer_put,
    _put,
    lambda b, op, ct, i: b.op("window_pick", ct, op.operands[1], **_attributes_of(op)),
    cost=Cost.FOLD,
    batch=leading(**_SHIFTED, shape=SIZE),
    linear_in=(0,),
    moves=False,
    kinds=NUMBER,
    attrs=(*ATTRS, "shape"),
    examples=_with_positions(_examples(distinct=False), put=True),
    doc="zeros of `shape`, with u added to element `which` of each window",
)

# max and min


def _extremum(name: str, combine: np.ufunc) -> None:
    def which(b: Builder, op: Op) -> Value:
        return b.op(f"window_arg{name}", op.operands[0], **op.attrs)

    def jvp(b: Builder, op: Op, tangents: Sequence[Value]) -> list[Value | None]:
        (t,) = tangents
        return [b.op("window_pick", t, which(b, op), **op.attrs)]

    def vjp(b: Builder, op: Op, cotangents: Sequence[Value], wanted: Wanted) -> Grads:
        (ct,) = cotangents
        shape = op.operands[0].shape
        return [b.op("window_put", ct, which(b, op), shape=shape, **op.attrs)]

    opaque(
        f"window_{name}",
        _covered(REAL),
        _folded(name, combine),
        family="reduction",
        combiner=combine.__name__,
        jvp=jvp,
        vjp=vjp,
        batch=_BATCH,
        kinds=REAL,
        attrs=ATTRS,
        examples=_examples(distinct=True),
        doc="extremes over a moving window, NaN if it holds one; the derivative goes to the first",
    )


_extremum("max", np.maximum)
_extremum("min", np.minimum)
