"""A ray marcher of signed distances

Spheres that melt together over a chequered floor, with shadows. The scene is a function of a point
that says how far the nearest surface is; a ray walks that far, again and again. All of it is
scalars, small functions and tuples.

Method: sphere tracing (J. C. Hart, 1996); the smooth minimum is I. Quilez's.
"""

import math

import numpy as np

import jitney as jt


def smooth_min(a, b, k):
    h = max(k - abs(a - b), 0.0) / k
    return min(a, b) - h * h * k / 4


def scene(x, y, z):
    """How far the nearest surface is."""
    ball = math.sqrt(x * x + (y - 1.0) ** 2 + z * z) - 1.0
    for side in (-1.2, 1.2):
        small = math.sqrt((x - side) ** 2 + (y - 0.5) ** 2 + (z + 0.4) ** 2) - 0.5
        ball = smooth_min(ball, small, 0.5)
    return min(ball, y)


def march(origin, direction):
    """How far the ray goes before it meets something, at most 20."""
    ox, oy, oz = origin
    dx, dy, dz = direction
    t = 0.02
    for _ in range(128):
        d = scene(ox + t * dx, oy + t * dy, oz + t * dz)
        if d < 1e-4 * t:
            return t
        t += d
        if t > 20.0:
            break
    return 20.0


def normal(x, y, z):
    e = 1e-4
    nx = scene(x + e, y, z) - scene(x - e, y, z)
    ny = scene(x, y + e, z) - scene(x, y - e, z)
    nz = scene(x, y, z + e) - scene(x, y, z - e)
    n = math.sqrt(nx * nx + ny * ny + nz * nz)
    return nx / n, ny / n, nz / n


def shade(origin, direction):
    t = march(origin, direction)
    if t >= 20.0:
        return 0.6 + 0.3 * direction[1]
    x = origin[0] + t * direction[0]
    y = origin[1] + t * direction[1]
    z = origin[2] + t * direction[2]
    n = normal(x, y, z)
    light = (0.5, 0.7, -0.5099)
    bright = max(n[0] * light[0] + n[1] * light[1] + n[2] * light[2], 0.0)
    if bright > 0 and march((x + 0.01 * n[0], y + 0.01 * n[1], z + 0.01 * n[2]), light) < 20.0:
        bright = 0.0
    colour = 0.9
    if y < 0.01:
        colour = 0.8 if (math.floor(x) + math.floor(z)) % 2 == 0 else 0.3
    fog = math.exp(-0.05 * t)
    return fog * colour * (0.2 + 0.8 * bright) + (1 - fog) * 0.6


@jt.jit
def render(width, height):
    image = np.empty((height, width))
    for i in range(height):
        for j in range(width):
            dx = (2 * j - width) / height
            dy = (height - 2 * i) / height - 0.25
            n = math.sqrt(dx * dx + dy * dy + 2.25)
            image[i, j] = shade((0.0, 1.4, -4.5), (dx / n, dy / n, 1.5 / n))
    return image


def main(width=640, height=400):
    """The image, of brightnesses."""
    return render(width, height)


def picture(ax):
    ax.imshow(main(), cmap="gray", vmin=0, vmax=1)
    ax.axis("off")
