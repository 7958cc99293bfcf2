"""Optimisers as functions: chains of the rules, named as in Optax and with its defaults.

    opt = optim.adam(1e-3)
    state = opt.init(params)
    updates, state = opt.update(grads, state, params)
    params = optim.apply_updates(params, updates)

`learning_rate` is a number, a schedule, or an array of one number. The gradient of a real loss by a
complex parameter is what `jt.grad` gives, conjugated.
"""

from __future__ import annotations

from typing import Any

from . import rules
from .scaling import add_decayed_weights, check_decays, scale_by_learning_rate
from .transform import Transform, chain, identity
from .wrappers import Mask, masked


def sgd(learning_rate: Any, momentum: float | None = None, nesterov: bool = False) -> Transform:
    """Gradient descent, with momentum if that is given: `m = momentum * m + g`.

    >>> params = {"w": np.array([1.0, 2.0])}
    >>> opt = jt.optim.sgd(0.5)
    >>> updates, state = opt.update(params, opt.init(params))  # the gradient of half of the square
    >>> jt.optim.apply_updates(params, updates)
    {'w': array([0.5, 1. ])}
    """
    check_decays(momentum=momentum or 0.0)
    rule = identity() if momentum is None else rules.trace(momentum, nesterov)
    return chain(rule, scale_by_learning_rate(learning_rate))


def adam(
    learning_rate: Any,
    b1: float = 0.9,
    b2: float = 0.999,
    eps: float = 1e-8,
    eps_root: float = 0.0,
    *,
    nesterov: bool = False,
) -> Transform:
    """Adam; NAdam with `nesterov`.

    >>> opt = jt.optim.adam(0.1)
    >>> params = np.array([1.0, -1.0])
    >>> updates, state = opt.update(np.array([5.0, -0.01]), opt.init(params), params)
    >>> updates.round(4)
    array([-0.1,  0.1])
    """
    check_decays(b1=b1, b2=b2)
    rule = rules.scale_by_adam(b1, b2, eps, eps_root, nesterov=nesterov)
    return chain(rule, scale_by_learning_rate(learning_rate))


def adamw(
    learning_rate: Any,
    b1: float = 0.9,
    b2: float = 0.999,
    eps: float = 1e-8,
    eps_root: float = 0.0,
    weight_decay: float = 1e-4,
    mask: Mask = None,
    *,
    nesterov: bool = False,
) -> Transform:
    """Adam with decoupled weight decay, of the parameters where `mask` is True."""
    check_decays(b1=b1, b2=b2)
    rule = rules.scale_by_adam(b1, b2, eps, eps_root, nesterov=nesterov)
    return chain(rule, _decay(weight_decay, mask), scale_by_learning_rate(learning_rate))


def amsgrad(
    learning_rate: Any,
    b1: float = 0.9,
    b2: float = 0.999,
    eps: float = 1e-8,
    eps_root: float = 0.0,
) -> Transform:
    """Adam with the largest mean of squares so far."""
    check_decays(b1=b1, b2=b2)
    return chain(
        rules.scale_by_amsgrad(b1, b2, eps, eps_root), scale_by_learning_rate(learning_rate)
    )


def adagrad(
    learning_rate: Any, initial_accumulator_value: float = 0.1, eps: float = 1e-7
) -> Transform:
    """Adagrad: rates that fall with the sum of all squares."""
    return chain(
        rules.scale_by_rss(initial_accumulator_value, eps), scale_by_learning_rate(learning_rate)
    )


def adadelta(
    learning_rate: Any = 1.0,
    rho: float = 0.9,
    eps: float = 1e-6,
    weight_decay: float = 0.0,
    weight_decay_mask: Mask = None,
) -> Transform:
    """Adadelta: steps of the size of earlier steps."""
    check_decays(rho=rho)
    return chain(
        _decay(weight_decay, weight_decay_mask),
        rules.scale_by_adadelta(rho, eps),
        scale_by_learning_rate(learning_rate),
    )


def rmsprop(
    learning_rate: Any,
    decay: float = 0.9,
    eps: float = 1e-8,
    initial_scale: float = 0.0,
    *,
    eps_in_sqrt: bool = True,
    centered: bool = False,
    momentum: float | None = None,
    nesterov: bool = False,
) -> Transform:
    """RMSProp, `centered` on the running mean or not; momentum is that of whole steps."""
    check_decays(decay=decay, momentum=momentum or 0.0)
    rule = rules.scale_by_rms(decay, eps, initial_scale, eps_in_sqrt=eps_in_sqrt, centered=centered)
    last = identity() if momentum is None else rules.trace(momentum, nesterov)
    return chain(rule, scale_by_learning_rate(learning_rate), last)


def lion(
    learning_rate: Any,
    b1: float = 0.9,
    b2: float = 0.99,
    weight_decay: float = 1e-3,
    mask: Mask = None,
) -> Transform:
    """Lion: steps of one size, in the direction of the sign of a mean."""
    check_decays(b1=b1, b2=b2)
    return chain(
        rules.scale_by_lion(b1, b2),
        _decay(weight_decay, mask),
        scale_by_learning_rate(learning_rate),
    )


def _decay(weight_decay: float, mask: Mask) -> Transform:
    decay = add_decayed_weights(weight_decay)
    return decay if mask is None else masked(decay, mask)
