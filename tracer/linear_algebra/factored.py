"""What SciPy, JAX and TensorFlow users call linear algebra: factors kept for later systems, bands of
matrices, the polar decomposition."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...ir.types import F64, I64, real_dtype
from ..arrays import ufuncs
from ..arrays.common import array, build
from ..arrays.creation import arange, filled
from ..arrays.elementwise import where
from ..arrays.movement import broadcast_to, concatenate, matrix_transpose, moveaxis, reshape, stack
from ..arrays.reductions import absolute_square, sum_
from ..arrays.table import function
from ..control.control import fori_loop
from ..control.scans import scan
from ..core.tracers import Tracer
from ..data import opened
from ..functions.diagonals import diagonal
from ..functions.selection import take_along_axis
from .linalg import COMPUTED, cholesky, computed, made, matrix_operand, result_type
from .matrix_functions import eliminated, solve_triangular


def _adjoint(x: Tracer) -> Tracer:
    return matrix_transpose(ufuncs.apply(np.conjugate, x))


# Factors for later


@function("linalg.cho_factor", composed=True)
def cho_factor(a: Any, lower: bool = False) -> Any:
    """The Cholesky factor of a Hermitian matrix, and whether it is the lower one: for `cho_solve`.

    a: (..., M, M), of which one triangle is read. Gives (c, lower); unlike SciPy's, the other triangle
    of c holds zeros. Raises numpy.linalg.LinAlgError if a matrix is not positive definite.

        >>> c, low = jt.linalg.cho_factor(np.array([[4.0, 2.0], [2.0, 2.0]]), lower=True)
        >>> jt.linalg.cho_solve((c, low), np.array([4.0, 2.0]))
        array([1., 0.])
    """
    return cholesky(a, upper=not lower), lower


@function("linalg.cho_solve", composed=True)
def cho_solve(c_and_lower: Any, b: Any) -> Tracer:
    """Solve `a @ x = b` by the factor that `cho_factor` gave. b: (M,) or (..., M, K).

    >>> jt.linalg.cho_solve((np.eye(2) * 2, True), np.array([4.0, 8.0]))
    array([1., 2.])
    """
    factor, lower = c_and_lower
    lower = bool(lower)
    first = solve_triangular(factor, b, lower=lower, trans=0 if lower else 2)
    return solve_triangular(factor, first, lower=lower, trans=2 if lower else 0)


@function("linalg.lu_factor", composed=True)
def lu_factor(a: Any) -> Any:
    """Gaussian elimination with row pivoting: L and U in one matrix, and the exchanges of rows.

    a: (..., M, N). Gives (lu, piv): L, whose diagonal of ones is not stored, below the diagonal of lu,
    U above; step k exchanged the rows k and piv[..., k]. Differentiable in lu.

        >>> lu, piv = jt.linalg.lu_factor(np.array([[0.0, 2.0], [4.0, 4.0]]))
        >>> jt.linalg.lu_solve((lu, piv), np.array([2.0, 8.0]))
        array([1., 1.])
    """
    packed, order = eliminated(a)
    m, short = packed.shape[-2], min(packed.shape[-2:])
    lead = packed.shape[:-2]
    order = reshape(order, (-1, m))
    lanes = arange(order.shape[0], dtype=I64)
    rows = broadcast_to(arange(m, dtype=I64), order.shape)

    def exchange(k: Any, state: Any) -> Any:
        """`now` has the row at each place, `place` where each row is."""
        now, place, chosen = state
        wanted, moved = order[:, k], now[:, k]
        other = place[lanes, wanted]
        chosen[:, k] = other
        now[lanes, other], place[lanes, moved] = moved, other
        return now, place, chosen

    start = (rows, rows, filled((lanes.shape[0], short), 0, I64))
    return packed, reshape(fori_loop(0, short, exchange, start)[2], (*lead, short))


@function("linalg.lu_solve", composed=True)
def lu_solve(lu_and_piv: Any, b: Any, trans: int = 0) -> Tracer:
    """Solve `a @ x = b` by what `lu_factor` gave; a's transpose for trans=1, its conjugate for 2.

    >>> jt.linalg.lu_solve((np.array([[2.0, 0.0], [0.5, 1.0]]), np.array([0, 1])), np.array([2.0, 2.0]))
    array([1., 1.])
    """
    packed, chosen = matrix_operand("lu_solve", lu_and_piv[0]), array(lu_and_piv[1])
    right = array(b)
    vector = right.ndim == 1
    if vector:
        right = right[:, None]
    n = packed.shape[-1]
    rows = arange(n, dtype=I64)
    exchanges = reshape(chosen, (-1, n))
    lanes = arange(exchanges.shape[0], dtype=I64)

    def exchange(k: Any, order: Any) -> Any:
        other = exchanges[:, k]
        here, there = order[:, k], order[lanes, other]
        order[lanes, other] = here  # a view, which is read before it changes
        order[:, k] = there
        return order

    order = fori_loop(0, n, exchange, broadcast_to(rows, exchanges.shape))
    order = reshape(order, chosen.shape)
    lead = np.broadcast_shapes(packed.shape[:-2], right.shape[:-2])
    right = broadcast_to(right, (*lead, *right.shape[-2:]))
    order = broadcast_to(order, (*lead, n))[..., None]
    if trans:
        x = solve_triangular(packed, right, trans=trans)
        x = solve_triangular(packed, x, lower=True, unit_diagonal=True, trans=trans)
        back = (order == rows).astype(I64).argmax(axis=-2)  # where each row came from
        x = take_along_axis(x, back[..., None], axis=-2)
    else:
        right = take_along_axis(right, order, axis=-2)
        x = solve_triangular(packed, right, lower=True, unit_diagonal=True)
        x = solve_triangular(packed, x)
    return x[..., 0] if vector else x


@function("linalg.tridiagonal_solve", composed=True)
def tridiagonal_solve(dl: Any, d: Any, du: Any, b: Any) -> Tracer:
    """Solve systems of three diagonals, with row pivoting, in time proportional to their size.

    dl, d, du: (..., M), the diagonals below, on and above; dl[..., 0] and du[..., -1] are not read.
    b: (M,) or (..., M, K). Gives x of b's shape; where a matrix is singular, infinities or NaN.

        >>> one = np.ones(3)
        >>> jt.linalg.tridiagonal_solve(one, 4 * one, one, np.array([5.0, 6.0, 5.0]))
        array([1., 1., 1.])
    """
    lower, middle, upper, right = (array(x) for x in (dl, d, du, b))
    vector = right.ndim == 1
    if vector:
        right = right[:, None]
    n = middle.shape[-1]
    if right.shape[-2] != n or lower.shape != middle.shape or upper.shape != middle.shape:
        raise ValueError(
            f"tridiagonal_solve: diagonals of shape {lower.shape}, {middle.shape}, {upper.shape} and a "
            f"right-hand side of shape {array(b).shape}; each diagonal has as many elements as rows"
        )
    result = result_type(lower, middle, upper, right)
    if n == 0:
        return array(b).astype(result)
    dtype = COMPUTED[result]
    lead = np.broadcast_shapes(middle.shape[:-1], right.shape[:-2])
    inner = arange(n, dtype=I64)

    def by_row(x: Tracer) -> Tracer:
        return moveaxis(broadcast_to(x.astype(dtype), (*lead, n)), -1, 0)

    lower = by_row(where(inner == 0, 0, lower))
    middle, upper = by_row(middle), by_row(where(inner == n - 1, 0, upper))
    columns = right.shape[-1]
    right = moveaxis(broadcast_to(right.astype(dtype), (*lead, n, columns)), -2, 0)
    nothing = filled(lead, 0, dtype)

    def eliminate(held: Any, row: Any) -> Any:
        """The row that is held has elements at this row's place before, here and after it."""
        p, q, r, left = held
        first, second, third, new = row
        larger = abs(first) > abs(p)
        p, first = where(larger, first, p), where(larger, p, first)
        q, second = where(larger, second, q), where(larger, q, second)
        r, third = where(larger, third, r), where(larger, r, third)
        wide = larger[..., None]
        left, new = where(wide, new, left), where(wide, left, new)
        factor = first / p
        rest = (second - factor * q, third - factor * r, nothing, new - factor[..., None] * left)
        return rest, (p, q, r, left)

    start = (middle[0], upper[0], nothing, right[0])
    last, passed = scan(eliminate, start, (lower[1:], middle[1:], upper[1:], right[1:]))

    def substitute(following: Any, row: Any) -> Any:
        after, beyond = following
        p, q, r, left = row
        x = (left - q[..., None] * after - r[..., None] * beyond) / p[..., None]
        return (x, after), x

    none = filled((*lead, columns), 0, dtype)
    end = last[3] / last[0][..., None]
    _, solution = scan(substitute, (end, none), passed, reverse=True)
    x = moveaxis(concatenate([solution, end[None]], 0), 0, -2).astype(result)
    return x[..., 0] if vector else x


