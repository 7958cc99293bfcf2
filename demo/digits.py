"""Train a two-layer network on the UCI handwritten digits, and show what jitney did.

`loss` and `train_step` are plain NumPy code with one addition, `jt.value_and_grad`. For comparison
`numpy_train_step` computes the same step with the gradient written by hand.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import jitney as jt

Array = np.ndarray[Any, Any]
Params = dict[str, Array]
Step = Callable[..., tuple[Any, Params, Params]]

HIDDEN = 128
BATCH = 64
RATE = 0.1
MOMENTUM = 0.9
TARGET_ACCURACY = 0.96


def predict(params: Params, images: Array) -> Array:
    """The logits of the ten classes, one row per image."""
    hidden = np.maximum(images @ params["w1"] + params["b1"], 0)
    return hidden @ params["w2"] + params["b2"]


def loss(params: Params, images: Array, labels: Array) -> Any:
    """Mean softmax cross-entropy."""
    logits = predict(params, images)
    logits = logits - logits.max(axis=1, keepdims=True)
    log_likelihood = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    return -log_likelihood[np.arange(len(labels)), labels].mean()


def train_step(params: Params, velocity: Params, images: Array, labels: Array) -> Any:
    """One step of gradient descent with momentum: (loss, new params, new velocity)."""
    value, gradient = jt.value_and_grad(loss)(params, images, labels)
    velocity = {k: MOMENTUM * velocity[k] - RATE * gradient[k] for k in params}
    params = {k: params[k] + velocity[k] for k in params}
    return value, params, velocity


def numpy_train_step(params: Params, velocity: Params, images: Array, labels: Array) -> Any:
    """The same step in NumPy alone, its gradient written by hand."""
    rows = np.arange(len(labels))
    hidden = np.maximum(images @ params["w1"] + params["b1"], 0)
    logits = hidden @ params["w2"] + params["b2"]
    logits -= logits.max(axis=1, keepdims=True)
    exponentials = np.exp(logits)
    totals = exponentials.sum(axis=1, keepdims=True)
    value = -(logits[rows, labels] - np.log(totals[:, 0])).mean()

    d_logits = exponentials / totals
    d_logits[rows, labels] -= 1
    d_logits /= len(labels)
    d_hidden = d_logits @ params["w2"].T
    d_hidden[hidden == 0] = 0
    gradient = {
        "w1": images.T @ d_hidden,
        "b1": d_hidden.sum(axis=0),
        "w2": hidden.T @ d_logits,
        "b2": d_logits.sum(axis=0),
    }
    velocity = {k: MOMENTUM * velocity[k] - RATE * gradient[k] for k in params}
    params = {k: params[k] + velocity[k] for k in params}
    return value, params, velocity


@dataclass(frozen=True)
class Digits:
    """8x8 grey images as float32 rows of 64 in 0..1, with their labels, split once."""

    train_images: Array
    train_labels: Array
    test_images: Array
    test_labels: Array

    def batches(self, rng: np.random.Generator) -> Iterator[tuple[Array, Array]]:
        """One epoch in random order, in full batches (the few images left over wait)."""
        order = rng.permutation(len(self.train_images))
        for start in range(0, len(order) - BATCH + 1, BATCH):
            pick = order[start : start + BATCH]
            yield self.train_images[pick], self.train_labels[pick]


def load_digits(seed: int = 0) -> Digits:
    """The data set that scikit-learn ships: four fifths to train on, one fifth to test on.

    Raises ImportError with the command to run if scikit-learn is not installed.
    """
    try:
        from sklearn import datasets
    except ImportError as error:
        raise ImportError(
            "the demo reads the handwritten digits that scikit-learn ships, and scikit-learn is "
            "not installed; run: python -m pip install 'jitney[demo]'"
        ) from error
    images, labels = datasets.load_digits(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(images))
    images = (images[order] / 16).astype(np.float32)
    labels = labels[order].astype(np.int64)
    split = len(images) * 4 // 5
    return Digits(images[:split], labels[:split], images[split:], labels[split:])


def initial_state(seed: int = 0) -> tuple[Params, Params]:
    """Random params (He initialisation) and a velocity of zeros."""
    rng = np.random.default_rng(seed)

    def weights(rows: int, columns: int) -> Array:
        return (rng.standard_normal((rows, columns)) * np.sqrt(2 / rows)).astype(np.float32)

    params = {
        "w1": weights(64, HIDDEN),
        "b1": np.zeros(HIDDEN, np.float32),
        "w2": weights(HIDDEN, 10),
        "b2": np.zeros(10, np.float32),
    }
    return params, {k: np.zeros_like(p) for k, p in params.items()}


def accuracy(logits: Array, labels: Array) -> float:
    """The share of rows whose largest logit is at the label."""
    return float((logits.argmax(axis=1) == labels).mean())


@dataclass(frozen=True)
class Training:
    """What `train` gives back."""

    params: Params
    test_accuracy: float
    seconds: float
    steps: int


def train(
    step: Step,
    data: Digits,
    epochs: int,
    seed: int = 0,
    report: Callable[[str], None] = lambda line: None,
) -> Training:
    """Run `epochs` epochs with `step`, one line of `report` every few epochs."""
    params, velocity = initial_state(seed)
    rng = np.random.default_rng(seed + 1)
    every = max(1, epochs // 5)
    seconds, steps = 0.0, 0
    for epoch in range(1, epochs + 1):
        losses = []
        start = time.perf_counter()
        for images, labels in data.batches(rng):
            value, params, velocity = step(params, velocity, images, labels)
            losses.append(float(value))
        seconds += time.perf_counter() - start
        steps += len(losses)
        if epoch % every == 0 or epoch == epochs:
            share = accuracy(predict(params, data.test_images), data.test_labels)
            report(f"epoch {epoch:3d}   loss {np.mean(losses):.4f}   test accuracy {share:.2%}")
    share = accuracy(predict(params, data.test_images), data.test_labels)
    return Training(params, share, seconds, steps)


def race(steps: dict[str, Step], arguments: tuple[Any, ...], rounds: int = 200) -> dict[str, float]:
    """Median seconds of one call of each step, the calls taken in alternation."""
    times: dict[str, list[float]] = {name: [] for name in steps}
    for _ in range(rounds):
        for name, step in steps.items():
            start = time.perf_counter()
            step(*arguments)
            times[name].append(time.perf_counter() - start)
    return {name: statistics.median(samples) for name, samples in times.items()}


def largest_difference(a: Any, b: Any) -> float:
    """max |a - b| over the arrays of two equal structures of tuples and dicts."""
    if isinstance(a, dict):
        return max(largest_difference(a[k], b[k]) for k in b)
    if isinstance(a, tuple):
        return max(largest_difference(x, y) for x, y in zip(a, b, strict=True))
    return float(np.max(np.abs(np.asarray(a) - np.asarray(b))))
