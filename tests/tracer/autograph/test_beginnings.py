"""Loops that become one op with their first iteration: the body is there once, and means the same."""

from __future__ import annotations

import numpy as np
import pytest

import jitney as jt

X = np.linspace(-1.0, 1.0, 500)


def filled(x):
    out = np.zeros(x.shape[0])
    for i in range(1, x.shape[0]):
        if x[i] > x[i - 1]:
            out[i] = out[i - 1] + x[i]
        else:
            out[i] = x[i - 1]
    return out


def nested(x):
    out = np.zeros((20, 25))
    for i in range(20):
        for j in range(25):
            s = 0.0
            for k in range(i + j):
                s += x[k] * 0.5
            out[i, j] = s
    return out


def first_assigned_inside(x):
    for i in range(500):
        t = x[i] * 2.0
    return t + i


def starts_as_an_int(x):
    s = 0
    for i in range(500):
        s = s * 0.5 + x[i]
    return s


def gets_a_narrower_dtype(x):
    s = 1
    for i in range(500):
        s = s * np.float32(0.5) + np.float32(x[i])
    return s


def breaks_off(x):
    n = 0
    for i in range(500):
        if x[i] > 0.25:
            break
        n += 1
    return n


def appends_once(x):
    names = []
    s = 0.0
    for i in range(500):
        if not names:
            names.append(1)
        s += x[i] * len(names)
    return s


def swaps(x):
    a, b = x.copy(), x * 2
    for i in range(500):
        a, b = b, a
        a[i] = b[i] + 1
    return a, b


def through_a_view(x):
    y = x.copy()
    part = y[10:]
    for i in range(400):
        part[i] = y[i] + 1.0
    return y


def starts_as_a_scalar_of_numpys(x):
    state = np.int64(12345)
    out = np.zeros(500)
    for i in range(500):
        state = (state * 1103515245 + 12345) % 2147483648
        out[i] = x[i] * state
    return out


def widens_a_scalar_of_numpys(x):
    s = np.float32(0.5)
    for i in range(500):
        s = s * 0.5 + x[i]
    return s


def checks_in_a_while(x):
    out = np.zeros(500)
    for i in range(500):
        low, high = 0, 500
        while low < high:
            middle = (low + high) // 2
            if x[middle] < x[i]:
                low = middle + 1
            else:
                high = middle
        out[i] = low
    return out


FUNCTIONS = [
    *(filled, nested, first_assigned_inside, starts_as_an_int, gets_a_narrower_dtype),
    *(starts_as_a_scalar_of_numpys, widens_a_scalar_of_numpys, checks_in_a_while),
    *(breaks_off, appends_once, swaps, through_a_view),
]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_loop_means_what_python_says(function):
    wanted = function(X.copy())
    found = jt.jit(function, autograph=True)(X.copy())
    for a, b in zip(np.atleast_1d(found), np.atleast_1d(wanted), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)
    assert np.asarray(found).dtype == np.asarray(wanted).dtype


def edges(x):
    u = x.reshape(20, 25)
    out = np.zeros((20, 25))
    for i in range(1, 19):
        for j in range(1, 24):
            out[i, j] = u[i - 1, j] + u[i + 1, j] - u[i, j - 1]
    return out


WITH_ZEROS = {filled: 2, edges: 4, starts_as_a_scalar_of_numpys: 1, checks_in_a_while: 1}


@pytest.mark.parametrize("function", WITH_ZEROS)
def test_the_body_is_there_once(function):
    lowered = jt.jit(function, autograph=True).lower(X)
    assert len([op for op in lowered.graph.ops if op.regions]) == 1
    assert len(lowered.kernels) == WITH_ZEROS[function]  # the zeros if some stay, and the loop


def test_gradients_go_through():
    def loss(x):
        return jt.jit(filled, autograph=True)(x).sum()

    jt.check_grads(loss, (X[:20].copy(),), order=1, modes=["rev"])
