"""What the array API standard asks for beside NumPy. The conformance suite itself: array_api/run.py."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

import jitney as jt


def same(f: Any, *arrays: Any) -> Any:
    """`f` eagerly and compiled: equal in dtype, shape and bits."""
    eager, compiled = f(*arrays), jt.jit(f)(*arrays)
    assert eager.dtype == compiled.dtype
    np.testing.assert_array_equal(eager, compiled)
    return eager


def test_the_namespace_describes_itself() -> None:
    assert jt.__array_api_version__ == "2024.12"
    info = jt.__array_namespace_info__()
    assert info.capabilities()["data-dependent shapes"] is True
    assert info.default_device() == "cpu" and info.devices()[0] == "cpu"
    assert info.default_dtypes()["real floating"] == np.float64
    assert set(info.dtypes(kind="complex floating")) == {"complex64", "complex128"}
    assert len(info.dtypes()) == 13
    assert set(info.dtypes(kind=("bool", "unsigned integer"))) == {
        *("bool", "uint8", "uint16", "uint32", "uint64")
    }
    with pytest.raises(ValueError, match="unsupported kind"):
        info.dtypes(kind="floats")
    assert np.ones(3).__array_namespace__ is not None
    names = []
    jt.jit(lambda x: names.append(x.__array_namespace__()) or x)(np.ones(3))
    assert names[0].sum is not None


def test_dtypes_by_kind() -> None:
    assert jt.isdtype(jt.float32, "real floating")
    assert not jt.isdtype(np.dtype(np.int8), ("bool", "unsigned integer"))
    assert jt.isdtype(np.dtype(np.int8), (jt.int8, "bool"))


def test_from_dlpack() -> None:
    x = np.arange(6.0)
    y = jt.from_dlpack(x)
    assert y.base is not None and np.shares_memory(x, y)
    z = jt.from_dlpack(x, copy=True)
    assert not np.shares_memory(x, z)
    np.testing.assert_array_equal(jt.from_dlpack(x, device="cpu"), x)


@pytest.mark.parametrize("axis", [0, 1, -1, None])
def test_descending(axis: int | None) -> None:
    x = np.random.default_rng(0).integers(0, 5, (6, 7))
    s = same(lambda x: jt.sort(x, axis=axis, descending=True), x)
    np.testing.assert_array_equal(s, -np.sort(-x, axis=axis))
    order = same(lambda x: jt.argsort(x, axis=axis, descending=True), x)
    np.testing.assert_array_equal(order, np.argsort(-x, axis=axis, stable=True))


def test_repeat_as_often_as_values_say() -> None:
    x, r = np.arange(12).reshape(4, 3), np.array([2, 0, 1, 3])
    for length in (0, 4, 6, 9):
        got = same(lambda x, r, n=length: jt.repeat(x, r, 0, total_repeat_length=n), x, r)
        want = np.repeat(x, r, 0)
        np.testing.assert_array_equal(got[:6], want[:length])
        np.testing.assert_array_equal(got[6:], np.broadcast_to(x[-1:], got[6:].shape))
    same(lambda x, r: np.repeat(x, r, 0), x, r)
    with pytest.raises(TypeError, match="total_repeat_length"):
        jt.jit(jt.vmap(lambda x, r: np.repeat(x, r, 0)))(x[None], r[None])


def test_frequencies_of_a_dtype() -> None:
    for name in ("fftfreq", "rfftfreq"):
        f = getattr(jt.fft, name)
        assert f(5, dtype=np.float32).dtype == np.float32
        same(lambda x, f=f: f(5, d=0.5, dtype=np.float32) + x, np.float32(0))


@pytest.mark.parametrize("name", ["arccos", "arccosh", "arcsinh", "arctanh", "arcsin", "arctan"])
def test_complex_numbers_that_are_half_nan(name: str) -> None:
    parts = [0.0, -0.0, np.nan, 1.0, np.inf]
    z = np.array([complex(x, y) for x in parts for y in parts])
    with np.errstate(all="ignore"):
        want = getattr(np, name)(z)
    got = jt.jit(getattr(jt, name))(z)
    for part in ("real", "imag"):
        a, b = getattr(got, part), getattr(want, part)
        np.testing.assert_array_equal(np.isnan(a), np.isnan(b))


def test_functions_have_signatures() -> None:
    assert "axis" in inspect.signature(jt.sum).parameters
    assert "size" in inspect.signature(jt.nonzero).parameters
    assert "descending" in inspect.signature(jt.sort).parameters
    assert next(iter(inspect.signature(jt.fft.fft).parameters)) == "a"