# Other decompositions


@function("linalg.polar", composed=True)
def polar(a: Any, side: str = "right") -> Any:
    """Factors with `a == u @ p` (side "right") or `a == p @ u` ("left"), p Hermitian and not negative.

    a: (..., M, N). Gives (u, p); the columns of u are orthonormal, or its rows where there are fewer.
    Differentiable where all singular values are positive, equal ones included.

        >>> u, p = jt.linalg.polar(np.array([[0.0, -2.0], [3.0, 0.0]]))
        >>> p
        array([[3., 0.],
               [0., 2.]])
    """
    if side not in ("left", "right"):
        raise ValueError(f"side={side!r} is neither 'left' nor 'right'")
    matrix = matrix_operand("polar", a, square=False)
    result = result_type(matrix)
    m, n = matrix.shape[-2:]
    tall = matrix if m >= n else _adjoint(matrix)
    u = made(build().polar(computed(tall, result), mode="check"), result)
    u = u if m >= n else _adjoint(u)
    p = _adjoint(u) @ matrix if side == "right" else matrix @ _adjoint(u)
    return u, ((p + _adjoint(p)) / 2).astype(result)


@function("linalg.logdet", composed=True)
def logdet(a: Any) -> Tracer:
    """The logarithm of the determinant of Hermitian positive definite matrices, by Cholesky factors.

    >>> jt.linalg.logdet(np.eye(3))
    np.float64(0.0)
    """
    factor = cholesky(a)
    logs = ufuncs.apply(np.log, diagonal(factor, axis1=-2, axis2=-1).real)
    return sum_(logs, axis=-1) * real_dtype(factor.dtype).type(2)


