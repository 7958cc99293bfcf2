"""Functions that rearrange or repeat elements: tile, repeat, pad, flip, roll, diagonals, grids."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from ...ir.types import BOOL, I64
from .. import views
from ..core import Tracer, as_value, wrap
from .common import (
    array,
    axis_index,
    axis_tuple,
    broadcast_shape,
    build,
    finish,
    ints,
    require_static,
)
from .movement import concatenate, moveaxis
from .reductions import sum_
from .table import function, refuse_option


@function("flip")
def flip(m: Any, axis: Any = None) -> Tracer:
    x = array(m)
    axes = axis_tuple(axis, x.ndim, x)
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


@function("rot90")
def rot90(m: Any, k: int = 1, axes: Any = (0, 1)) -> Tracer:
    x = array(m)
    if len(axes) != 2 or axes[0] == axes[1] or abs(axes[0] - axes[1]) == x.ndim:
        raise ValueError("Axes must be different.")
    i, j = (axis_index(a, x.ndim, x) for a in axes)
    perm = list(range(x.ndim))
    perm[i], perm[j] = perm[j], perm[i]
    k %= 4
    if k == 0:
        return x[...]
    if k == 2:
        return flip(x, (i, j))
    if k == 1:
        return views.transpose(flip(x, j), perm)
    return flip(views.transpose(x, perm), j)


@function("roll")
def roll(a: Any, shift: Any, axis: Any = None) -> Tracer:
    x = array(a)
    if axis is None:
        return roll(x.ravel(), shift, 0).reshape(x.shape)
    shifts, axes = np.broadcast_arrays(require_static(shift, "shift"), axis)
    for amount, ax in zip(shifts.ravel().tolist(), axes.ravel().tolist(), strict=True):
        ax = axis_index(ax, x.ndim, x)
        n = x.shape[ax]
        cut = n - amount % n if n else 0
        lead = (slice(None),) * ax
        if n and cut != n:
            x = concatenate([x[(*lead, slice(cut, n))], x[(*lead, slice(0, cut))]], ax)
    return x.copy()


@function("repeat")
def repeat(a: Any, repeats: Any, axis: Any = None) -> Tracer:
    x = array(a)
    if axis is None:
        x, axis = x.ravel(), 0
    axis = axis_index(axis, x.ndim, x)
    counts = require_static(repeats, "repeats")
    n = x.shape[axis]
    if counts.size == 1:
        count = int(counts.reshape(()))
        if count < 0:
            raise ValueError("repeats may not contain negative values.")
        shape = (*x.shape[: axis + 1], count, *x.shape[axis + 1 :])
        dims = tuple(i for i in range(len(shape)) if i != axis + 1)
        b = build()
        value = b.broadcast(as_value(x), shape=shape, dims=dims)
        final = (*x.shape[:axis], n * count, *x.shape[axis + 1 :])
        return wrap(b.reshape(value, shape=final), scalar=False)
    if counts.shape != (n,):
        raise ValueError(
            f"operands could not be broadcast together with shape ({n},) {counts.shape}"
        )
    from .selection import take

    return take(x, np.repeat(np.arange(n), counts).tolist(), axis=axis)


@function("tile")
def tile(A: Any, reps: Any) -> Tracer:
    x = array(A)
    counts = ints(reps)
    rank = max(x.ndim, len(counts))
    counts = (1,) * (rank - len(counts)) + counts
    shape = (1,) * (rank - x.ndim) + x.shape
    wide = tuple(size for pair in zip(counts, shape, strict=True) for size in pair)
    b = build()
    value = b.reshape(as_value(x), shape=shape)
    value = b.broadcast(value, shape=wide, dims=tuple(range(1, 2 * rank, 2)))
    final = tuple(c * n for c, n in zip(counts, shape, strict=True))
    return wrap(b.reshape(value, shape=final), scalar=False)


@function("resize")
def resize(a: Any, new_shape: Any) -> Tracer:
    x, shape = array(a).ravel(), ints(new_shape)
    size = math.prod(shape)
    if x.size == 0:
        return wrap(build().full(shape, 0, x.dtype), scalar=False)
    return tile(x, -(-size // x.size))[:size].reshape(shape)


# Padding


@function("pad")
def pad(array_: Any, pad_width: Any, mode: Any = "constant", **kwargs: Any) -> Tracer:
    x = array(array_)
    widths = _pairs(pad_width, x.ndim, "pad_width")
    if any(w < 0 for pair in widths for w in pair):
        raise ValueError("index can't contain negative values")
    if mode in ("constant", "empty"):
        fills = _fills(kwargs.pop("constant_values", 0), x.ndim)
        _no_more(mode, kwargs)
        return _pad_constant(x, widths, fills)
    if mode in ("reflect", "symmetric") and kwargs.pop("reflect_type", "even") != "even":
        refuse_option("pad", reflect_type="odd")
    if mode not in ("edge", "reflect", "symmetric", "wrap"):
        refuse_option("pad", mode=mode)
    _no_more(mode, kwargs)
    from .selection import take

    for axis, (low, high) in enumerate(widths):
        n = x.shape[axis]
        if not low and not high:
            continue
        if n == 0:
            raise ValueError(f"can't extend empty axis {axis} using modes other than 'constant'")
        positions = np.pad(np.arange(n), (low, high), mode=mode)
        joined = _pieces(x, positions, axis, low, high)
        x = take(x, positions.tolist(), axis=axis) if joined is None else joined
    return x.copy()


def _pieces(
    x: Tracer, positions: np.ndarray[Any, Any], axis: int, low: int, high: int
) -> Tracer | None:
    """The padded axis as a concatenation of slices, when the pads are runs: no gather needed."""
    lead = (slice(None),) * axis

    def run(part: np.ndarray[Any, Any]) -> Tracer | None:
        steps = set(np.diff(part).tolist())
        if len(part) == 1 or steps == {1}:
            return x[(*lead, slice(int(part[0]), int(part[-1]) + 1))]
        if steps == {0}:
            return repeat(x[(*lead, slice(int(part[0]), int(part[0]) + 1))], len(part), axis)
        if steps == {-1}:
            return flip(x[(*lead, slice(int(part[-1]), int(part[0]) + 1))], axis)
        return None

    parts: list[Tracer] = []
    ends = (
        positions[:low],
        positions[low : len(positions) - high],
        positions[len(positions) - high :],
    )
    for part in ends:
        if len(part):
            piece = run(part)
            if piece is None:
                return None
            parts.append(piece)
    return concatenate(parts, axis)


def _pad_constant(x: Tracer, widths: list[tuple[int, int]], fills: list[tuple[Any, Any]]) -> Tracer:
    b = build()
    first = fills[0][0] if fills else 0
    if all(f is first for pair in fills for f in pair):
        low, high = tuple(w[0] for w in widths), tuple(w[1] for w in widths)
        value = as_value(array(first).astype(x.dtype))
        zeros = (0,) * x.ndim
        return wrap(b.pad(as_value(x), value, low=low, high=high, interior=zeros), scalar=False)
    for axis, ((low_, high_), pair) in enumerate(zip(widths, fills, strict=True)):
        for side, (width, fill) in enumerate(zip((low_, high_), pair, strict=True)):
            lo, hi = [0] * x.ndim, [0] * x.ndim
            (hi if side else lo)[axis] = width
            value = as_value(array(fill).astype(x.dtype))
            padded = b.pad(
                as_value(x), value, low=tuple(lo), high=tuple(hi), interior=(0,) * x.ndim
            )
            x = wrap(padded, scalar=False)
    return x


def _no_more(mode: str, kwargs: dict[str, Any]) -> None:
    if kwargs:
        raise ValueError(f"unsupported keyword arguments for mode {mode!r}: {set(kwargs)}")


def _pairs(widths: Any, ndim: int, what: str) -> list[tuple[int, int]]:
    """NumPy's forms of pad_width: n, (n,), (before, after), one pair per axis, or {axis: width}."""
    if isinstance(widths, dict):
        full: list[Any] = [(0, 0)] * ndim
        for axis, width in widths.items():
            full[axis] = (width, width) if isinstance(width, (int, np.integer)) else tuple(width)
        widths = full
    known = require_static(widths, what)
    if known.dtype.kind not in "iu" and known.size:
        raise TypeError("`pad_width` must be of integral type.")
    try:
        pairs = np.broadcast_to(known, (ndim, 2)).tolist()
    except ValueError:
        raise ValueError(
            f"operands could not be broadcast together with remapped shapes [original->remapped]: "
            f"{known.shape} and requested shape ({ndim},2)"
        ) from None
    return [(int(low), int(high)) for low, high in pairs]


