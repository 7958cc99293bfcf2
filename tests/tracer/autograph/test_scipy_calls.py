"""SciPy's linear algebra and normal distribution, called with traced values under SciPy's names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.linalg
from scipy import linalg, special
from scipy.linalg import cholesky as factor
from scipy.spatial.distance import cdist
from scipy.stats import norm

import jitney as jt

A = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, -1.0], [0.5, -1.0, 5.0]])
TALL = np.array([[1.0, 2.0], [3.0, -1.0], [0.5, 0.25]])
B = np.array([1.0, -2.0, 0.5])


def factors(a: Any, tall: Any, b: Any) -> Any:
    return (
        factor(a),
        scipy.linalg.cholesky(a, lower=True, check_finite=False),
        *linalg.cho_factor(a),
        linalg.cho_solve(linalg.cho_factor(a, lower=True), b),
        *linalg.lu(tall),
        *linalg.lu(tall, permute_l=True),
        *linalg.lu(tall, p_indices=True),
        *linalg.lu_factor(a),
        linalg.lu_solve(linalg.lu_factor(a), b, trans=1),
        *linalg.qr(tall),
        *linalg.qr(tall, mode="economic"),
        *linalg.qr(tall, mode="r", overwrite_a=True),
        *linalg.svd(tall, full_matrices=False),
        linalg.svd(tall, compute_uv=False),
        linalg.svdvals(a),
    )


def solutions(a: Any, tall: Any, b: Any) -> Any:
    return (
        linalg.inv(a, overwrite_a=True),
        linalg.det(a),
        linalg.solve(a, b),
        linalg.solve(np.triu(a), b, assume_a="pos"),
        linalg.solve(np.tril(a), b, lower=True, assume_a="sym"),
        linalg.solve(a + np.tri(3), b, transposed=True),
        linalg.solve_triangular(a, b, lower=True),
        linalg.solve_triangular(a, tall, trans="T", unit_diagonal=True),
        linalg.pinv(tall),
        linalg.lstsq(tall, b)[0],
        linalg.norm(tall, "fro"),
        linalg.expm(a / 4),
        linalg.eigvalsh(a, lower=False),
        linalg.eigvals(a),
        linalg.block_diag(a, tall),
        linalg.toeplitz(b, b[::-1]),
        linalg.circulant(b),
        special.logsumexp(tall, axis=1),
        special.softmax(tall, axis=1),
        cdist(tall, tall[:2]),
        cdist(tall, tall[:2], metric="cityblock"),
    )


def normal(x: Any, loc: Any, scale: Any) -> Any:
    each = (norm.pdf, norm.logpdf, norm.cdf, norm.sf, norm.logcdf, norm.logsf, norm.ppf, norm.isf)
    return [g for f in each for g in (f(x), f(x, loc), f(x, loc=loc, scale=scale))]


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (factors, (A, TALL, B)),
        (solutions, (A, TALL, B)),
        (solutions, (A.astype(np.float32), TALL.astype(np.float32), B.astype(np.float32))),
        (normal, (0.3, 0.1, 2.0)),
        (normal, (np.array([0.3, 0.6, 0.0]), 0.1, 1.5)),
        (normal, (0.3, 0.1, -1.0)),
    ],
)
def test_they_give_what_scipy_gives(
    function: Callable[..., Any], arguments: tuple[Any, ...]
) -> None:
    expected, result = function(*arguments), jt.jit(function)(*arguments)
    tolerance = 1e-5 if getattr(arguments[0], "dtype", None) == np.float32 else 1e-12
    assert len(result) == len(expected)
    for got, want in zip(result, expected, strict=True):
        assert np.shape(got) == np.shape(want) and np.asarray(got).dtype == np.asarray(want).dtype
        np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


def test_what_scipy_raises_is_raised_at_the_call() -> None:
    f = jt.jit(lambda a: linalg.inv(a))
    with pytest.raises(ValueError, match="must not contain infs or NaNs"):
        f(np.full((2, 2), np.inf))
    with pytest.raises(np.linalg.LinAlgError):
        jt.jit(lambda a: factor(a))(-A)


def test_the_rest_says_how_to_have_python_call_it() -> None:
    for f in (lambda a: linalg.qr(a, pivoting=True), lambda a: linalg.schur(a)):
        with pytest.raises(jt.errors.TracerConversionError):
            jt.jit(f)(A)


def test_functions_that_draw_call_them_too() -> None:
    def f() -> Any:
        points = np.random.rand(4, 2)
        return cdist(points, points), linalg.norm(points)

    np.random.seed(3)
    expected = f()
    np.random.seed(3)
    for got, want in zip(jt.jit(f)(), expected, strict=True):
        np.testing.assert_allclose(got, want)
