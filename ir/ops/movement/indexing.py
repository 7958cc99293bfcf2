"""Indexing with arrays: gather and scatter.

`gather(x, *idx; axes)` indexes the axes `axes` of x with as many int64 arrays of one shape B:

    result[b..., rest...] = x[idx_0[b...] at axes[0], idx_1[b...] at axes[1], rest...]

`scatter(x, u, *idx; axes)` writes u of that shape back into a copy of x.

`names`, if it is there, are the axes as the user numbers them, for messages.

mode="check" counts negative indices from the end and raises IndexError when out of range;
mode="clip" clamps. Where scatter meets an index twice, "set" keeps the last, and "add", "multiply",
"min", "max" combine all with x.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...batching.transform import BatchBuilder, Batched, Marks, shift
from ...build import Builder, Grads, Wanted
from ...cost import Cost
from ...graph import Op, Value
from ...opdef import GraphError
from ...types import I64, TensorType
from ..families import (
    ANY,
    NUMBER,
    REAL,
    Arg,
    Array,
    Example,
    check_axes,
    check_dtype,
    check_kind,
    linear,
    opaque,
)

Ints = tuple[int, ...]
MODES = ("check", "clip")
COMBINES = {
    "set": None,
    "add": np.add,
    "multiply": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
}


def takes(dtype: np.dtype[Any], combine: str) -> bool:
    """Whether elements of `dtype` can be combined so."""
    if dtype.kind == "c":
        return combine in ("set", "add")
    return combine == "set" or dtype.kind != "b"


def _indexed(
    x: TensorType, indices: Sequence[TensorType], axes: Ints, mode: str, names: Ints
) -> TensorType:
    """The type that indexing x gives; checks everything that gather and scatter share."""
    check_kind(x, ANY)
    check_axes(axes, x.rank)
    if not indices or len(indices) != len(axes):
        raise GraphError(f"{len(indices)} index arrays for axes={axes}")
    if mode not in MODES:
        raise GraphError(f"mode={mode!r} is not one of {MODES}")
    if len(names) > len(axes):
        raise GraphError(f"names={names} for axes={axes}")
    for index in indices:
        check_dtype(index, "i64", "an index")
        if index.shape != indices[0].shape:
            raise GraphError(f"index shapes {indices[0]} and {index} differ")
    if mode == "clip" and indices[0].size and any(x.shape[a] == 0 for a in axes):
        raise GraphError(f"cannot index an axis of size 0 of {x}")
    rest = tuple(n for d, n in enumerate(x.shape) if d not in axes)
    return x.with_shape(indices[0].shape + rest)


def out_of_bounds(names: Ints, count: int, k: int, index: Any, size: Any) -> str:
    """What is said of an index for the k-th of `count` axes. (Those without a name are the first.)"""
    k -= count - len(names)
    axis = f"axis {names[k]} with size" if k >= 0 else "axis of size"
    return f"index {index} is out of bounds for {axis} {size}"


def _positions(
    x: Array, indices: Sequence[Array], axes: Ints, mode: str, names: Ints
) -> tuple[Array, ...]:
    """The indices, checked or clamped, as non-negative positions."""
    resolved = []
    for k, (index, axis) in enumerate(zip(indices, axes, strict=True)):
        n = x.shape[axis]
        if mode == "clip":
            resolved.append(np.clip(index, 0, n - 1))
            continue
        wrong = index[(index < -n) | (index >= n)]
        if wrong.size:
            raise IndexError(out_of_bounds(names, len(axes), k, wrong.flat[0], n))
        resolved.append(np.where(index < 0, index + n, index))
    return tuple(resolved)


# gather


def _infer_gather(
    x: TensorType, *indices: TensorType, axes: Ints, mode: str, names: Ints = ()
) -> TensorType:
    return _indexed(x, indices, axes, mode, names)


def _gather(x: Array, *indices: Array, axes: Ints, mode: str, names: Ints = ()) -> Array:
    return np.moveaxis(x, axes, range(len(axes)))[_positions(x, indices, axes, mode, names)]


def _transpose_gather(b: Builder, op: Op, ct: Value, i: int) -> Value:
    x, *indices = op.operands
    return b.op("scatter", b.zeros(x.tensor), ct, *indices, combine="add", **op.attrs)


def _batched_indices(
    b: BatchBuilder, op: Op, indices: Sequence[Value], batched: Sequence[bool], into_batched: bool
) -> tuple[list[Value], Ints]:
    """The indices and axes that index a batched x, or the same x, for each example.

    If an index is batched, all are, and the number of the example is one more index into a batched x.
    """
    axes = op.attrs["axes"]
    if op.attrs["mode"] == "check":
        sizes = [op.operands[0].shape[a] for a in axes]
        triples = zip(indices, batched, sizes, strict=True)
        indices = [b.safe_index(index, flag, n) for index, flag, n in triples]
    if any(batched):
        indices = b.spread_all(indices, batched)
        if into_batched:
            return [b.examples(indices[0].shape), *indices], (0, *shift(axes))
        return indices, axes
    return list(indices), shift(axes) if into_batched else axes


def _batch_gather(b: BatchBuilder, op: Op, operands: Sequence[Value], batched: Marks) -> Batched:
    x, *indices = operands
    batched_indices, axes = _batched_indices(b, op, indices, batched[1:], batched[0])
    rows = b.gather(x, *batched_indices, **{**op.attrs, "axes": axes})
    if batched[0] and not any(batched[1:]):  # the dimensions of the index come first
        rows = b.moved(rows, len(indices[0].shape), 0)
    return [rows], [any(batched)]


linear(
    "gather",
    _infer_gather,
    _gather,
    _transpose_gather,
    linear_in=(0,),
    cost=Cost.CHEAP,
    pointwise=True,
    repeats=True,
    batch=_batch_gather,
    attrs=("axes", "mode", "names"),
    examples=(
        Example((Arg((4, 3)), Arg((5,), "i64", 4)), {"axes": (0,), "mode": "check", "names": (0,)}),
        Example(
            (Arg((4, 3, 5)), Arg((2, 2), "i64", 9), Arg((2, 2), "i64", 4)),
            {"axes": (0, 2), "mode": "clip", "names": ()},
        ),
        Example((Arg((4, 3)), Arg((), "i64", 3)), {"axes": (1,), "mode": "check", "names": (2,)}),
    ),
    doc="elements of x at the positions that index arrays name",
)

# scatter


def _infer_scatter(
    x: TensorType,
    u: TensorType,
    *indices: TensorType,
    axes: Ints,
    mode: str,
    combine: str,
    names: Ints = (),
) -> TensorType:
    wanted = _indexed(x, indices, axes, mode, names)
    if u != wanted:
        raise GraphError(f"the update for {x} has type {u}; the indices ask for {wanted}")
    if combine not in COMBINES:
        raise GraphError(f"combine={combine!r} is not one of {tuple(COMBINES)}")
    if not takes(x.dtype, combine):
        raise GraphError(f"combine={combine!r} does not work on {x}")
    return x


def _scatter(
    x: Array,
    u: Array,
    *indices: Array,
    axes: Ints,
    mode: str,
    combine: str,
    names: Ints = (),
) -> Array:
    out = x.copy()
    view = np.moveaxis(out, axes, range(len(axes)))
    resolved = _positions(x, indices, axes, mode, names)
    ufunc = COMBINES[combine]
    if ufunc is None:
        view[resolved] = u
    else:
        ufunc.at(view, resolved, u)
    return out


def _last_writes(b: Builder, op: Op) -> Value:
    """A mask like u: which elements of u are still there after a "set"."""
    x, u, *indices = op.operands
    axes, mode = op.attrs["axes"], op.attrs["mode"]
    shape = indices[0].shape
    flat = b.op("iota", shape=(indices[0].tensor.size,), dtype=I64, axis=0)
    ids = b.op("reshape", flat, shape=shape)
    board = b.full(tuple(x.shape[a] for a in axes), -1, I64)
    attrs = {"axes": tuple(range(len(axes))), "mode": mode}
    board = b.op("scatter", board, ids, *indices, combine="set", **attrs)
    alive = b.op("eq", b.op("gather", board, *indices, **attrs), ids)
    return b.op("broadcast", alive, shape=u.shape, dims=tuple(range(len(shape))))


def _ties(b: Builder, op: Op) -> tuple[Value, Value, Value]:
    """For "min" and "max": 1.0 where x, and where u, is the result; and the count of both."""
    x, u, *indices = op.operands
    z = op.result
    attrs = {"axes": op.attrs["axes"], "mode": op.attrs["mode"]}
    from_x = b.op("convert", b.op("eq", x, z), dtype=x.dtype)
    from_u = b.op("eq", u, b.op("gather", z, *indices, **attrs))
    from_u = b.op("convert", from_u, dtype=u.dtype)
    count = b.op("scatter", from_x, from_u, *indices, combine="add", **attrs)
    return from_x, from_u, count


def _factors(b: Builder, op: Op) -> tuple[Value, Value]:
    """For "multiply": the product of u at each position of x, and for each element of u that of the
    others at its position. Right with zeros in u; second derivatives are those of the branch taken.
    """
    x, u, *indices = op.operands
    attrs = {"axes": op.attrs["axes"], "mode": op.attrs["mode"]}
    one = b.full_like(x, 1)
    all_of = b.op("scatter", one, u, *indices, combine="multiply", **attrs)
    is_zero = b.op("eq", u, b.full_like(u, 0))
    safe = b.op("select", is_zero, b.full_like(u, 1), u)
    nonzero = b.op("scatter", one, safe, *indices, combine="multiply", **attrs)
    zeros = b.op("convert", is_zero, dtype=u.dtype)
    count = b.op("scatter", b.full_like(x, 0), zeros, *indices, combine="add", **attrs)
    others_zero = b.op("sub", b.op("gather", count, *indices, **attrs), zeros)
    rest = b.op("div", b.op("gather", nonzero, *indices, **attrs), safe)
    none_zero = b.op("eq", others_zero, b.full_like(u, 0))
    return all_of, b.op("select", none_zero, rest, b.full_like(u, 0))


def _jvp_scatter(b: Builder, op: Op, tangents: Sequence[Value | None]) -> list[Value | None]:
    x, u, *indices = op.operands
    tx = b.zeros(x.tensor) if tangents[0] is None else tangents[0]
    tu = b.zeros(u.tensor) if tangents[1] is None else tangents[1]
    combine = op.attrs["combine"]
    attrs = {"axes": op.attrs["axes"], "mode": op.attrs["mode"]}
    if combine in ("set", "add"):
        return [b.op("scatter", tx, tu, *indices, **op.attrs)]
    if combine == "multiply":
        product, others = _factors(b, op)
        tx = b.op("mul", tx, product)
        tu = b.op("mul", b.op("mul", tu, others), b.op("gather", x, *indices, **attrs))
        return [b.op("scatter", tx, tu, *indices, combine="add", **attrs)]
    from_x, from_u, count = _ties(b, op)
    tx, tu = b.op("mul", tx, from_x), b.op("mul", tu, from_u)
    return [b.op("div", b.op("scatter", tx, tu, *indices, combine="add", **attrs), count)]


def _vjp_scatter(b: Builder, op: Op, cotangents: Sequence[Value], wanted: Wanted) -> Grads:
    (ct,) = cotangents
    x, u, *indices = op.operands
    grads: list[Value | None] = [None] * len(op.operands)
    combine = op.attrs["combine"]
    attrs = {"axes": op.attrs["axes"], "mode": op.attrs["mode"]}
    if combine == "set":  # reads ct before it updates it, which can then be done in place
        if wanted[1]:
            seen = b.op("gather", ct, *indices, **attrs)
            if indices[0].tensor.size > 1:
                seen = b.op("select", _last_writes(b, op), seen, b.full_like(seen, 0))
            grads[1] = seen
        if wanted[0]:
            grads[0] = b.op("scatter", ct, b.zeros(u.tensor), *indices, **op.attrs)
        return grads
    if combine == "add":
        factor_x = factor_u = None
    elif combine == "multiply":
        factor_x, others = _factors(b, op)
        factor_u = b.op("mul", others, b.op("gather", x, *indices, **attrs))
    else:
        factor_x, factor_u, count = _ties(b, op)
        ct = b.op("div", ct, count)
    if wanted[0]:
        grads[0] = ct if factor_x is None else b.op("mul", ct, factor_x)
    if wanted[1]:
        seen = b.op("gather", ct, *indices, **attrs)
        grads[1] = seen if factor_u is None else b.op("mul", seen, factor_u)
    return grads


def _overwritten(b: Builder, op: Op) -> Value:
    x, _, *indices = op.operands
    attrs = {name: value for name, value in op.attrs.items() if name != "combine"}
    return b.op("gather", x, *indices, **attrs)


def _batch_scatter(b: BatchBuilder, op: Op, operands: Sequence[Value], batched: Marks) -> Batched:
    x, u, *indices = operands
    several = any(batched)
    if several:
        x, u = b.spread(x, batched[0]), b.spread(u, batched[1])
    batched_indices, axes = _batched_indices(b, op, indices, batched[2:], several)
    if several and not any(batched[2:]):
        u = b.moved(u, 0, len(indices[0].shape))
    return [b.scatter(x, u, *batched_indices, **{**op.attrs, "axes": axes})], [several]


def _scatter_examples() -> tuple[Example, ...]:
    rows = (Arg((4, 2), distinct=True), Arg((5, 2), distinct=True), Arg((5,), "i64", 4))
    points = (Arg((4, 2)), Arg((3,)), Arg((3,), "i64", 9), Arg((3,), "i64", 2))
    kinds = {"set": ANY, "add": NUMBER}
    by_row = [
        Example(
            rows, {"axes": (0,), "mode": "check", "combine": c, "names": ()}, kinds.get(c, REAL)
        )
        for c in COMBINES
    ]
    return (
        *by_row,
        Example(points, {"axes": (0, 1), "mode": "clip", "combine": "set", "names": ()}),
    )


opaque(
    "scatter",
    _infer_scatter,
    _scatter,
    jvp=_jvp_scatter,
    vjp=_vjp_scatter,
    cost=Cost.DEAR,
    overwritten=_overwritten,
    batch=_batch_scatter,
    moves=lambda attrs: attrs["combine"] == "set",
    attrs=("axes", "mode", "combine", "names"),
    examples=_scatter_examples(),
    doc="a copy of x with u combined into the positions that index arrays name",
)


def take_along(b: Builder, x: Value, index: Value, axis: int) -> Value:
    """NumPy's take_along_axis for an int64 `index` of x's shape with entries in range."""
    indices: list[Any] = [
        index if d == axis else b.op("iota", shape=index.shape, dtype=I64, axis=d)
        for d in range(len(x.shape))
    ]
    return b.op("gather", x, *indices, axes=tuple(range(len(x.shape))), mode="clip")