def _fills(values: Any, ndim: int) -> list[tuple[Any, Any]]:
    """One (before, after) per axis of constants, which may be traced."""
    if isinstance(values, Tracer) or not isinstance(values, (list, tuple, np.ndarray)):
        return [(values, values)] * ndim
    if isinstance(values, np.ndarray):
        values = values.tolist()
        if not isinstance(values, list):
            return [(values, values)] * ndim
    rows = list(values)
    if rows and not isinstance(rows[0], (list, tuple)):
        rows = [rows]
    pairs = [tuple(r) if len(r) == 2 else (r[0], r[0]) for r in rows]
    if len(pairs) == 1:
        (before, after) = pairs[0]
        pair = (before, before) if before is after else (before, after)
        return [pair] * ndim
    if len(pairs) != ndim:
        raise ValueError(f"constant_values has {len(pairs)} pairs for {ndim} axes")
    return pairs


# Diagonals and triangles


@function("diagonal")
def diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tracer:
    """NumPy gives a read-only view."""
    x = array(a)
    if x.ndim < 2:
        raise ValueError("diag requires an array of at least two dimensions")
    i, j = axis_index(axis1, x.ndim, x), axis_index(axis2, x.ndim, x)
    if i == j:
        raise ValueError("axis1 and axis2 cannot be the same")
    last = moveaxis(x, (i, j), (-2, -1))
    rows, columns = last.shape[-2:]
    row, column = max(-offset, 0), max(offset, 0)
    count = max(min(rows - row, columns - column), 0)
    if count == 0:
        return wrap(build().full((*last.shape[:-2], 0), 0, x.dtype), scalar=False)
    square = last[..., row : row + count, column : column + count]
    # In the flat square, the next diagonal element is one row and one column further.
    b = build()
    lead = square.shape[:-2]
    rank = len(lead)
    value = b.reshape(as_value(square), shape=(*lead, count * count))
    value = b.slice(
        value,
        start=(0,) * (rank + 1),
        stop=(*lead, count * count),
        step=(1,) * rank + (count + 1,),
    )
    return views.read_only(wrap(value, scalar=False))


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
    return wrap(b.select(mask, value, b.full_like(value, 0)), scalar=False)


