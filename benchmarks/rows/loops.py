"""Loops: over arrays, over scalars, and over small states with gradients."""

from __future__ import annotations

from typing import Any

import numpy as np

from .row import Array, Rows, normal

rows = Rows()

HEAT_STEPS, MANDELBROT_STEPS = 100, 200


@rows.add(
    "heat",
    "100 steps of a 5-point heat stencil, 1024 squared",
    make=normal(("n", "n")),
    size=1024,
    small=32,
    goal=1.5,
    passes=HEAT_STEPS,
)
def heat(u: Array) -> Array:
    u = u.copy()
    for _ in range(HEAT_STEPS):
        middle = u[1:-1, 1:-1]
        around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
        u[1:-1, 1:-1] = middle + 0.1 * (around - 4 * middle)
    return u


def plane(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    x, y = np.meshgrid(np.linspace(-2, 0.5, n), np.linspace(-1.25, 1.25, n))
    return x, y


@rows.add(
    "mandelbrot",
    "Mandelbrot set, 1000 squared, at most 200 steps",
    make=plane,
    size=1000,
    small=40,
    goal=15.0,
    mismatch=0.02,
    passes=None,
)
def mandelbrot(cx: Array, cy: Array) -> Array:
    x, y = np.zeros_like(cx), np.zeros_like(cy)
    count = np.zeros(cx.shape, np.int32)
    for _ in range(MANDELBROT_STEPS):
        live = x * x + y * y <= 4
        count += live
        x, y = np.where(live, x * x - y * y + cx, x), np.where(live, 2 * x * y + cy, y)
    return count


def trips(*starts: Any) -> Any:
    return lambda rng, n: (*starts, n)


@rows.add(
    "newton",
    "x = (x + 2 / x) / 2, 1e6 times",
    make=trips(np.asarray(1.0)),
    size=1_000_000,
    small=100,
    goal=1.1,
    passes=None,
)
def newton(x: Array, n: int) -> Array:
    value = float(x)
    for _ in range(n):
        value = 0.5 * (value + 2 / value)
    return np.asarray(value)


@rows.add(
    "fibonacci",
    "Fibonacci numbers modulo 2**32, 1e6 times",
    make=trips(np.asarray(0, np.int32), np.asarray(1, np.int32)),
    size=1_000_000,
    small=100,
    goal=1.0,
    passes=None,
)
def fibonacci(a: Array, b: Array, n: int) -> Array:
    p, q = int(a), int(b)
    for _ in range(n):
        p, q = q, (p + q) & 0xFFFFFFFF
    return np.asarray(p, np.uint32).astype(np.int32)


SCALARS = 60


@rows.add(
    "scalar_scan_grad",
    "scan of 614 steps with 60 scalar carries, with gradient",
    make=lambda rng, n: (
        rng.standard_normal(SCALARS) * 0.5 + 1,
        rng.standard_normal(SCALARS) * 0.1,
        rng.standard_normal(n) * 0.1,
    ),
    size=614,
    small=5,
    goal=20.0,
    tolerance=1e-3,
    passes=None,
)
def scalar_scan_grad(a: Array, b: Array, xs: Array) -> tuple[Array, Array, Array]:
    """c[k] = tanh(a[k] * c[k - 1] + b[k] * x) for each x; the mean square of all states, and its
    gradient for a and b."""
    states = [np.zeros(SCALARS)]
    for x in xs:
        states.append(np.tanh(a * np.roll(states[-1], 1) + b * x))
    count = SCALARS * len(xs)
    da, db, dc = np.zeros_like(a), np.zeros_like(b), np.zeros_like(a)
    for t in reversed(range(len(xs))):
        new, old = states[t + 1], np.roll(states[t], 1)
        dz = (dc + 2 * new / count) * (1 - new * new)
        da, db, dc = da + dz * old, db + dz * xs[t], np.roll(dz * a, -1)
    return np.mean(np.square(states[1:])), da, db


@rows.add(
    "matrix_scan",
    "scan of 20,000 steps with a 3 x 3 carry, float64",
    make=lambda rng, n: (np.eye(3), rng.standard_normal((n, 3, 3)) * 1e-3),
    size=20_000,
    small=50,
    goal=20.0,
    dtype="float64",
    tolerance=1e-10,
    passes=None,
)
def matrix_scan(start: Array, changes: Array) -> Array:
    """A rotation that drifts, renormalised at each step."""
    r = start
    for change in changes:
        r = r + r @ (change - change.T)
        r = r / np.sqrt((r * r).sum(axis=0))
    return r
