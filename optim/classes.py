"""Optimisers by PyTorch's names, with its arguments, defaults and formulas, in place.

`lr` is a number or a schedule. A number can be changed at any time, `opt.lr = 1e-4`, and compiles
nothing. `groups` gives some of the parameters other options: pairs of a mask and a dict, of which the
first that fits counts.

    opt = optim.AdamW(model, 1e-3, groups=[(is_bias, {"weight_decay": 0.0}), (is_head, {"lr": 1e-2})])
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import jitney as jt

from .inplace import Optimizer
from .rules import (
    scale_by_adadelta,
    scale_by_adam,
    scale_by_amsgrad,
    scale_by_lion,
    scale_by_rms,
    scale_by_rss,
    trace,
)
from .scaling import add_decayed_weights, scale_by_learning_rate
from .schedules import inverse_time_decay
from .transform import Transform, chain, identity
from .trees import Tree
from .wrappers import Mask, by_group

Groups = Sequence[tuple[Mask, dict[str, Any]]]


class Configured(Optimizer):
    """An optimiser whose transformation is made of options, for each group of its own."""

    def __init__(
        self,
        params: Tree,
        make: Callable[..., Transform],
        groups: Groups,
        options: dict[str, Any],
    ) -> None:
        choices = [{**options, **changes} for _, changes in groups]
        for changed in choices:
            unknown = sorted(changed.keys() - options.keys())
            if unknown:
                jt.errors.complain(
                    jt.errors.SettingError,
                    f"{type(self).__name__} has no option {unknown[0]!r}",
                    f"groups may change {', '.join(options)}.",
                )
        self.rates = [_held(chosen["lr"]) for chosen in (options, *choices)]
        first, *others = [
            make(**{**chosen, "lr": rate})
            for chosen, rate in zip((options, *choices), self.rates, strict=True)
        ]
        masks = [mask for mask, _ in groups]
        super().__init__(params, by_group(first, *zip(masks, others, strict=True)))

    @property
    def lr(self) -> Any:
        """The learning rate: an array of one number, or the schedule. `rates[1:]` are the groups'."""
        return self.rates[0]

    @lr.setter
    def lr(self, value: float) -> None:
        if callable(self.rates[0]) or callable(value):
            jt.errors.complain(
                jt.errors.SettingError,
                "a schedule is fixed when the optimiser is made",
                "assign numbers to an lr that was a number; a schedule may depend on an array of yours.",
            )
        self.rates[0][...] = value


def _held(rate: Any) -> Any:
    """A rate as an array of its own, which may change; schedules as they are."""
    return rate if callable(rate) else np.array(rate, np.float64)


class SGD(Configured):
    """Gradient descent: `m = momentum * m + (1 - dampening) * g`, the first time `g`; `p -= lr * m`.

    >>> w = np.array([1.0, 2.0])
    >>> jt.optim.SGD(w, lr=0.1).step(np.array([1.0, 1.0]))
    >>> w
    array([0.9, 1.9])
    """

    def __init__(
        self,
        params: Tree,
        lr: Any = 1e-3,
        momentum: float = 0.0,
        dampening: float = 0.0,
        weight_decay: float = 0.0,
        nesterov: bool = False,
        *,
        groups: Groups = (),
    ) -> None:
        options = {
            "lr": lr,
            "momentum": momentum,
            "dampening": dampening,
            "weight_decay": weight_decay,
            "nesterov": nesterov,
        }
        super().__init__(params, _sgd, groups, options)


def _sgd(
    lr: Any, momentum: float, dampening: float, weight_decay: float, nesterov: bool
) -> Transform:
    if nesterov and (momentum <= 0 or dampening):
        jt.errors.complain(
            jt.errors.SettingError,
            f"Nesterov's rule with momentum={momentum} and dampening={dampening}",
            "give a momentum above 0, and no dampening.",
        )
    rule = trace(momentum, nesterov, dampening) if momentum else identity()
    return _chained(lr, weight_decay, rule)


class Adam(Configured):
    """Adam, with L2 decay in the gradients; `amsgrad` takes the largest mean of squares so far.

    >>> w = np.array([1.0, -1.0])
    >>> opt = jt.optim.Adam(w, lr=0.1)
    >>> opt.step(np.array([5.0, -0.01]))
    >>> w.round(4), sorted(opt.slots)
    (array([ 0.9, -0.9]), ['mean', 'square'])
    """

    def __init__(
        self,
        params: Tree,
        lr: Any = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        amsgrad: bool = False,
        *,
        groups: Groups = (),
    ) -> None:
        options = _adam_options(lr, betas, eps, weight_decay, amsgrad)
        super().__init__(params, _adam, groups, options)


