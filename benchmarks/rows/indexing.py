"""Sorting, and reading and writing at indices that are data."""

from __future__ import annotations

import numpy as np

from .row import Array, Make, Rows, normal

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


@rows.add(
    "argsort",
    "places of 1e6 numbers in their order",
    make=normal(("n",)),
    size=1_000_000,
    small=1000,
    goal=1.0,
    mismatch=0.02,  # among equal numbers any order is right
)
def argsort(x: Array) -> Array:
    return np.argsort(x)


@rows.add(
    "searchsorted",
    "places of 1e6 numbers among 1e6 in order",
    make=lambda rng, n: (np.sort(rng.standard_normal(n)), rng.standard_normal(n)),
    size=1_000_000,
    small=1000,
    goal=1.0,
    mismatch=1e-9,
)
def searchsorted(table: Array, x: Array) -> Array:
    return np.searchsorted(table, x)


VALUES = 1000


def whole_numbers(below: int) -> Make:
    return lambda rng, n: (rng.integers(0, below, n).astype(np.int32),)


@rows.add(
    "unique",
    "the distinct ones of 1e6 integers below 1000",
    make=whole_numbers(VALUES),
    size=1_000_000,
    small=20_000,
    goal=1.0,
)
def unique(x: Array) -> Array:
    return np.unique(x)


@rows.add(
    "bincount",
    "counts of 1e6 integers below 10,000",
    make=whole_numbers(BINS),
    size=1_000_000,
    small=1000,
    goal=1.0,
)
def bincount(x: Array) -> Array:
    return np.bincount(x, minlength=BINS)


EDGES = 100


@rows.add(
    "histogram",
    "histogram of 1e6 numbers, 100 bins",
    make=normal(("n",)),
    size=1_000_000,
    small=1000,
    goal=1.0,
    mismatch=0.2,  # numbers on an edge in float32 lie beside it in float64
)
def histogram(x: Array) -> Array:
    return np.histogram(x, EDGES, (-4, 4))[0]
