"""Convolutions over images and sequences: `jt.conv` and `jt.conv_transpose`.

Arrays come in any layout. The graph op has one (groups, images, places, channels), so this is where
dims are moved; kernels read and write them where they lie.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...ir.graph import Value
from ...ir.ops.products.convolution import Window, fitted, spread
from ...ir.types import BOOL
from ..arrays.common import array, build, common_dtype
from ..arrays.table import function
from ..core.tracers import Tracer, as_value, wrap
from ..messages import errors
from ..messages.errors import complain
from .spatial import Layout, pads, per_dim

Ints = tuple[int, ...]


@function("conv", composed=True)
def conv(
    x: Any,
    kernel: Any,
    strides: int | Sequence[int] = 1,
    padding: Any = "VALID",
    *,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    layout: str | None = None,
    kernel_layout: str | None = None,
) -> Tracer:
    """Convolution (correlation, as everywhere in machine learning) of images, sequences or volumes.

    For a batch of images, `y[n, i, j, o]` is the sum over `a`, `b`, `c` of
    `x[n, i * stride + a * dilation - low, j * stride + b * dilation - low, c] * kernel[a, b, c, o]`,
    where x counts as zero beyond its edges.

    - `x`: one batch dim, one to three spatial dims and channels, as `layout` names them: "NWC", "NHWC"
      (the default for two spatial dims), "NDHWC", "NCW", "NCHW", "NCDHW", or any other order of these
      letters.
    - `kernel`: spatial dims, input channels I (per group) and output channels O, as `kernel_layout`
      names them: "HWIO" by default, "OIHW" where the layout of x has the channels before the spatial
      dims, and likewise for other numbers of spatial dims.
    - `strides`, `dilation`: one number, or one per spatial dim.
    - `padding`: "VALID" (none); "SAME" (the result has `ceil(size / stride)` places, padded evenly, one
      more at the end if the number is odd); "SAME_LOWER" (one more at the start); "CAUSAL" (for one
      spatial dim: place i sees nothing after i); a number; or per spatial dim a number or a pair
      `(low, high)`.
    - `groups`: channels of x and of the result are split into that many groups, convolved
      separately: the number of channels for a depthwise convolution.

    The result has the layout of x and the dtype that NumPy gives `x * kernel`. Differentiable with
    respect to x and kernel. A NaN or infinity in the kernel may or may not reach results through
    zeros beyond the edges.

    >>> jt.conv(np.ones((1, 5, 5, 3)), np.ones((3, 3, 3, 8)), padding="SAME").shape
    (1, 5, 5, 8)
    """
    form = _Form("conv", x, kernel, groups, layout, kernel_layout)
    rank = form.layout.rank
    steps = per_dim("strides", strides, rank)
    gaps = per_dim("dilation", dilation, rank)
    widths = pads("conv", padding, form.sizes, form.taps, steps, gaps)
    return form.convolved(
        form.kernel,
        strides=steps,
        low=tuple(w[0] for w in widths),
        high=tuple(w[1] for w in widths),
        lhs_dilation=(1,) * rank,
        rhs_dilation=gaps,
    )


@function("conv_transpose", composed=True)
def conv_transpose(
    x: Any,
    kernel: Any,
    strides: int | Sequence[int] = 1,
    padding: Any = "SAME",
    *,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    layout: str | None = None,
    kernel_layout: str | None = None,
) -> Tracer:
    """Transposed convolution: each place of x adds its kernel to the result, `stride` apart.

    For a batch of images, `y[n, i * stride + a * dilation - low, ..., o]` is the sum of all
    `x[n, i, ..., c] * kernel[a, ..., c, o]` that land there: what the gradient of `jt.conv` does.

    Arguments are those of `jt.conv`: I of the kernel's layout are the channels of x, O those of the
    result. (TensorFlow and Keras keep the kernel of a transposed convolution in the layout "HWOI",
    PyTorch in "IOHW".) Along each spatial dim of size n the result has

    - "SAME": `n * stride` places, as `tf.nn.conv2d_transpose` and Keras' `padding="same"`;
    - "VALID": `n * stride + max(kernel - stride, 0)`, as Keras' `padding="valid"`;
    - pairs `(low, high)`: `(n - 1) * stride + kernel - low - high`, `kernel` being the dilated extent.
      PyTorch's `padding=p, output_padding=q` is the pair `(p, p - q)`.

    >>> jt.conv_transpose(np.ones((1, 7, 7, 4)), np.ones((5, 5, 4, 2)), 2).shape
    (1, 14, 14, 2)
    """
    form = _Form("conv_transpose", x, kernel, groups, layout, kernel_layout)
    rank = form.layout.rank
    steps = per_dim("strides", strides, rank)
    gaps = per_dim("dilation", dilation, rank)
    dims, results = [], []
    for i, (n, k, s, d) in enumerate(zip(form.sizes, form.taps, steps, gaps, strict=True)):
        extent = spread(k, d)
        if padding == "SAME":
            low, result = max(extent - s, 0) // 2, n * s
        elif padding == "SAME_LOWER":
            low, result = -(-max(extent - s, 0) // 2), n * s
        elif padding == "VALID":
            low, result = 0, n * s + max(extent - s, 0)
        else:
            low, high = pads("conv_transpose", padding, form.sizes, form.taps, steps, gaps)[i]
            result = max((n - 1) * s + extent - low - high, 0)
        dims.append(Window(n, k, 1, extent - 1 - low, 0, s, d))
        results.append(result)
    b = build()
    flipped = b.flip(form.kernel, axes=tuple(range(1, rank + 1))) if rank else form.kernel
    return form.convolved(flipped, **fitted(dims, results))


class _Form:
    """The operands of a convolution in the layout of the graph op, and the way back.

    `kernel` is [G, *K, C, O], `sizes` are those of the spatial dims of x, `taps` of the kernel.
    """

    def __init__(
        self,
        name: str,
        x: Any,
        kernel: Any,
        groups: int,
        layout: str | None,
        kernel_layout: str | None,
    ) -> None:
        a, w = array(x), array(kernel)
        shown = {"x": a, "kernel": w}
        self.layout = Layout(name, a, layout)
        rank = self.layout.rank
        order = self.layout.kernel_order(name, w, kernel_layout)
        dtype = common_dtype(a, w)
        if dtype == BOOL:
            complain(
                errors.DTypeError,
                f"{name} of booleans is not defined",
                "convert one of the operands to an integer or float dtype.",
                operands=shown,
            )
        b = build()
        images = b.transpose(as_value(a, dtype), perm=self.layout.order)
        taps = b.transpose(as_value(w, dtype), perm=order)
        batch, *sizes, channels = images.shape
        *extents, per_group, features = taps.shape
        self.sizes, self.taps, self.groups = tuple(sizes), tuple(extents), groups
        if groups < 1 or channels != per_group * groups or features % groups:
            complain(
                errors.ShapeError,
                f"{name}: x has {channels} channels and the kernel {per_group} input and {features} "
                f"output channels, with groups={groups}",
                "the kernel's input channels times groups must be the channels of x, and groups must "
                "divide its output channels.",
                operands=shown,
            )
        if 0 in extents:
            complain(
                errors.ShapeError,
                f"{name}: the kernel has no elements along a spatial dim",
                "give the kernel at least one element along each spatial dim.",
                operands=shown,
            )
        dims = range(1, rank + 1)
        if groups == 1:
            self.x: Value = b.reshape(images, shape=(1, *images.shape))
            self.kernel: Value = b.reshape(taps, shape=(1, *taps.shape))
        else:
            images = b.reshape(images, shape=(batch, *sizes, groups, per_group))
            self.x = b.transpose(images, perm=(rank + 1, 0, *dims, rank + 2))
            taps = b.reshape(taps, shape=(*extents, per_group, groups, features // groups))
            self.kernel = b.transpose(taps, perm=(rank + 1, *range(rank + 1), rank + 2))

    def convolved(self, kernel: Value, **attrs: Ints) -> Tracer:
        """x convolved with `kernel`, in the layout of x."""
        b = build()
        y = b.conv(self.x, kernel, **attrs)
        _, batch, *sizes, features = y.shape
        rank = len(sizes)
        if self.groups > 1:
            y = b.transpose(y, perm=(*range(1, rank + 2), 0, rank + 2))
        y = b.reshape(y, shape=(batch, *sizes, self.groups * features))
        back = tuple(np.argsort(self.layout.order).tolist())
        return wrap(b.transpose(y, perm=back), scalar=False)
