"""What the array functions share: coercing operands, axes, broadcasting, out=."""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from types import FrameType
from typing import Any

import numpy as np

from ...ir.build import Builder
from ...ir.graph import Value
from ...ir.types import BOOL, I64, is_complex, is_supported
from ..core.effects import check
from ..core.trace import EagerBuilder, current_trace, require_trace
from ..core.tracers import Tracer, as_value, concrete, weak_kind, wrap, wrap_like
from ..data.accept import check_dtype
from ..data.layout import is_contiguous
from ..data.promotion import DType, Kind, can_cast, canonical, kind_of, result_dtype
from ..messages import errors
from ..messages.errors import complain
from ..messages.source import is_user_frame, user_line
from ..records.arrays import records
from ..records.kinds import is_structured
from .table import refuse_complex, refuse_option


class _NoValue:
    def __repr__(self) -> str:
        return "<no value>"


NO_VALUE: Any = _NoValue()


def given(x: Any) -> bool:
    """Whether an optional argument was passed (neither our nor NumPy's placeholder)."""
    return x is not NO_VALUE and x is not np._NoValue


def build() -> Builder:
    """The current trace's builder, at the user's line."""
    builder = require_trace().builder
    builder.loc = user_line(2)
    return builder


def array(x: Any, dtype: Any = None) -> Tracer:
    """`np.asarray(x)` as a tracer: lists (of tracers too) are stacked, scalars become 0-d."""
    if is_structured(x):
        return records(x).mapped(array)
    if getattr(type(x), "_jitney_lazy", False):
        x = x.materialise()
    dtype = None if dtype is None else canonical(dtype)
    if isinstance(x, Tracer) and (dtype is None or x.dtype == dtype):
        return x  # of an enclosing trace, too: its views are views
    if isinstance(x, (list, tuple)):
        return _from_sequence(x, dtype)
    if isinstance(x, range):
        x = np.asarray(x)
    return wrap_like(as_value(x, dtype), (x,), copy=True)


def as_elements(x: Any, dtype: Any) -> Tracer:
    """What is put into an array of `dtype`, one by one: Python's numbers have to fit."""
    if type(x) in (bool, int, float, complex):
        x = np.asarray(x, dtype)
    return array(x, dtype)


def _from_sequence(items: Sequence[Any], dtype: DType | None) -> Tracer:
    if not holds_tracers(items):
        return wrap(as_value(np.asarray(items, dtype=dtype)))
    parts = [array(item) for item in items]
    if dtype is None:
        dtype = result_dtype(*(kind_of(p.dtype, p.weak) for p in parts))
    shapes = {p.shape for p in parts}
    if len(shapes) > 1:
        complain(
            errors.ShapeError,
            "setting an array element with a sequence: the parts of an array have different shapes",
            "give all parts the same shape, or use jt.concatenate.",
            operands={f"part {i}": p for i, p in enumerate(parts)},
        )
    b = build()
    (shape,) = shapes
    values = [b.reshape(as_value(p, dtype), shape=(1, *shape)) for p in parts]
    return wrap(b.concat(*values, axis=0) if len(values) > 1 else values[0], scalar=False)


def holds_tracers(items: Iterable[Any]) -> bool:
    """Whether a tracer is among the items, or in lists and tuples of them."""
    return any(
        isinstance(i, Tracer) or (isinstance(i, (list, tuple)) and holds_tracers(i)) for i in items
    )


def operand(x: Any) -> Any:
    """An operand of a ufunc: scalars, arrays and tracers stay, lists become arrays."""
    if isinstance(x, (Tracer, np.ndarray, np.generic, bool, int, float, complex)):
        return x
    return array(x)


def kind(x: Any) -> Kind:
    """How an operand promotes."""
    weak = weak_kind(x)
    if weak is not None:
        return kind_of(BOOL, weak)
    if type(x) is Tracer:
        return x.type.dtype
    dtype = getattr(x, "dtype", None)
    if not isinstance(dtype, np.dtype):
        return array(x).dtype
    if not is_supported(dtype) and isinstance(x, (np.ndarray, np.generic)):
        dtype = check_dtype(x)
    return canonical(dtype)


def common_dtype(*operands: Any) -> DType:
    """`np.result_type` of operands."""
    return result_dtype(*(kind(x) for x in operands))


