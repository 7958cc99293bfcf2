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

from ..build import Builder
from ..graph import Op, Value
from ..opdef import DerivativeError
from ..types import is_complex
from .composed import composition
from .library import batch_checked, library
from .matrices import Matrix, matrices
from .triangular import solve_triangle

_LAPACK = "numpy.linalg._umath_linalg"

Tangents = Sequence[Value | None]
_THIN: dict[str, Any] = {"full": False, "mode": "fill"}


def _in_lapack(name: str) -> str:
    return f"{_LAPACK}:{name}"


def _triangle(name: str) -> Any:
    """The loop for the lower triangle, or for the upper one."""
    return lambda sizes, *, upper: _in_lapack(f"{name}_{'up' if upper else 'lo'}")


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


def _vjp_solve(
    b: Builder, op: Op, cotangents: Sequence[Value | None], wanted: Sequence[bool]
) -> list[Value | None]:
    """B~ = A^-T X~,  A~ = -B~ X^T"""
    (ct,) = cotangents
    if ct is None:
        return [None, None]
    a, x = matrices(b, op.operands[0], op.result)
    right = a.mT.solve(Matrix(b, ct))
    return [(-(right @ x.mT)).value if wanted[0] else None, right.value]


library(
    "solve",
    _in_lapack("solve"),
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


library("inv", _in_lapack("inv"), "(m,m)->(m,m)", _jvp_inv, failure="Singular matrix", doc="A^-1")


def _relative_change(b: Builder, op: Op, t: Value) -> Matrix:
    """trace(A^-1 A'), the derivative of a determinant's logarithm."""
    inverse = Matrix(b, b.op("inv", op.operands[0], mode="fill"))
    return (inverse.mT * Matrix(b, t)).total()


def _jvp_det(b: Builder, op: Op, tangents: Tangents) -> list[Value | None]:
    """d' = d trace(A^-1 A')"""
    if tangents[0] is None:
        return [None]
    return [(Matrix(b, op.result) * _relative_change(b, op, tangents[0])).value]


library("det", _in_lapack("det"), "(m,m)->()", _jvp_det)


def _jvp_slogdet(b: Builder, op: Op, tangents: Tangents) -> list[Value | None]:
    if tangents[0] is None:
        return [None, None]
    change = _relative_change(b, op, tangents[0])
    if not change.complex:
        return [b.zeros(op.results[0].type), change.value]
    real = change.real_part()
    turned = change - real.like(change)  # the imaginary part, times i
    return [(Matrix(b, op.results[0]) * turned).value, real.value]


library("slogdet", _in_lapack("slogdet"), "(m,m)->(),()", _jvp_slogdet, results=("T", "real"))

# Decompositions of Hermitian matrices


def _jvp_cholesky(b: Builder, op: Op, tangents: Tangents) -> list[Value | None]:
    """L' = L P(L^-1 A' L^-H): P keeps the lower triangle and half of the diagonal."""
    if tangents[0] is None:
        return [None]
    upper = op.attrs["upper"]
    found, t = matrices(b, op.result, tangents[0])
    lower = found.H if upper else found
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


def _put(x: Matrix, mask: Value, chosen: float) -> Matrix:
    """`x`, and a number where the mask is true."""
    return Matrix(x.b, x.b.op("select", mask, x.b.full_like(x.value, chosen), x.value))


def _gaps(values: Matrix) -> Matrix:
    """1 / (w[j] - w[i]) for i != j, and zeros on the diagonal."""
    n = values.value.shape[-1]
    difference = values.as_rows(n) - values.as_columns(n)
    row, column = difference.places()
    same = row.eq(column).value
    return _put(1.0 / _put(difference, same, 1.0), same, 0.0)


def _jvp_eigh(b: Builder, op: Op, tangents: Tangents) -> list[Value | None]:
    """w' = diag(V^H A' V),  V' = V (F * (V^H A' V)),  F[i, j] = 1 / (w[j] - w[i])"""
    if tangents[0] is None:
        return [None, None]
    w, v, t = matrices(b, *op.results, tangents[0])
    turned = v.H @ _symmetric(t, op.attrs["upper"]) @ v
    change = v @ (_gaps(w).like(turned) * turned)
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
    change = v @ (_gaps(w) * inner)
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
    place = Matrix(b, b.op("argmax", size.value, axis=axis)).as_rows(v.value.shape[-2])
    row, _ = v.places()
    largest = row.eq(place)
    ratio = change / _put(v, largest.invert().value, 1.0)
    turn = ratio - ratio.real_part().like(ratio)
    return _put(turn, largest.invert().value, 0.0).column_sums()


def _jvp_eigvals(b: Builder, op: Op, tangents: Tangents) -> list[Value | None]:
    if tangents[0] is None:
        return [None]
    _, vectors = b.op("eig", op.operands[0], mode="fill")
    v, t = matrices(b, vectors, tangents[0])
    return [v.solve(t.like(v) @ v).diagonal().value]


library(
    "eig",
    _in_lapack("eig"),
    "(m,m)->(m),(m,m)",
    _jvp_eig,
    results=("complex", "complex"),
    failure=_EIGEN,
)
library(
    "eigvals",
    _in_lapack("eigvals"),
    "(m,m)->(m)",
    _jvp_eigvals,
    results=("complex",),
    failure=_EIGEN,
)


def _jvp_svd(b: Builder, op: Op, tangents: Tangents) -> list[Value | None]:
    """s' = diag(P), P = U^H A' V; U' and V' from P and, for what lies outside of them, from A'."""
    if tangents[0] is None:
        return [None, None, None]
    u, s, vh, t = matrices(b, *op.results, tangents[0])
    m, n = op.operands[0].shape[-2:]
    k = min(m, n)
    if op.attrs["full"] and m != n:
        raise DerivativeError(
            "the singular vectors beyond the first min(m, n) are any basis of what remains, and have "
            "no derivative; ask for full_matrices=False"
        )
    v = vh.H
    p = u.H @ t @ v
    sc = s.like(p)
    gaps = _gaps(s * s).like(p)  # 1 / (s[j]^2 - s[i]^2)
    scaled, back = p * sc.as_rows(k), sc.as_columns(k) * p
    du = u @ (gaps * (scaled + scaled.H))
    dv = v @ (gaps * (back + back.H))
    if p.complex:  # the phase that U and V share, by which P's diagonal is real
        turn = (p - p.H).diagonal_only() * 0.25
        turn = turn / sc.as_rows(k)
        du, dv = du + u @ turn, dv - v @ turn
    if m > k:
        rest = t @ v
        du = du + (rest - u @ (u.H @ rest)) / sc.as_rows(m)
    if n > k:
        rest = t.H @ u
        dv = dv + (rest - v @ (v.H @ rest)) / sc.as_rows(n)
    return [du.value, p.diagonal().real_part().value, dv.H.value]


def _jvp_svdvals(b: Builder, op: Op, tangents: Tangents) -> list[Value | None]:
    if tangents[0] is None:
        return [None]
    left, _, right = b.op("svd", op.operands[0], **_THIN)
    u, vh, t = matrices(b, left, right, tangents[0])
    return [((t.mT @ u.conjugate()) * vh.H).real_part().column_sums().value]


def _short(sizes: Mapping[str, int], **_: Any) -> dict[str, int]:
    return {"p": min(sizes["m"], sizes["n"])}


_SVD = "SVD did not converge"

library(
    "svd",
    lambda sizes, *, full: _in_lapack("svd_f" if full else "svd_s"),
    lambda *, full, **_: "(m,n)->(m,m),(p),(n,n)" if full else "(m,n)->(m,p),(p),(p,n)",
    _jvp_svd,
    results=("T", "real", "T"),
    sizes=_short,
    attrs=("full",),
    failure=_SVD,
)
library(
    "svdvals",
    _in_lapack("svd"),
    "(m,n)->(p)",
    _jvp_svdvals,
    results=("real",),
    sizes=_short,
    failure=_SVD,
)

# QR


library(
    "qr_raw",
    _in_lapack("qr_r_raw"),
    "(m,n)->(m,n),(p)",
    results=("T", "T"),
    sizes=_short,
    in_place=True,
    doc="Householder reflections: R above the diagonal and their vectors below, and their factors",
)
library(
    "qr_q",
    lambda sizes, *, complete: _in_lapack("qr_complete" if complete else "qr_reduced"),
    lambda *, complete: "(m,n),(n)->(m,m)" if complete else "(m,n),(p)->(m,p)",
    attrs=("complete",),
    doc="the product of Householder reflections, all or the first columns of it",
)


def _compose_qr(b: Builder, a: Value) -> list[Value]:
    raw, factors = b.op("qr_raw", a)
    r = Matrix(b, raw).rows(min(a.shape[-2:])).triu()
    return [b.op("qr_q", raw, factors, complete=False), r.value]


def _jvp_qr(b: Builder, op: Op, tangents: Tangents) -> list[Value | None]:
    """Q' = (A' - Q R') R^-1 and R' = (Q^H A' R^-1 - W) R, where W is what keeps Q^H Q' skew. If A is
    wider than high, that of its first columns, and R = Q^H A for the others."""
    if tangents[0] is None:
        return [None, None]
    a, q, r, t = matrices(b, op.operands[0], *op.results, tangents[0])
    m, n = a.value.shape[-2:]
    k = min(m, n)
    square = r.columns(k)
    moved = square.mT.solve(t.columns(k).mT).mT
    turned = q.H @ moved
    below = turned.tril(strictly=True)
    skew = below - below.H
    if turned.complex:
        diagonal = turned.diagonal_only()
        skew = skew + (diagonal - diagonal.real_part().like(diagonal))
    dq = q @ (skew - turned) + moved
    dr = (turned - skew) @ square if n <= m else dq.H @ a + q.H @ t
    return [dq.value, dr.value]


composition("qr", _compose_qr, _jvp_qr, kinds="fc", doc="the first columns of Q, and R; A = Q R")

# Least squares


def _compose_pinv(b: Builder, a: Value, rcond: Value, mode: str) -> list[Value]:
    """V S^-1 U^H without the singular values that are at most `rcond` times the largest."""
    conjugate = b.op("conj", a) if is_complex(a.dtype) else a
    u, s, vh = matrices(b, *b.op("svd", conjugate, full=False, mode=mode))
    largest = b.op("max", s.value, axes=(len(s.value.shape) - 1,))
    limit, lead = b.op("mul", rcond, largest), tuple(range(len(rcond.shape)))
    limit = b.op("broadcast", limit, shape=s.value.shape, dims=lead)
    return [_inverse_times(s, vh.mT, u.mT, b.op("gt", s.value, limit)).value]


def _inverse_times(s: Matrix, left: Matrix, right: Matrix, counts: Value) -> Matrix:
    """`left @ diag(1 / s) @ right` with those singular values that count."""
    b = s.b
    one, zero = b.full_like(s.value, 1), b.full_like(s.value, 0)
    inverse = b.op("div", one, b.op("select", counts, s.value, one))
    scale = Matrix(b, b.op("select", counts, inverse, zero)).like(right)
    return left @ (scale.as_columns(right.value.shape[-1]) * right)


def _jvp_pinv(b: Builder, op: Op, tangents: Tangents) -> list[Value | None]:
    """G. Golub, V. Pereyra (1973), for matrices of constant rank; P is A+:
    P' = -P A' P + P P^H A'^H (1 - A P) + (1 - P A) A'^H P^H P"""
    if tangents[0] is None:
        return [None]
    a, p, t = matrices(b, op.operands[0], op.result, tangents[0])
    left, right = p @ (p.H @ t.H), (t.H @ p.H) @ p
    return [(-(p @ t @ p) + (left - (left @ a) @ p) + (right - p @ (a @ right))).value]


composition(
    "pinv",
    _compose_pinv,
    _jvp_pinv,
    kinds="fc",
    attrs=("mode",),
    batch=batch_checked,
    doc="the Moore-Penrose inverse",
)


def _jvp_lstsq(b: Builder, op: Op, tangents: Tangents) -> list[Value | None]:
    """x' = P (b' - A' x) + P P^H A'^H r + (1 - P A) A'^H P^H x, with P = A+ and r = b - A x"""
    if tangents[0] is None and tangents[1] is None:
        return [None] * 4
    ta, tb = (
        Matrix(b, b.zeros(v.type) if t is None else t)
        for v, t in zip(op.operands, tangents, strict=True)
    )
    a, rhs, x = matrices(b, *op.operands, op.results[0])
    u, s, vh = matrices(b, *b.op("svd", a.value, **_THIN))
    rank = op.results[2]
    order = b.op("iota", shape=s.value.shape, dtype=rank.dtype, axis=len(s.value.shape) - 1)
    lead = tuple(range(len(rank.shape)))
    counted = b.op("lt", order, b.op("broadcast", rank, shape=order.shape, dims=lead))
    p = _inverse_times(s, vh.H, u.H, counted)
    r = rhs - a @ x
    change = tb - ta @ x
    rest = ta.H @ (p.H @ x)
    dx = p @ change + p @ (p.H @ (ta.H @ r)) + (rest - p @ (a @ rest))
    residual = ((r.conjugate() * change).real_part() * 2.0).column_sums()
    singular = ((ta.mT @ u.conjugate()) * vh.H).real_part().column_sums()
    return [dx.value, residual.value, None, singular.value]


library(
    "lstsq",
    _in_lapack("lstsq"),
    "(m,n),(m,k)->(n,k),(k),(),(p)",
    _jvp_lstsq,
    results=("T", "real", "i32", "real"),
    sizes=_short,
    constants=lambda *, rcond: (rcond,),
    attrs=("rcond",),
    failure="SVD did not converge in Linear Least Squares",
    doc="least squares solutions, their residuals, the rank and the singular values",
)
