"""Boids: a flock

Each bird keeps away from those that are too near, heads where its neighbours head, and stays with
them. Neighbours are looked up in a dict of cells, so that only birds nearby are compared.

Method: C. Reynolds (1987), with linked cells.
"""

import math

import numpy as np

import jitney as jt


@jt.jit
def neighbours(position, radius):
    """The indices of birds in each cell of the plane that has any."""
    cells = {}
    for i in range(len(position)):
        cell = (int(position[i, 0] // radius), int(position[i, 1] // radius))
        if cell not in cells:
            cells[cell] = []
        cells[cell].append(i)
    return cells


@jt.jit
def fly(position, velocity, size, steps, radius=1.0, dt=0.1):
    position, velocity = position.copy(), velocity.copy()
    for _ in range(steps):
        cells = neighbours(position, radius)
        force = np.zeros_like(velocity)
        for i in range(len(position)):
            cx, cy = int(position[i, 0] // radius), int(position[i, 1] // radius)
            count = 0
            middle, heading, apart = np.zeros(2), np.zeros(2), np.zeros(2)
            for x in range(cx - 1, cx + 2):
                for y in range(cy - 1, cy + 2):
                    if (x, y) not in cells:
                        continue
                    for j in cells[x, y]:
                        d = position[j] - position[i]
                        r = math.hypot(d[0], d[1])
                        if j != i and r < radius:
                            count += 1
                            middle += d
                            heading += velocity[j] - velocity[i]
                            if r < 0.4 * radius:
                                apart -= d / (r + 1e-6)
            if count > 0:
                force[i] = 0.5 * middle / count + heading / count + 1.5 * apart
        velocity += dt * force
        velocity /= np.maximum(np.linalg.norm(velocity, axis=1, keepdims=True), 1e-9)
        position = (position + dt * velocity) % size
    return position, velocity


def main(n=600, steps=100, size=15.0):
    """Positions and directions."""
    rng = np.random.default_rng(9)
    angle = rng.uniform(0, 2 * np.pi, n)
    velocity = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return fly(rng.uniform(0, size, (n, 2)), velocity, size, steps)


def picture(axes):
    for ax, steps in zip(axes, (0, 200), strict=True):
        position, velocity = main(300, steps)
        ax.quiver(*position.T, *velocity.T, scale=40, width=0.004)
        ax.set_title(f"t = {steps / 10:g}")
