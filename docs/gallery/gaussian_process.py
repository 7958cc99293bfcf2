"""A Gaussian process whose kernel is fitted

Noisy samples of a curve, a squared exponential kernel, and its three numbers (height, length,
noise) by the gradient of the marginal likelihood, through the Cholesky factor.

Method: C. E. Rasmussen and C. K. I. Williams, "Gaussian Processes for Machine Learning" (2006),
algorithm 2.1; steps by Adam.
"""

import numpy as np

import jitney as jt


def kernel(a, b, log):
    height, length = np.exp(log[0]), np.exp(log[1])
    return height**2 * np.exp(-0.5 * ((a[:, None] - b[None, :]) / length) ** 2)


def covariance(x, log):
    return kernel(x, x, log) + (np.exp(2 * log[2]) + 1e-8) * np.eye(len(x))


def cost(log, x, y):
    """The negative logarithm of the marginal likelihood."""
    factor = np.linalg.cholesky(covariance(x, log))
    alpha = np.linalg.solve(factor, y)
    return 0.5 * alpha @ alpha + np.log(np.diag(factor)).sum() + 0.5 * len(x) * np.log(2 * np.pi)


@jt.jit
def fit(log, x, y, steps, rate=0.05):
    mean, square = np.zeros(3), np.zeros(3)
    history = np.empty(steps)
    for n in range(steps):
        history[n], slope = jt.value_and_grad(cost)(log, x, y)
        mean = 0.9 * mean + 0.1 * slope
        square = 0.99 * square + 0.01 * slope**2
        log = log - rate * (mean / (1 - 0.9 ** (n + 1))) / np.sqrt(
            square / (1 - 0.99 ** (n + 1)) + 1e-12
        )
    return log, history


@jt.jit
def predict(log, x, y, at):
    c = covariance(x, log)
    k = kernel(x, at, log)
    mean = k.T @ np.linalg.solve(c, y)
    variance = np.exp(2 * log[0]) - np.sum(k * np.linalg.solve(c, k), axis=0)
    return mean, np.sqrt(np.maximum(variance, 0.0))


def main(n=120, steps=200):
    """Samples, the fitted logarithms, the costs, and the prediction with its deviation."""
    rng = np.random.default_rng(4)
    x = np.sort(rng.uniform(0, 10, n))
    y = np.sin(x) + 0.3 * np.sin(3 * x) + 0.2 * rng.normal(size=n)
    log, history = fit(np.array([0.0, 1.0, 0.0]), x, y, steps)
    at = np.linspace(-1, 11, 200)
    return x, y, log, history, at, *predict(log, x, y, at)


def picture(ax):
    x, y, _, _, at, mean, deviation = main(60)
    ax.fill_between(at, mean - 2 * deviation, mean + 2 * deviation, alpha=0.3)
    ax.plot(at, mean)
    ax.plot(x, y, "k.", markersize=4)
