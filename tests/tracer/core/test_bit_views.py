"""`x.view(dtype)`, `x.flat`, parts of complex arrays and other windows on one memory, against NumPy."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import check, check_raises, run

import jitney as jt

DTYPES = [
    *(np.bool_, np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64),
    *(np.float16, np.float32, np.float64, np.complex64, np.complex128),
]


def bits(shape: tuple[int, ...], dtype: Any, seed: int = 0) -> np.ndarray[Any, Any]:
    """Numbers with bits in all their bytes."""
    rng = np.random.default_rng(seed)
    if dtype == np.bool_:
        return rng.random(shape) > 0.5
    if np.dtype(dtype).kind in "iu":
        info = np.iinfo(dtype)
        return rng.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)
    found = rng.normal(size=shape).astype(dtype)
    return found + found[::-1] * dtype(1j) if np.dtype(dtype).kind == "c" else found


def same_bits(got: Any, want: Any) -> None:
    assert got.dtype == want.dtype and got.shape == want.shape
    assert got.tobytes() == want.tobytes()


@settings(max_examples=50, deadline=None)
@given(st.data())
def test_views_of_any_dtype(data: st.DataObject) -> None:
    old, new = (data.draw(st.sampled_from(DTYPES)) for _ in range(2))
    if new == np.bool_ and old != np.bool_:
        new = np.uint8
    shape = data.draw(st.sampled_from([(8,), (2, 16), (3, 1, 4), (0, 16), (2, 3), (2, 0), ()]))
    part = data.draw(st.sampled_from([(), (..., slice(1, None)), (slice(None, None, -1),)]))
    x = bits(shape, old) if shape else bits((1,), old).reshape(())
    write = data.draw(st.booleans())

    def f(x: Any) -> Any:
        window = x[part] if x.ndim else x
        found = window.view(new)
        if write:
            found[..., :1] = found[..., -1:] if found.ndim else found
        return found.copy(), window.copy()

    try:
        want_x = x.copy()
        want = f(want_x)
    except (ValueError, TypeError, IndexError):
        check_raises(f, x)
        return
    backend = data.draw(st.sampled_from(["interpreter", "native"]))
    got_x = x.copy()
    got = run(f, got_x, backend=backend)
    for g, w in zip((*got, got_x), (*want, want_x), strict=True):
        same_bits(np.asarray(g), np.asarray(w))


@pytest.mark.parametrize("small", [np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn])
def test_views_of_small_floats(small: Any) -> None:
    x = np.arange(16).astype(small)
    whole = np.dtype(f"u{x.dtype.itemsize}")
    same_bits(jt.jit(lambda x: x.view(whole))(x), x.view(whole))
    same_bits(jt.jit(lambda x: x.view(np.uint64))(x), x.view(np.uint64))
    same_bits(jt.jit(lambda x: x.view(small))(x.view(np.uint64)), x)


def test_known_tricks() -> None:
    def inverse_root(x: Any) -> Any:
        i = np.uint32(0x5F3759DF) - (x.view(np.uint32) >> np.uint32(1))
        y = i.view(np.float32)
        return y * (np.float32(1.5) - np.float32(0.5) * x * y * y)

    def sign_flipped(x: Any) -> Any:
        y = x.copy()
        y.view(np.uint64)[...] ^= np.uint64(1) << np.uint64(63)
        y.view(np.uint8).reshape(-1, 8)[0, 7] = 0x40
        return y, x[0].view(np.int64), x.byteswap(), x.view(np.complex128)

    check(inverse_root, np.array([0.25, 2.0, 9.0], np.float32), backend="native")
    check(sign_flipped, np.array([1.0, -2.0, 3.5, 0.0]), backend="native")


def test_complex_numbers_as_pairs_have_derivatives() -> None:
    z = bits((4,), np.complex128)
    jt.check_grads(lambda z: z.view(np.float64) ** 2, (z,), order=1)
    jt.check_grads(lambda x: np.abs(x.view(np.complex128)) ** 2, (np.arange(1.0, 7.0),), order=1)
    g = jt.jit(jt.grad(lambda x: x.view(np.int64).astype(np.float64).sum()))(np.ones(3))
    np.testing.assert_array_equal(g, 0)


def test_parts_of_complex_arrays() -> None:
    def f(z: Any, x: Any) -> Any:
        z.real[0] = 7
        z.imag = 3
        z.T.imag[1:] *= 2
        z[1].real += z[0].imag
        z.real[z.real > 1] = -1
        x.T[...] = x.T * 2
        np.ravel(x)[3] = 100
        x.reshape(2, 2, 3)[1, 1] -= 1
        return z.real.copy(), x.imag, z.flags.c_contiguous, z.real.flags["C_CONTIGUOUS"]

    check(f, bits((3, 2), np.complex128), np.arange(12.0).reshape(4, 3))


def test_flat() -> None:
    def f(x: Any, i: Any) -> Any:
        first = x.flat[1], x.flat[-1], x.flat[2:9:3], x.flat[[0, 5]], x.flat[i]
        x.flat[3] = 50
        x.T.flat[1] = 60
        x.flat[4:8] = [1, 2]
        x[:, ::-1].flat[[0, 1]] = 70
        x.flat[i] = 80
        y = x.copy()
        y.flat = [1, 2, 3, 4, 5]
        z = x * 2
        z.flat[z > 40 if z.ndim == 1 else (z > 40).ravel()] = -1
        total = sum(v for v in x.flat)
        return (*first, y, z, total, len(x.flat), np.sum(x.flat), np.add(x.flat, 1), x.flat == 50)

    check(f, np.arange(12.0).reshape(3, 4), np.array([2, -2]))
    check(f, np.arange(12.0).reshape(3, 4), np.array([2, -2]), backend="native")
    with pytest.raises(IndexError, match="out of bounds"):
        run(lambda x: x.flat[12], np.arange(12.0).reshape(3, 4))


def test_what_traced_arrays_do_not_have() -> None:
    x = np.ones((2, 3))
    for f, text in (
        (lambda x: np.r_[x, x], r"np\.r_.*jt\.r_"),
        (lambda x: np.c_[x, x], r"np\.c_.*jt\.c_"),
        (lambda x: list(np.ndenumerate(x)), "ndenumerate.*jt.indices"),
        (lambda x: np.vectorize(lambda v: v)(x), r"vectorize.*jt\.vectorize"),
        (lambda x: np.mgrid[0 : x[0, 0]], "np.mgrid.*static"),
        (lambda x: x.view(np.matrix), "ndarrays only"),
        (lambda x: jt.sliding_window_view(x, 2, 0, writeable=True), "writeable"),
    ):
        with pytest.raises(TypeError, match=f"(?s){text}") as caught:
            jt.jit(f, autograph=False)(x)
        assert "test_bit_views.py" in str(caught.value)
    for name in ("base", "data", "ctypes", "tobytes", "setflags", "resize", "itemset"):
        with pytest.raises(AttributeError, match=f"(?s){name}.*test_bit_views.py"):
            jt.jit(lambda x, name=name: getattr(x, name))(x)
        has = jt.jit(lambda x, name: int(hasattr(x, name)), autograph=False)
        assert has(x, name) == 0
    with pytest.raises(AttributeError, match="no attribute 'colour'"):
        jt.jit(lambda x: x.colour)(x)


def test_shapes_and_dtypes_are_not_assigned_to() -> None:
    for name, value, instead in (("shape", (3, 2), "reshape"), ("dtype", np.int64, "view")):
        with pytest.raises(AttributeError, match=f"(?s){name}.*test_bit_views.py.*x.{instead}"):
            jt.jit(lambda x, name, value: setattr(x, name, value))(np.ones((2, 3)), name, value)
