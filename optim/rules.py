"""The rules: what the gradient of a leaf, and what is kept of earlier ones, make an update of.

Each gives the direction in which a loss grows; `scale_by_learning_rate` turns it round. `g` is the
gradient, `p` the parameter; the functions are named as in Optax, with its defaults.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .transform import Transform, by_leaf
from .trees import dtype_of

__autograph__ = False  # see `leaves`
ZEROS: Any = np.zeros_like


def squared(g: Any) -> Any:
    """The square of a magnitude, a real number also of complex ones."""
    return (g * g.conj()).real if dtype_of(g).kind == "c" else g * g


def _real_zeros(p: Any) -> Any:
    return np.zeros_like(p.real) if dtype_of(p).kind == "c" else np.zeros_like(p)


def trace(decay: float, nesterov: bool = False, dampening: float = 0.0) -> Transform:
    """Momentum: `m = decay * m + g` is the update, or `g + decay * m` with `nesterov`; slot
    `momentum`.

    `dampening` takes that share off every gradient but the first, as in PyTorch.
    """

    def rule(g: Any, p: Any, m: Any, *fresh: Any) -> tuple[Any, ...]:
        m = decay * m + (fresh[0] * g if fresh else g)
        return (g + decay * m if nesterov else m), m

    def each_step(count: Any) -> tuple[Any, ...]:
        return (np.where(count == 1, 1.0, 1.0 - dampening),)

    return by_leaf(rule, {"momentum": ZEROS}, each_step if dampening else None)


def scale_by_adam(
    b1: float = 0.9,
    b2: float = 0.999,
    eps: float = 1e-8,
    eps_root: float = 0.0,
    *,
    nesterov: bool = False,
) -> Transform:
    """Adam's direction: the running `mean` of gradients over the root of that of their `square`."""

    def rule(g: Any, p: Any, mean: Any, square: Any, *numbers: Any) -> tuple[Any, ...]:
        mean, square = _moments(g, mean, square, b1, b2)
        unbias_mean, unbias_square, *rest = numbers
        estimate = mean * unbias_mean
        if nesterov:
            unbias_next, unbias_now = rest
            estimate = b1 * (mean * unbias_next) + (1 - b1) * (g * unbias_now)
        spread = square * unbias_square
        root = np.sqrt(spread + eps_root if eps_root else spread)
        return estimate / (root + eps), mean, square

    def each_step(count: Any) -> tuple[Any, ...]:
        numbers = unbias(b1, count), unbias(b2, count)
        return (*numbers, unbias(b1, count + 1), unbias(b1, count)) if nesterov else numbers

    return by_leaf(rule, {"mean": ZEROS, "square": _real_zeros}, each_step)


def scale_by_amsgrad(
    b1: float = 0.9,
    b2: float = 0.999,
    eps: float = 1e-8,
    eps_root: float = 0.0,
    *,
    unbiased: bool = True,
) -> Transform:
    """Adam with the `largest` mean of squares so far in place of the latest: of those that are
    freed of their bias (Optax), or with `unbiased=False` of the others (PyTorch)."""

    def rule(
        g: Any, p: Any, mean: Any, square: Any, largest: Any, *numbers: Any
    ) -> tuple[Any, ...]:
        unbias_mean, unbias_square = numbers
        mean, square = _moments(g, mean, square, b1, b2)
        largest = np.maximum(largest, square * unbias_square if unbiased else square)
        scale = largest if unbiased else largest * unbias_square
        return mean * unbias_mean / (np.sqrt(scale + eps_root) + eps), mean, square, largest

    def each_step(count: Any) -> tuple[Any, ...]:
        return unbias(b1, count), unbias(b2, count)

    slots = {"mean": ZEROS, "square": _real_zeros, "largest": _real_zeros}
    return by_leaf(rule, slots, each_step)


def scale_by_lion(b1: float = 0.9, b2: float = 0.99) -> Transform:
    """Lion's direction: the sign of a mean of the gradient and the running `mean`."""

    def rule(g: Any, p: Any, mean: Any) -> tuple[Any, ...]:
        return np.sign((1 - b1) * g + b1 * mean), (1 - b2) * g + b2 * mean

    return by_leaf(rule, {"mean": ZEROS})


def scale_by_rms(
    decay: float = 0.9,
    eps: float = 1e-8,
    initial_scale: float = 0.0,
    *,
    eps_in_sqrt: bool = True,
    centered: bool = False,
) -> Transform:
    """RMSProp's direction: the gradient over the root of the running mean of its `square`, less the
    square of its running `mean` if `centered`."""

    def rule(g: Any, p: Any, square: Any, *mean: Any) -> tuple[Any, ...]:
        square = decay * square + (1 - decay) * squared(g)
        spread = square
        if centered:
            mean = (decay * mean[0] + (1 - decay) * g,)
            spread = square - squared(mean[0])
        root = np.sqrt(spread + eps) if eps_in_sqrt else np.sqrt(spread) + eps
        return g / root, square, *mean

    slots = {"square": lambda p: np.full_like(_real_zeros(p), initial_scale)}
    return by_leaf(rule, {**slots, "mean": ZEROS} if centered else slots)


def scale_by_rss(
    initial_accumulator_value: float = 0.1, eps: float = 1e-7, *, eps_in_sqrt: bool = True
) -> Transform:
    """Adagrad's direction: the gradient over the root of the `sum` of all squares."""

    def rule(g: Any, p: Any, total: Any) -> tuple[Any, ...]:
        total = total + squared(g)
        if not eps_in_sqrt:
            return g / (np.sqrt(total) + eps), total
        return np.where(total > 0, g / np.sqrt(total + eps), np.zeros_like(g)), total

    slots = {"sum": lambda p: np.full_like(_real_zeros(p), initial_accumulator_value)}
    return by_leaf(rule, slots)


def scale_by_adadelta(rho: float = 0.9, eps: float = 1e-6) -> Transform:
    """Adadelta's direction: the gradient times the root of the running mean of squared updates,
    `moved`, over the root of that of squared gradients, `square`."""

    def rule(g: Any, p: Any, square: Any, moved: Any) -> tuple[Any, ...]:
        square = rho * square + (1 - rho) * squared(g)
        update = np.sqrt(moved + eps) / np.sqrt(square + eps) * g
        return update, square, rho * moved + (1 - rho) * squared(update)

    return by_leaf(rule, {"square": _real_zeros, "moved": _real_zeros})


def unbias(decay: float, count: Any) -> Any:
    """What a running mean that started at 0 is multiplied with after so many steps."""
    return 1 / (1 - decay**count)


def _moments(g: Any, mean: Any, square: Any, b1: float, b2: float) -> tuple[Any, Any]:
    return b1 * mean + (1 - b1) * g, b2 * square + (1 - b2) * squared(g)
