"""Modules made of others: one after the other, beside a shortcut, of several inputs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import jitney as jt

from .activations import identity
from .faults import Array, complain, refuse
from .linear import Linear
from .module import Module


class Sequential(Module):
    """Modules and functions, one after the other. The first may take several arguments.

    `model[1]`, `len(model)` and `for layer in model` are those of its list, `model.layers`; a slice is
    a Sequential of the same modules.

    >>> model = jt.nn.Sequential(jt.nn.Linear(8), jt.nn.relu, jt.nn.Linear(2))
    >>> model(np.ones((4, 3), np.float32)).shape
    (4, 2)
    """

    def __init__(self, *layers: Callable[..., Any]) -> None:
        for layer in layers:
            if isinstance(layer, type) and issubclass(layer, Module):
                what = f"Sequential: {layer.__name__} is a class, and no module yet"
                complain(TypeError, what, f"write {layer.__name__}(...), which makes one.")
            if not callable(layer):
                complain(
                    TypeError,
                    f"Sequential: {type(layer).__name__} is no module or function",
                    "write Sequential(first, second), and Sequential(*layers) for a list of them.",
                    layer=layer,
                )
        self.layers = list(layers)

    def __call__(self, *inputs: Any) -> Any:
        for layer in self.layers:
            inputs = (layer(*inputs),)
        return inputs[0]

    def __getitem__(self, index: Any) -> Any:
        picked = self.layers[index]
        return Sequential(*picked) if isinstance(index, slice) else picked

    def __len__(self) -> int:
        return len(self.layers)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.layers)


class Residual(Module):
    """`x + body(x)`, or `shortcut(x) + body(x)`.

    Raises jt.errors.ShapeError if both have not the same shape.

    >>> jt.nn.Residual(jt.nn.relu)(np.array([-1.0, 2.0]))
    array([-1.,  4.])
    """

    def __init__(
        self, body: Callable[..., Any], shortcut: Callable[[Any], Any] | None = None
    ) -> None:
        self.body, self.shortcut = body, shortcut

    def __call__(self, x: Array, *more: Any) -> Array:
        beside = x if self.shortcut is None else self.shortcut(x)
        y = self.body(x, *more)
        if np.shape(y) != np.shape(beside):
            refuse(
                self,
                f"has a body that gives {np.shape(y)}, and a shortcut that gives {np.shape(beside)}",
                "let the body keep the shape, or pass shortcut= that gives the same: nn.Linear, or a "
                "convolution with kernel 1.",
                x=x,
            )
        return beside + y


class Flatten(Module):
    """The dims from `start` to `end`, both included, as one: (batch, all the rest) by default.

    >>> jt.nn.Flatten()(np.ones((2, 3, 4, 5))).shape
    (2, 60)
    """

    def __init__(self, start: int = 1, end: int = -1) -> None:
        self.start, self.end = start, end

    def __call__(self, x: Array) -> Array:
        shape = np.shape(x)
        start, end = (n + len(shape) if n < 0 else n for n in (self.start, self.end))
        if not 0 <= start <= end < len(shape):
            refuse(
                self,
                f"joins the dims {self.start} to {self.end}, and x has {len(shape)} dims",
                "give it an array with these dims, or other start= and end=.",
                x=x,
            )
        joined = math.prod(shape[start : end + 1])
        return jt.reshape(x, (*shape[:start], joined, *shape[end + 1 :]))


class SelectInput(Module):
    """Of several inputs the one at `index`, or a tuple of those at several; inputs may be nested.

    >>> jt.nn.SelectInput(1)("a", "b")
    'b'
    >>> jt.nn.SelectInput((0, (2, 1)))("a", "b", "c")
    ('a', ('c', 'b'))
    """

    def __init__(self, index: Any) -> None:
        self.index = index

    def __call__(self, *inputs: Any) -> Any:
        def pick(index: Any) -> Any:
            if isinstance(index, (tuple, list)):
                return tuple(pick(i) for i in index)
            if not -len(inputs) <= index < len(inputs):
                refuse(
                    self,
                    f"picks input {index}, and there are {len(inputs)}",
                    "inputs are counted from 0.",
                    IndexError,
                )
            return inputs[index]

        return pick(self.index)


class Merge(Module):
    """Several inputs, each through a Linear of its own, summed, and the `activation` of the sum.

    One bias serves all. Settings are those of `nn.Linear`.

    >>> merge = jt.nn.Merge(4, jt.nn.tanh)
    >>> merge(np.ones((2, 3), np.float32), np.ones((2, 5), np.float32)).shape
    (2, 4)
    """

    def __init__(
        self, features: int, activation: Callable[[Any], Any] = identity, **settings: Any
    ) -> None:
        self.activation = activation
        self.branches: list[Linear] | None = None
        self.settings: Any = lambda bias: Linear(features, **{**settings, "bias": bias})
        self.bias = settings.get("bias", True)

    def build(self, *inputs: Array) -> None:
        if self.branches is None:
            self.branches = [self.settings(i == 0 and self.bias) for i in range(len(inputs))]
            del self.settings

    def __call__(self, *inputs: Array) -> Array:
        branches = self.branches or []
        if len(inputs) != len(branches) or not inputs:
            refuse(
                self,
                f"was made for {len(branches)} inputs, and was given {len(inputs)}",
                "call it with as many as the first time, or make another.",
                TypeError,
            )
        total = branches[0](inputs[0])
        for branch, x in zip(branches[1:], inputs[1:], strict=True):
            total = total + branch(x)
        return self.activation(total)
