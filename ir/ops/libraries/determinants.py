"""Determinants, and their derivatives at every matrix, singular ones included.

The gradient of a determinant is the matrix of cofactors, a polynomial: no inverse is needed, though it
is the fast way to it where there is one. For matrices of up to 4 x 4 the polynomial is written out. Of
larger ones that are singular, cofactors come from singular values: with A = U S V^H

    adj(A) = det(U) det(V^H) V P U^H,  P[i] the product of all s but s[i],

and their derivative along E from the products of all but two. Third derivatives need the inverse.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...build import Builder, Grads, Wanted
from ...graph import Graph, Op, Value
from ...types import I32, TensorType
from ..composed import composed_rules, composition
from ..term import Term, where
from .library import library
from .linear_algebra import THIN, Tangents, in_lapack
from .matrices import Matrix, matrices

_WRITTEN_OUT = 4  # rows


def _jvp_det(b: Builder, op: Op, tangents: Tangents) -> list[Value | None]:
    """d' = trace(adj(A) A')"""
    if tangents[0] is None:
        return [None]
    cofactors = Matrix(b, b.op("adjugate", op.operands[0])).mT
    return [(cofactors * Matrix(b, tangents[0])).total().value]


library("det", in_lapack("det"), "(m,m)->()", _jvp_det)


def _jvp_slogdet(b: Builder, op: Op, tangents: Tangents) -> list[Value | None]:
    """The derivative of a determinant's logarithm is trace(A^-1 A')."""
    if tangents[0] is None:
        return [None, None]
    inverse = Matrix(b, b.op("inv", op.operands[0], mode="fill"))
    change = (inverse.mT * Matrix(b, tangents[0])).total()
    if not change.complex:
        return [b.zeros(op.results[0].type), change.value]
    real = change.real_part()
    turned = change - real.like(change)  # the imaginary part, times i
    return [(Matrix(b, op.results[0]) * turned).value, real.value]


library("slogdet", in_lapack("slogdet"), "(m,m)->(),()", _jvp_slogdet, results=("T", "real"))


# Cofactors


def _compose_adjugate(b: Builder, a: Value) -> list[Value]:
    if a.shape[-1] <= _WRITTEN_OUT:
        return [_cofactors(b, a)]
    return [_where_singular(b, [a], _adjugate_by_inverse, _adjugate_by_values)]


def _jvp_adjugate(b: Builder, op: Op, tangents: Tangents) -> list[Value | None]:
    (a,), (t,) = op.operands, tangents
    if t is None:
        return [None]
    if a.shape[-1] <= _WRITTEN_OUT:
        changes: list[Value | None] = composed_rules(_cofactors)[0](b, op, tangents)
        return changes
    return [b.op("adjugate_change", a, t)]


composition(
    "adjugate",
    _compose_adjugate,
    _jvp_adjugate,
    kinds="fc",
    doc="the transposed matrix of cofactors",
)


def _cofactors(b: Builder, a: Value) -> Value:
    """Each is a determinant of what remains without one row and one column."""
    n, rank = a.shape[-1], len(a.shape)
    if n == 0:
        return a
    elements = [[_element(b, a, i, j) for j in range(n)] for i in range(n)]

    def minor(rows: tuple[int, ...], columns: tuple[int, ...]) -> Term | None:
        if not rows:
            return None
        total: Term | None = None
        for k, column in enumerate(columns):
            inner = minor(rows[1:], (*columns[:k], *columns[k + 1 :]))
            part = elements[rows[0]][column]
            part = part if inner is None else part * inner
            part = -part if k % 2 else part
            total = part if total is None else total + part
        return total

    parts = []
    for i in range(n):
        for j in range(n):
            others = [tuple(k for k in range(n) if k != skipped) for skipped in (j, i)]
            value = minor(others[0], others[1])
            if value is None:
                value = Term(b, b.full_like(elements[0][0].value, 1))
            parts.append((-value if (i + j) % 2 else value).value)
    joined = b.op("concat", *parts, axis=rank - 2) if len(parts) > 1 else parts[0]
    made: Value = b.op("reshape", joined, shape=a.shape)
    return made


def _element(b: Builder, a: Value, i: int, j: int) -> Term:
    """One element of each matrix, as [*batch, 1]."""
    lead = a.shape[:-2]
    start, stop = (*(0,) * len(lead), i, j), (*lead, i + 1, j + 1)
    element = b.op("slice", a, start=start, stop=stop, step=(1,) * len(stop))
    return Term(b, b.op("reshape", element, shape=(*lead, 1)))


def _adjugate_by_inverse(a: Matrix) -> Matrix:
    b, n = a.b, a.value.shape[-1]
    inverse = Matrix(b, b.op("inv", a.value, mode="fill"))
    return _spread(_det(a), n) * inverse


def _adjugate_by_values(a: Matrix) -> Matrix:
    u, s, vh = _decomposed(a)
    n = a.value.shape[-1]
    all_but_last = s.columns(n - 1).product()
    last = Matrix(a.b, s.element(n - 1))
    row = s.positions()
    others = where(row.eq(n - 1), 1.0, last.repeated(n) * _reciprocal(s))
    scale = Matrix(a.b, (all_but_last.repeated(n) * others).value).like(a)
    turn = _spread(_det(u) * _det(vh), n)
    return turn * (vh.H @ (scale.as_columns(n) * u.H))


# Their derivative


def _compose_change(b: Builder, a: Value, t: Value) -> list[Value]:
    return [_where_singular(b, [a, t], _change_by_inverse, _change_by_values)]


def _change_by_inverse(a: Matrix, t: Matrix) -> Matrix:
    """det(A) (trace(B E) B - B E B) with B = A^-1"""
    b, n = a.b, a.value.shape[-1]
    inverse = Matrix(b, b.op("inv", a.value, mode="fill"))
    total = _spread((inverse.mT * t).total(), n)
    return _spread(_det(a), n) * (total * inverse - inverse @ t @ inverse)


def _change_by_values(a: Matrix, t: Matrix) -> Matrix:
    """With M = U^H E V: -M[i, j] P[i, j] off the diagonal, where P is the product of all s but two, and
    the sum over j != i of M[j, j] P[i, j] on it."""
    b, n = a.b, a.value.shape[-1]
    u, s, vh = _decomposed(a)
    m = u.H @ t @ vh.H
    first = s.columns(n - 2).product()
    row, column = m.indices()
    inner = where(s.positions() < n - 2, _reciprocal(s), 1.0)
    factors = Matrix(b, inner.value)
    pairs = factors.as_columns(n) * factors.as_rows(n) * first.repeated(n).as_columns(n)
    for k in (n - 2, n - 1):
        left_out = row.eq(k) | column.eq(k)
        value = Matrix(b, s.element(k)).repeated(n).as_columns(n)
        pairs = pairs * Matrix(b, where(left_out, 1.0, value).value)
    pairs = pairs.without_diagonal()
    diagonal = m.diagonal().as_rows(n) * pairs.like(m)  # M[j, j] P[i, j]
    sums = (diagonal.mT).column_sums()
    inside = sums.as_columns(n).diagonal_only() - m * pairs.like(m)
    return _spread(_det(u) * _det(vh), n) * (vh.H @ inside @ u.H)


def _jvp_change(b: Builder, op: Op, tangents: Tangents) -> list[Value | None]:
    (a, _), (ta, tt) = op.operands, tangents
    change = None if tt is None else b.op("adjugate_change", a, tt)
    if ta is not None:
        (moved,) = composed_rules(_inverse_form)[0](b, op, [ta, None])
        assert moved is not None
        change = moved if change is None else b.op("add", change, moved)
    return [change]


def _vjp_change(b: Builder, op: Op, cotangents: Sequence[Value], wanted: Wanted) -> Grads:
    """det''(A)[E, F] is symmetric in E and F: the derivative is its own transpose, but for two of
    matrices."""
    (ct,) = cotangents
    grads: list[Value | None] = [None, None]
    if wanted[0]:
        grads[0] = composed_rules(_inverse_form)[1](b, op, cotangents, [True, False])[0]
    if wanted[1]:
        turned = Matrix(b, ct).mT
        grads[1] = Matrix(b, b.op("adjugate_change", op.operands[0], turned.value)).mT.value
    return grads


def _inverse_form(b: Builder, a: Value, t: Value) -> Value:
    return _change_by_inverse(*matrices(b, a, t)).value


composition(
    "adjugate_change",
    _compose_change,
    _jvp_change,
    _vjp_change,
    kinds="fc",
    doc="the derivative of the adjugate of the first operand along the second",
)


# Parts of both


def _where_singular(
    b: Builder,
    operands: list[Value],
    regular: Callable[..., Matrix],
    singular: Callable[..., Matrix],
) -> Value:
    """What `singular` makes of those matrices whose determinant is zero; it runs if there are any."""
    zero = b.op("eq", b.op("det", operands[0]), b.zeros(_without_matrix(operands[0])))
    some = b.op("any", zero, axes=tuple(range(len(zero.shape))))
    types = [v.type for v in (*operands, zero)]

    def branch(both: bool) -> Graph:
        graph = Graph("singular" if both else "regular")
        inner = Builder(graph, b.loc)
        *params, mask = (graph.add_param(t) for t in types)
        args = matrices(inner, *params)
        value = regular(*args).value
        if both:
            n = value.shape[-1]
            chosen = Matrix(inner, mask)
            spread = _spread(chosen, n).value
            value = inner.op("select", spread, singular(*args).value, value)
        graph.outputs = [value]
        return graph

    index = b.op("convert", some, dtype=I32)
    result: Value = b.op("cond", index, *operands, zero, regions=[branch(False), branch(True)])
    return result


def _without_matrix(a: Value) -> TensorType:
    return a.tensor.with_shape(a.shape[:-2])


def _decomposed(a: Matrix) -> tuple[Matrix, Matrix, Matrix]:
    u, s, vh = a.b.op("svd", a.value, **THIN)
    return Matrix(a.b, u), Matrix(a.b, s), Matrix(a.b, vh)


def _det(a: Matrix) -> Matrix:
    return Matrix(a.b, a.b.op("det", a.value))


def _reciprocal(s: Matrix) -> Term:
    """1 / s, and 0 for 0."""
    zero = s.eq(0.0)
    return where(zero, 0.0, 1.0 / where(zero, 1.0, s))


def _spread(x: Matrix, n: int) -> Matrix:
    """One number per matrix as all elements of it."""
    return x.repeated(n).as_columns(n)
