"""Layers that are products with a matrix: Linear, and Embedding, which reads its rows."""

from __future__ import annotations

from typing import Any

import numpy as np

import jitney as jt

from .faults import Array, check, complain, refuse
from .initializers import GLOROT, made, normal, penalize, starting
from .module import Module
from .reductions import array_of


class Linear(Module):
    """`x @ w + b`, over the last axis of x.

    `nn.Linear(10)` finds out at the first call how many features come in, `nn.Linear(8, 10)` says it.

    - `bias`: whether there is a `b`.
    - `w_init`, `b_init`: what `w`, of shape (in, out), and `b`, (out,), begin as: an initialiser, a
      number, or an array. (PyTorch's weight is `w.T`.)
    - `w_reg`, `b_reg`: penalties that `nn.regularization(model)` adds up.
    - `dtype`, `rng`: of the parameters, and what they are drawn from.

    Raises jt.errors.ShapeError if x has another number of features.

    >>> jt.nn.Linear(8, 10)(np.ones((4, 8), np.float32)).shape
    (4, 10)
    """

    def __init__(
        self,
        *features: int,
        bias: bool = True,
        w_init: Any = GLOROT,
        b_init: Any = 0,
        w_reg: Any = None,
        b_reg: Any = None,
        dtype: Any = np.float32,
        rng: Any = None,
    ) -> None:
        given, self.features = sizes(self, features, "(features) or (in, out)")
        self.w: Array = None
        self.b: Array = None
        penalize(self, w=w_reg, b=b_reg)
        self.start: Any = starting(dtype, rng, w=w_init, b=b_init if bias else None)
        if given is not None:
            self.make(given)

    def make(self, given: int) -> None:
        """The parameters, for so many features that come in."""
        self.start(self, w=(given, self.features), b=(self.features,))

    def build(self, x: Array) -> None:
        if self.w is None:
            self.make(check_features(self, x))

    def __call__(self, x: Array) -> Array:
        check_features(self, x, self.w.shape[0])
        y = x @ self.w
        return y if self.b is None else y + self.b


class Embedding(Module):
    """A row of features for each of `count` ids.

    `w`, of shape (count, features), begins as `w_init`: normal, with variance `1 / features`.
    Ids are integers from 0 to `count - 1`; others are an IndexError.

    Raises jt.errors.DTypeError if the ids are no integers.

    >>> words = jt.nn.Embedding(100, 16)
    >>> words(np.array([[3, 1, 4]])).shape
    (1, 3, 16)
    """

    def __init__(
        self,
        count: int,
        features: int,
        *,
        w_init: Any = None,
        w_reg: Any = None,
        dtype: Any = np.float32,
        rng: Any = None,
    ) -> None:
        start = normal(features**-0.5) if w_init is None else w_init
        self.w: Array = made(start, (count, features), dtype, rng)
        penalize(self, w=w_reg)

    def __call__(self, ids: Array) -> Array:
        ids, count = array_of(ids), self.w.shape[0]
        if ids.dtype.kind not in "iu":
            refuse(
                self,
                "looks up ids, and these are no integers",
                "pass integers: ids.astype(np.int64).",
                jt.errors.DTypeError,
                ids=ids,
            )
        check(
            (ids >= 0) & (ids < count),
            IndexError,
            f"Embedding has rows for the ids 0 to {count - 1}, and an id is none of them",
            "make it for more, or give padding a row of its own.",
            ids=ids,
        )
        return self.w[ids]

    def attend(self, x: Array) -> Array:
        """`x @ w.T`: the score of each id, by the same rows."""
        check_features(self, x, self.w.shape[1])
        return x @ self.w.T


def sizes(layer: Any, given: tuple[Any, ...], forms: str, behind: int = 0) -> tuple[Any, ...]:
    """How many features come in, or None, how many go out, and so many settings behind them."""
    what, numbers = f"{type(layer).__name__} was given {given}", given[: len(given) - behind]
    if len(numbers) not in (1, 2):
        complain(TypeError, what, f"it takes {forms}; settings are given by name.")
    if any(not isinstance(n, (int, np.integer)) or n < 1 for n in numbers):
        complain(ValueError, what, f"it takes {forms}, sizes of at least 1.")
    first = None if len(numbers) == 1 else int(numbers[0])
    return first, int(numbers[-1]), *given[len(numbers) :]


def check_features(layer: Any, x: Array, wanted: int | None = None, axis: int = -1) -> int:
    """How many features x has along an axis; ShapeError if not `wanted`, or without that axis."""
    shape = np.shape(x)
    if not -len(shape) <= axis < len(shape):
        refuse(
            layer,
            f"needs features along axis {axis}, and x has {len(shape)} dims",
            "give it an array with a batch of rows: x[None] makes one row a batch.",
            x=x,
        )
    found = shape[axis]
    if wanted is not None and found != wanted:
        last = getattr(layer, "channels_last", None) is False and shape[-1] == wanted
        first = ", or channels_last=True, as these have it" if last else ""
        refuse(
            layer,
            f"was made for {wanted} features, and x has {found} along axis {axis}",
            f"give it {wanted} features{first}, or make the layer for {found}; its first size may be "
            "left out.",
            x=x,
        )
    return found
