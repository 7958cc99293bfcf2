"""Bags of rows of a table: what an embedding of several words at once is."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...ir.types import F64, is_inexact
from ..arrays import ufuncs
from ..arrays.common import array, build
from ..arrays.elementwise import where
from ..arrays.table import FUNCTIONS, ArrayFunction, eagerly
from ..core.tracers import Tracer, wrap
from ..messages import errors
from ..messages.errors import complain
from .products import compressed_product, numbers_of_rows


def _bag(table: Any, ids: Any, offsets: Any, weights: Any = None, combine: str = "sum") -> Tracer:
    rows, chosen, pointers = array(table), array(ids), array(offsets)
    given = None if weights is None else array(weights)
    if combine not in ("sum", "mean", "sqrtn", "max"):
        raise ValueError(f"combine={combine!r} is not 'sum', 'mean', 'sqrtn' or 'max'")
    if (
        rows.ndim != 2
        or any(v.ndim != 1 or v.dtype.kind not in "iu" for v in (chosen, pointers))
        or (given is not None and given.shape != chosen.shape)
        or not pointers.shape[0]
    ):
        shown = {"table": rows, "ids": chosen, "offsets": pointers}
        complain(
            errors.ShapeError,
            "embedding_bag: table is no matrix, ids or offsets are no integers with one axis, or there "
            "is not one weight for each id",
            "give offsets of bags + 1 numbers, as indptr: bag i has ids[offsets[i]:offsets[i + 1]].",
            operands=shown if given is None else {**shown, "weights": given},
        )
    if combine == "max":
        if given is not None:
            raise ValueError("embedding_bag: combine='max' takes no weights")
        number = numbers_of_rows.traced(pointers, chosen.shape[0])
        most = FUNCTIONS["ops.segment_max"].traced(rows[chosen], number, pointers.shape[0] - 1)
        return where((pointers[1:] > pointers[:-1])[:, None], most, 0)
    if not is_inexact(rows.dtype):
        rows = rows.astype(F64)
    if given is None:
        given = wrap(build().full(chosen.shape, 1, rows.dtype), scalar=False)
    total = compressed_product.traced(pointers, chosen, given, rows, rows.shape[0], False)
    if combine == "sum":
        return total
    shares = given if combine == "mean" else given * given
    ones = wrap(build().full((rows.shape[0],), 1, given.dtype), scalar=False)
    weight = compressed_product.traced(pointers, chosen, shares, ones, rows.shape[0], False)
    weight = weight if combine == "mean" else ufuncs.apply(np.sqrt, where(weight == 0, 1, weight))
    return total / where(weight == 0, 1, weight).astype(total.dtype)[:, None]


_BAG = ArrayFunction("sparse.embedding_bag", _bag, eagerly(_bag), None)


def embedding_bag(
    table: Any, ids: Any, offsets: Any, weights: Any = None, combine: str = "sum"
) -> Any:
    """Of each bag the rows of `table` that it names, as one row: their sum, "mean", "sqrtn" or "max".

    Bag i has the rows `ids[offsets[i]:offsets[i + 1]]`, so `offsets` has a number more than there are
    bags. `weights` are of each id: they weigh sums, a mean is divided by their sum, "sqrtn" by the root
    of the sum of their squares. A bag without rows is 0. Derivatives are those of table and weights.

    >>> table = np.array([[1.0, 2.0], [3.0, 4.0]])
    >>> jt.sparse.embedding_bag(table, np.array([0, 1, 1]), np.array([0, 2, 3]))
    array([[4., 6.],
           [3., 4.]])
    """
    return _BAG(table, ids, offsets, weights, combine)
