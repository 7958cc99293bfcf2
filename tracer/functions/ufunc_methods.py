"""The methods of ufuncs over tracers: reduce, accumulate, reduceat, outer, at.

What the graph has an op for is that op. The rest goes in NumPy's order of application, as a scan over
the axis, also for ufuncs that are neither commutative nor associative; only reductions over several
axes, which NumPy allows for those whose order does not matter, are cut in halves.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np

from ...ir.types import BOOL, F32, I64, is_complex, is_small
from ..arrays.common import (
    NO_VALUE,
    array,
    as_elements,
    axis_tuple,
    broadcast_shape,
    build,
    finish,
    given,
    reduced,
    static_array,
)
from ..arrays.table import FUNCTIONS, ArrayFunction
from ..arrays.ufuncs import apply, call, loop_dtypes
from ..control.control import while_loop
from ..control.scans import scan
from ..core.tracers import Tracer, as_value, wrap, wrap_like
from ..data.promotion import DType, NoLoop, ufunc_dtypes
from ..indexing.indexing import update, update_each
from ..messages import errors
from ..messages.errors import complain
from .selection import destination

_REDUCTIONS = {
    "add": "sum",
    "multiply": "prod",
    "maximum": "max",
    "minimum": "min",
    "logical_and": "all",
    "logical_or": "any",
    "fmax": "nanmax",
    "fmin": "nanmin",
}
_SCANS = {"add": "cumsum", "multiply": "cumprod", "maximum": "cummax", "minimum": "cummin"}
_LOGICAL = frozenset("logical_and logical_or logical_xor".split())
_ARITHMETIC = frozenset("add subtract multiply divide".split())
_FEW = 4  # steps that are written out instead of looped over


def method(ufunc: np.ufunc, name: str, *inputs: Any, **kwargs: Any) -> Any:
    """`getattr(ufunc, name)(*inputs, **kwargs)` over tracers."""
    if name == "__call__":
        return call(ufunc, *inputs, **kwargs)
    if name != "at":
        if ufunc.nin != 2:
            raise ValueError(f"{_KINDS.get(name, name)} only supported for binary functions")
        if ufunc.nout != 1 and name != "outer":
            raise ValueError(f"{name} only supported for functions returning a single value")
    return _METHODS[name](ufunc, *inputs, **kwargs)


_KINDS = {"outer": "outer product"}


def attach_methods(public: Callable[..., Any], entry: ArrayFunction) -> None:
    """Give a public ufunc its methods: `jt.add.reduce(x)`, `jt.add.outer(x, y)`."""
    ufunc = entry.numpy
    assert isinstance(ufunc, np.ufunc)
    for name in ("reduce", "accumulate", "outer", "at", "reduceat"):
        made = ArrayFunction(
            f"{entry.name}.{name}", partial(method, ufunc, name), getattr(ufunc, name), None
        )
        setattr(public, name, made)


def _outer(ufunc: np.ufunc, a: Any, b: Any, /, **kwargs: Any) -> Any:
    left, right = array(a), array(b)
    return call(ufunc, left.reshape(left.shape + (1,) * right.ndim), right, **kwargs)


# What the reducing methods share


def _loop_dtypes(ufunc: np.ufunc, x: Tracer, dtype: Any) -> tuple[DType, DType]:
    """The dtypes of the result and of the elements in a reduction's loop."""
    try:
        wanted = None if dtype is None else np.dtype(dtype)
        dtypes = ufunc_dtypes(ufunc, (x.dtype,), wanted, reduction=True)
    except TypeError as error:
        remedy = "convert the array with .astype(dtype), or choose the loop with dtype=."
        complain(
            errors.DTypeError,
            str(error),
            error.remedy if isinstance(error, NoLoop) else remedy,
            operands={"array": x},
            cause=error,
        )
    return dtypes[-1], dtypes[1]


