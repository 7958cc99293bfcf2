"""Optimisers by PyTorch's names, with its arguments, defaults and formulas, in place.

`lr` is a number or a schedule. A number can be changed at any time, `opt.lr = 1e-4`, and compiles
nothing. `groups` gives some of the parameters other options: pairs of a mask or a selection and a dict,
of which the first that fits counts.

    opt = optim.AdamW(model, 1e-3, groups=[(nn.tag("biases"), {"weight_decay": 0.0})])
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from . import rules
from .inplace import Optimizer
from .scaling import add_decayed_weights, check_decays, check_rate, scale_by_learning_rate
from .schedules import inverse_time_decay
from .transform import Held, Transform, chain, identity
from .trees import Tree, refuse
from .wrappers import Mask, by_group

Groups = Sequence[tuple[Mask, dict[str, Any]]]


class Configured(Optimizer):
    """An optimiser whose transformation is made of options, for each group of its own.

    A subclass has `rule`, a function of the options, whose first is `lr`; they are its arguments after
    the parameters.
    """

    rule: Callable[..., Transform]

    def __init_subclass__(cls) -> None:
        if "__init__" in vars(cls):
            return
        _, params, _, groups, _ = inspect.signature(Configured.__init__).parameters.values()
        own = inspect.signature(cls.rule).parameters.values()
        cls.__signature__ = inspect.Signature([params, *own, groups])  # type: ignore[attr-defined]

    def __init__(self, params: Tree, *args: Any, groups: Groups = (), **named: Any) -> None:
        name, signature = type(self).__name__, inspect.signature(self.rule)
        _check_names(name, named, signature)
        given = signature.bind(*args, **named)
        given.apply_defaults()
        options = given.arguments
        if isinstance(groups, dict) or any(not _is_group(group) for group in groups):
            refuse(
                f"{name}: groups={groups!r} are no pairs of a mask and options",
                'write groups=[(mask, {"lr": 1e-2}), ...], where a mask may be nn.path("head/*").',
            )
        for _, changes in groups:
            _check_names(name, changes, signature)
        choices = [options, *({**options, **changes} for _, changes in groups)]
        self.rates = [_held(chosen["lr"]) for chosen in choices]
        first, *others = [
            self.rule(**{**chosen, "lr": rate if callable(rate) else Held(place)})
            for place, (chosen, rate) in enumerate(zip(choices, self.rates, strict=True))
        ]
        masks = [mask for mask, _ in groups]
        super().__init__(params, by_group(first, *zip(masks, others, strict=True)))

    @property
    def more(self) -> dict[str, Any]:
        return {"rates": self.rates}

    @property
    def lr(self) -> Any:
        """The learning rate: an array of one number, or the schedule. `rates[1:]` are the groups'."""
        return self.rates[0]

    @lr.setter
    def lr(self, value: float) -> None:
        if callable(self.rates[0]) or callable(value):
            refuse(
                "a schedule is fixed when the optimiser is made",
                "assign numbers to an lr that was a number; a schedule may depend on an array of yours.",
            )
        check_rate(value, "lr")
        self.rates[0][...] = value


def _is_group(group: Any) -> bool:
    return isinstance(group, (tuple, list)) and len(group) == 2 and isinstance(group[1], dict)


def _check_names(name: str, given: dict[str, Any], signature: inspect.Signature) -> None:
    """Options that there are; those of other frameworks have other names."""
    for option in given:
        if option not in signature.parameters:
            refuse(
                f"{name} has no option {option!r}",
                f"its options are {', '.join(signature.parameters)}.",
            )


def _held(rate: Any) -> Any:
    """A rate as an array of its own, which may change; schedules as they are."""
    if callable(rate):
        return rate
    check_rate(rate, "lr")
    return np.array(rate, np.float64)


