"""Textbook algorithms as a NumPy user writes them; nothing here knows jitney.

`PROGRAMS` holds each with a maker of its arguments. Loops have bounds that are known while tracing; data
decides by masks and `np.where`. `smooth` programs have derivatives at the sample arguments.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

Array = Any


class Sample(NamedTuple):
    """A program, its arguments, and whether it is differentiated in the tests."""

    program: Callable[..., Any]
    arguments: Callable[[np.random.Generator], tuple[Any, ...]]
    smooth: bool


PROGRAMS: dict[str, Sample] = {}


def program(
    arguments: Callable[[np.random.Generator], tuple[Any, ...]], smooth: bool = False
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def enter(function: Callable[..., Any]) -> Callable[..., Any]:
        PROGRAMS[function.__name__] = Sample(function, arguments, smooth)
        return function

    return enter


# Differential equations


@program(lambda r: (r.normal(size=(12, 9)), 0.2), smooth=True)
def heat_equation(u: Array, kappa: Array) -> Array:
    u = u.copy()
    for _ in range(10):
        u[1:-1, 1:-1] += kappa * (
            u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1]
        )
        u[0], u[-1] = u[1], u[-2]
    return u


@program(lambda r: (np.sin(np.linspace(0, 6, 40)), np.zeros(40)), smooth=True)
def wave_equation(u: Array, velocity: Array) -> Array:
    energy = np.zeros(8)
    for step in range(8):
        acceleration = np.zeros_like(u)
        acceleration[1:-1] = np.diff(u, 2)
        velocity = velocity + 0.1 * acceleration
        u = u + velocity
        energy[step] = 0.5 * (velocity**2).sum() + 0.5 * (np.diff(u) ** 2).sum()
    return u, energy


@program(lambda r: (np.array([1.0, 1.0, 20.0]), 10.0, 28.0, 8.0 / 3.0), smooth=True)
def lorenz_by_runge_kutta(state: Array, sigma: Array, rho: Array, beta: Array) -> Array:
    def rate(s: Array) -> Array:
        x, y, z = s
        return np.array([sigma * (y - x), x * (rho - z) - y, x * y - beta * z])

    h, path = 0.01, [state]
    for _ in range(15):
        k1 = rate(state)
        k2 = rate(state + h / 2 * k1)
        k3 = rate(state + h / 2 * k2)
        k4 = rate(state + h * k3)
        state = state + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        path.append(state)
    return np.stack(path)


@program(lambda r: (r.normal(size=(16, 16)),), smooth=True)
def spectral_poisson(f: Array) -> Array:
    n = f.shape[0]
    k = np.fft.fftfreq(n, 1.0 / n) * 2 * np.pi
    k2 = k[:, None] ** 2 + k[None, :] ** 2
    k2[0, 0] = 1.0
    modes = np.fft.fft2(f) / -k2
    modes[0, 0] = 0.0
    return np.real(np.fft.ifft2(modes))


# Linear algebra by hand


def _spd(r: np.random.Generator, n: int) -> np.ndarray:
    a = r.normal(size=(n, n))
    return a @ a.T + n * np.eye(n)


@program(lambda r: (r.normal(size=(6, 6)) + 4 * np.eye(6),), smooth=True)
def lu_by_hand(a: Array) -> Array:
    upper = a.copy()
    lower = np.eye(len(a))
    for k in range(len(a) - 1):
        lower[k + 1 :, k] = upper[k + 1 :, k] / upper[k, k]
        upper[k + 1 :] -= np.outer(lower[k + 1 :, k], upper[k])
    return lower, np.triu(upper)


@program(lambda r: (r.normal(size=(6, 4)),), smooth=True)
def householder_qr(a: Array) -> Array:
    m, n = a.shape
    q, r = np.eye(m), a.copy()
    for k in range(n):
        x = r[k:, k].copy()
        x[0] += np.copysign(np.linalg.norm(x), x[0])
        v = x / np.linalg.norm(x)
        r[k:] -= 2 * np.outer(v, v @ r[k:])
        q[:, k:] -= 2 * np.outer(q[:, k:] @ v, v)
    return q, np.triu(r)


@program(lambda r: (_spd(r, 5),), smooth=True)
def cholesky_by_hand(a: Array) -> Array:
    n = len(a)
    lower = np.zeros_like(a)
    for j in range(n):
        lower[j, j] = np.sqrt(a[j, j] - lower[j, :j] @ lower[j, :j])
        for i in range(j + 1, n):
            lower[i, j] = (a[i, j] - lower[i, :j] @ lower[j, :j]) / lower[j, j]
    return lower


@program(lambda r: (r.normal(size=(5, 4)),), smooth=True)
def gram_schmidt(a: Array) -> Array:
    basis = np.empty_like(a)
    for j in range(a.shape[1]):
        v = a[:, j] - basis[:, :j] @ (basis[:, :j].T @ a[:, j])
        basis[:, j] = v / np.sqrt(np.vdot(v, v))
    return basis


@program(lambda r: (_spd(r, 8), r.normal(size=8)), smooth=True)
def conjugate_gradient(a: Array, b: Array) -> Array:
    x = np.zeros_like(b)
    residual = b - a @ x
    direction = residual
    square = residual @ residual
    for _ in range(6):
        moved = a @ direction
        alpha = square / (direction @ moved)
        x = x + alpha * direction
        residual = residual - alpha * moved
        square, before = residual @ residual, square
        direction = residual + (square / before) * direction
    return x


@program(lambda r: (np.abs(r.normal(size=(7, 7))),), smooth=True)
def page_rank(links: Array) -> Array:
    p = links / links.sum(axis=0, keepdims=True)
    rank = np.full(len(p), 1.0 / len(p))
    for _ in range(20):
        rank = 0.85 * p @ rank + 0.15 / len(p)
    return rank / np.max(rank)


# Data analysis


@program(lambda r: (r.normal(size=(30, 4)),), smooth=True)
def principal_components(data: Array) -> Array:
    centred = data - np.mean(data, axis=0)
    _, s, vt = np.linalg.svd(centred, full_matrices=False)
    explained = s**2 / np.sum(s**2)
    return np.abs(centred @ vt[:2].T), explained


@program(lambda r: (r.normal(size=(40, 2)), np.array([[-1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])))
def k_means(points: Array, centres: Array) -> Array:
    labels = np.zeros(len(points), dtype=int)
    for _ in range(5):
        distance = np.linalg.norm(points[:, None, :] - centres[None, :, :], axis=-1)
        labels = np.argmin(distance, axis=1)
        chosen = labels[:, None] == np.arange(len(centres))
        counts = np.maximum(chosen.sum(axis=0), 1)
        centres = (chosen[:, :, None] * points[:, None, :]).sum(axis=0) / counts[:, None]
    return labels, centres


@program(lambda r: (r.normal(size=(10, 2)),), smooth=True)
def spectral_clustering(points: Array) -> Array:
    square = ((points[:, None] - points[None]) ** 2).sum(-1)
    weights = np.exp(-square) * (1 - np.eye(len(points)))
    degree = weights.sum(axis=1)
    scale = 1 / np.sqrt(degree)
    laplacian = np.eye(len(points)) - scale[:, None] * weights * scale[None, :]
    values, vectors = np.linalg.eigh(laplacian)
    return values, vectors[:, 1] ** 2


@program(lambda r: (r.normal(size=(12, 2)), np.eye(2) * 0.1, np.eye(2) * 0.5), smooth=True)
def kalman_filter(measured: Array, noise: Array, error: Array) -> Array:
    move = np.array([[1.0, 0.1], [0.0, 1.0]])
    state, covariance = np.zeros(2), np.eye(2)
    means = np.empty_like(measured)
    for t in range(len(measured)):
        state = move @ state
        covariance = move @ covariance @ move.T + noise
        gain = covariance @ np.linalg.inv(covariance + error)
        state = state + gain @ (measured[t] - state)
        covariance = (np.eye(2) - gain) @ covariance
        means[t] = state
    return means, covariance


# Signals and images


@program(lambda r: (r.normal(size=100), r.normal(size=9)), smooth=True)
def fft_convolution(signal: Array, kernel: Array) -> Array:
    n = len(signal) + len(kernel) - 1
    size = 1 << int(np.ceil(np.log2(n)))
    return np.fft.irfft(np.fft.rfft(signal, size) * np.fft.rfft(kernel, size), size)[:n]


@program(lambda r: (r.random(size=(14, 11)),))
def sobel_and_median(image: Array) -> Array:
    kernel = np.array([[1, 0, -1], [2, 0, -2], [1, 0, -1]])
    padded = np.pad(image, 1, mode="edge")
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3))
    gx = np.einsum("ijkl,kl->ij", windows, kernel)
    gy = np.einsum("ijkl,lk->ij", windows, kernel)
    return np.hypot(gx, gy), np.median(windows, axis=(2, 3))


@program(lambda r: (r.integers(0, 256, (20, 16)).astype(np.uint8),))
def histogram_equalisation(image: Array) -> Array:
    counts, _ = np.histogram(image, bins=256, range=(0, 256))
    cumulative = np.cumsum(counts)
    first = np.min(np.where(cumulative > 0, cumulative, image.size))
    table = np.round((cumulative - first) / (image.size - first) * 255)
    return np.clip(table, 0, 255).astype(np.uint8)[image]


@program(lambda r: (np.linspace(-1, 1, 9), np.linspace(-1, 1, 7)))
def ray_marching(xs: Array, ys: Array) -> Array:
    centres = np.array([[0.0, 0.0, 3.0], [0.7, 0.3, 2.5]])
    radii = np.array([1.0, 0.4])
    directions = np.stack([*np.meshgrid(xs, ys), np.ones((len(ys), len(xs)))], axis=-1)
    directions = directions / np.linalg.norm(directions, axis=-1, keepdims=True)
    depth = np.zeros(directions.shape[:2])
    for _ in range(25):
        points = depth[..., None] * directions
        distance = np.linalg.norm(points[..., None, :] - centres, axis=-1) - radii
        depth = np.minimum(depth + distance.min(axis=-1), 20.0)
    hit = depth < 10.0
    nearest = np.argmin(distance, axis=-1)
    normal = (depth[..., None] * directions - centres[nearest]) / radii[nearest][..., None]
    light = np.maximum(-(normal @ np.array([0.5, 0.5, 1.0])) / np.sqrt(1.5), 0)
    return np.where(hit, light, 0.0)


# Games, sequences, graphs, finance


@program(lambda r: ((r.random((12, 15)) < 0.4).astype(np.int8),))
def game_of_life(board: Array) -> Array:
    for _ in range(6):
        around = sum(
            np.roll(board, (i, j), (0, 1))
            for i in (-1, 0, 1)
            for j in (-1, 0, 1)
            if (i, j) != (0, 0)
        )
        board = ((around == 3) | ((board == 1) & (around == 2))).astype(np.int8)
    return board


@program(lambda r: (np.linspace(-2, 1, 30)[None, :] + 1j * np.linspace(-1.2, 1.2, 20)[:, None],))
def mandelbrot(c: Array) -> Array:
    z = np.zeros_like(c)
    steps = np.zeros(c.shape, dtype=np.int32)
    for _ in range(30):
        inside = np.abs(z) <= 2
        z[inside] = z[inside] ** 2 + c[inside]
        steps += inside
    return steps


@program(lambda r: (r.integers(0, 4, 9), r.integers(0, 4, 7)))
def edit_distance(a: Array, b: Array) -> Array:
    table = np.zeros((len(a) + 1, len(b) + 1), dtype=int)
    table[:, 0] = np.arange(len(a) + 1)
    table[0] = np.arange(len(b) + 1)
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            change = table[i - 1, j - 1] + (a[i - 1] != b[j - 1])
            table[i, j] = np.minimum(np.minimum(table[i - 1, j], table[i, j - 1]) + 1, change)
    return table[-1, -1]


@program(lambda r: (np.where(r.random((8, 8)) < 0.4, r.integers(1, 9, (8, 8)), np.inf),))
def floyd_warshall(distance: Array) -> Array:
    distance = distance.copy()
    np.fill_diagonal(distance, 0)
    for k in range(len(distance)):
        distance = np.minimum(distance, distance[:, k, None] + distance[None, k, :])
    return distance


@program(lambda r: (np.log(r.dirichlet(np.ones(4), 4)), np.log(r.dirichlet(np.ones(4), 10))))
def viterbi(moves: Array, seen: Array) -> Array:
    score = seen[0]
    back = np.zeros(seen.shape, dtype=np.int64)
    for t in range(1, len(seen)):
        total = score[:, None] + moves
        back[t] = np.argmax(total, axis=0)
        score = np.max(total, axis=0) + seen[t]
    path = np.zeros(len(seen), dtype=np.int64)
    path[-1] = np.argmax(score)
    for t in range(len(seen) - 1, 0, -1):
        path[t - 1] = back[t, path[t]]
    return path, score


@program(lambda r: (100.0, 105.0, 0.03, 0.2, r.normal(size=(200, 12))), smooth=True)
def asian_option(spot: Array, strike: Array, rate: Array, sigma: Array, normals: Array) -> Array:
    dt = 1.0 / normals.shape[1]
    steps = (rate - 0.5 * sigma**2) * dt + sigma * np.sqrt(dt) * normals
    paths = spot * np.exp(np.cumsum(steps, axis=1))
    payoff = np.maximum(paths.mean(axis=1) - strike, 0.0)
    price = np.exp(-rate) * payoff.mean()
    return price, payoff.std(ddof=1) / np.sqrt(len(payoff))
