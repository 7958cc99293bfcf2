"""Running sums and products, differences, gradients and integrals along an axis."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...ir.types import BOOL, F64, is_inexact
from ..arrays import ufuncs
from ..arrays.common import (
    NO_VALUE,
    along_axis,
    array,
    axis_index,
    axis_tuple,
    build,
    common_dtype,
    finish,
    given,
    operand,
    shape_of,
)
from ..arrays.elementwise import where
from ..arrays.float_errors import checked, raising
from ..arrays.movement import broadcast_to, concatenate, moveaxis
from ..arrays.reductions import sum_
from ..arrays.table import function
from ..core.tracers import Tracer, as_value, wrap, wrap_like
from ..data.promotion import can_cast, canonical, sum_dtype


def _lead(axis: int, item: Any) -> tuple[Any, ...]:
    """The index that takes `item` of an axis."""
    return (slice(None),) * axis + (item,)


def _scan(op: str, name: str) -> Callable[..., Any]:
    def traced(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
        x, axis = along_axis(array(a), axis, at_least_1d=True)
        dtype = sum_dtype(x.dtype) if dtype is None else canonical(dtype)
        if dtype == BOOL:
            op_name = "cummax" if op == "cumsum" else "cummin"
            x = x.astype(bool).astype(np.uint8)
            value = build().op(op_name, as_value(x), axis=axis, reverse=False)
            return finish(wrap_like(value, (x,)).astype(bool), out)
        terms = as_value(x.astype(dtype))
        value = build().op(op, terms, axis=axis, reverse=False)
        if raising():
            largest = build().op("cummax", as_value(abs(wrap(terms))), axis=axis, reverse=False)
            checked("accumulate", [largest], value)
        return finish(wrap_like(value, (x,)), out)

    traced.__name__ = name
    return traced


cumsum = function("cumsum")(_scan("cumsum", "cumsum"))
cumprod = function("cumprod")(_scan("cumprod", "cumprod"))


def _cumulative(name: str, scan: Callable[..., Any], start: int) -> None:
    def traced(
        x: Any,
        /,
        *,
        axis: Any = None,
        dtype: Any = None,
        out: Any = None,
        include_initial: bool = False,
    ) -> Any:
        a = array(x)
        a = a.reshape(1) if a.ndim == 0 else a
        if axis is None:
            if a.ndim != 1:
                raise ValueError(
                    "For arrays which have more than one dimension ``axis`` argument is required."
                )
            axis = 0
        axes = axis_tuple(axis, a.ndim, a)
        if len(axes) != 1:
            raise ValueError("accumulate does not allow multiple axes")
        (axis,) = axes
        result = scan(a, axis, dtype)
        if include_initial:
            shape = (*a.shape[:axis], 1, *a.shape[axis + 1 :])
            first = wrap(build().full(shape, start, result.dtype))
            result = concatenate([first, result], axis)
        return finish(result, out)

    function(name)(traced)


_cumulative("cumulative_sum", cumsum, 0)
_cumulative("cumulative_prod", cumprod, 1)


@function("nancumsum")
def nancumsum(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    return cumsum(_without_nan(a, 0), axis, dtype, out)


@function("nancumprod")
def nancumprod(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    return cumprod(_without_nan(a, 1), axis, dtype, out)


def _without_nan(a: Any, fill: int) -> Tracer:
    x = array(a)
    return where(ufuncs.apply(np.isnan, x), x.dtype.type(fill), x) if is_inexact(x.dtype) else x


@function("diff")
def diff(
    a: Any, n: int = 1, axis: int = -1, prepend: Any = NO_VALUE, append: Any = NO_VALUE
) -> Tracer:
    if n < 0:
        raise ValueError(f"order must be non-negative but got {n!r}")
    x = array(a)
    if n == 0:
        return x
    if x.ndim == 0:
        raise ValueError("diff requires input that is at least one dimensional")
    axis = axis_index(axis, x.ndim, x)
    parts = [x]
    for extra, front in ((prepend, True), (append, False)):
        if given(extra):
            e = array(extra)
            if e.ndim == 0:
                e = broadcast_to(e, (*x.shape[:axis], 1, *x.shape[axis + 1 :]))
            parts = [e, *parts] if front else [*parts, e]
    x = concatenate(parts, axis) if len(parts) > 1 else x
    ufunc = np.not_equal if x.dtype == BOOL else np.subtract
    for _ in range(n):
        later, earlier = x[_lead(axis, slice(1, None))], x[_lead(axis, slice(None, -1))]
        x = ufuncs.apply(ufunc, later, earlier)
    return x


@function("ediff1d")
def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Tracer:
    x = array(ary).ravel()
    steps = x[1:] - x[:-1]
    parts = [steps]
    for name, given_ends, position in (("to_begin", to_begin, 0), ("to_end", to_end, 2)):
        if given_ends is None:
            continue
        ends = array(given_ends)
        if not can_cast(ends.dtype, x.dtype, "same_kind"):
            raise TypeError(
                f"dtype of `{name}` must be compatible with input `ary` under the `same_kind` rule."
            )
        parts.insert(position, ends.ravel().astype(x.dtype))
    return concatenate(parts) if len(parts) > 1 else steps


@function("gradient")
def gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    x = array(f)
    axes = axis_tuple(axis, x.ndim, x, strict=True)
    if edge_order not in (1, 2):
        raise ValueError("'edge_order' greater than 2 not supported")
    spacings = list(varargs) or [1.0]
    if len(spacings) == 1 and not shape_of(spacings[0]):
        spacings *= len(axes)
    if len(spacings) != len(axes):
        raise TypeError("invalid number of arguments")
    x = x if is_inexact(x.dtype) else x.astype(F64)
    results = [_slope(x, h, i, edge_order) for h, i in zip(spacings, axes, strict=True)]
    return results[0] if len(axes) == 1 else tuple(results)


def _slope(x: Tracer, spacing: Any, axis: int, edge_order: int) -> Tracer:
    if x.shape[axis] < edge_order + 1:
        raise ValueError(
            "Shape of array too small to calculate a numerical gradient, at least "
            "(edge_order + 1) elements are required."
        )
    y = moveaxis(x, axis, 0)
    h = array(spacing)
    if h.ndim == 0:
        inner = (y[2:] - y[:-2]) / (spacing * 2.0 if not isinstance(spacing, Tracer) else h * 2.0)
        if edge_order == 1:
            first, last = (y[1:2] - y[0:1]) / spacing, (y[-1:] - y[-2:-1]) / spacing
        else:
            first = (-1.5 * y[0:1] + 2.0 * y[1:2] - 0.5 * y[2:3]) / spacing
            last = (1.5 * y[-1:] - 2.0 * y[-2:-1] + 0.5 * y[-3:-2]) / spacing
    else:
        if h.shape != (y.shape[0],):
            raise ValueError(
                "when 1d, distances must match the length of the corresponding dimension"
            )
        h = h if is_inexact(h.dtype) else h.astype(F64)
        step = diff(h).reshape((-1,) + (1,) * (y.ndim - 1))
        d1, d2 = step[:-1], step[1:]
        a, b, c = -d2 / (d1 * (d1 + d2)), (d2 - d1) / (d1 * d2), d1 / (d2 * (d1 + d2))
        inner = a * y[:-2] + b * y[1:-1] + c * y[2:]
        if edge_order == 1:
            first, last = (y[1:2] - y[0:1]) / step[0], (y[-1:] - y[-2:-1]) / step[-1]
        else:
            p, q = step[0], step[1]
            first = (
                -(2.0 * p + q) / (p * (p + q)) * y[0:1]
                + (p + q) / (p * q) * y[1:2]
                - p / (q * (p + q)) * y[2:3]
            )
            p, q = step[-2], step[-1]
            last = (
                q / (p * (p + q)) * y[-3:-2]
                - (q + p) / (p * q) * y[-2:-1]
                + (2.0 * q + p) / (q * (p + q)) * y[-1:]
            )
    slope = moveaxis(concatenate([first, inner, last]).astype(x.dtype), 0, axis)
    return wrap_like(as_value(slope), (x,), copy=True)


@function("trapezoid")
def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    """`axis` counts in y, in x and in their product each by itself, as NumPy has it."""
    values = array(y)
    along = axis_index(axis, values.ndim, values)
    if x is None:
        step = dx
    else:
        points = array(x)
        step = diff(points, axis=axis if points.ndim > 1 else -1)
        if points.ndim == 1:
            step = step.reshape((-1,) + (1,) * (values.ndim - 1 - along))
    pairs = values[_lead(along, slice(1, None))] + values[_lead(along, slice(None, -1))]
    return sum_(step * pairs / 2.0, axis=axis)


@function("polyval")
def polyval(p: Any, x: Any) -> Any:
    coefficients, points = array(p), array(x)
    zeros = build().full(points.shape, 0, points.dtype)
    y: Any = wrap_like(zeros, (points,), scalar=points.scalar, copy=True)
    for i in range(len(coefficients)):
        y = y * points + coefficients[i]
    return y


@function("unwrap")
def unwrap(p: Any, discont: Any = None, axis: int = -1, *, period: float = 2 * math.pi) -> Any:
    x = array(p)
    steps = diff(x, axis=axis)
    discont = period / 2 if discont is None else discont
    dtype = common_dtype(steps, operand(period))
    whole = dtype.kind in "iu"
    high = period // 2 if whole else period / 2
    low = -high
    wrapped = (steps - low) % period + low
    if not whole or period % 2 == 0:
        wrapped = where((wrapped == low) & (steps > 0), high, wrapped)
    correction = where(abs(steps) < discont, wrapped.dtype.type(0), wrapped - steps)
    result = x.astype(dtype).copy("K")
    lead = (slice(None),) * (axis % x.ndim)
    result[(*lead, slice(1, None))] = x[(*lead, slice(1, None))] + cumsum(correction, axis=axis)
    return result
