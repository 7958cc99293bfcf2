"""The Mandelbrot set and a Julia set

Loops over pixels, complex numbers, an early return: each pixel is iterated until it escapes. The
colour is continuous.

Method: escape times, made smooth by the logarithm of the logarithm of the modulus (F. Garcia and
others, "Coloring Dynamical Systems in the Complex Plane").
"""

import math

import numpy as np

import jitney as jt


@jt.jit
def escape(z, c, limit):
    for n in range(limit):
        z = z * z + c
        if z.real * z.real + z.imag * z.imag > 100.0:
            return n + 1 - math.log2(math.log(abs(z)) / math.log(10.0))
    return 0.0


@jt.jit
def mandelbrot(width, height, limit):
    image = np.zeros((height, width))
    for i in range(height):
        for j in range(width):
            c = complex(-2.2 + 3.0 * j / width, -1.2 + 2.4 * i / height)
            image[i, j] = escape(0j, c, limit)
    return image


@jt.jit
def julia(width, height, c, limit):
    image = np.zeros((height, width))
    for i in range(height):
        for j in range(width):
            z = complex(-1.6 + 3.2 * j / width, -1.2 + 2.4 * i / height)
            image[i, j] = escape(z, c, limit)
    return image


def main(size=600, limit=300):
    """The two images."""
    return mandelbrot(size, size, limit), julia(size, size, -0.8 + 0.156j, limit)


def picture(axes):
    for ax, image in zip(axes, main(), strict=True):
        ax.imshow(np.log1p(image), cmap="twilight_shifted")
        ax.axis("off")