def _check_equal(ufunc: np.ufunc, how: str, result: DType, element: DType) -> None:
    """NumPy reduces with ldexp, whose operands differ, but does no more with it."""
    if result != element and ufunc.__name__ not in _LOGICAL:
        raise TypeError(
            f"the resolved dtypes are not compatible with {ufunc.__name__}.{how}: {result} and "
            f"{element}"
        )


def _one_axis(axis: Any, x: Tracer, how: str) -> int:
    """The axis of a method that has one; None and tuples are for arrays where they stand for one."""
    axes = axis_tuple(axis, x.ndim, x)
    if len(axes) != 1:
        raise ValueError(f"{how} does not allow multiple axes")
    return axes[0]


def _step(ufunc: np.ufunc, dtype: DType) -> Callable[[Any, Any], Any]:
    """`ufunc` of an accumulator of `dtype` and an element."""
    return lambda acc, element: apply(ufunc, acc, element).astype(dtype)


def _sole(out: Any) -> Any:
    return out[0] if isinstance(out, tuple) else out


@cache
def _reorderable(ufunc: np.ufunc) -> bool:
    """Whether NumPy reduces several axes with it."""
    for dtype in (np.int64, np.bool_):
        try:
            ufunc.reduce(np.ones((1, 1), dtype), axis=(0, 1))
        except TypeError:
            continue
        except ValueError:
            return False
        return True
    return False


def _identity(ufunc: np.ufunc, dtype: DType) -> Any:
    """The identity of a reduction, or None: extrema have one, which NumPy does not use."""
    identity = ufunc.identity
    return None if identity is None else np.asarray(identity).astype(dtype)[()]


# reduce


def _reduce(
    ufunc: np.ufunc,
    a: Any,
    axis: Any = 0,
    dtype: Any = None,
    out: Any = None,
    keepdims: bool = False,
    initial: Any = NO_VALUE,
    where: Any = True,
) -> Any:
    name, x, out = ufunc.__name__, array(a), _sole(out)
    axes = tuple(sorted(axis_tuple(axis, x.ndim, x)))
    result_dtype, element_dtype = _loop_dtypes(ufunc, x, dtype)
    if len(axes) > 1 and not _reorderable(ufunc):
        raise ValueError(
            f"reduction operation {name!r} is not reorderable, so at most one axis may be specified"
        )
    has_initial = given(initial) and initial is not None
    if given(initial) and initial is None and any(x.shape[i] == 0 for i in axes):
        raise ValueError(f"zero-size array to reduction operation {name} which has no identity")
    if name in _REDUCTIONS and not (name in _LOGICAL and (has_initial or dtype is not None)):
        options: dict[str, Any] = {"axis": axes, "out": out, "keepdims": keepdims, "where": where}
        if has_initial:
            options["initial"] = initial
        if name in ("add", "multiply"):
            options["dtype"] = dtype
        elif dtype is not None:
            x = x.astype(dtype)
        return FUNCTIONS[_REDUCTIONS[name]].traced(x, **options)
    if is_small(result_dtype) and name in _ARITHMETIC:  # rounded once, at the end
        wide = _reduce(ufunc, x.astype(F32), axes, F32, None, keepdims, initial, where)
        return finish(wide.astype(result_dtype), out)
    elements = x.astype(BOOL if name in _LOGICAL else element_dtype)
    acc, mask = _start(ufunc, result_dtype, initial if has_initial else None, where, elements)
    if mask is not None:
        elements = _broadcast(elements, broadcast_shape([elements, mask]))
    if not axes:
        result = (
            elements if acc is None else _folded(ufunc, elements[None], acc, mask, result_dtype)
        )
    elif mask is None and _reorderable(ufunc):
        result = _halved(ufunc, elements, axes, acc)
    else:
        picked = None if mask is None else _rows(mask, axes)
        result = _folded(ufunc, _rows(elements, axes), acc, picked, result_dtype)
    return finish(reduced(as_value(result, result_dtype), x, axes, keepdims), out)


