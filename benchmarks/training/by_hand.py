"""The same in jitney without its libraries: arrays in a dict, formulas of NumPy, Adam written out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import jitney as jt

from .steps import BETA1, BETA2, EPSILON, HEADS, RATE, Array, Weights


def version() -> str:
    return jt.__version__


def start(network: str, weights: Weights, batch: tuple[Array, ...]) -> Callable[[], Any]:
    """As `modules.start`."""
    weights = {name: w.copy() for name, w in weights.items()}
    first, second = ({k: np.zeros_like(w) for k, w in weights.items()} for _ in "mv")
    count = np.zeros((), np.int64)

    @jt.jit(inplace="require")
    def train(
        weights: Weights, first: Weights, second: Weights, count: Array, batch: tuple[Array, ...]
    ) -> Any:
        if network != "leaves":
            value, gradients = jt.value_and_grad(NETWORKS[network])(weights, *batch)
        else:
            gradients = dict(zip(weights, batch, strict=True))
        count += 1
        c1, c2 = (np.float32(1) / (1 - b ** count.astype(np.float32)) for b in (BETA1, BETA2))
        for name, g in gradients.items():
            w, m, v = weights[name], first[name], second[name]
            m[...] = BETA1 * m + (1 - BETA1) * g
            v[...] = BETA2 * v + (1 - BETA2) * g * g
            w -= RATE * (m * c1) / (np.sqrt(v * c2) + EPSILON)
        return value if network != "leaves" else (weights["0"] ** 2).mean()

    return lambda: train(weights, first, second, count, batch)


def wait(loss: Any) -> float:
    return float(loss)


def linear(p: Weights, name: str, x: Any) -> Any:
    return x @ p[f"{name}.w"] + p[f"{name}.b"]


def cross_entropy(logits: Any, labels: Any) -> Any:
    shifted = logits - logits.max(axis=1, keepdims=True)
    chosen = np.take_along_axis(shifted, labels[:, None], axis=1)[:, 0]
    return (np.log(np.exp(shifted).sum(axis=1)) - chosen).mean()


def mlp(p: Weights, x: Any, labels: Any) -> Any:
    for name in "01":
        x = np.maximum(linear(p, name, x), 0)
    return cross_entropy(linear(p, "2", x), labels)


def cnn(p: Weights, x: Any, labels: Any) -> Any:
    for name in "01":
        x = jt.conv(x, p[f"{name}.w"], padding=1, layout="NHWC", kernel_layout="HWIO")
        x = jt.max_pool(np.maximum(x + p[f"{name}.b"], 0), 2, 2, layout="NHWC")
    return cross_entropy(linear(p, "2", x.reshape(len(x), -1)), labels)


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def lstm(p: Weights, x: Any, labels: Any) -> Any:
    def step(state: Any, inputs: Any) -> Any:
        h, c = state
        i, f, g, o = np.split(inputs + h @ p["h.w"], 4, axis=1)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        return (sigmoid(o) * np.tanh(c), c), None

    zeros = np.zeros((x.shape[1], len(p["h.w"])), np.float32)
    (h, _), _ = jt.scan(step, (zeros, zeros), linear(p, "x", x) + p["h.b"])
    return cross_entropy(linear(p, "out", h), labels)


def gru(p: Weights, x: Any, labels: Any) -> Any:
    def step(h: Any, inputs: Any) -> Any:
        r, z, n = np.split(inputs, 3, axis=1)
        hr, hz, hn = np.split(linear(p, "h", h), 3, axis=1)
        n = np.tanh(n + sigmoid(r + hr) * hn)
        return n + sigmoid(z + hz) * (h - n), None

    zeros = np.zeros((x.shape[1], len(p["h.w"])), np.float32)
    return cross_entropy(linear(p, "out", jt.scan(step, zeros, linear(p, "x", x))[0]), labels)


def normalized(p: Weights, name: str, x: Any) -> Any:
    apart = x - x.mean(axis=-1, keepdims=True)
    x = apart / np.sqrt((apart * apart).mean(axis=-1, keepdims=True) + 1e-5)
    return x * p[f"{name}.scale"] + p[f"{name}.shift"]


def transformer(p: Weights, x: Any, target: Any) -> Any:
    y = normalized(p, "attention_norm", x)
    q, k, v = (
        linear(p, name, y).reshape(*x.shape[:2], HEADS, -1) for name in ("query", "key", "value")
    )
    read = jt.dot_product_attention(q, k, v).reshape(x.shape)
    x = x + linear(p, "out", read)
    y = linear(p, "up", normalized(p, "network_norm", x))
    x = x + linear(p, "down", 0.5 * y * (1 + jt.erf(y * 0.5**0.5)))
    return ((x - target) ** 2).mean()


NETWORKS: dict[str, Callable[..., Any]] = {
    "mlp": mlp,
    "cnn": cnn,
    "lstm": lstm,
    "gru": gru,
    "transformer": transformer,
}
