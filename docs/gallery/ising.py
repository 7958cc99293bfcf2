"""The Ising model

Spins on a grid that wraps around, flipped one by one with Metropolis's probabilities. The model is
an object with its own generator of random numbers: compiled, it gives the numbers that Python's run
gives, to the bit.

Method: Metropolis, Rosenbluth, Rosenbluth, Teller and Teller (1953).
"""

import numpy as np

import jitney as jt


class Ising:
    def __init__(self, size, temperature, seed=0):
        self.rng = np.random.default_rng(seed)
        self.spins = self.rng.choice([-1, 1], size=(size, size))
        self.temperature = temperature
        self.accepted = 0

    @jt.jit
    def sweep(self, times):
        n = len(self.spins)
        magnetisation = np.empty(times)
        for t in range(times):
            for _ in range(n * n):
                i, j = self.rng.integers(0, n), self.rng.integers(0, n)
                s = self.spins
                around = s[(i + 1) % n, j] + s[i - 1, j] + s[i, (j + 1) % n] + s[i, j - 1]
                cost = 2 * s[i, j] * around
                if cost <= 0 or self.rng.random() < np.exp(-cost / self.temperature):
                    s[i, j] *= -1
                    self.accepted += 1
            magnetisation[t] = abs(self.spins.mean())
        return magnetisation


def main(size=128, times=100):
    """The spins at three temperatures, and the magnetisation after each sweep."""
    models = [Ising(size, temperature) for temperature in (1.5, 2.27, 4.0)]
    history = [model.sweep(times) for model in models]
    return np.array([model.spins for model in models]), np.array(history)


def picture(axes):
    spins, _ = main()
    for ax, grid, title in zip(axes, spins, ("T = 1.5", "T = 2.27", "T = 4"), strict=True):
        ax.imshow(grid, cmap="gray")
        ax.set_title(title)
        ax.axis("off")
