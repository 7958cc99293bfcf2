"""Convolutions over 1 to 3 spatial dims: plain, transposed, depthwise and separable.

Images are channels first, (batch, channels, height, width), or with `channels_last=True` (batch, height,
width, channels); with one spatial dim or three likewise. `w` has the shape `(*kernel, in, out)` in both.
(PyTorch's weight is `w.transpose(3, 2, 0, 1)` for two dims.)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import jitney as jt

from .faults import Array, complain, refuse
from .initializers import GLOROT, Grouped, penalize, starting
from .linear import check_features
from .linear import sizes as sizes_of
from .module import Module

Ints = int | Sequence[int]


class _Convolution(Module):
    """What convolutions share: sizes, parameters, and the checks of what comes in."""

    rank = 2

    def __init__(
        self,
        *sizes: Any,
        stride: Ints = 1,
        padding: Any = 0,
        dilation: Ints = 1,
        groups: int = 1,
        bias: bool = True,
        channels_last: bool = False,
        w_init: Any = GLOROT,
        b_init: Any = 0,
        w_reg: Any = None,
        b_reg: Any = None,
        dtype: Any = np.float32,
        rng: Any = None,
    ) -> None:
        given, self.features, kernel = sizes_of(
            self, sizes, "(out, kernel) or (in, out, kernel)", 1
        )
        self.kernel = self.each("kernel", kernel)
        self.stride, self.dilation = self.each("stride", stride), self.each("dilation", dilation)
        self.padding, self.groups = padding_of(self, padding), groups
        self.channels_last = channels_last
        if groups < 1 or self.features % groups or (given or 0) % groups:
            complain(
                ValueError,
                f"{type(self).__name__}: groups={groups} do not divide the channels",
                f"choose groups that divide {given or 'those that come'} in and {self.features} out.",
            )
        self.w: Array = None
        self.b: Array = None
        penalize(self, w=w_reg, b=b_reg)
        self.start: Any = starting(dtype, rng, w=w_init, b=b_init if bias else None)
        if given is not None:
            self.make(given)

    def each(self, what: str, value: Any) -> tuple[int, ...]:
        """A setting for each spatial dim, given once or for each."""
        whole = (value,) * self.rank if isinstance(value, (int, np.integer)) else tuple(value)
        if len(whole) != self.rank or any(n < 1 for n in whole):
            complain(
                ValueError,
                f"{type(self).__name__}: {what}={value!r} is not for {self.rank} dims",
                f"give a number of at least 1, or {self.rank} of them.",
            )
        return tuple(int(n) for n in whole)

    def make(self, given: int) -> None:
        """The parameters, for so many channels that come in."""
        shape = Grouped((*self.kernel, given // self.groups, self.features))
        shape.groups = self.groups
        self.start(self, w=shape, b=(self.features,))

    def build(self, x: Array) -> None:
        if self.w is None:
            self.make(self.channels(x))

    def channels(self, x: Array, wanted: int | None = None) -> int:
        """How many channels x has; raises ShapeError if it has not the dims, or other channels."""
        check_rank(self, x, self.rank, self.channels_last)
        found = check_features(self, x, wanted, -1 if self.channels_last else 1)
        if found % self.groups:
            refuse(
                self,
                f"has {self.groups} groups, which do not divide the {found} channels of x",
                "choose groups= that divide them.",
                x=x,
            )
        return found

    def settings(self) -> dict[str, Any]:
        """What `jt.conv` and `jt.conv_transpose` are told by name."""
        return {
            "strides": self.stride,
            "dilation": self.dilation,
            "groups": self.groups,
            "layout": layout(self.rank, self.channels_last),
            "kernel_layout": "DHW"[-self.rank :] + "IO",
        }

    def biased(self, y: Array) -> Array:
        """`y` with `b` added to each channel."""
        if self.b is None:
            return y
        return y + (self.b if self.channels_last else self.b.reshape(-1, *(1,) * self.rank))

    def __call__(self, x: Array) -> Array:
        self.channels(x, self.w.shape[-2] * self.groups)
        y = jt.conv(x, self.w, padding=self.padding, **self.settings())
        return self.biased(check_result(self, x, y))


class Conv2d(_Convolution):
    """Convolution of images: each place of the result sees a window of x, through the same weights.

    `nn.Conv2d(32, 3)` finds out how many channels come in, `nn.Conv2d(16, 32, 3)` says it; the last
    number is the kernel's extent, or one for each spatial dim.

    - `padding`: a number or pairs (low, high) for each dim, "SAME", "VALID", ... as for `jt.conv`.
    - `groups`: into so many groups channels are split, each convolved by itself.
    - `channels_last`: whether x has the channels last.
    - `bias`, `w_init`, `b_init`, `w_reg`, `b_reg`, `dtype`, `rng`: as those of `nn.Linear`.

    Raises jt.errors.ShapeError if x has other dims or channels.

    >>> jt.nn.Conv2d(3, 16, 3, stride=2, padding=1)(np.ones((1, 3, 32, 32), np.float32)).shape
    (1, 16, 16, 16)
    """


class Conv1d(_Convolution):
    """Convolution of sequences, (batch, channels, places); see `nn.Conv2d`. `padding="CAUSAL"` sees
    nothing that comes later."""

    rank = 1


class Conv3d(_Convolution):
    """Convolution of volumes, (batch, channels, depth, height, width); see `nn.Conv2d`."""

    rank = 3


class _Transposed(_Convolution):
    """What transposed convolutions share: the shape of the result."""

    def __init__(self, *sizes: Any, output_shape: Ints | None = None, **settings: Any) -> None:
        _Convolution.__init__(self, *sizes, **settings)
        self.output_shape = output_shape

    def __call__(self, x: Array, output_shape: Ints | None = None) -> Array:
        self.channels(x, self.w.shape[-2] * self.groups)
        wanted = self.output_shape if output_shape is None else output_shape
        padding = self.padding if wanted is None else self.padding_for(x, wanted)
        return self.biased(jt.conv_transpose(x, self.w, padding=padding, **self.settings()))

    def padding_for(self, x: Array, wanted: Ints) -> list[tuple[int, int]]:
        """The padding with which x becomes an array with these sizes."""
        sizes = x.shape[1:-1] if self.channels_last else x.shape[2:]
        widths = []
        for i, (n, size) in enumerate(zip(sizes, self.each("output_shape", wanted), strict=True)):
            step = self.stride[i]
            extent = (self.kernel[i] - 1) * self.dilation[i] + 1
            spare = (n - 1) * step + extent - size
            low = max(spare, 0) // 2 if isinstance(self.padding, str) else self.pairs()[i][0]
            least = (n - 1) * step + 1
            if self.padding == "VALID":
                low, least = 0, least + extent - 1
            elif not isinstance(self.padding, str):
                least += extent - 1 - sum(self.pairs()[i])
            if not least <= size < least + step:
                refuse(
                    self,
                    f"cannot make output_shape={wanted!r} of {n} places along "
                    f"spatial dim {i}: a convolution with these settings gives {n} of {least} to "
                    f"{least + step - 1}",
                    "ask for one of these sizes, or change stride=, padding= or the kernel.",
                    x=x,
                )
            widths.append((low, spare - low))
        return widths

    def pairs(self) -> list[tuple[int, int]]:
        """The padding, given as numbers, as pairs."""
        whole = [self.padding] * self.rank if isinstance(self.padding, int) else self.padding
        return [(p, p) if isinstance(p, int) else tuple(p) for p in whole]


class ConvTranspose2d(_Transposed):
    """Transposed convolution of images: each place of x adds its kernel to the result, `stride` apart.

    Sizes and settings are those of `nn.Conv2d`. Along each dim the result has
    `(n - 1) * stride + kernel - low - high` places for the padding (low, high), `n * stride` for "SAME";
    `output_shape`, here or in the call, says which of the sizes is meant that a convolution with these
    settings would make the same n of. (PyTorch's `output_padding=q` is the pair `(p, p - q)`.)

    Raises jt.errors.ShapeError if x has other dims or channels, or for an `output_shape` that no
    convolution with these settings has.

    >>> up = jt.nn.ConvTranspose2d(16, 8, 3, stride=2, padding=1)
    >>> up(np.ones((1, 16, 7, 7), np.float32)).shape
    (1, 8, 13, 13)
    >>> up(np.ones((1, 16, 7, 7), np.float32), output_shape=14).shape
    (1, 8, 14, 14)
    """


class ConvTranspose1d(_Transposed):
    """Transposed convolution of sequences; see `nn.ConvTranspose2d`."""

    rank = 1


class ConvTranspose3d(_Transposed):
    """Transposed convolution of volumes; see `nn.ConvTranspose2d`."""

    rank = 3


class _Depthwise(_Convolution):
    """What depthwise convolutions share: each channel is a group."""

    def __init__(self, *sizes: Any, multiplier: int = 1, **settings: Any) -> None:
        if "groups" in settings or len(sizes) not in (1, 2):
            complain(
                TypeError,
                f"{type(self).__name__} was given {sizes}, {', '.join(settings)}",
                "it takes (kernel) or (in, kernel), and no groups=.",
            )
        self.multiplier = multiplier
        _Convolution.__init__(self, *sizes[:-1], multiplier, sizes[-1], **settings)

    def make(self, given: int) -> None:
        """The parameters, for so many channels that come in."""
        self.groups, self.features = given, given * self.multiplier
        _Convolution.make(self, given)


class DepthwiseConv2d(_Depthwise):
    """Convolution of each channel by itself, into `multiplier` channels.

    `nn.DepthwiseConv2d(3)` finds out how many channels come in, `nn.DepthwiseConv2d(16, 3)` says it.
    Settings are those of `nn.Conv2d`.

    >>> jt.nn.DepthwiseConv2d(3, padding="SAME")(np.ones((1, 16, 8, 8), np.float32)).shape
    (1, 16, 8, 8)
    """


class DepthwiseConv1d(_Depthwise):
    """Convolution of each channel of sequences by itself; see `nn.DepthwiseConv2d`."""

    rank = 1


class DepthwiseConv3d(_Depthwise):
    """Convolution of each channel of volumes by itself; see `nn.DepthwiseConv2d`."""

    rank = 3


class SeparableConv2d(Module):
    """A depthwise convolution, and then a product over the channels: far fewer weights than `nn.Conv2d`.

    Sizes and settings are those of `nn.Conv2d`, and `multiplier` that of `nn.DepthwiseConv2d`.

    >>> jt.nn.SeparableConv2d(32, 3, padding=1)(np.ones((1, 16, 8, 8), np.float32)).shape
    (1, 32, 8, 8)
    """

    parts: tuple[Any, Any] = (DepthwiseConv2d, Conv2d)

    def __init__(
        self, *sizes: Any, multiplier: int = 1, bias: bool = True, **settings: Any
    ) -> None:
        if len(sizes) not in (2, 3):
            complain(
                TypeError,
                f"{type(self).__name__} was given {sizes}",
                "it takes (out, kernel) or (in, out, kernel).",
            )
        depthwise, plain = self.parts
        shared = {"channels_last", "w_init", "w_reg", "dtype", "rng"}
        same = {name: value for name, value in settings.items() if name in shared}
        given, features = sizes[:-2], sizes[-2]
        self.depthwise = depthwise(*given, sizes[-1], multiplier=multiplier, bias=False, **settings)
        between = [n * multiplier for n in given]
        self.pointwise = plain(*between, features, 1, bias=bias, **same)

    def __call__(self, x: Array) -> Array:
        return self.pointwise(self.depthwise(x))


class SeparableConv1d(SeparableConv2d):
    """A depthwise convolution of sequences, then a product over the channels."""

    parts = (DepthwiseConv1d, Conv1d)


NAMED = ("VALID", "SAME", "SAME_LOWER", "CAUSAL")


def padding_of(layer: Any, padding: Any) -> Any:
    """A padding with its name in capitals; raises ValueError for a name that is none."""
    if not isinstance(padding, str):
        return padding
    if padding.upper() not in NAMED or (padding.upper() == "CAUSAL" and layer.rank > 1):
        complain(
            ValueError,
            f"{type(layer).__name__}: padding={padding!r} is not known",
            f"choose one of {', '.join(NAMED)} (this for one dim), a number, or pairs (low, high).",
        )
    return padding.upper()


def check_result(layer: Any, x: Array, y: Array) -> Array:
    """y, which a layer made of x; raises ShapeError if nothing is left of it."""
    if 0 in y.shape and 0 not in x.shape:
        refuse(
            layer,
            f"leaves nothing of x, which is smaller than the window: {y.shape}",
            "give it larger images, a smaller kernel or window, or padding.",
            x=x,
        )
    return y


def layout(rank: int, channels_last: bool) -> str:
    """The name of a layout with 1 to 3 spatial dims: "NCHW", "NWC"."""
    letters = "DHW"[-rank:]
    return f"N{letters}C" if channels_last else f"NC{letters}"


def check_rank(layer: Any, x: Array, rank: int, channels_last: bool) -> None:
    """ShapeError if x has not so many spatial dims beside a batch dim and channels."""
    dims = np.ndim(x)
    if dims == rank + 2:
        return
    names = ["depth", "height", "width"][-rank:] if rank > 1 else ["places"]
    wanted = ["batch", *names, "channels"] if channels_last else ["batch", "channels", *names]
    remedy = (
        f"give it the dims ({', '.join(wanted)}); x[None] adds a batch of one"
        f"{', x[..., None]' if channels_last else ', x[:, None]'} a channel."
    )
    refuse(layer, f"needs {rank + 2} dims, and x has {dims}", remedy, x=x)
