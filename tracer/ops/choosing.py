"""Elements chosen, or put into place, by numbers: the largest ones, one-hot rows, indices of axes."""

from __future__ import annotations

import math
import operator
from typing import Any, NamedTuple

import numpy as np

from ...ir.types import I64, is_inexact
from ..arrays import ufuncs
from ..arrays.common import along_axis, array, axis_index, build, check_real, check_values, sizes
from ..arrays.creation import arange
from ..arrays.elementwise import where
from ..arrays.reductions import argmin
from ..arrays.table import FUNCTIONS, function
from ..core.tracers import Tracer, as_value, wrap
from ..functions.selection import take_along_axis
from ..functions.sorting import argsort
from ..indexing.indexing import update
from .checks import counted, integers, refuse_shapes


class TopK(NamedTuple):
    """What `jt.ops.top_k` gives."""

    values: Any
    indices: Any


@function("ops.top_k", composed=True)
def top_k(x: Any, k: int = 1, axis: int = -1) -> TopK:
    """The `k` largest elements along `axis`, largest first, and where they are (int64).

    Of equal elements the first comes first; NaN counts as infinity. Both
    results have k elements along `axis`. `values` has a derivative. The smallest elements are those of
    `-x`.

    >>> values, indices = jt.ops.top_k(np.array([1.0, 4.0, 2.0]), 2)
    >>> values, indices
    (array([4., 2.]), array([1, 2]))
    """
    check_real("top_k", x)
    a, axis = along_axis(array(x), axis, at_least_1d=True)
    k = operator.index(k)
    if not 0 <= k <= a.shape[axis]:
        refuse_shapes(
            f"top_k: k={k}, and the axis has {a.shape[axis]} elements",
            "choose k from 0 to the number of elements along the axis.",
            x=a,
        )
    falling = _falling(a)
    if k == 1:
        order = argmin(falling, axis, keepdims=True)
    else:
        order = argsort(falling, axis)[(slice(None),) * axis + (slice(k),)]
    return TopK(take_along_axis(a, order, axis), wrap(as_value(order), scalar=False))


def _falling(x: Tracer) -> Tracer:
    """What rises where x falls."""
    if not is_inexact(x.dtype):
        return ~x
    return where(ufuncs.apply(np.isnan, x), -math.inf, -x)


@function("ops.one_hot", composed=True)
def one_hot(
    indices: Any, n: int, on: Any = 1.0, off: Any = 0.0, axis: int = -1, dtype: Any = None
) -> Tracer:
    """`n` elements for each index, along a new axis of the result: `on` at the index, `off` elsewhere.

    An index outside of 0..n-1 is nowhere: all of its elements are `off`. `axis` is where the new axis
    stands in the result. The dtype is what `np.where` makes of `on` and `off`: float64 by default.

    >>> jt.ops.one_hot(np.array([2, 0, -1]), 3, dtype=np.int8)
    array([[0, 0, 1],
           [1, 0, 0],
           [0, 0, 0]], dtype=int8)
    """
    numbers, (n,) = integers("one_hot", indices=indices), sizes(operator.index(n))
    axis = axis_index(axis, numbers.ndim + 1)
    along = [n if d == axis else 1 for d in range(numbers.ndim + 1)]
    apart = numbers.reshape((*numbers.shape[:axis], 1, *numbers.shape[axis:]))
    if dtype is not None:
        on, off = (array(v).astype(dtype) for v in (on, off))
    return where(apart == arange(n).reshape(along), on, off)


