"""Penalties on parameters: L1, L2 and both, and their sum over a model.

    model = nn.Sequential(nn.Linear(8, 16, w_reg=nn.L2(1e-4)), nn.relu, nn.Linear(16, 2))

    def loss(model, x, y):
        return nn.losses.mse(model(x), y) + nn.regularization(model)

Any module may have penalties: `regularizers` is a dict from names of attributes to functions that give
a number of an array, or None.
"""

from __future__ import annotations

from typing import Any

import jitney as jt

from .faults import Array
from .module import Module, modules


class L1L2:
    """`l1 * sum(|w|) + l2 * sum(w * w)`.

    >>> float(jt.nn.L1L2(0.5, 0.25)(np.array([3.0, -4.0])))
    9.75
    """

    def __init__(self, l1: float = 0.0, l2: float = 0.0) -> None:
        self.l1, self.l2 = l1, l2

    def __call__(self, w: Array) -> Array:
        total: Any = 0.0
        if self.l1:
            total = total + self.l1 * jt.sum(jt.abs(w))
        return total + self.l2 * jt.sum(w * w) if self.l2 else total

    def __repr__(self) -> str:
        return f"L1L2({self.l1}, {self.l2})"


def L1(factor: float = 0.01) -> L1L2:
    """`factor * sum(|w|)`: drives weights to 0."""
    return L1L2(l1=factor)


def L2(factor: float = 0.01) -> L1L2:
    """`factor * sum(w * w)`: keeps weights small. (Half of it is what others call weight decay.)"""
    return L1L2(l2=factor)


def regularization(model: Module) -> Array:
    """The sum of all penalties in a model; 0.0 if there are none.

    >>> model = jt.nn.Sequential(jt.nn.Linear(2, 1, w_init=1, w_reg=jt.nn.L2(0.5)))
    >>> float(jt.nn.regularization(model))
    1.0
    """
    total: Any = 0.0
    for _, module in modules(model):
        for name, penalty in getattr(module, "regularizers", {}).items():
            w = getattr(module, name, None)
            if penalty is not None and w is not None:
                total = total + penalty(w)
    return total
