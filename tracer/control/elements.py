"""Elements of an array along its first axis, by numbers that are known now or only at run time."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...ir.types import I64, is_integer
from ..arrays.common import array as as_tracer
from ..core.trace import current_trace
from ..core.tracers import Tracer, as_value, concrete, emit, wrap
from ..messages import errors
from ..messages.errors import complain, describe


def tracing_now() -> bool:
    """Whether a trace is in progress."""
    return current_trace() is not None


def in_graph() -> bool:
    """Whether a trace is in progress that computes nothing."""
    trace = current_trace()
    return trace is not None and not trace.eager


def known(x: Any) -> Any:
    """A tracer of an eager trace as the ndarray or NumPy scalar that it stands for."""
    trace = current_trace()
    if isinstance(x, Tracer) and trace is not None and trace.eager:
        as_value(x)
        return concrete(x)[()]
    return x


def index_of(index: Any) -> Any:
    """A Python int if it is known now, otherwise a traced 0-d int64."""
    index = known(index)
    if isinstance(index, (int, np.integer)) and not isinstance(index, bool):
        return int(index)
    if isinstance(index, (Tracer, np.ndarray)) and is_integer(index.dtype) and index.shape == ():
        if isinstance(index, np.ndarray) and not in_graph():
            return int(index)
        return wrap(as_value(index, I64))
    complain(
        errors.BoundsError,
        f"the index of a TensorArray must be an integer, not {describe(index)}",
        "pass an int, or a scalar of an integer dtype.",
    )


def indices_of(indices: Any) -> Any:
    """An int64 ndarray if they are known now, otherwise a tracer of one."""
    indices = known(indices)
    if not isinstance(indices, (Tracer, np.ndarray)):
        items = [index_of(i) for i in indices]
        if any(isinstance(i, Tracer) for i in items):
            return as_tracer(items, I64)
        return np.asarray(items, np.int64)
    if indices.ndim != 1 or not is_integer(indices.dtype):
        complain(
            errors.BoundsError,
            f"the indices of a TensorArray must be a 1-d array of integers, not "
            f"{describe(indices)}",
            "pass a list of ints, or indices.reshape(-1).",
        )
    if isinstance(indices, np.ndarray) and not in_graph():
        return indices.astype(np.int64)
    return wrap(as_value(indices, I64), scalar=False)


def take(x: Any, at: Any) -> Any:
    """`x[at]`; a number that is out of range is moved into it."""
    whole, index = as_value(x), as_value(at, I64)
    if index.shape:
        return emit("gather", whole, index, axes=(0,), mode="clip")
    rest = whole.shape[1:]
    starts = [index, *(as_value(0, I64) for _ in rest)]
    row = emit("dynamic_slice", whole, *starts, sizes=(1, *rest))
    return emit("reshape", row.value, shape=rest)


def put_at(x: Any, at: Any, values: Any, combine: str) -> Tracer:
    """`x` with `x[at] = values`, or added to it; numbers that are out of range are moved into it."""
    whole, index = as_value(x), as_value(at, I64)
    update = as_value(values, whole.dtype)
    if index.shape:
        attrs: dict[str, Any] = {"axes": (0,), "mode": "clip", "combine": combine}
        return wrap(emit("scatter", whole, update, index, **attrs).value, scalar=False)
    row = emit("reshape", update, shape=(1, *update.shape)).value
    starts = [index, *(as_value(0, I64) for _ in whole.shape[1:])]
    return wrap(emit("dynamic_update_slice", whole, row, *starts).value, scalar=False)


def static_size(size: Any) -> int:
    """A length as an int; ShapeError, or DynamicShapeError if it is traced."""
    size = known(size)
    if isinstance(size, (int, np.integer)) and not isinstance(size, bool) and size >= 0:
        return int(size)
    complain(
        errors.DynamicShapeError if isinstance(size, Tracer) else errors.ShapeError,
        f"the size of a TensorArray must be a non-negative int, not {describe(size)}",
        "give the largest size that can occur; shapes are fixed when a function is compiled.",
    )


def static_shape(shape: Any) -> tuple[int, ...]:
    """A shape as a tuple of ints; ShapeError for others."""
    dims = shape if isinstance(shape, (tuple, list)) else (shape,)
    if all(isinstance(n, (int, np.integer)) and n >= 0 for n in dims):
        return tuple(int(n) for n in dims)
    complain(
        errors.ShapeError,
        f"the element_shape of a TensorArray must be made of non-negative ints, not {shape!r}",
        "leave element_shape out: the first write tells it.",
    )
