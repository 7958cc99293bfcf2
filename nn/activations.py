"""Activations by their usual names: elementwise functions, and those over one axis.

Each takes an array of any shape and gives one of its dtype (float64 for integers), in plain code,
compiled, and differentiated. They stay finite, values and derivatives, where the textbook's formula
would overflow; NaN goes through. At a kink the derivative is the one from the left, as in PyTorch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jitney as jt

from .faults import Array, complain

_HALF_ROOT = 0.7071067811865476  # sqrt(1/2)
_TANH_SCALE = 0.7978845608028654  # sqrt(2/pi)
_SELU_ALPHA, _SELU_SCALE = 1.6732632423543772, 1.0507009873554805


def identity(x: Array) -> Array:
    """`x` itself."""
    return x


def _positive(x: Array) -> Array:
    return jt.maximum(x, 0)


def _positive_tangent(t: Array, y: Array, x: Array) -> Array:
    """It asks for the result only: what went in need not be kept for it, or computed again."""
    return jt.where(y <= 0, 0, t)


_relu: Any = jt.custom_jvp(_positive)
_relu.defjvps(_positive_tangent)


def relu(x: Array) -> Array:
    """`max(x, 0)`.

    >>> jt.nn.relu(np.array([-1.0, 2.0]))
    array([0., 2.])
    """
    return _relu(x)


def relu6(x: Array) -> Array:
    """`min(max(x, 0), 6)`."""
    return hardtanh(x, 0, 6)


def leaky_relu(x: Array, slope: Any = 0.01) -> Array:
    """`x` where positive, `slope * x` elsewhere. With an array as `slope` it is the PReLU.

    >>> jt.nn.leaky_relu(np.array([-1.0, 2.0]), 0.1)
    array([-0.1,  2. ])
    """
    return jt.where(x > 0, x, slope * x)


def elu(x: Array, alpha: float = 1.0) -> Array:
    """`x` where positive, `alpha * (exp(x) - 1)` elsewhere."""
    return jt.where(x > 0, x, alpha * jt.expm1(jt.minimum(x, 0)))


def celu(x: Array, alpha: float = 1.0) -> Array:
    """`x` where positive, `alpha * (exp(x / alpha) - 1)` elsewhere: smooth at 0 for every alpha."""
    return jt.where(x > 0, x, alpha * jt.expm1(jt.minimum(x, 0) / alpha))


def selu(x: Array) -> Array:
    """The scaled ELU, which keeps mean 0 and variance 1 from layer to layer."""
    return _SELU_SCALE * elu(x, _SELU_ALPHA)


def gelu(x: Array, approximate: bool | str = False) -> Array:
    """`x` times the normal distribution's probability of less than `x`.

    `approximate=True` (or "tanh") is the formula with tanh of the first papers; it differs by up to
    5e-4. PyTorch and Keras are exact by default, JAX is not.

    >>> jt.nn.gelu(np.array([1.0])), jt.nn.gelu(np.array([1.0]), approximate="tanh")
    (array([0.84134475]), array([0.84119199]))
    """
    if approximate not in (False, True, "none", "tanh"):
        complain(
            ValueError,
            f"gelu: approximate={approximate!r} is no way to compute it",
            'choose True or "tanh", False or "none".',
        )
    if approximate in (True, "tanh"):
        return 0.5 * x * (1 + jt.tanh(_TANH_SCALE * (x + 0.044715 * (x * x * x))))
    return 0.5 * x * (1 + jt.erf(x * _HALF_ROOT))


def _expit(x: Array) -> Array:
    return jt.special.expit(x)


_sigmoid: Any = jt.custom_jvp(_expit)
_sigmoid.defjvps(lambda t, y, x: t * (y * (1 - y)))  # as `_positive_tangent`


def sigmoid(x: Array) -> Array:
    """`1 / (1 + exp(-x))`.

    Its derivative is made of its value, as in other libraries: 0 where that rounds to 1. Where large x
    matter, that of `jt.special.expit` is exact, and keeps two numbers instead of one for it.

    >>> jt.nn.sigmoid(np.array([-1e4, 0.0]))
    array([0. , 0.5])
    """
    return _sigmoid(x)


def log_sigmoid(x: Array) -> Array:
    """The logarithm of the sigmoid, exact where that is 0."""
    return jt.special.log_expit(x)


def silu(x: Array) -> Array:
    """`x * sigmoid(x)`, also called swish."""
    return x * _sigmoid(x)


swish = silu


def softplus(x: Array, beta: float = 1.0) -> Array:
    """`log(1 + exp(beta * x)) / beta`: a smooth ReLU."""
    return jt.special.softplus(x) if beta == 1 else jt.special.softplus(beta * x) / beta


def mish(x: Array) -> Array:
    """`x * tanh(softplus(x))`."""
    return x * jt.tanh(jt.special.softplus(x))


def tanh(x: Array) -> Array:
    """The hyperbolic tangent."""
    return jt.tanh(x)


def softsign(x: Array) -> Array:
    """`x / (1 + |x|)`."""
    return x / (1 + jt.abs(x))


def tanhshrink(x: Array) -> Array:
    """`x - tanh(x)`."""
    return x - jt.tanh(x)


def hardtanh(x: Array, low: float = -1.0, high: float = 1.0) -> Array:
    """`x` between `low` and `high`, these beyond; their derivative is 0 there, and at the ends."""
    return jt.where(x <= low, low, jt.where(x >= high, high, x))


def hard_sigmoid(x: Array) -> Array:
    """`relu6(x + 3) / 6`: a sigmoid of three straight pieces."""
    return hardtanh(x / 6 + 0.5, 0, 1)


def hard_swish(x: Array) -> Array:
    """`x * hard_sigmoid(x)`."""
    return x * hard_sigmoid(x)


hard_silu = hard_swish


def softshrink(x: Array, width: float = 0.5) -> Array:
    """`x` drawn towards 0 by `width`, and 0 within."""
    return jt.where(x > width, x - width, jt.where(x < -width, x + width, 0 * x))


def hardshrink(x: Array, width: float = 0.5) -> Array:
    """`x` where it is beyond `width` of 0, else 0."""
    return jt.where((x >= -width) & (x <= width), 0, x)


def threshold(x: Array, limit: float, value: float) -> Array:
    """`x` where it is above `limit`, else `value`."""
    return jt.where(x <= limit, value, x)


def softmax(x: Array, axis: int | tuple[int, ...] = -1) -> Array:
    """`exp(x)` along `axis` over its sum: positive numbers that add up to 1.

    >>> jt.nn.softmax(np.array([1000.0, 1000.0]))
    array([0.5, 0.5])
    """
    return jt.special.softmax(x, axis=axis)


def softmin(x: Array, axis: int | tuple[int, ...] = -1) -> Array:
    """The softmax of `-x`."""
    return jt.special.softmax(-x, axis=axis)


def log_softmax(x: Array, axis: int | tuple[int, ...] = -1) -> Array:
    """The logarithm of the softmax, exact where that is 0."""
    return jt.special.log_softmax(x, axis=axis)


def glu(x: Array, axis: int = -1, gate: Callable[[Any], Any] = sigmoid) -> Array:
    """The first half of `x` along `axis`, times `gate` of the second: `gate=nn.silu` is SwiGLU.

    >>> jt.nn.glu(np.array([4.0, 6.0, 0.0, 1e4]))
    array([2., 6.])
    """
    if x.shape[axis] % 2:
        complain(
            jt.errors.ShapeError,
            f"glu halves an axis of odd size, {x.shape[axis]}",
            "give it twice as many features as it should return, or another axis=.",
            x=x,
        )
    first, second = jt.split(x, 2, axis=axis)
    return first * gate(second)
