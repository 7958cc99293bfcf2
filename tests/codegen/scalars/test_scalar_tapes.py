"""Tapes in scalar code: pushes and pops where loops stand, against the interpreter and differences."""

import numpy as np
import pytest

import jitney as jt
from jitney.codegen.kernels.tape.cpu_tapes import places


def numbers(x, n):
    """Records of numbers of several sizes, flags among them."""
    s, t, k, up = x[0], np.float32(0.5), np.int8(3), True
    while s < 40.0 and k < n:
        s = s + np.sin(s) * x[k % 3] if up else s * 1.1 + x[1] * t
        t = np.float32(np.cos(s)) * t + np.float32(0.1)
        k = np.int8(k + 1) if up else np.int8(k + 2)
        up = s < 9.0
    return s * s + t


def arrays(x, n):
    """Records of small arrays."""
    a, b = np.eye(2) * x[0], x * 1.0
    i = 0
    while i < n and b[0] < 50:
        a = np.sin(a @ a + b[:2])
        b = b * a[0, 1] + np.where(b > a[1, 0], b, x)
        i += 1
    return (a * a).sum() + (b**3).sum()


def nested(x, n):
    """Tapes in records, of which some are empty."""
    s = x[0]
    for i in range(n):
        t = x[i % 3]
        for j in range(i % 4):
            t = np.sin(t * s)
            for k in range(j):
                t = t * np.cos(t) + s * x[k]
        if t > 0.3:
            for _ in range(i % 3):
                s = s + np.sin(s * t) * 0.1
        s = s * 0.9 + t
    return s * s


def large(x, n):
    """Large arrays are kept by an outer loop, numbers by the loop inside."""
    y = np.sin(np.arange(500.0) * x[0])
    s = x[1]
    for i in range(n):
        y = np.sin(y * 0.5 + s * 0.1)
        t = x[2]
        for j in range(i):
            t = np.cos(t * 0.5 + y[j] * s * 0.1)
        s = s * 0.5 + t
    return s + (y * y).sum()


@pytest.mark.parametrize("n", [0, 6, 20])
@pytest.mark.parametrize("f", [numbers, arrays, nested, large])
def test_derivatives(f, n):
    x = np.array([0.3, 0.7, 1.1])
    with jt.config(sanitize=n == 20):
        found = jt.jit(jt.value_and_grad(f))(x, n)
    wanted = jt.jit(jt.value_and_grad(f), backend="interpreter")(x, n)
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10)
    if n == 6 and f is not numbers:  # float32 is too coarse for differences
        jt.check_grads(jt.jit(lambda x: f(x, n)), (x,), order=2 if f is arrays else 1)


@pytest.mark.parametrize("n", [7, 31, 32, 33, 3000])
def test_records_fill_many_blocks(n):
    """Backwards through iterations that change nothing but a number: the gradient is known."""

    def powers(x, n):
        s = x
        for _ in range(n):
            s = np.sin(s) if s > 2 else s * s
            s = s**0.5
        return s

    np.testing.assert_allclose(jt.jit(jt.grad(powers))(1.5, n), 1.0, rtol=1e-9)


def test_such_loops_are_scalar_code():
    notes = [kernel.note for kernel in jt.jit(jt.grad(nested)).lower(np.ones(3), 9).kernels]
    assert notes.count("scalar code") >= 2, notes


def test_places_in_a_record():
    assert places([8, 1, 4]) == ([0, 8, 16], 32)
    assert places([48, 8, 24, 1]) == ([16, 0, 64, 8], 96)
    assert places([]) == ([], 16)
    assert places([0, 8]) == ([0, 0], 16)
