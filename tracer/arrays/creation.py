"""Functions that make arrays. While tracing they make traced arrays, so that assignments into them
are traced; NumPy's own `np.zeros(n)` cannot be seen by jitney and makes a NumPy array. With NumPy's
`like=x` it can, for a traced x; here `like` changes nothing, since all that is made is traced."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from ...ir.graph import Value
from ...ir.types import F64, I64, is_float
from ..core.linear_forms import reach
from ..core.outer_reach import outer_reach
from ..core.tracers import Tracer, as_value, weak_kind, wrap, wrap_like
from ..data.layout import order_of, plain_order, resolved_order
from ..data.promotion import DType, canonical, check_python_int, result_dtype
from ..messages import errors
from ..messages.errors import complain
from ..records.arrays import made
from ..records.kinds import has_fields
from . import ufuncs
from .common import (
    array,
    broadcast_shape,
    build,
    check_device,
    check_values,
    common_dtype,
    holds_tracers,
    ints,
    kind,
    known_array,
    operand,
    shape_of,
    sizes,
)
from .movement import broadcast_to, concatenate, expand_dims, moveaxis
from .python_integers import check_stored
from .table import function


def _dtype(dtype: Any, default: DType = F64) -> DType:
    if dtype is not None and has_fields(dtype := np.dtype(dtype)):
        return dtype
    return default if dtype is None else canonical(dtype)


MOST = 1 << 26  # elements of an array that is made for a length that is a value

# Makes an array of a padded one and its lengths. `indexing.bounded` lies above, and puts it here.
COUNTED: list[Callable[[Tracer, dict[int, Any]], Any]] = []


def sized(shape: Any, make: Callable[[tuple[int, ...]], Tracer]) -> Any:
    """An array of a shape, in which there may be traced sizes that have a bound."""
    items = list(shape) if isinstance(shape, (list, tuple)) else [shape]
    lengths = {k: n for k, n in enumerate(items) if bound_of(n) is not None}
    if not lengths:
        return make(sizes(shape))
    padded = sizes([bound_of(n) if k in lengths else n for k, n in enumerate(items)])
    for n in lengths.values():
        if reach(n)[0] < 0:
            check_values(n >= 0, "negative dimensions are not allowed")
    return COUNTED[0](make(padded), lengths)


@function("broadcast_to")
def _broadcast_to(array_: Any, shape: Any, subok: bool = False) -> Any:
    items = list(shape) if isinstance(shape, (list, tuple)) else [shape]
    if all(bound_of(n) is None for n in items):
        return broadcast_to(array_, shape)
    x = array(array_)
    for have, wanted in zip(x.shape[::-1], items[::-1], strict=False):
        if have != 1 and bound_of(wanted) is not None:
            complain(
                errors.DynamicShapeError,
                f"an axis of {have} elements is broadcast to a length that is a value",
                "broadcast an axis of length 1.",
                operands={"array": x},
            )
    return sized(items, lambda padded: broadcast_to(x, padded))


def bound_of(n: Any) -> int | None:
    """The most that a traced size can be; None where it is known, or has no bound."""
    if (
        not isinstance(n, Tracer)
        or n.shape
        or n.dtype.kind not in "iu"
        or known_array(n) is not None
    ):
        return None
    most = max(reach(n)[1], 0)
    if most > MOST:
        found = outer_reach(n, MOST)
        most = most if found is None else max(found[1], 0)
    return most if most <= MOST else None


def filled(shape: Any, value: Any, dtype: DType, order: str = "C") -> Any:
    if has_fields(dtype):
        whole = [*shape] if isinstance(shape, (tuple, list)) else [shape]
        return made(dtype, lambda base, own: filled([*whole, *own], value, base, order))

    def make(shape: tuple[int, ...]) -> Tracer:
        return wrap_like(build().full(shape, value, dtype), (), scalar=False, order=order)

    return sized(shape, make)


def like(x: Tracer, value: Value, order: Any = "K") -> Tracer:
    """`value` in the memory order of `x`, as `np.empty_like` chooses it."""
    models = (x,) if len(value.shape) == x.ndim else ()
    order = resolved_order(order_of(order, "K"), (x.shape, x.element_strides))
    return wrap_like(value, models, scalar=False, order=order, copy=True)


def _constant(name: str, value: int) -> Callable[..., Tracer]:
    def traced(
        shape: Any, dtype: Any = None, order: str = "C", *, device: Any = None, like: Any = None
    ) -> Tracer:
        check_device(name, device)
        return filled(shape, value, _dtype(dtype), plain_order(order))

    def traced_like(
        a: Any,
        dtype: Any = None,
        order: str = "K",
        subok: bool = True,
        shape: Any = None,
        *,
        device: Any = None,
    ) -> Tracer:
        check_device(name, device)
        x = array(a)
        new = x.shape if shape is None else sizes(shape)
        return like(x, build().full(new, value, _dtype(dtype, x.dtype)), order)

    function(name, creates=True)(traced)
    if name != "empty":
        function(f"{name}_like")(traced_like)
    return traced_like


_constant("zeros", 0)
_constant("ones", 1)
_empty_like = _constant("empty", 0)


@function("empty_like")
def empty_like(
    prototype: Any,  # so NumPy calls it here, and takes it by that name before 2.4
    dtype: Any = None,
    order: str = "K",
    subok: bool = True,
    shape: Any = None,
    *,
    device: Any = None,
) -> Tracer:
    return _empty_like(prototype, dtype, order, subok, shape, device=device)


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
    check_device("full", device)
    fill = array(fill_value)
    dtype = fill.dtype if dtype is None else canonical(dtype)
    if type(fill_value) is int:
        check_python_int(fill_value, dtype)
    elif weak_kind(fill_value) == "i":
        check_stored(fill_value, dtype)
    order = plain_order(order)

    def make(shape: tuple[int, ...]) -> Tracer:
        value = build().broadcast_to(as_value(fill, dtype), shape)
        return wrap_like(value, (), scalar=False, order=order)

    return sized(shape, make)


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
    new = x.shape if shape is None else shape
    made = full(new, fill_value, _dtype(dtype, x.dtype), device=device)
    return like(x, as_value(made), order)


def known_number(x: Any) -> Any:
    """The number that a traced one is known to be; else `x`."""
    constant = known_array(x) if isinstance(x, Tracer) and not x.shape else None
    return x if constant is None else constant[()]


def _steps(start: Any, stop: Any, step: Any, dtype: Any) -> Any:
    """A range of which how long it is, but no more, is known for this call; DynamicShapeError."""
    distance = ufuncs.apply(np.subtract, stop, start)
    count = ufuncs.apply(np.ceil, ufuncs.apply(np.true_divide, distance, step)).astype(I64)
    length = ufuncs.apply(np.maximum, count, 0)
    known = known_array(length)
    if known is None:
        complain(
            errors.DynamicShapeError,
            "the length of arange would depend on traced values",
            "use numbers that are known while tracing (shapes, static arguments), or scale a "
            "static range: start + step * jt.arange(n).",
            asks=[length],
        )
    dtype = common_dtype(start, stop, step) if dtype is None else canonical(dtype)
    index = wrap(build().iota(shape=(int(known),), dtype=dtype, axis=0), scalar=False)
    each = ufuncs.apply(np.subtract, ufuncs.apply(np.add, start, step), start)
    return ufuncs.apply(np.add, ufuncs.apply(np.multiply, index, each), start).astype(dtype)


def _counted_range(start: Any, stop: Any, step: Any, dtype: Any) -> Any:
    """A range of integers up to a traced one that has a bound."""
    ends = [x for x in (start, stop) if isinstance(x, Tracer)]
    if isinstance(step, Tracer) or step != 1 or any(x.dtype.kind not in "iu" for x in ends):
        return None
    if not all(isinstance(x, (Tracer, int, np.integer)) for x in (start, stop)):
        return None
    length = ufuncs.apply(np.maximum, ufuncs.apply(np.subtract, stop, start), 0)
    most = bound_of(length)
    if most is None:
        return None
    dtype = common_dtype(start, stop) if dtype is None else canonical(dtype)
    dtype = I64 if not isinstance(dtype, np.dtype) else dtype
    index = wrap(build().iota(shape=(most,), dtype=dtype, axis=0), scalar=False)
    return COUNTED[0](ufuncs.apply(np.add, index, start).astype(dtype), {0: length})


@function("arange", creates=True)
def arange(
    *args: Any, dtype: Any = None, device: Any = None, like: Any = None, **named: Any
) -> Tracer:
    check_device("arange", device)
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
    start, stop, step = map(known_number, (start, stop, step))
    if holds_tracers((start, stop, step)):
        counted = _counted_range(start, stop, step, dtype)
        if counted is not None:
            return counted
        return _steps(start, stop, step, dtype)
    values = np.arange(start, stop, step, dtype=dtype)
    out_dtype = canonical(values.dtype)
    n = len(values)
    b = build()
    if out_dtype.kind in "iu" and n and float(start).is_integer() and float(step).is_integer():
        value = b.iota(shape=(n,), dtype=out_dtype, axis=0)
        if int(step) != 1:
            value = b.mul(value, b.full((n,), np.int64(int(step)).astype(out_dtype), out_dtype))
        if int(start) != 0:
            value = b.add(value, b.full((n,), np.int64(int(start)).astype(out_dtype), out_dtype))
        return wrap(value, scalar=False)
    if n <= 1024 or not is_float(out_dtype):
        return wrap(b.const(values), scalar=False)
    index = b.iota(shape=(n,), dtype=out_dtype, axis=0)
    # NumPy fills with start + i * (next - start), where next is start + step, rounded.
    delta = values[1] - values[0]
    scaled = b.mul(index, b.full((n,), delta, out_dtype))
    return wrap(b.add(b.full((n,), values[0], out_dtype), scaled), scalar=False)


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
    check_device("linspace", device)
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
    promoted = result_dtype(kind(operand(start)), kind(operand(stop)), weak_float)
    delta = ufuncs.apply(np.subtract, high, low).astype(promoted)
    index = wrap(build().iota(shape=(num,), dtype=promoted, axis=0), scalar=False)
    index = index.reshape((num,) + (1,) * delta.ndim)
    if div > 0:
        step = delta / div
        y = ufuncs.apply(np.add, index * step, low.astype(promoted))
    else:
        step = math.nan
        y = ufuncs.apply(np.add, index * delta, low.astype(promoted))
    if endpoint and num > 1:
        y[-1] = high.astype(promoted)
    if whole:
        y = ufuncs.apply(np.floor, y)
    y = y if axis == 0 else moveaxis(y, 0, axis)
    y = y.astype(promoted if dtype is None else canonical(dtype))
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
    promoted = result_dtype(F64, *(e.dtype for e in ends))
    ends = [e.astype(promoted) for e in ends]
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
    check_device("eye", device)
    made = _compare_grid(N, M, k, dtype, "eq")
    if not isinstance(made, Tracer):
        return made
    return wrap_like(as_value(made), (), order=plain_order(order))


@function("identity", creates=True)
def identity(n: Any, dtype: Any = None, *, like: Any = None) -> Tracer:
    return _compare_grid(n, None, 0, dtype, "eq")


@function("tri", creates=True)
def tri(N: Any, M: Any = None, k: Any = 0, dtype: Any = float, *, like: Any = None) -> Tracer:
    return _compare_grid(N, M, k, dtype, "le")


def _compare_grid(rows: Any, columns: Any, k: Any, dtype: Any, op: str) -> Tracer:
    """1 where column `op` row + k."""
    dtype, b = _dtype(dtype), build()

    def make(shape: tuple[int, ...]) -> Tracer:
        row, column = (b.iota(shape=shape, dtype=I64, axis=i) for i in (0, 1))
        offset = as_value(_offset(k))
        mask = b.op(op, column, b.add(row, b.broadcast_to(offset, shape)))
        return wrap(mask if dtype == mask.dtype else b.convert(mask, dtype=dtype), scalar=False)

    return sized((rows, rows if columns is None else columns), make)


def _offset(k: Any) -> Tracer:
    """Which diagonal: an integer, which may be traced."""
    if not isinstance(k, Tracer):
        k = operator.index(k)
    offset = array(k)
    if offset.ndim or offset.dtype.kind not in "iu":
        raise TypeError("k must be an integer")
    return offset.astype(I64)


@function("indices", creates=True)
def indices(dimensions: Any, dtype: Any = int, sparse: bool = False) -> Any:
    shape = sizes(dimensions)
    b = build()
    rank = len(shape)
    index_dtype = canonical(dtype)
    if sparse:
        grids = [(1,) * i + (n,) + (1,) * (rank - 1 - i) for i, n in enumerate(shape)]
        return tuple(
            wrap(b.iota(shape=g, dtype=index_dtype, axis=i), scalar=False)
            for i, g in enumerate(grids)
        )
    if not rank:
        return filled((0,), 0, index_dtype)
    parts = [b.iota(shape=(1, *shape), dtype=index_dtype, axis=i + 1) for i in range(rank)]
    return wrap(b.concat(*parts, axis=0) if rank > 1 else parts[0], scalar=False)


@function("vander")
def vander(x: Any, N: Any = None, increasing: bool = False) -> Tracer:
    a = array(x)
    if a.ndim != 1:
        raise ValueError("x must be a one-dimensional array or sequence.")
    count = len(a) if N is None else sizes(N)[0]
    dtype = result_dtype(a.dtype, I64)
    column = a.astype(dtype)[:, None]
    powers = [filled((len(a), 1), 1, dtype)] if count else []
    while len(powers) < count:
        powers.append(powers[-1] * column)
    if not powers:
        return filled((len(a), 0), 0, dtype)
    return concatenate(powers if increasing else powers[::-1], 1)


def _static(name: str) -> Callable[..., Any]:
    """Functions of shapes and dtypes only: NumPy's own, told what the tracer has."""
    numpy_function = getattr(np, name)

    def traced(*args: Any, **named: Any) -> Any:
        options = {key: _stand_in(value) for key, value in named.items()}
        return numpy_function(*(_stand_in(a) for a in args), **options)

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
