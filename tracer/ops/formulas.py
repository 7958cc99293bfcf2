"""Formulas of a line or two that have a name: losses, statistics, layers without a state."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...ir.types import real_dtype
from ..arrays import ufuncs
from ..arrays.common import array, axis_index, build, common_dtype, operand
from ..arrays.elementwise import where
from ..arrays.movement import broadcast_to
from ..arrays.reductions import absolute_square, max_, mean, sum_, var
from ..arrays.table import function
from ..core.tracers import Tracer, as_value, wrap
from ..data.promotion import float_dtype
from ..linear_algebra.products import matmul
from .checks import floats, refuse_shapes


@function("ops.l2_loss", composed=True)
def l2_loss(x: Any) -> Tracer:
    """Half of the sum of the squares of all elements.

    >>> jt.ops.l2_loss(np.array([3.0, 4.0]))
    np.float64(12.5)
    """
    return sum_(absolute_square(floats(x))) / 2


@function("ops.zero_fraction", composed=True)
def zero_fraction(x: Any) -> Tracer:
    """The share of zeros among the elements (float64); NaN if there are no elements.

    >>> jt.ops.zero_fraction(np.array([0, 1, 0, 2]))
    np.float64(0.5)
    """
    return mean(array(x) == 0)


@function("ops.moments", composed=True)
def moments(x: Any, axis: Any = None, *, weights: Any = None, keepdims: bool = False) -> Any:
    """Mean and variance along `axis` (one or several, None for all), each element weighing the same, or
    what `weights`, which broadcasts to x, says.

    >>> jt.ops.moments(np.array([1.0, 3.0]))
    (np.float64(2.0), np.float64(1.0))
    """
    a = floats(x)
    if weights is None:
        return mean(a, axis, keepdims=keepdims), var(a, axis, keepdims=keepdims)
    shares = broadcast_to(array(weights).astype(real_dtype(a.dtype)), a.shape)
    total = sum_(shares, axis, keepdims=True)
    middle = sum_(a * shares, axis, keepdims=True) / total
    spread = sum_(absolute_square(a - middle) * shares, axis, keepdims=keepdims)
    if keepdims:
        return middle, spread / total
    return middle.reshape(spread.shape), spread / total.reshape(spread.shape)


@function("ops.xw_plus_b", composed=True)
def xw_plus_b(x: Any, w: Any, b: Any) -> Tracer:
    """`x @ w + b`: rows of x through a layer.

    >>> jt.ops.xw_plus_b(np.ones((1, 2)), np.ones((2, 3)), np.array([0.0, 1.0, 2.0]))
    array([[2., 3., 4.]])
    """
    rows, matrix, bias = array(x), array(w), array(b)
    if matrix.ndim != 2 or rows.ndim == 0 or bias.shape != matrix.shape[1:]:
        refuse_shapes(
            "xw_plus_b: w is no matrix, or b has not one number for each of its columns",
            "give x of shape (..., n), w of shape (n, m), b of shape (m,).",
            x=rows,
            w=matrix,
            b=bias,
        )
    return matmul(rows, matrix) + bias


@function("ops.bias_add", composed=True)
def bias_add(x: Any, bias: Any, axis: int = -1) -> Tracer:
    """`x` with a number of `bias` added to each channel; `axis` is that of the channels.

    >>> jt.ops.bias_add(np.zeros((2, 2)), np.array([1.0, 2.0]), axis=0)
    array([[1., 1.],
           [2., 2.]])
    """
    a, b = array(x), array(bias)
    axis = axis_index(axis, a.ndim, a)
    if b.shape != (a.shape[axis],):
        refuse_shapes(
            "bias_add: bias has not one number for each channel",
            f"give a bias of shape ({a.shape[axis]},), or another axis.",
            x=a,
            bias=b,
        )
    return a + b.reshape([-1 if d == axis else 1 for d in range(a.ndim)])


@function("ops.softmax_entropy", composed=True)
def softmax_entropy(logits: Any, axis: int = -1) -> Tracer:
    """The entropy, in nats, of the distribution `softmax(logits)` along `axis`.

    Logits of any size give the right entropy and derivative; minus infinity is a class that does not
    happen.

    >>> jt.ops.softmax_entropy(np.array([0.0, 0.0, -np.inf]))
    np.float64(0.6931471805599453)
    """
    a = floats(logits)
    if a.size:
        top = wrap(build().stop_gradient(as_value(max_(a, axis=axis, keepdims=True))))
        a = a - top
    terms = ufuncs.apply(np.exp, a)
    total = sum_(terms, axis=axis)
    inside = sum_(terms * where(a == -math.inf, 0.0, a), axis=axis)
    return ufuncs.apply(np.log, total) - inside / total


@function("ops.gaussian_kl", composed=True)
def gaussian_kl(q: Any, p: Any = (0.0, 0.0), axis: Any = -1) -> Tracer:
    """How far the normal distribution `q` is from `p`, in nats: KL(q || p), summed along `axis`.

    Each is a pair of the mean and the logarithm of the variance, arrays that broadcast with each
    other; p is the standard normal distribution by default. With axis=() nothing is summed.

    >>> jt.ops.gaussian_kl((np.array([1.0, 0.0]), np.array([0.0, 0.0])))
    np.float64(0.5)
    """
    parts = [operand(part) for pair in (q, p) for part in pair]
    dtype = float_dtype(common_dtype(*parts))
    mean1, log1, mean2, log2 = (array(part).astype(dtype) for part in parts)
    difference = log1 - log2
    grown = ufuncs.apply(np.exp, difference) - difference - 1
    apart = ufuncs.apply(np.square, mean1 - mean2) * ufuncs.apply(np.exp, -log2)
    return sum_((grown + apart) * 0.5, axis=axis)


@function("ops.leaky_relu", composed=True)
def leaky_relu(x: Any, alpha: Any = 0.2) -> Tracer:
    """`x` where it is positive, `alpha * x` where it is not.

    >>> jt.ops.leaky_relu(np.array([-1.0, 2.0]))
    array([-0.2,  2. ])
    """
    a = floats(x)
    return wrap(as_value(where(a > 0, a, a * alpha)))
