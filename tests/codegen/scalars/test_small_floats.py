"""Floats of 16 and 8 bits: every conversion, bit by bit, against NumPy and ml_dtypes."""

from __future__ import annotations

import numpy as np
import pytest
from native import avx2_target, has_avx2, native

import jitney as jt
from jitney.codegen.math import EXPANSIONS
from jitney.codegen.target import Target
from jitney.ir.record import replace
from jitney.ir.types import DTYPE_NAMES, F16, F32, F64, bits_dtype, is_small
from jitney.runtime.native.host import host_target

SMALL = [d for d in DTYPE_NAMES.values() if is_small(d)]


def without_halves() -> Target:
    """The host, as if it had no instruction that converts halves."""
    target = avx2_target() if has_avx2() else host_target()
    return replace(target, features=target.features.replace("+f16c", "-f16c"))


TARGETS = {"host": host_target, "no instructions": without_halves}


def all_bits(dtype: np.dtype) -> np.ndarray:
    return np.arange(1 << (8 * dtype.itemsize)).astype(bits_dtype(dtype))


def same(got: np.ndarray, want: np.ndarray) -> None:
    """The same numbers, signs of zeros included; NaN where there is NaN."""
    with np.errstate(invalid="ignore"):
        got, want = got.astype(F64), want.astype(F64)
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(
        np.signbit(got) | np.isnan(got), np.signbit(want) | np.isnan(want)
    )


def hard_singles(dtype: np.dtype) -> np.ndarray:
    """float32 numbers around all small floats, the ties between them, and what lies beside those."""
    with np.errstate(all="ignore"):
        values = all_bits(dtype).view(dtype).astype(F32)
        values = np.unique(values[np.isfinite(values)])
        middle = ((values[1:].astype(F64) + values[:-1]) / 2).astype(F32)
        top = values[-1] * np.array([1, 1.01, 1.0625, 1.25, 1.5, 2, 4], F32)
        points = np.concatenate([values, middle, top, -top, [np.inf, -np.inf, np.nan, -0.0]])
        points = points.astype(F32)
        near = [points, np.nextafter(points, F32.type(np.inf)), np.nextafter(points, F32.type(0))]
    rng = np.random.default_rng(0)
    random = rng.integers(0, 1 << 32, 1 << 16, np.uint32).view(F32)
    return np.concatenate([*near, random])


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", SMALL, ids=str)
def test_all_values_widen(dtype: np.dtype, target: str) -> None:
    if target != "host" and dtype != F16:
        pytest.skip("the same arithmetic everywhere")
    bits = all_bits(dtype)
    widen = native(
        lambda x: EXPANSIONS["widen"](x, dtype=dtype), [bits.dtype], 16, TARGETS[target]()
    )
    same(widen(bits), bits.view(dtype).astype(F32))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", SMALL, ids=str)
def test_singles_narrow(dtype: np.dtype, target: str) -> None:
    if target != "host" and dtype != F16:
        pytest.skip("the same arithmetic everywhere")
    x = hard_singles(dtype)
    narrow = native(lambda x: EXPANSIONS["narrow"](x, dtype=dtype), [F32], 16, TARGETS[target]())
    with np.errstate(all="ignore"):
        same(narrow(x).view(dtype), x.astype(dtype))


def test_doubles_become_halves_with_one_rounding() -> None:
    with np.errstate(all="ignore"):
        ties = hard_singles(F16).astype(F64)
        x = np.concatenate([ties, np.nextafter(ties, np.inf), np.nextafter(ties, 0), ties * 1e-300])
    narrow = native(lambda x: EXPANSIONS["narrow"](x, dtype=F16), [F64], 8)
    with np.errstate(all="ignore"):
        same(narrow(x).view(F16), x.astype(F16))
        assert (x.astype(F32).astype(F16) != x.astype(F16)).sum() > 1000  # twice is not once


@pytest.mark.parametrize("to", "u1 u2 u4 u8 i1 i2 i4 i8 ?".split())
@pytest.mark.parametrize("dtype", SMALL, ids=str)
def test_all_become_integers_as_in_numpy(dtype: np.dtype, to: str) -> None:
    """Infinities and NaN too: what they become differs between the floats."""
    x = all_bits(dtype).view(dtype)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(jt.jit(lambda x: x.astype(to))(x), x.astype(to))
