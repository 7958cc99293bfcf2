"""Triangular systems and LU factors of real matrices: what NumPy's LAPACK has no loops for.

Generated code computes them (`codegen.kernels.factor`); complex matrices are left to formulas over
these or to other functions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...build import Builder, Grads, Wanted
from ...graph import Op, Value
from ...opdef import OPS, GraphError, OpDef, register
from ...types import I64, TensorType
from ..composed import transposed
from ..families import Array, check_kind
from .library import batch_checked
from .matrices import Matrix, matrices

Tangents = Sequence[Value | None]


def _check_matrices(a: TensorType, square: bool) -> None:
    check_kind(a, "f")
    if a.rank < 2 or (square and a.shape[-1] != a.shape[-2]):
        raise GraphError(f"{a} is no batch of {'square ' if square else ''}matrices")


# Triangular systems


def _infer_solve(a: TensorType, b: TensorType, **_: object) -> TensorType:
    _check_matrices(a, square=True)
    if b.dtype != a.dtype or b.shape[:-1] != a.shape[:-1]:
        raise GraphError(f"{b} is no right-hand side of {a}")
    return b


def _triangle(a: Array, lower: bool, unit: bool) -> Array:
    triangle = np.tril(a) if lower else np.triu(a)
    if unit:
        n = a.shape[-1]
        triangle[..., np.arange(n), np.arange(n)] = 1
    return triangle


def _solve(a: Array, b: Array, *, lower: bool, unit: bool, mode: str) -> Array:
    solution: Array = OPS["solve"].reference(_triangle(a, lower, unit), b, mode=mode)
    return solution


def solve_triangle(a: Matrix, b: Matrix, lower: bool, unit: bool = False) -> Matrix:
    """The inverse of a triangle of `a`, times `b`; what the other triangle holds does not matter."""
    attrs: dict[str, Any] = {"lower": lower, "unit": unit, "mode": "fill"}
    return Matrix(a.b, a.b.op("triangular_solve", a.value, b.value, **attrs))


def _part(x: Matrix, lower: bool, unit: bool) -> Matrix:
    triangle = x.tril(strictly=unit) if lower else x.triu()
    return triangle.without_diagonal() if unit and not lower else triangle


def _jvp_solve(b: Builder, op: Op, tangents: Tangents) -> list[Value | None]:
    """X' = A^-1 (B' - A' X)"""
    ta, tb = tangents
    lower, unit = op.attrs["lower"], op.attrs["unit"]
    a, x = matrices(b, op.operands[0], op.result)
    right = None if tb is None else Matrix(b, tb)
    if ta is not None:
        moved = _part(Matrix(b, ta), lower, unit) @ x
        right = -moved if right is None else right - moved
    return [None if right is None else solve_triangle(a, right, lower, unit).value]


def _vjp_solve(b: Builder, op: Op, cotangents: Sequence[Value], wanted: Wanted) -> Grads:
    """B~ = A^-T X~,  A~ = -B~ X^T, of which the triangle counts"""
    (ct,) = cotangents
    lower, unit = op.attrs["lower"], op.attrs["unit"]
    a, x = matrices(b, op.operands[0], op.result)
    right = solve_triangle(a.mT, Matrix(b, ct), not lower, unit)
    left = -_part(right @ x.mT, lower, unit) if wanted[0] else None
    return [None if left is None else left.value, right.value]


register(
    OpDef(
        "triangular_solve",
        "library",
        _infer_solve,
        _solve,
        _jvp_solve,
        _vjp_solve,
        batch=batch_checked,
        dtypes="f",
        attrs=("lower", "unit", "mode"),
        doc="A^-1 B, where one triangle of A is read, its diagonal as ones if `unit`",
        extra={"examples": (), "failure": "Singular matrix"},
    )
)

# LU


def _infer_lu(a: TensorType) -> tuple[TensorType, TensorType]:
    _check_matrices(a, square=False)
    return a, TensorType(a.shape[:-1], I64)