# Parts of matrices


@function("linalg.adjoint", composed=True)
def adjoint(a: Any) -> Tracer:
    """The conjugate transpose of the last two axes.

    >>> jt.linalg.adjoint(np.array([[1j, 2.0]]))
    array([[0.-1.j],
           [2.-0.j]])
    """
    return _adjoint(array(a))


@function("linalg.band_part", composed=True)
def band_part(a: Any, num_lower: int, num_upper: int) -> Tracer:
    """Matrices with zeros outside of a band; a negative number stands for all diagonals of that side.

    >>> jt.linalg.band_part(np.ones((3, 3)), 0, 1)
    array([[1., 1., 0.],
           [0., 1., 1.],
           [0., 0., 1.]])
    """
    x = matrix_operand("band_part", a, square=False)
    diagonal = np.arange(x.shape[-1]) - np.arange(x.shape[-2])[:, None]
    in_band = np.ones(diagonal.shape, bool)
    if num_lower >= 0:
        in_band &= diagonal >= -num_lower
    if num_upper >= 0:
        in_band &= diagonal <= num_upper
    return where(in_band, x, x.dtype.type(0))


@function("linalg.diag_part", composed=True)
def diag_part(a: Any) -> Tracer:
    """The diagonals of matrices, as vectors.

    >>> jt.linalg.diag_part(np.arange(4.0).reshape(2, 2))
    array([0., 3.])
    """
    return diagonal(matrix_operand("diag_part", a, square=False), axis1=-2, axis2=-1).copy()


