"""Waves behind two slits

The two-dimensional wave equation on a grid: a plane wave meets a wall with two gaps. Arrays are
updated in place by slices, as in any NumPy program; the compiler turns each step into one pass over
memory.

Method: explicit finite differences of second order (Courant, Friedrichs and Lewy, 1928), with a
layer that absorbs at the edges.
"""

import numpy as np

import jitney as jt


@jt.jit
def simulate(u, previous, open_, damping, steps, frequency):
    for step in range(steps):
        bend = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1]
        new = np.zeros_like(u)
        new[1:-1, 1:-1] = 2 * u[1:-1, 1:-1] - previous[1:-1, 1:-1] + 0.25 * bend
        new *= damping * open_
        new[:, 1] = np.sin(frequency * step)
        previous = u * damping
        u = new
    return u


def main(size=400, steps=600):
    """The wave's height at the end, and where the wall is."""
    wall = np.zeros((size, size), bool)
    at, gap, apart = size // 3, max(size // 40, 1), size // 8
    wall[:, at] = True
    for middle in (size // 2 - apart, size // 2 + apart):
        wall[middle - gap : middle + gap, at] = False
    edge = np.minimum(np.arange(size), np.arange(size)[::-1])
    fade = 1 - 0.1 * np.clip(1 - edge / (0.1 * size), 0, 1) ** 2
    damping = np.minimum.outer(fade, np.where(np.arange(size) < size // 2, 1.0, fade))
    start = np.zeros((size, size))
    return simulate(start, start.copy(), ~wall, damping, steps, 0.4), wall


def picture(ax):
    height, wall = main()
    ax.imshow(np.where(wall, np.nan, height), cmap="RdBu", vmin=-1, vmax=1)
    ax.axis("off")
