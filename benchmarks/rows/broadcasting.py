"""All pairs of points: arrays that nobody should materialise."""

from __future__ import annotations

import numpy as np

from .row import Array, Rows, normal

rows = Rows()


@rows.add(
    "distances",
    "all pairwise distances of 3000 points",
    make=normal(("n", 3)),
    size=3000,
    small=50,
    goal=1.5,
    tolerance=1e-3,
)
def distances(x: Array) -> Array:
    d = x[:, None] - x[None]
    return np.sqrt((d * d).sum(axis=2))


@rows.add(
    "n_body",
    "forces between 3000 bodies",
    make=lambda rng, n: (rng.standard_normal((n, 3)), np.abs(rng.standard_normal(n)) + 0.1),
    size=3000,
    small=50,
    goal=1.1,
    tolerance=1e-3,
    passes=None,
    flops=lambda n: 20 * n * n,
)
def n_body(x: Array, mass: Array) -> Array:
    d = x[None] - x[:, None]
    squares = (d * d).sum(axis=2) + 1e-2
    return (d * (mass / (squares * np.sqrt(squares)))[..., None]).sum(axis=1)
