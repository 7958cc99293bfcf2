"""The problems: formulas that all frameworks share, what they are given, and what is right.

A formula takes the framework's NumPy (`np` for jitney, `jax.numpy` for the others) as `xp`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
TOLERANCE = 1e-8  # of all solvers; rtol=100 and atol=1/100 of it for the stiff problem


@dataclass
class Problem:
    """`exact(*inputs)` is the answer to far more digits than solvers are asked for; their errors, per
    component and relative to its largest value, have to be below `allowed`."""

    title: str
    inputs: tuple[Any, ...]
    exact: Callable[..., Array]
    allowed: float = 1e-6

    @cached_property
    def wanted(self) -> Array:
        return np.asarray(self.exact(*self.inputs))

    def error(self, answer: Any) -> float:
        got, want = np.asarray(answer, np.float64), self.wanted
        if got.shape != want.shape or not np.isfinite(got).all():
            return float("inf")
        rows = want.reshape(len(want), -1) if want.ndim > 1 else want[None]
        off = np.abs(got - want).reshape(rows.shape).max(axis=1)
        return float((off / np.abs(rows).max(axis=1)).max())


# Linear systems on a grid, without a matrix

GRID = 96
WIND = 20.0  # how far from symmetric the second one is


def diffusion(xp: Any, v: Any) -> Any:
    """The five-point Laplacian, plus a tenth of the identity."""
    u = xp.pad(xp.reshape(v, (GRID, GRID)), 1)
    around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
    return xp.reshape(4.1 * u[1:-1, 1:-1] - around, (-1,))


def convection(xp: Any, v: Any) -> Any:
    """The same with a wind."""
    u = xp.pad(xp.reshape(v, (GRID, GRID)), 1)
    drift = (WIND / GRID) * (u[1:-1, 2:] - u[1:-1, :-2] + u[2:, 1:-1] - u[:-2, 1:-1])
    return diffusion(xp, v) + xp.reshape(drift, (-1,))


def dense(product: Callable[..., Any]) -> Array:
    import scipy.sparse

    n = GRID * GRID
    one, off = np.ones(n), np.ones(n - 1)
    off[GRID - 1 :: GRID] = 0
    far = np.ones(n - GRID)
    wind = WIND / GRID if product is convection else 0.0
    diagonals = [
        4.1 * one,
        (wind - 1) * off,
        -(1 + wind) * off,
        (wind - 1) * far,
        -(1 + wind) * far,
    ]
    return scipy.sparse.diags(diagonals, [0, 1, -1, GRID, -GRID], format="csc")


def solved(product: Callable[..., Any]) -> Callable[[Array], Array]:
    import scipy.sparse.linalg

    def exact(b: Array) -> Array:
        found: Array = scipy.sparse.linalg.spsolve(dense(product), b)
        return found

    return exact


SOURCE = np.random.default_rng(0).uniform(0.5, 1.5, GRID * GRID)
MATRIX = np.random.default_rng(1).standard_normal((200, 200)) / 20 + 2 * np.eye(200)
RIGHT = np.random.default_rng(2).standard_normal(200)


def gradient_of_linear(a: Array, b: Array) -> Array:
    """Of `sum(solve(a, b)**2)` with respect to a and b, side by side."""
    x = np.linalg.solve(a, b)
    y = np.linalg.solve(a.T, 2 * x)
    return np.concatenate([-np.outer(y, x), y[:, None]], axis=1)


# Roots and minima

UNKNOWNS = 50


def tridiagonal(xp: Any, x: Any, k: Any) -> Any:
    """Broyden's: `(3 - k x) x - before - 2 after + 1`."""
    padded = xp.pad(x, 1)
    return (3 - k * x) * x - padded[:-2] - 2 * padded[2:] + 1


def newtons(k: float) -> Array:
    x = -np.ones(UNKNOWNS)
    for _ in range(30):
        x = x - np.linalg.solve(_jacobian(x, k), tridiagonal(np, x, k))
    return x


def _jacobian(x: Array, k: float) -> Array:
    one = np.ones(UNKNOWNS - 1)
    return np.diag(3 - 2 * k * x) + np.diag(-one, -1) + np.diag(-2 * one, 1)


def gradient_of_root(k: float) -> Array:
    """Of the sum of the squares of the root's elements."""
    x = newtons(k)
    return np.array([2 * x @ np.linalg.solve(_jacobian(x, k), x * x)])


def orbits(xp: Any, x: Any, mean: Any, eccentricity: Any) -> Any:
    """Kepler's equation, and the distance, as two equations."""
    anomaly, distance = x[0], x[1]
    return xp.stack(
        [
            anomaly - eccentricity * xp.sin(anomaly) - mean,
            distance - 1 + eccentricity * xp.cos(anomaly),
        ]
    )


def positions(mean: Array, eccentricity: Array) -> Array:
    anomaly = mean.copy()
    for _ in range(60):
        off = anomaly - eccentricity * np.sin(anomaly) - mean
        anomaly -= off / (1 - eccentricity * np.cos(anomaly))
    return np.stack([anomaly, 1 - eccentricity * np.cos(anomaly)], axis=1)


