"""Arrays of expressions: a small value taken apart, with an `Expr` for each of its elements."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np

from ...ir.ops.products.contraction import free_axes
from ...ir.types import BOOL, I64
from ..loop_ir.index import Index
from ..math import EXPANSIONS
from ..math.combiners import fold
from ..scalar import DType, Expr, Unique, binary, const, convert, eq, ne, select, var
from .pointwise import IndexTuple, index_value

Elements = np.ndarray[Any, Any]  # of Exprs, in the shape of the value

RUNNING = {"cumsum": "add", "cumprod": "mul", "cummax": "maximum", "cummin": "minimum"}
_BYTE = np.dtype(np.uint8)


def at(position: Sequence[int]) -> IndexTuple:
    """A position of plain integers, as indices."""
    return tuple(Index(k) for k in position)


def variables(like: Elements) -> Elements:
    """A fresh scalar variable for each element, in the shape and with the dtypes of `like`."""
    elements = np.empty(like.shape, object)
    for position in np.ndindex(*like.shape):
        elements[position] = var(Unique("value"), like[position].dtype)
    return elements


def pick(elements: Elements, index: IndexTuple) -> Expr:
    """One element; a chain of selections where the program computes the index."""
    if not index:
        only: Expr = elements.item()
        return only
    first, rest = index[0], index[1:]
    if not first.terms:
        return pick(elements[first.const : first.const + 1].reshape(elements.shape[1:]), rest)
    options = [
        pick(elements[k : k + 1].reshape(elements.shape[1:]), rest) for k in range(len(elements))
    ]
    last, here = options[-1], index_value(first)
    for k in reversed(range(len(options) - 1)):
        if options[k] is not last:
            last = select(eq(here, k), options[k], last)
    return last


def reached(
    index: IndexTuple, shape: tuple[int, ...]
) -> Iterator[tuple[tuple[int, ...], Expr | None]]:
    """The positions that `index` may stand for, each with the condition that it does (None: it does)."""
    for spot in product(*(range(n) for n in shape)):
        pairs = list(zip(index, spot, strict=True))
        if any(not i.terms and i.const != k for i, k in pairs):
            continue
        here: Expr | None = None
        for i, k in pairs:
            if i.terms:
                same = eq(index_value(i), k)
                here = same if here is None else here & same
        yield spot, here


def chooses(index: Expr, k: int, number: int) -> Expr:
    """Whether the index of a branch, clamped into range, chooses part `k` of so many."""
    if k == number - 1:
        return index >= k
    return eq(index, k) if k else index <= k


def chosen(index: Expr, parts: Sequence[Elements]) -> Elements:
    """The part that the index of a branch chooses, clamped into range."""
    chosen = parts[-1]
    for k in reversed(range(len(parts) - 1)):
        pairs = zip(parts[k].flat, chosen.flat, strict=True)
        choice = np.empty(chosen.shape, object)
        choice.reshape(-1)[:] = [one_of(index, k, a, b) for a, b in pairs]
        chosen = choice
    return chosen


def one_of(index: Expr, k: int, a: Expr, b: Expr) -> Expr:
    """`a` where the index of a branch is no more than `k`, else `b`; of integers perhaps the smaller."""
    if a is b:
        return a
    if k or index.op != "convert" or index.args[0].dtype != BOOL:
        return select(index <= k, a, b)
    (test,) = index.args
    if test.op in _LESS and a.dtype.kind in "iu" and {*test.args} == {a, b}:
        return binary("min" if _LESS[test.op] == (test.args[0] is b) else "max", a, b)
    return select(test, b, a)


_LESS = {"lt": True, "le": True, "gt": False, "ge": False}


def along_last(function: Callable[[list[Expr]], Expr], rows: Elements) -> Elements:
    """The function of each row along the last axis."""
    folded = np.empty(rows.shape[:-1], object)
    for position in np.ndindex(*folded.shape):
        folded[position] = function(list(rows[position]))
    return folded


def running(name: str, source: Elements, axis: int, reverse: bool) -> Elements:
    """A running sum (product, maximum, minimum) along one axis, from either end."""
    function = EXPANSIONS[RUNNING[name]]
    scanned = source.copy()
    rows = np.moveaxis(scanned, axis, 0)
    if reverse:
        rows = rows[::-1]
    for k in range(1, len(rows)):
        for position in np.ndindex(*rows.shape[1:]):
            rows[(k, *position)] = function(rows[(k - 1, *position)], rows[(k, *position)])
    return scanned


def index_of_best(name: str, values: list[Expr]) -> Expr:
    """The index of the first greatest or smallest value; a NaN beats all."""
    if values[0].dtype.kind == "b":
        values = [convert(v, _BYTE) for v in values]
    best, index = values[0], const(0, I64)
    for k, value in enumerate(values[1:], 1):
        better = value > best if name == "argmax" else value < best
        if value.dtype.kind == "f":
            better = (better | ne(value, value)) & eq(best, best)
        best, index = select(better, value, best), select(better, const(k, I64), index)
    return index


def products(
    a: Elements,
    b: Elements,
    contract: tuple[Sequence[int], Sequence[int]],
    batch: tuple[Sequence[int], Sequence[int]],
    dtype: DType,
) -> Elements:
    """The op `dot`: dims of the batch, then what is left of a, then of b."""
    (ac, bc), (ab, bb) = contract, batch
    am, bn = free_axes(a.ndim, ac, ab), free_axes(b.ndim, bc, bb)
    shape = (*(a.shape[d] for d in (*ab, *am)), *(b.shape[d] for d in bn))
    over = int(np.prod([a.shape[d] for d in ac], dtype=int))
    left = a.transpose([*ab, *am, *ac]).reshape(*(a.shape[d] for d in (*ab, *am)), over)
    right = b.transpose([*bb, *bn, *bc]).reshape(*(b.shape[d] for d in (*bb, *bn)), over)
    rows = len(ab) + len(am)
    products = np.empty(shape, object)
    for position in np.ndindex(*shape):
        row, column = left[position[:rows]], right[(*position[: len(ab)], *position[rows:])]
        products[position] = _product(list(zip(row, column, strict=True)), dtype)
    return products


def _product(pairs: list[tuple[Expr, Expr]], dtype: DType) -> Expr:
    """A sum of products."""
    return fold("sum", [a * b for a, b in pairs], dtype)
