"""Digits by a small convolutional network, which sees them shifted (scikit-learn's digits).

99.5 % of a fifth held out, mean of five seeds; judged is a moving average of the weights.

python examples/digits.py
"""

from __future__ import annotations

import numpy as np

import jitney as jt
from jitney import nn, optim


def network(width: int, seed: int) -> nn.Sequential:
    """Two blocks of convolutions at 8 x 8 and 4 x 4, then the classes."""
    rng = np.random.default_rng(seed)

    def block(features, out):
        conv = nn.Conv2d(features, out, 3, padding=1, bias=False, rng=rng)
        return [conv, nn.BatchNorm(out), nn.relu]

    return nn.Sequential(
        *block(1, width),
        *block(width, width),
        nn.MaxPool2d(2),
        *block(width, 2 * width),
        *block(2 * width, 2 * width),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Dropout(0.3, rng=rng),
        nn.Linear(8 * width, 10, rng=rng),
    )


def held_out(seed: int):
    """Pictures and classes to train on, and a fifth of each class to be judged by."""
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    digits = load_digits()
    pictures = (digits.images[:, None] / 16).astype(np.float32)
    return train_test_split(
        pictures, digits.target, test_size=0.2, stratify=digits.target, random_state=seed
    )


def shifted(pictures, rng):
    """Each picture moved by up to a pixel each way; what comes in is dark."""
    count, _, rows, columns = pictures.shape
    wide = np.pad(pictures, ((0, 0), (0, 0), (1, 1), (1, 1)))
    down, right = rng.integers(0, 3, (2, count, 1, 1))
    rows = down + np.arange(rows)[:, None]
    columns = right + np.arange(columns)
    return wide[np.arange(count)[:, None, None], 0, rows, columns][:, None]


def loss(model, x, labels):
    """The mean cross entropy."""
    return nn.losses.sparse_softmax_cross_entropy(model(x), labels)


def trained(x, labels, steps: int = 2000, batch: int = 64, width: int = 16, seed: int = 0):
    """A network, trained: its weights are averages of the last hundred steps or so."""
    model = network(width, seed)
    average = nn.EMA(model, 0.99)
    opt = optim.AdamW(model, optim.cosine_decay_schedule(4e-3, steps), weight_decay=0.02)
    rng = np.random.default_rng(seed)

    @jt.jit
    def train(x, labels):
        value = opt.minimize(loss, x, labels)
        average.update()
        return value

    for _ in range(steps):
        some = rng.integers(0, len(x), batch)
        train(shifted(x[some], rng), labels[some])
    return average.average.eval()


def main(seed: int = 0, **settings) -> float:
    """Train, and return the share of the fifth held out that is right."""
    x, unseen, labels, truth = held_out(seed)
    model = trained(x, labels, seed=seed, **settings)
    guess = jt.jit(lambda x: model(x).argmax(axis=1))(unseen)
    share = float((guess == truth).mean())
    print(f"{share:.2%} of {len(truth)} digits")
    return share


if __name__ == "__main__":
    print(f"mean: {np.mean([main(seed=seed) for seed in range(5)]):.2%}")
