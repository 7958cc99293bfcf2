"""`EMA`: moving averages of a model's weights, which often do better than the last ones."""

from __future__ import annotations

from typing import Any

import numpy as np

import jitney as jt

from .faults import complain
from .module import Module, unbuilt


class EMA(Module):
    """Exponential moving averages of a model's weights: `ema.average` is a model that has them.

    `ema.update()`, after each step, moves every trained array of the average towards the model's by
    `1 - decay`, in place; others (running means, counters) are copied. With `warm_up` the decay of
    update n is at most `(1 + n) / (10 + n)`, so that first weights are soon forgotten. `ema(x)` calls
    the average, which is put in evaluation (`ema.average.eval()`) as any model.

    Raises jt.errors.ArgumentError for a model whose sizes are not known yet, ValueError for a decay that
    is not in [0, 1].

    >>> model = jt.nn.Linear(2, 1, w_init=1.0)
    >>> ema = jt.nn.EMA(model, decay=0.75)
    >>> model.w += 4
    >>> ema.update()
    >>> ema.average.w.ravel()
    array([2., 2.], dtype=float32)
    """

    buffers = ("model", "average", "updates")  # none of it is trained

    def __init__(self, model: Any, decay: float = 0.999, warm_up: bool = False) -> None:
        if not 0 <= decay <= 1:
            complain(
                ValueError,
                f"EMA: decay={decay} is no share of what stays of an average",
                "give one from 0 to 1: 0.999, for instance.",
            )
        if unbuilt(model):
            complain(
                jt.errors.ArgumentError,
                f"EMA: nothing has built {', '.join(unbuilt(model))} of the model",
                "write nn.init(model, example) first, or give the sizes of inputs.",
            )
        trained = {path for path, _ in jt.tree.leaves_with_path(jt.tree.trained(model))}
        self.model = model
        self.average = jt.tree.map(np.array, model)
        self.moving = tuple(path in trained for path, _ in jt.tree.leaves_with_path(model))
        self.decay, self.warm_up = decay, warm_up
        self.updates = np.zeros((), np.int64)

    def update(self) -> None:
        """Move the average towards the model as it is now."""
        decay: Any = self.decay
        if self.warm_up:
            decay = np.minimum(decay, (1 + self.updates) / (10 + self.updates))
        self.updates += 1
        pairs = zip(jt.tree.leaves(self.average), jt.tree.leaves(self.model), strict=True)
        for moves, (average, now) in zip(self.moving, pairs, strict=True):
            if moves:
                average += ((1 - decay) * (now - average)).astype(average.dtype)
            else:
                average[...] = now

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """What the model gives with the averages."""
        return self.average(*args, **kwargs)
