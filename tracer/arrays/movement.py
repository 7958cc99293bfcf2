"""Functions that move elements: reshapes, transposes, joins, splits, repeats, pads, flips, rolls.

What NumPy returns as a view is a view here too (`tracer.core.views`).
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core import views
from ..core.conversions import refuse_assigned
from ..core.trace import current_trace
from ..core.tracers import Tracer, as_value, wrap, wrap_like
from ..data.layout import inner_axes_first, is_contiguous, order_of, resolved_order
from ..data.promotion import can_cast, canonical, result_dtype
from ..messages import errors
from ..messages.errors import complain
from .common import (
    array,
    axis_index,
    axis_tuple,
    broadcast_shape,
    build,
    finish,
    ints,
    kind,
    require_static,
    sizes,
)
from .table import function


@function("reshape")
def reshape(a: Any, /, shape: Any, order: str = "C", *, copy: bool | None = None) -> Tracer:
    x = array(a)
    new = resolve_shape(x, shape)
    order = resolved_order(order_of(order), (x.shape, x.element_strides))
    if order == "K":
        raise ValueError("order 'K' is not permitted for reshaping")
    if copy:
        x = wrap_like(as_value(x), (), scalar=False, order=order)
    result = views.reshape(x, new) if order == "C" else _reshape_columns_first(x, new)
    if copy is False and result._storage is not x._storage and not x.scalar:
        raise ValueError("Unable to avoid creating a copy while reshaping.")
    return wrap(as_value(result)) if x.scalar else result


def _assign_shape(self: Tracer, shape: Any) -> None:
    """`x.shape = shape`: `x` itself has another shape then, under all of its names."""
    storage = self._storage
    argument = (
        self._view is None and storage.parameter is not None
    )  # the caller's would keep its shape
    if argument or storage.trace is not current_trace():  # or it is one in only one branch
        refuse_assigned(self, "shape", "x.reshape(shape)")
    if not views.assign_shape(self, resolve_shape(self, shape)):
        raise AttributeError(
            "Incompatible shape for in-place modification. Use `.reshape()` to make a copy with the "
            "desired shape."
        )


Tracer.shape = Tracer.shape.setter(_assign_shape)  # type: ignore[method-assign, attr-defined]


def _reshape_columns_first(x: Tracer, shape: tuple[int, ...]) -> Tracer:
    """Order "F" is order "C" of everything backwards."""
    backwards = views.reshape(views.transpose(x, range(x.ndim)[::-1]), shape[::-1])
    return views.transpose(backwards, range(len(shape))[::-1])


def resolve_shape(x: Tracer, shape: Any) -> tuple[int, ...]:
    """The new shape with -1 filled in, or a ShapeError."""
    new = ints(shape)
    if any(isinstance(n, (bool, np.bool)) for n in (shape if isinstance(shape, tuple) else ())):
        raise TypeError("an integer is required")
    if new.count(-1) > 1:
        raise ValueError("can only specify one unknown dimension")
    product = math.prod(n for n in new if n != -1)
    if -1 in new and product and x.size % product == 0:
        new = tuple(x.size // product if n == -1 else n for n in new)
    if math.prod(new) != x.size or any(n < 0 for n in new):
        complain(
            errors.ShapeError,
            f"cannot reshape array of size {x.size} into shape {str(ints(shape)).replace(' ', '')}",
            f"the new sizes must multiply to {x.size}; one of them may be -1.",
            operands={"array": x},
        )
    return new


@function("ravel")
def ravel(a: Any, order: str = "C") -> Tracer:
    """A view of what is contiguous in that order, else a copy."""
    x = array(a)
    in_order = rows_first(x, order)
    if is_contiguous(in_order.shape, in_order.element_strides, "C"):
        return views.reshape(in_order, (x.size,))
    return wrap(build().reshape(as_value(in_order), shape=(x.size,)), scalar=False)


def rows_first(x: Tracer, order: str) -> Tracer:
    """A view of `x` in which the elements stand in order "C" as they do in x in the given order."""
    order = resolved_order(order_of(order), (x.shape, x.element_strides))
    if order == "C":
        return x
    inner_first = list(range(x.ndim))
    if order == "K":
        inner_first = inner_axes_first(x.ndim, [(x.shape, x.element_strides)], copy=True)
    return views.transpose(x, inner_first[::-1])


@function("transpose", "permute_dims")
def transpose(a: Any, axes: Any = None) -> Tracer:
    x = array(a)
    if axes is None:
        return views.transpose(x, range(x.ndim)[::-1])
    axes = ints(axes)
    if len(axes) != x.ndim:
        raise ValueError("axes don't match array")
    perm = [axis_index(i, x.ndim, x) for i in axes]
    if len(set(perm)) != len(perm):
        raise ValueError("repeated axis in transpose")
    return views.transpose(x, perm)


@function("matrix_transpose", "linalg.matrix_transpose")
def matrix_transpose(x: Any, /) -> Tracer:
    a = array(x)
    if a.ndim < 2:
        raise ValueError(f"Input array must be at least 2-dimensional, but it is {a.ndim}")
    return swapaxes(a, -1, -2)


@function("swapaxes")
def swapaxes(a: Any, axis1: Any, axis2: Any) -> Tracer:
    x = array(a)
    i, j = axis_index(axis1, x.ndim, x), axis_index(axis2, x.ndim, x)
    perm = list(range(x.ndim))
    perm[i], perm[j] = perm[j], perm[i]
    return views.transpose(x, perm)


@function("moveaxis")
def moveaxis(a: Any, source: Any, destination: Any) -> Tracer:
    x = array(a)
    old = [axis_index(i, x.ndim, x) for i in ints(source)]
    new = [axis_index(i, x.ndim, x) for i in ints(destination)]
    if len(set(old)) != len(old) or len(set(new)) != len(new):
        raise ValueError("repeated axis")
    if len(old) != len(new):
        raise ValueError(
            "`source` and `destination` arguments must have the same number of elements"
        )
    perm = [i for i in range(x.ndim) if i not in old]
    for target, axis in sorted(zip(new, old, strict=True)):
        perm.insert(target, axis)
    return views.transpose(x, perm)


@function("rollaxis")
def rollaxis(a: Any, axis: Any, start: int = 0) -> Tracer:
    x = array(a)
    axis = axis_index(axis, x.ndim, x)
    start = operator.index(start)
    if not -x.ndim <= start <= x.ndim:
        raise np.exceptions.AxisError(f"'start' arg requires {-x.ndim} <= start <= {x.ndim}")
    start = start + x.ndim if start < 0 else start
    return moveaxis(x, axis, start - 1 if axis < start else start)


@function("expand_dims")
def expand_dims(a: Any, axis: Any) -> Tracer:
    x = array(a)
    rank = x.ndim + len(ints(axis))
    axes = axis_tuple(ints(axis), rank)
    items = [None if i in axes else slice(None) for i in range(rank)]
    return views.basic_index(x, items)


@function("squeeze")
def squeeze(a: Any, axis: Any = None) -> Tracer:
    x = array(a)
    if axis is None:
        axes = tuple(i for i, n in enumerate(x.shape) if n == 1)
    else:
        axes = axis_tuple(axis, x.ndim, x)
        if any(x.shape[i] != 1 for i in axes):
            raise ValueError("cannot select an axis to squeeze out which has size not equal to one")
    if not axes:
        return views.identity(x)
    return views.basic_index(x, [0 if i in axes else slice(None) for i in range(x.ndim)])


def broadcast_to(array_: Any, shape: Any, subok: bool = False) -> Tracer:
    x = array(array_)
    new = sizes(shape, "all elements of broadcast shape must be non-negative")
    trailing = zip(x.shape[::-1], new[::-1], strict=False)
    if len(new) < x.ndim or any(n != m and n != 1 for n, m in trailing):
        complain(
            errors.ShapeError,
            f"operands could not be broadcast together with remapped shapes: {x.shape} -> {new}",
            "trailing axes must be equal or 1.",
            operands={"array": x},
        )
    return views.broadcast_to(x, new)


@function("broadcast_arrays")
def broadcast_arrays(*args: Any, subok: bool = False) -> tuple[Tracer, ...]:
    parts = [array(x) for x in args]
    shape = broadcast_shape(parts) if parts else ()
    return tuple(p if p.shape == shape else views.broadcast_to(p, shape) for p in parts)


@function("atleast_1d")
def atleast_1d(*arrays: Any) -> Any:
    return _each(arrays, lambda x: x.reshape(1) if x.ndim == 0 else x)


@function("atleast_2d")
def atleast_2d(*arrays: Any) -> Any:
    return _each(
        arrays, lambda x: x.reshape(1, 1) if x.ndim == 0 else x[None, :] if x.ndim == 1 else x
    )


@function("atleast_3d")
def atleast_3d(*arrays: Any) -> Any:
    def rule(x: Tracer) -> Tracer:
        if x.ndim == 0:
            return x.reshape(1, 1, 1)
        if x.ndim == 1:
            return x[None, :, None]
        return x[:, :, None] if x.ndim == 2 else x

    return _each(arrays, rule)


def _each(arrays: Sequence[Any], rule: Any) -> Any:
    results = tuple(rule(array(x)) for x in arrays)
    return results[0] if len(results) == 1 else results


# Joining


@function("concatenate", "concat")
def concatenate(
    arrays: Any,
    /,
    axis: Any = 0,
    out: Any = None,
    *,
    dtype: Any = None,
    casting: str = "same_kind",
) -> Tracer:
    if out is not None and dtype is not None:
        raise TypeError(
            "concatenate() only takes `out` or `dtype` as an argument, but both were provided."
        )
    pairs = [(x, array(x)) for x in arrays]
    parts = [p for _, p in pairs]
    if not parts:
        raise ValueError("need at least one array to concatenate")
    kinds: list[Any] = [p.dtype for p in parts]
    if axis is None:  # only then Python's numbers are weak
        kinds = [p.dtype if isinstance(x, (list, tuple)) else kind(x) for x, p in pairs]
        parts, axis = [p.ravel() for p in parts], 0
    ndim = parts[0].ndim
    if ndim == 0:
        raise ValueError("zero-dimensional arrays cannot be concatenated")
    axis = axis_index(axis, ndim, parts[0])
    for i, p in enumerate(parts):
        same = p.ndim == ndim and all(
            n == m
            for k, (n, m) in enumerate(zip(p.shape, parts[0].shape, strict=True))
            if k != axis
        )
        if not same:
            complain(
                errors.ShapeError,
                "all the input array dimensions except for the concatenation axis must match "
                f"exactly: array 0 has shape {parts[0].shape}, array {i} has shape {p.shape}, the "
                f"axis is {axis}",
                "make the other axes equal, or use jt.stack to join along a new axis.",
                operands={"array 0": parts[0], f"array {i}": p},
            )
    joined = result_dtype(*kinds)
    dtype = joined if dtype is None else canonical(dtype)
    if not all(can_cast(p.dtype, dtype, casting) for p in parts):
        raise TypeError(f"Cannot cast array data to {dtype!r} according to the rule {casting!r}")
    values = [as_value(p, dtype) for p in parts]
    value = build().concat(*values, axis=axis) if len(values) > 1 else values[0]
    return finish(wrap_like(value, parts, copy=True), out, casting)


@function("stack")
def stack(arrays: Any, axis: Any = 0, out: Any = None, **options: Any) -> Tracer:
    parts = [array(x) for x in arrays]
    if not parts:
        raise ValueError("need at least one array to stack")
    for i, p in enumerate(parts):
        if p.shape != parts[0].shape:
            complain(
                errors.ShapeError,
                "all input arrays must have the same shape",
                "jt.concatenate joins arrays that differ along one axis.",
                operands={"array 0": parts[0], f"array {i}": p},
            )
    axis = axis_index(axis, parts[0].ndim + 1)
    return concatenate([expand_dims(p, axis) for p in parts], axis, out, **options)


@function("vstack")
def vstack(tup: Any, *, dtype: Any = None, casting: str = "same_kind") -> Tracer:
    return concatenate([atleast_2d(x) for x in tup], 0, dtype=dtype, casting=casting)


@function("hstack")
def hstack(tup: Any, *, dtype: Any = None, casting: str = "same_kind") -> Tracer:
    parts = [atleast_1d(x) for x in tup]
    axis = 0 if parts and parts[0].ndim == 1 else 1
    return concatenate(parts, axis, dtype=dtype, casting=casting)


@function("dstack")
def dstack(tup: Any) -> Tracer:
    return concatenate([atleast_3d(x) for x in tup], 2)


@function("column_stack")
def column_stack(tup: Any) -> Tracer:
    parts = [array(x) for x in tup]
    return concatenate([p if p.ndim > 1 else p.reshape(-1, 1) for p in parts], 1)


@function("append")
def append(arr: Any, values: Any, axis: Any = None) -> Tracer:
    if axis is None:
        return concatenate([array(arr).ravel(), array(values).ravel()])
    return concatenate([arr, values], axis)


@function("block")
def block(arrays: Any) -> Tracer:
    def depth(x: Any) -> int:
        return 1 + max(map(depth, x)) if isinstance(x, list) else 0

    levels = depth(arrays)

    def leaves(x: Any) -> list[Tracer]:
        return [leaf for i in x for leaf in leaves(i)] if isinstance(x, list) else [array(x)]

    rank = max([levels, *(leaf.ndim for leaf in leaves(arrays))])

    def join(x: Any, level: int) -> Tracer:
        if isinstance(x, list):
            return concatenate([join(i, level + 1) for i in x], axis=rank - levels + level)
        leaf = array(x)
        return leaf.reshape((1,) * (rank - leaf.ndim) + leaf.shape)

    joined = join(arrays, 0)
    return joined if isinstance(arrays, list) else wrap(as_value(joined), scalar=False)


# Splitting


@function("array_split")
def array_split(ary: Any, indices_or_sections: Any, axis: Any = 0) -> list[Tracer]:
    x = array(ary)
    axis = axis_index(axis, x.ndim, x)
    n = x.shape[axis]
    if np.ndim(require_static(indices_or_sections, "indices_or_sections")) == 0:
        count = operator.index(indices_or_sections)
        if count <= 0:
            raise ValueError("number sections must be larger than 0.")
        each, extra = divmod(n, count)
        sizes = [each + 1] * extra + [each] * (count - extra)
        cuts = [0, *np.cumsum(sizes).tolist()]
    else:
        cuts = [0, *ints(indices_or_sections), n]
    lead = (slice(None),) * axis
    return [x[(*lead, slice(i, j))] for i, j in itertools.pairwise(cuts)]


@function("split")
def split(ary: Any, indices_or_sections: Any, axis: Any = 0) -> list[Tracer]:
    x = array(ary)
    if np.ndim(require_static(indices_or_sections, "indices_or_sections")) == 0:
        n = x.shape[axis_index(axis, x.ndim, x)]
        if n % operator.index(indices_or_sections):
            raise ValueError("array split does not result in an equal division")
    return array_split(x, indices_or_sections, axis)


@function("hsplit")
def hsplit(ary: Any, indices_or_sections: Any) -> list[Tracer]:
    x = array(ary)
    if x.ndim == 0:
        raise ValueError("hsplit only works on arrays of 1 or more dimensions")
    return split(x, indices_or_sections, 1 if x.ndim > 1 else 0)


@function("vsplit")
def vsplit(ary: Any, indices_or_sections: Any) -> list[Tracer]:
    x = array(ary)
    if x.ndim < 2:
        raise ValueError("vsplit only works on arrays of 2 or more dimensions")
    return split(x, indices_or_sections, 0)


@function("dsplit")
def dsplit(ary: Any, indices_or_sections: Any) -> list[Tracer]:
    x = array(ary)
    if x.ndim < 3:
        raise ValueError("dsplit only works on arrays of 3 or more dimensions")
    return split(x, indices_or_sections, 2)


@function("unstack")
def unstack(x: Any, /, *, axis: Any = 0) -> tuple[Tracer, ...]:
    a = array(x)
    if a.ndim == 0:
        raise ValueError("Input array must be at least 1-d.")
    return tuple(moveaxis(a, axis, 0))


@function("flip")
def flip(m: Any, axis: Any = None) -> Tracer:
    x = array(m)
    axes = axis_tuple(axis, x.ndim, x, strict=True)
    return x[tuple(slice(None, None, -1) if i in axes else slice(None) for i in range(x.ndim))]


@function("fliplr")
def fliplr(m: Any) -> Tracer:
    x = array(m)
    if x.ndim < 2:
        raise ValueError("Input must be >= 2-d.")
    return flip(x, 1)


@function("flipud")
def flipud(m: Any) -> Tracer:
    x = array(m)
    if x.ndim < 1:
        raise ValueError("Input must be >= 1-d.")
    return flip(x, 0)


@function("tile")
def tile(A: Any, reps: Any) -> Tracer:
    x = array(A)
    counts = sizes(reps)
    rank = max(x.ndim, len(counts))
    counts = (1,) * (rank - len(counts)) + counts
    shape = (1,) * (rank - x.ndim) + x.shape
    if set(counts) <= {1}:
        return wrap_like(as_value(x), (x,), scalar=False, copy=True).reshape(shape)
    wide = tuple(size for pair in zip(counts, shape, strict=True) for size in pair)
    b = build()
    value = b.reshape(as_value(x), shape=shape)
    value = b.broadcast(value, shape=wide, dims=tuple(range(1, 2 * rank, 2)))
    final = tuple(c * n for c, n in zip(counts, shape, strict=True))
    return wrap(b.reshape(value, shape=final), scalar=False)


@function("resize")
def resize(a: Any, new_shape: Any) -> Tracer:
    x = array(a).ravel()
    shape = sizes(new_shape, "all elements of `new_shape` must be non-negative")
    size = math.prod(shape)
    if x.size == 0:
        return wrap(build().full(shape, 0, x.dtype), scalar=False)
    return tile(x, -(-size // x.size))[:size].reshape(shape)
