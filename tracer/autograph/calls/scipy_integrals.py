"""`scipy.integrate` of traced samples: Simpson's rule, by pairs of intervals of any widths."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...arrays.common import array
from .scipy_common import Formula


def _simpson(y: Any, x: Any = None, *, dx: Any = 1.0, axis: int = -1) -> Any:
    """Parabolas through three samples each; where a sample is left over, the last interval is that of
    the parabola through the last three (Cartwright, 2017)."""
    samples: Any = array(y)
    y = np.moveaxis(samples, axis, -1)
    n = y.shape[-1]
    widths = None
    if x is not None:
        x = array(x)
        widths = np.diff(x if x.ndim == 1 else np.moveaxis(x, axis, -1), axis=-1)
        if widths.shape[-1] != n - 1 or (x.ndim > 1 and x.ndim != y.ndim):
            raise ValueError("If given, shape of `x` must be 1-D or the same as `y`.")
    if n % 2:
        return _pairs(y, widths, dx)
    last = (dx, dx) if widths is None else (widths[..., -2:-1], widths[..., -1:])
    if n == 2:
        total: Any = 0.5 * last[1] * (y[..., 1:] + y[..., :1])
    else:
        before, h = last
        total = y[..., -1:] * ((2 * h**2 + 3 * before * h) / (6 * (h + before)))
        total = total + y[..., -2:-1] * _over(h**2 + 3 * before * h, 6 * before)
        total = total - y[..., -3:-2] * _over(h**3, 6 * before * (before + h))
    return _pairs(y[..., :-1], None if widths is None else widths[..., :-1], dx) + total[..., 0]


def _pairs(y: Any, widths: Any, dx: Any) -> Any:
    """Of an odd number of samples."""
    first, middle, last = y[..., :-2:2], y[..., 1:-1:2], y[..., 2::2]
    if widths is None:
        return np.sum(first + 4.0 * middle + last, axis=-1) * (dx / 3.0)
    h, k = widths[..., ::2], widths[..., 1::2]
    ratio = _over(h, k)
    whole = first * (2.0 - _over(1.0, ratio)) + last * (2.0 - ratio)
    whole = whole + middle * (h + k) * _over(h + k, h * k)
    return np.sum((h + k) / 6.0 * whole, axis=-1)


def _over(a: Any, b: Any) -> Any:
    """A quotient, 0 where the divisor is."""
    return np.where(b != 0, a / np.where(b != 0, b, 1.0), 0.0)


INTEGRALS: dict[tuple[str, str], Formula] = {("scipy.integrate", "simpson"): _simpson}