@function("tril")
def tril(m: Any, k: int = 0) -> Tracer:
    return _triangle(array(m), k, lower=True)


@function("triu")
def triu(m: Any, k: int = 0) -> Tracer:
    return _triangle(array(m), k, lower=False)


@function("meshgrid")
def meshgrid(
    *xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy"
) -> tuple[Tracer, ...]:
    if indexing not in ("xy", "ij"):
        raise ValueError("Valid values for `indexing` are 'xy' and 'ij'.")
    parts = [array(x) for x in xi]
    rank = len(parts)
    grids = [p.reshape((1,) * i + (-1,) + (1,) * (rank - 1 - i)) for i, p in enumerate(parts)]
    if indexing == "xy" and rank > 1:
        grids = [views.transpose(g, (1, 0, *range(2, rank))) for g in grids]
    if not sparse and grids:
        shape = broadcast_shape(grids)
        grids = [views.broadcast_to(g, shape) for g in grids]
    return tuple(g.copy() if copy else g for g in grids)


@function("ix_")
def ix_(*args: Any) -> tuple[Tracer, ...]:
    parts = [array(x) for x in args]
    if any(p.ndim != 1 for p in parts):
        raise ValueError("Cross index must be 1 dimensional")
    if any(p.dtype == BOOL for p in parts):
        refuse_option("ix_", dtype="bool")
    rank = len(parts)
    return tuple(p.reshape((1,) * i + (-1,) + (1,) * (rank - 1 - i)) for i, p in enumerate(parts))


# Insertion and deletion at positions that are known while tracing


@function("delete")
def delete(arr: Any, obj: Any, axis: Any = None) -> Tracer:
    x = array(arr)
    if axis is None:
        x, axis = x.ravel(), 0
    axis = axis_index(axis, x.ndim, x)
    n = x.shape[axis]
    obj = obj if isinstance(obj, slice) else require_static(obj, "obj")
    kept = np.delete(np.arange(n), obj)
    return _by_positions(x, kept, axis)


@function("insert")
def insert(arr: Any, obj: Any, values: Any, axis: Any = None) -> Tracer:
    x = array(arr)
    if axis is None:
        x, axis = x.ravel(), 0
    axis = axis_index(axis, x.ndim, x)
    n = x.shape[axis]
    where = obj if isinstance(obj, slice) else require_static(obj, "obj")
    new = array(values).astype(x.dtype)
    if not isinstance(where, slice) and where.ndim == 0:
        new = moveaxis(new.reshape((1,) * (x.ndim - new.ndim) + new.shape), 0, axis)
        rows = new.shape[axis]
    else:
        rows = len(np.insert(np.arange(n), where, -1)) - n
    # NumPy says where the new rows n, n + 1, ... go.
    shape = (*x.shape[:axis], rows, *x.shape[axis + 1 :])
    spread = views.broadcast_to(new, shape)
    order = np.insert(np.arange(n), where, n + np.arange(rows))
    return _by_positions(concatenate([x, spread], axis), order, axis)


def _by_positions(x: Tracer, positions: np.ndarray[Any, Any], axis: int) -> Tracer:
    """`take` of static positions, as slices joined where they form a few runs."""
    from .selection import take

    cuts = np.flatnonzero(np.diff(positions) != 1) + 1
    lead = (slice(None),) * axis
    if len(positions) == 0:
        return x[(*lead, slice(0, 0))].copy()
    if len(cuts) > 8:
        return take(x, positions.tolist(), axis=axis)
    runs = np.split(positions, cuts)
    return concatenate([x[(*lead, slice(int(r[0]), int(r[-1]) + 1))] for r in runs], axis)
