"""Resizing images: `jt.image.resize` (`jt.resize` is NumPy's, which repeats elements)."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import reduce as fold
from typing import Any

import numpy as np

from ..arrays.common import array, build, ints
from ..arrays.movement import moveaxis
from ..arrays.table import function
from ..core.tracers import Tracer, as_value, wrap
from ..data.promotion import float_dtype
from ..functions.arranging import repeat
from ..functions.selection import take

Array = np.ndarray[Any, Any]

MOST_TAPS = 8  # elements that an element is made of, up to which each is a term of its own
DENSE = 4  # of how many at least, times that: else the matrix is nearly full


def _triangle(x: Array) -> Array:
    return np.maximum(1 - x, 0)


def _cubic(x: Array) -> Array:
    """Keys' cubic with a = -1/2: continuous slope, exact for quadratics."""
    near = (1.5 * x - 2.5) * x * x + 1
    far = ((-0.5 * x + 2.5) * x - 4) * x + 2
    return np.where(x < 1, near, np.where(x < 2, far, 0))


def _lanczos(radius: int) -> Callable[[Array], Array]:
    return lambda x: np.where(x < radius, np.sinc(x) * np.sinc(x / radius), 0)


_FILTERS: dict[str, Callable[[Array], Array]] = {
    "linear": _triangle,
    "cubic": _cubic,
    "lanczos3": _lanczos(3),
    "lanczos5": _lanczos(5),
}
_ALIASES = {"bilinear": "linear", "trilinear": "linear", "bicubic": "cubic", "tricubic": "cubic"}


@function("image.resize", composed=True)
def resize(
    x: Any, shape: Sequence[int], method: str = "linear", *, antialias: bool = True
) -> Tracer:
    """x stretched or shrunk to `shape`, which has one size per axis, as `jax.image.resize` does it.

    `method` is "nearest", "linear" (also "bilinear", "trilinear"), "cubic" ("bicubic", "tricubic";
    Keys' with a = -1/2), "lanczos3" or "lanczos5". Pixels are squares with their centres at half
    integers, edges are not repeated but left out of the average, and with `antialias` the filter is
    widened where an axis shrinks. `tf.image.resize` does the same with `antialias=True` (it has
    `antialias=False` by default). Axes that keep their size are left alone. Integers give float64,
    except with "nearest", which keeps every dtype. Differentiable.

    >>> jt.image.resize(np.array([0.0, 1.0]), (4,))
    array([0.  , 0.25, 0.75, 1.  ])
    """
    a = array(x)
    sizes = ints(shape)
    if len(sizes) != a.ndim or any(n < 0 for n in sizes):
        raise ValueError(f"resize: shape={sizes} must have one size for each axis of {a.shape}")
    method = _ALIASES.get(method, method)
    if method != "nearest":
        if method not in _FILTERS:
            names = ", ".join(["nearest", *_FILTERS])
            raise ValueError(f"resize: method={method!r} is not one of {names}")
        a = a.astype(float_dtype(a.dtype))
    axes = [d for d in range(a.ndim) if a.shape[d] != sizes[d]]
    if any(a.shape[d] == 0 for d in axes):
        raise ValueError(f"resize: cannot make {sizes} of {a.shape}, which has no elements")
    for axis in sorted(axes, key=lambda d: sizes[d] / a.shape[d]):  # first what makes x smaller
        if method == "nearest":
            a = _nearest(a, axis, sizes[axis])
        else:
            a = _filtered(a, axis, sizes[axis], _FILTERS[method], antialias)
    return a if axes else a.copy()


def _nearest(x: Tracer, axis: int, size: int) -> Tracer:
    n = x.shape[axis]
    if size % n == 0:
        return repeat(x, size // n, axis)
    indices = np.floor((np.arange(size) + 0.5) * n / size).astype(np.int64)
    return take(x, indices, axis=axis)


def _filtered(
    x: Tracer, axis: int, size: int, kernel: Callable[[Array], Array], antialias: bool
) -> Tracer:
    """One axis of x times a constant matrix of weights, a band of which is not zero."""
    b, n = build(), x.shape[axis]
    weights = resize_weights(n, size, kernel, antialias)
    first = (weights != 0).argmax(axis=0)
    taps = int((n - (weights != 0)[::-1].argmax(axis=0) - first).max())
    if taps > MOST_TAPS or taps * DENSE > n:
        dense = b.const(weights, x.dtype)
        value = b.dot(as_value(x), dense, contract=((axis,), (0,)), batch=((), ()))
        return moveaxis(wrap(value, scalar=False), -1, axis)
    first = np.minimum(first, n - taps)
    along = [size if d == axis else 1 for d in range(x.ndim)]
    terms = []
    for rows in (first + t for t in range(taps)):
        share = weights[rows, np.arange(size)].astype(x.dtype).reshape(along)
        found = b.gather(as_value(x), b.const(rows), axes=(axis,), mode="clip")
        terms.append(moveaxis(wrap(found, scalar=False), 0, axis) * share)
    return fold(operator.add, terms)


def resize_weights(
    n: int, size: int, kernel: Callable[[Array], Array], antialias: bool = True
) -> Array:
    """The share of each of `n` elements (rows) in each of `size` resampled ones (columns)."""
    scale = n / size
    centres = (np.arange(size) + 0.5) * scale - 0.5
    width = max(scale, 1.0) if antialias else 1.0
    shares = kernel(np.abs(centres - np.arange(n)[:, None]) / width)
    return np.asarray(shares / shares.sum(0))