def _lu(a: Array) -> tuple[Array, Array]:
    packed = np.array(a)
    *lead, m, n = a.shape
    order = np.empty((*lead, m), np.int64)
    with np.errstate(all="ignore"):
        for index in np.ndindex(*lead):
            order[index] = _eliminate(packed[index])
    return packed, order


def _eliminate(x: Array) -> Array:
    """L without its ones and U instead of `x`; the order of its rows."""
    m, n = x.shape
    order = np.arange(m)
    for k in range(min(m, n)):
        column = np.where(np.isnan(x[k:, k]), -1, np.abs(x[k:, k]))
        pivot = k + int(np.argmax(column))
        if x[pivot, k] == 0:
            continue
        x[[k, pivot]], order[[k, pivot]] = x[[pivot, k]], order[[pivot, k]]
        x[k + 1 :, k] /= x[k, k]
        x[k + 1 :, k + 1 :] -= np.outer(x[k + 1 :, k], x[k, k + 1 :])
    return order


def _jvp_lu(b: Builder, op: Op, tangents: Tangents) -> list[Value | None]:
    """With M = L^-1 (P A') U^-1, L' = L tril(M, -1) and U' = triu(M) U. Oblong factors are filled up
    with ones on the diagonal to square ones."""
    if tangents[0] is None:
        return [None, None]
    packed, order = op.results
    m, n = packed.shape[-2:]
    k = min(m, n)
    moved = _rows_in_order(b, tangents[0], order)
    whole = Matrix(b, packed)
    below = _squared(whole.columns(k).tril(strictly=True), m)
    lower = below + _ones_like(below)
    upper = _squared(whole.rows(k).triu(), n)
    if n > k:
        upper = upper + _ones_like(upper, after=k)
    inner = solve_triangle(lower, moved, lower=True, unit=True)
    inner = solve_triangle(upper.mT, inner.mT, lower=True).mT
    return [(lower @ inner.tril(strictly=True) + inner.triu() @ upper).value, None]


def _rows_in_order(b: Builder, x: Value, order: Value) -> Matrix:
    """P X, with P as a matrix of zeros and ones."""
    *lead, m, n = x.shape
    rows = b.op("broadcast", order, shape=(*lead, m, m), dims=tuple(range(len(lead) + 1)))
    _, column = Matrix(b, rows).indices()
    chosen = b.op("convert", b.op("eq", rows, column.value), dtype=x.dtype)
    return Matrix(b, chosen) @ Matrix(b, x)


def _ones_like(x: Matrix, after: int = 0) -> Matrix:
    """Ones on the diagonal, from row `after` on."""
    row, column = x.indices()
    one, zero = x.b.full_like(x.value, 1), x.b.full_like(x.value, 0)
    mask = row.eq(column)
    if after:
        mask = mask & (row >= after)
    return Matrix(x.b, x.b.op("select", mask.value, one, zero))


def _squared(x: Matrix, n: int) -> Matrix:
    return Matrix(x.b, _padded(x.b, x.value, (n, n)))


def _padded(b: Builder, x: Value, shape: tuple[int, int]) -> Value:
    """Zeros behind the last rows and columns."""
    if x.shape[-2:] == shape:
        return x
    lead = len(x.shape) - 2
    high = tuple(n - have for n, have in zip(shape, x.shape[-2:], strict=True))
    zeros = (0,) * len(x.shape)
    zero = b.const(np.zeros((), x.dtype))
    return b.op("pad", x, zero, low=zeros, high=(0,) * lead + high, interior=zeros)


register(
    OpDef(
        "lu",
        "library",
        _infer_lu,
        _lu,
        _jvp_lu,
        transposed(_jvp_lu),
        batch=batch_checked,
        dtypes="f",
        doc="P A = L U: L without its diagonal of ones and U in one matrix, and the order of A's rows",
    )
)
