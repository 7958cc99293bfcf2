"""Fourier transforms: compiled against numpy.fft, derivatives against finite differences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matrices import REAL_AND_COMPLEX, check_gradients, numbers

import jitney as jt

F = np.fft
ONE_AXIS = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
SEVERAL = ("fftn", "ifftn", "rfftn", "irfftn", "fft2", "ifft2", "rfft2", "irfft2")
OF_REAL = ("rfft", "ihfft", "rfftn", "rfft2")
DTYPES = (*(np.float16, np.float32, np.float64, np.complex64, np.complex128), np.int32, np.bool_)


def check_same(f: Any, *arrays: Any) -> None:
    """The same library on the same numbers: almost always the same bits, never more than rounding."""
    expected, got = f(*arrays), jt.jit(f)(*arrays)
    assert expected.dtype == got.dtype
    assert expected.shape == got.shape
    tol = 1e-13 if expected.dtype in (np.float64, np.complex128) else 1e-5
    tol = 2e-3 if expected.dtype == np.float16 else tol
    np.testing.assert_allclose(got, expected, rtol=tol, atol=tol * max(expected.size, 1))


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_transforms_give_what_numpy_gives(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(ONE_AXIS + SEVERAL))
    dtype = data.draw(
        st.sampled_from([d for d in DTYPES if d().dtype.kind != "c"] if name in OF_REAL else DTYPES)
    )
    shape = tuple(data.draw(st.lists(st.integers(2, 9), min_size=2, max_size=3)))
    norm = data.draw(st.sampled_from([None, "backward", "ortho", "forward"]))
    options: dict[str, Any] = {"norm": norm}
    if name in ONE_AXIS:
        options["n"] = data.draw(st.none() | st.integers(1, 12))
        options["axis"] = data.draw(st.integers(-len(shape), len(shape) - 1))
        if name in ("irfft", "hfft") and options["n"] is None and shape[options["axis"]] < 2:
            options["n"] = 1
    elif data.draw(st.booleans()):
        options["axes"] = data.draw(st.sampled_from([(0, 1), (1, 0), (-1, -2)]))
        options["s"] = data.draw(st.none() | st.tuples(st.integers(1, 7), st.integers(1, 7)))
    x = (3 * numbers(shape, np.result_type(dtype, np.float32))).astype(dtype)
    if data.draw(st.booleans()):
        x = x[::-1].swapaxes(0, 1)
        if "axes" not in options and name in ("irfft", "hfft") and options.get("n") is None:
            options["n"] = 4
    check_same(lambda x: getattr(F, name)(x, **options), x)


@pytest.mark.parametrize("dtype", REAL_AND_COMPLEX)
@pytest.mark.parametrize("name", ONE_AXIS + ("fft2", "irfft2", "rfft2"))
def test_gradients(name: str, dtype: Any) -> None:
    if name in OF_REAL and dtype is np.complex128:
        return
    for n in (None, 3, 6) if name in ONE_AXIS else (None,):
        options = {} if n is None else {"n": n}
        check_gradients(
            lambda x, o=options: getattr(F, name)(x, norm="ortho", **o), numbers((2, 4), dtype)
        )


def test_frequencies_and_shifts() -> None:
    for n in (1, 4, 5):
        check_same(lambda x, n=n: F.fftfreq(n, 0.25) + x, np.float64(0))
        check_same(lambda x, n=n: F.rfftfreq(n) + x, np.float64(0))
        np.testing.assert_array_equal(jt.fft.fftfreq(n, d=2.0), F.fftfreq(n, d=2.0))
    x = numbers((4, 5))
    for axes in (None, 0, (0, 1), -1):
        check_same(lambda x, a=axes: F.fftshift(x, axes=a), x)
        check_same(lambda x, a=axes: F.ifftshift(x, axes=a), x)


def test_wrong_arguments() -> None:
    x = np.ones(4)
    for f, text in (
        (lambda x: F.fft(x, 0), "Invalid number of FFT data points"),
        (lambda x: F.fft(x, norm="half"), "Invalid norm value"),
        (lambda x: F.fftn(x, s=(2, 2), axes=(0,)), "different lengths"),
        (lambda x: F.fft(x, axis=1), "axis"),
    ):
        with pytest.raises(ValueError, match=text):
            jt.jit(f)(x)
    with pytest.raises(TypeError, match="rfft takes real numbers"):
        jt.jit(lambda x: F.rfft(x))(x + 0j)


def test_edges() -> None:
    """Lengths and axes at their limits: NumPy's results, or its errors."""
    x = numbers((3, 4, 5))
    cases: list[Any] = [
        *((lambda x, k=k, n=n: getattr(F, k)(x, n)) for k in ONE_AXIS for n in (-1, 0, 1, 13)),
        *((lambda x, k=k: getattr(F, k)(x[:0], axis=0)) for k in ONE_AXIS),
        *((lambda x, k=k: getattr(F, k)(x[..., :0])) for k in SEVERAL),
        *((lambda x, k=k: getattr(F, k)(x, axes=(0, 0, 1))) for k in SEVERAL),
        *((lambda x, k=k: getattr(F, k)(x, axes=())) for k in SEVERAL),
        *((lambda x, k=k: getattr(F, k)(x, s=(-1, 3), axes=(2, 0))) for k in SEVERAL),
        *((lambda x, k=k: getattr(F, k)(x, s=(3,), axes=(0, 1))) for k in SEVERAL),
    ]
    for f in cases:
        try:
            f(x)
        except Exception as error:
            with pytest.raises(type(error)):
                jt.jit(f)(x)
        else:
            check_same(f, x)


