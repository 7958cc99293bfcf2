"""SciPy's linear algebra and normal distribution, called with traced values under SciPy's names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.linalg
from scipy import fft, fftpack, integrate, linalg, ndimage, signal, special, stats
from scipy.linalg import cholesky as factor
from scipy.spatial import distance
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
        linalg.eig(a)[0],
        np.abs(linalg.eigh(a)[1]),
        linalg.eigh(a, eigvals_only=True),
        linalg.block_diag(a, tall),
        linalg.toeplitz(b, b[::-1]),
        linalg.circulant(b),
        special.logsumexp(tall, axis=1),
        special.softmax(tall, axis=1),
        cdist(tall, tall[:2]),
        cdist(tall, tall[:2], metric="cityblock"),
        fftpack.ifft(fftpack.fft(b, 8)),
        fftpack.fftn(tall, shape=(4, 4)),
    )


def apart(u: Any, v: Any, rows: Any) -> Any:
    names = "euclidean sqeuclidean cityblock chebyshev cosine minkowski".split()
    pairs = distance.pdist(rows, "cityblock")
    return (
        *(getattr(distance, name)(u, v) for name in names),
        distance.minkowski(u, v, 3),
        *(pairs, distance.squareform(pairs), distance.squareform(rows.T @ rows, checks=False)),
        *(
            linalg.norm(u),
            linalg.norm(u, 1),
            linalg.norm(u[:, None]),
            linalg.norm(u, keepdims=True),
        ),
    )


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64])
def test_distances_are_of_scipys_types(dtype: Any) -> None:
    arguments = [np.array(x).astype(dtype) for x in ([0, 3, -1], [2, 5, 1], TALL * 4)]
    for wanted, found in zip(apart(*arguments), jt.jit(apart)(*arguments), strict=True):
        assert type(found) is type(wanted)
        assert np.asarray(found).dtype == np.asarray(wanted).dtype
        np.testing.assert_allclose(found, wanted, rtol=1e-6)


@pytest.mark.parametrize("cov", [[[1.0, 1.0], [1.0, 1.0]], [[2.0, 1.0], [1.0, 2.0]]])
def test_normal_distribution_of_a_singular_covariance(cov: Any) -> None:
    def densities(x: Any, cov: Any) -> Any:
        normal = stats.multivariate_normal
        return normal.logpdf(x, None, cov, True), normal.pdf(x[0], cov=cov, allow_singular=True)

    arguments = np.array([[1.0, 1.0], [2.0, 2.0], [0.5, -0.5]]), np.array(cov)
    for wanted, found in zip(densities(*arguments), jt.jit(densities)(*arguments), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-12)


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


MODES = ("reflect", "constant", "nearest", "mirror", "wrap")


def one_axis(x: Any, w: Any) -> Any:
    filters: list[Any] = []
    for mode in MODES:
        filters += [
            ndimage.correlate1d(x, [1.0, 2.0, -1.0, 0.5], 0, mode=mode, cval=2.0),
            ndimage.convolve1d(x, w, mode=mode, origin=-1),
            ndimage.gaussian_filter1d(x, 1.2, axis=0, mode=mode),
            ndimage.uniform_filter1d(x, 4, mode=mode, origin=1),
            ndimage.maximum_filter1d(x, 3, axis=0, mode=mode),
            ndimage.minimum_filter1d(x, 2, mode=mode),
        ]
    return filters


def images(x: Any, w: Any) -> Any:
    filters: list[Any] = []
    for mode in MODES:
        filters += [
            ndimage.correlate(x, x[:3, :2], mode=mode, cval=0.5, origin=0),
            ndimage.convolve(x, x[:2, :3], mode=mode),
            ndimage.gaussian_filter(x, (1.0, 0.6), order=(0, 1), mode=mode),
            ndimage.uniform_filter(x, mode=mode),
            ndimage.uniform_filter(x, (2, 5), mode=mode),
            ndimage.maximum_filter(x, (3, 2), mode=mode),
            ndimage.minimum_filter(x, 3, mode=mode),
            ndimage.sobel(x, 0, mode=mode),
            ndimage.prewitt(x, mode=mode),
            ndimage.laplace(x, mode=mode),
        ]
    return filters


def signals(x: Any, w: Any) -> Any:
    results: list[Any] = []
    for mode in ("full", "same", "valid"):
        results += [
            signal.convolve(x[0], w, mode),
            signal.convolve(x, x[:2, :3], mode),
            signal.correlate(x[0], w, mode=mode),
            signal.convolve2d(x, x[:3, :3], mode=mode, fillvalue=2),
        ]
    return [
        *results,
        signal.correlate2d(x, x[:2, :3]),
        signal.correlate2d(x, x[:2, :3], "valid"),
        signal.lfilter([1, 0.5], [2, -0.25, 0.5], x),
        signal.lfilter(w, [1.0], x, axis=0),
        signal.lfilter([0.5], [1.0, -0.9], x[0]),
    ]


@pytest.mark.parametrize("function", [one_axis, images, signals])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int32])
def test_filters_give_what_scipys_give(function: Callable[..., Any], dtype: Any) -> None:
    x = (np.random.default_rng(0).random((6, 7)) * 40 - 20).astype(dtype)
    w = np.array([3, 1, -2]).astype(dtype)
    tolerance = 1e-5 if dtype is np.float32 else 1e-12
    for k, (got, want) in enumerate(zip(jt.jit(function)(x, w), function(x, w), strict=True)):
        assert got.shape == want.shape and got.dtype == want.dtype, k
        np.testing.assert_allclose(got, want, rtol=tolerance, atol=20 * tolerance, err_msg=str(k))


def of_any_library(x: Any) -> Any:
    return (
        *(stats.entropy(x[0] ** 2), stats.zscore(x, axis=1), stats.skew(x[0]), stats.sem(x)),
        *(fft.fft(x[0]), fft.irfft(x[1]), signal.fftconvolve(x[0], x[1])),
        *(integrate.trapezoid(x), integrate.cumulative_trapezoid(x[0], dx=0.5)),
        *(stats.pearsonr(x[0], x[1]).statistic, stats.ttest_ind(x[0], x[1]).pvalue),
    )


def test_functions_of_any_librarys_arrays_need_no_switch() -> None:
    x = np.random.default_rng(0).random((3, 8))
    for got, want in zip(jt.jit(of_any_library)(x), of_any_library(x), strict=True):
        assert np.shape(got) == np.shape(want)
        np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-12)
    assert type(stats.zscore(np.ma.masked_less(x, 0.1))) is np.ma.MaskedArray  # SciPy is as it was


def test_statistics_of_what_is_no_number_are_none() -> None:
    """SciPy leaves NaN out of these for all arrays but NumPy's."""

    def several(x: Any) -> Any:
        trimmed = stats.tvar(x), stats.tstd(x, axis=1), stats.tsem(x, axis=None)
        return (
            *trimmed,
            stats.tvar(x, (0.1, 0.9)),
            stats.moment(x, [1, 2], axis=1),
            stats.tvar(x[0]),
        )

    x = np.random.default_rng(0).random((3, 5))
    x[1, 2] = np.nan
    for got, want in zip(jt.jit(several)(x), several(x), strict=True):
        assert type(got) is type(want)
        np.testing.assert_allclose(got, want, rtol=1e-12)


def test_simpsons_rule() -> None:
    def even(y: Any, x: Any) -> Any:
        return integrate.simpson(y), integrate.simpson(y, dx=0.3), integrate.simpson(y[None], x=x)

    def along(y: Any, x: Any) -> Any:
        rows = np.stack([y, y * x, y + 1], axis=1)
        return integrate.simpson(rows, axis=0), integrate.simpson(rows, x=x, axis=0)

    rng = np.random.default_rng(0)
    for n in (2, 3, 4, 5, 8, 9):
        y, x = rng.normal(size=n), np.cumsum(rng.random(n))
        twice = np.where(np.arange(n) == 1, x[0], x)
        for f in (even, along):
            for places in (x, twice):
                for got, want in zip(jt.jit(f)(y, places), f(y, places), strict=True):
                    np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-13)
                    assert type(got) is type(want)