def _start(
    ufunc: np.ufunc, dtype: DType, initial: Any, where: Any, x: Tracer
) -> tuple[Any, Tracer | None]:
    """What a reduction starts from (None: its first element), and the mask of its elements."""
    identity = _identity(ufunc, dtype)
    start = identity if initial is None else as_elements(initial, dtype)
    if where is True:
        return start, None
    if start is None:
        raise ValueError(
            f"reduction operation '{ufunc.__name__}' does not have an identity, so to use a where "
            "mask one has to specify 'initial'"
        )
    return start, _broadcast(array(where).astype(BOOL), x.shape)


def _broadcast(x: Tracer, shape: tuple[int, ...]) -> Tracer:
    return wrap(build().broadcast_to(as_value(x), shape), scalar=False)


def _rows(x: Tracer, axes: tuple[int, ...]) -> Tracer:
    """`x` with the elements along `axes` as its first axis."""
    rest = [i for i in range(x.ndim) if i not in axes]
    shape = (-1, *(x.shape[i] for i in rest)) if 0 not in x.shape else None
    if shape is None:
        shape = (int(np.prod([x.shape[i] for i in axes])), *(x.shape[i] for i in rest))
    return x.transpose((*axes, *rest)).reshape(shape)


def _folded(ufunc: np.ufunc, rows: Tracer, acc: Any, mask: Tracer | None, dtype: DType) -> Any:
    """`ufunc(...ufunc(ufunc(acc, rows[0]), rows[1])...)`, over the rows that the mask has."""
    if acc is None:
        if not len(rows):
            raise ValueError(
                f"zero-size array to reduction operation {ufunc.__name__} which has no identity"
            )
        acc, rows = rows[0], rows[1:]
    acc = _broadcast(array(acc).astype(dtype), rows.shape[1:])
    step = _step(ufunc, dtype)
    if len(rows) <= _FEW and mask is None:
        for i in range(len(rows)):
            acc = step(acc, rows[i])
        return acc

    def iteration(acc: Any, element: Any) -> Any:
        if mask is None:
            return step(acc, element), None
        row, chosen = element
        return FUNCTIONS["where"].traced(chosen, step(acc, row), acc).astype(dtype), None

    return scan(iteration, acc, rows if mask is None else (rows, mask))[0]


def _halved(ufunc: np.ufunc, x: Tracer, axes: tuple[int, ...], acc: Any) -> Any:
    """Reduce with a ufunc whose order does not matter, by halving axes: log2(n) ops."""
    lone = all(x.shape[i] == 1 for i in axes)
    for axis in reversed(axes):
        n = x.shape[axis]
        lead: tuple[Any, ...] = (slice(None),) * axis
        if n == 0:
            rest = x.shape[:axis] + x.shape[axis + 1 :]
            x = wrap(build().full(rest, _identity(ufunc, x.dtype), x.dtype), scalar=False)
            continue
        while n > 1:
            half = n // 2
            pairs = apply(ufunc, x[(*lead, slice(0, half))], x[(*lead, slice(half, 2 * half))])
            rest_ = x[(*lead, slice(2 * half, n))]
            x = FUNCTIONS["concatenate"].traced([pairs, rest_], axis=axis) if n % 2 else pairs
            n = half + n % 2
        x = x[(*lead, 0)]
    return apply(ufunc, acc, x) if lone or isinstance(acc, Tracer) else x


# accumulate


