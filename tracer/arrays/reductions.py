"""Reductions: sum, prod, max, min, any, all, argmax, argmin, mean, var, norms and their kin.

The graph's reductions remove axes and nothing more; dtype rules, `keepdims`, `where`, `initial`,
`out` and the statistics are composed here, in NumPy's order of operations.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...ir.types import (
    BOOL,
    F32,
    F64,
    I64,
    finfo,
    has_infinity,
    is_complex,
    is_float,
    is_inexact,
    is_small,
    real_dtype,
)
from ..core.tracers import Tracer, as_value, wrap, wrap_like
from ..data.promotion import DType, canonical, float_dtype, result_dtype, sum_dtype
from . import ufuncs
from .common import (
    NO_VALUE,
    array,
    as_elements,
    axis_index,
    axis_tuple,
    broadcast_shape,
    build,
    check_values,
    finish,
    finish_written_back,
    given,
    kept_shape,
    operand,
    reduced,
)
from .elementwise import where as choose
from .float_errors import checked, raising
from .table import function


def reduce(op: str, x: Tracer, axes: tuple[int, ...], keepdims: bool = False) -> Tracer:
    """One reduction op over `axes`; an empty `axes` is the identity."""
    value = as_value(x)
    if axes:
        value = build().op(op, value, axes=tuple(sorted(axes)))
    return reduced(value, x, axes, keepdims)


def masked(x: Tracer, where: Any, fill: Any) -> Tracer:
    """`x` with `fill` where `where` is false, broadcast together."""
    if where is True or not given(where):
        return x
    shape = broadcast_shape([x, operand(where)])
    b = build()
    mask = b.broadcast_to(as_value(operand(where), BOOL), shape)
    value = b.broadcast_to(as_value(x), shape)
    chosen = b.select(mask, value, b.full(shape, fill, x.dtype))
    return wrap_like(chosen, (x, operand(where)), scalar=False)


def _keep(keepdims: Any) -> bool:
    return bool(keepdims) if given(keepdims) else False


def _accumulation(op: str, combine: str, identity: int) -> Callable[..., Any]:
    def traced(
        a: Any,
        axis: Any = None,
        dtype: Any = None,
        out: Any = None,
        keepdims: Any = False,
        initial: Any = NO_VALUE,
        where: Any = True,
    ) -> Any:
        x = array(a)
        dtype = sum_dtype(x.dtype) if dtype is None else canonical(dtype)
        axes = axis_tuple(axis, x.ndim, x)
        if dtype == BOOL:  # asked for: add is or, multiply is and
            x = masked(x.astype(bool, copy=False), where, bool(identity))
            result = reduce("any" if op == "sum" else "all", x, axes, _keep(keepdims))
        else:
            x = masked(x.astype(dtype, copy=False), where, identity)
            result = reduce(op, x, axes, _keep(keepdims))
            if x.size and raising():
                largest = reduce("max", abs(x), axes, _keep(keepdims))
                checked("reduce", [as_value(largest)], as_value(result))
        if given(initial) and initial is not None:
            start = as_elements(initial, dtype)
            if x.size:
                result = ufuncs.apply(getattr(np, combine), result, start)
            else:  # 0 + -0.0 is 0.0
                result = wrap(build().broadcast_to(as_value(start), result.shape))
        return finish(result, out)

    traced.__name__ = op
    return traced


sum_ = function("sum")(_accumulation("sum", "add", 0))
prod = function("prod")(_accumulation("prod", "multiply", 1))


def lowest(dtype: DType) -> Any:
    """The identity of max."""
    if is_complex(dtype):
        return complex(-math.inf, -math.inf)
    if is_float(dtype):
        return -math.inf if has_infinity(dtype) else float(finfo(dtype).min)
    return False if dtype == BOOL else int(np.iinfo(dtype).min)


def highest(dtype: DType) -> Any:
    """The identity of min."""
    if is_complex(dtype):
        return complex(math.inf, math.inf)
    if is_float(dtype):
        return math.inf if has_infinity(dtype) else float(finfo(dtype).max)
    return True if dtype == BOOL else int(np.iinfo(dtype).max)


def _extremum(op: str, ufunc: np.ufunc, of_bool: str) -> Callable[..., Any]:
    def traced(
        a: Any,
        axis: Any = None,
        out: Any = None,
        keepdims: Any = False,
        initial: Any = NO_VALUE,
        where: Any = True,
    ) -> Any:
        x = array(a)
        axes = axis_tuple(axis, x.ndim, x)
        has_initial = given(initial) and initial is not None
        empty = any(x.shape[i] == 0 for i in axes) and 0 not in kept_shape(x.shape, axes)
        if not has_initial:
            if any(x.shape[i] == 0 for i in axes) or (empty and axes):
                raise ValueError(
                    f"zero-size array to reduction operation {ufunc.__name__} which has no identity"
                )
            if given(where) and where is not True:
                raise ValueError(
                    f"reduction operation '{ufunc.__name__}' does not have an identity, so to use "
                    "a where mask one has to specify 'initial'"
                )
        identity = lowest(x.dtype) if op == "max" else highest(x.dtype)
        x = masked(x, where, identity)
        if any(x.shape[i] == 0 for i in axes):
            shape = kept_shape(x.shape, axes)
            if not _keep(keepdims):
                shape = tuple(n for i, n in enumerate(x.shape) if i not in axes)
            result = wrap(build().full(shape, identity, x.dtype))
        elif x.dtype == BOOL:
            result = reduce(of_bool, x, axes, _keep(keepdims))
        else:
            result = reduce(op, x, axes, _keep(keepdims))
        if has_initial:
            result = ufuncs.apply(ufunc, result, as_elements(initial, x.dtype))
        return finish(result, out)

    traced.__name__ = op
    return traced


max_ = function("max", "amax")(_extremum("max", np.maximum, "any"))
min_ = function("min", "amin")(_extremum("min", np.minimum, "all"))


def _logical(op: str, identity: bool) -> Callable[..., Any]:
    def traced(
        a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, *, where: Any = True
    ) -> Any:
        x = masked(array(a).astype(bool), where, identity)
        result = reduce(op, x, axis_tuple(axis, x.ndim, x), _keep(keepdims))
        return finish(result, out)

    traced.__name__ = op
    return traced


any_ = function("any")(_logical("any", False))
all_ = function("all")(_logical("all", True))


def _position(op: str) -> Callable[..., Any]:
    def traced(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = False) -> Any:
        x = array(a)
        flat = x.ravel() if axis is None else x
        if flat.ndim == 0:
            flat = flat.reshape(1)
        index = 0 if axis is None else axis_index(axis, flat.ndim, x)
        if flat.shape[index] == 0:
            raise ValueError(f"attempt to get {op} of an empty sequence")
        value = build().op(op, as_value(flat), axis=index)
        if _keep(keepdims):
            axes = axis_tuple(axis, x.ndim, x)
            value = build().reshape(value, shape=kept_shape(x.shape, axes))
        return finish_written_back(wrap(value), out)

    traced.__name__ = op
    return traced


argmax = function("argmax")(_position("argmax"))
argmin = function("argmin")(_position("argmin"))


@function("ptp")
def ptp(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False) -> Any:
    high, low = max_(a, axis=axis, keepdims=keepdims), min_(a, axis=axis, keepdims=keepdims)
    return finish(ufuncs.apply(np.subtract, high, low), out, "same_kind")


def _count(x: Tracer, axes: tuple[int, ...], where: Any, keepdims: bool) -> Any:
    """How many elements a reduction takes: an int, or per result with `where`."""
    if where is True or not given(where):
        return math.prod(x.shape[i] for i in axes)
    shape = broadcast_shape([x, operand(where)])
    mask = build().broadcast_to(as_value(operand(where), BOOL), shape)
    return reduce("sum", wrap(build().convert(mask, dtype=I64), scalar=False), axes, keepdims)


def _quotient(total: Tracer, count: Any) -> Tracer:
    """`total / count` in total's dtype; 0 / 0 is NaN."""
    if is_inexact(total.dtype):
        count = array(count).astype(total.dtype)
    return ufuncs.apply(np.divide, total, count)


