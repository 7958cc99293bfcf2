"""Singular values, and what is computed from them: pseudoinverses, least squares.

Where singular values are equal, or zero, their vectors are one basis of many of a space: these have no
derivative, the values do. The vectors beyond the first min(m, n) are a basis of what remains, too; they
turn as little as can be, which is right for all that does not depend on the choice.
"""

from __future__ import annotations

from ...build import Builder
from ...graph import Op, Value
from ...types import is_complex
from ..composed import composition
from .library import batch_checked, library
from .linear_algebra import THIN, Tangents, completed, gaps, in_lapack, short
from .matrices import Matrix, matrices


def _jvp_svd(b: Builder, op: Op, tangents: Tangents) -> list[Value | None]:
    """With P = U^H A' V: s' = diag(P), and U' = U (X + Y), V' = V (X - Y) for

        X[i, j] = (P + P^H)[i, j] / 2 (s[j] - s[i]),  Y[i, j] = (P - P^H)[i, j] / 2 (s[i] + s[j])

    and what A' adds outside of U and V. Y's diagonal is the phase that U and V share.
    """
    if tangents[0] is None:
        return [None, None, None]
    whole_u, s, whole_vh, t = matrices(b, *op.results, tangents[0])
    m, n = op.operands[0].shape[-2:]
    k = min(m, n)
    u, v = whole_u.columns(k), whole_vh.H.columns(k)
    p = u.H @ t @ v
    x = gaps(s).like(p) * ((p + p.H) * 0.5)
    y = (0.5 / (s.as_columns(k) + s.as_rows(k))).like(p) * (p - p.H)
    du, dv = u @ (x + y), v @ (x - y)
    inverse = (1.0 / s).like(p)
    if m > k:
        rest = t @ v
        du = du + (rest - u @ (u.H @ rest)) * inverse.as_rows(m)
    if n > k:
        rest = t.H @ u
        dv = dv + (rest - v @ (v.H @ rest)) * inverse.as_rows(n)
    du, dv = completed(whole_u, u, du), completed(whole_vh.H, v, dv)
    return [du.value, p.diagonal().real_part().value, dv.H.value]


def _jvp_svdvals(b: Builder, op: Op, tangents: Tangents) -> list[Value | None]:
    if tangents[0] is None:
        return [None]
    left, _, right = b.op("svd", op.operands[0], **THIN)
    u, vh, t = matrices(b, left, right, tangents[0])
    return [((t.mT @ u.conjugate()) * vh.H).real_part().column_sums().value]


_SVD = "SVD did not converge"

library(
    "svd",
    lambda sizes, *, full: in_lapack("svd_f" if full else "svd_s"),
    lambda *, full, **_: "(m,n)->(m,m),(p),(n,n)" if full else "(m,n)->(m,p),(p),(p,n)",
    _jvp_svd,
    results=("T", "real", "T"),
    sizes=short,
    attrs=("full",),
    failure=_SVD,
)
library(
    "svdvals",
    in_lapack("svd"),
    "(m,n)->(p)",
    _jvp_svdvals,
    results=("real",),
    sizes=short,
    failure=_SVD,
)

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
    u, s, vh = matrices(b, *b.op("svd", a.value, **THIN))
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
    in_lapack("lstsq"),
    "(m,n),(m,k)->(n,k),(k),(),(p)",
    _jvp_lstsq,
    results=("T", "real", "i32", "real"),
    sizes=short,
    constants=lambda *, rcond: (rcond,),
    attrs=("rcond",),
    failure="SVD did not converge in Linear Least Squares",
    doc="least squares solutions, their residuals, the rank and the singular values",
)

# The polar decomposition


def _compose_polar(b: Builder, a: Value, mode: str) -> list[Value]:
    u, _, vh = matrices(b, *b.op("svd", a, full=False, mode=mode))
    return [(u @ vh).value]


def _jvp_polar(b: Builder, op: Op, tangents: Tangents) -> list[Value | None]:
    """W' = U 2 Y V^H, and what A' S^-1 adds outside of U; equal singular values do not matter."""
    if tangents[0] is None:
        return [None]
    u, s, vh, t = matrices(b, *b.op("svd", op.operands[0], **THIN), tangents[0])
    m, k = op.operands[0].shape[-2], s.value.shape[-1]
    v = vh.H
    rest = t @ v
    p = u.H @ rest
    change = u @ ((1.0 / (s.as_columns(k) + s.as_rows(k))).like(p) * (p - p.H))
    if m > k:
        change = change + (rest - u @ p) * (1.0 / s).like(p).as_rows(m)
    return [(change @ vh).value]


composition(
    "polar",
    _compose_polar,
    _jvp_polar,
    kinds="fc",
    attrs=("mode",),
    batch=batch_checked,
    doc="the nearest matrix of orthonormal columns, for matrices that are at least as high as wide",
)
