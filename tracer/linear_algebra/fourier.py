"""numpy.fft: transforms of one axis are one op, those of several axes one after the other."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...ir.types import F16, F32, F64, I64, complex_dtype, is_complex, is_inexact, real_dtype
from ..arrays import ufuncs
from ..arrays.common import array, axis_index, build, finish
from ..arrays.creation import arange
from ..arrays.movement import concatenate, moveaxis
from ..arrays.table import function
from ..core.tracers import Tracer, as_value, wrap, wrap_like
from ..data.promotion import DType
from ..functions.arranging import roll
from ..functions.padding import pad

_OPPOSITE = {None: "forward", "backward": "forward", "ortho": "ortho", "forward": "backward"}


def _opposite(norm: Any) -> str:
    try:
        return _OPPOSITE[norm]
    except (KeyError, TypeError):
        raise ValueError(
            f'Invalid norm value {norm}; should be "backward","ortho" or "forward".'
        ) from None


def _factor(norm: Any, n: int, part: DType) -> float:
    """What a forward transform of n elements is multiplied by, rounded as numbers of `part` are."""
    match _opposite(norm):
        case "forward":
            return 1.0
        case "ortho":
            return float(np.reciprocal(np.sqrt(n, dtype=part)))
        case _:
            return float(np.reciprocal(n, dtype=part))


def _part_dtype(x: Tracer) -> DType:
    """The dtype of the parts of a transform's results."""
    return np.result_type(real_dtype(x.dtype), 1.0) if is_inexact(x.dtype) else F64


def _resized(x: Tracer, n: int, axis: int) -> Tracer:
    """`x` with n elements along an axis: the first ones, or zeros behind them."""
    have = x.shape[axis]
    if n == have:
        return x
    before = (slice(None),) * axis
    if n < have:
        return x[(*before, slice(0, n))]
    return pad(x, [(0, n - have if d == axis else 0) for d in range(x.ndim)])


def _transform(
    op: str, x: Tracer, points: int, axis: Any, norm: Any, taken: int, **attrs: Any
) -> Tracer:
    """One op along an axis, of which it takes so many elements; `points` make the factor."""
    if points < 1:
        raise ValueError(f"Invalid number of FFT data points ({points}) specified.")
    axis = axis_index(axis, x.ndim, x)
    part = _part_dtype(x)
    wide = F32 if part.itemsize < F32.itemsize else part  # what transforms are computed in
    x = _resized(x.astype(wide if op == "rfft" else complex_dtype(wide)), taken, axis)
    factor = _factor(norm, points, part)
    made = wrap(build().op(op, as_value(moveaxis(x, axis, -1)), factor=factor, **attrs))
    made = moveaxis(made.astype(part) if op == "irfft" else made, -1, axis)
    return wrap_like(as_value(made), (x,), copy=True)


def _length(x: Tracer, n: Any, axis: Any) -> int:
    return x.shape[axis_index(axis, x.ndim, x)] if n is None else operator.index(n)


