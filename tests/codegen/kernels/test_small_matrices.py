"""Matrices of up to 4 x 4, which are written out element by element: values, edges, failures."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matrices import REAL_AND_COMPLEX, numbers

import jitney as jt

L = np.linalg
Array = np.ndarray[Any, Any]


def definite(a: Array) -> Array:
    return a @ np.swapaxes(a.conj(), -1, -2) + 0.5 * np.eye(a.shape[-1])


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "inv": lambda a: L.inv(a),
    "det": lambda a: L.det(a),
    "slogdet": lambda a: tuple(L.slogdet(a)),
    "solve": lambda a: L.solve(a, a[..., :2] + 1),
    "cholesky": lambda a: L.cholesky(definite(a)),
    "upper": lambda a: L.cholesky(definite(a), upper=True),
}


@settings(max_examples=12, deadline=None)
@given(st.data())
def test_as_numpy(data: st.DataObject) -> None:
    """Integers of few sizes make zeros, ties and singular matrices, scales of rows bad conditions."""
    n = data.draw(st.integers(1, 4))
    shape = (*data.draw(st.sampled_from([(), (3,), (2, 1), (19,)])), n, n)
    seed = data.draw(st.integers(0, 2**32 - 1))
    dtype = data.draw(st.sampled_from([*REAL_AND_COMPLEX, np.float32]))
    a = numbers(shape, dtype, seed)
    if data.draw(st.booleans()):
        a = np.round(2 * a) / 2
    a = a * 10.0 ** np.random.default_rng(seed).integers(-9, 9, (*shape[:-1], 1))
    a = a.astype(dtype)
    if data.draw(st.booleans()):
        a = np.asfortranarray(a)
    name = data.draw(st.sampled_from(["inv", "det", "slogdet", "solve"]))
    f = FUNCTIONS[name]
    try:
        expected = f(a)
    except L.LinAlgError:
        return  # where a pivot is rounded to zero, others may not be
    try:
        got = jt.jit(f)(a)
    except L.LinAlgError:
        assert (L.cond(a.astype(np.complex128)) > 1e6).any()
        return
    scale = np.maximum(L.cond(a.astype(np.complex128)), 1)
    if not (scale < 1e12).all():
        return
    tol = 1e-13 if dtype != np.float32 else 1e-6
    pairs = zip(expected, got, strict=True) if isinstance(expected, tuple) else [(expected, got)]
    for want, have in pairs:
        assert want.dtype == have.dtype and want.shape == have.shape
        lead = scale.reshape(scale.shape + (1,) * (want.ndim - scale.ndim))
        size = abs(want)
        if want.ndim > scale.ndim:
            size = size.max(axis=(-2, -1), keepdims=True, initial=0)
        assert (abs(want - have) <= tol * lead * np.maximum(size, 1e-300)).all()


@pytest.mark.parametrize("dtype", REAL_AND_COMPLEX)
@pytest.mark.parametrize("name", ["cholesky", "upper"])
@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_cholesky(n: int, name: str, dtype: Any) -> None:
    a = numbers((5, n, n), dtype, n)
    np.testing.assert_allclose(jt.jit(FUNCTIONS[name])(a), FUNCTIONS[name](a), atol=1e-12)
    junk = definite(a) + np.where(np.tri(n, k=-1), 0, 1) * (1 - np.eye(n)) * 7  # the upper triangle
    np.testing.assert_allclose(
        jt.jit(lambda h: L.cholesky(h))(junk), L.cholesky(definite(a)), atol=1e-12
    )


def test_numbers_far_from_one() -> None:
    """Products of pivots neither overflow nor vanish on the way."""
    det = jt.jit(lambda a: L.det(a))
    for pivots in (
        (1e200, 1e200, 1e-200, 1e-200),
        (1e-300, 1e200, 1e200, 1e200),
        (1e300, 1e-200, 1e-200, 1e-200),
        (1e200, 1e-200, 1e200),
        (1e160, 1e160),
        (5e-324, 1e300, 1e10),
    ):
        for order in (pivots, pivots[::-1]):
            want = L.slogdet(np.diag(order))[1]
            with np.errstate(over="ignore"):
                np.testing.assert_allclose(det(np.diag(order)), np.exp(want), rtol=1e-12)
    ones = np.full((2, 2), 1e200)
    assert det(ones) == 0
    assert det(np.array([[1.0, 2], [3, 4]])) == pytest.approx(-2, rel=1e-15)


def test_nan_and_infinities_are_no_failures() -> None:
    for n in (2, 3, 4):
        bad = np.eye(n)
        bad[-1, 0] = np.nan
        for name in ("inv", "solve", "det"):
            assert np.isnan(jt.jit(FUNCTIONS[name])(bad)).any()
        nan = np.full((n, n), np.nan)
        np.testing.assert_array_equal(jt.jit(lambda a: L.cholesky(a))(nan), L.cholesky(nan))


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_failures(n: int) -> None:
    zero = np.zeros((n, n))
    stack = np.stack([np.eye(n)] * 40 + [zero])

    def one_by_one(a: Any) -> Any:
        return jt.scan(lambda total, x: (total, L.inv(x)), 0, a)[1]

    for f, x, text in (
        (lambda a: L.inv(a), zero, "Singular matrix"),
        (lambda a: L.inv(a) + 1, stack, "Singular matrix"),
        (lambda a: L.solve(a, a + 1j), stack, "Singular matrix"),
        (lambda a: L.cholesky(a), -np.eye(n), "Matrix is not positive definite"),
        (one_by_one, stack, "Singular matrix"),
        (jt.vmap(lambda a: L.inv(a)), stack, "Singular matrix"),
        (jt.grad(lambda a: L.inv(a).sum()), zero, "Singular matrix"),
    ):
        with pytest.raises(L.LinAlgError, match=text) as caught:
            jt.jit(f)(x)
        assert "test_small_matrices.py" in caught.value.__notes__[0]
    assert jt.jit(lambda a: L.det(a))(stack)[-1] == 0
    sign, log = jt.jit(lambda a: tuple(L.slogdet(a)))(zero)
    assert (sign, log) == (0, -np.inf)
    loop = jt.jit(lambda a, k: jt.fori_loop(0, k, lambda i, x: x + L.inv(a), a))
    np.testing.assert_array_equal(loop(zero, 0), zero)  # no trip, no failure
    pick = jt.jit(jt.vmap(lambda a: jt.cond(a[0, 0] > 0, lambda a: L.inv(a), lambda a: a, a)))
    np.testing.assert_array_equal(pick(stack), stack)


def test_no_call_of_a_library() -> None:
    """A loop that carries small matrices is scalar code, and a batch is one kernel."""

    def riccati(p: Any) -> Any:
        eye = np.eye(2)
        return jt.fori_loop(0, 50, lambda i, p: L.inv(eye + L.inv(p)) + 0.1 * eye, p)

    p = np.eye(2)
    f = jt.jit(riccati)
    got, expected = f(p), p
    for _ in range(50):
        expected = L.inv(np.eye(2) + L.inv(expected)) + 0.1 * np.eye(2)
    np.testing.assert_allclose(got, expected, rtol=1e-12)
    assert "umath" not in str(f.explain(p))
    inv = jt.jit(lambda a: L.inv(a))
    stack = numbers((100, 4, 4))
    inv(stack)
    assert "umath" not in str(inv.explain(stack))


def test_elements_are_read_once_and_written_where_they_belong() -> None:
    inv = jt.jit(lambda a: L.inv(a))
    stack = numbers((1000, 3, 3))
    np.testing.assert_allclose(inv(stack), L.inv(stack))
    lowered = inv.lower(stack)
    assert len(lowered.kernels) == 1
    reads = re.findall(r"= (?:load|call) <\d+ x double>.*(?:load|gather)", lowered.llvm())
    assert len(reads) == 9


def test_results_do_not_depend_on_threads() -> None:
    stack = numbers((20011, 4, 4))
    f = jt.jit(lambda a: (L.inv(a), L.det(a)))
    with jt.threads(1):
        alone = f(stack)
    with jt.threads(3):
        together = f(stack)
    for x, y in zip(alone, together, strict=True):
        np.testing.assert_array_equal(x, y)
    np.testing.assert_array_equal(alone[0][:7], f(stack[:7])[0])


@pytest.mark.usefixtures("gpu")
def test_on_a_gpu() -> None:
    """Kernels of the device, not calls of the host; failures are reported from there, too."""
    a = numbers((9, 3, 3))
    f = jt.jit(lambda a: (L.inv(a), L.det(a)), device="cuda")
    for have, want in zip(f(a), (L.inv(a), L.det(a)), strict=True):
        np.testing.assert_allclose(np.asarray(have), want, rtol=1e-10)
    with pytest.raises(L.LinAlgError, match="Singular matrix"):
        np.asarray(f(np.zeros((4, 3, 3)))[0])
