"""Linear algebra and Fourier transforms, which are left to libraries, and what stands around them."""

from __future__ import annotations

from typing import Any

import numpy as np

from .row import Array, Rows, normal

rows = Rows()


def system(rng: np.random.Generator, n: int) -> tuple[Any, ...]:
    return rng.standard_normal((n, n)) + n * np.eye(n), rng.standard_normal(n)


def positive(rng: np.random.Generator, n: int) -> tuple[Any, ...]:
    a = rng.standard_normal((n, n))
    return (a @ a.T / n + np.eye(n),)


def dominant(rng: np.random.Generator, n: int) -> tuple[Any, ...]:
    return (rng.standard_normal((n, 3, 3)) + 4 * np.eye(3),)


F64 = {"dtype": "float64", "tolerance": 1e-9, "passes": None}


@rows.add(
    "solve", "solve(a, b), 512 squared, float64", make=system, size=512, small=20, goal=0.9, **F64
)
def solve(a: Array, b: Array) -> Array:
    return np.linalg.solve(a, b)


@rows.add(
    "inverses",
    "inverses of 10,000 matrices 3 x 3, float64",
    make=dominant,
    size=10_000,
    small=10,
    goal=1.5,
    **F64,
)
def inverses(a: Array) -> Array:
    return np.linalg.inv(a)


@rows.add(
    "cholesky",
    "Cholesky decomposition, 512 squared, float64",
    make=positive,
    size=512,
    small=20,
    goal=0.9,
    **F64,
)
def cholesky(a: Array) -> Array:
    return np.linalg.cholesky(a)


@rows.add(
    "eigenvalues",
    "eigenvalues of a symmetric matrix, 256 squared, float64",
    make=positive,
    size=256,
    small=20,
    goal=0.9,
    **F64,
)
def eigenvalues(a: Array) -> Array:
    return np.linalg.eigvalsh(a)


@rows.add(
    "singular_values",
    "singular values, 256 squared, float64",
    make=positive,
    size=256,
    small=20,
    goal=0.9,
    **F64,
)
def singular_values(a: Array) -> Array:
    return np.linalg.svd(a, compute_uv=False)


@rows.add(
    "spectra",
    "power spectra of 1000 rows of 1024",
    make=normal(("n", 1024)),
    size=1000,
    small=4,
    goal=1.2,
)
def spectra(x: Array) -> Array:
    z = np.fft.rfft(x)
    return z.real**2 + z.imag**2


@rows.add(
    "low_pass",
    "low-pass filter of an image, 1024 squared, by Fourier transforms",
    make=normal(("n", "n")),
    size=1024,
    small=16,
    goal=1.0,
)
def low_pass(image: Array) -> Array:
    n, m = image.shape
    z = np.fft.rfft2(image)
    near = np.abs(np.fft.fftfreq(n)) < 0.1
    return np.fft.irfft2(np.where(near[:, None], z, 0), image.shape)
