"""Pooling over 1 to 3 spatial dims: windows, whole images, or a given number of places.

Images are channels first, or with `channels_last=True` last, as those of convolutions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import jitney as jt

from .convolutions import check_rank, check_result, layout, padding_of
from .faults import Array, complain, refuse
from .module import Module

Ints = int | Sequence[int]


class _Pool(Module):
    """What pooling over windows shares: its settings."""

    rank = 2

    def __init__(
        self,
        window: Ints,
        stride: Ints | None = None,
        padding: Any = 0,
        *,
        dilation: Ints = 1,
        channels_last: bool = False,
    ) -> None:
        self.window, self.stride = window, window if stride is None else stride
        self.padding, self.dilation = padding_of(self, padding), dilation
        self.channels_last = channels_last

    def pooled(self, function: Callable[..., Any], x: Array, **more: Any) -> Array:
        """`jt.max_pool` or `jt.avg_pool` of x."""
        check_rank(self, x, self.rank, self.channels_last)
        order = layout(self.rank, self.channels_last)
        settings = {"dilation": self.dilation, "layout": order, **more}
        y = function(x, self.window, self.stride, self.padding, **settings)
        return check_result(self, x, y)


class _MaxPool(_Pool):
    def __call__(self, x: Array) -> Array:
        return self.pooled(jt.max_pool, x)


class MaxPool2d(_MaxPool):
    """The greatest element of each window of images, channel by channel.

    - `window`, `stride` (as much as the window by default), `dilation`: a number, or one for each
      spatial dim.
    - `padding`: a number, pairs, or "SAME", as for `jt.max_pool`; it never wins.

    >>> jt.nn.MaxPool2d(2)(np.arange(16.0).reshape(1, 1, 4, 4))[0, 0]
    array([[ 5.,  7.],
           [13., 15.]])
    """


class MaxPool1d(_MaxPool):
    """The greatest element of each window of sequences; see `nn.MaxPool2d`."""

    rank = 1


class MaxPool3d(_MaxPool):
    """The greatest element of each window of volumes; see `nn.MaxPool2d`."""

    rank = 3


class _AvgPool(_Pool):
    def __init__(
        self,
        window: Ints,
        stride: Ints | None = None,
        padding: Any = 0,
        *,
        count_include_pad: bool | None = None,
        **settings: Any,
    ) -> None:
        super().__init__(window, stride, padding, **settings)
        named = isinstance(padding, str)
        self.count_include_pad = not named if count_include_pad is None else count_include_pad

    def __call__(self, x: Array) -> Array:
        return self.pooled(jt.avg_pool, x, count_include_pad=self.count_include_pad)


class AvgPool2d(_AvgPool):
    """The mean of each window of images, channel by channel.

    Settings are those of `nn.MaxPool2d`. Padding given as numbers counts as zeros, as in PyTorch;
    "SAME" is not counted, as in Keras; `count_include_pad` says one or the other.

    >>> jt.nn.AvgPool2d(2)(np.arange(16.0).reshape(1, 1, 4, 4))[0, 0]
    array([[ 2.5,  4.5],
           [10.5, 12.5]])
    """


class AvgPool1d(_AvgPool):
    """The mean of each window of sequences; see `nn.AvgPool2d`."""

    rank = 1


class AvgPool3d(_AvgPool):
    """The mean of each window of volumes; see `nn.AvgPool2d`."""

    rank = 3


class _GlobalPool(Module):
    def __init__(self, *, channels_last: bool = False, keepdims: bool = False) -> None:
        self.channels_last, self.keepdims = channels_last, keepdims


class GlobalAvgPool(_GlobalPool):
    """The mean over all spatial dims, whatever their number: (batch, channels).

    `keepdims` leaves them in, of size 1.

    >>> jt.nn.GlobalAvgPool()(np.ones((2, 16, 7, 7))).shape
    (2, 16)
    """

    def __call__(self, x: Array) -> Array:
        return jt.mean(x, axis=spatial(self, x), keepdims=self.keepdims)


class GlobalMaxPool(_GlobalPool):
    """The greatest element over all spatial dims; see `nn.GlobalAvgPool`."""

    def __call__(self, x: Array) -> Array:
        return jt.max(x, axis=spatial(self, x), keepdims=self.keepdims)


class _AdaptivePool(Module):
    def __init__(self, *places: int, channels_last: bool = False) -> None:
        if not places or any(not isinstance(n, (int, np.integer)) or n < 1 for n in places):
            complain(
                ValueError,
                f"{type(self).__name__} was given {places}",
                "it takes a number of places for each spatial dim.",
            )
        self.places, self.channels_last = tuple(int(n) for n in places), channels_last


class AdaptiveAvgPool(_AdaptivePool):
    """The means of as many windows as are asked for, whatever the sizes that come in.

    `places` is one number for each spatial dim; place i of k sees the elements from `i * n // k` up to
    the `(i + 1) * n / k`-th, rounded up, as in PyTorch.

    >>> jt.nn.AdaptiveAvgPool(2)(np.arange(5.0).reshape(1, 1, 5))
    array([[[1., 3.]]])
    """

    def __call__(self, x: Array) -> Array:
        return _adapted(self, x, jt.mean)


class AdaptiveMaxPool(_AdaptivePool):
    """The greatest elements of as many windows as are asked for; see `nn.AdaptiveAvgPool`."""

    def __call__(self, x: Array) -> Array:
        return _adapted(self, x, jt.max)


def spatial(layer: Any, x: Array) -> tuple[int, ...]:
    """The axes of the spatial dims of x; raises ShapeError if there are none."""
    dims = np.ndim(x)
    if dims < 3:
        refuse(
            layer,
            f"needs spatial dims beside a batch dim and channels, and x has {dims} dims",
            "call it before the array is flattened; x[None] adds a batch of one.",
            x=x,
        )
    return tuple(range(1, dims - 1) if layer.channels_last else range(2, dims))


def _adapted(layer: Any, x: Array, reduce: Callable[..., Any]) -> Array:
    """x with its spatial dims, one after the other, reduced to so many places."""
    axes = (1, 2, 3) if layer.channels_last else (2, 3, 4)
    check_rank(layer, x, len(layer.places), layer.channels_last)
    for axis, count in zip(axes, layer.places, strict=False):
        size = x.shape[axis]
        if size % count == 0:
            split = (*x.shape[:axis], count, size // count, *x.shape[axis + 1 :])
            x = reduce(jt.reshape(x, split), axis=axis + 1)
            continue
        before = (slice(None),) * axis
        windows = [slice(i * size // count, -(-(i + 1) * size // count)) for i in range(count)]
        x = jt.stack([reduce(x[(*before, w)], axis=axis) for w in windows], axis=axis)
    return x