def rosenbrock(xp: Any, x: Any) -> Any:
    return xp.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


TIMES = np.linspace(0, 4, 200)
CURVE = np.array([2.5, 1.3, 0.5, 0.7])


def peak(xp: Any, p: Any, t: Any) -> Any:
    """A bell over a level."""
    return p[0] * xp.exp(-(((t - p[1]) / p[2]) ** 2)) + p[3]


def fitted(t: Array, y: Array) -> Array:
    import scipy.optimize

    options = {"xtol": 1e-15, "ftol": 1e-15, "gtol": 1e-15, "jac": "3-point"}
    fit = scipy.optimize.least_squares(lambda p: peak(np, p, t) - y, CURVE, **options)
    found: Array = fit.x
    return found


# Differential equations

HUNT = np.array([1.5, 1.0, 3.0, 1.0])
ANIMALS = np.array([10.0, 5.0])
SPAN = (0.0, 10.0)
MOMENTS = np.linspace(0.1, 10, 100)
LATE = np.logspace(-4, 4, 9)


def hunt(xp: Any, t: Any, y: Any, p: Any) -> Any:
    """Lotka and Volterra's."""
    return xp.stack([p[0] * y[0] - p[1] * y[0] * y[1], -p[2] * y[1] + p[3] * y[0] * y[1]])


def robertson(xp: Any, t: Any, y: Any, k: Any) -> Any:
    slow, fast = k[0] * y[0], k[1] * y[1] * y[2]
    quadratic = k[2] * y[1] * y[1]
    return xp.stack([-slow + fast, slow - fast - quadratic, quadratic])


RATES = np.array([0.04, 1e4, 3e7])


def integrated(f: Callable[..., Any], method: str, start: Array, at: Array) -> Callable[..., Array]:
    """y at those times, of shape (components, times)."""
    import scipy.integrate

    def exact(p: Array) -> Array:
        options = {"method": method, "t_eval": at, "rtol": 1e-12, "atol": 1e-15}
        found = scipy.integrate.solve_ivp(
            lambda t, y: f(np, t, y, p), (0, at[-1]), start, **options
        )
        values: Array = found.y
        return values

    return exact


def gradient_of_hunt(p: Array) -> Array:
    """Of the sum of the squares of the animals at the end, with respect to p, by the equation that the
    derivatives of y satisfy."""
    import scipy.integrate

    def slope(t: float, z: Array) -> Array:
        y, s = z[:2], z[2:].reshape(2, 4)
        by_y = np.array([[p[0] - p[1] * y[1], -p[1] * y[0]], [p[3] * y[1], -p[2] + p[3] * y[0]]])
        by_p = np.array([[y[0], -y[0] * y[1], 0, 0], [0, 0, -y[1], y[0] * y[1]]])
        return np.concatenate([hunt(np, t, y, p), (by_y @ s + by_p).ravel()])

    start = np.concatenate([ANIMALS, np.zeros(8)])
    options = {"method": "DOP853", "rtol": 1e-13, "atol": 1e-13}
    end = scipy.integrate.solve_ivp(slope, SPAN, start, **options).y[:, -1]
    return 2 * end[:2] @ end[2:].reshape(2, 4)


def problems() -> dict[str, Problem]:
    rng = np.random.default_rng(3)
    mean, eccentricity = rng.uniform(0.1, 3, 1000), rng.uniform(0.05, 0.8, 1000)
    noise = peak(np, CURVE, TIMES) + 0.02 * rng.standard_normal(TIMES.size)
    hunted = integrated(hunt, "DOP853", ANIMALS, MOMENTS)
    reacted = integrated(robertson, "Radau", np.array([1.0, 0.0, 0.0]), LATE)
    return {
        "cg": Problem("cg, 9216 unknowns, matrix-free", (SOURCE,), solved(diffusion)),
        "gmres": Problem("gmres, 9216 unknowns, not symmetric", (SOURCE,), solved(convection)),
        "bicgstab": Problem("bicgstab, the same system", (SOURCE,), solved(convection)),
        "root": Problem("root of 50 equations", (2.0,), newtons),
        "roots": Problem("1000 roots of 2 equations, vmap", (mean, eccentricity), positions),
        "bfgs": Problem("minimum of Rosenbrock's in 10", (np.zeros(10),), lambda x: np.ones(10)),
        "fit": Problem("least squares, 4 unknowns, 200 points", (TIMES, noise), fitted),
        "hunt": Problem("Lotka-Volterra, 100 times", (HUNT,), hunted, 1e-5),
        "robertson": Problem("Robertson, stiff, to t = 1e4", (RATES,), reacted, 1e-3),
        "steps_grad": Problem("gradient through the steps", (HUNT,), gradient_of_hunt, 1e-4),
        "adjoint_grad": Problem("gradient by the adjoint", (HUNT,), gradient_of_hunt, 1e-4),
        "root_grad": Problem("gradient through a root of 50", (2.0,), gradient_of_root),
        "linear_grad": Problem(
            "gradient through a system of 200", (MATRIX, RIGHT), gradient_of_linear
        ),
    }