def _mean_axes(axis: Any, x: Tracer, where: Any) -> tuple[int, ...]:
    """Axes of a statistic. Unlike a sum, it refuses axis=0 of a 0-d array, if it counts by shape."""
    if isinstance(axis, list):
        raise TypeError("'list' object cannot be interpreted as an integer")
    return axis_tuple(axis, x.ndim, x, strict=where is True or not given(where))


@function("mean")
def mean(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = False,
    *,
    where: Any = True,
) -> Any:
    x = array(a)
    dtype = float_dtype(x.dtype) if dtype is None else canonical(dtype)
    if is_small(dtype):  # rounded once, at the end
        return finish(mean(x, axis, F32, None, keepdims, where=where).astype(dtype), out)
    axes = _mean_axes(axis, x, where)
    total = sum_(x, axis=axes, dtype=dtype, keepdims=keepdims, where=where)
    count = _count(x, axes, where, _keep(keepdims))
    if not is_inexact(dtype):
        quotient = ufuncs.apply(np.divide, total, array(count))
        return finish(quotient.astype(dtype), out)
    return finish(_quotient(total, count), out)


@function("var")
def var(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: Any = 0,
    keepdims: Any = False,
    *,
    where: Any = True,
    mean: Any = NO_VALUE,
    correction: Any = NO_VALUE,
) -> Any:
    """Two passes, as NumPy: the mean first, then the mean of the squared deviations."""
    if given(correction):
        if ddof != 0:
            raise ValueError("ddof and correction can't be provided simultaneously.")
        ddof = correction
    x = array(a)
    sums = real_dtype(float_dtype(x.dtype)) if dtype is None else canonical(dtype)
    dtype = float_dtype(x.dtype) if dtype is None else canonical(dtype)
    if is_small(dtype):
        x = x if is_complex(x.dtype) else x.astype(F32)
        wide = var(x, axis, F32, None, ddof, keepdims, where=where, mean=mean)
        return finish(wide.astype(dtype), out)
    axes = _mean_axes(axis, x, where)
    if given(mean):
        centre: Any = mean
    else:
        total = sum_(x, axis=axes, dtype=dtype, keepdims=True, where=where)
        centre = _quotient(total, _count(x, axes, where, True)).astype(dtype)
    deviation = ufuncs.apply(np.subtract, x, centre)
    squares = absolute_square(deviation)
    total = sum_(squares, axis=axes, dtype=sums, keepdims=keepdims, where=where)
    count = _count(x, axes, where, _keep(keepdims))
    if isinstance(count, Tracer) or isinstance(ddof, Tracer):
        left = ufuncs.apply(np.maximum, ufuncs.apply(np.subtract, count, ddof), 0)
    else:
        left = max(count - ddof, 0)
    return finish(_quotient(total, left).astype(sums), out)


