"""Layers of neural networks: LSTM, convolution, attention; forward, and with their gradients."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from .matrices import softmax
from .row import Array, Make, Rows, normal

rows = Rows()

BATCH, HIDDEN, FEATURES = 64, 256, 128


def sequences(rng: np.random.Generator, n: int) -> tuple[Array, ...]:
    """n steps of input, and the weights of the four gates i, f, g, o side by side."""
    return (
        rng.standard_normal((n, BATCH, FEATURES)),
        rng.standard_normal((FEATURES, 4 * HIDDEN)) * FEATURES**-0.5,
        rng.standard_normal((HIDDEN, 4 * HIDDEN)) * HIDDEN**-0.5,
        rng.standard_normal(4 * HIDDEN) * 0.1,
    )


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def _forward(x: Array, wx: Array, wh: Array, bias: Array) -> tuple[Array, list[tuple[Array, ...]]]:
    steps, batch, hidden = len(x), x.shape[1], len(wh)
    projected = x @ wx + bias
    h = c = np.zeros((batch, hidden), x.dtype)
    outputs, saved = np.empty((steps, batch, hidden), x.dtype), []
    for t in range(steps):
        i, f, g, o = np.split(projected[t] + h @ wh, 4, axis=1)
        i, f, g, o = sigmoid(i), sigmoid(f), np.tanh(g), sigmoid(o)
        before, c = c, f * c + i * g
        squashed = np.tanh(c)
        h = outputs[t] = o * squashed
        saved.append((i, f, g, o, before, squashed))
    return outputs, saved


def lstm_flops(n: int) -> float:
    return float(n * BATCH * 8 * HIDDEN * (HIDDEN + FEATURES))


@rows.add(
    "lstm",
    "LSTM of 100 steps",
    make=sequences,
    size=100,
    small=3,
    goal=1.0,
    passes=None,
    flops=lstm_flops,
)
def lstm(x: Array, wx: Array, wh: Array, bias: Array) -> Array:
    return _forward(x, wx, wh, bias)[0]


@rows.add(
    "lstm_grad",
    "mean square of its output, with gradient of the weights",
    make=sequences,
    size=100,
    small=3,
    goal=1.5,
    tolerance=1e-3,
    passes=None,
    flops=lambda n: n * BATCH * 8 * HIDDEN * (3 * HIDDEN + 2 * FEATURES),
)
def lstm_grad(x: Array, wx: Array, wh: Array, bias: Array) -> tuple[Array, ...]:
    outputs, saved = _forward(x, wx, wh, bias)
    dz = np.empty((*outputs.shape[:2], 4 * len(wh)), x.dtype)
    dh = dc = np.zeros(outputs.shape[1:], x.dtype)
    for t in reversed(range(len(x))):
        i, f, g, o, before, squashed = saved[t]
        dh = dh + outputs[t] * (2 / outputs.size)
        dc = dc + dh * o * (1 - squashed * squashed)
        dz[t] = np.concatenate(
            [
                dc * g * i * (1 - i),
                dc * before * f * (1 - f),
                dc * i * (1 - g * g),
                dh * squashed * o * (1 - o),
            ],
            axis=1,
        )
        dh, dc = dz[t] @ wh.T, dc * f
    flat = dz.reshape(-1, dz.shape[2])
    earlier = np.concatenate([np.zeros_like(outputs[:1]), outputs[:-1]])
    return (
        (outputs * outputs).mean(),
        x.reshape(-1, x.shape[2]).T @ flat,
        earlier.reshape(-1, len(wh)).T @ flat,
        flat.sum(axis=0),
    )


def images(side: int, channels: int, filters: int, width: int, *, cotangent: bool = False) -> Make:
    """n images NHWC, filters HWIO, and perhaps a cotangent of the output."""

    def make(rng: np.random.Generator, n: int) -> tuple[Array, ...]:
        made = (
            rng.standard_normal((n, side, side, channels)),
            rng.standard_normal((width, width, channels, filters)) * (width**2 * channels) ** -0.5,
        )
        return (*made, rng.standard_normal((n, side, side, filters))) if cotangent else made

    return make


def taps(x: Array) -> Iterator[tuple[tuple[int, int], Array]]:
    """The places of a 3 x 3 window, and for each the pixels under it, zeros around the image."""
    height, width = x.shape[1:3]
    padded = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    for i in range(3):
        for j in range(3):
            yield (i, j), padded[:, i : i + height, j : j + width]


def conv_flops(n: int) -> float:
    return float(2 * n * 56 * 56 * 64 * 64 * 9)


@rows.add(
    "conv",
    "convolution 3 x 3, 32 images 56 x 56 x 64, 64 filters",
    make=images(56, 64, 64, 3),
    size=32,
    small=1,
    goal=0.9,
    passes=None,
    flops=conv_flops,
)
def conv(x: Array, w: Array) -> Array:
    y: Any = 0
    for tap, seen in taps(x):
        y = y + seen @ w[tap]
    return y


@rows.add(
    "conv_grad",
    "the same with its two gradients",
    make=images(56, 64, 64, 3, cotangent=True),
    size=32,
    small=1,
    goal=0.9,
    tolerance=1e-3,
    passes=None,
    flops=lambda n: 3 * conv_flops(n),
)
def conv_grad(x: Array, w: Array, cotangent: Array) -> tuple[Array, Array, Array]:
    dx = conv(cotangent, w[::-1, ::-1].transpose(0, 1, 3, 2))
    flat = cotangent.reshape(-1, cotangent.shape[3])
    dw = np.empty_like(w)
    for tap, seen in taps(x):
        dw[tap] = seen.reshape(-1, x.shape[3]).T @ flat
    return conv(x, w), dx, dw


@rows.add(
    "conv_transpose",
    "transposed convolution 5 x 5 by stride 2, 28 x 28 x 64 to 56 x 56 x 32",
    make=images(28, 64, 32, 5),
    size=32,
    small=1,
    goal=0.9,
    passes=None,
    flops=lambda n: 2 * n * 28 * 28 * 64 * 32 * 25,
)
def conv_transpose(x: Array, w: Array) -> Array:
    n, height, width, _ = x.shape
    out = np.zeros((n, 2 * height + 3, 2 * width + 3, w.shape[3]), x.dtype)
    for i in range(5):
        for j in range(5):
            out[:, i : i + 2 * height : 2, j : j + 2 * width : 2] += x @ w[i, j]
    return out[:, 2 : 2 + 2 * height, 2 : 2 + 2 * width]


HEADS, KEY = 8, 64


def attention_flops(n: int) -> float:
    """The causal half of the two products, batch 8."""
    return float(2 * 8 * HEADS * n * n * KEY)


def _probabilities(q: Array, k: Array) -> Array:
    scores = q @ k.swapaxes(-1, -2) * q.shape[-1] ** -0.5
    scores = np.where(np.tril(np.ones(scores.shape[-2:], bool)), scores, -np.inf)
    return softmax(scores.reshape(-1, scores.shape[-1])).reshape(scores.shape)


@rows.add(
    "attention",
    "causal attention, batch 8, 8 heads, 512 x 64",
    make=normal(*[(8, HEADS, "n", KEY)] * 3),
    size=512,
    small=16,
    goal=1.4,
    passes=None,
    flops=attention_flops,
)
def attention(q: Array, k: Array, v: Array) -> Array:
    return _probabilities(q, k) @ v


@rows.add(
    "attention_grad",
    "the same with its three gradients",
    make=normal(*[(8, HEADS, "n", KEY)] * 4),
    size=512,
    small=16,
    goal=1.4,
    tolerance=1e-3,
    passes=None,
    flops=lambda n: 3.5 * attention_flops(n),
)
def attention_grad(q: Array, k: Array, v: Array, cotangent: Array) -> tuple[Array, ...]:
    p = _probabilities(q, k)
    dp = cotangent @ v.swapaxes(-1, -2)
    ds = p * (dp - (dp * p).sum(axis=-1, keepdims=True)) * q.shape[-1] ** -0.5
    return p @ v, ds @ k, ds.swapaxes(-1, -2) @ q, p.swapaxes(-1, -2) @ cotangent
