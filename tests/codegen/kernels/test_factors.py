"""Systems of equations, inverses and Cholesky factors by generated code: against what defines them.

The backward error of each is measured, in units of the dtype's precision: it does not depend on the
matrix's condition, as the difference from another solver's result does.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from native import avx2_target, has_avx2

import jitney as jt
from jitney.codegen.program.compile import compile_graph
from jitney.ir.record import replace
from jitney.runtime.executable import Executable

Array = np.ndarray[Any, Any]
L = np.linalg
SIZES = (1, 2, 7, 8, 9, 15, 16, 17, 24, 31, 33, 48, 65, 129)
EPSILON = float(np.finfo(np.float64).eps)

solve = jt.jit(lambda a, b: L.solve(a, b))
inv = jt.jit(lambda a: L.inv(a))
cholesky = jt.jit(lambda a: L.cholesky(a))
cholesky_upper = jt.jit(lambda a: L.cholesky(a, upper=True))


@jt.jit
def together(a: Any, h: Any, sides: list[Any]) -> Any:
    return [L.solve(a, b) for b in sides], L.inv(a), L.cholesky(h), L.cholesky(h, upper=True)


def numbers(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape)


def largest(x: Array) -> float:
    return float(np.abs(x).sum(axis=-1).max(initial=0))


def check_solution(a: Array, x: Array, b: Array) -> None:
    """The residual is that of a backward stable method with modest growth of its pivots."""
    n = a.shape[-1]
    residual = np.abs(a @ x - b).max(initial=0)
    scale = largest(a) * np.abs(x).max(initial=0) + np.abs(b).max(initial=0)
    assert residual <= 8 * n * EPSILON * scale


@pytest.mark.parametrize("n", SIZES)
def test_sizes(n: int) -> None:
    a = numbers(n, n)
    h = a @ a.T + np.eye(n)
    sides = [numbers(n, k, seed=1) for k in (1, 3, n)]
    solutions, inverse, lower, upper = together(a, h, sides)
    for x, b in zip([*solutions, inverse], [*sides, np.eye(n)], strict=True):
        check_solution(a, x, b)
    assert np.abs(lower @ lower.T - h).max() <= 8 * n * EPSILON * largest(h)
    assert np.abs(upper.T @ upper - h).max() <= 8 * n * EPSILON * largest(h)
    np.testing.assert_array_equal(lower, np.tril(lower))
    np.testing.assert_array_equal(upper, np.triu(upper))


@settings(max_examples=12, deadline=None)
@given(st.integers(1, 40), st.integers(0, 3), st.integers(0, 9), st.data())
def test_matrices_of_all_kinds(n: int, batch: int, seed: int, data: st.DataObject) -> None:
    """Graded, permuted, with ties among pivots, nearly singular; in any layout."""
    a = numbers(batch, n, n, seed=seed)
    kind = data.draw(st.sampled_from(("graded", "whole", "permuted", "close", "orthogonal")))
    match kind:
        case "graded":
            a = a * 10.0 ** np.linspace(0, -12, n)
        case "whole":
            a = np.round(a) + 2 * n * np.eye(n)[::-1]
        case "permuted":
            a = np.broadcast_to(np.eye(n)[np.random.default_rng(seed).permutation(n)], a.shape)
        case "close":
            a = np.ones((n, 1)) + 1e-9 * a
        case "orthogonal":
            a = L.qr(a)[0]
    a = data.draw(st.sampled_from((a, a[:, ::-1], a.swapaxes(1, 2), np.asfortranarray(a))))
    b = numbers(batch, n, 2, seed=seed + 1)
    x = solve(a, b)
    for item, found, right in zip(a, x, b, strict=True):
        check_solution(item, found, right)


def test_failures_are_told_apart() -> None:
    a = numbers(5, 20, 20)
    a[3, :, 7] = a[3, :, 2] = 0
    for f in (inv, lambda a: solve(a, np.ones((20, 1)))):
        with pytest.raises(L.LinAlgError, match="Singular matrix"):
            f(a)
    h = a @ a.swapaxes(1, 2) + np.eye(20)
    h[2, 19, 19] = -1
    for f in (cholesky, cholesky_upper):
        with pytest.raises(L.LinAlgError, match="not positive definite"):
            f(h)
        h[2, 19, 19] = np.nan
        with pytest.raises(L.LinAlgError, match="not positive definite"):
            f(h)
    assert np.isfinite(inv(np.eye(20))).all()  # the next call is not concerned


def test_what_is_no_number_stays_in_its_item() -> None:
    a = numbers(3, 12, 12)
    a[1, 4, 4] = np.nan
    x = inv(a)
    assert np.isnan(x[1]).any() and np.isfinite(x[[0, 2]]).all()
    a[1, 4, 4] = np.inf
    with np.errstate(all="ignore"):
        want = L.inv(a)
    np.testing.assert_allclose(np.nan_to_num(inv(a)), np.nan_to_num(want), atol=1e-11)


def test_results_do_not_depend_on_threads() -> None:
    a, b = numbers(300, 300), numbers(300, 70, seed=1)
    many = numbers(9, 40, 40)
    found = []
    for threads in (1, 2, 3):
        with jt.threads(threads):
            found.append((solve(a, b), inv(a), inv(many), cholesky(a @ a.T + np.eye(300))))
    for other in found[1:]:
        for x, y in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(x, y)


def test_matrices_are_written_where_they_are_factorised() -> None:
    """What computes a matrix is part of the copy, and what reads the result part of its last step."""
    f = jt.jit(lambda a: L.cholesky(a * 2 + 3 * np.eye(64)).sum())
    a = np.eye(64)
    np.testing.assert_allclose(f(a), 64 * np.sqrt(5))
    assert "cholesky" in str(f.explain(a))


def test_in_loops_and_branches() -> None:
    def iterate(a: Any, b: Any) -> Any:
        return jt.fori_loop(0, 4, lambda i, x: L.solve(a + i * np.eye(20), x) + b, b)

    a, b = numbers(20, 20) + 9 * np.eye(20), numbers(20, 1, seed=1)
    want = b
    for i in range(4):
        want = L.solve(a + i * np.eye(20), want) + b
    np.testing.assert_allclose(jt.jit(iterate)(a, b), want, rtol=1e-12)
    singular = jt.jit(lambda a, b: jt.cond(b[0, 0] > 9, lambda: L.solve(a * 0, b), lambda: b))
    np.testing.assert_array_equal(singular(a, b), b)


@pytest.mark.parametrize("n", SIZES)
def test_triangular_systems(n: int) -> None:
    a = numbers(n, n) / n + 2 * np.eye(n)
    junk = np.where(np.eye(n, dtype=bool), a, np.nan)  # the other triangle is not read
    halves = [np.triu(a), np.tril(a)]
    operands = [np.where(half == 0, junk, half) for half in halves]
    ways = list(itertools.product((False, True), (0, 1), (False, True)))

    def solutions(operands: list[Any], sides: list[Any]) -> list[Any]:
        return [
            jt.linalg.solve_triangular(
                operands[lower], b, lower=lower, trans=trans, unit_diagonal=unit
            )
            for b in sides
            for lower, trans, unit in ways
        ]

    sides = [numbers(n, k, seed=1) for k in (1, 5)]
    cases = itertools.product(sides, ways)
    for (b, (lower, trans, unit)), x in zip(cases, jt.jit(solutions)(operands, sides), strict=True):
        half = halves[lower]
        want = half - np.diag(np.diag(half)) + np.eye(n) if unit else half
        check_solution(want.T if trans else want, x, b)


@pytest.mark.parametrize(
    "shape", [(1, 1), (8, 8), (9, 20), (20, 9), (33, 33), (3, 17, 40), (64, 30)]
)
def test_lu_factors(shape: tuple[int, ...]) -> None:
    a = numbers(*shape)
    p, lower, upper = jt.jit(jt.linalg.lu)(a)
    np.testing.assert_allclose(p @ lower @ upper, a, atol=1e-13 * max(shape) ** 2)
    assert np.abs(lower).max() <= 1
    np.testing.assert_array_equal(upper, np.triu(upper))
    same = jt.jit(jt.linalg.lu, backend="interpreter")(a)
    for have, want in zip((p, lower, upper), same, strict=True):
        np.testing.assert_allclose(have, want, atol=1e-11)


@pytest.mark.parametrize("shape", [(5, 5), (4, 6), (6, 4), (2, 3, 3)])
def test_derivatives_of_factors(shape: tuple[int, ...]) -> None:
    a = numbers(*shape)
    jt.check_grads(lambda a: jt.linalg.lu(a)[1:], (a,), order=2)
    if shape[-1] == shape[-2]:
        b = numbers(*shape[:-1], 2, seed=1)
        for lower in (False, True):
            for unit in (False, True):
                jt.check_grads(
                    lambda a, b, o=(lower, unit): jt.linalg.solve_triangular(
                        a + 3 * np.eye(a.shape[-1]), b, lower=o[0], unit_diagonal=o[1]
                    ),
                    (a, b),
                    order=2,
                )


def test_zeros_on_the_diagonal() -> None:
    a = np.tril(numbers(12, 12))
    a[7, 7] = 0
    f = jt.jit(lambda a: jt.linalg.solve_triangular(a, np.ones(12), lower=True))
    with pytest.raises(L.LinAlgError, match="Singular"):
        f(a)
    one = jt.jit(
        lambda a: jt.linalg.solve_triangular(a, np.ones(12), lower=True, unit_diagonal=True)
    )
    assert np.isfinite(one(a)).all()


def test_mapped_over_examples() -> None:
    a, b = numbers(4, 6, 6) + 3 * np.eye(6), numbers(4, 6, seed=1)
    f = jt.jit(jt.vmap(lambda a, b: (jt.linalg.solve_triangular(a, b), jt.linalg.lu(a)[2])))
    x, upper = f(a, b)
    for i in range(4):
        np.testing.assert_allclose(x[i], jt.linalg.solve_triangular(a[i], b[i]), rtol=1e-12)
        np.testing.assert_allclose(upper[i], jt.linalg.lu(a[i])[2], atol=1e-12)


@pytest.mark.skipif(not has_avx2(), reason="no AVX2")
@pytest.mark.parametrize("bits", [256, 128])
def test_narrower_vectors(bits: int) -> None:
    target = avx2_target()
    if bits == 128:
        target = replace(target, features="+sse2", cpu="x86-64", vector_bits=128)
    a, b = numbers(45, 45), numbers(45, 3, seed=1)
    h = a @ a.T + np.eye(45)
    for f, arrays in ((solve, (a, b)), (solve, (a, b[:, :1])), (cholesky, (h,)), (inv, (a,))):
        module = compile_graph(f.lower(*arrays).graph, target)
        (got,) = Executable(module, target).run(list(arrays))
        np.testing.assert_allclose(got, f(*arrays), rtol=1e-9, atol=1e-10)
