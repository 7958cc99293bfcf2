"""Sampling a banana: Metropolis and Hamiltonian Monte Carlo

Two walkers draw from the same density, one by random steps, one along trajectories that follow its
gradient. The sampler takes the density as an argument, so that any function will do.

Method: Metropolis and others (1953); S. Duane and others, "Hybrid Monte Carlo" (1987); the density
is H. Haario's banana.
"""

import numpy as np

import jitney as jt


def banana(q):
    """The logarithm of the density, up to a constant."""
    x, y = q
    return -0.5 * (x**2 / 4 + (y + 0.5 * x**2 - 2) ** 2 / 0.5)


@jt.jit
def metropolis(log_density, q, steps, width, rng):
    chain = np.empty((steps, len(q)))
    accepted = 0
    value = log_density(q)
    for n in range(steps):
        new = q + width * rng.normal(size=len(q))
        new_value = log_density(new)
        if np.log(rng.random()) < new_value - value:
            q, value = new, new_value
            accepted += 1
        chain[n] = q
    return chain, accepted / steps


@jt.jit
def hamiltonian(log_density, q, steps, size, leaps, rng):
    slope = jt.grad(log_density)
    chain = np.empty((steps, len(q)))
    accepted = 0
    for n in range(steps):
        p = rng.normal(size=len(q))
        new, energy = q, log_density(q) - 0.5 * p @ p
        p = p + 0.5 * size * slope(new)
        for leap in range(leaps):
            new = new + size * p
            p = p + (0.5 if leap == leaps - 1 else 1.0) * size * slope(new)
        if np.log(rng.random()) < log_density(new) - 0.5 * p @ p - energy:
            q = new
            accepted += 1
        chain[n] = q
    return chain, accepted / steps


def main(steps=50_000):
    """Two chains, and the share of steps that each accepted."""
    start = np.zeros(2)
    first, share = metropolis(banana, start, steps, 0.8, np.random.default_rng(0))
    second, other = hamiltonian(banana, start, steps, 0.25, 12, np.random.default_rng(0))
    return first, second, np.array([share, other])


def picture(axes):
    first, second, shares = main(2000)
    for ax, chain, share, title in zip(
        axes, (first, second), shares, ("Metropolis", "Hamiltonian"), strict=True
    ):
        ax.plot(*chain.T, ".", markersize=2, rasterized=True)
        ax.plot(*chain[:60].T, "r-", linewidth=0.7)
        ax.set_title(f"{title}, {share:.0%} accepted")