def _accumulate(ufunc: np.ufunc, a: Any, axis: int = 0, dtype: Any = None, out: Any = None) -> Any:
    name, x = ufunc.__name__, array(a)
    if x.ndim == 0:
        raise TypeError("cannot accumulate on a scalar")
    axis = _one_axis(axis, x, "accumulate")
    result_dtype, element_dtype = _loop_dtypes(ufunc, x, dtype)
    _check_equal(ufunc, "accumulate", result_dtype, element_dtype)
    orders = is_complex(result_dtype) and name in ("maximum", "minimum")
    if name in _SCANS and result_dtype != BOOL and not orders:
        value = build().op(_SCANS[name], as_value(x, result_dtype), axis=axis, reverse=False)
        return finish(wrap_like(value, (x,)), _sole(out))
    if name in ("logical_and", "logical_or") or (name in _SCANS and result_dtype == BOOL):
        least = name in ("logical_and", "multiply", "minimum")
        bits = as_value(x.astype(BOOL).astype(np.uint8))
        value = build().op("cummin" if least else "cummax", bits, axis=axis, reverse=False)
        return finish(wrap_like(build().convert(value, dtype=BOOL), (x,)), _sole(out))
    rows = _rows(x.astype(BOOL if name in _LOGICAL else element_dtype), (axis,))
    prefixes = _prefixes(ufunc, rows, result_dtype)
    back = (*range(1, axis + 1), 0, *range(axis + 1, x.ndim))
    prefixes = build().transpose(as_value(prefixes), perm=back)
    return finish(wrap_like(prefixes, (x,)), _sole(out))


def _prefixes(ufunc: np.ufunc, rows: Tracer, dtype: DType) -> Tracer:
    """rows[0], ufunc(rows[0], rows[1]), ...: one after the other, as NumPy does."""
    if not len(rows):
        return rows.astype(dtype)
    if ufunc.__name__ in _IN_CHUNKS and len(rows) >= 4 * _CHUNKS and rows[0].size < _CHUNKS:
        return _prefixes_in_chunks(ufunc, rows.astype(dtype))
    step = _step(ufunc, dtype)

    def iteration(acc: Any, row: Any) -> Any:
        following = step(acc, row)
        return following, following

    first = rows[0].astype(dtype)
    rest = scan(iteration, _broadcast(first, rows.shape[1:]), rows[1:])[1]
    return FUNCTIONS["concatenate"].traced([first[None], rest])


# Associative ufuncs that take long: their chunks are accumulated side by side, in vectors.
_IN_CHUNKS = {"logaddexp": -np.inf, "logaddexp2": -np.inf, "hypot": 0.0}
_CHUNKS = 512


