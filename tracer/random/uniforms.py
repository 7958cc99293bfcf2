"""Uniform and normal numbers, of which the other distributions are made; shapes and parameters.

A uniform number is the fraction bits of a float in 1..2, less one; a normal number is
sqrt(2) erfinv(u) of a u that is uniform in -1..1. Both are `jax.random`'s, the uniform ones bit for bit.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...ir.types import DTYPE_NAMES, F32, F64, dtype_name
from ..arrays.common import array, build, kind, operand, shape_of, sizes
from ..core.tracers import Tracer, as_value, wrap
from ..messages import errors
from ..messages.errors import complain
from .entry import sampler
from .keys import counters, raw_bits, stacked, threefry, words_of

DType = np.dtype[Any]

# Floats of 16 bits: how many random bits are drawn, and how many are kept.
HALF = {"f16": (16, 10), "bf16": (8, 7)}


def real_dtype(dtype: Any, *parameters: Any) -> DType:
    """The dtype of the numbers: as asked for, or that of the parameters that are float arrays."""
    if dtype is not None:
        wanted = np.dtype(dtype)
        if wanted not in (F32, F64):
            complain(
                errors.DTypeError,
                f"random numbers of dtype {wanted} are not to be had here",
                "take float16, bfloat16, float32 or float64; jt.random.integers gives integers.",
            )
        return wanted
    kinds = [kind(p) for p in parameters if p is not None]
    floats = [k for k in kinds if isinstance(k, np.dtype)]
    if floats and all(k == F32 for k in floats):
        return F32
    return F64


def shaped(shape: Any, *parameters: Any) -> tuple[int, ...]:
    """The shape of the result: as given, into which the parameters must broadcast, or theirs."""
    own = np.broadcast_shapes(*(shape_of(operand(p)) for p in parameters if p is not None))
    if shape is None:
        return own
    wanted = sizes(shape)
    try:
        fits = np.broadcast_shapes(own, wanted) == wanted
    except ValueError:
        fits = False
    if not fits:
        complain(
            errors.ShapeError,
            f"parameters of shape {own} do not broadcast to the shape {wanted} of the result",
            "leave shape out, or give one that ends with the parameters' shape.",
        )
    return wanted


def spread(x: Any, shape: tuple[int, ...], dtype: DType) -> Tracer:
    """A parameter with the result's shape and dtype."""
    value = as_value(array(x), dtype)
    return wrap(build().broadcast_to(value, shape))


def unit(key: Any, shape: tuple[int, ...], dtype: DType) -> Tracer:
    """Uniform in 0 <= u < 1."""
    return fraction(raw_bits(key, shape, 8 * dtype.itemsize), dtype)


def fraction(random: Tracer, dtype: DType) -> Tracer:
    """Random bits, as wide as `dtype`, as a number in 0 <= u < 1."""
    width, digits = 8 * dtype.itemsize, np.finfo(dtype).nmant
    b, value = build(), as_value(random)
    value = b.right_shift(value, b.full_like(value, width - digits))
    one = int(np.ones((), dtype).view(DTYPE_NAMES[f"u{width}"]))
    value = b.bitwise_or(value, b.full_like(value, one))
    value = b.bitcast(value, dtype=dtype)
    return wrap(b.sub(value, b.full_like(value, 1.0)))


def between(u: Tracer, low: Any, high: Any) -> Any:
    """A number u in 0 <= u < 1 moved to low <= x < high (to high, if rounding leads there)."""
    x = u * (high - low) + low
    return np.maximum(low, x)


def normal_of(random: Tracer, dtype: DType) -> Any:
    """Random bits as a normal number."""
    low = np.nextafter(dtype.type(-1), dtype.type(0))
    u = between(fraction(random, dtype), low, dtype.type(1))
    return dtype.type(math.sqrt(2.0)) * wrap(build().erfinv(as_value(u)))


def standard_normal(key: Any, shape: tuple[int, ...], dtype: DType) -> Any:
    """Normal numbers of mean 0 and deviation 1."""
    return normal_of(raw_bits(key, shape, 8 * dtype.itemsize), dtype)


@sampler(narrow=True)
def uniform(
    key: Any, shape: Any = None, dtype: Any = None, minval: Any = 0.0, maxval: Any = 1.0
) -> Any:
    """Uniform in minval <= x < maxval; bit for bit `jax.random`'s in 0..1.

    >>> jt.random.uniform(jt.random.key(42), (2,), np.float32)
    array([0.48870957, 0.6797972 ], dtype=float32)
    """
    if dtype is not None and dtype_name(np.dtype(dtype)) in HALF:
        return _half(key, shape, np.dtype(dtype), minval, maxval)
    real = real_dtype(dtype, minval, maxval)
    size = shaped(shape, minval, maxval)
    if all(isinstance(m, (int, float)) for m in (minval, maxval)) and (minval, maxval) == (0, 1):
        return unit(key, size, real)
    low, high = (spread(m, size, real) for m in (minval, maxval))
    return between(unit(key, size, real), low, high)


def _half(key: Any, shape: Any, dtype: DType, minval: Any, maxval: Any) -> Any:
    """In 16 bits: as many random bits as there are behind the point, so that u is less than 1."""
    width, digits = HALF[dtype_name(dtype)]
    size = shaped(shape, minval, maxval)
    u = (raw_bits(key, size, width) >> (width - digits)).astype(F32) * F32.type(2.0**-digits)
    low, high = (spread(m, size, F32) for m in (minval, maxval))
    x = between(u, low, high).astype(dtype)
    return x if size else x[()]


@sampler()
def normal(key: Any, shape: Any = None, dtype: Any = None, loc: Any = 0.0, scale: Any = 1.0) -> Any:
    """Normal with mean `loc` and standard deviation `scale`, which may be differentiated.

    Complex numbers have independent parts, of half of the variance each.

    >>> jt.random.normal(jt.random.key(42), (3,)).round(4)
    array([-0.1847, -2.1698,  0.1869])
    """
    if dtype is not None and np.dtype(dtype).kind == "c":
        return _complex_normal(key, shape, np.dtype(dtype), loc, scale)
    real = real_dtype(dtype, loc, scale)
    size = shaped(shape, loc, scale)
    z = standard_normal(key, size, real)
    if all(isinstance(p, (int, float)) for p in (loc, scale)) and (loc, scale) == (0, 1):
        return z
    return z * spread(scale, size, real) + spread(loc, size, real)


def _complex_normal(key: Any, shape: Any, dtype: DType, loc: Any, scale: Any) -> Any:
    """Real and imaginary parts by a key each, and half of the variance each, as in JAX."""
    real = F32 if dtype.itemsize == 8 else F64
    size = shaped(shape, loc, scale)
    words = threefry(*words_of(key), *counters((2,)))
    root = real.type(math.sqrt(0.5))
    x, y = (
        standard_normal(wrap(stacked(words[0][i], words[1][i])), size, real) * root for i in (0, 1)
    )
    z = (x + dtype.type(1j) * y).astype(dtype)
    if all(isinstance(p, (int, float)) for p in (loc, scale)) and (loc, scale) == (0, 1):
        return z
    return z * spread(scale, size, real) + spread(loc, size, dtype)
