"""Fourier transforms as products of matrices, for targets that have no library for them.

A transform of n1 * n2 elements is n2 transforms of n1, factors of modulus 1, and n1 transforms of n2
(J. Cooley, J. Tukey, An algorithm for the machine calculation of complex Fourier series, 1965). Short
ones are products with the matrix of the coefficients; long ones of a prime length are convolutions of a
length that is not (L. Bluestein, A linear filtering approach to the computation of discrete Fourier
transform, 1970).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..build import Builder
from ..graph import Value
from ..types import complex_dtype

Array = np.ndarray[Any, Any]

SHORT = 64  # elements of a transform that is one product


def _scaled(b: Builder, x: Value, factor: float) -> Value:
    scaled: Value = x if factor == 1 else b.op("mul", x, b.full_like(x, factor))
    return scaled


def _fft(b: Builder, x: Value, *, inverse: bool, factor: float) -> Value:
    return _scaled(b, _transform(b, x, 1 if inverse else -1), factor)


def _rfft(b: Builder, x: Value, *, factor: float) -> Value:
    whole = _transform(b, b.op("convert", x, dtype=complex_dtype(x.dtype)), -1)
    return _scaled(b, _part(b, whole, 0, x.shape[-1] // 2 + 1), factor)


def _irfft(b: Builder, x: Value, *, n: int, factor: float) -> Value:
    have = x.shape[-1]
    mirrored = b.op("conj", _part(b, x, 1, n - have + 1))
    rank = len(x.shape)
    mirrored = b.op("flip", mirrored, axes=(rank - 1,))
    whole = b.op("concat", x, mirrored, axis=rank - 1) if n > have else x
    return _scaled(b, b.op("real", _transform(b, whole, 1)), factor)


TRANSFORMS: dict[str, Callable[..., Value]] = {"fft": _fft, "rfft": _rfft, "irfft": _irfft}


def _part(b: Builder, x: Value, start: int, stop: int) -> Value:
    rank = len(x.shape)
    first = (*(0,) * (rank - 1), start)
    part: Value = b.op("slice", x, start=first, stop=(*x.shape[:-1], stop), step=(1,) * rank)
    return part


def _transform(b: Builder, x: Value, sign: int) -> Value:
    """Along the last axis, without a factor."""
    n = x.shape[-1]
    if n <= 1 or 0 in x.shape:
        return x
    if n <= SHORT:
        return _product(b, x, len(x.shape) - 1, sign)
    n1 = max((d for d in range(2, SHORT + 1) if n % d == 0), default=0)
    if not n1:
        return _bluestein(b, x, sign)
    lead, n2 = x.shape[:-1], n // n1
    rank = len(lead)
    x = b.op("reshape", x, shape=(*lead, n1, n2))
    x = _product(b, x, rank, sign)  # [..., j2, k1]
    turns = _roots(np.outer(np.arange(n2), np.arange(n1)), n, sign, x)
    x = b.op("mul", x, b.broadcast_to(b.const(turns), x.shape))
    swapped = (*range(rank), rank + 1, rank)
    x = _transform(b, b.op("transpose", x, perm=swapped), sign)  # [..., k1, k2]
    return b.op("reshape", b.op("transpose", x, perm=swapped), shape=(*lead, n))


def _roots(powers: Array, n: int, sign: int, like: Value) -> Array:
    """exp(sign 2 pi i p / n): the powers are reduced first, so that each root is exact to rounding."""
    return np.exp(sign * 2j * math.pi * (powers % n) / n).astype(like.dtype)


def _product(b: Builder, x: Value, axis: int, sign: int) -> Value:
    """The transform of one axis, which becomes the last one."""
    n = x.shape[axis]
    matrix = b.const(_roots(np.outer(np.arange(n), np.arange(n)), n, sign, x))
    product: Value = b.op("dot", x, matrix, contract=((axis,), (0,)), batch=((), ()))
    return product


def _bluestein(b: Builder, x: Value, sign: int) -> Value:
    """jk = (j^2 + k^2 - (k - j)^2) / 2: a convolution with a chirp, between products with it."""
    n = x.shape[-1]
    size = 1 << (2 * n - 2).bit_length()
    squares = np.arange(n, dtype=np.int64) ** 2
    chirp = np.exp(sign * 1j * math.pi * (squares % (2 * n)) / n)
    kernel = np.zeros(size, complex)
    kernel[:n] = chirp.conj()
    kernel[size - n + 1 :] = chirp[:0:-1].conj()
    spectrum = np.fft.fft(kernel).astype(x.dtype)
    rank = len(x.shape)
    along = b.broadcast_to(b.const(chirp.astype(x.dtype)), x.shape)
    nothing = (0,) * rank
    zero = b.const(np.zeros((), x.dtype))
    ends: dict[str, Any] = {"low": nothing, "high": (*nothing[1:], size - n), "interior": nothing}
    padded = b.op("pad", b.op("mul", x, along), zero, **ends)
    moved = _transform(b, padded, -1)
    moved = b.op("mul", moved, b.broadcast_to(b.const(spectrum), moved.shape))
    back = _part(b, _transform(b, moved, 1), 0, n)
    return _scaled(b, b.op("mul", back, along), 1 / size)
