"""Networks of real sizes: their values and gradients against NumPy, operation by operation.

Small shapes meet one block, one unit and one chunk; batches of up to 1,000 and widths of up to 784, with
and without factors in common with the lengths of vectors, meet many.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np

import jitney as jt

from .compare import Case

BATCHES = [1, 2, 7, 24, 25, 32, 50, 64, 75, 96, 100, 128, 200, 256, 333, 512, 1000]
WIDTHS = [5, 8, 10, 16, 24, 25, 31, 48, 50, 64, 75, 96, 100, 128, 200, 256, 300, 512, 784]

Layer = Callable[[Any, Any], Any]


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


ACTIVATIONS: dict[str, Callable[[Any], Any]] = {
    "relu": lambda x: np.maximum(x, 0),
    "tanh": np.tanh,
    "sigmoid": sigmoid,
    "softplus": lambda x: np.logaddexp(x, 0),
    "gelu": lambda x: 0.5 * x * (1 + np.tanh(0.7978845608 * (x + 0.044715 * x**3))),
    "leaky": lambda x: np.where(x > 0, x, 0.1 * x),
    "swish": lambda x: x * sigmoid(x),
    "abs": np.abs,
    "sin": np.sin,
    "none": lambda x: x,
}


def layernorm(h: Any) -> Any:
    return (h - h.mean(-1, keepdims=True)) / np.sqrt(h.var(-1, keepdims=True) + 1e-3)


def batchnorm(h: Any) -> Any:
    return (h - h.mean(0)) / np.sqrt(h.var(0) + 1e-3)


def softmax(h: Any) -> Any:
    e = np.exp(h - h.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


NORMS: dict[str, Callable[[Any], Any]] = {
    "": lambda h: h, "layernorm": layernorm, "batchnorm": batchnorm, "softmax": softmax,
}  # fmt: skip

LOSSES: dict[str, Callable[[Any, Any], Any]] = {
    "squares": lambda y, t: ((y - t) ** 2).sum(),
    "mean squares": lambda y, t: ((y - t) ** 2).mean(),
    "cross entropy": lambda y, t: -(softmax(t) * np.log(softmax(y) + 1e-9)).sum(-1).mean(),
    "hinge": lambda y, t: np.maximum(1 - y * np.sign(t), 0).mean(),
    "one column": lambda y, t: (y[:, 0] * t[:, 0]).sum() + np.sin(y).mean(),
    "logsumexp": lambda y, t: (np.log(np.exp(y - y.max(1, keepdims=True)).sum(1)) * t[:, 0]).sum(),
}


def networks(seed: int) -> Case:
    """One to six layers of all kinds; the derivative of everything, or the values."""
    draw = random.Random(seed)
    dtype = draw.choice([np.float64, np.float64, np.float32])
    batch, width = draw.choice(BATCHES), draw.choice(WIDTHS)
    rng = np.random.default_rng(seed)
    plan: list[tuple[str, str, str]] = []
    weights: dict[str, np.ndarray] = {}
    widths = [width]
    shared: dict[tuple[int, ...], str] = {}

    def weight(shape: tuple[int, ...], name: str) -> str:
        """A new weight, or one of that shape again, as tied layers have it."""
        if shape in shared and draw.random() < 0.3:
            return shared[shape]
        weights[name] = (rng.normal(size=shape) / np.sqrt(shape[0])).astype(dtype)
        shared[shape] = name
        return name

    names: list[dict[str, str]] = []
    for k in range(draw.randint(1, 6)):
        kind = draw.choice(["dense"] * 5 + ["residual", "gated", "turned", "columns"])
        out = widths[-1] if kind == "residual" or draw.random() < 0.3 else draw.choice(WIDTHS)
        if batch * max(widths[-1], out) > 300_000:
            out = draw.choice(WIDTHS[:8])
        kind = "dense" if kind == "residual" and out != widths[-1] else kind
        own = {"w": weight((widths[-1], out), f"w{k}")}
        if draw.random() < 0.7:
            own["b"] = weight((out,), f"b{k}")
        if kind == "gated":
            own["g"] = weight((widths[-1], out), f"g{k}")
        names.append(own)
        plan.append((kind, draw.choice(list(ACTIVATIONS)), draw.choice(["", "", "", *NORMS])))
        widths.append(out)
    loss = draw.choice(list(LOSSES))
    decay = draw.choice([0.0, 0.0, 1e-3])

    def run(weights: Any, x: Any, target: Any) -> Any:
        h = x
        for (kind, activation, norm), own in zip(plan, names, strict=True):
            z = h @ weights[own["w"]]
            if kind == "turned":
                z = (weights[own["w"]].T @ h.T).T
            if "b" in own:
                z = z + weights[own["b"]]
            z = NORMS[norm](ACTIVATIONS[activation](z))
            if kind == "residual":
                z = z + h
            elif kind == "gated":
                z = z * sigmoid(h @ weights[own["g"]])
            elif kind == "columns":
                z = z - z.mean(0)
            h = z
        total = LOSSES[loss](h, target)
        if decay:
            total = total + decay * sum((w * w).sum() for w in weights.values())
        return total

    arguments = [
        weights,
        rng.normal(size=(batch, width)).astype(dtype),
        rng.normal(size=(batch, widths[-1])).astype(dtype),
    ]
    if draw.random() < 0.2:
        plain, how = run, "values"
    elif draw.random() < 0.3:
        plain, how = jt.value_and_grad(run, (0, 1)), "value and gradients"
    else:
        plain, how = jt.grad(run), "gradients"
    text = f"{how} of {np.dtype(dtype)}, batch {batch}, widths {widths}, {plan}, {names}, {loss}"
    digits = 1e-8 if dtype == np.float64 else 2e-3
    return Case(plain, jt.jit(lambda *a: plain(*a)), arguments, text, digits)
