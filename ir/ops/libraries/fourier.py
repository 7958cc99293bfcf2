"""Discrete Fourier transforms along the last axis, by pocketfft, through the loops of `numpy.fft`.

    fft    y[k] = factor * sum over j of x[j] exp(-2 pi i jk / n); +2 pi i if `inverse`
    rfft   the same of real x, for k = 0 .. n // 2
    irfft  real y of length n from n // 2 + 1 elements: the others are their conjugates

All are linear. A matrix of Fourier coefficients is symmetric, so `fft` is its own transpose.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...build import Builder, Grads, Wanted
from ...graph import Op, Value
from ...types import real_dtype
from .library import library

_POCKETFFT = "numpy.fft._pocketfft_umath"


def _jvp(b: Builder, op: Op, tangents: Sequence[Value | None]) -> list[Value | None]:
    return [None if t is None else b.op(op.name, t, **op.attrs) for t in tangents]


def _vjp_fft(b: Builder, op: Op, cotangents: Sequence[Value | None], wanted: Wanted) -> Grads:
    return _jvp(b, op, cotangents)


def _weights(b: Builder, x: Value, n: int, inner: float) -> Value:
    """`x` times the weight of each of its n // 2 + 1 elements: 1 for those that have no conjugate."""
    weights = np.full(x.shape[-1], inner, real_dtype(x.dtype))
    weights[0] = 1
    if n % 2 == 0:
        weights[-1] = 1
    return b.op("mul", x, b.broadcast_to(b.const(weights.astype(x.dtype)), x.shape))


def _vjp_rfft(b: Builder, op: Op, cotangents: Sequence[Value], wanted: Wanted) -> Grads:
    """x~[j] = Re sum over k of conj(y~[k]) exp(2 pi i jk / n): irfft, which counts inner ones twice."""
    (ct,) = cotangents
    n = op.operands[0].shape[-1]
    halved = _weights(b, b.op("conj", ct), n, 0.5)
    return [b.op("irfft", halved, n=n, factor=op.attrs["factor"])]


def _vjp_irfft(b: Builder, op: Op, cotangents: Sequence[Value], wanted: Wanted) -> Grads:
    """x~[k] = w[k] conj(rfft(y~))[k], where w is 2 for all that stand for their conjugates too."""
    (ct,) = cotangents
    spectrum = b.op("conj", b.op("rfft", ct, factor=op.attrs["factor"]))
    return [_weights(b, spectrum, op.attrs["n"], 2.0)]


def _loop(sizes: Mapping[str, int], *, inverse: bool, factor: float) -> str:
    return f"{_POCKETFFT}:{'ifft' if inverse else 'fft'}"


def _factor(*, factor: float, **_: Any) -> tuple[float, ...]:
    return (factor,)


library(
    "fft",
    _loop,
    "(n)->(m)",
    _jvp,
    vjp=_vjp_fft,
    sizes=lambda sizes, **_: {"m": sizes["n"]},
    kinds="c",
    constants=_factor,
    attrs=("inverse", "factor"),
)
library(
    "rfft",
    lambda sizes, *, factor: f"{_POCKETFFT}:rfft_n_{'odd' if sizes['n'] % 2 else 'even'}",
    "(n)->(m)",
    _jvp,
    vjp=_vjp_rfft,
    results=("complex",),
    sizes=lambda sizes, **_: {"m": sizes["n"] // 2 + 1},
    kinds="f",
    constants=_factor,
    attrs=("factor",),
)
library(
    "irfft",
    f"{_POCKETFFT}:irfft",
    "(m)->(n)",
    _jvp,
    vjp=_vjp_irfft,
    results=("real",),
    sizes=lambda sizes, *, n, factor: {"n": n},
    kinds="c",
    constants=_factor,
    attrs=("n", "factor"),
)
