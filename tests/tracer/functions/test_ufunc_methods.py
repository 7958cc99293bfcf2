"""The methods of ufuncs against NumPy's: reduce, accumulate, reduceat, outer, at."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import check, check_raises

import jitney as jt

UFUNCS = sorted(
    {
        u.__name__: u
        for u in vars(np).values()
        if isinstance(u, np.ufunc) and u.signature is None and u is not np.isnat
    }.items()
)
BINARY = [name for name, u in UFUNCS if u.nin == 2 and u.nout == 1]
UNARY = [name for name, u in UFUNCS if u.nin == 1 and u.nout == 1]
# NumPy's loops with AVX-512 forget the accumulator: np.arctan2.reduce([1.0, 2, 3]) is arctan2(1, 3).
FORGETFUL = ("arctan2", "power")
DTYPES = (np.bool_, np.int16, np.uint32, np.float64, np.complex128)
rng = np.random.default_rng(0)


def example(dtype: Any, *shape: int) -> np.ndarray[Any, Any]:
    return (rng.random(shape) * 4 + 1).astype(dtype)


def accepts(ufunc: np.ufunc, dtype: Any) -> bool:
    try:
        ufunc.resolve_dtypes((np.dtype(dtype),) * ufunc.nin + (None,) * ufunc.nout)
    except TypeError:
        return False
    return ufunc.__name__ not in FORGETFUL or dtype == np.complex128


def agrees(f: Any, *arrays: Any, rtol: float | None = None) -> None:
    """The same results, or exceptions that the same `except` catches."""
    copies = [a.copy() if isinstance(a, np.ndarray) else a for a in arrays]
    try:
        with np.errstate(all="ignore"):
            f(*copies)
    except (TypeError, ValueError, IndexError):
        check_raises(f, *arrays)
    else:
        check(f, *arrays, rtol=rtol)


@pytest.mark.parametrize("name", BINARY)
def test_reductions(name: str) -> None:
    ufunc = getattr(np, name)
    for dtype in DTYPES:
        if not accepts(ufunc, dtype) or name == "ldexp":  # NumPy's depends on its buffers
            continue
        a = example(dtype, 3, 6)
        agrees(lambda a: ufunc.reduce(a), a)
        agrees(lambda a: ufunc.reduce(a, axis=-1, keepdims=True), a)
        agrees(lambda a: ufunc.reduce(a, axis=(0, 1)), a)
        agrees(lambda a: ufunc.reduce(a, axis=None, initial=2), a)
        agrees(lambda a: ufunc.reduce(a, axis=1, where=a > 2), a)
        agrees(lambda a: ufunc.reduce(a, axis=1, where=a > 2, initial=1), a)
        for part in (a[:0], a[:1], a[0], a[0, :0], a[0, 0]):
            agrees(lambda a: ufunc.reduce(a), part)
        agrees(lambda a: ufunc.accumulate(a), a)
        agrees(lambda a: ufunc.accumulate(a, axis=-1), a)
        agrees(lambda a: ufunc.accumulate(a), a[:0])
        agrees(lambda a: ufunc.reduceat(a, [0, 2, 1]), a)
        agrees(lambda a, i: ufunc.reduceat(a, i, axis=1), a, np.array([4, 4, 0, 5, 2]))
        agrees(lambda a, i: ufunc.reduceat(a, i), a, np.zeros(0, int))
        agrees(lambda a: ufunc.outer(a, a[0]), a)


@pytest.mark.parametrize("name", BINARY)
def test_at(name: str) -> None:
    ufunc = getattr(np, name)
    for dtype in DTYPES:
        if not accepts(ufunc, dtype) or name in FORGETFUL:
            continue
        a, v, i = example(dtype, 3, 5), example(dtype, 7), rng.integers(-5, 5, 7)

        def flat(a: Any, i: Any, v: Any) -> None:
            ufunc.at(a.reshape(-1), i, v)

        def rows(a: Any, i: Any, v: Any) -> None:
            ufunc.at(a, i % 3, v[:5])
            ufunc.at(a, (slice(None), [0, 0, 1]), v[:3])
            ufunc.at(a, (i % 3, i), 2)
            ufunc.at(a, a > 2, v[1])
            ufunc.at(a, slice(1, None), v[:5])

        agrees(flat, a, i, v, rtol=1e-9)
        agrees(rows, a, i, v, rtol=1e-9)


@pytest.mark.parametrize("name", UNARY)
def test_at_with_one_operand(name: str) -> None:
    ufunc = getattr(np, name)
    for dtype in DTYPES:
        if accepts(ufunc, dtype):
            a, i = example(dtype, 4, 3), np.array([0, 2, 2, -1, 2])
            agrees(lambda a, i: ufunc.at(a, i), a, i)
            agrees(lambda a, i: ufunc.at(a, ([0, 1, 1], 0)), a, i)


@pytest.mark.parametrize("name", FORGETFUL)
def test_what_numpy_forgets(name: str) -> None:
    ufunc, a = getattr(np, name), example(np.float64, 5, 3) / 3
    want = functools.reduce(ufunc, a)
    np.testing.assert_allclose(jt.jit(lambda a: ufunc.reduce(a))(a), want, rtol=1e-12)
    np.testing.assert_allclose(jt.jit(lambda a: ufunc.accumulate(a))(a)[-1], want, rtol=1e-12)
    np.testing.assert_allclose(jt.jit(lambda a: ufunc.reduceat(a, [0]))(a)[0], want, rtol=1e-12)


def test_keywords() -> None:
    a, i = example(np.float64, 4, 6), example(np.int64, 4, 6)

    def f(a: Any, i: Any) -> Any:
        out = np.zeros_like(a[0])
        np.subtract.reduce(a, out=out)
        running, whole = np.zeros_like(a), np.zeros_like(a)
        np.divide.accumulate(a, out=running)
        np.add.reduceat(a, [0, 1, 2, 3], out=whole)
        table = jt.zeros((4, 6, 6))
        np.multiply.outer(a, a[0], out=table, where=table == 0)
        return (
            *(out, running, whole, table, np.add.reduceat(i, [0, 3], axis=1, dtype=np.float32)),
            *(np.subtract.reduce(i, dtype=np.float64), np.maximum.reduce(i, dtype=np.float32)),
            *(np.divide.accumulate(i, dtype=np.complex128), np.logical_and.reduce(a, initial=0)),
            *(
                np.add.outer(i, 1.5, dtype=np.float32, casting="unsafe"),
                np.divmod.outer(i, i[0])[1],
            ),
            np.bitwise_or.reduce(i, axis=(0, 1), where=i > 2, keepdims=True),
        )

    check(f, a, i)
    check(f, a, i, backend="native")


def test_what_methods_refuse() -> None:
    a = example(np.float64, 4, 6)
    for f in (
        lambda a: np.subtract.reduce(a, axis=None),
        lambda a: np.divide.reduce(a[:0]),
        lambda a: np.add.reduce(a[:0], initial=None),
        lambda a: np.less.reduce(a),
        lambda a: np.lcm.reduce(a.astype(int), where=a > 2),
        lambda a: np.add.accumulate(a[0, 0]),
        lambda a: np.add.reduceat(a, [4]),
        lambda a: np.add.reduceat(a, [0, -1]),
        lambda a: np.add.reduceat(a, [[0]]),
        lambda a: np.add.at(a, [0, 1], np.ones(3)),
        lambda a: np.add.at(a, [0, 7], 1.0),
    ):
        assert "test_ufunc_methods.py" in check_raises(f, a)
    for f in (
        *(np.sin.reduce, np.divmod.accumulate, np.sin.outer, jt.sin.reduce, jt.divmod.reduce),
        *(lambda a: np.add.at(a, 0), lambda a: np.modf.at(a, 0), lambda a: jt.modf.at(a, 0)),
    ):
        with pytest.raises((ValueError, TypeError)):
            jt.jit(f)(a)
    for bad in (-1, 4):
        with pytest.raises(IndexError, match="out of bounds"):
            jt.jit(lambda a, i: np.add.reduceat(a, i))(a, np.array([0, bad]))


def test_results_are_cast_one_by_one() -> None:
    """NumPy's loop may be wider than the array: each update is rounded, or wraps, by itself."""

    def f(x: Any, i: Any, v: Any) -> None:
        np.add.at(x, i, v)
        np.maximum.at(x, i, v * 3)
        np.floor_divide.at(x, i, 2)

    i = np.array([0, 1, 1, 0, 0])
    for dtype in (np.float32, np.int8, np.uint8, np.int32):
        for v in (np.array([0.1, 2.7, 1e3, 3, 0.3]), np.array([300, 2, 2**40, -7, 5])):
            with np.errstate(invalid="ignore"):
                want = np.ones(3, dtype)
                f(want, i, v if dtype == np.float32 else np.trunc(v).astype(np.int64))
                got = np.ones(3, dtype)
                jt.jit(f)(got, i, v if dtype == np.float32 else np.trunc(v).astype(np.int64))
            np.testing.assert_array_equal(got, want)