class SGD(Configured):
    """Gradient descent: `m = momentum * m + (1 - dampening) * g`, the first time `g`; `p -= lr * m`.

    >>> w = np.array([1.0, 2.0])
    >>> jt.optim.SGD(w, lr=0.1).step(np.array([1.0, 1.0]))
    >>> w
    array([0.9, 1.9])
    """

    @staticmethod
    def rule(
        lr: Any = 1e-3,
        momentum: float = 0.0,
        dampening: float = 0.0,
        weight_decay: float = 0.0,
        nesterov: bool = False,
    ) -> Transform:
        check_decays(momentum=momentum)
        if nesterov and (momentum <= 0 or dampening):
            refuse(
                f"Nesterov's rule with momentum={momentum} and dampening={dampening}",
                "give a momentum above 0, and no dampening.",
            )
        step = rules.trace(momentum, nesterov, dampening) if momentum else identity()
        return _after_decay(lr, weight_decay, step)


Betas = tuple[float, float]


class Adam(Configured):
    """Adam, with L2 decay in the gradients; `amsgrad` takes the largest mean of squares so far.

    >>> w = np.array([1.0, -1.0])
    >>> opt = jt.optim.Adam(w, lr=0.1)
    >>> opt.step(np.array([5.0, -0.01]))
    >>> w.round(4), sorted(opt.slots)
    (array([ 0.9, -0.9]), ['mean', 'square'])
    """

    @staticmethod
    def rule(
        lr: Any = 1e-3,
        betas: Betas = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        amsgrad: bool = False,
    ) -> Transform:
        return _after_decay(lr, weight_decay, _scale_by_adam(betas, eps, amsgrad))


class AdamW(Configured):
    """Adam with decoupled weight decay."""

    @staticmethod
    def rule(
        lr: Any = 1e-3,
        betas: Betas = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
    ) -> Transform:
        return _before_decay(lr, weight_decay, _scale_by_adam(betas, eps, amsgrad))


class Adagrad(Configured):
    """Adagrad; `lr_decay` makes the rate fall by `1 / (1 + steps * lr_decay)` besides."""

    @staticmethod
    def rule(
        lr: Any = 1e-2,
        lr_decay: float = 0.0,
        weight_decay: float = 0.0,
        initial_accumulator_value: float = 0.0,
        eps: float = 1e-10,
    ) -> Transform:
        step = rules.scale_by_rss(initial_accumulator_value, eps, eps_in_sqrt=False)
        if lr_decay:
            falling = inverse_time_decay(1.0, 1, lr_decay)
            step = chain(step, scale_by_learning_rate(falling, flip_sign=False))
        return _after_decay(lr, weight_decay, step)


class Adadelta(Configured):
    """Adadelta."""

    @staticmethod
    def rule(
        lr: Any = 1.0, rho: float = 0.9, eps: float = 1e-6, weight_decay: float = 0.0
    ) -> Transform:
        check_decays(rho=rho)
        return _after_decay(lr, weight_decay, rules.scale_by_adadelta(rho, eps))


class RMSprop(Configured):
    """RMSProp; `momentum` is that of gradients that are scaled, before the rate."""

    @staticmethod
    def rule(
        lr: Any = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        momentum: float = 0.0,
        centered: bool = False,
    ) -> Transform:
        check_decays(alpha=alpha, momentum=momentum)
        step = rules.scale_by_rms(alpha, eps, eps_in_sqrt=False, centered=centered)
        return _after_decay(
            lr, weight_decay, chain(step, rules.trace(momentum)) if momentum else step
        )


class Lion(Configured):
    """Lion, with decoupled weight decay."""

    @staticmethod
    def rule(lr: Any = 1e-4, betas: Betas = (0.9, 0.99), weight_decay: float = 0.0) -> Transform:
        check_decays(betas=betas)
        return _before_decay(lr, weight_decay, rules.scale_by_lion(*betas))


def _scale_by_adam(betas: Betas, eps: float, amsgrad: bool) -> Transform:
    check_decays(betas=betas)
    if amsgrad:
        return rules.scale_by_amsgrad(*betas, eps, unbiased=False)
    return rules.scale_by_adam(*betas, eps)


def _after_decay(lr: Any, weight_decay: float, step: Transform) -> Transform:
    """L2 decay in the gradients, a rule, the rate."""
    return chain(add_decayed_weights(weight_decay), step, scale_by_learning_rate(lr))


def _before_decay(lr: Any, weight_decay: float, step: Transform) -> Transform:
    """A rule, decoupled decay, the rate."""
    return chain(step, add_decayed_weights(weight_decay), scale_by_learning_rate(lr))
