"""Linear systems without their matrix, against the matrix's."""

from __future__ import annotations

import numpy as np
import pytest

import jitney as jt

N = 12
RNG = np.random.default_rng(0)
A = RNG.normal(size=(N, N)) + 8 * np.eye(N)
S = 4 * np.eye(N) - np.eye(N, k=1) - np.eye(N, k=-1)
B = RNG.normal(size=N)
CASES = {"cg": S, "bicgstab": A, "gmres": A}


@pytest.mark.parametrize("name", CASES)
def test_solutions_and_derivatives(name: str) -> None:
    matrix, solver = CASES[name], getattr(jt.solve, name)
    weight = np.arange(N)

    def solved(matrix, b):
        return solver(matrix, b, rtol=1e-12)[0] @ weight

    def everything(f):
        def of(matrix, b):
            along = (np.ones((N, N)), np.ones(N))
            grads, seconds = jt.jvp(jt.grad(f, argnums=(0, 1)), (matrix, b), along)
            rows = jt.vmap(lambda b: f(matrix, b))(np.stack([b, 2 * b, 0 * b]))
            return grads, seconds, jt.jvp(f, (matrix, b), along), rows

        return jt.jit(of)(matrix, B)

    def direct(matrix, b):
        return np.linalg.solve(matrix, b) @ weight

    for found, wanted in zip(*map(jt.tree.leaves, map(everything, (solved, direct))), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("name", CASES)
def test_as_scipy(name: str) -> None:
    linalg = pytest.importorskip("scipy.sparse.linalg")
    matrix, solver, theirs = CASES[name], getattr(jt.solve, name), getattr(linalg, name)
    for options in ({"rtol": 1e-9}, {"rtol": 1e-9, "x0": np.ones(N)}, {"maxiter": 1}):
        (x, info), (y, other) = solver(matrix, B, **options), theirs(matrix, B, **options)
        assert info == other
        np.testing.assert_allclose(x, y, rtol=1e-7 if not info else 1e-1, atol=1e-8)
    assert solver(matrix, 0 * B)[1] == 0
    near = np.diag(1 / np.diag(matrix))
    x, info = solver(lambda v: matrix @ v, B, M=near, rtol=1e-10)
    assert info == 0 and np.allclose(matrix @ x, B)
    x, info = solver(matrix.astype(np.float32), B.astype(np.float32))
    assert x.dtype == np.float32 and info == 0


def test_complex_systems_and_restarts() -> None:
    b = B + 1j * B[::-1]
    for solver in (jt.solve.gmres, jt.solve.bicgstab):
        x, info = solver(A + 1j * np.eye(N), b, rtol=1e-10)
        assert info == 0 and np.allclose(
            x + 1j * (A @ x) * 0, np.linalg.solve(A + 1j * np.eye(N), b)
        )
    x, info = jt.solve.gmres(A, B, rtol=1e-10, restart=3)
    assert info == 0 and np.allclose(A @ x, B)


def test_custom_root_and_linear_solve() -> None:
    def newton(f, x):
        return jt.fori_loop(0, 40, lambda i, x: x - f(x) / (3 * x * x), x)

    def cube_root(a):
        return jt.solve.custom_root(lambda x: x**3 - a, np.ones(2), newton) @ np.ones(2)

    a = np.array([2.0, 8.0])
    np.testing.assert_allclose(jt.jit(jt.grad(cube_root))(a), a ** (-2 / 3) / 3)
    np.testing.assert_allclose(
        jt.jit(jt.hessian(cube_root))(a), np.diag(-2 / 9 * a ** (-5 / 3)), atol=1e-12
    )

    def halved(d, b):
        solve = jt.solve.custom_linear_solve(
            lambda x: {"x": d * x["x"]}, b, lambda f, b: {"x": b["x"] / d}, symmetric=True
        )
        return np.sum(solve["x"])

    grads = jt.jit(jt.grad(halved, argnums=(0, 1)))(a, {"x": np.ones(2)})
    np.testing.assert_allclose(grads[0], -(a**-2.0))
    np.testing.assert_allclose(grads[1]["x"], 1 / a)