@function("linalg.set_diag", composed=True)
def set_diag(a: Any, diagonal: Any) -> Tracer:
    """Matrices with other diagonals. a: (..., M, N); diagonal: (..., min(M, N)).

    >>> jt.linalg.set_diag(np.zeros((2, 2)), np.array([1.0, 2.0]))
    array([[1., 0.],
           [0., 2.]])
    """
    x, new = matrix_operand("set_diag", a, square=False), array(diagonal)
    m, n = x.shape[-2:]
    if new.ndim == 0 or new.shape[-1] != min(m, n):
        raise ValueError(f"set_diag: a diagonal of shape {new.shape} for matrices of {m} x {n}")
    spread = new[..., None] if m <= n else new[..., None, :]
    return where(np.eye(m, n, dtype=bool), spread.astype(x.dtype), x)


@function("linalg.block_diag", composed=True)
def block_diag(*arrays: Any) -> Tracer:
    """One matrix with the given ones along its diagonal; vectors are rows, numbers are 1 x 1.

    >>> jt.linalg.block_diag(np.ones((1, 2)), 3.0)
    array([[1., 1., 0.],
           [0., 0., 3.]])
    """
    parts = [array(x) for x in arrays] or [filled((1, 0), 0, F64)]
    if any(p.ndim > 2 for p in parts):
        raise ValueError("block_diag takes matrices, vectors and numbers")
    parts = [p if p.ndim == 2 else p.reshape(1, -1) for p in parts]
    dtype = np.result_type(*(p.dtype for p in parts))
    columns = [p.shape[1] for p in parts]
    rows = []
    for k, part in enumerate(parts):
        before, after = (
            filled((part.shape[0], sum(widths)), 0, dtype)
            for widths in (columns[:k], columns[k + 1 :])
        )
        rows.append(concatenate([before, part.astype(dtype), after], 1))
    return concatenate(rows, 0)


@function("linalg.toeplitz", composed=True)
def toeplitz(c: Any, r: Any = None) -> Tracer:
    """The matrix whose diagonals are constant, with first column c and first row r (conj(c) if None).

    >>> jt.linalg.toeplitz(np.array([1, 2, 3]))
    array([[1, 2, 3],
           [2, 1, 2],
           [3, 2, 1]])
    """
    column = array(c).reshape(-1)
    row = ufuncs.apply(np.conjugate, column) if r is None else array(r).reshape(-1)
    m, n = column.shape[0], row.shape[0]
    values = concatenate([column[::-1], row[1:]]) if m else row[:0]
    diagonals = np.arange(n) - np.arange(m)[:, None] + m - 1
    return values[diagonals]


# TensorFlow's spellings


@function("linalg.triangular_solve", composed=True)
def triangular_solve(matrix: Any, rhs: Any, lower: bool = True, adjoint: bool = False) -> Tracer:
    """`solve_triangular` as TensorFlow spells it.

    >>> jt.linalg.triangular_solve(np.array([[2.0, 0.0], [1.0, 1.0]]), np.array([[2.0], [3.0]]))
    array([[1.],
           [2.]])
    """
    return solve_triangular(matrix, rhs, lower=lower, trans=2 if adjoint else 0)


@function("linalg.global_norm", composed=True)
def global_norm(arrays: Any) -> Tracer:
    """The Euclidean norm of all elements of all arrays of a list, or of any other tree.

    >>> jt.linalg.global_norm({"a": np.array([3.0]), "b": np.array([[4.0]])})
    np.float64(5.0)
    """
    sums = [sum_(absolute_square(array(x))) for x in opened.leaves(arrays)]
    total = sum_(stack(sums)) if sums else array(0.0)
    return ufuncs.apply(np.sqrt, total)
