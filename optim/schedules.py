"""Schedules: functions of how many steps were taken, traced or not, that give a number.

An optimiser calls its schedule with 0 in the first step. The count is a traced value, so no step
compiles anything. Names and arguments are Optax's; `inverse_time_decay` is TensorFlow's,
`one_cycle` PyTorch's. A function of your own is a schedule too.

    >>> rate = jt.optim.warmup_cosine_decay_schedule(0.0, 1.0, warmup_steps=10, decay_steps=110)
    >>> [round(float(rate(step)), 3) for step in (0, 5, 10, 60, 110, 500)]
    [0.0, 0.5, 1.0, 0.5, 0.0, 0.0]
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from .trees import refuse

Schedule = Callable[[Any], Any]


def constant_schedule(value: float) -> Schedule:
    """The same number in every step."""
    return lambda count: value


def piecewise_constant_schedule(
    init_value: float, boundaries_and_scales: Mapping[int, float] | None = None
) -> Schedule:
    """Starts with `init_value`; from each boundary on it is multiplied with the boundary's scale.

    >>> rate = jt.optim.piecewise_constant_schedule(1.0, {10: 0.5, 20: 0.1})
    >>> [float(rate(step)) for step in (0, 9, 10, 20)]
    [1.0, 1.0, 0.5, 0.05]
    """
    boundaries = tuple(sorted((boundaries_and_scales or {}).items()))
    _at_least("piecewise_constant_schedule", 0, **{f"boundary {at}": at for at, _ in boundaries})

    def schedule(count: Any) -> Any:
        value = init_value
        result: Any = init_value
        for boundary, scale in boundaries:
            value = value * scale
            result = np.where(count >= boundary, value, result)
        return result

    return schedule


def polynomial_schedule(
    init_value: float,
    end_value: float,
    power: float,
    transition_steps: int,
    transition_begin: int = 0,
) -> Schedule:
    """From `init_value` to `end_value` in `transition_steps`: what is left of the way is the share
    of the steps that are left, to the power of `power`."""
    _at_least("polynomial_schedule", 1, transition_steps=transition_steps)

    def schedule(count: Any) -> Any:
        left = 1 - np.clip(count - transition_begin, 0, transition_steps) / transition_steps
        return (init_value - end_value) * left**power + end_value

    return schedule


def linear_schedule(
    init_value: float, end_value: float, transition_steps: int, transition_begin: int = 0
) -> Schedule:
    """From `init_value` to `end_value` in equal steps; a warm-up, for instance."""
    return polynomial_schedule(init_value, end_value, 1, transition_steps, transition_begin)


def exponential_decay(
    init_value: float,
    transition_steps: int,
    decay_rate: float,
    transition_begin: int = 0,
    staircase: bool = False,
    end_value: float | None = None,
) -> Schedule:
    """`init_value * decay_rate ** (steps / transition_steps)`, in whole powers with `staircase`; it
    stops at `end_value`."""
    _at_least("exponential_decay", 1, transition_steps=transition_steps)
    _above_zero("exponential_decay", decay_rate=decay_rate)

    def schedule(count: Any) -> Any:
        power = np.maximum(count - transition_begin, 0) / transition_steps
        value = init_value * decay_rate ** (np.floor(power) if staircase else power)
        if end_value is None:
            return value
        return (np.maximum if decay_rate < 1 else np.minimum)(value, end_value)

    return schedule


def inverse_time_decay(
    init_value: float, transition_steps: int, decay_rate: float, staircase: bool = False
) -> Schedule:
    """`init_value / (1 + decay_rate * steps / transition_steps)`, of whole quotients with
    `staircase`."""
    _at_least("inverse_time_decay", 1, transition_steps=transition_steps)

    def schedule(count: Any) -> Any:
        time = count / transition_steps
        return init_value / (1 + decay_rate * (np.floor(time) if staircase else time))

    return schedule


def cosine_decay_schedule(
    init_value: float, decay_steps: int, alpha: float = 0.0, exponent: float = 1.0
) -> Schedule:
    """From `init_value` to `alpha * init_value` along half a cosine, to the power of `exponent`."""
    _at_least("cosine_decay_schedule", 1, decay_steps=decay_steps)

    def schedule(count: Any) -> Any:
        share = np.minimum(count, decay_steps) / decay_steps
        wave = (0.5 * (1 + np.cos(math.pi * share))) ** exponent
        return init_value * ((1 - alpha) * wave + alpha)

    return schedule


def join_schedules(schedules: Sequence[Schedule], boundaries: Sequence[int]) -> Schedule:
    """One schedule after the other: the next begins, counting from 0, where a boundary is reached.

    >>> rate = jt.optim.join_schedules([lambda step: step, lambda step: 10.0], [3])
    >>> [float(rate(step)) for step in range(5)]
    [0.0, 1.0, 2.0, 10.0, 10.0]
    """
    if len(boundaries) != len(schedules) - 1:
        refuse(
            f"join_schedules got {len(schedules)} schedules and {len(boundaries)} boundaries",
            "give one boundary less than schedules: the steps at which the next one begins.",
        )
    if list(boundaries) != sorted(boundaries):
        refuse(f"the boundaries {list(boundaries)} are not in order", "sort them.")

    pairs = tuple(zip(boundaries, schedules[1:], strict=True))
    first = schedules[0]

    def schedule(count: Any) -> Any:
        result = first(count)
        for boundary, following in pairs:
            result = np.where(count < boundary, result, following(count - boundary))
        return result

    return schedule


def warmup_cosine_decay_schedule(
    init_value: float,
    peak_value: float,
    warmup_steps: int,
    decay_steps: int,
    end_value: float = 0.0,
    exponent: float = 1.0,
) -> Schedule:
    """Straight from `init_value` to `peak_value`, then along a cosine to `end_value`, where it is
    after `decay_steps`, those of the warm-up included."""
    if decay_steps <= warmup_steps:
        refuse(
            f"decay_steps={decay_steps} are all spent on warmup_steps={warmup_steps}",
            "decay_steps is the length of the whole schedule, warm-up included: make it longer.",
        )
    alpha = end_value / peak_value if peak_value else 0.0
    return join_schedules(
        [
            linear_schedule(init_value, peak_value, warmup_steps),
            cosine_decay_schedule(peak_value, decay_steps - warmup_steps, alpha, exponent),
        ],
        [warmup_steps],
    )


def cosine_onecycle_schedule(
    transition_steps: int,
    peak_value: float,
    pct_start: float = 0.3,
    div_factor: float = 25.0,
    final_div_factor: float = 1e4,
) -> Schedule:
    """Up to `peak_value` from its `div_factor`th part and down to the `final_div_factor`th of that,
    each along half a cosine, the first in a share `pct_start` of the steps."""
    _at_least("cosine_onecycle_schedule", 1, transition_steps=transition_steps)
    ends = [0.0, float(int(pct_start * transition_steps)), float(transition_steps)]
    return _cycle(ends, peak_value, div_factor, final_div_factor, cosine=True)


def one_cycle(
    max_lr: float,
    total_steps: int,
    pct_start: float = 0.3,
    anneal_strategy: str = "cos",
    div_factor: float = 25.0,
    final_div_factor: float = 1e4,
) -> Schedule:
    """PyTorch's OneCycleLR: the first of `total_steps` has the least rate, the last one the end's,
    and the peak is at step `pct_start * total_steps - 1`; `anneal_strategy` is "cos" or
    "linear"."""
    _at_least("one_cycle", 2, total_steps=total_steps)
    if anneal_strategy not in ("cos", "linear"):
        refuse(f"anneal_strategy={anneal_strategy!r} is no way to anneal", 'give "cos", "linear".')
    ends = [0.0, pct_start * total_steps - 1, total_steps - 1.0]
    return _cycle(ends, max_lr, div_factor, final_div_factor, cosine=anneal_strategy == "cos")


def _cycle(
    ends: Sequence[float], peak: float, divisor: float, final_divisor: float, *, cosine: bool
) -> Schedule:
    """Between values at three times; level before and after."""
    low = peak / divisor
    values = (low, peak, low / final_divisor)
    if not ends[0] < ends[1] < ends[2]:
        refuse(
            f"a cycle of which the parts end at steps {ends[1]:g} and {ends[2]:g} has no two parts",
            "give more steps, and a pct_start between 0 and 1.",
        )

    parts = tuple(zip(ends, ends[1:], values, values[1:], strict=False))

    def schedule(count: Any) -> Any:
        result: Any = low
        for start, end, old, new in parts:
            share = np.clip((count - start) / (end - start), 0, 1)
            share = (1 - np.cos(math.pi * share)) / 2 if cosine else share
            result = np.where(count >= start, old + (new - old) * share, result)
        return result

    return schedule


def _at_least(name: str, least: int, **counts: int) -> None:
    for argument, count in counts.items():
        if count < least:
            refuse(
                f"{name} got {argument}={count}",
                f"counts of steps are {least} or more here; constant_schedule stays where it is.",
            )


def _above_zero(name: str, **values: float) -> None:
    for argument, value in values.items():
        if not value > 0:
            refuse(f"{name} got {argument}={value}", "it is a factor above 0, 0.9 for instance.")
