"""`scipy.spatial.distance` of traced values: of two vectors, of all pairs of rows."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ...arrays.common import array
from .scipy_common import Formula, blas_norm, unless


def _euclidean(apart: Any) -> Any:
    return np.sqrt((apart * apart).sum(axis=-1))


def _sqeuclidean(apart: Any) -> Any:
    return (apart * apart).sum(axis=-1)


def _cityblock(apart: Any) -> Any:
    return np.abs(apart).sum(axis=-1)


def _chebyshev(apart: Any) -> Any:
    return np.abs(apart).max(axis=-1)


_METRICS: dict[str, Callable[[Any], Any]] = {
    f.__name__[1:]: f for f in (_euclidean, _sqeuclidean, _cityblock, _chebyshev)
}


def _vectors(u: Any, v: Any, weights: Any) -> tuple[Any, Any]:
    """Both as arrays, if they are what SciPy takes."""
    u, v = array(u), array(v)
    unless(weights is not None, u.ndim != 1, v.ndim != 1)
    unless(u.dtype.kind not in "iuf", v.dtype.kind not in "iuf")
    return u, v


def _between(metric: str) -> Formula:
    def call(u: Any, v: Any, w: Any = None) -> Any:
        u, v = _vectors(u, v, w)
        if metric == "sqeuclidean":
            u, v = (x if x.dtype.kind == "f" else x.astype(np.float64) for x in (u, v))
        return _METRICS[metric](u - v)

    return call


def _minkowski(u: Any, v: Any, p: Any = 2, w: Any = None) -> Any:
    u, v = _vectors(u, v, w)
    return (blas_norm if _is_by_blas() else np.linalg.norm)(u - v, p)


@functools.cache
def _is_by_blas() -> bool:
    """Whether SciPy's `minkowski` gives a float of Python's, as before SciPy 1.18."""
    from scipy.spatial import distance  # which is there: it was called

    return type(distance.minkowski([1.0], [0.0])) is float


def _cosine(u: Any, v: Any, w: Any = None) -> Any:
    u, v = _vectors(u, v, w)
    return np.clip(1.0 - np.dot(u, v) / np.sqrt(np.dot(u, u) * np.dot(v, v)), 0.0, 2.0)


def _rows(x: Any) -> Any:
    x = array(x)
    unless(x.ndim != 2, x.dtype.kind not in "biuf")
    return x.astype(np.float64)


def _cdist(xa: Any, xb: Any, metric: Any = "euclidean") -> Any:
    unless(metric not in _METRICS)
    return _METRICS[metric](_rows(xa)[:, None] - _rows(xb))


def _pdist(x: Any, metric: Any = "euclidean") -> Any:
    x = _rows(x)
    unless(metric not in _METRICS)
    i, j = np.triu_indices(x.shape[0], 1)
    return _METRICS[metric](x[i] - x[j])


def _squareform(x: Any, force: Any = "no", checks: bool = True) -> Any:
    x = array(x)
    unless(force != "no", x.ndim != 1 and (x.ndim != 2 or checks))
    n = x.shape[0] if x.ndim == 2 else round((1 + (1 + 8 * x.shape[0]) ** 0.5) / 2)
    i, j = np.triu_indices(n, 1)
    if x.ndim == 2:
        return x[i, j]
    unless(n * (n - 1) != 2 * x.shape[0])
    square = np.zeros((n, n), x.dtype)
    places = np.zeros((n, n), np.int64)
    places[i, j] = places[j, i] = np.arange(x.shape[0])
    return np.where(np.eye(n, dtype=bool), square, x[places])


DISTANCES: dict[tuple[str, str], Formula] = {
    **{("scipy.spatial", name): _between(name) for name in _METRICS if name != "euclidean"},
    ("scipy.spatial", "euclidean"): lambda u, v, w=None: _minkowski(u, v, 2, w),
    ("scipy.spatial", "minkowski"): _minkowski,
    ("scipy.spatial", "cosine"): _cosine,
    ("scipy.spatial", "cdist"): _cdist,
    ("scipy.spatial", "pdist"): _pdist,
    ("scipy.spatial", "squareform"): _squareform,
}