def test_long_and_prime_lengths() -> None:
    for n in (1009, 4097, 2**17):
        for f in (lambda x: F.fft(x), lambda x: F.rfft(x), lambda x: F.irfft(x, len(x))):
            check_same(f, numbers((n,)))


def test_in_place() -> None:
    def f(z: Any) -> Any:
        z = z.copy()
        F.fft(z, out=z)
        return F.ifft(z[::2], out=z[::2]) + z[::2], z

    x = numbers((4, 8), np.complex128)
    for found, want in zip(jt.jit(f)(x), f(x), strict=True):
        np.testing.assert_allclose(found, want, atol=1e-13)


def test_programs() -> None:
    def convolved(x: Any, y: Any) -> Any:
        n = len(x) + len(y) - 1
        return F.irfft(F.rfft(x, n) * F.rfft(y, n), n)

    x, y = numbers((300,)), numbers((40,), seed=1)
    np.testing.assert_allclose(jt.jit(convolved)(x, y), np.convolve(x, y), atol=1e-11)

    def poisson(f: Any) -> Any:
        k = 2 * np.pi * F.fftfreq(f.shape[0], 1 / f.shape[0])
        k2 = k[:, None] ** 2 + k[None, :] ** 2
        return F.ifft2(np.where(k2 > 0, F.fft2(f) / np.where(k2 > 0, k2, 1), 0)).real

    check_same(poisson, numbers((32, 32)))
    rows = numbers((6, 16), np.complex128)
    np.testing.assert_allclose(jt.jit(jt.vmap(lambda x: F.fft(x)))(rows), F.fft(rows), atol=1e-13)


def test_complex_operands_and_results_are_not_copied() -> None:
    """The loop reads the input and writes the output: no kernel beside it."""
    f = jt.jit(lambda z: F.ifft(z))
    z = numbers((8, 64), np.complex128)
    np.testing.assert_allclose(f(z), F.ifft(z), atol=1e-15)
    assert "1 ops, 1 kernel" in f.explain(z)


def test_results_read_again_are_read_after_the_transform() -> None:
    """A result's parts are the loop's memory: what copies them comes after it."""

    def several(x: Any) -> Any:
        z = F.fft(x)
        return z, z.real, z * 2, z[..., ::-1]

    x = numbers((6, 8, 8))
    for part, expected in zip(jt.jit(several)(x), several(x), strict=True):
        np.testing.assert_allclose(part, expected, atol=1e-12)


def test_all_of_numpy_fft_is_there() -> None:
    assert [n for n in F.__all__ if not hasattr(jt.fft, n)] == []
