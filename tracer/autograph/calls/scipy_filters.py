"""`scipy.ndimage` and `scipy.signal` of traced arrays: filters as sums of shifted slices, recurrences as
scans; terms are added in SciPy's order."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...arrays.common import array, static_array
from ...control.scans import scan
from ...indexing.bounded import Bounded
from .scipy_common import Formula, Unfit, unless

_F64 = np.dtype(np.float64)
# What lies beyond the edges, as SciPy and as np.pad call it
_MODES = {
    "reflect": "symmetric",
    "grid-mirror": "symmetric",
    "mirror": "reflect",
    "nearest": "edge",
    "constant": "constant",
    "grid-constant": "constant",
    "wrap": "wrap",
    "grid-wrap": "wrap",
}


def _image(input: Any) -> Any:
    x = input if isinstance(input, Bounded) else array(input)
    unless(isinstance(x, Bounded), x.dtype.kind not in "fi", not x.size)
    return x


def _axis(axis: Any, rank: int) -> int:
    axis = int(axis)
    if not -rank <= axis < rank:
        raise Unfit
    return axis % rank


def _extended(x: Any, before: Sequence[int], after: Sequence[int], mode: Any, cval: Any) -> Any:
    unless(mode not in _MODES, min(*before, *after) < 0)
    how: dict[str, Any] = {"mode": _MODES[mode]}
    if how["mode"] == "constant":
        how["constant_values"] = cval
    unless(how["mode"] == "reflect" and 1 in x.shape)
    return np.pad(x, list(zip(before, after, strict=True)), **how)


def _correlate1d(
    input: Any,
    weights: Any,
    axis: Any = -1,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
) -> Any:
    x, constant = _image(input), static_array(weights)
    w = array(weights) if constant is None else constant
    unless(output is not None, w.ndim != 1, not w.size, w.dtype.kind not in "fiu")
    axis, size, rank = _axis(axis, x.ndim), w.shape[0], x.ndim
    before, n = size // 2 + int(origin), x.shape[axis]
    ends = [[k if d == axis else 0 for d in range(rank)] for k in (before, size - 1 - before)]
    wide = _extended(x.astype(_F64), ends[0], ends[1], mode, cval)
    w = w.astype(_F64)

    def shifted(k: int) -> Any:
        return wide[tuple(slice(k, k + n) if d == axis else slice(None) for d in range(rank))]

    sign = _symmetry(w) if isinstance(w, np.ndarray) else 0
    middle = size // 2
    if sign:
        total = shifted(middle) * w[middle]
        for k in range(middle):
            other = shifted(size - 1 - k)
            total = total + (shifted(k) + other if sign > 0 else shifted(k) - other) * w[k]
    else:
        total = shifted(size - 1) * w[size - 1]
        for k in range(size - 1):
            total = total + shifted(k) * w[k]
    return total.astype(x.dtype)


def _symmetry(w: Any) -> int:
    """1 or -1 for weights around the middle that SciPy takes for equal or opposite; else 0."""
    if len(w) % 2 == 0:
        return 0
    turned, middle, tolerance = w[::-1], len(w) // 2, np.finfo(np.float64).eps
    if np.all(np.abs(w - turned)[:middle] <= tolerance):
        return 1
    return -1 if np.all(np.abs(w + turned)[:middle] <= tolerance) else 0


def _convolve1d(
    input: Any,
    weights: Any,
    axis: Any = -1,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
) -> Any:
    constant = static_array(weights)
    w = array(weights) if constant is None else constant
    shift = -int(origin) - (w.shape[0] % 2 == 0)
    return _correlate1d(input, w[::-1], axis, output, mode, cval, shift)


def _correlate(
    input: Any,
    weights: Any,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
    *,
    axes: Any = None,
    turned: bool = False,
) -> Any:
    x, w = _image(input), array(weights)
    unless(
        output is not None, axes is not None, x.ndim != w.ndim, not w.size, type(origin) is not int
    )
    unless(w.dtype.kind not in "fiu")
    w = w.astype(_F64)
    if turned:
        w = w[(slice(None, None, -1),) * w.ndim]
    shifts = [(-origin - (n % 2 == 0) if turned else origin) for n in w.shape]
    before = [n // 2 + s for n, s in zip(w.shape, shifts, strict=True)]
    after = [n - 1 - b for n, b in zip(w.shape, before, strict=True)]
    wide = _extended(x.astype(_F64), before, after, mode, cval)
    total: Any = 0.0
    for place in np.ndindex(*w.shape):
        window = tuple(slice(k, k + n) for k, n in zip(place, x.shape, strict=True))
        total = total + wide[window] * w[place]
    return total.astype(x.dtype)


def _convolve(input: Any, weights: Any, *args: Any, **options: Any) -> Any:
    return _correlate(input, weights, *args, turned=True, **options)


def _gaussian_filter1d(
    input: Any,
    sigma: Any,
    axis: Any = -1,
    order: Any = 0,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    truncate: Any = 4.0,
    *,
    radius: Any = None,
) -> Any:
    reach = int(truncate * float(sigma) + 0.5) if radius is None else int(radius)
    impulse = np.zeros(2 * reach + 1)
    impulse[reach] = 1.0
    filtered = sys.modules["scipy.ndimage"].gaussian_filter1d
    answer = filtered(impulse, float(sigma), -1, order, None, "constant", radius=reach)
    return _correlate1d(input, answer[::-1].copy(), axis, output, mode, cval)


def _each(value: Any, rank: int) -> list[Any]:
    if isinstance(value, (list, tuple)):
        unless(len(value) != rank)
        return list(value)
    return [value] * rank


def _gaussian_filter(
    input: Any,
    sigma: Any,
    order: Any = 0,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    truncate: Any = 4.0,
    *,
    radius: Any = None,
    axes: Any = None,
) -> Any:
    x = _image(input)
    unless(axes is not None, output is not None)
    options = zip(*(_each(v, x.ndim) for v in (sigma, order, mode, radius)), strict=True)
    for axis, (deviation, derivative, beyond, reach) in enumerate(options):
        if deviation > 1e-15:
            x = _gaussian_filter1d(
                x, deviation, axis, derivative, None, beyond, cval, truncate, radius=reach
            )
    return x


def _along_axes(one: Callable[..., Any]) -> Formula:
    """A filter of `size` elements along each axis, by one of an axis."""

    def call(
        input: Any,
        size: Any = None,
        output: Any = None,
        mode: Any = "reflect",
        cval: Any = 0.0,
        origin: Any = 0,
        *,
        axes: Any = None,
    ) -> Any:
        x = _image(input)
        unless(size is None, output is not None, axes is not None)
        options = zip(*(_each(v, x.ndim) for v in (size, mode, origin)), strict=True)
        for axis, (n, beyond, shift) in enumerate(options):
            if n > 1:
                x = one(x, n, axis, None, beyond, cval, shift)
        return x

    return call


def _windows(combine: Callable[[Any, Any], Any], finish: Callable[[Any, int], Any]) -> Formula:
    """A filter of an axis that combines the elements of each window."""

    def call(
        input: Any,
        size: Any,
        axis: Any = -1,
        output: Any = None,
        mode: Any = "reflect",
        cval: Any = 0.0,
        origin: Any = 0,
    ) -> Any:
        x = _image(input)
        unless(output is not None, size < 1)
        axis, rank, n = _axis(axis, x.ndim), x.ndim, x.shape[axis]
        before = size // 2 + origin
        ends = [[k if d == axis else 0 for d in range(rank)] for k in (before, size - 1 - before)]
        wide = _extended(x.astype(_F64), ends[0], ends[1], mode, cval)
        total: Any = None
        for k in range(size):
            part = wide[tuple(slice(k, k + n) if d == axis else slice(None) for d in range(rank))]
            total = part if total is None else combine(total, part)
        return finish(total, size).astype(x.dtype)

    return call


_uniform = _windows(lambda a, b: a + b, lambda total, n: total / n)
_greatest = _windows(np.maximum, lambda total, n: total)
_least = _windows(np.minimum, lambda total, n: total)


def _sized(filter: Formula) -> Formula:
    """Of a size alone: a footprint or a structure is left to SciPy."""

    def call(
        input: Any, size: Any = None, footprint: Any = None, *args: Any, **options: Any
    ) -> Any:
        unless(footprint is not None)
        return filter(input, size, *args, **options)

    return call


def _derivative(others: Sequence[float]) -> Formula:
    """The difference of neighbours along an axis, smoothed along the others: Prewitt, Sobel."""

    def call(
        input: Any, axis: Any = -1, output: Any = None, mode: Any = "reflect", cval: Any = 0.0
    ) -> Any:
        x = _image(input)
        unless(output is not None)
        axis, modes = _axis(axis, x.ndim), _each(mode, x.ndim)
        found = _correlate1d(x, np.array([-1.0, 0.0, 1.0]), axis, None, modes[axis], cval)
        for other in (d for d in range(x.ndim) if d != axis):
            found = _correlate1d(found, np.array(others), other, None, modes[other], cval)
        return found

    return call


def _laplace(
    input: Any, output: Any = None, mode: Any = "reflect", cval: Any = 0.0, *, axes: Any = None
) -> Any:
    x = _image(input)
    unless(output is not None, axes is not None)
    weights, modes = np.array([1.0, -2.0, 1.0]), _each(mode, x.ndim)
    parts = [_correlate1d(x, weights, d, None, modes[d], cval) for d in range(x.ndim)]
    return sum(parts[1:], parts[0])


# scipy.signal


def _pair(in1: Any, in2: Any) -> tuple[Any, Any]:
    x, y = array(in1), array(in2)
    unless(x.dtype.kind not in "fi", y.dtype.kind not in "fi", x.dtype != y.dtype)
    unless(not x.size, not y.size)
    return x, y


def _signal_convolve(in1: Any, in2: Any, mode: Any = "full", method: Any = "auto") -> Any:
    """Sums of products, whatever `method` would have chosen."""
    x, y = _pair(in1, in2)
    if x.ndim == y.ndim == 2:
        return _convolve2d(x, y, mode)
    unless(x.ndim != 1, y.ndim != 1, mode == "valid" and x.size < y.size)
    return _cut(np.convolve(x, y), x.shape, y.shape, mode)


def _signal_correlate(in1: Any, in2: Any, mode: Any = "full", method: Any = "auto") -> Any:
    x, y = _pair(in1, in2)
    return _signal_convolve(x, y[(slice(None, None, -1),) * y.ndim], mode)


def _convolve2d(
    in1: Any, in2: Any, mode: Any = "full", boundary: Any = "fill", fillvalue: Any = 0
) -> Any:
    x, y = _pair(in1, in2)
    unless(x.ndim != 2, y.ndim != 2, boundary != "fill", mode not in ("full", "same", "valid"))
    unless(mode == "valid" and any(m < n for m, n in zip(x.shape, y.shape, strict=True)))
    (m, n), (rows, columns) = x.shape, y.shape
    wide = np.pad(x, [(rows - 1, rows - 1), (columns - 1, columns - 1)], constant_values=fillvalue)
    total: Any = 0
    for i in range(rows):
        for j in range(columns):
            here = wide[rows - 1 - i : m + 2 * rows - 2 - i, columns - 1 - j :][
                :, : n + columns - 1
            ]
            total = total + here * y[i, j]
    return _cut(total, x.shape, y.shape, mode)


def _correlate2d(in1: Any, in2: Any, mode: Any = "full", *args: Any, **options: Any) -> Any:
    unless(mode == "same")  # the middle is another one then
    _, y = _pair(in1, in2)
    unless(y.ndim != 2)
    return _convolve2d(in1, y[::-1, ::-1], mode, *args, **options)


def _cut(full: Any, first: Sequence[int], second: Sequence[int], mode: Any) -> Any:
    """The part of a full convolution that a mode asks for."""
    if mode == "full":
        return full
    unless(mode not in ("same", "valid"))
    sizes = first if mode == "same" else [m - n + 1 for m, n in zip(first, second, strict=True)]
    starts = [(f - s) // 2 for f, s in zip(full.shape, sizes, strict=True)]
    return full[tuple(slice(a, a + s) for a, s in zip(starts, sizes, strict=True))].copy()


def _lfilter(b: Any, a: Any, x: Any, axis: Any = -1, zi: Any = None) -> Any:
    """The direct form II transposed, one element after the other; all rows at once."""
    over: Any = array(b)
    under: Any = array(a)
    signal = array(x)
    unless(signal.dtype.kind not in "fi", over.ndim != 1, under.ndim != 1, zi is not None)
    unless(any(v.dtype.kind not in "fi" or not v.size for v in (over, under, signal)))
    dtype = np.result_type(over.dtype, under.dtype, signal.dtype)
    dtype = dtype if dtype.kind == "f" else _F64
    axis, n = _axis(axis, signal.ndim), max(over.size, under.size)
    rows = np.moveaxis(signal.astype(dtype), axis, 0)
    over, under = (
        np.concatenate([v.astype(dtype) / under[0], np.zeros(n - v.size, dtype)])
        for v in (over, under)
    )
    state = [np.zeros(rows.shape[1:], dtype) for _ in range(n - 1)]

    def step(state: Any, u: Any) -> Any:
        y = over[0] * u + (state[0] if state else 0.0)
        after = [*state[1:], np.zeros(rows.shape[1:], dtype)] if state else []
        return [s + u * over[k + 1] - y * under[k + 1] for k, s in enumerate(after)], y

    return np.moveaxis(scan(step, state, rows)[1], 0, axis).copy()


FILTERS: dict[tuple[str, str], Formula] = {
    **{
        ("scipy.ndimage", formula.__name__[1:]): formula
        for formula in (
            *(_correlate1d, _convolve1d, _correlate, _convolve, _laplace),
            *(_gaussian_filter1d, _gaussian_filter),
        )
    },
    ("scipy.ndimage", "uniform_filter1d"): _uniform,
    ("scipy.ndimage", "uniform_filter"): lambda input, size=3, *args, **options: _along_axes(
        _uniform
    )(input, size, *args, **options),
    ("scipy.ndimage", "maximum_filter1d"): _greatest,
    ("scipy.ndimage", "minimum_filter1d"): _least,
    ("scipy.ndimage", "maximum_filter"): _sized(_along_axes(_greatest)),
    ("scipy.ndimage", "minimum_filter"): _sized(_along_axes(_least)),
    ("scipy.ndimage", "sobel"): _derivative([1.0, 2.0, 1.0]),
    ("scipy.ndimage", "prewitt"): _derivative([1.0, 1.0, 1.0]),
    ("scipy.signal", "convolve"): _signal_convolve,
    ("scipy.signal", "correlate"): _signal_correlate,
    ("scipy.signal", "convolve2d"): _convolve2d,
    ("scipy.signal", "correlate2d"): _correlate2d,
    ("scipy.signal", "lfilter"): _lfilter,
}
