"""Elements and their neighbours."""

import numpy as np

from .kernel import kernel


@kernel(lambda r, n: (r.random((n, n)), np.zeros((n, n))), 128, 512, 1024, parallel="i")
def stencil(u, out):
    n = u.shape[0]
    m = u.shape[1]
    for i in range(1, n - 1):
        for j in range(1, m - 1):
            out[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1])


@kernel(lambda r, n: (r.random(n), np.zeros(n)), 1000, 30_000, 1_000_000, parallel="i")
def smooth(x, out):
    for i in range(1, x.shape[0] - 1):
        out[i] = (x[i - 1] + x[i] + x[i + 1]) / 3


@kernel(lambda r, n: (r.random((n, n, n)), np.zeros((n, n, n))), 16, 48, 128, parallel="i")
def laplacian(u, out):
    for i in range(1, u.shape[0] - 1):
        for j in range(1, u.shape[1] - 1):
            for k in range(1, u.shape[2] - 1):
                out[i, j, k] = (
                    u[i - 1, j, k]
                    + u[i + 1, j, k]
                    + u[i, j - 1, k]
                    + u[i, j + 1, k]
                    + u[i, j, k - 1]
                    + u[i, j, k + 1]
                    - 6.0 * u[i, j, k]
                )


@kernel(lambda r, n: ((r.random((n, n)) < 0.3).astype(np.int64),), 64, 256, 1024, parallel="i")
def life(grid):
    n, m = grid.shape
    new = np.zeros((n, m), np.int64)
    for i in range(n):
        for j in range(m):
            alive = 0
            for a in range(-1, 2):
                for b in range(-1, 2):
                    if a != 0 or b != 0:
                        alive += grid[(i + a) % n, (j + b) % m]
            if alive == 3 or (alive == 2 and grid[i, j] == 1):
                new[i, j] = 1
    return new


@kernel(lambda r, n: (r.random((n, n)), r.random((5, 5))), 64, 256, 512, parallel="i")
def convolution(image, weights):
    n, m = image.shape
    a, b = weights.shape
    out = np.zeros((n - a + 1, m - b + 1))
    for i in range(n - a + 1):
        for j in range(m - b + 1):
            s = 0.0
            for p in range(a):
                for q in range(b):
                    s += image[i + p, j + q] * weights[p, q]
            out[i, j] = s
    return out


@kernel(lambda r, n: (r.random((n, n)),), 32, 128, 256, parallel="i")
def bilateral(image):
    n, m = image.shape
    out = np.zeros((n, m))
    for i in range(2, n - 2):
        for j in range(2, m - 2):
            total = 0.0
            weight = 0.0
            for a in range(-2, 3):
                for b in range(-2, 3):
                    d = image[i + a, j + b] - image[i, j]
                    w = np.exp(-(a * a + b * b) / 8.0 - d * d / 0.02)
                    total += w * image[i + a, j + b]
                    weight += w
            out[i, j] = total / weight
    return out


@kernel(lambda r, n: (r.random(n), 50), 100, 2000, 40_000, static=(1,), parallel="i")
def heat(u, steps):
    u = u.copy()
    new = u.copy()
    for _ in range(steps):
        for i in range(1, u.shape[0] - 1):
            new[i] = u[i] + 0.1 * (u[i - 1] - 2.0 * u[i] + u[i + 1])
        for i in range(1, u.shape[0] - 1):
            u[i] = new[i]
    return u


@kernel(lambda r, n: (r.random((n, n)),), 64, 256, 1024, parallel="i")
def maximum_filter(image):
    n, m = image.shape
    out = np.zeros((n, m))
    for i in range(1, n - 1):
        for j in range(1, m - 1):
            best = image[i, j]
            for a in range(-1, 2):
                for b in range(-1, 2):
                    if image[i + a, j + b] > best:
                        best = image[i + a, j + b]
            out[i, j] = best
    return out
