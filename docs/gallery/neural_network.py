"""A neural network by hand

Two spirals are told apart by a network of two hidden layers: weights in a list of pairs, a loop
over minibatches, momentum. The gradient is one call.

Method: back-propagation; B. T. Polyak's momentum (1964); K. He's initial weights (2015).
"""

from itertools import pairwise

import numpy as np

import jitney as jt


def spirals(n, rng):
    radius = np.sqrt(rng.uniform(size=n))
    label = rng.integers(0, 2, size=n)
    angle = 3 * np.pi * radius + np.pi * label
    points = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
    return points + 0.02 * rng.normal(size=points.shape), label


def network(weights, x):
    for w, b in weights[:-1]:
        x = np.maximum(x @ w + b, 0)
    w, b = weights[-1]
    return (x @ w + b)[:, 0]


def loss(weights, x, label):
    score = network(weights, x)
    return np.mean(np.logaddexp(0, score) - label * score)


@jt.jit
def train(weights, points, labels, steps, rng, batch=64, rate=0.1, memory=0.9):
    speed = [(np.zeros_like(w), np.zeros_like(b)) for w, b in weights]
    history = np.empty(steps)
    for n in range(steps):
        some = rng.integers(0, len(points), size=batch)
        history[n], slope = jt.value_and_grad(loss)(weights, points[some], labels[some])
        speed = [
            (memory * v - rate * dw, memory * u - rate * db)
            for (v, u), (dw, db) in zip(speed, slope, strict=True)
        ]
        weights = [(w + v, b + u) for (w, b), (v, u) in zip(weights, speed, strict=True)]
    return weights, history


@jt.jit
def classify(weights, points):
    return network(weights, points) > 0


def main(steps=4000, hidden=32, grid=100):
    """Points, labels, losses, what the trained network says of a grid, and its accuracy."""
    rng = np.random.default_rng(6)
    points, labels = spirals(1000, rng)
    widths = [2, hidden, hidden, 1]
    weights = [(rng.normal(size=(m, n)) * np.sqrt(2 / m), np.zeros(n)) for m, n in pairwise(widths)]
    weights, history = train(weights, points, labels, steps, rng)
    line = np.linspace(-1.2, 1.2, grid)
    x, y = np.meshgrid(line, line)
    plane = classify(weights, np.stack([x.ravel(), y.ravel()], axis=1)).reshape(grid, grid)
    return points, labels, history, plane, np.mean(classify(weights, points) == labels)


def picture(ax):
    points, labels, _, plane, accuracy = main()
    ax.imshow(plane, extent=(-1.2, 1.2, -1.2, 1.2), origin="lower", cmap="coolwarm", alpha=0.4)
    ax.scatter(*points.T, c=labels, s=4, cmap="coolwarm", rasterized=True)
    ax.set_title(f"{accuracy:.1%} right")
