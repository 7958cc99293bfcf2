"""Loops on the emulated GPU: their gradients, with tapes, and callbacks, by the real executor."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from emulated import TARGET
from emulated import run as plainly
from loop_programs import PROGRAMS, instance
from loops import gradient, run

import jitney as jt
from jitney.codegen.device.compile import compile_device
from jitney.ir.passes import optimise

rng = np.random.default_rng(11)


@pytest.mark.parametrize("f", PROGRAMS)
def test_gradient(f: Any) -> None:
    checkpoint = ["all", "sqrt", 3][PROGRAMS.index(f) % 3]
    graph, _ = instance(f, 1, checkpoint=checkpoint)
    backward = gradient(graph)
    program = compile_device(optimise(backward), TARGET)
    for trips in (0, 4):
        _, arrays = instance(f, trips)
        arrays += [rng.normal(size=v.shape) for v in backward.params[len(arrays) :]]
        arrays = [np.asarray(a) for a in arrays]
        for got, want in zip(plainly(program, arrays), run(backward, *arrays), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-11, atol=1e-13)


# By the real executor.


@pytest.fixture
def on_gpu() -> Iterator[None]:
    with jt.config(cuda="emulate"):
        yield


def check(f: Any, *args: Any) -> None:
    want, got = jt.jit(f)(*args), jt.jit(f, device="cuda")(*args)
    for g, w in zip(jt.tree.leaves(got), jt.tree.leaves(want), strict=True):
        assert type(g) is jt.DeviceArray
        np.testing.assert_allclose(np.asarray(g), w, rtol=1e-9, atol=1e-12)


def shrinking(x):
    """Ends by its values."""

    def body(c):
        return np.sin(c[0]) * c[0] * 1.5, c[1] + 1

    return jt.while_loop(lambda c: (np.abs(c[0]).sum() > 1e-3) & (c[1] < 20), body, (x, 0))[0].sum()


def mixed_scan(x):
    def body(c, row):
        c = jt.cond(row.sum() > 0, lambda c: np.tanh(c + row), lambda c: c * 0.5, c)
        return c, c.max()

    last, tops = jt.scan(body, x[0], x)
    return last.sum() + tops.sum()


@pytest.mark.parametrize("f", [shrinking, mixed_scan], ids=lambda f: f.__name__)
def test_loops_and_their_gradients(f: Any, on_gpu: None) -> None:
    x = rng.normal(size=(6, 40))
    check(f, x)
    check(jt.grad(f), x)
    check(jt.jit(jt.grad(f), device="cuda"), x)


def test_a_loop_of_numbers_is_one_launch(on_gpu: None) -> None:
    """A thousand trips without the host, and without a launch for each."""

    def series(n):
        return jt.while_loop(
            lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] + 1.0 / c[0] ** 2), (1, 0.0)
        )[1]

    check(series, 1000)
    (kernel,) = jt.jit(series, device="cuda").lower(1000).kernels
    assert kernel.note == "scalar code"


def test_callbacks(on_gpu: None) -> None:
    seen: list[float] = []

    def f(x):
        inverse = jt.pure_callback(np.linalg.inv, jt.ShapeDtype((5, 5), np.float64), x)
        total = inverse.sum()
        jt.io_callback(lambda t: seen.append(float(t)), None, total)
        return inverse @ x, total

    x = rng.normal(size=(5, 5)) + 5 * np.eye(5)
    inverse, total = jt.jit(f, device="cuda")(x)
    np.testing.assert_allclose(np.asarray(inverse), np.eye(5), atol=1e-9)
    assert seen and seen == [float(total)]


def test_programs_of_many_kinds(on_gpu: None) -> None:
    x = rng.normal(size=(8, 30))
    z = x[0] + 1j * x[1]

    def everything(x, z, i):
        y = x.copy()
        y[1:-1] = (y[:-2] + y[2:]) / 2
        y[y > 1] = 1
        counts = jt.zeros(10)
        np.add.at(counts, i, x[0])
        return (
            y, counts, np.median(x, axis=0), np.argsort(x, axis=1), np.sort(x.ravel())[-3:],
            np.cumsum(x, axis=1), np.exp(1j * z), np.abs(z * z.conj()), np.einsum("ij,kj->ik", x, x),
            jt.logsumexp(x, axis=1), np.searchsorted(np.sort(x[0]), x[1]), np.quantile(x, 0.3),
            jt.vmap(lambda n: jt.while_loop(lambda c: c < n, lambda c: c * 2 + 1, 0))(i),
        )  # fmt: skip

    check(everything, x, z, rng.integers(0, 10, 30))
