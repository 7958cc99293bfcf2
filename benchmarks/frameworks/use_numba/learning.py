"""Logistic regression; its gradient is written out by hand."""

import math

import numpy as np
from numba import njit, prange

from ...rows.learning import DESCENT_STEPS, RATE
from .table import parallel, row


@row
def logistic_grad(f):
    """By hand, reading the matrix once."""
    zero, one = f(0), f(1)

    @parallel
    def run(w, x, y):
        parts, width = 16, x.shape[1]
        partial = np.zeros((parts, width), x.dtype)
        for t in prange(parts):
            into = partial[t]
            for i in range(t * x.shape[0] // parts, (t + 1) * x.shape[0] // parts):
                z = zero
                for j in range(width):
                    z += x[i, j] * w[j]
                residual = one / (one + math.exp(-z)) - y[i]
                for j in range(width):
                    into[j] += residual * x[i, j]
        return partial.sum(axis=0) / f(x.shape[0])

    return run


@row
def logistic_descent(f):
    gradient, rate, steps = logistic_grad(f), f(RATE), DESCENT_STEPS

    @njit
    def run(w, x, y):
        for _ in range(steps):
            w = w - rate * gradient(w, x, y)
        return w

    return run
