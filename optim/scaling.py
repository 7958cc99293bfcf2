"""Steps of chains that keep nothing but perhaps a count: rates, decays, clipping."""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np

import jitney as jt

from .leaves import cast, real_of, working
from .rules import squared
from .schedules import Schedule
from .transform import Held, Transform, by_leaf, identity
from .trees import Tree, dtype_of, refuse


def scale(factor: float) -> Transform:
    """Multiplies with a number."""
    return by_leaf(lambda g, p: (factor * g,))


def scale_by_schedule(schedule: Schedule) -> Transform:
    """Multiplies with what a schedule gives for the count of steps that were taken."""
    if not callable(schedule):
        refuse(
            f"a schedule is a function of the count of steps, and not {schedule!r}",
            "write jt.optim.constant_schedule(value), or give the number where a rate is asked for.",
        )
    return by_leaf(lambda g, p, rate: (rate * g,), each_step=lambda n: (_rate(schedule, n - 1),))


def scale_by_learning_rate(learning_rate: Any, *, flip_sign: bool = True) -> Transform:
    """Multiplies with the rate, and turns round: losses are to fall. The rate is a number, a
    schedule, or an array of one number, which may be changed between steps without compiling
    anything."""
    sign = -1 if flip_sign else 1
    if isinstance(learning_rate, Held):
        held = Held(learning_rate.place, sign)
        return by_leaf(lambda g, p, rate: (rate * g,), each_step=lambda n: (held,), counted=False)
    if callable(learning_rate):
        return scale_by_schedule(lambda count: sign * _rate(learning_rate, count))
    check_rate(learning_rate, "learning_rate")
    return by_leaf(
        lambda g, p, rate: (rate * g,), each_step=lambda n: (sign * learning_rate,), counted=False
    )


def add_decayed_weights(weight_decay: float = 0.0) -> Transform:
    """Adds a part of the parameters to the gradients: before a rule it is L2, after it decoupled
    decay. `masked` leaves parameters out: biases, scales."""
    if isinstance(weight_decay, (int, float)) and not weight_decay > 0:
        if weight_decay != 0:
            refuse(
                f"weight_decay={weight_decay} lets parameters grow",
                "give a number above 0, or 0 for no decay.",
            )
        return identity()
    return by_leaf(lambda g, p: (g + weight_decay * p,), needs_params="weight decay")


def clip(max_delta: float) -> Transform:
    """No element is farther from 0 than `max_delta`."""
    _check_positive(max_delta=max_delta)
    return by_leaf(lambda g, p: (np.clip(g, -max_delta, max_delta),))


def clip_by_norm(max_norm: float) -> Transform:
    """No leaf has a larger Euclidean norm than `max_norm`: it is made shorter."""
    _check_positive(max_norm=max_norm)

    def rule(g: Any, p: Any) -> tuple[Any, ...]:
        norm = np.sqrt(np.sum(squared(g)))
        return (g * (max_norm / np.maximum(norm, max_norm)),)

    return by_leaf(rule)


def clip_by_global_norm(max_norm: float, eps: float = 0.0) -> Transform:
    """All leaves together have no larger Euclidean norm than `max_norm`: all are made shorter by
    one factor. With `eps=1e-6` the factor is `max_norm / (norm + eps)`, as in PyTorch."""
    _check_positive(max_norm=max_norm)

    def update(updates: Tree, state: Any, params: Tree = None, **more: Any) -> tuple[Tree, Any]:
        norm = global_norm(updates)
        factor = max_norm / (norm + eps if eps else np.maximum(norm, max_norm))
        factor = np.minimum(factor, 1.0)
        return jt.tree.map(lambda g: g * cast(factor, real_of(g)), updates), state

    return Transform(lambda params: (), update)


def clip_weights(low: float, high: float) -> Transform:
    """At the end of a chain: updates after which no parameter is outside of `low` to `high`, to one
    rounding (for the critic of a WGAN)."""
    if not low < high:
        refuse(
            f"no weight is between {low} and {high}",
            "give the lower bound first: optim.clip_weights(-0.01, 0.01).",
        )
    return by_leaf(lambda g, p: (np.clip(p + g, low, high) - p,), needs_params="clip_weights")


def global_norm(tree: Tree) -> Any:
    """The Euclidean norm of all elements of all leaves together, summed in float32 or wider.

    >>> float(jt.optim.global_norm({"w": np.array([3.0]), "b": [np.array(4.0), None]}))
    5.0
    """
    leaves = jt.tree.leaves(tree)
    sums = [np.sum(squared(cast(x, working(dtype_of(x))))) for x in leaves]
    return np.sqrt(reduce(lambda total, part: total + part, sums, 0.0))


def _rate(schedule: Schedule, count: Any) -> Any:
    rate = schedule(count)
    check_rate(rate, "what the schedule returns", -np.inf)
    return rate


def check_rate(rate: Any, name: str, least: float = 0.0) -> None:
    """A rate is one real number, traced or not; one of Python's is not below the least, nor NaN."""
    dtype = getattr(rate, "dtype", np.dtype("O"))
    if not (isinstance(rate, (bool, int, float)) or dtype.kind in "fiu") or np.shape(rate):
        refuse(
            f"{name} is no real number",
            "give a number, an array of shape () or a schedule, a function of the count of steps.",
            **{name.replace(" ", "_"): rate},
        )
    if type(rate) in (int, float) and not rate >= least:
        refuse(
            f"{name}={rate} would go uphill",
            "give a number of at least 0: steps go down the gradients as it is.",
        )


def check_decays(**decays: Any) -> None:
    """What is multiplied with itself at each step stays finite. Some come in pairs."""
    for name, given in decays.items():
        for decay in given if isinstance(given, (tuple, list)) else [given]:
            pair = name == "betas" and not isinstance(given, (tuple, list))
            if pair or (isinstance(decay, (int, float)) and not 0 <= decay < 1):
                remedy = f"give a {name} from 0 to less than 1, 0.9 for instance."
                refuse(
                    f"{name}={given} is no decay",
                    "give two of them: betas=(0.9, 0.999)." if name == "betas" else remedy,
                )


def _check_positive(**bounds: float) -> None:
    for name, bound in bounds.items():
        if not bound > 0:
            refuse(f"clipping with {name}={bound} leaves nothing", f"give a {name} above 0.")
