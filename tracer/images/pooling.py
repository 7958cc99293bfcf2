"""Pooling and other reductions over moving windows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...ir.ops.folds.window_reductions import covered
from ...ir.types import BOOL
from ..arrays.common import array, build
from ..arrays.table import function
from ..core.tracers import Tracer, as_value, wrap
from ..data.promotion import float_dtype
from ..messages import errors
from ..messages.errors import complain
from .spatial import Layout, pads, per_dim

Ints = tuple[int, ...]
_OPS: dict[Any, str] = {
    "sum": "sum",
    "max": "max",
    "min": "min",
    "prod": "prod",
    np.add: "sum",
    np.maximum: "max",
    np.minimum: "min",
    np.multiply: "prod",
}


def _numbers(name: str, x: Any) -> Tracer:
    a = array(x)
    if a.dtype == BOOL:
        complain(
            errors.DTypeError,
            f"{name} of booleans is not defined",
            "convert x to an integer or float dtype.",
            operands={"x": a},
        )
    return a


class _Pool:
    """The windows of a pooling function over the spatial dims of x."""

    def __init__(
        self,
        name: str,
        x: Tracer,
        window: Any,
        strides: Any,
        padding: Any,
        dilation: Any,
        layout: str | None,
    ) -> None:
        form = Layout(name, x, layout)
        rank = form.rank
        sizes = tuple(x.shape[d] for d in form.order[1:-1])
        taps = per_dim("window", window, rank)
        steps = taps if strides is None else per_dim("strides", strides, rank)
        gaps = per_dim("dilation", dilation, rank)
        widths = pads(name, padding, sizes, taps, steps, gaps)
        _check_pads(name, padding, widths)
        self.taps = taps
        self.attrs: dict[str, Any] = {
            "window": form.everywhere(taps, 1),
            "strides": form.everywhere(steps, 1),
            "low": form.everywhere([w[0] for w in widths], 0),
            "high": form.everywhere([w[1] for w in widths], 0),
            "dilation": form.everywhere(gaps, 1),
        }


def _check_pads(name: str, padding: Any, widths: Sequence[tuple[int, int]]) -> None:
    if any(w < 0 for pair in widths for w in pair):
        raise ValueError(f"{name}: padding={padding!r} must not be negative; slice x instead")


@function("max_pool", composed=True)
def max_pool(
    x: Any,
    window: int | Sequence[int],
    strides: int | Sequence[int] | None = None,
    padding: Any = "VALID",
    *,
    dilation: int | Sequence[int] = 1,
    layout: str | None = None,
) -> Tracer:
    """The greatest element of each window, separately for each channel.

    `window`, `strides` (default: the window) and `dilation` are one number, or one per spatial dim;
    `padding` and `layout` are those of `jt.conv`. Padding never wins. NaN wins. The gradient goes to
    the first among equals.

    >>> jt.max_pool(np.arange(16.0).reshape(1, 4, 4, 1), 2)[0, :, :, 0]
    array([[ 5.,  7.],
           [13., 15.]])
    """
    a = _numbers("max_pool", x)
    pool = _Pool("max_pool", a, window, strides, padding, dilation, layout)
    return wrap(build().window_max(as_value(a), **pool.attrs), scalar=False)


@function("avg_pool", composed=True)
def avg_pool(
    x: Any,
    window: int | Sequence[int],
    strides: int | Sequence[int] | None = None,
    padding: Any = "VALID",
    *,
    dilation: int | Sequence[int] = 1,
    count_include_pad: bool = False,
    layout: str | None = None,
) -> Tracer:
    """The mean of each window, separately for each channel.

    Arguments are those of `jt.max_pool`. Padding is not counted, as in TensorFlow; with
    `count_include_pad` it counts as zeros, as by default in PyTorch and Flax. Integers give float64.

    >>> jt.avg_pool(np.arange(16.0).reshape(1, 4, 4, 1), 2)[0, :, :, 0]
    array([[ 2.5,  4.5],
           [10.5, 12.5]])
    """
    a = _numbers("avg_pool", x)
    a = a.astype(float_dtype(a.dtype))
    pool = _Pool("avg_pool", a, window, strides, padding, dilation, layout)
    b = build()
    total = b.window_sum(as_value(a), **pool.attrs)
    whole = int(np.prod(pool.taps))
    counts = np.asarray(whole) if count_include_pad else _counts(a.shape, pool.attrs)
    if (counts == whole).all():
        return wrap(b.mul(total, b.full(total.shape, 1 / whole, a.dtype)), scalar=False)
    shares = b.const(1 / np.maximum(counts, 1), a.dtype)
    return wrap(b.mul(total, b.broadcast_to(shares, total.shape)), scalar=False)


def _counts(shape: Ints, attrs: dict[str, Ints]) -> np.ndarray[Any, Any]:
    """How many elements each window covers, of a size that broadcasts to the windows."""
    result = np.ones((1,) * len(shape), np.int64)
    paddings = covered(shape, attrs)
    for axis, (n, k, p) in enumerate(zip(shape, attrs["window"], paddings, strict=True)):
        if k == 1 and not attrs["low"][axis] and not attrs["high"][axis]:
            continue
        start = np.arange(p)[:, None] * attrs["strides"][axis] - attrs["low"][axis]
        at = start + np.arange(k) * attrs["dilation"][axis]
        along = ((at >= 0) & (at < n)).sum(1)
        result = result * along.reshape([-1 if d == axis else 1 for d in range(len(shape))])
    return result


@function("reduce_window", composed=True)
def reduce_window(
    x: Any,
    op: str | Callable[..., Any],
    window: int | Sequence[int],
    strides: int | Sequence[int] = 1,
    padding: Any = "VALID",
    *,
    dilation: int | Sequence[int] = 1,
) -> Tracer:
    """A window moved over all axes of x, each of its places reduced to one element.

    `op` is "sum", "prod", "max" or "min" (or `np.add`, `np.multiply`, `np.maximum`, `np.minimum`).
    `window`, `strides` and `dilation` are one number, or one per axis; `padding` is as for `jt.conv`,
    over all axes, and takes no part in the reduction: a window without elements gives 0, 1, or the
    least or greatest value of the dtype. Integers keep their dtype. Differentiable; the gradient of
    "max" and "min" goes to the first among equals.

    >>> jt.reduce_window(np.arange(6.0), "sum", 3, strides=2)
    array([3., 9.])
    """
    a = _numbers("reduce_window", x)
    name = _OPS.get(op)
    if name is None:
        raise ValueError(f'reduce_window: op={op!r} is not "sum", "prod", "max" or "min"')
    taps = per_dim("window", window, a.ndim)
    steps = per_dim("strides", strides, a.ndim)
    gaps = per_dim("dilation", dilation, a.ndim)
    widths = pads("reduce_window", padding, a.shape, taps, steps, gaps)
    _check_pads("reduce_window", padding, widths)
    low, high = tuple(w[0] for w in widths), tuple(w[1] for w in widths)
    attrs: dict[str, Any] = {
        "window": taps,
        "strides": steps,
        "low": low,
        "high": high,
        "dilation": gaps,
    }
    return wrap(build().op(f"window_{name}", as_value(a), **attrs), scalar=False)
