"""Two galaxies: gravitation among many bodies

All pairs of bodies attract each other; the steps conserve energy over long times. The plain double
loop.

Method: L. Verlet's leapfrog (1967) with softened forces (S. Aarseth, 1963).
"""

import math

import numpy as np

import jitney as jt


@jt.jit
def attraction(position, mass, softening):
    n = len(position)
    force = np.zeros_like(position)
    for i in range(n):
        for j in range(n):
            d = position[j] - position[i]
            r2 = d @ d + softening**2
            force[i] += mass[j] * d / (r2 * math.sqrt(r2))
    return force


@jt.jit
def simulate(position, velocity, mass, dt, steps, softening=0.05):
    position, velocity = position.copy(), velocity.copy()
    force = attraction(position, mass, softening)
    for _ in range(steps):
        velocity += 0.5 * dt * force
        position += dt * velocity
        force = attraction(position, mass, softening)
        velocity += 0.5 * dt * force
    return position, velocity


@jt.jit
def energy(position, velocity, mass, softening=0.05):
    total = 0.5 * np.sum(mass * np.sum(velocity**2, axis=1))
    for i in range(len(mass)):
        for j in range(i):
            total -= (
                mass[i]
                * mass[j]
                / math.sqrt(np.sum((position[i] - position[j]) ** 2) + softening**2)
            )
    return total


def galaxy(n, centre, speed, rng):
    """A heavy centre and a disc of light bodies that circle it."""
    radius = rng.uniform(0.3, 1.5, n)
    angle = rng.uniform(0, 2 * np.pi, n)
    position = np.stack(
        [radius * np.cos(angle), radius * np.sin(angle), 0.05 * rng.normal(size=n)], axis=1
    )
    velocity = (
        np.stack([-np.sin(angle), np.cos(angle), np.zeros(n)], axis=1) / np.sqrt(radius)[:, None]
    )
    position[0], velocity[0] = 0.0, 0.0
    mass = np.full(n, 1e-4)
    mass[0] = 1.0
    return position + centre, velocity + speed, mass


def main(n=400, steps=200):
    """Positions at the end, and the energy before and after."""
    rng = np.random.default_rng(8)
    a = galaxy(n // 2, np.array([-2.0, -0.7, 0.0]), np.array([0.5, 0.0, 0.0]), rng)
    b = galaxy(n // 2, np.array([2.0, 0.7, 0.5]), np.array([-0.5, 0.0, 0.0]), rng)
    position, velocity, mass = (np.concatenate(both) for both in zip(a, b, strict=True))
    before = energy(position, velocity, mass)
    position, velocity = simulate(position, velocity, mass, 0.01, steps)
    return position, np.array([before, energy(position, velocity, mass)])


def picture(axes):
    for ax, steps in zip(axes, (0, 250, 500), strict=True):
        position, _ = main(steps=steps)
        ax.plot(position[:, 0], position[:, 1], "k.", markersize=1.5)
        ax.set_xlim(-4, 4)
        ax.set_ylim(-3, 3)
        ax.set_title(f"t = {steps / 100:g}")
