"""Matrix products, and pairs of points."""

import math

import numpy as np
from numba import njit, prange

from .pointwise import gelu_of
from .table import parallel, row


@row
def matmul_1024(f):
    @parallel
    def batched(a, b):
        out = np.zeros((a.shape[0], a.shape[1], b.shape[2]), a.dtype)
        for t in prange(a.shape[0]):
            for i in range(a.shape[1]):
                for k in range(a.shape[2]):
                    scale = a[t, i, k]
                    for j in range(b.shape[2]):
                        out[t, i, j] += scale * b[t, k, j]
        return out

    plain = njit(lambda a, b: np.dot(a, b))
    return lambda a, b: batched(a, b) if a.ndim == 3 else plain(a, b)


@row
def dense(f):
    function = gelu_of(f)

    @parallel
    def run(a, b, c):
        out = np.dot(a, b)
        for i in prange(out.shape[0]):
            for j in range(out.shape[1]):
                out[i, j] = function(out[i, j] + c[j])
        return out

    return run


@row
def distances(f):
    @parallel
    def run(x):
        n = x.shape[0]
        out = np.empty((n, n), x.dtype)
        xs, ys, zs = x[:, 0].copy(), x[:, 1].copy(), x[:, 2].copy()
        for i in prange(n):
            for j in range(n):
                a, b, c = xs[i] - xs[j], ys[i] - ys[j], zs[i] - zs[j]
                out[i, j] = math.sqrt(a * a + b * b + c * c)
        return out

    return run


@row
def n_body(f):
    zero, soft = f(0), f(1e-2)

    @parallel
    def run(x, mass):
        n = x.shape[0]
        out = np.empty((n, 3), x.dtype)
        xs, ys, zs = x[:, 0].copy(), x[:, 1].copy(), x[:, 2].copy()
        for i in prange(n):
            fx = fy = fz = zero
            for j in range(n):
                a, b, c = xs[j] - xs[i], ys[j] - ys[i], zs[j] - zs[i]
                squares = a * a + b * b + c * c + soft
                w = mass[j] / (squares * math.sqrt(squares))
                fx += w * a
                fy += w * b
                fz += w * c
            out[i, 0], out[i, 1], out[i, 2] = fx, fy, fz
        return out

    return run
