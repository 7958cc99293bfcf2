"""Sums, counts, extremes and their places."""

import numpy as np

from .kernel import kernel


@kernel(lambda r, n: (r.random((n, n)), np.zeros(n)), 30, 300, 1000, parallel="i")
def row_norms(x, out):
    for i in range(x.shape[0]):
        s = 0.0
        for j in range(x.shape[1]):
            s += x[i, j] * x[i, j]
        out[i] = np.sqrt(s)


@kernel(lambda r, n: (r.random((n, n)), np.zeros(n)), 30, 300, 1000, parallel="j")
def column_sums(x, out):
    for j in range(x.shape[1]):
        s = 0.0
        for i in range(x.shape[0]):
            s += x[i, j]
        out[j] = s


@kernel(lambda r, n: (r.standard_normal(n),), 1000, 30_000, 1_000_000)
def largest(x):
    best = x[0]
    for i in range(1, x.shape[0]):
        if x[i] > best:
            best = x[i]
    return best


@kernel(lambda r, n: (r.standard_normal(n),), 1000, 30_000, 1_000_000)
def place_of_largest(x):
    best = x[0]
    place = 0
    for i in range(1, x.shape[0]):
        if x[i] > best:
            best = x[i]
            place = i
    return place


@kernel(lambda r, n: (r.standard_normal(n),), 1000, 30_000, 1_000_000, parallel="i")
def count_positive(x):
    count = 0
    for i in range(x.shape[0]):
        if x[i] > 0.0:
            count += 1
    return count


@kernel(lambda r, n: (r.random(n), np.zeros(64, np.int64)), 1000, 30_000, 1_000_000)
def histogram(x, counts):
    for i in range(x.shape[0]):
        counts[int(x[i] * 64)] += 1


@kernel(lambda r, n: (r.random((n, 3)), r.random((8, 3))), 100, 3000, 100_000, parallel="i")
def nearest_centre(points, centres):
    out = np.zeros(points.shape[0], np.int64)
    for i in range(points.shape[0]):
        best = 1e300
        for k in range(centres.shape[0]):
            d = 0.0
            for c in range(points.shape[1]):
                e = points[i, c] - centres[k, c]
                d += e * e
            if d < best:
                best = d
                out[i] = k
    return out


@kernel(lambda r, n: (r.standard_normal(n),), 1000, 30_000, 1_000_000)
def welford(x):
    mean = 0.0
    m2 = 0.0
    for i in range(x.shape[0]):
        d = x[i] - mean
        mean += d / (i + 1)
        m2 += d * (x[i] - mean)
    return m2 / x.shape[0]
