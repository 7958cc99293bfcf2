"""Two hundred steps of training: the losses are PyTorch's, with the same weights, order and dtype."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitney as jt
from jitney import nn

torch = pytest.importorskip("torch")
from test_parity_layers import F64, plain, products, put, turned  # noqa: E402

STEPS, RATE = 200, 0.05
T = np.transpose


class Network(nn.Module):
    """A CNN: convolutions, batch norm and pooling, then a product."""

    def __init__(self) -> None:
        self.first = nn.Conv2d(1, 6, 3, padding=1, dtype=F64)
        self.norm = nn.BatchNorm(6, dtype=F64)
        self.second = nn.Conv2d(6, 8, 3, stride=2, dtype=F64)
        self.pool = nn.MaxPool2d(2)
        self.out = nn.Linear(8, 4, dtype=F64)

    def __call__(self, x: Any) -> Any:
        x = self.pool(nn.relu(self.norm(self.first(x))))
        return self.out(nn.relu(self.second(x)).mean(axis=(2, 3)))


def mlp() -> Any:
    ours = nn.Sequential(nn.Linear(9, 16, dtype=F64), nn.relu, nn.Linear(16, 4, dtype=F64))
    theirs = torch.nn.Sequential(torch.nn.Linear(9, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4))
    same = [
        ("layers[0].w", "0.weight", T),
        ("layers[0].b", "0.bias", plain),
        ("layers[2].w", "2.weight", T),
        ("layers[2].b", "2.bias", plain),
    ]
    return ours, theirs, same, (32, 9)


def cnn() -> Any:
    t = torch.nn
    theirs = t.Sequential(
        *(t.Conv2d(1, 6, 3, padding=1), t.BatchNorm2d(6), t.ReLU(), t.MaxPool2d(2)),
        *(
            t.Conv2d(6, 8, 3, stride=2),
            t.ReLU(),
            t.AdaptiveAvgPool2d(1),
            t.Flatten(),
            t.Linear(8, 4),
        ),
    )
    same = [
        ("first.w", "0.weight", turned),
        ("first.b", "0.bias", plain),
        ("second.w", "4.weight", turned),
        ("second.b", "4.bias", plain),
        ("out.w", "8.weight", T),
        ("out.b", "8.bias", plain),
    ]
    return Network(), theirs, same, (16, 1, 10, 10)


def transformer() -> Any:
    encoder = nn.TransformerEncoder(2, 2, 8, hidden=16, dtype=F64)
    ours = nn.Sequential(encoder, nn.Linear(8, 4, dtype=F64), lambda x: x.mean(axis=1))

    class Theirs(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            layer = torch.nn.TransformerEncoderLayer(
                8, 2, 16, 0.0, "gelu", batch_first=True, norm_first=True
            )
            self.stack = torch.nn.TransformerEncoder(layer, 2, torch.nn.LayerNorm(8))
            self.out = torch.nn.Linear(8, 4)

        def forward(self, x: Any) -> Any:
            return self.out(self.stack(x)).mean(dim=1)

    same = [("layers[1].w", "out.weight", T), ("layers[1].b", "out.bias", plain)]
    for i in range(2):
        same += products(f"layers[0].blocks[{i}].", f"stack.layers.{i}.")
    return ours, Theirs(), same, (8, 6, 8)


def cross_entropy(logits: Any, labels: Any) -> Any:
    return -nn.log_softmax(logits)[np.arange(len(labels)), labels].mean()


@pytest.mark.parametrize("make", [mlp, cnn, transformer], ids=lambda f: f.__name__)
def test_losses_of_200_steps(make: Any) -> None:
    torch.manual_seed(0)
    r = np.random.default_rng(0)
    ours, theirs, same, shape = make()
    theirs = theirs.double().train()
    named = dict(theirs.named_parameters())
    for path, name, way in same:
        put(ours, path, way(named[name].detach().numpy()).copy())

    def loss(model: Any, x: Any, y: Any) -> Any:
        return cross_entropy(model(x), y)

    @jt.jit
    def step(x: Any, y: Any) -> Any:
        value, gradient = jt.value_and_grad(loss)(ours, x, y)
        weights = dict(jt.tree.leaves_with_path(ours))
        for path, g in jt.tree.leaves_with_path(gradient):
            weights[path][...] -= RATE * g
        return value

    optimiser = torch.optim.SGD(theirs.parameters(), RATE)
    for _ in range(STEPS):
        x, y = r.normal(size=shape), r.integers(0, 4, shape[0])
        optimiser.zero_grad()
        wanted = torch.nn.functional.cross_entropy(theirs(torch.tensor(x)), torch.tensor(y))
        wanted.backward()
        optimiser.step()
        assert abs(step(x, y) / wanted.item() - 1) < 1e-9