@function("ops.gather_nd", composed=True)
def gather_nd(x: Any, indices: Any, batch_dims: int = 0) -> Tracer:
    """`x` at places given as rows of numbers: the last axis of `indices` has one for each axis of x.

    With k numbers in a row the result is `x[i[..., 0], ..., i[..., k - 1]]` for `i = indices`; so rows
    shorter than x has axes choose whole parts; negative numbers count from the end. The first
    `batch_dims` axes are those of both, walked side by side. IndexError for a place that is not there.

    >>> jt.ops.gather_nd(np.array([[1, 2], [3, 4]]), np.array([[0, 1], [1, 0]]))
    array([2, 3])
    """
    a, rows = array(x), integers("gather_nd", indices=indices)
    batch = operator.index(batch_dims)
    shared = a.shape[:batch] == rows.shape[:batch]
    if rows.ndim == 0 or not 0 <= batch < rows.ndim or not shared:
        refuse_shapes(
            f"gather_nd: {batch} axes are not shared by x and indices, or no row of numbers is left",
            "let x and indices begin with the same batch_dims axes; indices has one axis more.",
            x=a,
            indices=rows,
        )
    _check_depth("gather_nd", rows, a.ndim - batch, x=a, indices=rows)
    return a[(*_batch_places(rows.shape[:-1], batch), *_columns(rows))]


@function("ops.scatter_nd", composed=True)
def scatter_nd(indices: Any, updates: Any, shape: Any) -> Tracer:
    """Zeros of `shape`, to which `updates` are added at places in rows of numbers, as in `gather_nd`.

    What goes to one place is summed. `updates` has the shape `indices.shape[:-1] + shape[k:]` for rows
    of k numbers, or one that broadcasts to it. IndexError for a place that is not there. With other
    contents than zeros, and other ways to combine, `jt.at(x)[...]` does it.

    >>> jt.ops.scatter_nd(np.array([[1], [3], [1]]), np.array([9, 10, 11]), (5,))
    array([ 0, 20,  0, 10,  0])
    """
    rows, new, whole = integers("scatter_nd", indices=indices), array(updates), sizes(shape)
    if rows.ndim == 0:
        refuse_shapes(
            "scatter_nd: indices is a number", "give rows of numbers: [[i], ...].", indices=rows
        )
    _check_depth("scatter_nd", rows, len(whole), indices=rows, updates=new)
    result = wrap(build().full(whole, 0, new.dtype), scalar=False)
    update(result, _columns(rows), new, "add")
    return result


def _columns(rows: Tracer) -> tuple[Tracer, ...]:
    return tuple(rows[..., i] for i in range(rows.shape[-1]))


def _check_depth(name: str, rows: Tracer, depth: int, **shown: Any) -> None:
    if not 1 <= rows.shape[-1] <= depth:
        refuse_shapes(
            f"{name}: rows of {rows.shape[-1]} numbers for {depth} axes",
            "the last axis of indices has one number or more, and at most one for each axis.",
            **shown,
        )


def _batch_places(shape: tuple[int, ...], batch: int) -> tuple[Tracer, ...]:
    """An index array for each of the first `batch` axes of `shape`, which counts along it."""
    ones = (1,) * len(shape)
    grid = [(*ones[:d], shape[d], *ones[d + 1 :]) for d in range(batch)]
    return tuple(
        wrap(build().iota(shape=along, dtype=I64, axis=d), scalar=False)
        for d, along in enumerate(grid)
    )


@function("ops.batch_gather", composed=True)
def batch_gather(x: Any, indices: Any) -> Tracer:
    """Of each row of `x` the parts with the numbers that the same row of `indices` holds.

    All axes of `indices` but the last are those that x begins with: the result has the shape
    `indices.shape + x.shape[indices.ndim:]`. IndexError for a number that is none of a part.

    >>> jt.ops.batch_gather(np.array([[1, 2], [3, 4]]), np.array([[1, 1], [0, 1]]))
    array([[2, 2],
           [3, 4]])
    """
    a, chosen = array(x), integers("batch_gather", indices=indices)
    batch = chosen.ndim - 1
    if batch < 0 or a.ndim < chosen.ndim or a.shape[:batch] != chosen.shape[:batch]:
        refuse_shapes(
            "batch_gather: indices does not begin with the axes of x",
            "give indices of shape x.shape[:k] + (n,).",
            x=a,
            indices=chosen,
        )
    return array(a[(*_batch_places(chosen.shape, batch), chosen)])


