"""Linear algebra by LAPACK, through the loops of `numpy.linalg`, for batches of matrices.

Derivatives are those of the functions that the loops compute: what reads one triangle of a matrix
has no derivative with respect to the other. Formulas: M. Giles, Collected matrix derivative results
for forward and reverse mode algorithmic differentiation (2008); J. Townsend, Differentiating the
singular value decomposition (2016); S. Walter, L. Lehmann, Algorithmic differentiation of linear
algebra functions (2010). In all of them an apostrophe marks a tangent.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

from ...build import Builder, Grads, Wanted
from ...graph import Op, Value
from ..composed import composition
from .library import library
from .matrices import Matrix, matrices
from .triangular import solve_triangle

_LAPACK = "numpy.linalg._umath_linalg"

Tangents = Sequence[Value | None]
THIN: dict[str, Any] = {"full": False, "mode": "fill"}


def in_lapack(name: str) -> str:
    """The name of a loop of `np.linalg`."""
    return f"{_LAPACK}:{name}"


def _triangle(name: str) -> Any:
    """The loop for the lower triangle, or for the upper one."""
    return lambda sizes, *, upper: in_lapack(f"{name}_{'up' if upper else 'lo'}")


# Systems of equations


def _jvp_solve(b: Builder, op: Op, tangents: Tangents) -> list[Value | None]:
    """X' = A^-1 (B' - A' X)"""
    ta, tb = tangents
    a, x = matrices(b, op.operands[0], op.result)
    right = None if tb is None else Matrix(b, tb)
    if ta is not None:
        moved = Matrix(b, ta) @ x
        right = -moved if right is None else right - moved
    return [None if right is None else a.solve(right).value]


def _vjp_solve(b: Builder, op: Op, cotangents: Sequence[Value], wanted: Wanted) -> Grads:
    """B~ = A^-T X~,  A~ = -B~ X^T"""
    (ct,) = cotangents
    a, x = matrices(b, op.operands[0], op.result)
    right = a.mT.solve(Matrix(b, ct))
    return [(-(right @ x.mT)).value if wanted[0] else None, right.value]


library(
    "solve",
    in_lapack("solve"),
    "(m,m),(m,n)->(m,n)",
    _jvp_solve,
    vjp=_vjp_solve,
    failure="Singular matrix",
    doc="A^-1 B",
)


def _jvp_inv(b: Builder, op: Op, tangents: Tangents) -> list[Value | None]:
    """C' = -C A' C"""
    if tangents[0] is None:
        return [None]
    c, t = matrices(b, op.result, tangents[0])
    return [(-(c @ t @ c)).value]


library("inv", in_lapack("inv"), "(m,m)->(m,m)", _jvp_inv, failure="Singular matrix", doc="A^-1")


# Decompositions of Hermitian matrices


def _jvp_cholesky(b: Builder, op: Op, tangents: Tangents) -> list[Value | None]:
    """L' = L P(L^-1 A' L^-H): P keeps the lower triangle and half of the diagonal."""
    if tangents[0] is None:
        return [None]
    upper = op.attrs["upper"]
    factor, t = matrices(b, op.result, tangents[0])
    lower = factor.H if upper else factor
    t = (t.H if upper else t).hermitian()
    solve = lower.solve if lower.complex else functools.partial(solve_triangle, lower, lower=True)
    inner = solve(solve(t).H)  # Hermitian, so that nothing has to be turned back
    inner = inner.tril() - inner.diagonal_only() * 0.5
    change = lower @ inner
    return [(change.H if upper else change).value]


library(
    "cholesky",
    _triangle("cholesky"),
    "(m,m)->(m,m)",
    _jvp_cholesky,
    attrs=("upper",),
    failure="Matrix is not positive definite",
    doc="L with L L^H = A, from A's lower triangle; or its conjugate transpose, from the upper one",
)


def put(x: Matrix, mask: Value, chosen: float) -> Matrix:
    """`x`, and a number where the mask is true."""
    return Matrix(x.b, x.b.op("select", mask, x.b.full_like(x.value, chosen), x.value))


def gaps(values: Matrix) -> Matrix:
    """1 / (w[j] - w[i]), and zeros on the diagonal. Infinite where two are equal: their vectors are any
    basis of one space, and have no derivative."""
    n = values.value.shape[-1]
    difference = values.as_rows(n) - values.as_columns(n)
    row, column = difference.indices()
    same = row.eq(column).value
    return put(1.0 / put(difference, same, 1.0), same, 0.0)


def _jvp_eigh(b: Builder, op: Op, tangents: Tangents) -> list[Value | None]:
    """w' = diag(V^H A' V),  V' = V (F * (V^H A' V)),  F[i, j] = 1 / (w[j] - w[i])"""
    if tangents[0] is None:
        return [None, None]
    w, v, t = matrices(b, *op.results, tangents[0])
    turned = v.H @ _symmetric(t, op.attrs["upper"]) @ v
    change = v @ (gaps(w).like(turned) * turned)
    return [turned.diagonal().real_part().value, change.value]


def _symmetric(t: Matrix, upper: bool) -> Matrix:
    """The Hermitian matrix of a tangent, by the triangle that is read."""
    return (t.H if upper else t).hermitian()


def _jvp_eigvalsh(b: Builder, op: Op, tangents: Tangents) -> list[Value | None]:
    if tangents[0] is None:
        return [None]
    _, vectors = b.op("eigh", op.operands[0], upper=op.attrs["upper"], mode="fill")
    v, t = matrices(b, vectors, tangents[0])
    turned = v.H @ _symmetric(t, op.attrs["upper"])
    return [(turned.mT * v).real_part().column_sums().value]


