"""Scans: running sums, products, maxima and minima along one axis, from either end.

The dtype stays; integers wrap; cummax and cummin propagate NaN. The derivative of cummax and cummin
goes to the element that set the current value, the latest one at ties (PyTorch's convention).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...batching.transform import leading, shift
from ...build import Builder, Grads, Wanted
from ...cost import Cost
from ...graph import Op, Value
from ...types import I64, TensorType
from ..composed import composed_rules
from ..families import NUMBER, REAL, Arg, Array, Example, check_axis, check_kind, linear, opaque
from ..movement.indexing import take_along


def _infer(x: TensorType, *, axis: int, reverse: bool) -> TensorType:
    check_kind(x, NUMBER)
    check_axis(axis, x.rank)
    return x


def _infer_running(x: TensorType, *, axis: int, reverse: bool) -> TensorType:
    check_kind(x, REAL)
    return _infer(x, axis=axis, reverse=reverse)


def _scan(accumulate: Callable[..., Any]) -> Callable[..., Array]:
    def reference(x: Array, *, axis: int, reverse: bool) -> Array:
        if reverse:
            return np.flip(accumulate(np.flip(x, axis), axis, x.dtype), axis)
        return accumulate(x, axis, x.dtype)

    return reference


def _examples(distinct: bool) -> tuple[Example, ...]:
    return tuple(
        Example((Arg(shape, distinct=distinct),), {"axis": axis, "reverse": reverse})
        for shape, axis in (((3, 4), 1), ((5,), 0), ((0, 2), 0))
        for reverse in (False, True)
    )


linear(
    "cumsum",
    _infer,
    _scan(np.add.accumulate),
    lambda b, op, ct, i: b.op("cumsum", ct, axis=op.attrs["axis"], reverse=not op.attrs["reverse"]),
    moves=False,
    kinds=NUMBER,
    cost=Cost.SCAN,
    combiner="add",
    wraps=True,
    unbounded=True,
    batch=leading(axis=shift),
    attrs=("axis", "reverse"),
    examples=_examples(distinct=False),
)

# cumprod: differentiated as log2(n) shifted multiplications, so zeros need no special case.


def doubling_products(b: Builder, x: Value, *, axis: int, reverse: bool) -> Value:
    """x[i] * x[i-1], then products of 2 of those, of 4, ...: each element times all before it."""
    n = x.shape[axis]
    one = b.const(1, x.dtype)
    none = (0,) * len(x.shape)

    def along(k: int) -> tuple[int, ...]:
        return tuple(k if d == axis else 0 for d in range(len(x.shape)))

    shift = 1
    while shift < n:
        start, stop = (along(shift), x.shape) if reverse else (none, _less(x.shape, axis, shift))
        part = b.op("slice", x, start=start, stop=stop, step=(1,) * len(x.shape))
        low, high = (none, along(shift)) if reverse else (along(shift), none)
        x = b.op("mul", x, b.op("pad", part, one, low=low, high=high, interior=none))
        shift *= 2
    return x


def _less(shape: tuple[int, ...], axis: int, k: int) -> tuple[int, ...]:
    return tuple(n - k if d == axis else n for d, n in enumerate(shape))


_jvp_cumprod, _vjp_cumprod = composed_rules(doubling_products)
opaque(
    "cumprod",
    _infer,
    _scan(np.multiply.accumulate),
    family="scan",
    jvp=_jvp_cumprod,
    vjp=_vjp_cumprod,
    kinds=NUMBER,
    combiner="mul",
    wraps=True,
    unbounded=True,
    batch=leading(axis=shift),
    attrs=("axis", "reverse"),
    examples=_examples(distinct=False),
)

# cummax and cummin: each result is a copy of one element, whose index is a running maximum too.


def _origin(b: Builder, op: Op) -> Value:
    """Along the axis, the position of the element that each result copies."""
    (x,) = op.operands
    axis, reverse = op.attrs["axis"], op.attrs["reverse"]
    position = b.op("iota", shape=x.shape, dtype=I64, axis=axis)
    sets = b.op("bitwise_or", b.op("eq", x, op.result), b.op("isnan", x))
    far = b.full_like(position, max(x.shape[axis] - 1, 0) if reverse else 0)
    name = "cummin" if reverse else "cummax"
    return b.op(name, b.op("select", sets, position, far), axis=axis, reverse=reverse)


def _jvp_extremum(b: Builder, op: Op, tangents: Sequence[Value]) -> list[Value | None]:
    (t,) = tangents
    if t.tensor.size == 0:
        return [t]
    return [take_along(b, t, _origin(b, op), op.attrs["axis"])]


def _vjp_extremum(b: Builder, op: Op, cotangents: Sequence[Value], wanted: Wanted) -> Grads:
    (ct,) = cotangents
    if ct.tensor.size == 0:
        return [ct]
    axis = op.attrs["axis"]
    taken = take_along(b, op.operands[0], _origin(b, op), axis)
    assert taken.op is not None
    return [
        b.op(
            "scatter",
            b.full_like(ct, 0),
            ct,
            *taken.op.operands[1:],
            combine="add",
            **taken.op.attrs,
        )
    ]


def _running(name: str, combiner: np.ufunc) -> None:
    opaque(
        name,
        _infer_running,
        _scan(combiner.accumulate),
        family="scan",
        combiner=combiner.__name__,
        jvp=_jvp_extremum,
        vjp=_vjp_extremum,
        kinds=REAL,
        batch=leading(axis=shift),
        attrs=("axis", "reverse"),
        examples=_examples(distinct=True),
    )


_running("cummax", np.maximum)
_running("cummin", np.minimum)
