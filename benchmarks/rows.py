"""What is computed: for each row its inputs, and the NumPy program that defines the answer.

The NumPy program is also what jitney compiles, unchanged. The reference answer is that program on
float64 copies of the inputs; `tolerance` bounds max|got - reference| / max|reference| per output.
`traffic` counts the bytes that no implementation can avoid: inputs read once, outputs written once.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Row:
    name: str
    title: str
    program: Callable[..., Any]
    make: Callable[[np.random.Generator, int], tuple[Array, ...]]
    size: int
    quick: int  # the size under --quick
    tolerance: float = 1e-4
    outputs: int = 1  # arrays like the first input that are written, for the traffic

    def inputs(self, quick: bool = False) -> tuple[Array, ...]:
        """The same float32 (or integer) arrays in every process."""
        arrays = self.make(np.random.default_rng(0), self.quick if quick else self.size)
        return tuple(a.astype(np.float32) if a.dtype == np.float64 else a for a in arrays)

    def reference(self, inputs: tuple[Array, ...]) -> list[Array]:
        wide = (a.astype(np.float64) if a.dtype == np.float32 else a.copy() for a in inputs)
        return as_list(self.program(*wide))

    def error(self, got: Any, want: list[Array]) -> float:
        """The largest relative error over the outputs; infinite if structure or shapes differ."""
        arrays = as_list(got)
        if len(arrays) != len(want):
            return math.inf
        worst = 0.0
        for a, b in zip(arrays, want, strict=True):
            if a.shape != b.shape:
                return math.inf
            scale = float(np.abs(b).max(initial=0)) or 1.0
            difference = float(np.abs(a.astype(np.float64) - b).max(initial=0)) / scale
            worst = difference if not difference <= worst else worst  # a NaN stays
        return worst


def as_list(result: Any) -> list[Array]:
    if isinstance(result, dict):
        return [a for key in sorted(result) for a in as_list(result[key])]
    if isinstance(result, list | tuple):
        return [a for part in result for a in as_list(part)]
    return [np.asarray(result)]


ROWS: dict[str, Row] = {}


def row(name: str, title: str, **fields: Any) -> Callable[[Callable[..., Any]], Any]:
    def register(program: Callable[..., Any]) -> Callable[..., Any]:
        ROWS[name] = Row(name=name, title=title, program=program, **fields)
        return program

    return register


def normal(*shape: Any, scale: float = 1.0) -> Callable[[np.random.Generator, int], Any]:
    """Inputs: one array per shape; "n" stands for the row's size."""

    def make(rng: np.random.Generator, n: int) -> tuple[Array, ...]:
        sizes = (tuple(n if d == "n" else d for d in s) for s in shape)
        return tuple(rng.standard_normal(s) * scale for s in sizes)

    return make


def erf(x: Any) -> Any:
    """NumPy has none: SciPy's where it is installed, else the standard library's, slowly."""
    try:
        from scipy.special import erf as fast
    except ImportError:
        return np.vectorize(math.erf, otypes=[x.dtype])(x)
    return fast(x)


# The cost of a call


@row("call_1", "x + 1 on 10 elements", make=normal(("n",)), size=10, quick=10)
def call_1(x: Array) -> Array:
    return x + 1


@row("call_3", "x * y + z on 10 elements", make=normal(("n",), ("n",), ("n",)), size=10, quick=10)
def call_3(x: Array, y: Array, z: Array) -> Array:
    return x * y + z


# Chains of elementwise functions


@row("gelu", "gelu (tanh form)", make=normal(("n",), scale=2), size=8_000_000, quick=10_000)
def gelu(x: Array) -> Array:
    return 0.5 * x * (1 + np.tanh(0.79788456 * (x + 0.044715 * x * x * x)))


def market(rng: np.random.Generator, n: int) -> tuple[Array, ...]:
    return rng.uniform(10, 50, n), rng.uniform(10, 50, n), rng.uniform(0.5, 2, n)


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


row(
    "black_scholes",
    "Black-Scholes call and put",
    make=market,
    size=4_000_000,
    quick=10_000,
    outputs=2,
)(black_scholes_with(erf))


# Rows of a matrix


@row("softmax", "softmax of each row", make=normal(("n", 1024), scale=3), size=4096, quick=16)
def softmax(x: Array) -> Array:
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


@row(
    "layernorm",
    "layer normalisation of each row",
    make=normal(("n", 1024), (1024,), (1024,), scale=3),
    size=4096,
    quick=16,
)
def layernorm(x: Array, gain: Array, bias: Array) -> Array:
    d = x - x.mean(axis=1, keepdims=True)
    return d / np.sqrt((d * d).mean(axis=1, keepdims=True) + 1e-5) * gain + bias


@row(
    "logsumexp",
    "log of the sum of exponentials of each row",
    make=normal(("n", 1024), scale=3),
    size=4096,
    quick=16,
    outputs=0,
)
def logsumexp(x: Array) -> Array:
    m = x.max(axis=1)
    return m + np.log(np.exp(x - m[:, None]).sum(axis=1))


# Reductions


@row("sum_rows", "sum over axis 1", make=normal(("n", "n")), size=4096, quick=64, outputs=0)
def sum_rows(x: Array) -> Array:
    return x.sum(axis=1)


@row("sum_columns", "sum over axis 0", make=normal(("n", "n")), size=4096, quick=64, outputs=0)
def sum_columns(x: Array) -> Array:
    return x.sum(axis=0)


# Broadcasting, stencils, products


@row("distances", "all pairwise distances of n points", make=normal(("n", 3)), size=3000, quick=50)
def distances(x: Array) -> Array:
    d = x[:, None] - x[None]
    return np.sqrt((d * d).sum(axis=2))


@row("heat", "20 steps of a 5-point heat stencil", make=normal(("n", "n")), size=1024, quick=32)
def heat(u: Array) -> Array:
    u = u.copy()
    for _ in range(20):
        middle = u[1:-1, 1:-1]
        around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
        u[1:-1, 1:-1] = middle + 0.1 * (around - 4 * middle)
    return u


@row(
    "dense",
    "gelu(a @ b + c)",
    make=lambda rng, n: (
        rng.standard_normal((n, n)),
        rng.standard_normal((n, n)) / n**0.5,
        rng.standard_normal(n),
    ),
    size=1024,
    quick=32,
)
def dense(a: Array, b: Array, c: Array) -> Array:
    return gelu(a @ b + c)
