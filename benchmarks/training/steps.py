"""The networks: initial weights by name, and a batch. All is float32, and the same for everybody.

Matrices are (in, out), kernels of convolutions (height, width, in, out), and gates stand side by side in
PyTorch's order; whoever has them otherwise turns them round before the clock runs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, Any]
Weights = dict[str, Array]
Make = Callable[[np.random.Generator, bool], tuple[Weights, tuple[Array, ...]]]

RATE, BETA1, BETA2, EPSILON = 1e-3, 0.9, 0.999, 1e-8
CLASSES, HEADS, LEAVES = 10, 4, 200


class Step(NamedTuple):
    """A row: `make(rng, small)` gives the weights and the batch. `network` is what frameworks know."""

    title: str
    network: str
    make: Make

    def inputs(self, small: bool = False) -> tuple[Weights, tuple[Array, ...]]:
        weights, batch = self.make(np.random.default_rng(0), small)
        return {name: w.astype(np.float32) for name, w in weights.items()}, tuple(
            a.astype(np.float32) if a.dtype.kind == "f" else a for a in batch
        )


def dense(rng: np.random.Generator, name: str, inputs: int, outputs: int) -> Weights:
    """A matrix `name.w` that keeps the scale of what comes in, and a small bias `name.b`."""
    return {
        f"{name}.w": rng.standard_normal((inputs, outputs)) * inputs**-0.5,
        f"{name}.b": rng.standard_normal(outputs) * 0.01,
    }


def labels(rng: np.random.Generator, count: int) -> Array:
    return rng.integers(0, CLASSES, count)


def mlp(rng: np.random.Generator, small: bool) -> tuple[Weights, tuple[Array, ...]]:
    a, b, batch = (12, 16, 8) if small else (784, 512, 128)
    weights = {**dense(rng, "0", a, b), **dense(rng, "1", b, b), **dense(rng, "2", b, CLASSES)}
    return weights, (rng.standard_normal((batch, a)), labels(rng, batch))


def cnn(rng: np.random.Generator, small: bool) -> tuple[Weights, tuple[Array, ...]]:
    """Images are channels last."""
    side, a, b, batch = (8, 4, 6, 2) if small else (28, 32, 64, 64)
    weights = {}
    for name, inputs, outputs in (("0", 1, a), ("1", a, b)):
        flat = dense(rng, name, 9 * inputs, outputs)
        weights |= {**flat, f"{name}.w": flat[f"{name}.w"].reshape(3, 3, inputs, outputs)}
    weights |= dense(rng, "2", (side // 4) ** 2 * b, CLASSES)
    return weights, (rng.standard_normal((batch, side, side, 1)), labels(rng, batch))


def recurrent(gates: int) -> Make:
    """A layer over sequences (steps, batch, features), and a class for each from its last output."""

    def make(rng: np.random.Generator, small: bool) -> tuple[Weights, tuple[Array, ...]]:
        steps, batch, features, hidden = (3, 2, 4, 8) if small else (50, 32, 64, 128)
        x, h = dense(rng, "x", features, gates * hidden), dense(rng, "h", hidden, gates * hidden)
        weights = {**x, **h, **dense(rng, "out", hidden, CLASSES)}
        return weights, (rng.standard_normal((steps, batch, features)), labels(rng, batch))

    return make


def transformer(rng: np.random.Generator, small: bool) -> tuple[Weights, tuple[Array, ...]]:
    """One block that normalises first, and the mean square of its distance from a target."""
    batch, places, d = (2, 5, 8) if small else (16, 64, 128)
    weights: Weights = {}
    for name in ("query", "key", "value", "out"):
        weights |= dense(rng, name, d, d)
    weights |= {**dense(rng, "up", d, 4 * d), **dense(rng, "down", 4 * d, d)}
    for name in ("attention_norm", "network_norm"):
        weights |= {f"{name}.scale": np.ones(d), f"{name}.shift": np.zeros(d)}
    x, target = rng.standard_normal((2, batch, places, d))
    return weights, (x, target)


def leaves(side: int) -> Make:
    """Nothing but the optimiser: many weights, and for each a gradient, which points away from 0. What
    counts as the loss is the mean square of the first."""

    def make(rng: np.random.Generator, small: bool) -> tuple[Weights, tuple[Array, ...]]:
        count, n = (5, 3) if small else (LEAVES, side)
        weights = {str(i): rng.standard_normal((n, n)) for i in range(count)}
        return weights, tuple([0.1 * w for w in weights.values()])

    return make


STEPS = {
    "mlp": Step("MLP 784-512-512-10, batch 128", "mlp", mlp),
    "cnn": Step("CNN 28 x 28, 32 and 64 features, batch 64", "cnn", cnn),
    "lstm": Step("LSTM of 50 steps, 64 to 128, batch 32", "lstm", recurrent(4)),
    "gru": Step("GRU of 50 steps, 64 to 128, batch 32", "gru", recurrent(3)),
    "transformer": Step(
        "transformer block, 64 places of 128, 4 heads, batch 16", "transformer", transformer
    ),
    "adam_64": Step("Adam over 200 leaves of 64 x 64", "leaves", leaves(64)),
    "adam_256": Step("Adam over 200 leaves of 256 x 256", "leaves", leaves(256)),
}
