"""JAX and Optax: the whole step under `jax.jit`, which is given weights and state to reuse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import lax

from .steps import BETA1, BETA2, EPSILON, HEADS, RATE, Array, Weights


def version() -> str:
    return f"{jax.__version__}, optax {optax.__version__}"


def start(network: str, weights: Weights, batch: tuple[Array, ...]) -> Callable[[], Any]:
    """As `modules.start`."""
    opt = optax.adam(RATE, BETA1, BETA2, EPSILON)

    def train(params: Any, state: Any, batch: Any) -> Any:
        if network == "leaves":
            gradients = dict(zip(weights, batch, strict=True))
        else:
            value, gradients = jax.value_and_grad(NETWORKS[network])(params, *batch)
        updates, state = opt.update(gradients, state, params)
        params = optax.apply_updates(params, updates)
        return (params["0"] ** 2).mean() if network == "leaves" else value, params, state

    compiled = jax.jit(train, donate_argnums=(0, 1))
    params = jax.tree.map(jnp.array, weights)
    state, inputs = opt.init(params), jax.tree.map(jnp.array, batch)

    def step() -> Any:
        nonlocal params, state
        value, params, state = compiled(params, state, inputs)
        return value

    return step


def wait(loss: Any) -> float:
    return float(loss)


def linear(p: Any, name: str, x: Any) -> Any:
    return x @ p[f"{name}.w"] + p[f"{name}.b"]


def classified(logits: Any, labels: Any) -> Any:
    return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()


def mlp(p: Any, x: Any, labels: Any) -> Any:
    for name in "01":
        x = jax.nn.relu(linear(p, name, x))
    return classified(linear(p, "2", x), labels)


def cnn(p: Any, x: Any, labels: Any) -> Any:
    order = ("NHWC", "HWIO", "NHWC")
    for name in "01":
        w, b = p[f"{name}.w"], p[f"{name}.b"]
        x = lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=order) + b
        window = (1, 2, 2, 1)
        x = lax.reduce_window(jax.nn.relu(x), -np.inf, lax.max, window, window, "VALID")
    return classified(linear(p, "2", x.reshape(len(x), -1)), labels)


def lstm(p: Any, x: Any, labels: Any) -> Any:
    def step(state: Any, inputs: Any) -> Any:
        h, c = state
        i, f, g, o = jnp.split(inputs + h @ p["h.w"], 4, axis=1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        return (jax.nn.sigmoid(o) * jnp.tanh(c), c), None

    zeros = jnp.zeros((x.shape[1], len(p["h.w"])), x.dtype)
    (h, _), _ = lax.scan(step, (zeros, zeros), linear(p, "x", x) + p["h.b"])
    return classified(linear(p, "out", h), labels)


def gru(p: Any, x: Any, labels: Any) -> Any:
    def step(h: Any, inputs: Any) -> Any:
        r, z, n = jnp.split(inputs, 3, axis=1)
        hr, hz, hn = jnp.split(linear(p, "h", h), 3, axis=1)
        n = jnp.tanh(n + jax.nn.sigmoid(r + hr) * hn)
        return n + jax.nn.sigmoid(z + hz) * (h - n), None

    zeros = jnp.zeros((x.shape[1], len(p["h.w"])), x.dtype)
    return classified(linear(p, "out", lax.scan(step, zeros, linear(p, "x", x))[0]), labels)


def normalized(p: Any, name: str, x: Any) -> Any:
    return jax.nn.standardize(x) * p[f"{name}.scale"] + p[f"{name}.shift"]


def transformer(p: Any, x: Any, target: Any) -> Any:
    y = normalized(p, "attention_norm", x)
    q, k, v = (
        linear(p, name, y).reshape(*x.shape[:2], HEADS, -1) for name in ("query", "key", "value")
    )
    x = x + linear(p, "out", jax.nn.dot_product_attention(q, k, v).reshape(x.shape))
    y = linear(p, "up", normalized(p, "network_norm", x))
    x = x + linear(p, "down", jax.nn.gelu(y, approximate=False))
    return ((x - target) ** 2).mean()


NETWORKS: dict[str, Callable[..., Any]] = {
    "mlp": mlp,
    "cnn": cnn,
    "lstm": lstm,
    "gru": gru,
    "transformer": transformer,
}
