"""Sorting, gathers, scatters."""

import numpy as np
from numba import njit, prange

from ...rows.indexing import BINS, EDGES, LARGEST
from .table import parallel, row


@row
def sort(f):
    return njit(lambda x: np.sort(x))


@row
def top_100(f):
    count = LARGEST
    return njit(lambda x: np.sort(np.partition(x, len(x) - count)[-count:])[::-1])


@row
def gather(f):
    @parallel
    def run(x, indices):
        out = np.empty_like(x)
        for i in prange(x.size):
            out[i] = x[indices[i]]
        return out

    return run


@row
def scatter_add(f):
    """Bins of its own for each of two threads."""
    bins_count = BINS

    @parallel
    def run(values, bins):
        parts = 2
        partial = np.zeros((parts, bins_count), values.dtype)
        for t in prange(parts):
            into = partial[t]
            for i in range(t * values.size // parts, (t + 1) * values.size // parts):
                into[bins[i]] += values[i]
        return partial[0] + partial[1]

    return run


@row
def argsort(f):
    return njit(lambda x: np.argsort(x))


@row
def searchsorted(f):
    @parallel
    def run(table, x):
        out = np.empty(x.size, np.int64)
        for i in prange(x.size):
            out[i] = np.searchsorted(table, x[i])
        return out

    return run


@row
def unique(f):
    return njit(lambda x: np.unique(x))


@row
def bincount(f):
    """Bins of its own for each of two threads."""
    bins_count = BINS

    @parallel
    def run(x):
        parts = 2
        partial = np.zeros((parts, bins_count), np.int64)
        for t in prange(parts):
            into = partial[t]
            for i in range(t * x.size // parts, (t + 1) * x.size // parts):
                into[x[i]] += 1
        return partial[0] + partial[1]

    return run


@row
def histogram(f):
    """Bins of its own for each of two threads."""
    bins_count, low, high, scale = EDGES, f(-4), f(4), f(EDGES / 8)

    @parallel
    def run(x):
        parts = 2
        partial = np.zeros((parts, bins_count), np.int64)
        for t in prange(parts):
            into = partial[t]
            for i in range(t * x.size // parts, (t + 1) * x.size // parts):
                if low <= x[i] <= high:
                    into[min(int((x[i] - low) * scale), bins_count - 1)] += 1
        return partial[0] + partial[1]

    return run
