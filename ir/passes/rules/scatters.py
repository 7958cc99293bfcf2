"""Scatters to indices that are known: each element takes what is added to it. Exact, in the same order.

    before: y = x; y[index[p]] += u[p] for each p            (one after the other)
    after:  y[k] = x[k] + the few u[p] whose p leads to k    (vectors, threads)

So are the derivatives of reading at known indices, as resizing and resampling do.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...graph import Op
from ...types import I64
from .rewrite import Replacement, Rewriter, Rule, constant, on

LARGE = 1 << 20  # indices that are not looked through
MOST = 16  # terms of an element
WASTE = 4  # terms in all, for each element of the update, of which some are not there


def _known_scatter(b: Rewriter, op: Op) -> Replacement:
    x, u, *indices = op.operands
    attrs = op.attrs
    if attrs["combine"] != "add" or len(indices) != 1 or 0 in (*x.shape, *u.shape):
        return None
    index, (axis,) = constant(indices[0]), attrs["axes"]
    if index is None or not 1 < index.size <= LARGE:
        return None
    terms = _terms(index.reshape(-1), x.shape[axis], attrs["mode"] == "clip")
    if terms is None:
        return None
    rest = tuple([n for d, n in enumerate(x.shape) if d != axis])
    rows = b.reshape(u, shape=(index.size, *rest))
    order = list(range(1, len(x.shape)))
    order.insert(axis, 0)
    total = x
    for source, there in terms:
        term = b.gather(rows, b.const(source, I64), axes=(0,), mode="clip")
        added = b.add(total, b.transpose(term, perm=tuple(order)))
        if not there.all():
            test = b.broadcast(b.const(there), shape=x.shape, dims=(axis,))
            added = b.select(test, added, total)
        total = added
    return total


def _terms(index: np.ndarray[Any, Any], n: int, clip: bool) -> list[Any] | None:
    """For each of the terms that an element has at the most: which entry of the update that is, for all
    elements, and whether there is one."""
    index = np.clip(index, 0, n - 1) if clip else np.where(index < 0, index + n, index)
    if index.min() < 0 or index.max() >= n:
        return None  # refused, when it runs
    counts = np.bincount(index, minlength=n)
    most = int(counts.max())
    if most > MOST or most * n > WASTE * index.size:
        return None
    order = np.argsort(index, kind="stable")
    starts = np.cumsum(counts) - counts
    return [(order[np.minimum(starts + t, index.size - 1)], counts > t) for t in range(most)]


SCATTERS: list[Rule] = [on("scatter", _known_scatter)]
