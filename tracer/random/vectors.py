"""Random vectors and matrices: multivariate normal, points in balls, orthogonal matrices."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ..arrays.common import array, sizes
from ..arrays.elementwise import where
from ..arrays.movement import broadcast_to
from ..control.control import fori_loop
from ..core.tracers import Tracer
from ..messages import errors
from ..messages.errors import complain
from ..transforms.vmap import vmap
from .continuous import exponentials, split_in
from .entry import sampler
from .gammas import generalized_normal
from .uniforms import real_dtype, standard_normal


def cholesky(a: Any) -> Any:
    """The lower triangular L with L L' = a, of one matrix, column by column.

    What is 0 but for rounding on the diagonal makes a column of zeros: `a` may be semidefinite.
    """
    n = a.shape[0]
    rows = np.arange(n)
    zero = a.dtype.type(0)
    noise = a.dtype.type(n * np.finfo(a.dtype).eps)

    def column(j: Any, lower: Any) -> Any:
        rest = a[:, j] - lower @ lower[j]
        none = abs(rest[j]) <= noise * a[j, j]
        root = np.sqrt(where(none, a.dtype.type(1), rest[j]))
        values = where((rows >= j) & np.logical_not(none), rest / root, zero)
        return where(rows == j, values[:, None], lower)

    return fori_loop(0, n, column, a * 0)


@sampler("[0.0, 0.0], np.eye(2) -> array([-0.1847, -2.1698])")
def multivariate_normal(
    key: Any, mean: Any, cov: Any, shape: Any = None, dtype: Any = None, method: str = "cholesky"
) -> Any:
    """Normal vectors: mean + L z, where L L' = cov.

    `mean` has the vector's entries along its last axis, `cov` is a matrix in its last two axes. `shape`
    is the result's without the vectors' axis. Differentiable in both.

    L is triangular, or with method="eigh" or "svd" comes from the decomposition of that name.
    """
    if method not in ("cholesky", "eigh", "svd"):
        raise ValueError(f"method={method!r}: the methods are 'cholesky', 'eigh' and 'svd'")
    m, c = array(mean), array(cov)
    if m.ndim < 1 or c.ndim < 2 or c.shape[-2:] != (m.shape[-1],) * 2:
        complain(
            errors.ShapeError,
            f"a mean of shape {m.shape} does not go with covariances of shape {c.shape}",
            "the mean has n entries along its last axis, and cov is n by n in its last two.",
            operands={"mean": mean, "cov": cov},
        )
    real, n = real_dtype(dtype, m, c), m.shape[-1]
    m, c = m.astype(real), c.astype(real)
    own = np.broadcast_shapes(m.shape[:-1], c.shape[:-2])
    size = own if shape is None else sizes(shape)
    z = standard_normal(key, (*size, n), real)
    root = _root(c, method)
    moved = (root @ z[..., None])[..., 0] if c.ndim > 2 else z @ root.T
    return moved + m


def _root(c: Tracer, method: str) -> Any:
    """A matrix L with L L' = c, for each of the last two axes."""
    if method == "eigh":
        w, v = np.linalg.eigh(c)
        return v * np.sqrt(np.maximum(w, 0))[..., None, :]
    if method == "svd":
        u, s, _ = np.linalg.svd(c)
        return u * np.sqrt(s)[..., None, :]
    if c.ndim == 2:
        return cholesky(c)
    return vmap(cholesky)(c.reshape((-1, *c.shape[-2:]))).reshape(c.shape)


@sampler("2 -> array([-0.3189,  0.1069])", static=("d", "p"))
def ball(key: Any, d: int, p: float = 2, shape: Any = (), dtype: Any = None) -> Any:
    """Uniform in the ball of radius 1 of dimension `d`, by the p-norm (Barthe et al., 2005)."""
    real, size = real_dtype(dtype), sizes(shape)
    first, second = split_in(key, 2)
    x = generalized_normal(first, float(p), (*size, operator.index(d)), real)
    e = exponentials(second, size, real)
    norm = ((abs(x) ** p).sum(axis=-1) + e) ** (1 / p)
    return x / norm[..., None]


@sampler("2 -> array([[-0.0848, -0.9964],\n       [-0.9964,  0.0848]])", static=("n", "m"))
def orthogonal(key: Any, n: int, shape: Any = (), dtype: Any = None, m: int | None = None) -> Any:
    """Orthogonal n by n matrices, all equally likely: a product of reflections (Stewart, 1980).

    With `m` they are n by m, with orthonormal columns or, where these are more, rows.
    """
    real, n = real_dtype(dtype), operator.index(n)
    size = sizes(shape)
    if m is not None and m != n:
        whole = orthogonal(key, max(n, operator.index(m)), size, real)
        return whole[..., :n, :m]
    z = standard_normal(key, (*size, n, n), real)
    if n == 0:
        return z
    flat = z.reshape((-1, n, n))
    return vmap(_reflections)(flat).reshape(z.shape)


def _reflections(z: Tracer) -> Any:
    """Row j of z, from entry j on, says where a reflection sends the j-th axis."""
    n = z.shape[0]
    rows = np.arange(n)
    one = z.dtype.type(1)

    def reflect(k: Any, state: Any) -> Any:
        q, signs = state
        j = n - 1 - k
        x = where(rows >= j, z[j], one * 0)
        sign = where(x[j] < 0, -one, one)
        norm = np.sqrt((x * x).sum())
        v = where(rows == j, x + sign * norm, x)
        q = q - np.outer(v * (2 / (v * v).sum()), v @ q)
        return q, where(rows == j, -sign, signs)

    identity = broadcast_to(where(rows[:, None] == rows, one, one * 0), (n, n)) + z * 0
    q, signs = fori_loop(0, n, reflect, (identity, z[0] * 0 + one))
    return q * signs


__all__ = ["ball", "multivariate_normal", "orthogonal"]
