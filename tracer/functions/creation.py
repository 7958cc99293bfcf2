"""Functions that make arrays. While tracing they make traced arrays, so that assignments into them
are traced; NumPy's own `np.zeros(n)` cannot be seen by jitney and makes a NumPy array. With NumPy's
`like=x` it can, for a traced x; here `like` changes nothing, since all that is made is traced."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from ...ir.types import F64, I64, is_float, is_inexact
from .. import errors
from ..core import Tracer, as_value, wrap, wrap_like
from ..errors import complain
from ..foreign import borrow, is_foreign
from ..promotion import DType, canonical, check_python_int, result_dtype
from . import ufuncs
from .common import (
    array,
    broadcast_shape,
    build,
    check_values,
    holds_tracers,
    ints,
    kind,
    known_array,
    operand,
    shape_of,
)
from .movement import expand_dims, moveaxis
from .table import function, refuse_option


def _options(name: str, **options: Any) -> None:
    """Accept the options that change nothing here; refuse the others."""
    for option, value in options.items():
        plain = option == "order" and value in ("C", "K", "A", None)
        if not plain and value is not None and value not in ("cpu",):
            refuse_option(name, **{option: value})


def _dtype(dtype: Any, default: DType = F64) -> DType:
    return default if dtype is None else canonical(dtype)


def filled(shape: Any, value: Any, dtype: DType) -> Tracer:
    return wrap(build().full(ints(shape), value, dtype), scalar=False)


def _constant(name: str, value: int) -> None:
    def traced(
        shape: Any, dtype: Any = None, order: str = "C", *, device: Any = None, like: Any = None
    ) -> Tracer:
        _options(name, order=None if order == "F" else order, device=device)
        return filled(shape, value, _dtype(dtype))

    def like(
        a: Any,
        dtype: Any = None,
        order: str = "K",
        subok: bool = True,
        shape: Any = None,
        *,
        device: Any = None,
    ) -> Tracer:
        _options(name, device=device)
        x = array(a)
        return filled(x.shape if shape is None else shape, value, _dtype(dtype, x.dtype))

    function(name, creates=True)(traced)
    function(f"{name}_like")(like)


_constant("zeros", 0)
_constant("ones", 1)
_constant("empty", 0)


@function("full", creates=True)
def full(
    shape: Any,
    fill_value: Any,
    dtype: Any = None,
    order: str = "C",
    *,
    device: Any = None,
    like: Any = None,
) -> Tracer:
    _options("full", order=None if order == "F" else order, device=device)
    fill = array(fill_value)
    dtype = fill.dtype if dtype is None else canonical(dtype)
    if type(fill_value) is int:
        check_python_int(fill_value, dtype)
    b = build()
    return wrap(b.broadcast_to(as_value(fill, dtype), ints(shape)), scalar=False)


@function("full_like")
def full_like(
    a: Any,
    fill_value: Any,
    dtype: Any = None,
    order: str = "K",
    subok: bool = True,
    shape: Any = None,
    *,
    device: Any = None,
) -> Tracer:
    x = array(a)
    return full(
        x.shape if shape is None else shape, fill_value, _dtype(dtype, x.dtype), device=device
    )


@function("array", creates=True)
def array_(
    object: Any,
    dtype: Any = None,
    *,
    copy: bool | None = True,
    order: str = "K",
    subok: bool = False,
    ndmin: int = 0,
    ndmax: int = 0,
    like: Any = None,
) -> Tracer:
    x = array(object, dtype)
    if dtype is not None:
        x = x.astype(dtype, copy=False)
    if copy is False and (x is not object or x.scalar):
        raise ValueError("Unable to avoid copy while creating an array as requested.")
    if ndmin > x.ndim:
        x = x.reshape((1,) * (ndmin - x.ndim) + x.shape)
    return _fresh(x) if copy else x


def _fresh(x: Tracer) -> Tracer:
    return wrap_like(as_value(x), (x,), scalar=False)


def _asarray(
    a: Any, dtype: Any = None, order: Any = None, *, device: Any = None, copy: Any = None
) -> Any:
    if is_foreign(a):
        from ..devices import own_device, put

        there = put(a, own_device(a))
        there = there if dtype is None else there.astype(dtype)
        return there.client.copy(there) if copy else there
    if hasattr(a, "__dlpack__"):  # of a library that may know nothing of NumPy
        found = borrow(a)
        a = a if found is None else found
    return np.asarray(a, dtype, order, device=device, copy=copy)


_asarray.__doc__ = np.asarray.__doc__


@function("asarray", reference=_asarray, creates=True)
def asarray(
    a: Any,
    dtype: Any = None,
    order: Any = None,
    *,
    device: Any = None,
    copy: Any = None,
    like: Any = None,
) -> Tracer:
    x = array(a, dtype)
    if dtype is not None:
        x = x.astype(dtype, copy=False)
    if copy or (x.scalar and x.ndim == 0) or not isinstance(a, Tracer):
        return _fresh(x)
    return x


function("asanyarray", creates=True)(asarray)


@function("asarray_chkfinite", creates=True)
def asarray_chkfinite(a: Any, dtype: Any = None, order: Any = None) -> Tracer:
    x = asarray(a, dtype, order)
    if is_inexact(x.dtype):
        finite = ufuncs.apply(np.isfinite, x).all()
        check_values(finite, "array must not contain infs or NaNs")
    return x


@function("ascontiguousarray", "asfortranarray", creates=True)
def ascontiguousarray(a: Any, dtype: Any = None, *, like: Any = None) -> Tracer:
    """Elements have no order in memory while they are traced; what counts is that there is a dim."""
    x = asarray(a, dtype)
    return x if x.ndim else x.reshape(1)


@function("require", creates=True)
def require(a: Any, dtype: Any = None, requirements: Any = None, *, like: Any = None) -> Tracer:
    x = asarray(a, dtype)
    wanted = {requirements} if isinstance(requirements, str) else set(requirements or ())
    owns = {"W", "WRITEABLE", "O", "OWNDATA"} & {str(flag).upper() for flag in wanted}
    return _fresh(x) if owns and (x._view is not None or not x.writeable) else x


@function("copy")
def copy(a: Any, order: str = "K", subok: bool = False) -> Tracer:
    return _fresh(array(a))


@function("astype")
def astype(x: Any, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Tracer:
    return array(x).astype(dtype, copy=copy)


def _if_known(x: Any) -> Any:
    """The number that a traced one is known to be; else `x`."""
    known = known_array(x) if isinstance(x, Tracer) else None
    return x if known is None else known[()]


@function("arange", creates=True)
def arange(
    *args: Any, dtype: Any = None, device: Any = None, like: Any = None, **named: Any
) -> Tracer:
    _options("arange", device=device)
    names = ("start", "stop", "step")
    if len(args) == 4:
        args, dtype = args[:3], args[-1]
    if len(args) == 1 and "stop" not in named:
        named["stop"] = args[0]
    else:
        named.update(zip(names, args, strict=False))
    start, stop, step = named.pop("start", 0), named.pop("stop", None), named.pop("step", 1)
    if named:
        raise TypeError(f"arange() got an unexpected keyword argument {next(iter(named))!r}")
    start, step = 0 if start is None else start, 1 if step is None else step
    if stop is None:
        start, stop = 0, start
    start, stop, step = map(_if_known, (start, stop, step))
    if holds_tracers((start, stop, step)):
        complain(
            errors.DynamicShapeError,
            "the length of arange would depend on traced values",
            "use numbers that are known while tracing (shapes, static arguments), or scale a "
            "static range: start + step * jt.arange(n).",
        )
    known = np.arange(start, stop, step, dtype=dtype)
    found = canonical(known.dtype)
    n = len(known)
    b = build()
    if found.kind in "iu" and n and float(start).is_integer() and float(step).is_integer():
        value = b.iota(shape=(n,), dtype=found, axis=0)
        if int(step) != 1:
            value = b.mul(value, b.full((n,), np.int64(int(step)).astype(found), found))
        if int(start) != 0:
            value = b.add(value, b.full((n,), np.int64(int(start)).astype(found), found))
        return wrap(value, scalar=False)
    if n <= 1024 or not is_float(found):
        return wrap(b.const(known), scalar=False)
    index = b.iota(shape=(n,), dtype=found, axis=0)
    # NumPy fills with start + i * (next - start), where next is start + step, rounded.
    delta = known[1] - known[0]
    scaled = b.mul(index, b.full((n,), delta, found))
    return wrap(b.add(b.full((n,), known[0], found), scaled), scalar=False)


@function("linspace", creates=True)
def linspace(
    start: Any,
    stop: Any,
    num: Any = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Any = None,
    axis: int = 0,
    *,
    device: Any = None,
) -> Any:
    _options("linspace", device=device)
    num = ints(num)[0]
    if num < 0:
        raise ValueError(f"Number of samples, {num}, must be non-negative.")
    div = num - 1 if endpoint else num
    whole = dtype is not None and canonical(dtype).kind in "iu"
    if not holds_tracers((start, stop)) and num <= 1024:
        made, step = np.linspace(start, stop, num, endpoint, retstep=True, dtype=dtype, axis=axis)
        result = wrap(build().const(made), scalar=False)
        return (result, step) if retstep else result
    low = ufuncs.apply(np.multiply, start, 1.0)
    high = ufuncs.apply(np.multiply, stop, 1.0)
    weak_float: Any = float
    found = result_dtype(kind(operand(start)), kind(operand(stop)), weak_float)
    delta = ufuncs.apply(np.subtract, high, low).astype(found)
    index = wrap(build().iota(shape=(num,), dtype=found, axis=0), scalar=False)
    index = index.reshape((num,) + (1,) * delta.ndim)
    if div > 0:
        step = delta / div
        y = ufuncs.apply(np.add, index * step, low.astype(found))
    else:
        step = math.nan
        y = ufuncs.apply(np.add, index * delta, low.astype(found))
    if endpoint and num > 1:
        y[-1] = high.astype(found)
    if whole:
        y = ufuncs.apply(np.floor, y)
    y = y if axis == 0 else moveaxis(y, 0, axis)
    y = y.astype(found if dtype is None else canonical(dtype))
    return (y, step) if retstep else y


@function("logspace", creates=True)
def logspace(
    start: Any,
    stop: Any,
    num: Any = 50,
    endpoint: bool = True,
    base: Any = 10.0,
    dtype: Any = None,
    axis: int = 0,
) -> Tracer:
    if shape_of(base):  # broadcasts with the ends, and then has an axis for the numbers between
        rank = len(broadcast_shape([operand(x) for x in (start, stop, base)]))
        ends = [array(x) for x in (start, stop, base)]
        start, stop, base = (x.reshape((1,) * (rank - x.ndim) + x.shape) for x in ends)
        base = expand_dims(base, axis)
    y = ufuncs.apply(np.power, base, linspace(start, stop, num, endpoint, axis=axis))
    return y if dtype is None else y.astype(dtype)


@function("geomspace", creates=True)
def geomspace(
    start: Any, stop: Any, num: Any = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0
) -> Tracer:
    if not holds_tracers((start, stop)):
        made = np.geomspace(start, stop, num, endpoint, dtype, axis)
        return wrap(build().const(made), scalar=False)
    ends = [array(x) for x in (start, stop)]
    found = result_dtype(F64, *(e.dtype for e in ends))
    ends = [e.astype(found) for e in ends]
    zero = (ends[0] == 0).any() | (ends[1] == 0).any()
    check_values(~zero, "Geometric sequence cannot include zero")
    sign = ufuncs.apply(np.sign, ends[0])
    # Along the spiral that starts in start's direction; the ends are as given.
    first, last = (e / sign for e in ends)
    y = logspace(ufuncs.apply(np.log10, first), ufuncs.apply(np.log10, last), num, endpoint)
    if len(y):
        y[0] = first
    if len(y) > 1 and endpoint:
        y[-1] = last
    y = sign * y
    y = y if axis == 0 else moveaxis(y, 0, axis)
    return y if dtype is None else y.astype(dtype)


@function("eye", creates=True)
def eye(
    N: Any,
    M: Any = None,
    k: Any = 0,
    dtype: Any = float,
    order: str = "C",
    *,
    device: Any = None,
    like: Any = None,
) -> Tracer:
    _options("eye", device=device)
    return _compare_grid(N, M, k, dtype, "eq")


@function("identity", creates=True)
def identity(n: Any, dtype: Any = None, *, like: Any = None) -> Tracer:
    return _compare_grid(n, None, 0, dtype, "eq")


@function("tri", creates=True)
def tri(N: Any, M: Any = None, k: Any = 0, dtype: Any = float, *, like: Any = None) -> Tracer:
    return _compare_grid(N, M, k, dtype, "le")


def _compare_grid(rows: Any, columns: Any, k: Any, dtype: Any, op: str) -> Tracer:
    """1 where column `op` row + k."""
    (n,) = ints(rows)
    m = n if columns is None else ints(columns)[0]
    b = build()
    shape = (n, m)
    row, column = (b.iota(shape=shape, dtype=I64, axis=i) for i in (0, 1))
    offset = as_value(_offset(k))
    mask = b.op(op, column, b.add(row, b.broadcast_to(offset, shape)))
    dtype = _dtype(dtype)
    return wrap(mask if dtype == mask.dtype else b.convert(mask, dtype=dtype), scalar=False)


def _offset(k: Any) -> Tracer:
    """Which diagonal: an integer, which may be traced."""
    if not isinstance(k, Tracer):
        k = operator.index(k)
    found = array(k)
    if found.ndim or found.dtype.kind not in "iu":
        raise TypeError("k must be an integer")
    return found.astype(I64)


@function("indices", creates=True)
def indices(dimensions: Any, dtype: Any = int, sparse: bool = False) -> Any:
    shape = ints(dimensions)
    b = build()
    rank = len(shape)
    found = canonical(dtype)
    if sparse:
        grids = [(1,) * i + (n,) + (1,) * (rank - 1 - i) for i, n in enumerate(shape)]
        return tuple(
            wrap(b.iota(shape=g, dtype=found, axis=i), scalar=False) for i, g in enumerate(grids)
        )
    if not rank:
        return filled((0,), 0, found)
    parts = [b.iota(shape=(1, *shape), dtype=found, axis=i + 1) for i in range(rank)]
    return wrap(b.concat(*parts, axis=0) if rank > 1 else parts[0], scalar=False)


@function("vander")
def vander(x: Any, N: Any = None, increasing: bool = False) -> Tracer:
    a = array(x)
    if a.ndim != 1:
        raise ValueError("x must be a one-dimensional array or sequence.")
    count = len(a) if N is None else ints(N)[0]
    dtype = result_dtype(a.dtype, I64)
    column = a.astype(dtype)[:, None]
    powers = [filled((len(a), 1), 1, dtype)] if count else []
    while len(powers) < count:
        powers.append(powers[-1] * column)
    from .movement import concatenate

    if not powers:
        return filled((len(a), 0), 0, dtype)
    return concatenate(powers if increasing else powers[::-1], 1)


def _static(name: str) -> Callable[..., Any]:
    """Functions of shapes and dtypes only: NumPy's own, told what the tracer has."""
    numpy_function = getattr(np, name)

    def traced(*args: Any, **named: Any) -> Any:
        known = {key: _stand_in(value) for key, value in named.items()}
        return numpy_function(*(_stand_in(a) for a in args), **known)

    function(name)(traced)
    return traced


def _stand_in(x: Any) -> Any:
    if isinstance(x, Tracer):
        if x.weak is not None:
            return x.dtype.type(0).item()
        return np.broadcast_to(np.zeros((), x.dtype), x.shape)
    return x


for _name in ("shape", "ndim", "size", "result_type", "iterable"):
    _static(_name)


@function("isscalar")
def isscalar(element: Any) -> bool:
    return element.scalar if isinstance(element, Tracer) else np.isscalar(element)


_static("can_cast")
