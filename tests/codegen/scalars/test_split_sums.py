"""Sums into neighbours: to the last bit as in Python, in loops of which each is vectors."""

from __future__ import annotations

import numpy as np
import pytest

import jitney as jt
from jitney.codegen.limits import TINY, limited


def spread_up(a, out):
    for i in range(1, a.shape[0] - 1):
        for j in range(2, a.shape[1] - 1):
            v = a[i, j] * 0.1
            out[i, j + 1] += v
            out[i, j] += a[i - 1, j]
            out[i - 1, j] += v * a[i, j]
            out[i, j - 2] += v
            out[i, j] -= 0.3


def spread_down(a, out):
    for i in range(a.shape[0] - 2, 0, -1):
        for j in range(a.shape[1] - 2, 1, -1):
            v = a[i, j] / 3
            out[i, j - 2] += v
            out[i + 1, j] += v
            out[i, j] += v * v
            out[i, j + 1] += a[i, j - 1]


def in_one_row(a, out):
    x, y = a.ravel(), out.ravel()
    for i in range(0, x.shape[0] - 4, 2):
        y[i] += x[i]
        y[i + 2] += x[i + 1]
        y[i + 4] += 0.7


def read_again(a, out):
    for i in range(1, a.shape[0] - 1):
        for j in range(1, a.shape[1] - 1):
            out[i, j - 1] += a[i, j]
            out[i - 1, j + 1] += out[i, j] * 0.1


def under_conditions(a, out):
    for i in range(1, a.shape[0] - 1):
        for j in range(1, a.shape[1] - 1):
            rest = a[i, j]
            if rest > 0.2:
                out[i, j + 1] += rest
                rest = 0.5 * rest
            if a[i, j - 1] > 0.0:
                out[i - 1, j] += rest
                rest = -0.0
            else:
                out[i, j - 1] += a[i, j]
            out[i, j] += rest


@pytest.mark.parametrize(
    "f",
    [spread_up, spread_down, in_one_row, read_again, under_conditions],
    ids=lambda f: f.__name__,
)
def test_as_in_python(f):
    a, out = np.random.default_rng(1).standard_normal((2, 7, 40))
    out[2] = -0.0
    a[3, ::7] = [np.inf, np.nan, 0.0, -0.0, 1e300, -np.inf]
    wanted = out.copy()
    with np.errstate(all="ignore"):
        f(a, wanted)
    with limited(TINY):
        jt.jit(f)(a, out)
    np.testing.assert_array_equal(out, wanted)
    np.testing.assert_array_equal(np.signbit(out), np.signbit(wanted))


def reaction(u):
    out = np.zeros(u.shape)
    for i in range(1, u.shape[0] - 1):
        for j in range(1, u.shape[1] - 1):
            sides = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1]
            out[i, j] = u[i, j] + 0.1 * (sides - 4 * u[i, j]) * u[i, j]
    return (out * out).sum()


def largest_near(u):
    out = np.zeros(u.shape)
    for i in range(1, u.shape[0] - 1):
        for j in range(1, u.shape[1] - 1):
            best = u[i, j]
            for p in range(-1, 2):
                for q in range(-1, 2):
                    if u[i + p, j + q] > best:
                        best = u[i + p, j + q]
            out[i, j] = best
    return (out * out).sum()


@pytest.mark.parametrize("f", [reaction, largest_near])
def test_the_adjoint_of_a_stencil_is_loops_of_vectors(f):
    u = np.random.default_rng(2).random((9, 40))
    gradient = jt.jit(jt.grad(f))
    with limited(TINY):
        report = str(gradient.explain(u))
        found = gradient(u)
    assert (
        report.count("for 38 iterations") >= 6
    )  # that of the function, and one for each neighbour
    assert "branch" not in report.split("for 38 iterations")[-1]
    np.testing.assert_array_equal(found, jt.jit(jt.grad(f), backend="interpreter")(u))
    way = np.random.default_rng(3).standard_normal(u.shape)
    there, back = f(u + 1e-7 * way), f(u - 1e-7 * way)
    np.testing.assert_allclose((found * way).sum(), (there - back) / 2e-7, rtol=1e-5)
