"""Tumours, benign or malignant, by thirty measurements (scikit-learn's breast cancer).

98.1 % of a fifth held out and an area under the ROC of 0.997, means of five seeds.

python examples/breast_cancer.py
"""

from __future__ import annotations

import numpy as np

import jitney as jt
from jitney import nn, optim, train


def held_out(seed: int):
    """Measurements and labels to train on, and a fifth of each class to be judged by."""
    from sklearn.datasets import load_breast_cancer
    from sklearn.model_selection import train_test_split

    data = load_breast_cancer()
    x, unseen, labels, truth = train_test_split(
        data.data, data.target, test_size=0.2, stratify=data.target, random_state=seed
    )
    mean, width = x.mean(axis=0), x.std(axis=0)  # of what is known while training
    return (x - mean) / width, (unseen - mean) / width, labels, truth


def loss(model, x, labels):
    """The mean cross entropy of logits that a tumour is benign."""
    return nn.losses.sigmoid_cross_entropy(model(x)[:, 0], labels.astype(np.float64))


def main(steps: int = 300, hidden: int = 16, seed: int = 0) -> tuple[float, float]:
    """Train, and return the share of the fifth held out that is right, and the area under the ROC."""
    x, unseen, labels, truth = held_out(seed)
    rng = np.random.default_rng(seed)
    options = {"rng": rng, "dtype": np.float64}
    model = nn.Sequential(
        nn.Linear(30, hidden, **options),
        nn.tanh,
        nn.Dropout(0.2, rng=rng),
        nn.Linear(hidden, 1, **options),
    )
    opt = optim.AdamW(model, optim.cosine_decay_schedule(1e-2, steps), weight_decay=0.3)

    @jt.jit
    def step(x, labels):
        return opt.minimize(loss, x, labels)

    for _ in range(steps):
        step(x, labels)
    benign = nn.sigmoid(model.eval()(unseen)[:, 0])
    accuracy = train.metrics.Accuracy().update(truth, benign).result()
    area = train.metrics.roc_auc(truth, benign)
    print(f"{accuracy:.1%} of {len(truth)} tumours, area under the ROC {area:.4f}")
    return float(accuracy), float(area)


if __name__ == "__main__":
    accuracy, area = np.mean([main(seed=seed) for seed in range(5)], axis=0)
    print(f"mean: {accuracy:.2%}, {area:.4f}")
