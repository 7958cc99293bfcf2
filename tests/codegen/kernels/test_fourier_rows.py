"""Fourier transforms of many rows: which are native code, values, what stays in its row, threads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from native import has_avx2

import jitney as jt

F = np.fft
Array = np.ndarray[Any, Any]

KINDS: dict[str, Callable[..., Any]] = {
    "fft": lambda z: F.fft(z),
    "ifft": lambda z: F.ifft(z),
    "rfft": lambda z: F.rfft(z.real, norm="ortho"),
    "irfft": lambda z: F.irfft(z),
}


def rows(shape: tuple[int, ...], dtype: Any = np.float64, seed: int = 0) -> Array:
    rng = np.random.default_rng(seed)
    z = rng.standard_normal(shape) + 1j * rng.standard_normal(shape)
    return z.astype(np.result_type(dtype, np.complex64))


def is_native(f: Callable[..., Any], *args: Any) -> bool:
    """Whether no loop of NumPy's is called."""
    return "pocketfft" not in str(f.explain(*args))


def check(f: Callable[..., Any], z: Array) -> None:
    got, want = jt.jit(f)(z), f(z.astype(np.complex128))
    assert got.shape == want.shape
    assert got.dtype == f(z).dtype
    eps = np.finfo(z.dtype).eps
    np.testing.assert_allclose(got, want, rtol=0, atol=30 * eps * abs(want).max())


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [2, 3, 4, 5, 8, 13, 16, 30, 77, 120, 128, 500, 1024])
def test_sizes(n: int, kind: str, dtype: Any) -> None:
    """Rows are no multiple of the lanes, and fewer, and in several dims."""
    shapes = [(19, n)] if n > 100 else [(19, n), (2, 3, n)]
    for shape in shapes:
        check(KINDS[kind], rows(shape, dtype, n))


@pytest.mark.skipif(not has_avx2(), reason="no AVX2")
@pytest.mark.parametrize("cpu", ["x86-64-v3", "x86-64-v2"])
def test_narrower_registers(cpu: str) -> None:
    with jt.config(cpu=cpu):
        for kind in ("rfft", "irfft", "fft"):
            check(KINDS[kind], rows((21, 96), np.float32))


def test_which_are_native() -> None:
    f = jt.jit(lambda z: F.fft(z))
    assert is_native(f, rows((4, 64), np.float32))
    assert not is_native(f, rows((64,)))
    assert not is_native(f, rows((50, 17)))  # a large prime
    assert not is_native(f, rows((8, 1 << 15)))  # more than a unit has room for
    assert is_native(jt.jit(lambda x: F.rfft(x)), rows((50, 26)).real.copy())
    assert not is_native(jt.jit(lambda x: F.rfft(x)), rows((50, 25)).real.copy())


def test_the_ends_of_a_spectrum_count_as_real() -> None:
    z = rows((9, 17))
    np.testing.assert_allclose(jt.jit(lambda z: F.irfft(z))(z), F.irfft(z), atol=1e-15)


def test_what_is_not_finite_stays_in_its_row() -> None:
    z = rows((20, 60))
    z[3, 7], z[11, 0] = np.nan, np.inf
    got = jt.jit(lambda z: F.fft(z))(z)
    assert np.flatnonzero(~np.isfinite(got).all(axis=1)).tolist() == [3, 11]


def test_axes_and_views() -> None:
    z = rows((40, 6, 50))
    for axis in (0, 1, -1):
        check(lambda z, axis=axis: F.fft(z, axis=axis), z)
    check(lambda z: F.ifft2(F.fft2(z)[::2]), z)
    check(lambda z: F.irfft2(F.rfft2(z.real)), z)
    np.testing.assert_allclose(jt.jit(lambda z: F.fft(z))(z[::2, :, ::-1]), F.fft(z[::2, :, ::-1]))


def test_rows_are_shared_by_threads() -> None:
    z = rows((3001, 240), np.float32)
    f = jt.jit(lambda z: F.fft(z))
    with jt.threads(1):
        alone = f(z)
    with jt.threads(3):
        together = f(z)
    np.testing.assert_array_equal(alone, together)
    np.testing.assert_array_equal(alone[:5], f(z[:5]))


def test_derivatives() -> None:
    x = rows((12, 24)).real.copy()
    weight = np.arange(13.0)

    def f(x: Any) -> Any:
        z = F.rfft(x)
        return ((z.real**2 + 2 * z.imag**2) * weight).sum()

    step = 1e-6 * rows(x.shape, seed=1).real
    slope = (f(x + step) - f(x - step)) / 2
    np.testing.assert_allclose((jt.jit(jt.grad(f))(x) * step).sum(), slope, rtol=1e-6)