def lies_in(x: Tracer, order: str) -> bool:
    """Whether NumPy's functions that copy only when they have to leave `x` as it is."""
    if order == "K":
        return True
    orders = "CF" if order == "A" else order
    return any(is_contiguous(x.shape, x.element_strides, o) for o in orders)


def check_device(name: str, device: Any) -> None:
    """Refuse a `device=` other than the CPU."""
    if device not in (None, "cpu"):
        refuse_option(name, device=device)


def check_real(name: str, *operands: Any) -> None:
    """TypeError if one of them is complex."""
    if any(is_complex(array(x).dtype) for x in operands):
        refuse_complex(name)


def shape_of(x: Any) -> tuple[int, ...]:
    if isinstance(x, (list, tuple)) and holds_tracers(x):
        return array(x).shape
    return x.shape if hasattr(x, "shape") else np.shape(x)


def static_array(x: Any) -> np.ndarray[Any, Any] | None:
    """The elements of `x` if they are known while tracing: no tracer, or one of an eager trace."""
    if isinstance(x, Tracer):
        eager = isinstance(x._storage.trace.builder, EagerBuilder) and not x._storage.trace.done
        return concrete(x) if eager else None
    if isinstance(x, (list, tuple)) and holds_tracers(x):
        return None
    return np.asarray(x)


def known_array(x: Any) -> np.ndarray[Any, Any] | None:
    """As `static_array`, and the elements of what depends on constants only."""
    if not isinstance(x, Tracer):
        return static_array(x)
    from ..core.constants import known_array

    return known_array(x)


def require_static(x: Any, what: str) -> np.ndarray[Any, Any]:
    """The elements of `x`, or a TypeError that says that they must be known while tracing."""
    constant = known_array(x)
    if constant is None:
        complain(
            errors.DynamicShapeError,
            f"{what} decides the result's shape, and a traced value is known only when the "
            "compiled function runs",
            f"pass {what} as a Python number or make the argument static (static_argnames).",
            operands={what: x},
            asks=[x],
        )
    return constant


def check_values(holds: Any, message: str, error: type[Exception] = ValueError) -> None:
    """What NumPy raises where its arguments' values are wrong: now if they are known, else when the
    compiled function runs."""
    constant = known_array(holds)
    if constant is None:
        check(array(holds), message, error=error.__name__)
    elif not constant:
        raise error(message)


def index_array(x: Any, casting: str = "safe") -> Tracer:
    """Indices or counts as int64. Python's numbers, and those in lists, are converted one by one; the
    dtype of an array has to allow it."""
    indices = array(x)
    is_array = isinstance(x, np.ndarray) or (isinstance(x, Tracer) and not x.scalar)
    if is_array and not can_cast(indices.dtype, I64, casting):
        raise TypeError(
            f"Cannot cast array data from {indices.dtype!r} to {I64!r} according to the rule "
            f"{casting!r}"
        )
    return indices.astype(I64)


def ints(x: Any) -> tuple[int, ...]:
    """A shape, repetition counts, ...: an int or a sequence of ints, as a tuple of Python ints."""
    if isinstance(x, Tracer) and x.ndim == 1:
        x = require_static(x, "shape")
    if isinstance(x, np.ndarray) and not x.ndim:
        return (operator.index(x),)
    if isinstance(x, (list, tuple, np.ndarray, range)):
        return tuple(operator.index(i) for i in x)
    return (operator.index(x),)


def sizes(x: Any, what: str = "negative dimensions are not allowed") -> tuple[int, ...]:
    """The shape of a new array. ValueError, as NumPy's, for a negative size."""
    shape = ints(x)
    if any(size < 0 for size in shape):
        raise ValueError(what)
    return shape


def axis_index(axis: Any, ndim: int, x: Any = None) -> int:
    """A non-negative axis, or an AxisError."""
    axis = operator.index(axis)
    if not -ndim <= axis < ndim:
        complain(
            errors.AxisBoundsError,
            f"axis {axis} is out of bounds for array of dimension {ndim}",
            f"give an axis from {-ndim} to {ndim - 1}." if ndim else "a 0-d array has no axes.",
            operands=None if x is None else {"array": x},
        )
    return axis % ndim


