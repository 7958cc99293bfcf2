"""Quantiles, index arrays, bits, polynomials, histograms, applied functions: compiled against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jitney as jt

Array = np.ndarray[Any, Any]
rng = np.random.default_rng(0)


def check(f: Callable[..., Any], *arrays: Any, tol: float = 1e-12, native: bool = True) -> None:
    """`f` under NumPy and compiled: structure, dtypes and values."""
    run = jt.jit(f) if native else jt.jit(f, backend="interpreter")
    with np.errstate(all="ignore"):
        expected = f(*arrays)
    got = run(*arrays)
    pairs = zip(expected, got, strict=True) if isinstance(expected, tuple) else [(expected, got)]
    for want, have in pairs:
        want, have = np.asarray(want), np.asarray(have)
        assert have.dtype == want.dtype
        assert have.shape == want.shape
        np.testing.assert_allclose(have, want, rtol=tol, atol=tol)


METHODS = (
    "linear lower higher nearest midpoint inverted_cdf closest_observation averaged_inverted_cdf "
    "interpolated_inverted_cdf hazen weibull median_unbiased normal_unbiased".split()
)


@pytest.mark.filterwarnings("ignore:All-NaN")
@pytest.mark.parametrize("method", METHODS)
def test_quantiles(method: str) -> None:
    x = rng.normal(size=(4, 7, 2))
    holes = np.where(rng.random(x.shape) < 0.3, np.nan, x)
    for q in (0.0, 0.3, 0.5, 1.0, [0.25, 0.75]):
        options = {"q": q, "method": method}
        check(lambda x, o=options: np.quantile(x, axis=1, **o), x, native=False)
        check(lambda x, o=options: np.quantile(x, **o), holes, native=False)
        check(lambda x, o=options: np.nanquantile(x, axis=1, **o), holes, native=False)
    check(lambda x: np.nanpercentile(x, 40, axis=(0, 2), method=method, keepdims=True), holes)
    check(lambda x: np.percentile(x, 40.0, axis=0, method=method), x.astype(np.float32), tol=1e-6)
    check(lambda x: np.quantile(x, 0.4, method=method), np.arange(9) ** 2 % 7)


@pytest.mark.filterwarnings("ignore:All-NaN", "ignore:Mean of empty")
def test_medians() -> None:
    for shape in ((5,), (4, 6), (1,), (3, 2, 4)):
        x = rng.normal(size=shape)
        holes = np.where(rng.random(shape) < 0.4, np.nan, x)
        for axis in (None, 0, -1):
            check(lambda x, a=axis: np.median(x, axis=a), x)
            check(lambda x, a=axis: np.nanmedian(x, axis=a), holes)
    check(lambda x: np.nanmedian(x, axis=1, keepdims=True), np.full((2, 3), np.nan))
    check(lambda x: np.nanmedian(x), np.arange(6))
    g = jt.jit(jt.grad(lambda x: np.nanmedian(x)))(np.array([3.0, np.nan, 1.0, 2.0, 9.0]))
    np.testing.assert_array_equal(g, [0.5, 0, 0, 0.5, 0])


def test_index_arrays() -> None:
    x = rng.normal(size=(4, 5))
    check(lambda x: x[np.tril_indices(4, -1, 5)], x)
    check(lambda x: x[np.triu_indices_from(x, 1)], x)
    check(lambda x: x[:, :4][np.diag_indices(4)], x)
    check(lambda x: x[:, :4][np.diag_indices_from(x[:, :4])], x)
    check(lambda x: jt.triu_indices(3) + (x,), np.arange(2))


@settings(max_examples=15, deadline=None)
@given(st.data())
def test_places_as_one_number(data: st.DataObject) -> None:
    shape = tuple(data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=3)))
    order = data.draw(st.sampled_from("CF"))
    flat = np.array(data.draw(st.lists(st.integers(0, int(np.prod(shape)) - 1), max_size=5)), int)
    check(lambda i: np.unravel_index(i, shape, order), flat, native=False)
    several = np.unravel_index(flat, shape)
    check(lambda *i: np.ravel_multi_index(i, shape, order=order), *several, native=False)
    mode = data.draw(st.sampled_from(["clip", "wrap"]))
    far = tuple(i * 3 - 4 for i in several)
    check(lambda *i: np.ravel_multi_index(i, shape, mode=mode), *far, native=False)


def test_places_out_of_range() -> None:
    for bad in (6, -1):
        with pytest.raises(ValueError):
            jt.jit(lambda i: np.unravel_index(i, (2, 3)))(np.array([0, bad]))
        with pytest.raises(ValueError):
            jt.jit(lambda i: np.ravel_multi_index((i, i), (3, 6)))(np.array([0, bad]))


def test_bits() -> None:
    for shape in ((11,), (3, 16), (2, 5)):
        x = rng.integers(0, 3, shape)
        for order in ("big", "little"):
            check(lambda x, o=order: np.packbits(x, bitorder=o), x)
            check(lambda x, o=order: np.packbits(x, axis=-1, bitorder=o), x > 0)
        packed = rng.integers(0, 255, shape).astype(np.uint8)
        for count in (None, 5, -3, 200):
            check(lambda x, c=count: np.unpackbits(x, count=c), packed)
        check(lambda x: np.unpackbits(x, axis=0, bitorder="little"), packed)
    with pytest.raises(TypeError, match="integer or boolean"):
        jt.jit(lambda x: np.packbits(x))(np.ones(3))


def divided(u: Any, v: Any) -> tuple[Any, ...]:
    """Quotient, remainder, and the remainder's value: its length depends on its elements in NumPy."""
    quotient, rest = np.polydiv(u, v)
    return quotient, rest, np.polyval(rest, 2.0)


