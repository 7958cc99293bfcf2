"""Linear algebra of small matrices, written out element by element.

A call of LAPACK costs more than a matrix of 3 x 3 takes. Written out, a batch of them is a kernel whose
lanes are matrices, fused with what comes before and after; a loop that carries small matrices is scalar
code; and a GPU need not ask the host. Elimination has partial pivoting: where the largest element of a
column is, is found by comparing and exchanging rows one after the other, since lanes cannot branch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from ..build import Builder
from ..graph import Graph, Op, Value
from ..ops.term import Term, where
from ..types import is_complex
from .inline_calls import inline_calls
from .regions import map_regions, substituted

LARGEST = 4  # rows of a matrix that is written out
_COLUMNS = 16  # elements of a right-hand side

Rows = list[list[Term]]


def write_out_matrices(graph: Graph) -> Graph:
    """`graph` with elementwise ops instead of linear algebra on small matrices.

    %y = det %x : f64[8,2,2]     ->     %a = slice %x ... : f64[8,1] ... %y = reshape %d : f64[8]
    """
    if not any(op.definition.family in ("library", "composition") for op in graph.walk()):
        return graph
    graph = map_regions(inline_calls(graph), write_out_matrices)
    return substituted(graph, _expand)


def _is_small(op: Op) -> bool:
    if op.name not in _EXPANSIONS:
        return False
    shapes = [v.shape for v in op.operands]
    if math.prod(shapes[0][:-2]) == 0 or not 0 < shapes[0][-1] <= LARGEST:
        return False
    return len(shapes) == 1 or 0 < math.prod(shapes[1][-2:]) <= _COLUMNS


def _expand(b: Builder, op: Op, operands: Sequence[Value]) -> Sequence[Value] | None:
    return _EXPANSIONS[op.name](b, op, *operands) if _is_small(op) else None


# Matrices as rows of elements, each a column vector [batch, 1]: as long as all have that shape, they are
# stages of one loop.


def _elements(b: Builder, x: Value) -> Rows:
    *batch, m, n = x.shape
    items = math.prod(batch)
    flat = b.op("reshape", x, shape=(items, m * n))

    def element(k: int) -> Term:
        column = b.op("slice", flat, start=(0, k), stop=(items, k + 1), step=(1, 1))
        return Term(b, column)

    return [[element(i * n + j) for j in range(n)] for i in range(m)]


def _assembled(rows: Rows, batch: Sequence[int]) -> Value:
    """The matrices of these elements."""
    parts = [x.value for row in rows for x in row]
    b = rows[0][0].b
    joined = b.op("concat", *parts, axis=1) if len(parts) > 1 else parts[0]
    matrix: Value = b.op("reshape", joined, shape=(*batch, len(rows), len(rows[0])))
    return matrix


def _vector(x: Term, batch: Sequence[int]) -> Value:
    vector: Value = x.b.op("reshape", x.value, shape=tuple(batch))
    return vector


def _number(like: Term, value: float) -> Term:
    return Term(like.b, like.lift(value))


def _size(x: Term) -> Term:
    """What LAPACK compares pivots by."""
    if is_complex(x.value.dtype):
        return x.real().abs() + x.imag().abs()
    return x.abs()


def _checked(op: Op, fine: Term) -> Term:
    """Whether there is a result; if the user wants to know, it is an error where there is none."""
    if op.attrs.get("mode") != "check":
        return fine
    message = op.definition.extra["failure"]
    return Term(fine.b, fine.b.op("require", fine.value, message=message, mode="check"))


def _or_nan(fine: Term, rows: Rows) -> Rows:
    return [[where(fine, x, math.nan) for x in row] for row in rows]


# Elimination


class _Triangle(NamedTuple):
    """A triangular matrix in `rows`, and what became of the right-hand side beside it. What was done to
    the rows has determinant 1: one of two exchanged rows is negated."""

    rows: Rows
    right: Rows
    reciprocals: list[Term] | None  # of the pivots

    @property
    def pivots(self) -> list[Term]:
        return [row[k] for k, row in enumerate(self.rows)]

    @property
    def regular(self) -> Term:
        zeros = [p.ne(0.0) for p in self.pivots]
        regular = zeros[0]
        for other in zeros[1:]:
            regular = regular & other
        return regular

    def solution(self) -> Rows:
        n, columns = len(self.rows), range(len(self.right[0]))
        solution: Rows = [[] for _ in range(n)]
        for i in reversed(range(n)):
            row = self.rows[i]
            for k in columns:
                x = self.right[i][k]
                for j in range(i + 1, n):
                    x = x - row[j] * solution[j][k]
                solution[i].append(self._over_pivot(x, i))
        return solution

    def _over_pivot(self, x: Term, i: int) -> Term:
        return x / self.rows[i][i] if self.reciprocals is None else x * self.reciprocals[i]


def _eliminated(a: Rows, right: Rows, reciprocal: bool = False) -> _Triangle:
    """`reciprocal`: multiply with those of the pivots. They overflow where an inverse does, too, but for
    a factor of 4: if a pivot is subnormal."""
    n = len(a)
    rows = [[*x, *y] for x, y in zip(a, right, strict=True)]
    reciprocals = []
    for c in range(n):
        for r in range(c + 1, n):
            other = _size(rows[r][c]) > _size(rows[c][c])
            for j in range(c, len(rows[c])):
                x, y = rows[c][j], rows[r][j]
                rows[c][j], rows[r][j] = where(other, y, x), where(other, -x, y)
        pivot = rows[c][c]
        divisor = where(pivot.eq(0.0), 1.0, pivot)  # then there are zeros below it, too
        if reciprocal:
            reciprocals.append(1.0 / divisor)
        for r in range(c + 1, n):
            factor = rows[r][c] * reciprocals[c] if reciprocal else rows[r][c] / divisor
            for j in range(c + 1, len(rows[c])):
                rows[r][j] = rows[r][j] - factor * rows[c][j]
    left, right = [row[:n] for row in rows], [row[n:] for row in rows]
    return _Triangle(left, right, reciprocals if reciprocal else None)


def _unit(a: Rows) -> Rows:
    one, zero = _number(a[0][0], 1.0), _number(a[0][0], 0.0)
    return [[one if i == j else zero for j in range(len(a))] for i in range(len(a))]


def _solve(b: Builder, op: Op, a: Value, right: Value) -> list[Value]:
    triangle = _eliminated(_elements(b, a), _elements(b, right))
    fine = _checked(op, triangle.regular)
    return [_assembled(_or_nan(fine, triangle.solution()), right.shape[:-2])]


def _inv(b: Builder, op: Op, a: Value) -> list[Value]:
    rows = _elements(b, a)
    triangle = _eliminated(rows, _unit(rows), reciprocal=not is_complex(a.dtype))
    fine = _checked(op, triangle.regular)
    return [_assembled(_or_nan(fine, triangle.solution()), a.shape[:-2])]


def _nothing(rows: Rows) -> Rows:
    return [[] for _ in rows]


def _det(b: Builder, op: Op, a: Value) -> list[Value]:
    rows = _elements(b, a)
    pivots = _eliminated(rows, _nothing(rows)).pivots
    return [_vector(_safe_product(pivots), a.shape[:-2])]


def _safe_product(factors: list[Term]) -> Term:
    """The product of up to four numbers; on the way to it nothing overflows unless it does, too."""
    x = list(factors)
    if len(x) > 2:
        for i in range(len(x)):
            for j in range(i + 1, len(x)):
                swap = _size(x[j]) < _size(x[i])
                x[i], x[j] = where(swap, x[j], x[i]), where(swap, x[i], x[j])
    product, rest = (x[0] * x[-1], x[1:-1]) if len(x) > 1 else (x[0], [])
    if len(rest) == 2:  # what is large meets what is small
        small = _size(product) <= 1.0
        rest = [where(small, rest[1], rest[0]), where(small, rest[0], rest[1])]
    for factor in rest:
        product = product * factor
    return product


def _slogdet(b: Builder, op: Op, a: Value) -> list[Value]:
    rows = _elements(b, a)
    sign: Term | None = None
    log: Term | None = None
    for pivot in _eliminated(rows, _nothing(rows)).pivots:
        size = pivot.abs()
        if is_complex(pivot.value.dtype):
            size = size.real() if is_complex(size.value.dtype) else size
            whole = Term(b, b.op("convert", size.value, dtype=pivot.value.dtype))
            own = where(size.eq(0.0), 0.0, pivot / whole)
        else:
            own = pivot.sign()
        sign = own if sign is None else sign * own
        log = size.log() if log is None else log + size.log()
    assert sign is not None and log is not None
    return [_vector(sign, a.shape[:-2]), _vector(log, a.shape[:-2])]


# Cholesky


def _cholesky(b: Builder, op: Op, a: Value) -> list[Value]:
    """Column by column: L[j, j]^2 and L[i, j] L[j, j]* are what is left of A."""
    rows, n, upper = _elements(b, a), a.shape[-1], op.attrs["upper"]
    zero = _number(rows[0][0], 0.0)
    factor_rows: Rows = [[zero] * n for _ in range(n)]
    fine: Term | None = None
    for j in range(n):
        left = _real(rows[j][j])
        for k in range(j):
            left = left - _square(factor_rows[j][k])
        own = (left <= 0.0).invert()
        fine = own if fine is None else fine & own
        root = left.sqrt()
        factor_rows[j][j] = _like(root, zero)
        for i in range(j + 1, n):
            rest = _conj(rows[j][i]) if upper else rows[i][j]
            for k in range(j):
                rest = rest - factor_rows[i][k] * _conj(factor_rows[j][k])
            factor_rows[i][j] = rest / factor_rows[j][j]
    assert fine is not None
    fine = _checked(op, fine)
    if upper:
        factor_rows = [[_conj(factor_rows[j][i]) for j in range(n)] for i in range(n)]
    return [_assembled(_or_nan(fine, factor_rows), a.shape[:-2])]


def _real(x: Term) -> Term:
    return x.real() if is_complex(x.value.dtype) else x


def _conj(x: Term) -> Term:
    return x.conj() if is_complex(x.value.dtype) else x


def _square(x: Term) -> Term:
    if is_complex(x.value.dtype):
        re, im = x.real(), x.imag()
        return re * re + im * im
    return x * x


def _like(x: Term, other: Term) -> Term:
    dtype = other.value.dtype
    return x if x.value.dtype == dtype else Term(x.b, x.b.op("convert", x.value, dtype=dtype))


_EXPANSIONS: dict[str, Callable[..., list[Value]]] = {
    "solve": _solve,
    "inv": _inv,
    "det": _det,
    "slogdet": _slogdet,
    "cholesky": _cholesky,
}