def along_axis(x: Tracer, axis: Any, at_least_1d: bool = False) -> tuple[Tracer, int]:
    """What a function works on that goes along one axis, and that axis: flat where it is None.

    With `at_least_1d` a number is an array of one element.
    """
    if axis is None:
        x, axis = x.ravel(), 0
    if at_least_1d and x.ndim == 0:
        x = x.reshape(1)
    return x, axis_index(axis, x.ndim, x)


def axis_tuple(axis: Any, ndim: int, x: Any = None, strict: bool = False) -> tuple[int, ...]:
    """`axis` of a reduction (None: all) as non-negative axes in the order given; ValueError on
    duplicates.

    The reductions of ufuncs take 0 and -1 for axes of a 0-d array, and no lists; `strict` functions
    do it the other way.
    """
    if axis is None:
        return tuple(range(ndim))
    if ndim == 0 and axis in (0, -1) and not strict:
        return ()
    if not strict and isinstance(axis, (bool, list)):
        raise TypeError(f"{type(axis).__name__!r} object cannot be interpreted as an axis")
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    numbers = [axis_index(a, ndim, x) for a in axes]
    if len(set(numbers)) != len(numbers):
        raise ValueError(f"duplicate value in 'axis': {axis}")
    return tuple(numbers)


def reduced(value: Value, x: Tracer, axes: tuple[int, ...], keepdims: bool) -> Tracer:
    """`value`, what `axes` of `x` were reduced to, in the memory order of the axes that are left."""
    strides = tuple(s for i, s in enumerate(x.element_strides) if keepdims or i not in axes)
    if keepdims:
        value = build().reshape(value, shape=kept_shape(x.shape, axes))
    return wrap_like(value, () if x._strides is None else ((value.shape, strides),))


