"""Each element needs the one before."""

import numpy as np

from .kernel import kernel


@kernel(lambda r, n: (r.random(n),), 1000, 30_000, 1_000_000)
def recursive_filter(x):
    out = np.zeros_like(x)
    for i in range(1, x.shape[0]):
        out[i] = out[i - 1] * 0.9 + x[i]
    return out


@kernel(lambda r, n: (r.random(n), 0.1), 1000, 30_000, 1_000_000)
def moving_average(x, alpha):
    out = np.zeros(x.shape[0])
    s = x[0]
    for i in range(x.shape[0]):
        s = alpha * x[i] + (1.0 - alpha) * s
        out[i] = s
    return out


@kernel(lambda r, n: (r.random(n),), 1000, 30_000, 1_000_000)
def running_sum(x):
    out = np.zeros(x.shape[0])
    s = 0.0
    for i in range(x.shape[0]):
        s += x[i]
        out[i] = s
    return out


@kernel(lambda r, n: (r.random(n),), 1000, 30_000, 1_000_000)
def biquad(x):
    out = np.zeros(x.shape[0])
    x1 = x2 = y1 = y2 = 0.0
    for i in range(x.shape[0]):
        y = 0.2 * x[i] + 0.3 * x1 + 0.2 * x2 + 0.5 * y1 - 0.2 * y2
        x2 = x1
        x1 = x[i]
        y2 = y1
        y1 = y
        out[i] = y
    return out
