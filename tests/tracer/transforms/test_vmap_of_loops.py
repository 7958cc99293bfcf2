"""Batches of loops over elements run one example after the other, where that is faster: same results as
Python's loop over the examples, and as all examples at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitney as jt
from jitney.ir.batching.examples import MANY

FEW = 3


def filtered(x: Any, decay: Any = 0.5) -> Any:
    out = np.zeros_like(x)
    out[0] = x[0]
    for i in range(1, x.shape[0]):
        out[i] = out[i - 1] * decay + x[i]
    return out


def distance(a: Any, b: Any) -> Any:
    d = np.zeros((a.shape[0] + 1, b.shape[0] + 1), np.int64)
    for i in range(a.shape[0] + 1):
        d[i, 0] = i
    for j in range(b.shape[0] + 1):
        d[0, j] = j
    for i in range(1, a.shape[0] + 1):
        for j in range(1, b.shape[0] + 1):
            change = d[i - 1, j - 1] + (a[i - 1] != b[j - 1])
            d[i, j] = min(d[i - 1, j] + 1, d[i, j - 1] + 1, change)
    return d[-1, -1]


def histogram(x: Any) -> Any:
    counts = np.zeros(70, np.int64)
    for i in range(x.shape[0]):
        counts[int(x[i] * 70)] += 1
    return counts, x.sum()


def moving(x: Any, window: Any) -> Any:
    out, total = np.zeros_like(x), 0.0
    for i in range(x.shape[0]):
        total += x[i]
        if i >= window:
            total -= x[i - window]
        assert total < 60.0, "large"
        out[i] = total / window
    return out


def summed(x: Any, w: Any) -> Any:
    total = 0.0
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            total += x[i, j] * w[j]
    return total


def examples(size: int) -> dict[str, tuple[Callable[..., Any], list[Any], Any]]:
    rng = np.random.default_rng(size)
    return {
        "filtered": (filtered, [rng.random((size, 90))], 0),
        "decays": (filtered, [rng.random((size, 90)), rng.random(size)], (0, 0)),
        "distance": (distance, [rng.integers(0, 3, (size, 9)), rng.integers(0, 3, 8)], (0, None)),
        "histogram": (histogram, [rng.random((size, 80))], 0),
        "columns": (histogram, [rng.random((80, size))], 1),
        "moving": (moving, [rng.random((size, 60)), rng.integers(1, 9, size)], (0, 0)),
        "one window": (moving, [rng.random((size, 60)), 5], (0, None)),
        "summed": (summed, [rng.random((size, 9, 8)), rng.random(8)], (0, None)),
    }


def one_by_one(function: Callable[..., Any], arrays: list[Any], axes: Any) -> list[Any]:
    axes = axes if isinstance(axes, tuple) else (axes,) * len(arrays)
    size = next(x.shape[a] for x, a in zip(arrays, axes, strict=True) if a is not None)
    parts = [
        [x if a is None else np.take(x, k, a) for x, a in zip(arrays, axes, strict=True)]
        for k in range(size)
    ]
    found = [function(*args) for args in parts]
    if isinstance(found[0], tuple):
        return [np.stack(column) for column in zip(*found, strict=True)]
    return [np.stack(found)]


@pytest.mark.parametrize("size", [FEW, MANY + 5])
@pytest.mark.parametrize("name", examples(1))
def test_as_one_by_one(name: str, size: int) -> None:
    function, arrays, axes = examples(size)[name]
    found = jt.jit(jt.vmap(function, axes))(*arrays)
    found = found if isinstance(found, tuple) else (found,)
    for a, b in zip(found, one_by_one(function, arrays, axes), strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=1e-12)


@pytest.mark.parametrize(
    ("name", "size"), [("distance", FEW), ("moving", FEW), ("moving", MANY + 5)]
)
def test_they_are_loops_of_scalar_code(name: str, size: int) -> None:
    function, arrays, axes = examples(size)[name]
    kernels = jt.jit(jt.vmap(function, axes)).lower(*arrays).kernels
    scalar = [k.ops for k in kernels if k.note.startswith("scalar code")]
    assert any("scan" in ops or len(ops) > 12 for ops in scalar)


def test_batches_of_batches_and_no_examples() -> None:
    x = np.random.default_rng(0).random((2, 3, 80))
    found = jt.jit(jt.vmap(jt.vmap(lambda v: histogram(v)[0])))(x)
    wanted = [[histogram(v)[0] for v in rows] for rows in x]
    np.testing.assert_array_equal(found, wanted)
    assert jt.jit(jt.vmap(filtered))(np.zeros((0, 5))).shape == (0, 5)


def test_what_no_example_changes_stays_one() -> None:
    def f(x: Any, w: Any) -> Any:
        return summed(x, w), filtered(w)

    x, w = np.ones((FEW, 4, 8)), np.arange(8.0)
    sums, own = jt.jit(jt.vmap(f, (0, None), (0, None)))(x, w)
    np.testing.assert_allclose(own, filtered(w))
    np.testing.assert_allclose(sums, [summed(v, w) for v in x])


@pytest.mark.parametrize("size", [FEW, MANY + 5])
def test_derivatives(size: int) -> None:
    x = np.random.default_rng(1).random((size, 7))
    w = np.linspace(0.1, 0.9, 7)

    def loss(x: Any) -> Any:
        return (jt.vmap(filtered)(x) ** 2).sum() + jt.vmap(summed, (0, None))(x[:, None], w).sum()

    gradient = jt.jit(jt.grad(loss))(x)
    step = 1e-6
    for place in ((0, 0), (size - 1, 3)):
        more, less = x.copy(), x.copy()
        more[place] += step
        less[place] -= step
        np.testing.assert_allclose(gradient[place], (loss(more) - loss(less)) / (2 * step), 1e-6)


def test_an_example_that_fails() -> None:
    x = np.full((FEW, 80), 0.5)
    x[1, 4] = 3.0
    with pytest.raises(IndexError):
        jt.jit(jt.vmap(histogram))(x)


@pytest.mark.parametrize("size", [FEW, MANY + 5])
@pytest.mark.parametrize("kind", ["vmap", "guvectorize"])
@pytest.mark.parametrize("backend", ["native", "interpreter"])
def test_checks_of_each_example(kind: str, size: int, backend: str) -> None:
    _, (x, windows), _ = examples(size)["moving"]
    mapped = jt.vmap(moving) if kind == "vmap" else jt.guvectorize("(n),()->(n)", moving)
    f = jt.jit(lambda x, w, do: mapped(x, w) if do else x, backend=backend)
    np.testing.assert_allclose(f(x, windows, True), one_by_one(moving, [x, windows], 0)[0])
    assert f(x[:0], windows[:0], True).shape == (0, 60)
    x[size - 1, 7] = 100.0
    with pytest.raises(AssertionError, match="large"):
        f(x, windows, True)
    np.testing.assert_array_equal(f(x, windows, False), x)
    assert np.isfinite(jt.jit(jt.grad(lambda x: mapped(x, windows).sum()))(x / 100)).all()
