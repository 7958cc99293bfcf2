"""Logistic regression, and a training step of a small network."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from .matrices import cross_entropy_grad
from .row import Array, Rows

rows = Rows()

DESCENT_STEPS, RATE = 100, 0.1


def regression(rng: np.random.Generator, n: int) -> tuple[Array, Array, Array]:
    x = rng.standard_normal((n, 100)).astype(np.float32)
    return rng.standard_normal(100) * 0.1, x, (x @ rng.standard_normal(100) > 0).astype(np.float32)


@rows.add(
    "logistic_grad",
    "gradient of logistic regression, 100,000 x 100",
    make=regression,
    size=100_000,
    small=50,
    goal=1.4,
)
def logistic_grad(w: Array, x: Array, y: Array) -> Array:
    return x.T @ (1 / (1 + np.exp(-(x @ w))) - y) / len(y)


@rows.add(
    "logistic_descent",
    "100 steps of gradient descent on it",
    make=regression,
    size=100_000,
    small=50,
    goal=1.4,
    passes=DESCENT_STEPS,
    tolerance=1e-3,
)
def logistic_descent(w: Array, x: Array, y: Array) -> Array:
    for _ in range(DESCENT_STEPS):
        w = w - RATE * logistic_grad(w, x, y)
    return w


WIDTHS = (784, 512, 512, 10)
STEP, LEARNING_RATE, BETA1, BETA2, EPSILON = 10, 1e-3, 0.9, 0.999, 1e-8


def training(rng: np.random.Generator, n: int) -> tuple[Any, ...]:
    """Weights, the two moments of Adam, a batch."""
    pairs = list(pairwise(WIDTHS))
    weights = [
        array
        for a, b in pairs
        for array in (rng.standard_normal((a, b)) * (2 / a) ** 0.5, np.zeros(b))
    ]
    first = [rng.standard_normal(w.shape) * 1e-3 for w in weights]
    second = [np.abs(rng.standard_normal(w.shape)) * 1e-3 + 1e-4 for w in weights]
    labels = rng.integers(0, WIDTHS[-1], n).astype(np.int32)
    return weights, first, second, rng.standard_normal((n, WIDTHS[0])), labels


@rows.add(
    "mlp_adam",
    "training step of a 4-layer perceptron with Adam, batch 256",
    make=training,
    size=256,
    small=8,
    goal=1.25,
    tolerance=1e-3,
    passes=None,
    flops=lambda n: 6 * n * sum(a * b for a, b in pairwise(WIDTHS)),
)
def mlp_adam(
    weights: list[Array], first: list[Array], second: list[Array], x: Array, labels: Array
) -> Any:
    loss, gradients = _loss_and_gradients(weights, x, labels)
    return loss, *adam(weights, first, second, gradients)


def adam(
    weights: list[Any],
    first: list[Any],
    second: list[Any],
    gradients: list[Any],
    sqrt: Callable[[Any], Any] = np.sqrt,
) -> tuple[list[Any], list[Any], list[Any]]:
    """A step of Adam on the arrays of any framework: the weights and the two moments after it."""
    c1, c2 = 1 - BETA1**STEP, 1 - BETA2**STEP
    first = [BETA1 * m + (1 - BETA1) * g for m, g in zip(first, gradients, strict=True)]
    second = [BETA2 * v + (1 - BETA2) * g * g for v, g in zip(second, gradients, strict=True)]
    weights = [
        w - LEARNING_RATE * (m / c1) / (sqrt(v / c2) + EPSILON)
        for w, m, v in zip(weights, first, second, strict=True)
    ]
    return weights, first, second


def _loss_and_gradients(weights: list[Array], x: Array, labels: Array) -> tuple[Array, list[Array]]:
    layers = len(weights) // 2
    inputs, h = [], x
    for i in range(layers):
        inputs.append(h)
        h = h @ weights[2 * i] + weights[2 * i + 1]
        if i < layers - 1:
            h = np.maximum(h, 0)
    loss, g = cross_entropy_grad(h, labels)
    gradients: list[Array] = []
    for i in reversed(range(layers)):
        gradients = [inputs[i].T @ g, g.sum(axis=0), *gradients]
        if i:
            g = (g @ weights[2 * i].T) * (inputs[i] > 0)
    return loss, gradients
