"""Chains of elementwise functions over large arrays."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .row import Array, Rows, normal

rows = Rows()


def erf(x: Any) -> Any:
    """NumPy has none: SciPy's where it is installed, else the standard library's, slowly."""
    try:
        from scipy.special import erf as fast
    except ImportError:
        return np.vectorize(math.erf, otypes=[x.dtype])(x)
    return fast(x)


@rows.add("axpb", "x * 2 + 1, 64 MiB", make=normal(("n",)), size=1 << 24, small=1000, goal=3.0)
def axpb(x: Array) -> Array:
    return x * 2 + 1


@rows.add(
    "gelu", "gelu, tanh form", make=normal(("n",), scale=2), size=8_000_000, small=10_000, goal=2.5
)
def gelu(x: Array) -> Array:
    return 0.5 * x * (1 + np.tanh(0.79788456 * (x + 0.044715 * x * x * x)))


def black_scholes_with(erf: Callable[[Any], Any]) -> Callable[..., Any]:
    def black_scholes(spot: Array, strike: Array, years: Array) -> tuple[Array, Array]:
        rate, sigma = 0.02, 0.3
        spread = sigma * np.sqrt(years)
        d1 = (np.log(spot / strike) + (rate + 0.5 * sigma * sigma) * years) / spread
        discounted = strike * np.exp(-rate * years)

        def cdf(d: Array) -> Array:
            return 0.5 * (1 + erf(d * math.sqrt(0.5)))

        call = spot * cdf(d1) - discounted * cdf(d1 - spread)
        return call, call + discounted - spot

    return black_scholes


rows.add(
    "black_scholes",
    "Black-Scholes, call and put",
    make=lambda rng, n: (
        rng.uniform(10, 50, n),
        rng.uniform(10, 50, n),
        rng.uniform(0.5, 2, n),
    ),
    size=4_000_000,
    small=10_000,
    goal=1.5,
)(black_scholes_with(erf))
rows.variant(
    "black_scholes",
    "black_scholes_f64",
    "Black-Scholes in float64",
    dtype="float64",
    tolerance=1e-10,
)
rows.variant("gelu", "gelu_f16", "gelu in float16", dtype="float16", tolerance=0.02, goal=2.0)
