"""Products with sparse matrices: of traced values as ops, of arrays by SciPy where it is installed."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...ir.graph import Value
from ...ir.types import BOOL, I64
from ..arrays.common import array, build, common_dtype
from ..arrays.table import ArrayFunction, eagerly
from ..core.tracers import Tracer, as_value, wrap
from ..indexing.indexing import update


def _compressed(pointers: Any, minors: Any, data: Any, x: Any, size: int, across: bool) -> Tracer:
    """The rows of a compressed matrix times x; or, `across`, its columns, of which there are `size`."""
    parts = [array(v) for v in (pointers, minors, data, x)]
    dtype = common_dtype(*parts[2:])
    if dtype == BOOL:
        numbers, other = (p.astype(I64) for p in parts[2:])
        return _compressed(pointers, minors, numbers, other, size, across) != 0
    b = build()
    rows = parts[0].shape[0] - 1
    pointer = as_value(parts[0])
    starts = b.slice(pointer, start=(0,), stop=(rows,), step=(1,))
    ends = b.slice(pointer, start=(1,), stop=(rows + 1,), step=(1,))
    elements, matrix = as_value(parts[2], dtype), as_value(parts[3], dtype)
    flat = len(matrix.shape) == 1
    if flat:
        matrix = b.reshape(matrix, shape=(*matrix.shape, 1))
    where = (starts, ends, as_value(parts[1]), elements, matrix)
    y: Value = b.op("sparse_dot_t", *where, size=size) if across else b.op("sparse_dot", *where)
    return wrap(b.reshape(y, shape=y.shape[:1]) if flat else y, scalar=False)


_eager_compressed = eagerly(_compressed)


def _compressed_now(pointers: Any, minors: Any, data: Any, x: Any, size: int, across: bool) -> Any:
    try:
        from scipy.sparse import csr_array
    except ImportError:
        return _eager_compressed(pointers, minors, data, x, size, across)
    rows = len(pointers) - 1
    whole = csr_array((data, minors, pointers), shape=(rows, size))
    return (whole.T if across else whole) @ np.asarray(x)


def _coordinates(rows: Any, columns: Any, data: Any, x: Any, size: int) -> Tracer:
    """Of `size` rows, data[k] * x[columns[k]] added to row rows[k]."""
    at, elements, other = array(rows), array(data), array(x)
    dtype = common_dtype(elements, other)
    if dtype == BOOL:
        return _coordinates(at, columns, elements.astype(I64), other.astype(I64), size) != 0
    read = array(other[(array(columns),)])
    if other.ndim == 2:
        elements = elements[:, None]
    y = wrap(build().full((size, *other.shape[1:]), 0, dtype), scalar=False)
    update(y, at, elements * read, "add")
    return y


def _dense(rows: Any, columns: Any, data: Any, shape: tuple[int, int]) -> Tracer:
    elements = array(data)
    if elements.dtype == BOOL:
        return _dense(rows, columns, elements.astype(I64), shape) != 0
    y = wrap(build().full(shape, 0, elements.dtype), scalar=False)
    update(y, (array(rows), array(columns)), elements, "add")
    return y


def _row_numbers(pointers: Any, count: int) -> Tracer:
    """The row of each of `count` elements of a compressed matrix."""
    ends = array(pointers)
    b, n = build(), ends.shape[0] - 1
    first, last = (b.slice(as_value(ends), start=(k,), stop=(n + k,), step=(1,)) for k in range(2))
    return wrap(b.op("sparse_rows", first, last, size=count), scalar=False)


def _now(pointers: Any, count: int) -> Any:
    return np.repeat(np.arange(len(pointers) - 1), np.diff(pointers))[:count]


compressed_product = ArrayFunction("sparse.product", _compressed, _compressed_now, None)
coordinate_product = ArrayFunction(
    "sparse.coordinate_product", _coordinates, eagerly(_coordinates), None
)
numbers_of_rows = ArrayFunction("sparse.row_numbers", _row_numbers, _now, None)
whole_matrix = ArrayFunction("sparse.to_dense", _dense, eagerly(_dense), None)
