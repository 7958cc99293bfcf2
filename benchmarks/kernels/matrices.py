"""Linear algebra by loops."""

import numpy as np

from .kernel import kernel


def positive(r, n):
    a = r.random((n, n))
    return (a @ a.T + n * np.eye(n),)


@kernel(lambda r, n: (r.random((n, n)), r.random((n, n))), 16, 64, 256, parallel="i")
def product(a, b):
    n, m, k = a.shape[0], b.shape[1], a.shape[1]
    c = np.zeros((n, m))
    for i in range(n):
        for j in range(m):
            s = 0.0
            for p in range(k):
                s += a[i, p] * b[p, j]
            c[i, j] = s
    return c


@kernel(positive, 16, 64, 256, parallel="i")
def lu(a):
    a = a.copy()
    n = a.shape[0]
    for k in range(n):
        for i in range(k + 1, n):
            a[i, k] /= a[k, k]
            for j in range(k + 1, n):
                a[i, j] -= a[i, k] * a[k, j]
    return a


@kernel(positive, 16, 64, 256)
def cholesky(a):
    n = a.shape[0]
    low = np.zeros((n, n))
    for i in range(n):
        for j in range(i + 1):
            s = a[i, j]
            for k in range(j):
                s -= low[i, k] * low[j, k]
            if i == j:
                low[i, j] = np.sqrt(s)
            else:
                low[i, j] = s / low[j, j]
    return low


@kernel(lambda r, n: (*positive(r, n), r.random(n)), 16, 128, 512)
def substitution(a, b):
    n = a.shape[0]
    x = np.zeros(n)
    for i in range(n):
        s = b[i]
        for j in range(i):
            s -= a[i, j] * x[j]
        x[i] = s / a[i, i]
    return x


@kernel(lambda r, n: (r.random((n, n)), r.random(n)), 30, 300, 1000, parallel="i")
def matrix_vector(a, x):
    y = np.zeros(a.shape[0])
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            y[i] += a[i, j] * x[j]
    return y
