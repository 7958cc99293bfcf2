"""Loops over steps."""

import math

import numpy as np
from numba import njit, prange

from ...rows import loops
from .table import parallel, row


@row
def heat(f):
    tenth, four, steps = f(0.1), f(4), loops.HEAT_STEPS

    @parallel
    def run(u):
        u, new = u.copy(), u.copy()
        for _ in range(steps):
            for i in prange(1, u.shape[0] - 1):
                for j in range(1, u.shape[1] - 1):
                    around = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1]
                    new[i, j] = u[i, j] + tenth * (around - four * u[i, j])
            u, new = new, u
        return u

    return run


@row
def mandelbrot(f):
    zero, two, four, limit = f(0), f(2), f(4), loops.MANDELBROT_STEPS

    @parallel
    def run(cx, cy):
        out = np.empty(cx.shape, np.int32)
        for i in prange(cx.shape[0]):
            for j in range(cx.shape[1]):
                x = y = zero
                n = 0
                while n < limit and x * x + y * y <= four:
                    x, y = x * x - y * y + cx[i, j], two * x * y + cy[i, j]
                    n += 1
                out[i, j] = n
        return out

    return run


@row
def newton(f):
    half, two = f(0.5), f(2)

    @njit
    def run(x, n):
        for _ in range(n):
            x = half * (x + two / x)
        return x

    return run


@row
def fibonacci(f):
    @njit
    def run(a, b, n):
        for _ in range(n):
            a, b = b, np.int32(a + b)
        return a

    return run


@row
def matrix_scan(f):
    @njit(fastmath=True)
    def run(start, changes):
        r, new = start.copy(), np.empty_like(start)
        for change in changes:
            for i in range(3):
                for j in range(3):
                    total = r[i, j]
                    for k in range(3):
                        total += r[i, k] * (change[k, j] - change[j, k])
                    new[i, j] = total
            for j in range(3):
                norm = math.sqrt(new[0, j] ** 2 + new[1, j] ** 2 + new[2, j] ** 2)
                for i in range(3):
                    r[i, j] = new[i, j] / norm
        return r

    return run
