"""Sorting, and reading and writing at indices that are data."""

from __future__ import annotations

import numpy as np

from .row import Array, Rows, normal

rows = Rows()

LARGEST = 100


@rows.add("sort", "sort 1e6 numbers", make=normal(("n",)), size=1_000_000, small=1000, goal=1.0)
def sort(x: Array) -> Array:
    return np.sort(x)


@rows.add(
    "top_100",
    "the 100 largest of 1e6",
    make=normal(("n",)),
    size=1_000_000,
    small=1000,
    goal=1.0,
)
def top_100(x: Array) -> Array:
    return np.sort(np.partition(x, len(x) - LARGEST)[-LARGEST:])[::-1]


@rows.add(
    "gather",
    "1e6 elements at random indices",
    make=lambda rng, n: (rng.standard_normal(n), rng.integers(0, n, n).astype(np.int32)),
    size=1_000_000,
    small=1000,
    goal=1.2,
)
def gather(x: Array, indices: Array) -> Array:
    return x[indices]


BINS = 10_000


@rows.add(
    "scatter_add",
    "1e6 elements added up in 10,000 bins",
    make=lambda rng, n: (rng.standard_normal(n), rng.integers(0, BINS, n).astype(np.int32)),
    size=1_000_000,
    small=1000,
    goal=1.1,
)
def scatter_add(values: Array, bins: Array) -> Array:
    return np.bincount(bins, weights=values, minlength=BINS).astype(values.dtype)
