"""Adjoints of loops over elements: what an iteration did to few elements costs few backwards."""

import numpy as np
import pytest

import jitney as jt
from jitney.ir.passes import optimise
from jitney.ir.types import TensorType


def stencil(a):
    out = np.zeros(a.shape)
    for i in range(1, a.shape[0] - 1):
        for j in range(1, a.shape[1] - 1):
            out[i, j] = a[i - 1, j] * a[i + 1, j] + a[i, j - 1] - a[i, j + 1]
    return (out**2).sum()


def filtered(a):
    x = a.ravel()
    y = np.zeros(x.size)
    y[0] = x[0]
    for i in range(1, x.size):
        y[i] = 0.9 * y[i - 1] + 0.1 * x[i]
    return (y * y).sum()


def branches(a):
    s = 0.0
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            if a[i, j] > 0.5:
                s += np.sin(a[i, j]) * a[i - 1, j]
            elif a[i, j] < 0.2:
                s -= a[i, j] * a[i, j]
    return s


def in_place(a):
    for i in range(1, a.shape[0]):
        for j in range(a.shape[1]):
            a[i, j] += 0.5 * a[i - 1, j] * a[i, j]
    return a.sum()


def pairs(a):
    e = 0.0
    for i in range(a.shape[0]):
        for j in range(i):
            d = a[i, 0] - a[j, 1]
            e += 1 / (d * d + 0.1)
    return e


def diffused(a):
    u = a.ravel().copy()
    for _ in range(20):
        v = u.copy()
        for i in range(1, u.size - 1):
            u[i] = v[i] + 0.2 * (v[i - 1] - 2 * v[i] + v[i + 1])
    return (u * u).sum()


KERNELS = [stencil, filtered, branches, in_place, pairs, diffused]


@pytest.mark.parametrize("f", KERNELS)
def test_derivatives(f):
    x = np.random.default_rng(1).random((9, 10))
    jt.check_grads(jt.jit(f), (x,))
    np.testing.assert_allclose(
        jt.jit(jt.grad(f))(x.copy()),
        jt.jit(jt.grad(f), backend="interpreter")(x.copy()),
        rtol=1e-12,
    )


@pytest.mark.parametrize("f", [stencil, filtered, in_place, pairs, branches])
def test_an_iteration_backwards_does_nothing_to_whole_arrays(f):
    graph = optimise(jt.jit(jt.grad(f)).trace(np.ones((30, 31))))
    for op in graph.walk():
        for region in op.regions if op.name in ("scan", "while") else ():
            for inner in region.walk():
                if inner.definition.pointwise and isinstance(inner.result.type, TensorType):
                    assert not inner.result.shape, inner


def test_second_derivatives():
    x = np.random.default_rng(2).random((4, 5))

    def norm(x):
        return (jt.grad(stencil)(x) ** 2).sum() + (jt.grad(branches)(x) ** 2).sum()

    jt.check_grads(jt.jit(norm), (x,), order=1)
