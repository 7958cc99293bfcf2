"""Diagonals, traces, and triangles of matrices."""

from __future__ import annotations

import operator
from typing import Any

from ...ir.types import I64
from ..arrays.common import array, axis_index, build, finish
from ..arrays.movement import moveaxis
from ..arrays.reductions import sum_
from ..arrays.table import function
from ..core import views
from ..core.tracers import Tracer, as_value, wrap, wrap_like
from .padding import pad


@function("diagonal")
def diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tracer:
    """NumPy gives a read-only view."""
    x = array(a)
    if x.ndim < 2:
        raise ValueError("diag requires an array of at least two dimensions")
    i, j = axis_index(axis1, x.ndim, x), axis_index(axis2, x.ndim, x)
    if i == j:
        raise ValueError("axis1 and axis2 cannot be the same")
    return views.read_only(diagonal_view(x, i, j, operator.index(offset)))


def diagonal_view(x: Tracer, i: int, j: int, offset: int = 0) -> Tracer:
    """The diagonals over the axes i and j, as the last axis of a view that can be written."""
    last = moveaxis(x, (i, j), (-2, -1))
    rows, columns = last.shape[-2:]
    row, column = max(-offset, 0), max(offset, 0)
    count = max(min(rows - row, columns - column), 0)
    return views.diagonal(last[..., row : row + count, column : column + count])


@function("linalg.diagonal")
def linalg_diagonal(x: Any, /, *, offset: int = 0) -> Tracer:
    return diagonal(x, offset, -2, -1)


@function("diag")
def diag(v: Any, k: int = 0) -> Tracer:
    x = array(v)
    if x.ndim == 2:
        return diagonal(x, k)
    if x.ndim != 1:
        raise ValueError("Input must be 1- or 2-d.")
    n = x.shape[0]
    b = build()
    # One element per row of n + 1, cut to n columns: the diagonal of a square.
    value = b.pad(
        b.reshape(as_value(x), shape=(n, 1)),
        b.const(0, x.dtype),
        low=(0, 0),
        high=(0, n),
        interior=(0, 0),
    )
    value = b.slice(b.reshape(value, shape=(n * (n + 1),)), start=(0,), stop=(n * n,), step=(1,))
    square = wrap(b.reshape(value, shape=(n, n)))
    return pad(square, ((max(-k, 0), max(k, 0)), (max(k, 0), max(-k, 0))))


@function("diagflat")
def diagflat(v: Any, k: int = 0) -> Tracer:
    return diag(array(v).ravel(), k)


@function("trace")
def trace(
    a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: Any = None
) -> Tracer:
    return finish(sum_(diagonal(a, offset, axis1, axis2), axis=-1, dtype=dtype), out)


@function("linalg.trace")
def linalg_trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Tracer:
    return trace(x, offset, -2, -1, dtype)


def _triangle(x: Tracer, k: int, lower: bool) -> Tracer:
    if x.ndim == 1:
        x = x[None, :].repeat(x.shape[0], 0)
    if x.ndim == 0:
        raise ValueError("mask needs at least one dimension")
    b = build()
    shape = x.shape
    rows = b.iota(shape=shape, dtype=I64, axis=len(shape) - 2)
    columns = b.iota(shape=shape, dtype=I64, axis=len(shape) - 1)
    edge = b.add(rows, b.full_like(rows, operator.index(k)))
    mask = b.le(columns, edge) if lower else b.ge(columns, edge)
    value = as_value(x)
    chosen = b.select(mask, value, b.full_like(value, 0))
    return wrap_like(chosen, (x, (shape[-2:], None)), scalar=False)  # NumPy's mask is a matrix


@function("tril")
def tril(m: Any, k: int = 0) -> Tracer:
    return _triangle(array(m), k, lower=True)


@function("triu")
def triu(m: Any, k: int = 0) -> Tracer:
    return _triangle(array(m), k, lower=False)
