"""Rows that belong together by a number: reduced, told apart, put together again, counted."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...ir.types import F64, I64, is_inexact
from ..arrays import ufuncs
from ..arrays.common import array, build, common_dtype
from ..arrays.elementwise import where
from ..arrays.movement import broadcast_to, concatenate
from ..arrays.reductions import highest, lowest
from ..arrays.table import FUNCTIONS, function
from ..core.tracers import Tracer, wrap
from ..data.promotion import sum_dtype
from ..indexing.indexing import update
from .checks import counted, integers, known_size, refuse_shapes

_TEXT = """{what} of the rows of `data` with the number 0, those with 1, ..., `num_segments - 1`.

    `ids` has a number for each row, in any order; if it has several axes they are the first ones of
    data. Without `num_segments`, which compiled code needs, there are as many as the largest number
    asks for. A segment without rows is {empty}; the dtype is {dtype}. A number that is none of a
    segment is an IndexError; with mode="drop" its row is left out.

    >>> jt.ops.segment_{name}(np.array([1.0, 2.0, 5.0]), np.array([0, 0, 2]), 3)
    {shown}
    """


def _text(name: str, what: str, empty: str, dtype: str, shown: str) -> str:
    return _TEXT.format(name=name, what=what, empty=empty, dtype=dtype, shown=shown)


def _segment(name: str, combine: str, identity: Callable[[Any], Any], *texts: str) -> None:
    def traced(data: Any, ids: Any, num_segments: int | None = None, *, mode: str = "check") -> Any:
        x, numbers = array(data), integers(f"segment_{name}", ids=ids)
        if combine in ("add", "multiply"):
            x = x.astype(sum_dtype(x.dtype))
        return _reduced(f"segment_{name}", x, numbers, num_segments, mode, combine, identity)

    traced.__name__ = f"segment_{name}"
    traced.__doc__ = _text(name, *texts)
    function(f"ops.segment_{name}", composed=True)(traced)


def _reduced(
    name: str,
    x: Tracer,
    ids: Tracer,
    num_segments: int | None,
    mode: str,
    combine: str,
    identity: Callable[[Any], Any],
) -> Tracer:
    if ids.ndim == 0 or x.shape[: ids.ndim] != ids.shape:
        refuse_shapes(
            f"{name}: ids has not one number for each row of data",
            "give ids of shape data.shape[:k].",
            data=x,
            ids=ids,
        )
    if mode not in ("check", "drop"):
        raise ValueError(f"{name}: mode={mode!r} is not 'check' or 'drop'")
    n, row = known_size(name, "num_segments", num_segments, ids), x.shape[ids.ndim :]
    if mode == "check":
        table = _full((n, *row), identity(x.dtype), x.dtype)
        update(table, counted(name, "ids", ids, n), x, combine)
        return table
    # What is left out goes to a place of its own: that costs less than to ask where to go.
    table = _full((n + 1, *row), identity(x.dtype), x.dtype)
    numbers = where((ids >= 0) & (ids < n), ids, n)
    update(table, numbers, x, combine, "promise_in_bounds")
    return table[:n].copy()


def _full(shape: tuple[int, ...], value: Any, dtype: Any) -> Tracer:
    return wrap(build().full(shape, value, dtype), scalar=False)


def _zero(dtype: Any) -> int:
    return 0


_segment("sum", "add", _zero, "The sums", "0", "that of `np.sum`", "array([3., 0., 5.])")
_segment(
    "prod",
    "multiply",
    lambda dtype: 1,
    "The products",
    "1",
    "that of `np.prod`",
    "array([2., 1., 5.])",
)
_segment(
    *("max", "max", lowest, "The largest of each column"),
    "the least that the dtype has, minus infinity for floats",
    "that of data",
    "array([  2., -inf,   5.])",
)
_segment(
    *("min", "min", highest, "The smallest of each column"),
    "the largest that the dtype has, infinity for floats",
    "that of data",
    "array([ 1., inf,  5.])",
)


def _mean(data: Any, ids: Any, num_segments: int | None = None, *, mode: str = "check") -> Tracer:
    name = "segment_mean"
    x, numbers = array(data), integers(name, ids=ids)
    x = x if is_inexact(x.dtype) else x.astype(F64)
    total = _reduced(name, x, numbers, num_segments, mode, "add", _zero)
    ones = _full(numbers.shape, 1, I64)
    count = _reduced(name, ones, numbers, total.shape[0], mode, "add", _zero)
    divisor = ufuncs.apply(np.maximum, count, 1).astype(x.dtype)
    return total / divisor.reshape((-1, *(1,) * (total.ndim - 1)))


_mean.__name__ = "segment_mean"
_mean.__doc__ = _text("mean", "The means", "0", "that of `np.mean`", "array([1.5, 0. , 5. ])")
function("ops.segment_mean", composed=True)(_mean)


@function("ops.dynamic_partition", composed=True)
def dynamic_partition(
    data: Any,
    partitions: Any,
    num_partitions: int,
    *,
    size: int | Sequence[int] | None = None,
    fill_value: Any = None,
) -> tuple[Any, ...]:
    """The rows of `data` with the number 0, those with 1, ...: a tuple of `num_partitions` arrays.

    `partitions` has a number for each row; if it has several axes they are the first ones of data,
    which become one. A row with another number is in none. With `size` (one for all, or one for each)
    each has so many rows, the first ones if there are more, filled up with `fill_value` (0) if there
    are fewer; without, compiled code gives arrays whose lengths are values.

    >>> jt.ops.dynamic_partition(np.array([10, 20, 30]), np.array([1, 0, 1]), 2)
    (array([20]), array([10, 30]))
    """
    x, numbers = array(data), integers("dynamic_partition", partitions=partitions)
    if numbers.ndim == 0 or x.shape[: numbers.ndim] != numbers.shape:
        refuse_shapes(
            "dynamic_partition: partitions has not one number for each row of data",
            "give partitions of shape data.shape[:k].",
            data=x,
            partitions=numbers,
        )
    count = operator.index(num_partitions)
    lengths = [size] * count if size is None or isinstance(size, int) else list(size)
    if len(lengths) != count:
        raise ValueError(f"dynamic_partition: {len(lengths)} sizes for {count} partitions")
    rows = x.reshape((numbers.size, *x.shape[numbers.ndim :]))
    of, compress = numbers.ravel(), FUNCTIONS["compress"].traced
    return tuple(
        compress(of == part, rows, 0, size=lengths[part], fill_value=fill_value)
        for part in range(count)
    )


@function("ops.dynamic_stitch", composed=True)
def dynamic_stitch(indices: Sequence[Any], data: Sequence[Any], size: int | None = None) -> Tracer:
    """Rows put together: `y[indices[k][i]] = data[k][i]`, where later ones replace earlier ones.

    `indices` and `data` are as long as each other; `data[k]` begins with the axes of `indices[k]`. The
    result has `size` rows, by default as many as the largest number asks for, which compiled code has
    to be told. A row that nothing is put into is 0.

    >>> jt.ops.dynamic_stitch([np.array([1]), np.array([0, 2])], [np.array([20]), np.array([10, 30])])
    array([10, 20, 30])
    """
    numbers = [integers("dynamic_stitch", indices=i) for i in indices]
    parts = [array(d) for d in data]
    if len(numbers) != len(parts) or not parts:
        raise ValueError(
            f"dynamic_stitch: {len(numbers)} arrays of indices and {len(parts)} of data; there is one "
            "of each at least"
        )
    row = parts[0].shape[numbers[0].ndim :]
    for i, part in zip(numbers, parts, strict=True):
        if part.shape != (*i.shape, *row):
            refuse_shapes(
                "dynamic_stitch: rows differ, or there is not one number for each of them",
                "give data[k] of shape indices[k].shape + row, with one row for all k.",
                indices=i,
                data=part,
            )
    places = numbers[0] if size is not None else concatenate([i.ravel() for i in numbers])
    n = known_size("dynamic_stitch", "size", size, places)
    result = _full((n, *row), 0, common_dtype(*parts))
    for i, part in zip(numbers, parts, strict=True):
        update(result, counted("dynamic_stitch", "indices", i, n), part.astype(result.dtype), "set")
    return result


@function("ops.confusion_matrix", composed=True)
def confusion_matrix(
    labels: Any,
    predictions: Any,
    num_classes: int | None = None,
    weights: Any = None,
    dtype: Any = None,
) -> Tracer:
    """How often class `i` (rows) was called class `j` (columns): counts, or sums of `weights`.

    `labels` and `predictions` are classes 0..num_classes-1 in arrays of one shape. Without
    `num_classes`, which compiled code needs, there are as many as the largest number asks for. The
    dtype is int64, or that of the sum of the weights. IndexError for another class.

    >>> jt.ops.confusion_matrix(np.array([0, 1, 1]), np.array([0, 1, 0]))
    array([[1, 0],
           [1, 1]])
    """
    name = "confusion_matrix"
    true, said = integers(name, labels=labels), integers(name, predictions=predictions)
    if true.shape != said.shape:
        refuse_shapes(
            f"{name}: labels and predictions differ in shape",
            "give one prediction for each label.",
            labels=true,
            predictions=said,
        )
    given = true if num_classes is not None else concatenate([true.ravel(), said.ravel()])
    n = known_size(name, "num_classes", num_classes, given)
    if weights is None:
        added = array(np.ones((), I64 if dtype is None else dtype))
    else:
        added = array(weights)
        added = broadcast_to(added.astype(dtype or sum_dtype(added.dtype)), true.shape)
    table = _full((n, n), 0, added.dtype)
    places = (counted(name, "labels", true, n), counted(name, "predictions", said, n))
    update(table, places, added, "add")
    return table
