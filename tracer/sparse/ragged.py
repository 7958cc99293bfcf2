"""Rows of different lengths: one after the other, or padded to one length."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ..arrays.common import array, known_array
from ..arrays.creation import arange
from ..arrays.elementwise import clip, where
from ..arrays.table import ArrayFunction, eagerly
from ..core.tracers import Tracer
from ..functions.scans import cumsum
from ..functions.value_shapes import compress
from ..messages import errors
from ..messages.errors import complain


def _lengths(name: str, lengths: Any) -> Tracer:
    n = array(lengths)
    if n.ndim != 1 or n.dtype.kind not in "iu":
        complain(
            errors.ShapeError,
            f"{name}: lengths are no array of integers with one axis",
            "give the length of each row.",
            operands={"lengths": n},
        )
    return n


def _to_padded(values: Any, lengths: Any, size: int | None = None, fill_value: Any = 0) -> Tracer:
    name = "ragged_to_padded"
    x, n = array(values), _lengths(name, lengths)
    if size is None:
        known = known_array(n)
        if known is None:
            complain(
                errors.DynamicShapeError,
                f"{name}: the longest row decides the result's shape, and it is known only when the "
                "compiled function runs",
                "pass size=.",
                operands={"lengths": n},
            )
        size = int(known.max()) if known.size else 0
    size = operator.index(size)
    ends = cumsum(n.astype(np.int64))
    at = arange(size)
    place = (ends - n)[:, None] + at
    there = (at < n[:, None]).reshape((n.shape[0], size, *(1,) * (x.ndim - 1)))
    if not x.shape[0]:
        x = array(np.zeros((1, *x.shape[1:]), x.dtype))
    rows = array(x[clip(place, 0, x.shape[0] - 1)])
    return where(there, rows, array(fill_value).astype(x.dtype))


def _to_ragged(padded: Any, lengths: Any, size: int | None = None, fill_value: Any = 0) -> Any:
    x, n = array(padded), _lengths("padded_to_ragged", lengths)
    if x.ndim < 2 or x.shape[0] != n.shape[0]:
        complain(
            errors.ShapeError,
            "padded_to_ragged: there is not one length for each row",
            "give rows (n, size, ...) and n lengths.",
            operands={"padded": x, "lengths": n},
        )
    there = arange(x.shape[1]) < n[:, None]
    flat = x.reshape((x.shape[0] * x.shape[1], *x.shape[2:]))
    return compress(there.ravel(), flat, 0, size=size, fill_value=fill_value if size else None)


_PADDED = ArrayFunction("sparse.ragged_to_padded", _to_padded, eagerly(_to_padded), None)
_RAGGED = ArrayFunction("sparse.padded_to_ragged", _to_ragged, eagerly(_to_ragged), None)


def ragged_to_padded(
    values: Any, lengths: Any, size: int | None = None, fill_value: Any = 0
) -> Any:
    """Rows that stand one after the other in `values`, each padded to `size` with `fill_value`.

    The result has the shape (rows, size, ...); a longer row is cut off. Without `size`, which compiled
    code needs, it is the length of the longest.

    >>> jt.sparse.ragged_to_padded(np.array([1, 2, 3]), np.array([2, 0, 1]))
    array([[1, 2],
           [0, 0],
           [3, 0]])
    """
    return _PADDED(values, lengths, size, fill_value)


def padded_to_ragged(
    padded: Any, lengths: Any, size: int | None = None, fill_value: Any = 0
) -> Any:
    """The first `lengths[r]` elements of each row, one row after the other: the way back.

    With `size` the result has so many elements, filled up with `fill_value`; without, compiled code
    gives an array whose length is a value.

    >>> jt.sparse.padded_to_ragged(np.array([[1, 2], [0, 0], [3, 0]]), np.array([2, 0, 1]))
    array([1, 2, 3])
    """
    return _RAGGED(padded, lengths, size, fill_value)
