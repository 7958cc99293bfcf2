"""Indices that are out of range: `jt.at(x)[i].method(mode=...)`, `jit(boundscheck=False)`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import run

import jitney as jt

UFUNCS = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.divide,
    "power": np.power,
    "min": np.minimum,
    "max": np.maximum,
}
DTYPES = (np.float64, np.float32, np.int32, np.uint8, np.bool_, np.complex128)
MODES = ("clip", "wrap", "fill", "drop")


def place(i: int, n: int, mode: str) -> int | None:
    """Where an index out of range goes, by definition; None: nowhere."""
    if mode == "wrap":
        return i % n
    i = i + n if i < 0 else i
    if mode == "clip":
        return min(max(i, 0), n - 1)
    return i if 0 <= i < n else None


def expected(x: Any, index: tuple[Any, ...], how: str, value: Any, mode: str, fill: Any) -> Any:
    """One element of the index after the other; `index` has an array for each axis."""
    arrays = np.broadcast_arrays(*index)
    shape = arrays[0].shape
    out = x.copy()
    got = np.full(shape, fill, x.dtype)
    values = np.broadcast_to(np.asarray(value).astype(x.dtype), shape)
    for at in np.ndindex(shape):
        spot = tuple(place(int(a[at]), n, mode) for a, n in zip(arrays, x.shape, strict=True))
        if None in spot:
            continue
        if how == "get":
            got[at] = x[spot]
        elif how == "set":
            out[spot] = values[at]
        elif how == "apply":
            out[spot] = np.sqrt(out[spot])
        else:
            ufunc = np.logical_or if (how, x.dtype.kind) == ("add", "b") else UFUNCS[how]
            out[spot] = np.asarray(ufunc(out[spot], values[at])).astype(x.dtype)
    return got if how == "get" else out


def accepts(how: str, dtype: Any) -> bool:
    kind = np.dtype(dtype).kind
    return not (
        (kind == "b" and how in ("subtract", "multiply", "divide", "power", "min", "max", "apply"))
        or (kind == "c" and how in ("min", "max"))
    )


def call(x: Any, index: Any, how: str, value: Any, mode: str, fill: Any, unique: bool) -> Any:
    at = jt.at(x)[index]
    if how == "get":
        return at.get(mode=mode, fill_value=fill)
    if how == "apply":
        return at.apply(np.sqrt, mode=mode, unique_indices=unique)
    return getattr(at, how)(value, mode=mode, unique_indices=unique)


@settings(max_examples=50, deadline=None)
@given(st.data())
def test_against_the_definition(data: st.DataObject) -> None:
    shape = data.draw(st.sampled_from([(5,), (3, 4), (2, 3, 2), (1,)]))
    how = data.draw(st.sampled_from(["get", "set", "apply", *UFUNCS]))
    dtype = data.draw(st.sampled_from(DTYPES).filter(lambda d: accepts(how, d)))
    mode = data.draw(st.sampled_from(MODES))
    count = data.draw(st.integers(0, 6))
    arrays = [
        np.array(data.draw(st.lists(st.integers(-2 * n, 2 * n), min_size=count, max_size=count)))
        for n in shape
    ]
    arrays = [a.astype(np.int64) for a in arrays]
    if data.draw(st.booleans()):
        arrays[0] = np.asarray(data.draw(st.integers(-9, 9)))
    rng = np.random.default_rng(count)
    x = (rng.random(shape) * 9 + 1).astype(dtype)
    value = (rng.random(np.broadcast_shapes(*(a.shape for a in arrays))) * 3 + 1).astype(dtype)
    fill = 7
    with np.errstate(all="ignore"):
        want = expected(x, tuple(arrays), how, value, mode, fill)
        static = tuple(int(a) if a.ndim == 0 else a for a in arrays)
        kind = data.draw(st.sampled_from(["eager", "traced", "static", "native"]))
        if kind == "eager":
            got = call(x, static, how, value, mode, fill, False)
        elif kind == "static":
            f = lambda x, v: call(x, static, how, v, mode, fill, False)  # noqa: E731
            got = run(f, x, value)
        else:
            f = lambda x, v, *i: call(x, i, how, v, mode, fill, False)  # noqa: E731
            got = run(f, x, value, *arrays, backend="native" if kind == "native" else None)
    assert np.asarray(got).dtype == x.dtype
    np.testing.assert_allclose(got, want, rtol=1e-5)


def test_rows_and_slices_beside() -> None:
    x = np.arange(24.0).reshape(2, 3, 4)
    i = np.array([1, -5, 3])
    got = run(lambda x, i: jt.at(x)[1, :, i].get(mode="fill", fill_value=-1), x, i)
    np.testing.assert_array_equal(got, [x[1, :, 1], np.full(3, -1), x[1, :, 3]])
    got = run(lambda x, i: jt.at(x)[:, i, 1:3].add(10, mode="drop"), x, i)
    want = x.copy()
    want[:, 1, 1:3] += 10
    np.testing.assert_array_equal(got, want)
    got = run(lambda x: jt.at(x)[5, ..., 9].get(mode="clip"), x)
    np.testing.assert_array_equal(got, x[1, :, 3])
    got = run(lambda x: jt.at(x)[7].set(0, mode="drop"), x)
    np.testing.assert_array_equal(got, x)
    got = run(lambda x: jt.at(x)[x > 5].multiply(2, mode="clip"), x)
    np.testing.assert_array_equal(got, np.where(x > 5, x * 2, x))


def test_default_fills() -> None:
    for dtype, fill in (
        (np.float32, np.nan),
        (np.complex128, np.nan),
        (np.int8, -128),
        (np.uint16, 65535),
        (np.bool_, True),
    ):
        x, i = np.zeros(3, dtype), np.array([0, 3])
        for f in (
            jt.jit(lambda x, i: jt.at(x)[i].get(mode="fill")),
            lambda x, i: jt.at(x)[i].get(mode="fill"),
        ):
            got = f(x, i)
            assert got.dtype == dtype
            np.testing.assert_array_equal(got, np.array([0, fill]).astype(dtype))


def test_axes_of_size_zero() -> None:
    z, i = np.zeros((0, 2)), np.array([0, 1])
    got = run(lambda z, i: jt.at(z)[i].get(mode="fill", fill_value=5), z, i)
    np.testing.assert_array_equal(got, np.full((2, 2), 5.0))
    assert run(lambda z, i: jt.at(z)[i].set(1, mode="drop"), z, i).shape == (0, 2)
    for mode in ("clip", "wrap"):
        with pytest.raises(IndexError, match="size 0"):
            run(lambda z, i, m=mode: jt.at(z)[i].get(mode=m), z, i)
    with pytest.raises(IndexError):
        run(lambda z, i: jt.at(z)[i].get(), z, i)


def test_repeated_indices_apply_repeatedly_unless_they_are_promised_unique() -> None:
    x, i = np.array([16.0, 81.0]), np.array([0, 0])
    f = jt.jit(lambda x, i: jt.at(x)[i].apply(np.sqrt))
    np.testing.assert_array_equal(f(x, i), [2.0, 81.0])
    g = jt.jit(lambda x, i: jt.at(x)[i].divide(2.0, unique_indices=True))
    np.testing.assert_array_equal(g(x, np.array([1, 0])), [8.0, 40.5])
    assert "scan" in str(f.trace(x, i)) and "scan" not in str(g.trace(x, i))


@pytest.mark.parametrize("mode", MODES)
def test_gradients(mode: str) -> None:
    x, v, i = np.array([1.0, 2.0, 3.0]), np.array([0.5, 1.5, 2.5, 4.0]), np.array([0, 5, -5, 2])
    jt.check_grads(lambda x: jt.at(x)[i].get(mode=mode, fill_value=0.0) ** 2, (x,), order=1)
    for how in ("set", "add", "multiply", "divide", "power", "max"):
        f = lambda x, v, h=how: getattr(jt.at(x * 1.1)[i], h)(v, mode=mode) ** 2  # noqa: E731
        jt.check_grads(f, (x, v), order=1)


def test_checked_by_default_and_names_what_is_wrong() -> None:
    x, i = np.zeros((2, 3)), np.array([0, 4])
    for f in (
        lambda x, i: x[:, i],
        lambda x, i: jt.at(x)[:, i].get(),
        lambda x, i: np.add.at(x, (0, i), 1.0),
    ):
        with pytest.raises(IndexError, match=r"(?s)index 4 .*size 3.*test_index_modes\.py"):
            jt.jit(f)(x, i)
    with pytest.raises(ValueError, match="choose one of"):
        jt.at(x)[0].get(mode="nearest")
    with pytest.raises(TypeError, match="unexpected keyword"):
        jt.at(x)[0].set(1, method="clip")


def test_functions_without_checks() -> None:
    x, i = np.arange(5.0), np.array([0, -1, 7, -9])

    def f(x: Any, i: Any) -> Any:
        y = x.copy()
        y[i] = 9
        np.add.at(y, i, 1)
        last = jt.fori_loop(0, 9, lambda k, s: s + x[k], 0.0)
        return x[i], y, last, x[i[2]]

    read, written, last, one = jt.jit(f, boundscheck=False)(x, i)
    np.testing.assert_array_equal(read, [0, 4, 4, 0])
    np.testing.assert_array_equal(written, [11, 1, 2, 3, 11])
    assert last == 10 + 4 * 4 and one == 4
    with pytest.raises(IndexError):
        jt.jit(f)(x, i)
    with pytest.raises(ValueError, match="boundscheck"):
        jt.jit(f, boundscheck="no")
    text = str(jt.jit(f, boundscheck=False).trace(x, i))
    assert 'mode="check"' not in text and 'mode="check"' in str(jt.jit(f).trace(x, i))
    with pytest.raises(IndexError):  # what is known beforehand is checked anyway
        jt.jit(lambda x: x[7], boundscheck=False)(x)


def test_promised_indices_are_taken_as_they_are() -> None:
    f = jt.jit(lambda x, i: jt.at(x)[i].get(mode="promise_in_bounds"))
    np.testing.assert_array_equal(f(np.arange(4.0), np.array([3, 0])), [3, 0])
    assert len(f.trace(np.arange(4.0), np.array([3, 0])).ops) == 1


def test_arrays_on_a_gpu() -> None:
    x, i, v = np.arange(1.0, 7.0), np.array([0, 9, -8, 3]), np.array([2.0, 3.0, 4.0, 5.0])
    with jt.config(cuda="emulate"):
        on_gpu = [jt.device_put(a, "cuda") for a in (x, i, v)]
        for mode in MODES:
            for how in ("get", "set", "add", "divide", "max"):
                f = lambda x, i, v, m=mode, h=how: call(x, (i,), h, v, m, 7, False)  # noqa: E731
                want = expected(x, (i,), how, v, mode, 7)
                np.testing.assert_allclose(np.asarray(f(*on_gpu)), want)
                np.testing.assert_allclose(np.asarray(jt.jit(f)(*on_gpu)), want)
        for each in (jt.sqrt, jt.exp):
            got = jt.at(on_gpu[0])[[1, 1]].apply(each)
            np.testing.assert_allclose(np.asarray(got)[1], each(each(2.0)))


@pytest.mark.parametrize("backend", ["native", "interpreter"])
def test_errors_name_the_axis_as_the_user_numbers_it(backend: str) -> None:
    x, i = np.zeros((2, 3)), np.array([0, 4])
    for f, axis in (
        (lambda x, i: x[:, i], 1),
        (lambda x, i: x[0, i], 1),
        (lambda x, i: x[..., i[1]], 1),
        (lambda x, i: x[None, i], 0),
        (lambda x, i: np.take(x, i, axis=1), 1),
        (lambda x, i: jt.vmap(lambda row: row[i])(x), 0),
        (lambda x, i: np.add.at(x, (0, i), 1.0), 1),
        (lambda x, i: jt.at(x)[0, i].set(1.0), 1),
        (lambda x, i: jt.grad(lambda x: x[:, i].sum())(x), 1),
        (lambda x, i: jt.fori_loop(0, 5, lambda k, s: s + x[1, k], 0.0), 1),
    ):
        with pytest.raises(IndexError, match=f"out of bounds for axis {axis} with size") as caught:
            jt.jit(f, backend=backend)(x, i)
        assert backend != "native" or "test_index_modes.py" in caught.value.__notes__[0]
