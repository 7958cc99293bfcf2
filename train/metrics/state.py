"""What metrics are made of: trees of sums; labels, predictions and weights in one form."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NoReturn, TypeVar

import numpy as np

import jitney as jt

M = TypeVar("M", bound="Metric")
C = TypeVar("C", bound=type)


def metric(*settings: str) -> Callable[[C], C]:
    """A class whose fields but `settings` are sums."""

    def enter(cls: C) -> C:
        frozen: Any = dataclass(frozen=True)
        made: C = jt.register_pytree(frozen(cls), static_fields=settings)
        return made

    return enter


def sums() -> Any:
    """A field of a metric: a sum that starts from 0."""
    return field(default_factory=lambda: np.zeros(()), kw_only=True)


class Metric:
    """What all metrics do; a subclass has `update(labels, predictions, weights=None)` and `result()`."""

    def update(self: M, labels: Any, predictions: Any, weights: Any = None) -> M:
        """The metric of what it has seen and a batch more."""
        raise NotImplementedError

    def result(self) -> Any:
        """The number, or array of numbers, of all that was seen; NaN if there was nothing."""
        raise NotImplementedError

    def __add__(self: M, other: M) -> M:
        """The metric of what both have seen."""
        if jt.tree.structure(self) != jt.tree.structure(other):
            jt.errors.complain(
                jt.errors.TransformError,
                f"{type(self).__name__} and {type(other).__name__} of other settings do not add up",
                "add metrics of one class with one choice of settings; numbers by update.",
            )
        return jt.tree.map(lambda a, b: a + b, self, other)

    def _with(self: M, **sums: Any) -> M:
        """The same settings, and of each sum so much more."""
        leaves = {name: getattr(self, name) + more for name, more in sums.items()}
        made = object.__new__(type(self))
        for name in self.__dataclass_fields__:  # type: ignore[attr-defined]
            object.__setattr__(made, name, leaves.get(name, getattr(self, name)))
        return made


def share(part: Any, whole: Any, none: float = np.nan) -> Any:
    """part / whole, and `none` where the whole is 0."""
    return jt.where(whole == 0, none, part / jt.where(whole == 0, 1.0, whole))[()]


def weights_of(shape: tuple[int, ...], weights: Any, what: str) -> Any:
    """How much each example counts, as float64."""
    if weights is None:
        return np.ones(shape)
    w = jt.asarray(weights).astype(np.float64)
    if w.ndim < len(shape) and w.shape == shape[: w.ndim]:
        w = w.reshape((*w.shape, *(1,) * (len(shape) - w.ndim)))  # one for each sequence, say
    try:
        return jt.broadcast_to(w, shape)
    except ValueError:
        refuse(f"{what} have the shape {shape}, and weights {w.shape}", "weights", w)


def refuse(what: str, name: str, x: Any, remedy: str = "give one for each example.") -> NoReturn:
    """ShapeError about the argument `name`."""
    jt.errors.complain(jt.errors.ShapeError, what, remedy, operands={name: x})


def counted(x: Any, w: Any, without: Any = 0) -> Any:
    """x, and `without` where the weight is 0: what is masked out may hold anything."""
    return jt.where(w == 0, without, x)


def classes_of(labels: Any, predictions: Any, threshold: float) -> tuple[Any, Any]:
    """Labels and predicted classes, in one shape, of classes or of scores.

    Predictions with an axis more than labels are scores of classes; floats without, of class 1.
    """
    true, said = jt.asarray(labels), jt.asarray(predictions)
    if said.ndim == true.ndim + 1:
        said = jt.argmax(said, axis=-1)
    elif said.dtype.kind == "f":
        said = said >= threshold
    if true.shape != said.shape:
        jt.errors.complain(
            jt.errors.ShapeError,
            f"labels have the shape {true.shape}, and predictions {jt.shape(predictions)}",
            "give one prediction for each label: a class, a score, or scores along a last axis.",
            operands={"labels": labels, "predictions": predictions},
        )
    return true, said


def own_scores(labels: Any, scores: Any, weights: Any) -> tuple[Any, Any, Any]:
    """Scores, which have an axis more than labels; those of the labels; how much each counts."""
    true, rows = jt.asarray(labels), jt.asarray(scores)
    if rows.shape[:-1] != true.shape or rows.ndim != true.ndim + 1:
        jt.errors.complain(
            jt.errors.ShapeError,
            f"labels have the shape {true.shape}, and scores {rows.shape}",
            "give scores of shape labels.shape + (classes,).",
            operands={"labels": labels, "scores": scores},
        )
    w = weights_of(true.shape, weights, "labels")
    true = no_negative(counted(true, w), rows.shape[-1])
    return rows, jt.ops.batch_gather(rows, true[..., None])[..., 0], w


def no_negative(x: Any, n: int) -> Any:
    """Numbers as an index of an axis of size n, where negative ones are out of range."""
    return jt.where(x < 0, x - n, x).astype(np.int64)
