"""Linear algebra that SciPy, JAX and TensorFlow have and NumPy has not, against SciPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.linalg
from matrices import REAL_AND_COMPLEX, check_gradients, numbers

import jitney as jt

L = jt.linalg
Array = np.ndarray[Any, Any]


def both(f: Callable[..., Any], *args: Any) -> list[Any]:
    """What `f` gives eagerly and compiled."""
    return [f(*args), jt.jit(f)(*args)]


def definite(shape: tuple[int, ...], dtype: Any) -> Array:
    x = numbers(shape, dtype)
    return x @ np.swapaxes(x.conj(), -1, -2) + np.eye(shape[-1])


@pytest.mark.parametrize("dtype", REAL_AND_COMPLEX)
@pytest.mark.parametrize("lower", [False, True])
def test_cholesky_factors(lower: bool, dtype: Any) -> None:
    for shape, right in (((3, 3), (3,)), ((6, 6), (6, 2)), ((2, 5, 5), (5, 1))):
        a, b = definite(shape, dtype), numbers(right, dtype, 1)
        for x in both(lambda a, b: L.cho_solve(L.cho_factor(a, lower), b), a, b):
            np.testing.assert_allclose(np.matmul(a, x), np.broadcast_to(b, x.shape), atol=1e-10)
    a = definite((4, 4), dtype)
    mask = np.tri(4, dtype=bool) if lower else np.tri(4, dtype=bool).T
    for c, flag in both(lambda a: L.cho_factor(a, lower), a):
        np.testing.assert_allclose(c[mask], scipy.linalg.cho_factor(a, lower)[0][mask])
        assert bool(flag) is lower
    for found in both(L.logdet, np.stack([a, 2 * a])):
        np.testing.assert_allclose(found, np.linalg.slogdet(np.stack([a, 2 * a]))[1])
    check_gradients(lambda a, b: L.cho_solve(L.cho_factor(a, lower), b), a, numbers((4,), dtype))


@pytest.mark.parametrize("dtype", REAL_AND_COMPLEX)
def test_factors_of_elimination(dtype: Any) -> None:
    for shape in ((1, 1), (6, 6)):
        a, b = numbers(shape, dtype), numbers((shape[0], 2), dtype, 1)
        want, exchanged = scipy.linalg.lu_factor(a)
        for lu, piv in both(L.lu_factor, a):
            np.testing.assert_allclose(lu, want, atol=1e-10)
            np.testing.assert_array_equal(piv, exchanged)

        def solved(a: Any, b: Any) -> Any:
            factors = L.lu_factor(a)
            return *(L.lu_solve(factors, b, t) for t in (0, 1, 2)), L.lu_solve(factors, b[:, 0], 2)

        for *of_two, of_one in both(solved, a, b):
            for trans, x in enumerate(of_two):
                wanted = scipy.linalg.lu_solve((want, exchanged), b, trans)
                np.testing.assert_allclose(x, wanted, atol=1e-9, err_msg=f"{trans=}")
            wanted = scipy.linalg.lu_solve((want, exchanged), b[:, 0], 2)
            np.testing.assert_allclose(of_one, wanted, atol=1e-9)
    stack, b = numbers((3, 4, 4), dtype), numbers((4, 2), dtype, 1)
    for x in both(lambda a, b: L.lu_solve(L.lu_factor(a), b), stack, b):
        np.testing.assert_allclose(stack @ x, np.broadcast_to(b, x.shape), atol=1e-10)
    if dtype is np.float64:
        check_gradients(lambda a, b: L.lu_solve(L.lu_factor(a), b), stack[0], b)


@pytest.mark.parametrize("dtype", REAL_AND_COMPLEX)
def test_tridiagonal_systems(dtype: Any) -> None:
    for n in (1, 2, 3, 9):
        shapes = [((n,), (n,)), ((2, n), (n, 3)), ((n,), (n, 2)), ((2, n), (2, n, 1))]
        for shape, right in shapes if n in (1, 9) else shapes[:2]:
            dl, d, du = (numbers(shape, dtype, k) for k in range(3))
            b = numbers(right, dtype, 3)
            if n == 9:
                d[..., ::3] = 0  # rows have to be exchanged
            eye = np.eye(n)
            whole = d[..., None] * eye
            whole = whole + np.roll(eye, -1, 0) * 0
            whole = whole + dl[..., None] * np.eye(n, k=-1) + du[..., None] * np.eye(n, k=1)
            for x in both(L.tridiagonal_solve, dl, d, du, b):
                got = whole @ (x[..., None] if len(right) == 1 else x)
                want = b[:, None] if len(right) == 1 else b
                np.testing.assert_allclose(got, np.broadcast_to(want, got.shape), atol=1e-8)
    dl, d, du = (numbers((5,), dtype, k) for k in range(3))
    check_gradients(L.tridiagonal_solve, dl, d + 3, du, numbers((5,), dtype, 3))
    with pytest.raises(ValueError, match="as many elements as rows"):
        L.tridiagonal_solve(dl[1:], d, du, d)


@pytest.mark.parametrize("dtype", REAL_AND_COMPLEX)
@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 4), (2, 3, 3)])
def test_polar(shape: tuple[int, ...], dtype: Any) -> None:
    a = numbers(shape, dtype)
    for side in ("right", "left"):
        for u, p in both(lambda a, s=side: L.polar(a, s), a):
            np.testing.assert_allclose(u @ p if side == "right" else p @ u, a, atol=1e-12)
            if a.ndim == 2:
                for have, want in zip((u, p), scipy.linalg.polar(a, side), strict=True):
                    np.testing.assert_allclose(have, want, atol=1e-12)
    check_gradients(lambda a: L.polar(a), a)
    with pytest.raises(ValueError, match="side"):
        L.polar(a, "up")


def test_parts_of_matrices() -> None:
    a = numbers((2, 3, 4), np.complex128)
    for low, high in ((0, 0), (1, -1), (-1, 0), (-1, -1), (2, 1)):
        below = 3 if low < 0 else low
        above = 4 if high < 0 else high
        for found in both(lambda a, p=(low, high): L.band_part(a, *p), a):
            np.testing.assert_array_equal(found, np.triu(np.tril(a, above), -below))
    for found in both(L.adjoint, a):
        np.testing.assert_array_equal(found, a.conj().swapaxes(1, 2))
    for x in (a, a.swapaxes(1, 2)):
        for found in both(L.diag_part, x):
            np.testing.assert_array_equal(found, np.diagonal(x, axis1=1, axis2=2))
        for found in both(lambda x, d: L.set_diag(x, d), x, numbers((2, 3))):
            np.testing.assert_array_equal(np.diagonal(found, axis1=1, axis2=2), numbers((2, 3)))
            np.testing.assert_array_equal(np.triu(found, 1), np.triu(x, 1))
    parts = (numbers((2, 3)), numbers((2,)), np.float64(4), np.zeros((0, 2)))
    for found in both(L.block_diag, *parts):
        np.testing.assert_array_equal(found, scipy.linalg.block_diag(*parts))
    c, r = numbers((4,), np.complex128), numbers((3,))
    for found in both(L.toeplitz, c):
        np.testing.assert_array_equal(found, scipy.linalg.toeplitz(c))
    for found in both(L.toeplitz, c, r):
        np.testing.assert_array_equal(found, scipy.linalg.toeplitz(c, r))
    for found in both(lambda x, y: L.global_norm([x, y]), a, r):
        np.testing.assert_allclose(found, np.sqrt((abs(a) ** 2).sum() + (r**2).sum()))
    tree = {"a": a, "b": (r, [r])}
    for found in both(lambda x, y: L.global_norm({"a": x, "b": (y, [y])}), a, r):
        np.testing.assert_allclose(found, L.global_norm(tree))
    np.testing.assert_allclose(L.global_norm(tree), L.global_norm([a, r, r]))
    assert L.global_norm([]) == 0
    for f in (lambda x: L.band_part(x, 1, 0), lambda x: L.set_diag(x, x[0, :3]), L.toeplitz):
        check_gradients(f, numbers((3, 3)) if f is not L.toeplitz else r)


def test_tensorflows_triangular_solve() -> None:
    a, b = numbers((3, 3), np.complex128) + 3 * np.eye(3), numbers((3, 2))
    for adjoint in (False, True):
        want = scipy.linalg.solve_triangular(a, b, lower=True, trans=2 if adjoint else 0)
        for found in both(lambda a, b, h=adjoint: L.triangular_solve(a, b, adjoint=h), a, b):
            np.testing.assert_allclose(found, want, atol=1e-12)
