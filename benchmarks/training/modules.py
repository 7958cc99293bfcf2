"""jitney's modules and optimiser, in place: one compiled call is one step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jitney as jt
from jitney import nn, optim

from . import steps
from .steps import RATE, Array, Weights

Model = Any
cross_entropy = nn.losses.sparse_softmax_cross_entropy


def version() -> str:
    return jt.__version__


def start(network: str, weights: Weights, batch: tuple[Array, ...]) -> Callable[[], Any]:
    """A function of nothing that makes a step and gives the loss before it. Copies are refused."""
    if network == "leaves":
        return start_leaves(list(weights.values()), list(batch))
    model, loss = NETWORKS[network](weights)
    opt = optim.Adam(model, RATE)

    @jt.jit(inplace="require")
    def train(*batch: Any) -> Any:
        return opt.minimize(loss, *batch)

    return lambda: train(*batch)


def start_leaves(params: list[Array], gradients: list[Array]) -> Callable[[], Any]:
    """Adam alone."""
    opt = optim.Adam(params, RATE)

    @jt.jit(inplace="require")
    def train(gradients: Any) -> Any:
        opt.step(gradients)
        return (params[0] ** 2).mean()

    return lambda: train(gradients)


def wait(loss: Any) -> float:
    return float(loss)


def linear(weights: Weights, name: str) -> nn.Linear:
    w, b = weights[f"{name}.w"], weights[f"{name}.b"]
    return nn.Linear(*w.shape, w_init=w, b_init=b)


def classified(model: Model, x: Any, labels: Any) -> Any:
    return cross_entropy(model(x), labels)


def mlp(weights: Weights) -> tuple[Model, Callable[..., Any]]:
    first, second, last = (linear(weights, name) for name in "012")
    return nn.Sequential(first, nn.relu, second, nn.relu, last), classified


def cnn(weights: Weights) -> tuple[Model, Callable[..., Any]]:
    def block(name: str) -> list[Any]:
        w, b = weights[f"{name}.w"], weights[f"{name}.b"]
        conv = nn.Conv2d(*w.shape[2:], 3, padding=1, channels_last=True, w_init=w, b_init=b)
        return [conv, nn.relu, nn.MaxPool2d(2, channels_last=True)]

    layers = [*block("0"), *block("1"), nn.Flatten(), linear(weights, "2")]
    return nn.Sequential(*layers), classified


def recurrent(kind: Callable[..., Any]) -> Callable[[Weights], tuple[Model, Callable[..., Any]]]:
    def make(weights: Weights) -> tuple[Model, Callable[..., Any]]:
        layer = kind(len(weights["x.w"]), len(weights["h.w"]))
        cell = layer.cells[0]
        cell.w_x, cell.b_x = weights["x.w"].copy(), weights["x.b"].copy()
        cell.w_h, cell.b_h = weights["h.w"].copy(), weights["h.b"].copy()
        return nn.Sequential(
            layer, lambda outputs: outputs[0][-1], linear(weights, "out")
        ), classified

    return make


def transformer(weights: Weights) -> tuple[Model, Callable[..., Any]]:
    block = nn.TransformerBlock(steps.HEADS, len(weights["query.w"]))
    for name in ("query", "key", "value", "out"):
        setattr(block.attention, name, linear(weights, name))
    block.up, block.down = linear(weights, "up"), linear(weights, "down")
    return block, lambda model, x, target: nn.losses.mse(model(x), target)


NETWORKS: dict[str, Callable[[Weights], tuple[Model, Callable[..., Any]]]] = {
    "mlp": mlp,
    "cnn": cnn,
    "lstm": recurrent(nn.LSTM),
    "gru": recurrent(nn.GRU),
    "transformer": transformer,
}
