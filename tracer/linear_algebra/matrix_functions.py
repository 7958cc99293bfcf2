"""What SciPy calls linear algebra and NumPy does not have: triangular systems, LU, the exponential."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...ir.types import I64, is_complex, real_dtype
from ..arrays import ufuncs
from ..arrays.common import array, build
from ..arrays.creation import arange
from ..arrays.elementwise import where
from ..arrays.movement import broadcast_to, matrix_transpose
from ..arrays.reductions import max_, sum_
from ..arrays.table import function
from ..control.control import fori_loop, while_loop
from ..core.tracers import Tracer, as_value, wrap
from ..functions.diagonals import tril, triu
from ..functions.selection import take_along_axis
from .linalg import COMPUTED, matrix_operand, result_type, solve, solve_by


@function("linalg.solve_triangular", composed=True)
def solve_triangular(
    a: Any, b: Any, *, lower: bool = False, trans: Any = 0, unit_diagonal: bool = False
) -> Tracer:
    """Solve `a @ x = b` where only one triangle of `a` is read.

    a: (..., M, M), the upper triangle, or the lower one if `lower`; its diagonal counts as ones if
    `unit_diagonal`. b: (M,) or (..., M, K). trans: 0 or "N" for a, 1 or "T" for its transpose, 2 or "C"
    for its conjugate transpose. Gives x, of the shape of b and of float64 or complex128 unless all
    operands are of single precision. Raises numpy.linalg.LinAlgError for a zero on the diagonal.

        >>> a = np.array([[2.0, 9.0], [1.0, 4.0]])
        >>> jt.linalg.solve_triangular(a, np.array([2.0, 9.0]), lower=True)
        array([1., 2.])
    """
    matrix = matrix_operand("solve_triangular", a)
    if not any(map(is_complex, (matrix.dtype, array(b).dtype))):
        transposed = _transposed(trans)
        lower = bool(lower) != transposed
        matrix = matrix_transpose(matrix) if transposed else matrix
        return solve_by("triangular_solve", matrix, b, lower=lower, unit=bool(unit_diagonal))
    matrix = tril(matrix) if lower else triu(matrix)
    if unit_diagonal:
        unit = np.eye(matrix.shape[-1], dtype=bool)
        matrix = where(unit, matrix.dtype.type(1), matrix)
    if _transposed(trans):
        conjugate = trans in (2, "C")
        matrix = matrix_transpose(ufuncs.apply(np.conjugate, matrix) if conjugate else matrix)
    return solve(matrix, b)


def _transposed(trans: Any) -> bool:
    if trans not in (0, 1, 2, "N", "T", "C"):
        raise ValueError(f"trans={trans!r} is not one of 0, 1, 2, 'N', 'T' and 'C'")
    return trans not in (0, "N")


@function("linalg.lu", composed=True)
def lu(a: Any) -> Any:
    """Factors with `a == P @ L @ U`, by Gaussian elimination with row pivoting.

    a: (..., M, N). Gives P (..., M, M), a permutation; L (..., M, K), unit lower triangular; and U
    (..., K, N), upper triangular, K = min(M, N). Differentiable in L and U, where U has no zero on its
    diagonal.

        >>> p, l, u = jt.linalg.lu(np.array([[0.0, 2.0], [4.0, 4.0]]))
        >>> u
        array([[4., 4.],
               [0., 2.]])
    """
    packed, order = eliminated(a)
    m, k = packed.shape[-2], min(packed.shape[-2:])
    unit = np.eye(m, k, dtype=packed.dtype)
    lower = tril(packed[..., :k], -1) + unit
    rows = order[..., None, :] == arange(m, dtype=I64)[:, None]
    return rows.astype(real_dtype(packed.dtype)), lower, triu(packed[..., :k, :])


def eliminated(a: Any) -> tuple[Tracer, Tracer]:
    """L below the diagonal and U above it, in one matrix, and the order of its rows."""
    matrix = matrix_operand("lu", a, square=False)
    result = result_type(matrix)
    if not is_complex(result):
        x, order = build().lu(as_value(matrix, COMPUTED[result]))
        return wrap(x, scalar=False).astype(result), wrap(order, scalar=False)
    m, n = matrix.shape[-2:]
    rows = arange(m, dtype=I64)
    order = broadcast_to(rows, matrix.shape[:-1])

    if 0 in (m, n):
        return matrix.astype(result), order

    def step(k: Any, state: Any) -> Any:
        x, order = state
        column = abs(x[..., :, k])
        pivot = where(rows < k, -1.0, column).argmax(axis=-1)[..., None]
        swapped = where(rows == k, pivot, where(rows == pivot, k, rows))
        x = take_along_axis(x, swapped[..., None], axis=-2)
        order = take_along_axis(order, swapped, axis=-1)
        top = x[..., k, k][..., None]
        zero = top == 0
        factors = where(zero, 0, x[..., :, k] / where(zero, 1, top))
        factors = where(rows > k, factors, 0)
        columns = arange(n, dtype=I64)
        row = where(columns > k, x[..., k, :], 0)
        x = x - factors[..., :, None] * row[..., None, :]
        below = (rows > k)[:, None] & (columns == k)
        return where(below, factors[..., :, None], x), order

    x, order = fori_loop(0, min(m, n), step, (matrix.astype(COMPUTED[result]), order))
    return x.astype(result), order


_PADE = (
    *(64764752532480000.0, 32382376266240000.0, 7771770303897600.0, 1187353796428800.0),
    *(129060195264000.0, 10559470521600.0, 670442572800.0, 33522128640.0, 1323241920.0),
    *(40840800.0, 960960.0, 16380.0, 182.0, 1.0),
)
_PADE_REACH = 5.371920351148152  # the largest 1-norm at which the approximation is exact in float64


@function("linalg.expm", composed=True)
def expm(a: Any) -> Tracer:
    """The matrix exponential, by a Pade approximation of order 13 after scaling, and squaring.

    a: (..., M, M). Gives the same shape, of float64 or complex128 unless `a` is of single precision.
    N. Higham, The scaling and squaring method for the matrix exponential revisited (2005).

        >>> jt.linalg.expm(np.array([[0.0, 1.0], [0.0, 0.0]]))
        array([[1., 1.],
               [0., 1.]])
    """
    matrix = matrix_operand("expm", a)
    result = result_type(matrix)
    if matrix.size == 0:
        return matrix.astype(result)
    x = matrix.astype(COMPUTED[result])
    norm = max_(sum_(abs(x), axis=-2), axis=-1)
    finite = ufuncs.apply(np.isfinite, norm)
    halvings = ufuncs.apply(np.log2, where(finite, norm, 1.0) / _PADE_REACH)
    count = ufuncs.apply(np.maximum, ufuncs.apply(np.ceil, halvings), 0.0)
    x = x * ufuncs.apply(np.exp2, -count)[..., None, None]
    squared = _pade(x)

    def step(state: Any) -> Any:
        k, y = state
        return k + 1, where((k < count)[..., None, None], y @ y, y)

    _, y = while_loop(lambda s: s[0] < count.max(), step, (array(0.0), squared))
    return y.astype(result)


def _pade(x: Tracer) -> Tracer:
    """The quotient of polynomials of degree 13 that is nearest to the exponential at 0."""
    one = np.eye(x.shape[-1], dtype=x.dtype)
    x2 = x @ x
    x4 = x2 @ x2
    x6 = x4 @ x2

    def sums(first: int) -> Tracer:
        """The powers first, first + 2, ... of x, without a factor x if they are odd."""
        c = _PADE[first::2]
        upper = x6 * c[6] + x4 * c[5] + x2 * c[4]
        return x6 @ upper + x6 * c[3] + x4 * c[2] + x2 * c[1] + one * c[0]

    even, odd = sums(0), x @ sums(1)
    return solve(even - odd, even + odd)