_EIGEN = "Eigenvalues did not converge"

library(
    "eigh",
    _triangle("eigh"),
    "(m,m)->(m),(m,m)",
    _jvp_eigh,
    results=("real", "T"),
    attrs=("upper",),
    failure=_EIGEN,
)
library(
    "eigvalsh",
    _triangle("eigvalsh"),
    "(m,m)->(m)",
    _jvp_eigvalsh,
    results=("real",),
    attrs=("upper",),
    failure=_EIGEN,
)

# Decompositions of other matrices


def _jvp_eig(b: Builder, op: Op, tangents: Tangents) -> list[Value | None]:
    """w' = diag(M) and V' = V (F * M) with M = V^-1 A' V, and then what keeps V's columns as LAPACK
    gives them: of length 1, the largest element real."""
    if tangents[0] is None:
        return [None, None]
    w, v, t = matrices(b, *op.results, tangents[0])
    inner = v.solve(t.like(v) @ v)
    change = v @ (gaps(w) * inner)
    n = v.value.shape[-1]
    length = (v.conjugate() * change).real_part().column_sums().like(v)
    change = change - v * length.as_rows(n)
    if n:
        change = change - v * _phase(v, change).as_rows(n)
    return [inner.diagonal().value, change.value]


def _phase(v: Matrix, change: Matrix) -> Matrix:
    """i times how much the largest element of each column turns."""
    b = v.b
    size = (v.conjugate() * v).real_part()
    axis = len(v.value.shape) - 2
    pivot = Matrix(b, b.op("argmax", size.value, axis=axis)).as_rows(v.value.shape[-2])
    row, _ = v.indices()
    largest = row.eq(pivot)
    ratio = change / put(v, largest.invert().value, 1.0)
    turn = ratio - ratio.real_part().like(ratio)
    return put(turn, largest.invert().value, 0.0).column_sums()


def _jvp_eigvals(b: Builder, op: Op, tangents: Tangents) -> list[Value | None]:
    if tangents[0] is None:
        return [None]
    _, vectors = b.op("eig", op.operands[0], mode="fill")
    v, t = matrices(b, vectors, tangents[0])
    return [v.solve(t.like(v) @ v).diagonal().value]


library(
    "eig",
    in_lapack("eig"),
    "(m,m)->(m),(m,m)",
    _jvp_eig,
    results=("complex", "complex"),
    failure=_EIGEN,
)
library(
    "eigvals",
    in_lapack("eigvals"),
    "(m,m)->(m)",
    _jvp_eigvals,
    results=("complex",),
    failure=_EIGEN,
)


# QR


def short(sizes: Mapping[str, int], **_: Any) -> dict[str, int]:
    """The size p of what has as many as the shorter side of m x n."""
    return {"p": min(sizes["m"], sizes["n"])}


library(
    "qr_raw",
    in_lapack("qr_r_raw"),
    "(m,n)->(m,n),(p)",
    results=("T", "T"),
    sizes=short,
    in_place=True,
    doc="Householder reflections: R above the diagonal and their vectors below, and their factors",
)
library(
    "qr_q",
    lambda sizes, *, complete: in_lapack("qr_complete" if complete else "qr_reduced"),
    lambda *, complete: "(m,n),(n)->(m,m)" if complete else "(m,n),(p)->(m,p)",
    attrs=("complete",),
    doc="the product of Householder reflections, all or the first columns of it",
)


def completed(whole: Matrix, first: Matrix, change: Matrix) -> Matrix:
    """The derivative of an orthonormal basis, from that of its first columns: the others turn as little
    as can be, which is right for all that does not depend on how the basis was completed."""
    k, n = change.value.shape[-1], whole.value.shape[-1]
    if k == n:
        return change
    return change.beside(-(first @ (change.H @ whole.columns_from(k))))


def _compose_qr(b: Builder, a: Value, complete: bool) -> list[Value]:
    raw, factors = b.op("qr_raw", a)
    r = Matrix(b, raw).triu()
    if not complete:
        r = r.rows(min(a.shape[-2:]))
    return [b.op("qr_q", raw, factors, complete=complete), r.value]


def _jvp_qr(b: Builder, op: Op, tangents: Tangents) -> list[Value | None]:
    """Q' = (A' - Q R') R^-1 and R' = (Q^H A' R^-1 - W) R, where W is what keeps Q^H Q' skew. If A is
    wider than high, that of its first columns, and R = Q^H A for the others."""
    if tangents[0] is None:
        return [None, None]
    a, whole, r, t = matrices(b, op.operands[0], *op.results, tangents[0])
    m, n = a.value.shape[-2:]
    k = min(m, n)
    q, square = whole.columns(k), r.rows(k).columns(k)
    moved = square.mT.solve(t.columns(k).mT).mT
    turned = q.H @ moved
    below = turned.tril(strictly=True)
    skew = below - below.H
    if turned.complex:
        diagonal = turned.diagonal_only()
        skew = skew + (diagonal - diagonal.real_part().like(diagonal))
    dq = q @ (skew - turned) + moved
    dr = (turned - skew) @ square if n <= m else dq.H @ a + q.H @ t
    if r.value.shape[-2] > k:  # zeros below
        dr = dr.mT.beside(Matrix(b, b.full_like(r.rows_from(k).value, 0)).mT).mT
    return [completed(whole, q, dq).value, dr.value]


composition(
    "qr",
    _compose_qr,
    _jvp_qr,
    kinds="fc",
    attrs=("complete",),
    doc="Q, all of it or its first columns, and R; A = Q R",
)
