"""PyTorch, eager: its modules, and its fused Adam."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .steps import BETA1, BETA2, EPSILON, HEADS, RATE, Array, Weights

Loss = Callable[..., Tensor]


def version() -> str:
    return torch.__version__


def start(
    network: str,
    weights: Weights,
    batch: tuple[Array, ...],
    compiled: Callable[[Loss], Loss] = lambda loss: loss,
) -> Callable[[], Tensor]:
    """As `modules.start`; `compiled` makes a faster function of the loss."""
    inputs = [torch.from_numpy(a) for a in batch]
    if network == "leaves":
        return start_leaves([torch.from_numpy(w.copy()) for w in weights.values()], inputs)
    params, loss = NETWORKS[network](weights)
    loss, opt = compiled(loss), adam(params)

    def train() -> Tensor:
        opt.zero_grad()
        value = loss(*inputs)
        value.backward()
        opt.step()
        return value.detach()

    return train


def start_leaves(params: list[Tensor], gradients: list[Tensor]) -> Callable[[], Tensor]:
    for param, gradient in zip(params, gradients, strict=True):
        param.grad = gradient
    opt = adam(params)

    def train() -> Tensor:
        opt.step()
        return params[0].square().mean()

    return train


def adam(params: Any) -> torch.optim.Adam:
    return torch.optim.Adam(params, RATE, (BETA1, BETA2), EPSILON, fused=True)


def wait(loss: Tensor) -> float:
    return loss.item()


def fill(weights: Weights, **places: nn.Parameter) -> None:
    """The weights of those names into parameters: matrices and kernels have the outputs first there."""
    with torch.no_grad():
        for name, place in places.items():
            w = torch.from_numpy(weights[name.replace("_", ".")])
            order = {1: (0,), 2: (1, 0), 4: (3, 2, 0, 1)}[w.ndim]
            place.copy_(w.permute(order))


def linear(weights: Weights, name: str) -> nn.Linear:
    layer = nn.Linear(*weights[f"{name}.w"].shape)
    fill({"w": weights[f"{name}.w"], "b": weights[f"{name}.b"]}, w=layer.weight, b=layer.bias)
    return layer


def classified(model: nn.Module) -> tuple[Any, Loss]:
    return model.parameters(), lambda x, labels: F.cross_entropy(model(x), labels)


def mlp(weights: Weights) -> tuple[Any, Loss]:
    first, second, last = (linear(weights, name) for name in "012")
    return classified(nn.Sequential(first, nn.ReLU(), second, nn.ReLU(), last))


class ChannelsFirst(nn.Module):
    """NHWC seen as NCHW: what PyTorch calls channels_last, its faster layout here."""

    def forward(self, x: Tensor) -> Tensor:
        return x.permute(0, 3, 1, 2)


class ChannelsLast(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.permute(0, 2, 3, 1)


def cnn(weights: Weights) -> tuple[Any, Loss]:
    def block(name: str) -> list[nn.Module]:
        w, b = weights[f"{name}.w"], weights[f"{name}.b"]
        conv = nn.Conv2d(*w.shape[2:], 3, padding=1)
        fill({"w": w, "b": b}, w=conv.weight, b=conv.bias)
        return [conv, nn.ReLU(), nn.MaxPool2d(2)]

    layers = [*block("0"), *block("1"), ChannelsLast(), nn.Flatten(), linear(weights, "2")]
    model = nn.Sequential(ChannelsFirst(), *layers)
    return classified(model.to(memory_format=torch.channels_last))


class Last(nn.Module):
    """The output of the last step."""

    def forward(self, outputs: Any) -> Tensor:
        return outputs[0][-1]


def recurrent(kind: Callable[..., Any]) -> Callable[[Weights], tuple[Any, Loss]]:
    def make(weights: Weights) -> tuple[Any, Loss]:
        layer = kind(len(weights["x.w"]), len(weights["h.w"]))
        fill(weights, x_w=layer.weight_ih_l0, x_b=layer.bias_ih_l0)
        fill(weights, h_w=layer.weight_hh_l0, h_b=layer.bias_hh_l0)
        return classified(nn.Sequential(layer, Last(), linear(weights, "out")))

    return make


class Block(nn.Module):
    """A transformer's block by `scaled_dot_product_attention`, with one product for q, k and v."""

    def __init__(self, weights: Weights) -> None:
        super().__init__()
        names = "query", "key", "value"
        joined = [
            torch.cat([torch.from_numpy(weights[f"{n}.{k}"]) for n in names], -1) for k in "wb"
        ]
        self.qkv = linear({"qkv.w": joined[0].numpy(), "qkv.b": joined[1].numpy()}, "qkv")
        self.out, self.up, self.down = (linear(weights, n) for n in ("out", "up", "down"))
        d = len(weights["out.b"])
        self.attention_norm, self.network_norm = nn.LayerNorm(d), nn.LayerNorm(d)

    def forward(self, x: Tensor) -> Tensor:
        parts = self.qkv(self.attention_norm(x)).chunk(3, dim=-1)
        q, k, v = (p.unflatten(-1, (HEADS, -1)).transpose(1, 2) for p in parts)
        read = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
        x = x + self.out(read)
        return x + self.down(F.gelu(self.up(self.network_norm(x))))


def transformer(weights: Weights) -> tuple[Any, Loss]:
    block = Block(weights)
    return block.parameters(), lambda x, target: F.mse_loss(block(x), target)


NETWORKS: dict[str, Callable[[Weights], tuple[Any, Loss]]] = {
    "mlp": mlp,
    "cnn": cnn,
    "lstm": recurrent(nn.LSTM),
    "gru": recurrent(nn.GRU),
    "transformer": transformer,
}