@function("ops.boolean_mask", composed=True)
def boolean_mask(
    x: Any, mask: Any, axis: int = 0, *, size: int | None = None, fill_value: Any = None
) -> Any:
    """The parts of `x` at which `mask` is true, one after the other.

    The axes of x from `axis` on that mask has become one. With `size` it has so many parts, the first
    ones if there are more, filled up with `fill_value` (0) if there are fewer; without, compiled code
    gives an array whose length is a value.

    >>> jt.ops.boolean_mask(np.array([[1, 2], [3, 4], [5, 6]]), np.array([True, False, True]))
    array([[1, 2],
           [5, 6]])
    >>> jt.ops.boolean_mask(np.arange(4), np.arange(4) > 1, size=3)
    array([2, 3, 0])
    """
    a, chosen = array(x), array(mask)
    axis = axis_index(axis, a.ndim, a)
    end = axis + chosen.ndim
    if chosen.dtype != np.bool_ or chosen.ndim == 0 or a.shape[axis:end] != chosen.shape:
        refuse_shapes(
            "boolean_mask: mask is not of dtype bool, or has not the axes of x that it chooses from",
            "give a mask of bool whose shape is that of x from axis on.",
            x=a,
            mask=chosen,
        )
    flat = a.reshape((*a.shape[:axis], math.prod(chosen.shape), *a.shape[end:]))
    compress = FUNCTIONS["compress"].traced
    return compress(chosen.ravel(), flat, axis, size=size, fill_value=fill_value)


@function("ops.reverse_sequence", composed=True)
def reverse_sequence(x: Any, lengths: Any, axis: int = 1, batch_axis: int = 0) -> Tracer:
    """`x` with the first `lengths[b]` elements along `axis` in reverse, for each b along `batch_axis`.

    What is behind them stays where it is.

    >>> jt.ops.reverse_sequence(np.array([[1, 2, 3], [4, 5, 6]]), np.array([2, 3]))
    array([[2, 1, 3],
           [6, 5, 4]])
    """
    a, count = array(x), integers("reverse_sequence", lengths=lengths)
    axis, batch = axis_index(axis, a.ndim, a), axis_index(batch_axis, a.ndim, a)
    if axis == batch or count.shape != (a.shape[batch],):
        refuse_shapes(
            "reverse_sequence: there is not one length for each sequence",
            "give lengths of shape (x.shape[batch_axis],), and two different axes.",
            x=a,
            lengths=count,
        )
    n = a.shape[axis]
    fits = ((count >= 0) & (count <= n)).all()
    check_values(fits, f"reverse_sequence: lengths are from 0 to {n}, the size of the axis")
    ends = count.reshape([-1 if d == batch else 1 for d in range(a.ndim)])
    at = arange(n).reshape([n if d == axis else 1 for d in range(a.ndim)])
    return take_along_axis(a, where(at < ends, ends - 1 - at, at), axis)


@function("ops.invert_permutation", composed=True)
def invert_permutation(x: Any) -> Tracer:
    """Where each number stands in a permutation of 0..n-1: `y[x[i]] = i`.

    ValueError if a number is missing.

    >>> jt.ops.invert_permutation(np.array([2, 0, 1]))
    array([1, 2, 0])
    """
    order = integers("invert_permutation", x=x)
    if order.ndim != 1:
        refuse_shapes(
            "invert_permutation: a permutation has one axis", "give one permutation.", x=order
        )
    n = order.shape[0]
    places = wrap(build().full((n,), -1, I64), scalar=False)
    update(places, counted("invert_permutation", "x", order, n), arange(n), "set")
    missing = "invert_permutation: a number is there twice, and another one is missing"
    check_values((places >= 0).all(), missing)
    return places.astype(order.dtype)
