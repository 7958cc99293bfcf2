"""Dropout: noise that networks are trained with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import jitney as jt

from .faults import Array, complain, refuse
from .initializers import generator
from .module import Module


class Dropout(Module):
    """In training each element is 0 with probability `rate`, the others divided by `1 - rate`.

    Under `eval()`, and with `training=False` in the call, it does nothing and draws nothing. The draws
    are of the module's own generator: `rng` is one, or a seed; by default it is spawned from the one of
    `nn.seed`. Elements that differ only along the axes `shared` stay or go together: `shared=(2, 3)`
    drops whole channels of images, `shared=1` the same features at all times.

    >>> drop = jt.nn.Dropout(0.5, rng=0)
    >>> drop(np.ones(6))
    array([2., 2., 2., 0., 0., 0.])
    >>> drop.eval()(np.ones(6))
    array([1., 1., 1., 1., 1., 1.])
    """

    def __init__(
        self, rate: float = 0.5, *, shared: int | Sequence[int] = (), rng: Any = None
    ) -> None:
        if not 0 <= rate < 1:
            complain(
                ValueError,
                f"Dropout: rate={rate!r} is no share of what is dropped",
                "choose a rate of at least 0 and less than 1.",
            )
        self.rate = float(rate)
        self.shared = (shared,) if isinstance(shared, int) else tuple(shared)
        self.rng = generator().spawn(1)[0] if rng is None else generator(rng)

    def __call__(self, x: Array, training: bool | None = None) -> Array:
        if not (self.training if training is None else training) or not self.rate:
            return x
        shape = list(np.shape(x))
        for axis in self.shared:
            if not -len(shape) <= axis < len(shape):
                what = f"has shared={self.shared}, and x has {len(shape)} dims"
                refuse(self, what, "give axes that x has.", x=x)
            shape[axis] = 1
        kept = self.rng.random(tuple(shape), dtype=np.float32) >= self.rate
        return jt.where(kept, x * (1 / (1 - self.rate)), 0)