def test_small_floats_are_rounded_one_by_one() -> None:
    rng = np.random.default_rng(0)
    for dtype in (np.float16, jt.bfloat16):
        for ufunc in (np.add, np.subtract, np.multiply):
            for f in (jt.jit(ufunc.at), jt.jit(ufunc.at, backend="interpreter")):
                a, values = rng.random(4).astype(dtype), (rng.random(50) + 0.5).astype(dtype)
                places = rng.integers(0, 4, 50)
                want = a.copy()
                ufunc.at(want, places, values)
                f(a, places, values)
                np.testing.assert_array_equal(a, want)


@settings(max_examples=12, deadline=None)
@given(st.data())
def test_segments_by_blocks(data: st.DataObject) -> None:
    """Long segments go by blocks: at every alignment, in any order."""
    n = data.draw(st.integers(1, 700))
    places = st.integers(0, n - 1)
    starts = np.array(data.draw(st.lists(places, min_size=1, max_size=4)))
    ufunc = data.draw(st.sampled_from([np.add, np.maximum, np.bitwise_xor, np.logical_and]))
    x = np.random.default_rng(n).integers(-3, 90, (2, n))
    check(lambda x, i: ufunc.reduceat(x, i, axis=1), x, starts)
    compiled = _long_segments(ufunc)
    wide = np.resize(x, (3, 700))
    np.testing.assert_array_equal(
        compiled(wide, np.resize(starts, 4)), ufunc.reduceat(wide, np.resize(starts, 4), axis=1)
    )