def absolute_square(x: Tracer) -> Tracer:
    """`|x|**2`, a real number without a root on the way."""
    if not is_complex(x.dtype):
        return ufuncs.apply(np.square, x)
    return ufuncs.apply(np.add, *(ufuncs.apply(np.square, part) for part in (x.real, x.imag)))


@function("std")
def std(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: Any = 0,
    keepdims: Any = False,
    *,
    where: Any = True,
    mean: Any = NO_VALUE,
    correction: Any = NO_VALUE,
) -> Any:
    result_kind = float_dtype(array(a).dtype) if dtype is None else canonical(dtype)
    wide = F32 if is_small(result_kind) else dtype
    options = {"where": where, "mean": mean, "correction": correction}
    spread = var(a, axis, wide, None, ddof, keepdims, **options)
    root = ufuncs.apply(np.sqrt, spread).astype(spread.dtype)
    return finish(root.astype(result_kind) if is_small(result_kind) else root, out, "same_kind")


def weights_along(x: Tracer, weights: Any, axes: tuple[int, ...] | None) -> Tracer:
    """Weights of x's shape, or one dim for each of the axes in their order, as what broadcasts to x."""
    w = array(weights)
    if w.shape == x.shape:
        return w
    if axes is None:
        raise TypeError("Axis must be specified when shapes of a and weights differ.")
    if w.shape != tuple(x.shape[i] for i in axes):
        raise ValueError(
            "Shape of weights must be consistent with shape of a along specified axis."
        )
    turned = w.transpose(tuple(sorted(range(len(axes)), key=axes.__getitem__)))
    return turned.reshape(tuple(n if i in axes else 1 for i, n in enumerate(x.shape)))