@function("fft.fft")
def fft(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Tracer:
    x = array(a)
    n = _length(x, n, axis)
    return finish(_transform("fft", x, n, axis, norm, n, inverse=False), out, "same_kind")


@function("fft.ifft")
def ifft(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Tracer:
    x = array(a)
    n = _length(x, n, axis)
    return finish(_transform("fft", x, n, axis, _opposite(norm), n, inverse=True), out, "same_kind")


@function("fft.rfft")
def rfft(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Tracer:
    x = array(a)
    if is_complex(x.dtype):
        raise TypeError(
            f"rfft takes real numbers, not {x.dtype}: use fft, or rfft of the real part"
        )
    n = _length(x, n, axis)
    return finish(_transform("rfft", x, n, axis, norm, n), out, "same_kind")


@function("fft.irfft")
def irfft(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Tracer:
    x = array(a)
    n = (_length(x, None, axis) - 1) * 2 if n is None else operator.index(n)
    taken = n // 2 + 1
    result = _transform("irfft", x, n, axis, _opposite(norm), taken, n=n)
    return finish(result.astype(F16) if x.dtype == F16 else result, out, "same_kind")


@function("fft.hfft")
def hfft(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Tracer:
    x = array(a)
    return finish(irfft(ufuncs.apply(np.conjugate, x), n, axis, _opposite(norm)), out, "same_kind")


@function("fft.ihfft")
def ihfft(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Tracer:
    return finish(ufuncs.apply(np.conjugate, rfft(a, n, axis, _opposite(norm))), out, "same_kind")


def _shape_and_axes(
    x: Tracer, s: Any, axes: Any, real_result: bool = False
) -> tuple[list[int], list[int]]:
    """The sizes of the transform along its axes; -1 stands for all of an axis."""
    shapeless = s is None
    if axes is None:
        axes = range(x.ndim) if shapeless else range(-len(s), 0)
    axes = [axis_index(a, x.ndim, x) for a in axes]
    sizes = (
        [x.shape[a] for a in axes]
        if shapeless
        else [-1 if n is None else operator.index(n) for n in s]
    )
    if len(sizes) != len(axes):
        raise ValueError("Shape and axes have different lengths.")
    if real_result and shapeless and sizes:
        sizes[-1] = (sizes[-1] - 1) * 2
    return [x.shape[a] if n == -1 else n for n, a in zip(sizes, axes, strict=True)], axes


def _each(transform: Any, x: Tracer, s: Sequence[int], axes: Sequence[int], norm: Any) -> Tracer:
    for n, axis in reversed(list(zip(s, axes, strict=True))):
        x = transform(x, n, axis, norm)
    return x


@function("fft.fftn")
def fftn(a: Any, s: Any = None, axes: Any = None, norm: Any = None, out: Any = None) -> Tracer:
    x = array(a)
    return finish(_each(fft, x, *_shape_and_axes(x, s, axes), norm), out, "same_kind")


@function("fft.ifftn")
def ifftn(a: Any, s: Any = None, axes: Any = None, norm: Any = None, out: Any = None) -> Tracer:
    x = array(a)
    return finish(_each(ifft, x, *_shape_and_axes(x, s, axes), norm), out, "same_kind")


@function("fft.rfftn")
def rfftn(a: Any, s: Any = None, axes: Any = None, norm: Any = None, out: Any = None) -> Tracer:
    x = array(a)
    sizes, along = _shape_and_axes(x, s, axes)
    if not along:
        raise IndexError("at least one axis is needed: the last one is that of real numbers")
    x = rfft(x, sizes[-1], along[-1], norm)
    return finish(_each(fft, x, sizes[:-1], along[:-1], norm), out, "same_kind")


@function("fft.irfftn")
def irfftn(a: Any, s: Any = None, axes: Any = None, norm: Any = None, out: Any = None) -> Tracer:
    x = array(a)
    sizes, along = _shape_and_axes(x, s, axes, real_result=True)
    if not along:
        raise IndexError("at least one axis is needed: the last one is that of real numbers")
    for n, axis in zip(sizes[:-1], along[:-1], strict=True):
        x = ifft(x, n, axis, norm)
    return finish(irfft(x, sizes[-1], along[-1], norm), out, "same_kind")


def _of_two_axes(name: str, transform: Callable[..., Tracer]) -> None:
    def traced(
        a: Any, s: Any = None, axes: Any = (-2, -1), norm: Any = None, out: Any = None
    ) -> Tracer:
        return transform(a, s, axes, norm, out)

    function(f"fft.{name}")(traced)


_of_two_axes("fft2", fftn)
_of_two_axes("ifft2", ifftn)
_of_two_axes("rfft2", rfftn)
_of_two_axes("irfft2", irfftn)


def _shifted(x: Any, axes: Any, sign: int) -> Tracer:
    x = array(x)
    if axes is None:
        axes = tuple(range(x.ndim))
    along = [axis_index(a, x.ndim, x) for a in (axes if isinstance(axes, Sequence) else (axes,))]
    halves = [x.shape[a] // 2 for a in along]
    return roll(x, tuple(sign * n for n in halves), tuple(along))


@function("fft.fftshift")
def fftshift(x: Any, axes: Any = None) -> Tracer:
    return _shifted(x, axes, 1)


@function("fft.ifftshift")
def ifftshift(x: Any, axes: Any = None) -> Tracer:
    return _shifted(x, axes, -1)


def _frequencies(plain: Any) -> Any:
    """NumPy's function, with the standard's `dtype=`."""

    @functools.wraps(plain)
    def reference(n: int, d: Any = 1.0, device: Any = None, *, dtype: Any = None) -> Any:
        return plain(n, d, device).astype(dtype or F64, copy=False)

    del reference.__wrapped__
    return reference


@function("fft.fftfreq", reference=_frequencies(np.fft.fftfreq), creates=True)
def fftfreq(n: int, d: Any = 1.0, device: Any = None, *, dtype: Any = None) -> Tracer:
    n = operator.index(n)
    middle = (n - 1) // 2 + 1
    order = concatenate([arange(0, middle, dtype=I64), arange(-(n // 2), 0, dtype=I64)])
    return (order * (1.0 / (n * d))).astype(dtype or F64)


@function("fft.rfftfreq", reference=_frequencies(np.fft.rfftfreq), creates=True)
def rfftfreq(n: int, d: Any = 1.0, device: Any = None, *, dtype: Any = None) -> Tracer:
    n = operator.index(n)
    return (arange(0, n // 2 + 1, dtype=I64) * (1.0 / (n * d))).astype(dtype or F64)
