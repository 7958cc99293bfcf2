"""Physics, fractals, rays."""

import math

import numpy as np

from .kernel import kernel


@kernel(lambda r, n: (r.random((n, 2)),), 30, 100, 600, parallel="i")
def pairs(p):
    n = p.shape[0]
    d = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            d[i, j] = np.sqrt((p[i, 0] - p[j, 0]) ** 2 + (p[i, 1] - p[j, 1]) ** 2)
    return d


@kernel(lambda r, n: (r.random((n, 3)), r.random(n)), 20, 100, 500, parallel="i")
def gravity(p, m):
    n = p.shape[0]
    f = np.zeros((n, 3))
    for i in range(n):
        for j in range(n):
            if i != j:
                x = p[j, 0] - p[i, 0]
                y = p[j, 1] - p[i, 1]
                z = p[j, 2] - p[i, 2]
                d = x * x + y * y + z * z + 0.01
                s = m[j] / (d * math.sqrt(d))
                f[i, 0] += s * x
                f[i, 1] += s * y
                f[i, 2] += s * z
    return f


@kernel(lambda r, n: (n, 100), 16, 64, 256, static=(0, 1), parallel="i")
def mandelbrot(n, most):
    out = np.zeros((n, n), np.int64)
    for i in range(n):
        for j in range(n):
            cr = -2.0 + 3.0 * j / n
            ci = -1.5 + 3.0 * i / n
            x = 0.0
            y = 0.0
            k = 0
            while k < most and x * x + y * y < 4.0:
                t = x * x - y * y + cr
                y = 2.0 * x * y + ci
                x = t
                k += 1
            out[i, j] = k
    return out


@kernel(lambda r, n: (n,), 16, 64, 256, static=(0,), parallel="i")
def julia(n):
    out = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            x = -1.5 + 3.0 * j / n
            y = -1.5 + 3.0 * i / n
            for k in range(50):
                if x * x + y * y > 4.0:
                    break
                t = x * x - y * y - 0.8
                y = 2.0 * x * y + 0.156
                x = t
                out[i, j] = k
    return out


@kernel(lambda r, n: (n,), 16, 64, 256, static=(0,), parallel="i")
def ray_marching(n):
    image = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            dx = (j - n / 2) / n
            dy = (i - n / 2) / n
            dz = 1.0
            length = math.sqrt(dx * dx + dy * dy + dz * dz)
            t = 0.0
            for _ in range(40):
                x = t * dx / length
                y = t * dy / length
                z = t * dz / length - 3.0
                d = math.sqrt(x * x + y * y + z * z) - 1.0
                if d < 0.001 or t > 10.0:
                    break
                t += d
            image[i, j] = t
    return image


@kernel(lambda r, n: (r.random(n), 100), 10, 100, 1000, static=(1,), parallel="i")
def logistic_map(x, steps):
    x = x.copy()
    for i in range(x.shape[0]):
        v = x[i]
        for _ in range(steps):
            v = 3.7 * v * (1.0 - v)
        x[i] = v
    return x
