"""The order of complex numbers, as real ops on their parts: what `max`, `argmin` and `sort` go by.

The real part decides, then the imaginary part; a NaN in any part is beyond all numbers.
"""

from __future__ import annotations

import numpy as np

from ..build import Builder
from ..graph import Value
from ..ops.folds.reductions import restore
from ..ops.movement.indexing import take_along
from ..ops.term import Term
from ..types import I8

Pair = tuple[Value, Value]  # real parts, imaginary parts


def extremum_index(b: Builder, pair: Pair, axis: int, largest: bool) -> Value:
    """Along `axis`, where the first extremum is, or the first NaN."""
    re, im = Term(b, pair[0]), Term(b, pair[1])
    reduction, none = ("max", -np.inf) if largest else ("min", np.inf)

    def extremum(x: Term, among: Term) -> Term:
        candidates = b.select(among.value, x.value, b.full_like(x.value, none))
        best = b.op(reduction, candidates, axes=(axis,))
        return Term(b, restore(b, best, x.value.shape, (axis,)))

    nan = re.isnan() | im.isnan()
    first = nan.invert() & re.eq(extremum(re, nan.invert()))
    best = first & im.eq(extremum(im, first))
    any_nan = Term(b, restore(b, b.op("any", nan.value, axes=(axis,)), re.value.shape, (axis,)))
    index: Value = b.argmax(((any_nan & nan) | (any_nan.invert() & best)).value, axis=axis)
    return index


def sorted_order(b: Builder, pair: Pair, axis: int) -> Value:
    """The stable order: by what is NaN, then by the real, then by the imaginary part."""
    re, im = pair
    nans = b.add(
        b.mul(b.convert(b.isnan(re), dtype=I8), b.full(re.shape, 2, I8)),
        b.convert(b.isnan(im), dtype=I8),
    )
    order = b.argsort(im, axis=axis, stable=True)
    for key in (re, nans):
        then = b.argsort(take_along(b, key, order, axis), axis=axis, stable=True)
        order = take_along(b, order, then, axis)
    return order
