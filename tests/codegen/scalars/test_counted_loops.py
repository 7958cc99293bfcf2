"""Loops over windows whose length is a value: scalar code over their elements, against Python itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitney as jt

RNG = np.random.default_rng(5)
A = RNG.normal(size=(24, 24))
S = A @ A.T + 24 * np.eye(24)
X = RNG.normal(size=400)
N = RNG.integers(1, 60, 300)
PTR = np.concatenate([[0], np.cumsum(RNG.integers(0, 9, 30))])


def cholesky(a):
    n = a.shape[0]
    c = np.zeros_like(a)
    for i in range(n):
        for j in range(i + 1):
            s = a[i, j] - c[i, :j] @ c[j, :j]
            if i == j:
                c[i, i] = np.sqrt(s)
            else:
                c[i, j] = s / c[j, j]
    return c


def substituted(a, b):
    y = np.zeros_like(b)
    for i in range(len(b)):
        y[i] = (b[i] - a[i, :i] @ y[:i]) / a[i, i]
    for i in range(len(b) - 1, -1, -1):
        y[i] = (y[i] - a[i, i + 1 :] @ y[i + 1 :]) / a[i, i]
    return y


def eliminated(a):
    a = a.copy()
    n = a.shape[0]
    for k in range(n - 1):
        p = k + np.argmax(np.abs(a[k:, k]))
        if p != k:
            a[[k, p]] = a[[p, k]]
        a[k + 1 :, k] /= a[k, k]
        a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k, k + 1 :])
    return a


def orthogonalised(a):
    n = a.shape[1]
    q, r = np.zeros_like(a), np.zeros((n, n))
    for j in range(n):
        v = a[:, j].copy()
        r[:j, j] = q[:, :j].T @ v
        v -= q[:, :j] @ r[:j, j]
        r[j, j] = np.linalg.norm(v)
        q[:, j] = v / r[j, j]
    return q, r


def spans(x):
    n = 20
    best = np.zeros((n, n))
    for width in range(1, n):
        for i in range(n - width):
            j = i + width
            best[i, j] = (best[i, i:j] + best[i + 1 : j + 1, j]).min() + x[i : j + 1].sum()
    return best


def overlapping(x, n):
    """Each iteration reads what the one before has written."""
    x = x.copy()
    for i in range(len(n)):
        x[i : i + n[i]] += x[i] * 0.01
        x[1 : n[i]] = x[: n[i] - 1]
        x[n[i] :: 7] = i
    return x


def by_rows(a, n):
    b = np.zeros_like(a)
    s = np.zeros(len(a))
    for i in range(len(a)):
        m = n[i] % 24
        b[i, :m] = np.cumsum(a[i, :m])
        b[i, m:] = np.exp(a[i, m:]) / (1 + a[i, m:] ** 2)
        s[i] = (
            a[i, : m + 1].max() * a[: m + 1, i].argmin() + (a[i, :m] > 0).any() + np.arange(m).sum()
        )
    return b, s


def sparse(d, v, ptr):
    y = np.zeros(len(ptr) - 1)
    for i in range(len(ptr) - 1):
        place = np.arange(d.size)[ptr[i] : ptr[i + 1]]
        y[i] = d[ptr[i] : ptr[i + 1]] @ v[(place * 7) % v.size]
    return y


def beyond(a):
    """Places behind the counts are infinite."""
    s = 0.0
    a[:, 12:] = np.inf
    for i in range(12):
        s += (a[i, :i] / (1 + a[i, :i] ** 2)).sum() + (1 / a[i, :i] @ a[i, :i])
    return s


CASES: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
    (cholesky, (S,)),
    (substituted, (S, X[:24])),
    (substituted, (S, A[:, :3])),
    (eliminated, (A,)),
    (orthogonalised, (A,)),
    (spans, (X,)),
    (overlapping, (X, N)),
    (by_rows, (A, N)),
    (sparse, (X, X[:50], PTR)),
    (beyond, (A,)),
]


@pytest.mark.parametrize(
    ("f", "args"), CASES, ids=[f"{f.__name__}-{k}" for k, (f, _) in enumerate(CASES)]
)
def test_same_as_python(f: Callable[..., Any], args: tuple[Any, ...]) -> None:
    got = jt.jit(f)(*(a.copy() for a in args))
    want = f(*(a.copy() for a in args))
    for g, w in zip(*(r if isinstance(r, tuple) else (r,) for r in (got, want)), strict=True):
        np.testing.assert_allclose(g, w, rtol=1e-9, atol=1e-9)


def test_every_access_is_in_bounds() -> None:
    with jt.config(sanitize=True):
        got = jt.jit(by_rows)(A, N)
    for g, w in zip(got, by_rows(A, N), strict=True):
        np.testing.assert_allclose(g, w, rtol=1e-9, atol=1e-9)


def test_they_are_one_step_of_scalar_code() -> None:
    text = str(jt.jit(cholesky).lower(S).llvm())
    assert text.count("fadd contract reassoc") >= 1


def test_gradients() -> None:
    def f(a):
        return (cholesky(a) * np.arange(576.0).reshape(24, 24)).sum()

    gradient = jt.jit(jt.grad(f))(S)
    way = RNG.normal(size=(24, 24))
    h = 1e-6
    np.testing.assert_allclose(
        (gradient * way).sum(), (f(S + h * way) - f(S - h * way)) / (2 * h), rtol=1e-6
    )