@functools.cache
def _long_segments(ufunc: np.ufunc) -> Any:
    return jt.jit(lambda x, i: ufunc.reduceat(x, i, axis=1))


GRADIENTS = {
    "divide.at": lambda x, v, i: _at(np.divide, x, v, i),
    "power.at": lambda x, v, i: _at(np.power, x, v, i),
    "multiply.at": lambda x, v, i: _at(np.multiply, x, v, i),
    "maximum.at": lambda x, v, i: _at(np.maximum, x, v, i),
    "logaddexp.at": lambda x, v, i: _at(np.logaddexp, x, v, i),
    "sqrt.at": lambda x, v, i: _at(np.sqrt, x, None, i),
    "divide.reduce": lambda x, v, i: np.divide.reduce(x * v[0]),
    "hypot.reduce": lambda x, v, i: np.hypot.reduce(x),
    "subtract.reduce": lambda x, v, i: np.subtract.reduce(x, where=x > 1.5, initial=v[0]),
    "logaddexp.reduce": lambda x, v, i: np.logaddexp.reduce(x),
    "divide.accumulate": lambda x, v, i: np.divide.accumulate(x),
    "logaddexp.accumulate": lambda x, v, i: np.logaddexp.accumulate(x),
    "add.reduceat": lambda x, v, i: np.add.reduceat(x * x, i),
    "multiply.reduceat": lambda x, v, i: np.multiply.reduceat(x, i),
    "divide.reduceat": lambda x, v, i: np.divide.reduceat(x, i),
}


def _at(ufunc: np.ufunc, x: Any, v: Any, i: Any) -> Any:
    y = x * 1.5
    ufunc.at(y, i, *(() if v is None else (v,)))
    return y


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients(name: str) -> None:
    f = GRADIENTS[name]
    x, v, i = rng.random(6) + 1, rng.random(5) + 1, np.array([0, 3, 3, 1, 5])
    jt.check_grads(lambda x, v: f(x, v, i), (x, v), order=1)
    g = jt.jit(jt.grad(lambda x, v, i: (f(x, v, i) * np.cos(f(x, v, i))).sum()))
    eager = jt.grad(lambda x, v: (f(x, v, i) * np.cos(f(x, v, i))).sum())
    np.testing.assert_allclose(g(x, v, i), eager(x, v), rtol=1e-12)


def test_long_segments_have_gradients() -> None:
    x, i = rng.random(1000), np.array([300, 5, 999, 0])
    g = jt.jit(jt.grad(lambda x, i: (np.add.reduceat(x, i) * np.arange(1.0, 5.0)).sum()))(x, i)
    want = np.zeros(1000)
    parts = (slice(300, 301), slice(5, 999), 999, slice(None))
    for weight, part in zip((1, 2, 3, 4), parts, strict=True):
        want[part] += weight
    np.testing.assert_allclose(g, want)


@pytest.mark.parametrize("name", ["logaddexp", "logaddexp2", "hypot"])
def test_long_prefixes_go_in_chunks(name: str) -> None:
    ufunc = getattr(np, name)
    for shape, axis in (((5000,), 0), ((2, 2049), 1), ((2048, 3), 0)):
        x = rng.normal(size=shape)
        got = jt.jit(lambda x, a=axis: ufunc.accumulate(x, axis=a))(x)
        np.testing.assert_allclose(got, ufunc.accumulate(x, axis=axis), rtol=1e-12)


def test_long_prefixes_have_gradients() -> None:
    x = rng.normal(size=3000)
    gradient = jt.jit(jt.grad(lambda x: np.logaddexp.accumulate(x).sum()))(x)
    sums = np.logaddexp.accumulate(x)
    want = np.exp(x) * np.cumsum(np.exp(-sums)[::-1])[::-1]
    np.testing.assert_allclose(gradient, want, rtol=1e-9)


def test_methods_under_vmap() -> None:
    x, i = rng.random((4, 9)), np.array([0, 5, 2])
    got = jt.jit(jt.vmap(lambda x: np.divide.reduceat(x, i)))(x)
    np.testing.assert_allclose(got, np.divide.reduceat(x, i, axis=1))
    got = jt.jit(jt.vmap(lambda x: np.subtract.accumulate(x)))(x)
    np.testing.assert_allclose(got, np.subtract.accumulate(x, axis=1))