def test_polynomials() -> None:
    p, q = np.array([2.0, -3.0, 1.0, 4.0]), np.array([1.0, 2.0])
    names = ("polyadd", "polysub", "polymul")
    check(lambda p, q: tuple(getattr(np, name)(p, q) for name in names), p, q)
    check(lambda p, q: tuple(getattr(np, name)(q, p) for name in names), p, q + 1j)
    for u in (p, q, p * q[0], np.array([1.0, -3, 3, -1]), np.zeros(3), np.array([1, 2, 1])):
        check(
            lambda u, *by: tuple(part for v in by for part in divided(u, v)),
            *(u, q, p, np.array([1.0, -1.0]), np.array([4.0])),
        )
    check(lambda p: tuple(np.polyder(p, m) for m in (0, 1, 2)), p)
    check(lambda p: tuple(np.polyint(p, m) for m in (0, 1, 2)), p)
    check(lambda p, k: np.polyint(p, 2, k), p, np.array([1.0, 5.0]))
    check(lambda p: np.poly(p), p)
    check(lambda p: np.poly(p.reshape(2, 2)), p)
    roots = jt.jit(lambda p: np.roots(p))(p)
    np.testing.assert_allclose(np.sort_complex(roots), np.sort_complex(np.roots(p)), atol=1e-12)
    x = np.linspace(-1, 2, 20)
    y = np.polyval(p, x) + 0.1 * rng.normal(size=20)
    for f in (
        lambda x, y: np.polyfit(x, y, 3),
        lambda x, y: np.polyfit(x, y, 2, w=x + 2),
        lambda x, y: np.polyfit(x, np.stack([y, y**2], 1), 1),
        lambda x, y: np.polyfit(x, y, 2, cov=True),
        lambda x, y: np.polyfit(x, y, 2, cov="unscaled"),
    ):
        check(f, x, y, tol=1e-9)
    jt.check_grads(lambda x, y: np.polyfit(x, y, 2), (x, y), order=1)


def test_windows() -> None:
    for name in ("bartlett", "blackman", "hamming", "hanning"):
        for m in (0, 1, 5):
            check(lambda x, n=name, m=m: getattr(np, n)(m) + x, 0.0)
    for m in (1, 7):
        np.testing.assert_allclose(jt.jit(lambda b, m=m: jt.kaiser(m, b))(3.5), np.kaiser(m, 3.5))


def test_histograms() -> None:
    x, y = rng.normal(size=50), rng.normal(size=50)
    w = rng.random(50)
    edges = np.array([-1.0, 0.0, 0.5, 2.0])
    check(lambda x: np.histogram_bin_edges(x, 6), x)
    check(lambda x: np.histogram_bin_edges(x, 4, (-1, 1)), x)
    check(lambda x: np.histogram(x, 8), x)
    check(lambda x, w: np.histogram(x, edges, weights=w, density=True), x, w)
    check(lambda x, y: np.histogram2d(x, y, 4), x, y)
    check(lambda x, y, w: np.histogram2d(x, y, [3, edges], weights=w), x, y, w)
    check(lambda x, y: np.histogram2d(x, y, 3, [[-1, 1], [-2, 2]], density=True), x, y)
    sample = rng.normal(size=(30, 3))
    counts, sides = jt.jit(lambda s: np.histogramdd(s, (2, 3, 4)))(sample)
    want, want_sides = np.histogramdd(sample, (2, 3, 4))
    np.testing.assert_array_equal(counts, want)
    for a, b in zip(sides, want_sides, strict=True):
        np.testing.assert_allclose(a, b)
    with pytest.raises(TypeError, match="number of bins would depend"):
        jt.jit(lambda x: np.histogram(x, "auto"))(x)