@function("average")
def average(
    a: Any, axis: Any = None, weights: Any = None, returned: bool = False, *, keepdims: Any = False
) -> Any:
    x = array(a)
    axes = axis_tuple(axis, x.ndim, x, strict=True)
    if weights is None:
        result = mean(x, axis=axes, keepdims=keepdims)
        count = result.dtype.type(_count(x, axes, True, False))
        scale: Any = wrap(build().full(result.shape, count, result.dtype))
    else:
        w = weights_along(x, weights, None if axis is None else axes)
        dtype = result_dtype(x.dtype, w.dtype, *(() if is_inexact(x.dtype) else (F64,)))
        scale = sum_(w.astype(dtype) + np.zeros(x.shape, dtype), axis=axes, keepdims=keepdims)
        check_values(
            ~(scale == 0).any(), "Weights sum to zero, can't be normalized", ZeroDivisionError
        )
        products = ufuncs.apply(np.multiply, x, w, dtype=dtype)
        result = _quotient(sum_(products, axis=axes, dtype=dtype, keepdims=keepdims), scale)
    return (result, scale) if returned else result


@function("count_nonzero")
def count_nonzero(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    count = sum_(array(a).astype(bool), axis=axis, dtype=np.int64, keepdims=keepdims)
    return as_count(count) if axis is None and not keepdims else count


_COUNTS_ARE_INTS = not isinstance(
    np.count_nonzero([1]), np.generic
)  # of Python's, before NumPy 2.3


def as_count(count: Tracer) -> Tracer:
    """A count of all that is in an array, of the class that NumPy gives it."""
    return wrap(as_value(count), "i") if _COUNTS_ARE_INTS else count


@function(
    "logsumexp",
    reference=lambda a, axis=None, keepdims=False: logsumexp_reference(a, axis, keepdims),
)
def logsumexp(a: Any, axis: Any = None, keepdims: Any = False) -> Any:
    """`log(sum(exp(a)))` without overflow; infinities and empty sums give what the limit gives.

    >>> jt.logsumexp(np.array([1000.0, 1000.0]))
    np.float64(1000.6931471805599)
    """
    x = array(a)
    x = x.astype(float_dtype(x.dtype))
    if is_small(x.dtype):
        return wrap(as_value(logsumexp(x.astype(F32), axis, keepdims), x.dtype))
    axes = axis_tuple(axis, x.ndim, x)
    top = max_(x.real, axis=axes, keepdims=True, initial=-math.inf)
    shift = ufuncs.apply(np.isfinite, top)
    zero = wrap(build().full_like(as_value(top), 0), scalar=False)
    top = wrap(build().stop_gradient(as_value(choose(shift, top, zero))), scalar=False)
    total = sum_(ufuncs.apply(np.exp, x - top), axis=axes, keepdims=keepdims)
    shape = total.shape
    return ufuncs.apply(np.add, ufuncs.apply(np.log, total), top.reshape(shape))


def logsumexp_reference(a: Any, axis: Any = None, keepdims: bool = False) -> Any:
    x = np.asarray(a)
    if not is_inexact(x.dtype):
        x = x.astype(np.float64)
    top = np.max(x.real, axis=axis, keepdims=True, initial=-math.inf)
    top = np.where(np.isfinite(top), top, np.zeros((), top.dtype))
    with np.errstate(divide="ignore"):
        total = np.log(np.sum(np.exp(x - top), axis=axis, keepdims=keepdims))
    return (total + top.reshape(total.shape))[()]


def _without_nan(x: Tracer, fill: Any) -> tuple[Tracer, Tracer | None]:
    """`x` with `fill` for NaN, and where NaN was; None if there can be none."""
    if not is_inexact(x.dtype):
        return x, None
    nan = ufuncs.apply(np.isnan, x)
    return masked(x, ~nan, fill), nan


def _nan_accumulation(name: str, plain: Callable[..., Any], identity: int) -> None:
    @functools.wraps(plain)
    def traced(a: Any, *args: Any, **kwargs: Any) -> Any:
        return plain(_without_nan(array(a), identity)[0], *args, **kwargs)

    function(name)(traced)


def _nan_extremum(name: str, plain: Callable[..., Any], fill: Callable[[DType], Any]) -> None:
    @functools.wraps(plain)
    def traced(
        a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, *args: Any, **kwargs: Any
    ) -> Any:
        x, nan = _without_nan(array(a), fill(array(a).dtype))
        result = plain(x, axis, None, keepdims, *args, **kwargs)
        if nan is not None:
            none = all_(nan, axis=axis, keepdims=_keep(keepdims))
            result = wrap(as_value(masked(result, ~none, math.nan)))
        return finish(result, out)

    function(name)(traced)


def _nan_position(name: str, plain: Callable[..., Any], fill: Callable[[DType], Any]) -> None:
    @functools.wraps(plain)
    def traced(a: Any, axis: Any = None, *args: Any, **kwargs: Any) -> Any:
        x, nan = _without_nan(array(a), fill(array(a).dtype))
        if nan is not None and nan.size:
            check_values(~all_(nan, axis=axis).any(), "All-NaN slice encountered")
        return plain(x, axis, *args, **kwargs)

    function(name)(traced)


_nan_accumulation("nansum", sum_, 0)
_nan_accumulation("nanprod", prod, 1)
_nan_extremum("nanmax", max_, lowest)
_nan_extremum("nanmin", min_, highest)
_nan_position("nanargmax", argmax, lowest)
_nan_position("nanargmin", argmin, highest)


def _numbers(a: Any, where: Any, dtype: Any) -> tuple[Tracer, Any]:
    """`a`, and `where` without the places of NaN."""
    x = array(a)
    if not is_inexact(x.dtype):
        return x, where
    if dtype is not None and not is_inexact(canonical(dtype)):
        raise TypeError("If a is inexact, then dtype must be inexact")
    numbers = ~ufuncs.apply(np.isnan, x)
    chosen = given(where) and where is not True
    return x, ufuncs.apply(np.logical_and, numbers, operand(where)) if chosen else numbers


def _check_destination(a: Any, out: Any) -> None:
    """NaN counts nothing in integers: NumPy does not let a statistic that skips it be cut off."""
    if isinstance(out, Tracer) and is_inexact(array(a).dtype) and not is_inexact(out.dtype):
        raise TypeError("If a is inexact, then out must be inexact")


@function("nanmean")
@functools.wraps(mean)
def nanmean(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, *args: Any, **kwargs: Any
) -> Any:
    _check_destination(a, out)
    x, numbers = _numbers(a, kwargs.pop("where", True), dtype)
    return mean(x, axis, dtype, out, *args, where=numbers, **kwargs)


def _nan_spread(name: str, plain: Callable[..., Any]) -> None:
    def traced(
        a: Any,
        axis: Any = None,
        dtype: Any = None,
        out: Any = None,
        ddof: Any = 0,
        keepdims: Any = False,
        *,
        where: Any = True,
        mean: Any = NO_VALUE,
        correction: Any = NO_VALUE,
    ) -> Any:
        _check_destination(a, out)
        x, numbers = _numbers(a, where, dtype)
        options = {"where": numbers, "mean": mean, "correction": correction}
        spread = plain(x, axis, dtype, None, ddof, keepdims, **options)
        if is_inexact(x.dtype):
            freedom = ddof if not given(correction) else correction
            count = _count(x, axis_tuple(axis, x.ndim, x), numbers, _keep(keepdims))
            spread = wrap(as_value(masked(spread, count > freedom, math.nan)))
        return finish(spread, out)

    function(name)(traced)


_nan_spread("nanvar", var)
_nan_spread("nanstd", std)