def _prefixes_in_chunks(ufunc: np.ufunc, rows: Tracer) -> Tracer:
    """Each chunk by itself, then the totals, then each chunk with the total of those before it."""
    n, rest, dtype = len(rows), rows.shape[1:], rows.dtype
    length = -(-n // _CHUNKS)
    fill = wrap(build().full((_CHUNKS * length - n, *rest), _IN_CHUNKS[ufunc.__name__], dtype))
    whole = FUNCTIONS["concatenate"].traced([rows, fill]).reshape((_CHUNKS, length, *rest))
    inner = _prefixes(ufunc, whole.swapaxes(0, 1), dtype)
    totals = _prefixes(ufunc, inner[-1], dtype)
    chunks = FUNCTIONS["concatenate"].traced(
        [inner[:, :1], apply(ufunc, totals[:-1], inner[:, 1:])], axis=1
    )
    return chunks.swapaxes(0, 1).reshape((_CHUNKS * length, *rest))[:n]


# reduceat

# Those that may combine blocks of elements first. (Products may not: a block can overflow alone.)
_BY_BLOCKS = frozenset(
    "add maximum minimum fmax fmin logical_and logical_or logical_xor "
    "bitwise_and bitwise_or bitwise_xor".split()
)
_BLOCK = 64


def _reduceat(
    ufunc: np.ufunc, a: Any, indices: Any, axis: int = 0, dtype: Any = None, out: Any = None
) -> Any:
    """Segment j goes from indices[j] to indices[j + 1], and has one element where that is not more."""
    name, x = ufunc.__name__, array(a)
    axis = _one_axis(axis, x, "reduceat")
    result_dtype, element_dtype = _loop_dtypes(ufunc, x, dtype)
    _check_equal(ufunc, "reduceat", result_dtype, element_dtype)
    if is_small(result_dtype) and name in _ARITHMETIC:
        wide = _reduceat(ufunc, x.astype(F32), indices, axis, F32)
        return finish(wide.astype(result_dtype), _sole(out))
    n = x.shape[axis]
    starts = _segment_starts(ufunc, indices, n)
    rest = tuple(m for i, m in enumerate(x.shape) if i != axis)
    count, lines = starts.shape[0], int(np.prod(rest))
    if not count or not lines:
        segments = wrap(build().full((*rest, count), 0, result_dtype), scalar=False)
    else:
        ends = wrap(build().full((1,), n, I64), scalar=False)
        ends = FUNCTIONS["concatenate"].traced([starts[1:], ends])
        ends = apply(np.maximum, ends, starts + 1)
        elements = x.astype(BOOL if name in _LOGICAL else element_dtype)
        if np.prod(x.shape[axis + 1 :]) >= _FEW:
            rows = FUNCTIONS["moveaxis"].traced(elements, axis, 0)
            segments = _segments_of_rows(ufunc, rows, starts, ends, result_dtype)
            segments = FUNCTIONS["moveaxis"].traced(segments, 0, axis)
            return finish(wrap(as_value(segments), scalar=False), _sole(out))
        flat = FUNCTIONS["moveaxis"].traced(elements, axis, -1).reshape((lines, n))
        segments = _segments(ufunc, flat, starts, ends, result_dtype).reshape((*rest, count))
    result = FUNCTIONS["moveaxis"].traced(segments, -1, axis)
    return finish(wrap(as_value(result), scalar=False), _sole(out))


def _segment_starts(ufunc: np.ufunc, indices: Any, n: int) -> Tracer:
    constant = static_array(indices)
    if constant is not None:
        if constant.ndim != 1:
            raise ValueError("indices must be one-dimensional")
        for i in constant:
            if not 0 <= i < n:
                raise IndexError(
                    f"index {int(i)} out-of-bounds in {ufunc.__name__}.reduceat [0, {n})"
                )
        return array(indices).astype(np.int64)
    starts = array(indices)
    if starts.ndim != 1:
        raise ValueError("indices must be one-dimensional")
    starts = starts.astype(np.int64)
    # Checked as any index is, but that negative ones are out of range, too.
    b = build()
    wrapped = as_value(FUNCTIONS["where"].traced(starts < 0, starts - n, starts))
    numbers = b.op("iota", shape=(n,), dtype=I64, axis=0)
    return wrap(b.gather(numbers, wrapped, axes=(0,), mode="check"), scalar=False)


def _segments_of_rows(
    ufunc: np.ufunc, rows: Tracer, starts: Tracer, ends: Tracer, dtype: DType
) -> Tracer:
    """Rows as wholes: each step takes one, for all its elements."""
    step = _step(ufunc, dtype)

    def row(index: Any) -> Tracer:
        b = build()
        return wrap(b.gather(as_value(rows), as_value(index, I64), axes=(0,), mode="clip"))

    def segment(_: None, bounds: Any) -> Any:
        start, stop = bounds

        def iteration(state: Any) -> Any:
            i, acc = state
            return i + 1, step(acc, row(i))

        first = start + 1, row(start).astype(dtype)
        return None, while_loop(lambda state: state[0] < stop, iteration, first)[1]

    return scan(segment, None, (starts, ends))[1]


def _segments(ufunc: np.ufunc, lines: Tracer, starts: Tracer, ends: Tracer, dtype: DType) -> Tracer:
    """The segments of each line, one after the other, as a nest of loops over numbers."""
    count, n = lines.shape
    step, flat = _step(ufunc, dtype), lines.reshape(-1)
    by_blocks = ufunc.__name__ in _BY_BLOCKS and n >= 2 * _BLOCK * len(starts)
    per_line = n // _BLOCK
    if by_blocks:
        whole = lines[:, : per_line * _BLOCK].reshape((count, per_line, _BLOCK))
        blocks = _reduce(ufunc, whole, axis=-1, dtype=dtype).reshape(-1)

    def element(source: Tracer, index: Any) -> Any:
        b = build()
        return wrap(b.gather(as_value(source), as_value(index, I64), axes=(0,), mode="clip"))

    def along(source: Tracer, offset: Any, start: Any, stop: Any, acc: Any) -> Any:
        def iteration(state: Any) -> Any:
            i, acc = state
            return i + 1, step(acc, element(source, offset + i))

        return while_loop(lambda state: state[0] < stop, iteration, (start, acc))[1]

    def segment(_: None, line_and_bounds: Any) -> Any:
        line, start, stop = line_and_bounds
        at = line * n
        acc = element(flat, at + start).astype(dtype)
        if not by_blocks:
            return None, along(flat, at, start + 1, stop, acc)
        first = apply(np.minimum, (start + _BLOCK) // _BLOCK, stop // _BLOCK + 1)
        head = apply(np.minimum, first * _BLOCK, stop)
        last = apply(np.maximum, stop // _BLOCK, first)
        acc = along(flat, at, start + 1, head, acc)
        acc = along(blocks, line * per_line, first, last, acc)
        return None, along(flat, at, apply(np.maximum, last * _BLOCK, head), stop, acc)

    numbers = wrap(build().op("iota", shape=(count, len(starts)), dtype=I64, axis=0), scalar=False)
    each = [_broadcast(part, numbers.shape).reshape(-1) for part in (starts, ends)]
    return scan(segment, None, (numbers.reshape(-1), *each))[1]


# at

COMBINES = {
    "add": "add",
    "subtract": "add",
    "multiply": "multiply",
    "maximum": "max",
    "minimum": "min",
}


def _at(ufunc: np.ufunc, a: Any, indices: Any, values: Any = NO_VALUE, /) -> None:
    """`ufunc.at(a, indices, values)`: unbuffered and in order, so repeated indices accumulate."""
    x, name = destination(a), ufunc.__name__
    if ufunc.nout != 1:
        raise ValueError("Only single output ufuncs supported at this time")
    if (ufunc.nin == 2) != given(values):
        raise ValueError(
            "second operand needed for ufunc" if ufunc.nin == 2 else "too many operands"
        )
    if ufunc.nin == 1:
        update_each(x, indices, None, lambda old, _: apply(ufunc, old))
        return
    if not isinstance(values, Tracer):
        constant = static_array(values)
        values = array(values) if constant is None else constant  # a Python number is an array here
    combined = scattered(ufunc, x, values)
    if combined is not None:
        combined = apply(np.negative, combined) if name == "subtract" else combined
        update(x, indices, combined, COMBINES[name])
    else:
        update_each(x, indices, values, lambda old, value: apply(ufunc, old, value))


def scattered(ufunc: np.ufunc, x: Tracer, values: Any) -> Any:
    """The values in x's dtype, if combining them there gives what NumPy's loop gives; or None.

    NumPy promotes first, and casts each result: so those of small floats are rounded one by one.
    """
    from ...ir.ops.movement.indexing import takes

    name = ufunc.__name__
    if name not in COMBINES or not takes(x.dtype, COMBINES[name]):
        return None
    if is_small(x.dtype) and name in _ARITHMETIC:
        return None
    if getattr(type(values), "_jitney_lazy", False):
        return values if values.dtype == x.dtype else None
    (*_, loop) = loop_dtypes(ufunc, (x, values))
    if loop == x.dtype:
        return values
    wraps = name in ("add", "subtract", "multiply") and x.dtype.kind in "iu" and loop.kind in "iu"
    if not wraps:
        constant = None if is_small(x.dtype) or is_complex(loop) else static_array(values)
        if constant is None or constant.size != 1 or constant.astype(x.dtype) != constant:
            return None
    return array(values).astype(x.dtype)


_METHODS: dict[str, Callable[..., Any]] = {
    "reduce": _reduce,
    "accumulate": _accumulate,
    "reduceat": _reduceat,
    "outer": _outer,
    "at": _at,
}