def kept_shape(shape: tuple[int, ...], axes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(1 if i in axes else n for i, n in enumerate(shape))


def broadcast_shape(operands: Sequence[Any], what: str = "operands") -> tuple[int, ...]:
    """NumPy's broadcast of the operands' shapes, or a ShapeError that shows them."""
    shapes = [x.type.shape if type(x) is Tracer else shape_of(x) for x in operands]
    first = shapes[0]
    if all(s == first or s == () for s in shapes):
        return max(shapes, key=len)
    if len({len(s) for s in shapes if s}) > 1:
        _check_ranks(operands, shapes, what)
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError as error:
        text = " ".join(str(s).replace(" ", "") for s in shapes)
        complain(
            errors.ShapeError,
            f"{what} could not be broadcast together with shapes {text}",
            "trailing axes must be equal or 1; add axes of size 1 with x[:, None] or reshape.",
            operands={f"operand {i}": x for i, x in enumerate(operands)},
            cause=error,
        )


def _check_ranks(operands: Sequence[Any], shapes: Sequence[tuple[int, ...]], what: str) -> None:
    """ShapeError if arrays of different ranks meet in the user's code where that is not wanted."""
    trace = current_trace()
    if trace is None or not trace.options.explicit_ranks or _is_our_formula():
        return
    text = " and ".join(str(s).replace(" ", "") for s in shapes if s)
    complain(
        errors.ShapeError,
        f"{what}: shapes {text} have different ranks, and jt.config.rank_promotion is 'raise'",
        "say which axes are new: x[:, None], x[None, :] or reshape.",
        operands={f"operand {i}": x for i, x in enumerate(operands)},
    )


def _is_our_formula() -> bool:
    """Whether arrays meet in a function of ours that is no operator and no ufunc."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not is_user_frame(frame):
        room = frame.f_globals.get("__name__", "").split(".")
        if room[-2:-1] and room[-2] in _FORMULAS and room[-1] not in _ENTRIES:
            return True
        frame = frame.f_back
    return False


_FORMULAS = (*("functions", "linear_algebra", "special", "images", "ops", "random", "transforms"),)
# Through which operators, ufuncs and `where` come here.
_ENTRIES = ("operators", "methods", "ufunc_methods", "value_shapes")


def broadcast_values(operands: Sequence[Any], dtypes: Sequence[DType], what: str) -> list[Value]:
    """The operands' values, converted and broadcast to one shape."""
    shape = broadcast_shape(operands, what)
    b = build()
    return [
        _filled(b, x, d, shape)
        if type(x) is float or type(x) is int
        else b.broadcast_to(as_value(x, d), shape)
        for x, d in zip(operands, dtypes, strict=True)
    ]


def _filled(b: Builder, x: float, dtype: DType, shape: tuple[int, ...]) -> Value:
    """A Python number as an array; one that the trace has made before is not made again."""
    made = require_trace().numbers
    key = (dtype, shape, x.hex() if type(x) is float else x)  # hex tells -0.0 from 0.0
    full = made.get(key)
    if full is None:
        full = made[key] = b.full(shape, x, dtype)
    return full


def store(
    out: Any, result: Tracer, casting: str = "same_kind", where: Any = True, exact: bool = False
) -> Tracer:
    """NumPy's out=: assign `result` to `out` (casting checked) and return it.

    The result is broadcast, as ufuncs do it; where that is not NumPy's way, it is `exact`. With
    out=... it is an array, also where it would be a scalar.
    """
    if out is Ellipsis:
        return wrap_like(as_value(result), (result,), scalar=False)
    if isinstance(out, tuple):
        (out,) = out
    if not isinstance(out, Tracer):
        complain(
            errors.TracerConversionError,
            "out= is an array that NumPy made, which a traced result cannot be stored in",
            "make it with jt.empty, jt.zeros or np.zeros_like(x), or leave out= away and use the "
            "result; where autograph could read the function, arrays of NumPy's are traced, too.",
            operands={"out": out},
        )
    if not can_cast(result.dtype, out.dtype, casting):
        complain(
            errors.CastingError,
            f"Cannot cast the result from {result.dtype!r} to {out.dtype!r} with casting rule "
            f"{casting!r}",
            f"convert the destination with .astype(np.{result.dtype.name}) first, or the result "
            f"with .astype(np.{out.dtype.name}).",
            operands={"destination": out, "result": result},
        )
    shape = result.shape if exact else broadcast_shape([out, result])
    if shape != out.shape:
        complain(
            errors.ShapeError,
            f"non-broadcastable output operand with shape {out.shape} doesn't match the "
            f"{'result' if exact else 'broadcast'} shape {shape}",
            "the destination must have the result's shape.",
            operands={"destination": out, "result": result},
        )
    b = build()
    new = b.broadcast_to(as_value(result, out.dtype), out.shape)
    if where is not True:
        mask = b.broadcast_to(as_value(operand(where), np.dtype(bool)), out.shape)
        new = b.select(mask, new, as_value(out))
    out.assign(new)
    return out


def finish(result: Tracer, out: Any = None, casting: str = "unsafe") -> Tracer:
    """The result itself, or `out`, which must have its shape, after it was assigned to it."""
    return result if out is None else store(out, result, casting, exact=True)


def finish_ufunc(result: Tracer, out: Any = None, casting: str = "same_kind") -> Tracer:
    """As `finish`, as ufuncs do it: the result may be broadcast."""
    return result if out is None else store(out, result, casting)


def finish_written_back(result: Tracer, out: Any = None) -> Tracer:
    """As `finish`, where NumPy works on a copy of `out` in the result's dtype: it asks that the copy can
    be made, and then casts back whatever that means."""
    if isinstance(out, Tracer) and not can_cast(out.dtype, result.dtype, "safe"):
        complain(
            errors.CastingError,
            f"Cannot cast the destination from {out.dtype!r} to {result.dtype!r} with casting rule "
            "'safe', as this function does before it writes to it",
            f"make the destination with dtype np.{result.dtype.name}.",
            operands={"destination": out, "result": result},
        )
    return finish(result, out)


def finish_taken(result: Tracer, out: Any = None) -> Tracer:
    """As `finish`, where NumPy worked on such a copy before version 2.5."""
    return finish_written_back(result, out) if _takes_write_back() else finish(result, out)


@cache
def _takes_write_back() -> bool:
    try:
        np.take(np.zeros(1, int), [0], out=np.zeros(1))
    except TypeError:
        return True
    return False


def fold(combine: Callable[[Any, Any], Any], items: Sequence[Any]) -> Any:
    """Combine a non-empty sequence pairwise, as a balanced tree."""
    parts = list(items)
    while len(parts) > 1:
        pairs = [combine(parts[i], parts[i + 1]) for i in range(0, len(parts) - 1, 2)]
        parts = pairs + parts[2 * len(pairs) :]
    return parts[0]
