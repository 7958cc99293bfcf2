"""Pooling, window reductions and resizing."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jitney as jt

rng = np.random.default_rng(1)
REDUCE = {"sum": np.sum, "max": np.max, "min": np.min, "prod": np.prod}


def covered(x: np.ndarray, options: dict[str, Any]) -> Any:
    """For each place of a window the elements of x that it covers, in order."""
    places = [
        max((n + low + high - (k - 1) * d - 1) // s + 1, 0)
        for n, k, s, (low, high), d in zip(
            x.shape,
            *(options[n] for n in ("window", "strides", "padding", "dilation")),
            strict=True,
        )
    ]
    cells = np.empty(places, object)
    for p in product(*map(range, places)):
        axes = [
            [i for i in (a * s + j * d - low for j in range(k)) if 0 <= i < n]
            for a, n, k, s, (low, _), d in zip(
                p,
                x.shape,
                *(options[n] for n in ("window", "strides", "padding", "dilation")),
                strict=True,
            )
        ]
        cells[p] = list(product(*axes))
    return cells


@st.composite
def problems(draw: Any) -> tuple[np.ndarray, dict[str, Any]]:
    rank = draw(st.integers(1, 3))
    shape = [draw(st.integers(1, 6)) for _ in range(rank)]
    options = {
        "window": [draw(st.integers(1, 3)) for _ in shape],
        "strides": [draw(st.integers(1, 3)) for _ in shape],
        "padding": [(draw(st.integers(0, 2)), draw(st.integers(0, 2))) for _ in shape],
        "dilation": [draw(st.integers(1, 2)) for _ in shape],
    }
    if draw(st.booleans()):  # too large to be unrolled
        options["window"][0], options["padding"][0] = 40, (38, 20)
    dtype = draw(st.sampled_from([np.float32, np.float64, np.int32, np.uint8]))
    values = (
        rng.integers(0, 9, shape) if draw(st.booleans()) else rng.permutation(int(np.prod(shape)))
    )
    return values.reshape(shape).astype(dtype), options


@settings(max_examples=20, deadline=None)
@given(problems(), st.sampled_from(sorted(REDUCE)))
def test_reduce_window(problem: tuple[np.ndarray, dict[str, Any]], op: str) -> None:
    x, options = problem
    cells = covered(x, options)
    f = lambda x: jt.reduce_window(x, op, **options)  # noqa: E731
    for g in (f, jt.jit(f)):
        got = g(x)
        assert got.dtype == x.dtype and got.shape == cells.shape
        for p in np.ndindex(cells.shape):
            values = np.array([x[i] for i in cells[p]], x.dtype)
            if values.size:
                want = (
                    REDUCE[op](values)
                    if op in ("max", "min")
                    else REDUCE[op](values, dtype=x.dtype)
                )
                np.testing.assert_allclose(got[p], want, rtol=1e-5)


@settings(max_examples=12, deadline=None)
@given(problems(), st.sampled_from(["sum", "max", "min"]))
def test_native_gradients(problem: tuple[np.ndarray, dict[str, Any]], op: str) -> None:
    """Ties and all: the first extreme element takes the cotangent of its window."""
    x, options = problem
    x = x.astype(np.float64)
    cells = covered(x, options)
    ct = rng.standard_normal(cells.shape)
    want = np.zeros(x.shape)
    for p in np.ndindex(cells.shape):
        values = [x[i] for i in cells[p]]
        if values and op != "sum":
            want[cells[p][int(np.argmax(values) if op == "max" else np.argmin(values))]] += ct[p]
        elif values:
            for i in cells[p]:
                want[i] += ct[p]
    pull = lambda x, ct: jt.vjp(lambda x: jt.reduce_window(x, op, **options), x)[1](ct)[0]  # noqa: E731
    for g in (pull, jt.jit(pull)):
        np.testing.assert_allclose(g(x, ct), want, rtol=1e-9, atol=1e-9)
    tangent = rng.standard_normal(x.shape)
    push = lambda x, t: jt.jvp(lambda x: jt.reduce_window(x, op, **options), (x,), (t,))[1]  # noqa: E731
    for g in (push, jt.jit(push)):
        np.testing.assert_allclose(np.sum(g(x, tangent) * ct), np.sum(want * tangent), atol=1e-8)


@pytest.mark.parametrize("op", sorted(REDUCE))
@pytest.mark.parametrize("window", [(1, 2, 3), (2, 1, 1)])
def test_finite_differences(op: str, window: tuple[int, ...]) -> None:
    x = rng.permutation(60).reshape(3, 4, 5) / 20.0
    pads = [(k // 2, 0) for k in window]
    f = lambda x: jt.reduce_window(x, op, window, (1, 2, 1), pads)  # noqa: E731
    jt.check_grads(f, (x,), order=2)
    jt.check_grads(jt.jit(f), (x,), order=1)


def test_max_pool() -> None:
    x = rng.standard_normal((2, 9, 8, 5)).astype(np.float32)
    want = x[:, :8].reshape(2, 4, 2, 4, 2, 5).max((2, 4))
    f = lambda x: jt.max_pool(x, 2)  # noqa: E731
    for g in (f, jt.jit(f)):
        np.testing.assert_array_equal(g(x), want)
    first = jt.max_pool(x.transpose(0, 3, 1, 2), (2, 2), layout="NCHW")
    np.testing.assert_array_equal(first, want.transpose(0, 3, 1, 2))
    assert jt.max_pool(x, 3, 2, "SAME").shape == (2, 5, 4, 5)
    assert jt.max_pool(x[:, 0], 3, 1, "SAME").shape == (2, 8, 5)
    assert (jt.max_pool(-np.abs(x) - 1, 3, 1, "SAME") < 0).all()  # padding does not win
    x[0, 0, 0, 0] = np.nan
    for g in (f, jt.jit(f)):
        y = g(x)
        assert np.isnan(y[0, 0, 0, 0]) and np.isnan(y).sum() == 1
    gradient = jt.jit(jt.grad(lambda x: f(x).sum()))(x)
    assert gradient[0, 0, 0, 0] == 1


def test_ties_go_to_the_first() -> None:
    x = np.zeros((1, 4, 4, 1))
    for grad in (jt.grad, lambda f: jt.jit(jt.grad(f))):
        got = grad(lambda x: jt.max_pool(x, 2).sum())(x)[0, :, :, 0]
        assert got.tolist() == [[1, 0, 1, 0], [0] * 4, [1, 0, 1, 0], [0] * 4]
        got = grad(lambda x: jt.max_pool(x, 3, 1, "SAME").sum())(x)[0, :, :, 0]
        assert got[0].tolist() == [4, 2, 2, 0] and got.sum() == 16


def test_avg_pool() -> None:
    x = rng.standard_normal((2, 7, 6, 3))
    inner = jt.avg_pool(x, (2, 3))
    np.testing.assert_allclose(inner, x[:, :6].reshape(2, 3, 2, 2, 3, 3).mean((2, 4)))
    for include in (False, True):
        f = lambda x, include=include: jt.avg_pool(x, 3, 1, "SAME", count_include_pad=include)  # noqa: E731
        for g in (f, jt.jit(f)):
            got = g(x)
            np.testing.assert_allclose(
                got[:, 0, 0], x[:, :2, :2].sum((1, 2)) / (9 if include else 4)
            )
            np.testing.assert_allclose(got[:, 1, 1], x[:, :3, :3].mean((1, 2)))
        jt.check_grads(f, (x,), order=1)
    whole = jt.jit(lambda x: jt.avg_pool(x, (7, 6)))(x)
    np.testing.assert_allclose(whole, x.mean((1, 2), keepdims=True))
    assert jt.avg_pool(np.arange(8).reshape(1, 8, 1), 2).dtype == np.float64


def test_vmap() -> None:
    x = rng.standard_normal((3, 2, 6, 6, 4))
    for f in (lambda x: jt.max_pool(x, 2), lambda x: jt.avg_pool(x, 3, 2, "SAME")):
        want = np.stack([f(e) for e in x])
        np.testing.assert_allclose(jt.jit(jt.vmap(f))(x), want, rtol=1e-12)
        pull = jt.grad(lambda x, f=f: (f(x) ** 2).sum())
        want = np.stack([pull(e) for e in x])
        np.testing.assert_allclose(jt.jit(jt.vmap(pull))(x), want, rtol=1e-12, atol=1e-12)


def test_errors() -> None:
    x = np.zeros((1, 4, 4, 1))
    with pytest.raises(ValueError, match="not be negative"):
        jt.max_pool(x, 2, padding=-1)
    with pytest.raises(ValueError, match="window"):
        jt.max_pool(x, (2, 2, 2))
    with pytest.raises(TypeError, match="booleans"):
        jt.max_pool(x > 0, 2)
    with pytest.raises(ValueError, match="median"):
        jt.reduce_window(x, "median", 2)
    with pytest.raises(ValueError, match=r"\(4, 4\)"):
        jt.image.resize(x, (4, 4))
    with pytest.raises(ValueError, match="sharp"):
        jt.image.resize(x, (1, 8, 8, 1), "sharp")
    with pytest.raises(ValueError, match="no elements"):
        jt.image.resize(x[:, :0], (1, 8, 8, 1))


# resize


def test_resize_linear() -> None:
    x = np.array([1.0, 3.0, 5.0, 4.0])
    np.testing.assert_allclose(jt.image.resize(x, (8,)), [1, 1.5, 2.5, 3.5, 4.5, 4.75, 4.25, 4])
    np.testing.assert_allclose(jt.image.resize(x, (2,), antialias=False), [2, 4.5])
    # Half the size: the triangle is two elements wide on each side.
    share = np.array([[3, 3, 1, 0], [0, 1, 3, 3]]) / 7
    np.testing.assert_allclose(jt.image.resize(x, (2,)), share @ x)


def test_resize_reproduces_polynomials() -> None:
    """Away from the edges linear keeps lines, and Keys' cubic parabolas."""
    t = np.arange(20.0)
    inner = (np.arange(50) + 0.5) * 20 / 50 - 0.5
    keep = slice(8, 42)
    got = jt.image.resize(3 * t - 1, (50,))
    np.testing.assert_allclose(got[keep], (3 * inner - 1)[keep], rtol=1e-12)
    got = jt.image.resize(t * t - t, (50,), "cubic")
    np.testing.assert_allclose(got[keep], (inner * inner - inner)[keep], rtol=1e-12)
    for method in ("linear", "cubic", "lanczos3", "lanczos5", "nearest"):
        for size in (7, 20, 50):
            np.testing.assert_allclose(jt.image.resize(np.ones(20), (size,), method), 1, rtol=1e-12)


def test_resize_nearest() -> None:
    x = np.arange(5)
    assert jt.image.resize(x, (10,), "nearest").tolist() == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]
    assert jt.image.resize(x, (3,), "nearest").tolist() == [0, 2, 4]
    got = jt.image.resize(x > 2, (7,), "nearest")
    assert got.dtype == bool and got.tolist() == [False] * 4 + [True] * 3


@pytest.mark.parametrize("method", ["nearest", "bilinear", "bicubic", "lanczos3"])
def test_resize_images(method: str) -> None:
    x = rng.standard_normal((2, 6, 9, 3))
    f = lambda x: jt.image.resize(x, (2, 12, 5, 3), method)  # noqa: E731
    want = np.stack([jt.image.resize(e, (12, 5, 3), method) for e in x])
    for g in (f, jt.jit(f)):
        np.testing.assert_allclose(g(x), want, rtol=1e-12, atol=1e-12)
    jt.check_grads(f, (x,), order=1)
    assert jt.jit(f)(x.astype(np.float32)).dtype == np.float32