def _adam_options(
    lr: Any, betas: tuple[float, float], eps: float, weight_decay: float, amsgrad: bool
) -> dict[str, Any]:
    decay = {"weight_decay": weight_decay, "amsgrad": amsgrad}
    return {"lr": lr, "betas": betas, "eps": eps, **decay}


def _adam(
    lr: Any, betas: tuple[float, float], eps: float, weight_decay: float, amsgrad: bool
) -> Transform:
    return _chained(lr, weight_decay, _scale_by_adam(betas, eps, amsgrad))


def _adamw(
    lr: Any, betas: tuple[float, float], eps: float, weight_decay: float, amsgrad: bool
) -> Transform:
    rule = _scale_by_adam(betas, eps, amsgrad)
    return chain(rule, add_decayed_weights(weight_decay), scale_by_learning_rate(lr))


def _scale_by_adam(betas: tuple[float, float], eps: float, amsgrad: bool) -> Transform:
    if amsgrad:
        return scale_by_amsgrad(*betas, eps, unbiased=False)
    return scale_by_adam(*betas, eps)


class AdamW(Configured):
    """Adam with decoupled weight decay."""

    def __init__(
        self,
        params: Tree,
        lr: Any = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        groups: Groups = (),
    ) -> None:
        options = _adam_options(lr, betas, eps, weight_decay, amsgrad)
        super().__init__(params, _adamw, groups, options)


class Adagrad(Configured):
    """Adagrad; `lr_decay` makes the rate fall by `1 / (1 + steps * lr_decay)` besides."""

    def __init__(
        self,
        params: Tree,
        lr: Any = 1e-2,
        lr_decay: float = 0.0,
        weight_decay: float = 0.0,
        initial_accumulator_value: float = 0.0,
        eps: float = 1e-10,
        *,
        groups: Groups = (),
    ) -> None:
        options = {
            "lr": lr,
            "lr_decay": lr_decay,
            "weight_decay": weight_decay,
            "initial_accumulator_value": initial_accumulator_value,
            "eps": eps,
        }
        super().__init__(params, _adagrad, groups, options)


def _adagrad(
    lr: Any, lr_decay: float, weight_decay: float, initial_accumulator_value: float, eps: float
) -> Transform:
    rule = scale_by_rss(initial_accumulator_value, eps, eps_in_sqrt=False)
    if lr_decay:
        falling = inverse_time_decay(1.0, 1, lr_decay)
        rule = chain(rule, scale_by_learning_rate(falling, flip_sign=False))
    return _chained(lr, weight_decay, rule)


class Adadelta(Configured):
    """Adadelta."""

    def __init__(
        self,
        params: Tree,
        lr: Any = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0.0,
        *,
        groups: Groups = (),
    ) -> None:
        options = {"lr": lr, "rho": rho, "eps": eps, "weight_decay": weight_decay}
        super().__init__(params, _adadelta, groups, options)


def _adadelta(lr: Any, rho: float, eps: float, weight_decay: float) -> Transform:
    return _chained(lr, weight_decay, scale_by_adadelta(rho, eps))


class RMSprop(Configured):
    """RMSProp; `momentum` is that of gradients that are scaled, before the rate."""

    def __init__(
        self,
        params: Tree,
        lr: Any = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        momentum: float = 0.0,
        centered: bool = False,
        *,
        groups: Groups = (),
    ) -> None:
        options = {
            "lr": lr,
            "alpha": alpha,
            "eps": eps,
            "weight_decay": weight_decay,
            "momentum": momentum,
            "centered": centered,
        }
        super().__init__(params, _rmsprop, groups, options)


def _rmsprop(
    lr: Any, alpha: float, eps: float, weight_decay: float, momentum: float, centered: bool
) -> Transform:
    rule = scale_by_rms(alpha, eps, eps_in_sqrt=False, centered=centered)
    return _chained(lr, weight_decay, chain(rule, trace(momentum)) if momentum else rule)


class Lion(Configured):
    """Lion, with decoupled weight decay."""

    def __init__(
        self,
        params: Tree,
        lr: Any = 1e-4,
        betas: tuple[float, float] = (0.9, 0.99),
        weight_decay: float = 0.0,
        *,
        groups: Groups = (),
    ) -> None:
        super().__init__(
            params, _lion, groups, {"lr": lr, "betas": betas, "weight_decay": weight_decay}
        )


def _lion(lr: Any, betas: tuple[float, float], weight_decay: float) -> Transform:
    rule = scale_by_lion(*betas)
    return chain(rule, add_decayed_weights(weight_decay), scale_by_learning_rate(lr))


def _chained(lr: Any, weight_decay: float, rule: Transform) -> Transform:
    """L2 decay in the gradients, a rule, the rate."""
    return chain(add_decayed_weights(weight_decay), rule, scale_by_learning_rate(lr))
