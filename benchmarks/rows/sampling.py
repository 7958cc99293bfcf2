"""Random numbers: integrals by Monte Carlo, whose answers do not depend on whose numbers they are."""

from __future__ import annotations

from typing import Any

import numpy as np

from .row import Array, Rows

rows = Rows()
COUNT = 8_000_000


def seed(rng: np.random.Generator, n: int) -> tuple[Any, ...]:
    return (np.array([n], np.int32),)


@rows.add(
    "mean_of_exp",
    "mean of exp(z) over 8,000,000 normal z",
    make=seed,
    size=1,
    small=2,
    goal=1.5,
    tolerance=5e-3,  # six standard deviations
    passes=None,
)
def mean_of_exp(seed: Array) -> Array:
    rng = np.random.default_rng(int(seed[0]))
    return np.exp(rng.standard_normal(COUNT, np.float32)).mean()


@rows.add(
    "pi_by_chance",
    "share of 8,000,000 points of a square in its circle",
    make=seed,
    size=1,
    small=2,
    goal=1.5,
    tolerance=2e-3,
    passes=None,
)
def pi_by_chance(seed: Array) -> Array:
    rng = np.random.default_rng(int(seed[0]))
    x, y = rng.random((2, COUNT), np.float32)
    return (x * x + y * y < 1).mean()
