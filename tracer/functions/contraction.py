"""Products that sum over axes: matmul, dot, inner, tensordot, kron, cross, powers. One graph op, dot."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...ir.graph import Value
from ...ir.types import BOOL, I32, is_complex
from .. import errors, views
from ..core import Tracer, as_value, wrap
from ..errors import complain
from ..promotion import DType
from . import ufuncs
from .common import array, axis_index, build, common_dtype, finish, fold, ints
from .movement import moveaxis, stack
from .table import function, refuse_option

Axes = tuple[int, ...]


def contract(
    a: Value, b: Value, axes: tuple[Axes, Axes], batch: tuple[Axes, Axes] = ((), ())
) -> Value:
    """The dot op. Products of booleans are "and", their sums "or": computed by counting."""
    build_ = build()
    if a.dtype != BOOL:
        return build_.dot(a, b, contract=axes, batch=batch)
    a, b = (build_.convert(x, dtype=I32) for x in (a, b))
    return build_.convert(build_.dot(a, b, contract=axes, batch=batch), dtype=BOOL)


def _mismatch(name: str, a: Tracer, b: Tracer, m: int, n: int) -> Any:
    complain(
        errors.ShapeError,
        f"{name}: the contracted axes have different sizes, {m} and {n}, in shapes "
        f"{a.shape} and {b.shape}",
        "the last axis of the first operand must match the axis of the second that it is summed "
        "with; transpose one of them (x.T).",
        operands={"a": a, "b": b},
    )


def _values(a: Tracer, b: Tracer) -> tuple[Value, Value, DType]:
    dtype = common_dtype(a, b)
    return as_value(a, dtype), as_value(b, dtype), dtype


def _matmul(x1: Any, x2: Any) -> Tracer:
    a, b = array(x1), array(x2)
    for i, x in enumerate((a, b)):
        if x.ndim == 0:
            raise ValueError(
                f"matmul: Input operand {i} does not have enough dimensions (has 0, gufunc core "
                f"with signature (n?,k),(k,m?)->(n?,m?) requires 1)"
            )
    if a.shape[-1] != b.shape[-2 if b.ndim > 1 else 0]:
        _mismatch("matmul", a, b, a.shape[-1], b.shape[-2 if b.ndim > 1 else 0])
    u, v, _ = _values(a, b)
    if (a.ndim <= 2 and b.ndim <= 2) or b.ndim <= 2:
        return wrap(contract(u, v, ((a.ndim - 1,), (max(b.ndim - 2, 0),))))
    if a.ndim == 1:
        result = contract(v, u, ((b.ndim - 2,), (0,)))
        return wrap(result)
    lead_a, lead_b = a.shape[:-2], b.shape[:-2]
    try:
        lead = np.broadcast_shapes(lead_a, lead_b)
    except ValueError as error:
        complain(
            errors.ShapeError,
            f"matmul: the leading axes {lead_a} and {lead_b} do not broadcast together",
            "leading axes must be equal or 1.",
            operands={"a": a, "b": b},
            cause=error,
        )
    # Axes that only one side has, or that one side repeats, are free axes of the other.
    build_ = build()
    if all(n == 1 for n in lead_b) and len(lead_b) <= len(lead_a):
        v = build_.reshape(v, shape=b.shape[-2:])
        return wrap(contract(u, v, ((a.ndim - 1,), (0,))))
    u = build_.broadcast_to(u, (*lead, *a.shape[-2:]))
    v = build_.broadcast_to(v, (*lead, *b.shape[-2:]))
    rank = len(lead)
    same = tuple(range(rank))
    return wrap(contract(u, v, ((rank + 1,), (rank,)), (same, same)))


@function("matmul", "linalg.matmul")
def matmul(
    x1: Any,
    x2: Any,
    /,
    out: Any = None,
    *,
    dtype: Any = None,
    casting: str = "same_kind",
    order: str = "K",
    subok: bool = True,
    axes: Any = None,
    axis: Any = None,
    keepdims: bool = False,
    signature: Any = None,
) -> Tracer:
    for name, value in {"axes": axes, "axis": axis, "signature": signature}.items():
        if value is not None:
            refuse_option("matmul", **{name: value})
    if dtype is not None:
        x1, x2 = array(x1).astype(dtype), array(x2).astype(dtype)
    result = _matmul(x1, x2)
    if isinstance(out, tuple):
        out = out[0]
    return finish(result, out, casting)


@function("vecdot", "linalg.vecdot")
def vecdot(x1: Any, x2: Any, /, out: Any = None, *, axis: int = -1) -> Tracer:
    a, b = array(x1), array(x2)
    a, b = moveaxis(a, axis, -1), moveaxis(b, axis, -1)
    if a.shape[-1] != b.shape[-1]:
        _mismatch("vecdot", a, b, a.shape[-1], b.shape[-1])
    u, v, _ = _values(a, b)
    lead = np.broadcast_shapes(a.shape[:-1], b.shape[:-1])
    build_ = build()
    u = build_.conj(u) if is_complex(u.dtype) else u
    u = build_.broadcast_to(u, (*lead, a.shape[-1]))
    v = build_.broadcast_to(v, (*lead, b.shape[-1]))
    rank = len(lead)
    same = tuple(range(rank))
    return finish(wrap(contract(u, v, ((rank,), (rank,)), (same, same))), out)


@function("matvec")
def matvec(x1: Any, x2: Any, /) -> Tracer:
    return _matmul(x1, array(x2)[..., None])[..., 0]


@function("vecmat")
def vecmat(x1: Any, x2: Any, /) -> Tracer:
    row = array(x1)
    if is_complex(row.dtype):
        row = ufuncs.apply(np.conjugate, row)
    return _matmul(row[..., None, :], x2)[..., 0, :]


@function("dot")
def dot(a: Any, b: Any, out: Any = None) -> Tracer:
    x, y = array(a), array(b)
    if x.ndim == 0 or y.ndim == 0:
        return finish(ufuncs.apply(np.multiply, x, y), out)
    axis = max(y.ndim - 2, 0)
    if x.shape[-1] != y.shape[axis]:
        _mismatch("dot", x, y, x.shape[-1], y.shape[axis])
    u, v, _ = _values(x, y)
    return finish(wrap(contract(u, v, ((x.ndim - 1,), (axis,)))), out)


@function("vdot")
def vdot(a: Any, b: Any, /) -> Tracer:
    x, y = array(a).ravel(), array(b).ravel()
    if x.size != y.size:
        raise ValueError("cannot reshape array of size {x.size} into shape ({y.size},)")
    return dot(ufuncs.apply(np.conjugate, x) if is_complex(x.dtype) else x, y)


@function("inner")
def inner(a: Any, b: Any, /) -> Tracer:
    x, y = array(a), array(b)
    if x.ndim == 0 or y.ndim == 0:
        return ufuncs.apply(np.multiply, x, y)
    if x.shape[-1] != y.shape[-1]:
        _mismatch("inner", x, y, x.shape[-1], y.shape[-1])
    u, v, _ = _values(x, y)
    return wrap(contract(u, v, ((x.ndim - 1,), (y.ndim - 1,))))


@function("linalg.outer")
def linalg_outer(x1: Any, x2: Any, /) -> Tracer:
    x, y = array(x1), array(x2)
    if x.ndim != 1 or y.ndim != 1:
        raise ValueError(
            "Input arrays must be one-dimensional, "
            f"but they are x1.ndim={x.ndim} and x2.ndim={y.ndim}."
        )
    return outer(x, y)


@function("outer")
def outer(a: Any, b: Any, out: Any = None) -> Tracer:
    x, y = array(a).ravel(), array(b).ravel()
    return finish(ufuncs.apply(np.multiply, x[:, None], y[None, :]), out)


@function("tensordot", "linalg.tensordot")
def tensordot(a: Any, b: Any, axes: Any = 2) -> Tracer:
    x, y = array(a), array(b)
    if isinstance(axes, (int, np.integer)):
        count = operator.index(axes)
        left, right = tuple(range(x.ndim - count, x.ndim)), tuple(range(count))
    else:
        left, right = (ints(side) for side in axes)
    left = tuple(axis_index(i, x.ndim, x) for i in left)
    right = tuple(axis_index(i, y.ndim, y) for i in right)
    if len(left) != len(right):
        raise ValueError("shape-mismatch for sum")
    for i, j in zip(left, right, strict=True):
        if x.shape[i] != y.shape[j]:
            _mismatch("tensordot", x, y, x.shape[i], y.shape[j])
    u, v, _ = _values(x, y)
    return wrap(contract(u, v, (left, right)), scalar=False)


@function("kron")
def kron(a: Any, b: Any) -> Tracer:
    x, y = array(a), array(b)
    rank = max(x.ndim, y.ndim)
    m = (1,) * (rank - x.ndim) + x.shape
    n = (1,) * (rank - y.ndim) + y.shape
    left = x.reshape(tuple(s for k in m for s in (k, 1)))
    right = y.reshape(tuple(s for k in n for s in (1, k)))
    product = ufuncs.apply(np.multiply, left, right)
    return wrap(as_value(product.reshape(tuple(i * j for i, j in zip(m, n, strict=True)))))


@function("cross")
def cross(
    a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None
) -> Tracer:
    if axis is not None:
        axisa = axisb = axisc = axis
    x, y = array(a), array(b)
    x = moveaxis(x, axis_index(axisa, x.ndim, x), -1)
    y = moveaxis(y, axis_index(axisb, y.ndim, y), -1)
    if x.shape[-1] not in (2, 3) or y.shape[-1] not in (2, 3):
        raise ValueError("incompatible dimensions for cross product\n(dimension must be 2 or 3)")
    p = [x[..., i] for i in range(x.shape[-1])]
    q = [y[..., i] for i in range(y.shape[-1])]
    z = p[0] * q[1] - p[1] * q[0]
    if len(p) == len(q) == 2:
        return z
    if len(p) == 2:
        parts = [p[1] * q[2], -(p[0] * q[2]), z]
    elif len(q) == 2:
        parts = [-(p[2] * q[1]), p[2] * q[0], z]
    else:
        parts = [p[1] * q[2] - p[2] * q[1], p[2] * q[0] - p[0] * q[2], z]

    result = stack(parts, axis=-1)
    return moveaxis(result, -1, axis_index(axisc, result.ndim, result))


@function("linalg.cross")
def linalg_cross(x1: Any, x2: Any, /, *, axis: int = -1) -> Tracer:
    x, y = array(x1), array(x2)
    sizes = [v.shape[axis_index(axis, v.ndim, v)] for v in (x, y)]
    if sizes != [3, 3]:
        raise ValueError(
            "Both input arrays must be (arrays of) 3-dimensional vectors, "
            f"but they are {sizes[0]} and {sizes[1]} dimensional instead."
        )
    return cross(x, y, axis=axis)


@function("linalg.multi_dot")
def multi_dot(arrays: Sequence[Any], *, out: Any = None) -> Tracer:
    parts = [array(x) for x in arrays]
    if len(parts) < 2:
        raise ValueError("Expecting at least two arrays.")
    if len(parts) == 2:
        return finish(dot(*parts), out)
    first, last = parts[0].ndim, parts[-1].ndim
    if first == 1:
        parts[0] = parts[0].reshape(1, -1)
    if last == 1:
        parts[-1] = parts[-1].reshape(-1, 1)
    for part in parts:
        if part.ndim != 2:
            raise errors.LinearAlgebraError(
                f"{part.ndim}-dimensional array given. Array must be two-dimensional"
            )
    order = _chain_order([p.shape[0] for p in parts] + [parts[-1].shape[1]])

    def product(i: int, j: int) -> Tracer:
        if i == j:
            return parts[i]
        return dot(product(i, order[i, j]), product(order[i, j] + 1, j))

    result = product(0, len(parts) - 1)
    if first == 1 and last == 1:
        return finish(result[0, 0], out)
    if first == 1 or last == 1:
        result = result.ravel()
    return finish(result, out)


def _chain_order(sizes: list[int]) -> dict[tuple[int, int], int]:
    """Where to split a chain of matrices for the fewest multiplications (Cormen et al.)."""
    n = len(sizes) - 1
    cost = {(i, i): 0 for i in range(n)}
    split = {}
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            options = [
                (cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k)
                for k in range(i, j)
            ]
            cost[i, j], split[i, j] = min(options)
    return split


@function("linalg.matrix_power")
def matrix_power(a: Any, n: int) -> Tracer:
    from .linalg import inv, matrix_operand

    x = matrix_operand("matrix_power", a)
    n = operator.index(n)
    if n < 0:
        x, n = inv(x), -n
    if n == 0:
        from .creation import eye

        return views.broadcast_to(eye(x.shape[-1], dtype=x.dtype), x.shape).copy()
    factors, power = [], x
    while True:
        if n % 2:
            factors.append(power)
        n //= 2
        if not n:
            return fold(_matmul, factors) if len(factors) > 1 else factors[0].copy()
        power = _matmul(power, power)


@function("convolve")
def convolve(a: Any, v: Any, mode: str = "full") -> Tracer:
    x, y = array(a).reshape(-1), array(v).reshape(-1)
    if not x.size or not y.size:
        raise ValueError("a cannot be empty" if not x.size else "v cannot be empty")
    return _sliding(x, y, mode) if len(x) >= len(y) else _sliding(y, x, mode)


@function("correlate")
def correlate(a: Any, v: Any, mode: str = "valid") -> Tracer:
    x, y = array(a).reshape(-1), ufuncs.apply(np.conjugate, array(v)).reshape(-1)
    if len(x) >= len(y):
        return _sliding(x, y[::-1], mode)
    return _sliding(y, x[::-1], mode)[::-1]


def _sliding(x: Tracer, kernel: Tracer, mode: str) -> Tracer:
    """Convolution of x with a shorter kernel: windows of the padded x times the kernel."""
    n, k = len(x), len(kernel)
    dtype = common_dtype(x, kernel)
    x, kernel = x.astype(dtype), kernel.astype(dtype)
    low, count = {"full": (k - 1, n + k - 1), "same": ((k - 1) // 2 + (k - 1) % 2, n)}.get(
        mode, (0, n - k + 1)
    )
    if mode not in ("full", "same", "valid"):
        raise ValueError(f"mode must be one of 'valid', 'same', or 'full' (got {mode!r})")
    if mode == "same":
        low = k - 1 - (k - 1) // 2
    high = count + k - 1 - n - low
    from .padding import pad

    flipped = kernel[::-1]
    if k <= 16:  # products are padded, since infinity times a zero that is not there is nothing
        products = (pad(x * flipped[i], (low, high)) for i in range(k))
        return fold(operator.add, [p[i : i + count] for i, p in enumerate(products)])
    padded = pad(x, (low, high))
    b = build()
    shape = (count, k)
    index = b.add(
        b.iota(shape=shape, dtype=np.dtype(np.int64), axis=0),
        b.iota(shape=shape, dtype=np.dtype(np.int64), axis=1),
    )
    windows = b.gather(as_value(padded), index, axes=(0,), mode="clip")
    return wrap(contract(windows, as_value(flipped), ((1,), (0,))))
