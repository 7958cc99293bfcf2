"""Rows and columns of a matrix: normalisations, reductions, running sums."""

from __future__ import annotations

from typing import Any

import numpy as np

from .row import Array, Rows, normal

rows = Rows()


@rows.add(
    "softmax", "softmax of rows", make=normal(("n", 1024), scale=3), size=4096, small=16, goal=1.2
)
def softmax(x: Array) -> Array:
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


@rows.add(
    "layernorm",
    "layer normalisation of rows",
    make=normal(("n", 1024), (1024,), (1024,), scale=3),
    size=4096,
    small=16,
    goal=1.1,
)
def layernorm(x: Array, gain: Array, bias: Array) -> Array:
    d = x - x.mean(axis=1, keepdims=True)
    return d / np.sqrt((d * d).mean(axis=1, keepdims=True) + 1e-5) * gain + bias


@rows.add(
    "logsumexp",
    "log of the sum of exponentials of rows",
    make=normal(("n", 1024), scale=3),
    size=4096,
    small=16,
    goal=1.7,
)
def logsumexp(x: Array) -> Array:
    m = x.max(axis=1)
    return m + np.log(np.exp(x - m[:, None]).sum(axis=1))


def logits(rng: np.random.Generator, n: int) -> tuple[Any, ...]:
    return rng.standard_normal((n, 1000)) * 3, rng.integers(0, 1000, n).astype(np.int32)


@rows.add("cross_entropy", "mean cross entropy", make=logits, size=4096, small=16)
def cross_entropy(x: Array, labels: Array) -> Array:
    return (logsumexp(x) - x[np.arange(len(labels)), labels]).mean()


@rows.add(
    "cross_entropy_grad",
    "cross entropy with gradient",
    make=logits,
    size=4096,
    small=16,
    goal=2.0,
)
def cross_entropy_grad(x: Array, labels: Array) -> tuple[Array, Array]:
    n = len(labels)
    gradient = softmax(x)
    gradient[np.arange(n), labels] -= 1
    return cross_entropy(x, labels), gradient / n


square = {"make": normal(("n", "n")), "size": 4096, "small": 64}


@rows.add("sum_rows", "sum over axis 1", **square, goal=1.0)
def sum_rows(x: Array) -> Array:
    return x.sum(axis=1)


@rows.add("sum_columns", "sum over axis 0", **square, goal=1.0)
def sum_columns(x: Array) -> Array:
    return x.sum(axis=0)


@rows.add("sum_all", "sum of all", **square, goal=1.0, tolerance=1e-3)
def sum_all(x: Array) -> Array:
    return x.sum()


@rows.add("variance", "variance of all", **square, goal=1.8)
def variance(x: Array) -> Array:
    return x.var()


@rows.add("argmax", "argmax over axis 1", **square, goal=2.0)
def argmax(x: Array) -> Array:
    return x.argmax(axis=1)


@rows.add("cumsum_columns", "cumsum over axis 0", **square, goal=3.0)
def cumsum_columns(x: Array) -> Array:
    return x.cumsum(axis=0)


@rows.add("cumsum_rows", "cumsum over axis 1", **square, goal=3.0)
def cumsum_rows(x: Array) -> Array:
    return x.cumsum(axis=1)


rows.variant("softmax", "softmax_f16", "softmax in float16", dtype="float16", tolerance=0.01)
