"""Reductions and scans of arrays that are large enough to be tiled, split and shared among threads."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pytest

import jitney as jt
from jitney.runtime.threads import pool

DTYPES = ("f4", "f8", "i1", "u8")


@lru_cache(maxsize=4)  # as many cases have the same shape
def _drawn(shape: tuple[int, ...]) -> np.ndarray:
    return np.random.default_rng(len(shape)).standard_normal(shape) * 30


def numbers(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Values of both signs, with repetitions, so that first places and wrapping matter."""
    x = _drawn(shape)
    return (np.abs(x) if dtype[0] == "u" else x).astype(dtype)


def check(f, *arrays, rtol=2e-5):
    """The same as NumPy with three threads, and the same bits with one."""
    compiled = jt.jit(f)
    before = pool.get_threads()
    try:
        pool.set_threads(3)
        got = compiled(*arrays)
        pool.set_threads(1)
        alone = compiled(*arrays)
    finally:
        pool.set_threads(before)
    want = f(*(a.astype("f8") if a.dtype == np.float32 else a for a in arrays))
    for a, b, c in zip(*map(jt.tree.leaves, (got, alone, want)), strict=True):
        assert a.tobytes() == b.tobytes()
        assert a.shape == c.shape
        if c.dtype.kind == "f":
            scale = np.abs(c[np.isfinite(c)]).max(initial=1)
            tolerance = 1e-12 if a.dtype == np.float64 and arrays[0].dtype != np.float32 else rtol
            np.testing.assert_allclose(a, c, rtol=tolerance, atol=tolerance * scale)
        else:
            np.testing.assert_array_equal(a, c)


COLUMNS = {
    "sum": lambda x: x.sum(axis=0, dtype=x.dtype),
    "prod": lambda x: (x * 0 + 1).prod(axis=0, dtype=x.dtype),
    "max": lambda x: x.max(axis=0),
    "argmin": lambda x: x.argmin(axis=0),
    "any": lambda x: (x > 60).any(axis=0),
    "var": lambda x: (x * x.dtype.type(1)).var(axis=0),
    "two": lambda x: (x.max(axis=0), (x + x).sum(axis=0, dtype=x.dtype)),
    "cumsum": lambda x: np.cumsum(x, axis=0, dtype=x.dtype),
    "reverse": lambda x: np.cumsum(x[::-1], axis=0, dtype=x.dtype)[::-1],
    "cummax": lambda x: np.maximum.accumulate(x, axis=0),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", COLUMNS)
def test_columns_in_tiles(name, dtype):
    """Rows that are walked in the order of memory: whole tiles and parts of one, odd numbers of rows."""
    arrays = [numbers(shape, dtype) for shape in ((531, 2100), (3, 347, 411))]
    check(lambda x, y: (COLUMNS[name](x), COLUMNS[name](y)), *arrays)


def test_columns_with_nan_and_infinities():
    x = numbers((1031, 517), "f4")
    x[700, 3], x[5, 9], x[900, 9], x[:, 11] = np.nan, np.inf, -np.inf, -np.inf
    for name in ("max", "argmin", "cummax"):
        check(COLUMNS[name], x)


@pytest.mark.parametrize("axes", [(0, 1), (0, 2), (1, 2), (1,), (0, 1, 2), (0,)])
def test_axes_of_any_layout(axes):
    x = numbers((70, 90, 81), "f4")
    for layout in (x, x.transpose(2, 0, 1), x[::-1, :, ::-2], x.transpose(1, 2, 0)[:, ::3]):
        check(lambda x: (x * x).sum(axis=axes), layout)
        check(lambda x: x.max(axis=axes), layout)


@pytest.mark.parametrize("dtype", ["f4", "f8", "i1", "u8", "?"])
@pytest.mark.parametrize(
    "shape", [(7,), (200_001,), (40, 333), (333, 40), (2, 90_000), (90_000, 2)]
)
def test_first_of_the_best(shape, dtype):
    """argmax and argmin: ties, NaN, and elements that are all as bad as can be."""
    rng = np.random.default_rng(4)
    x = (rng.standard_normal(shape) * 40).astype(dtype)
    worst = {"f": -np.inf, "?": False}.get(dtype[0], np.iinfo(dtype).min if dtype[0] in "iu" else 0)
    cases = [x, np.full(shape, worst, dtype), np.full(shape, 1, dtype)]
    if dtype[0] == "f":
        cases.append(x.copy())
        cases[-1].flat[rng.integers(0, x.size, 5)] = np.nan
    for axis in (None, *range(len(shape))):
        both = jt.jit(lambda x: (x.argmax(axis=axis), x.argmin(axis=axis)))  # noqa: B023
        for case in cases:
            largest, smallest = both(case)
            np.testing.assert_array_equal(largest, case.argmax(axis=axis))
            np.testing.assert_array_equal(smallest, case.argmin(axis=axis))


@pytest.mark.parametrize("shape", [(100_001,), (300, 1000), (2, 90_000), (60_000, 5), (70, 90, 33)])
def test_variance_in_one_pass(shape):
    """Far from zero, where the mean of the squares would have no digits left."""
    rng = np.random.default_rng(8)
    for dtype, rtol in (("f4", 2e-5), ("f8", 1e-12)):
        x = (rng.standard_normal(shape) + 3000).astype(dtype)
        wide = x.astype("f8")
        for axis in (None, 0, tuple(range(len(shape)))[1:]):
            var, std = jt.jit(lambda x: (x.var(axis=axis), x[::-1].std(axis=axis)))(x)  # noqa: B023
            np.testing.assert_allclose(var, wide.var(axis=axis), rtol=rtol, atol=rtol)
            np.testing.assert_allclose(std, wide[::-1].std(axis=axis), rtol=rtol, atol=4e-4)
    for value in (np.nan, np.inf):
        x.flat[77] = value
        assert np.isnan(jt.jit(lambda x: x.var())(x))


def test_variance_reads_memory_once():
    text = jt.jit(lambda x: x.var()).explain(np.zeros((512, 1024)))
    assert text.count("reads 4 MiB") == 1


LONG_SCANS = {
    "sum": lambda x, axis: np.cumsum(x, axis=axis, dtype=x.dtype),
    "reverse": lambda x, axis: np.flip(np.cumsum(np.flip(x, axis), axis, dtype=x.dtype), axis),
    "fused": lambda x, axis: np.maximum.accumulate(x * 2, axis=axis) + 1,
    "prod": lambda x, axis: np.cumprod(np.sign(x), axis=axis, dtype=x.dtype),
}


@pytest.mark.parametrize("dtype", ["f4", "f8", "i1"])
@pytest.mark.parametrize("name", LONG_SCANS)
@pytest.mark.parametrize("shape", [(1 << 16,), (100_003,), (3, 70_001), (70_001, 3)])
def test_long_scans_are_shared(shape, name, dtype):
    x = numbers(shape, dtype)
    axis = int(np.argmax(shape))
    check(lambda x: LONG_SCANS[name](x, axis), x)


def test_long_scans_with_nan_and_infinities():
    x = numbers((90_001,), "f8")
    x[50_000], x[70_000] = np.inf, -np.inf
    check(np.cumsum, x)
    check(np.maximum.accumulate, x)
    x[20_000] = np.nan
    check(np.minimum.accumulate, x)