def test_applied_functions() -> None:
    x = rng.normal(size=(3, 4, 5))
    check(lambda x: np.apply_along_axis(lambda r: r.sum() * r[0], 1, x), x)
    check(lambda x: np.apply_along_axis(lambda r: np.sort(r)[::-1], 0, x), x)
    check(lambda x: np.apply_along_axis(lambda r, k: np.outer(r, r) * k, -1, x, 2.0), x)
    check(lambda x: np.apply_over_axes(np.sum, x, [0, 2]), x)
    check(lambda x: jt.fromfunction(lambda i, j: i * 10 + j + x, (3, 4)), 1.0)


def test_sliding_windows() -> None:
    x = rng.normal(size=(5, 6, 7))
    view = np.lib.stride_tricks.sliding_window_view
    check(lambda x: view(x, (2, 3, 4)), x)
    check(lambda x: view(x, 3, axis=1), x)
    check(lambda x: view(x, (2, 2), axis=(0, 0)), x)
    with pytest.raises(ValueError, match="larger than"):
        jt.jit(lambda x: view(x, 9, axis=0))(x)


def test_strides_that_are_given() -> None:
    strided = np.lib.stride_tricks.as_strided

    def f(x: Any, m: Any) -> Any:
        rows, (down, across) = (len(x) - 4) // 2 + 1, m.strides
        frames = strided(x, shape=(rows, 4), strides=(2 * x.itemsize, x.itemsize))
        pools = strided(m, (2, 2, 2, 3), (2 * down, 3 * across, down, across)).max(axis=(2, 3))
        before = frames.sum(axis=1)
        x = x * 1.0
        moving = strided(x, (3, 3), (0, 8))
        x[1] = 100.0  # seen through the view
        return before, pools, moving, strided(x, (0,), (8,)), strided(x)

    check(f, np.arange(10.0), np.arange(24.0).reshape(4, 6) % 7)
    x = np.arange(10.0)
    for outside in (
        lambda x: strided(x, (20,), (8,)),
        lambda x: strided(x[::2], (2,), (8,)),
        lambda x: strided(x, (2,), (4,)),
    ):
        with pytest.raises(jt.errors.UnsupportedFunctionError, match="row by row"):
            jt.jit(outside)(x)
    with pytest.raises(jt.errors.ReadOnlyError):
        jt.jit(lambda x: np.add(x[:2], 1, out=strided(x, (2,), (8,))))(x)


def test_what_has_once_been_wrong() -> None:
    """Found by drawing arguments for all functions (test_function_values.py)."""
    inf, z = np.inf, rng.normal(size=(3, 4)) + 1j * rng.normal(size=(3, 4))
    v, small, high = np.arange(4.0), np.array([200, 7, 250, 3], np.uint8), np.iinfo(np.int64).max
    f16 = np.array([60000, 65504, 1, 65504], np.float16)
    check(lambda z: np.vecmat(z[:, 0], z), z)  # conjugates the vector
    check(lambda z: np.round(z, 1), np.array([complex(inf, -inf), 1.26 + 2.34j]))
    check(lambda x: np.interp(x, [0.0, 1, 2], [inf, inf, 1]), np.array([0.5, 1, 1.5]))
    check(lambda x: np.average(x, weights=x), small.astype(np.int8))  # in float64
    check(lambda x: np.gradient(np.arange(4.0), np.cumsum(x, dtype=np.uint8)), small)
    check(lambda x: np.gradient(x, v), small.astype(np.complex64))
    check(lambda x: np.geomspace(x, 2 * x, 3), (v + 1).astype(np.float32))
    check(lambda x: np.poly(x), small)
    check(lambda x: np.convolve(x, np.array([1.0, inf])), v)  # nothing beyond the ends
    check(lambda x: np.percentile(x, 40, method="nearest"), np.array([high, high]))
    check(lambda x: np.median(x), f16)
    check(lambda x: np.choose([0, 1, 1, 0], [x, 2.5]), v.astype(np.float32))
    check(lambda x: np.vdot(x, x), v > 1)
    check(lambda x: np.clip(x, None, False), v > 1)
    check(lambda x: np.histogram(x, 3, range=(0, 3)), v.astype(np.float16))
    check(lambda x: np.fft.irfft(x), v.astype(np.float16), tol=1e-3)
    check(lambda x: jt.ascontiguousarray(x), np.array(2.0))
    check(lambda x: np.angle(x), v > 1)
    assert [jt.jit(f)(0.5).shape for f in (np.transpose, np.ravel)] == [(), (1,)]
    for f, x in (
        (lambda x: np.isposinf(x), z),
        (lambda x: np.i0(x), z),
        (lambda x: np.digitize(x, v), z[0]),
        (lambda x: np.quantile(x, 0.3), v > 1),
        (lambda x: np.ediff1d(x, to_begin=1), small),
        (lambda x: np.putmask(x, x > 3, v), small),
    ):
        with pytest.raises(TypeError):
            jt.jit(f)(x)
    with pytest.raises(IndexError):
        jt.jit(lambda x: np.compress([True, False, True], x))(v[:2])
