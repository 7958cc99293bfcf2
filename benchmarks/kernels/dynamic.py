"""Tables that are filled from their own entries."""

import numpy as np

from .kernel import kernel


def words(r, n):
    return r.integers(0, 4, n), r.integers(0, 4, n)


@kernel(words, 30, 300, 1500)
def levenshtein(a, b):
    n, m = len(a), len(b)
    d = np.zeros((n + 1, m + 1), np.int64)
    for i in range(n + 1):
        d[i, 0] = i
    for j in range(m + 1):
        d[0, j] = j
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            cost = 0 if a[i - 1] == b[j - 1] else 1
            d[i, j] = min(d[i - 1, j] + 1, d[i, j - 1] + 1, d[i - 1, j - 1] + cost)
    return d[n, m]


@kernel(words, 30, 300, 1500)
def common_subsequence(a, b):
    n, m = len(a), len(b)
    t = np.zeros((n + 1, m + 1), np.int64)
    for i in range(n):
        for j in range(m):
            if a[i] == b[j]:
                t[i + 1, j + 1] = t[i, j] + 1
            elif t[i, j + 1] > t[i + 1, j]:
                t[i + 1, j + 1] = t[i, j + 1]
            else:
                t[i + 1, j + 1] = t[i + 1, j]
    return t[n, m]


@kernel(lambda r, n: (r.integers(1, 50, 40), r.random(40), n), 100, 2000, 20_000, static=(2,))
def knapsack(weights, values, room):
    best = np.zeros(room + 1)
    for k in range(len(weights)):
        for w in range(room, 0, -1):
            if weights[k] <= w:
                v = best[w - weights[k]] + values[k]
                if v > best[w]:
                    best[w] = v
    return best


@kernel(lambda r, n: (r.random((n, n)),), 30, 100, 300, parallel="i")
def shortest_paths(d):
    d = d.copy()
    n = d.shape[0]
    for k in range(n):
        for i in range(n):
            for j in range(n):
                if d[i, k] + d[k, j] < d[i, j]:
                    d[i, j] = d[i, k] + d[k, j]
    return d


@kernel(lambda r, n: (r.random(n), r.random(n)), 30, 200, 1000)
def time_warping(a, b):
    n, m = len(a), len(b)
    d = np.full((n + 1, m + 1), 1e300)
    d[0, 0] = 0.0
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            cost = abs(a[i - 1] - b[j - 1])
            d[i, j] = cost + min(d[i - 1, j], d[i, j - 1], d[i - 1, j - 1])
    return d[n, m]
