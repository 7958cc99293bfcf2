"""Elements that have nothing to do with each other."""

import math

import numpy as np

from .kernel import kernel


@kernel(lambda r, n: (r.random(n), np.zeros(n)), 1000, 30_000, 1_000_000, parallel="i")
def polynomial(x, out):
    for i in range(x.shape[0]):
        v = x[i]
        out[i] = ((v * 0.5 - 1.0) * v + 2.0) * v - 0.25


@kernel(lambda r, n: (r.random(n), np.zeros(n)), 1000, 30_000, 1_000_000, parallel="i")
def threshold(x, out):
    for i in range(x.shape[0]):
        if x[i] > 0.5:
            out[i] = np.log(x[i])
        else:
            out[i] = 0.0


@kernel(lambda r, n: (r.standard_normal(n), np.zeros(n)), 1000, 30_000, 1_000_000, parallel="i")
def gaussian(x, out):
    for i in range(x.shape[0]):
        out[i] = math.exp(-0.5 * x[i] * x[i])


@kernel(lambda r, n: (r.standard_normal(n), np.zeros(n)), 1000, 30_000, 1_000_000, parallel="i")
def clipped(x, out):
    for i in range(x.shape[0]):
        v = x[i]
        if v < -1.0:
            v = -1.0
        elif v > 1.0:
            v = 1.0
        out[i] = v


@kernel(lambda r, n: (r.random((n, n)), np.zeros((n, n))), 64, 256, 1024, parallel="i")
def transposed(x, out):
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            out[j, i] = x[i, j]
