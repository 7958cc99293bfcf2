"""Losses: how far predictions are from what they should be, one number for each example or all.

    loss = nn.losses.sparse_softmax_cross_entropy(logits, labels, mask=mask)

Each gives first the loss of every example: elements of `predictions` for those of elements, rows for
those of rows (the class axis, or the axis of a vector, is the last one). `weights` multiplies them, and
where `mask` is False they do not count, whatever they are; both are broadcast to the losses' shape.
Then `reduction` is

- `"mean"`: the sum over the sum of weights, so padding and weights do not change the scale; 0 if
  everything is masked;
- `"sum"`, or `"none"`.

Predictions and targets have one shape, so that nothing is broadcast by accident. All are stable: logits
of 1e4 give a finite loss and gradient. Of float16 and bfloat16 losses are computed, and given, in
float32. Labels are checked, in compiled code too.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

import jitney as jt

from .activations import log_softmax
from .ctc import ctc as ctc
from .faults import Array, check, complain
from .reductions import array_of, wide
from .reductions import reduced as reduced

__all__ = [
    "contrastive",
    "cosine",
    "ctc",
    "hinge",
    "huber",
    "kl_divergence",
    "log_loss",
    "mae",
    "mse",
    "reduced",
    "sigmoid_cross_entropy",
    "softmax_cross_entropy",
    "sparse_softmax_cross_entropy",
    "triplet",
]


def __dir__() -> list[str]:
    return __all__


def _loss(of_examples: Callable[..., Array]) -> Callable[..., Array]:
    """A loss, with `weights`, `mask` and `reduction`, of a function that gives those of the examples.
    It is told of the mask if it asks, for labels that are masked are not checked."""
    own = list(inspect.signature(of_examples).parameters.values())
    asks = any(parameter.name == "mask" for parameter in own)

    @functools.wraps(of_examples)
    def loss(
        *args: Any, weights: Any = None, mask: Any = None, reduction: str = "mean", **settings: Any
    ) -> Array:
        if asks:
            settings["mask"] = mask
        return reduced(of_examples(*args, **settings), weights, mask, reduction)

    shared = list(inspect.signature(loss, follow_wrapped=False).parameters.values())[1:-1]
    own = [parameter for parameter in own if parameter.name != "mask"]
    loss.__signature__ = inspect.Signature([*own, *shared])  # type: ignore[attr-defined]
    return loss


@_loss
def mse(predictions: Array, targets: Array) -> Array:
    """The square of the difference.

    >>> float(jt.nn.losses.mse(np.array([1.0, 2.0]), np.array([0.0, 4.0])))
    2.5
    """
    difference = _difference("mse", predictions, targets)
    return difference * difference


@_loss
def mae(predictions: Array, targets: Array) -> Array:
    """The magnitude of the difference.

    >>> float(jt.nn.losses.mae(np.array([1.0, 2.0]), np.array([0.0, 4.0]), reduction="sum"))
    3.0
    """
    return np.abs(_difference("mae", predictions, targets))


@_loss
def huber(predictions: Array, targets: Array, delta: float = 1.0) -> Array:
    """Half of the square of a difference up to `delta`, and straight beyond.

    >>> jt.nn.losses.huber(np.array([0.5, 3.0]), np.zeros(2), reduction="none")
    array([0.125, 2.5  ])
    """
    size = np.abs(_difference("huber", predictions, targets))
    inside = np.minimum(size, delta)
    return inside * (size - 0.5 * inside)


@_loss
def hinge(scores: Array, labels: Array, *, mask: Any = None) -> Array:
    """How much less than 1 a score is on the side of its label, which is -1 or 1.

    >>> jt.nn.losses.hinge(np.array([2.0, 0.5]), np.array([1, -1]), reduction="none")
    array([0. , 1.5])
    """
    scores, labels = _pair("hinge", scores, labels)
    _check_labels(
        np.abs(labels) == 1, mask, "-1 or 1: 2 * labels - 1 makes them of 0 and 1", labels
    )
    return np.maximum(1 - labels * scores, 0)


@_loss
def log_loss(probabilities: Array, labels: Array, eps: float = 1e-7, *, mask: Any = None) -> Array:
    """Minus the logarithm of the probability that was given to what is the case; labels are 0 or 1, or
    between. `eps` keeps it finite. Where there are logits, `sigmoid_cross_entropy` is exact.

    >>> float(jt.nn.losses.log_loss(np.array([0.5]), np.array([1.0]), eps=0.0).round(6))
    0.693147
    """
    p, y = _pair("log_loss", probabilities, labels)
    what = "from 0 to 1, as probabilities are: of logits there is sigmoid_cross_entropy"
    _check_labels((p >= 0) & (p <= 1) | np.isnan(p), mask, what, p, "probabilities")
    return -y * np.log(p + eps) - (1 - y) * np.log(1 - p + eps)


@_loss
def sigmoid_cross_entropy(
    logits: Array, labels: Array, pos_weight: Any = None, *, label_smoothing: float = 0.0
) -> Array:
    """Cross entropy of labels from 0 to 1, each by itself, and the sigmoid of the logits.

    `pos_weight` multiplies what labels of 1 lose; `label_smoothing` draws labels to one half.

    >>> jt.nn.losses.sigmoid_cross_entropy(np.array([0.0, -1e4]), np.ones(2), reduction="none").round(3)
    array([6.93e-01, 1.00e+04])
    """
    x, y = _pair("sigmoid_cross_entropy", logits, labels)
    y = y * (1 - label_smoothing) + 0.5 * label_smoothing if label_smoothing else y
    falling = np.maximum(-x, 0) + np.log1p(np.exp(-np.abs(x)))  # softplus of -x
    share = 1 if pos_weight is None else 1 + (pos_weight - 1) * y
    return (1 - y) * x + share * falling


@_loss
def softmax_cross_entropy(logits: Array, labels: Array, *, label_smoothing: float = 0.0) -> Array:
    """Cross entropy of rows of probabilities and the softmax of rows of logits, shape `(..., classes)`.

    `label_smoothing` takes that share of each label and spreads it over all classes.

    >>> row = np.array([[0.0, 0.0, -1e4]])
    >>> float(jt.nn.losses.softmax_cross_entropy(row, np.array([[0.5, 0.5, 0.0]])).round(6))
    0.693147
    """
    x, y = _pair("softmax_cross_entropy", logits, labels)
    if label_smoothing:
        y = y * (1 - label_smoothing) + label_smoothing / x.shape[-1]
    return -(y * log_softmax(x)).sum(axis=-1)


def sparse_softmax_cross_entropy(
    logits: Array,
    labels: Array,
    class_weights: Any = None,
    *,
    label_smoothing: float = 0.0,
    weights: Any = None,
    mask: Any = None,
    reduction: str = "mean",
) -> Array:
    """Minus the logarithm of the probability of a class: `logits` of shape `(..., classes)`, `labels`
    ints of shape `(...)`. Labels that are masked may be any number.

    `class_weights`, shape `(classes,)`, are weights by label, on top of `weights`. Raises IndexError for
    a label that is no class.

    >>> logits = np.array([[0.0, 1e4], [3.0, 3.0]])
    >>> jt.nn.losses.sparse_softmax_cross_entropy(logits, np.array([0, 1]), reduction="none").round(3)
    array([1.00e+04, 6.93e-01])
    """
    name, logits, labels = "sparse_softmax_cross_entropy", wide(logits), array_of(labels)
    if labels.shape != logits.shape[:-1] or labels.dtype.kind not in "iu":
        complain(
            jt.errors.ShapeError,
            f"{name} takes a class for each row of logits",
            "give ints of the logits' shape without its last axis; for rows of probabilities there is "
            "softmax_cross_entropy.",
            logits=logits,
            labels=labels,
        )
    if mask is not None:
        labels = np.where(mask, labels, 0)
    _check_classes(labels, logits)
    log_p = log_softmax(logits)
    losses = -np.take_along_axis(log_p, labels[..., None], axis=-1)[..., 0]
    if label_smoothing:
        losses = (1 - label_smoothing) * losses - label_smoothing * log_p.mean(axis=-1)
    if class_weights is not None:
        class_weights = array_of(class_weights)
        if class_weights.shape != logits.shape[-1:]:
            complain(
                jt.errors.ShapeError,
                f"{name} has {class_weights.size} class_weights for {logits.shape[-1]} classes",
                "give one for each.",
                logits=logits,
                class_weights=class_weights,
            )
        by_label = class_weights[labels]
        weights = by_label if weights is None else weights * by_label
    return reduced(losses, weights, mask, reduction)


@_loss
def kl_divergence(log_predictions: Array, targets: Array) -> Array:
    """How far rows of probabilities, `targets`, are from others, whose logarithms are given: the sum
    over a row of `t * (log(t) - log_p)`, where 0 counts nothing.

    >>> float(jt.nn.losses.kl_divergence(np.log([[0.5, 0.5]]), np.array([[1.0, 0.0]])).round(6))
    0.693147
    """
    log_p, t = _pair("kl_divergence", log_predictions, targets)
    log_t = np.log(np.where(t > 0, t, 1))
    return (t * (log_t - log_p)).sum(axis=-1)


@_loss
def cosine(predictions: Array, targets: Array) -> Array:
    """1 less the cosine of the angle between rows; of a row of zeros that is 1.

    >>> float(jt.nn.losses.cosine(np.array([[1.0, 1.0]]), np.array([[2.0, 2.0]])).round(6))
    0.0
    """
    a, b = _pair("cosine", predictions, targets)
    norms = np.maximum((a * a).sum(axis=-1) * (b * b).sum(axis=-1), np.finfo(a.dtype).tiny)
    return 1 - (a * b).sum(axis=-1) / np.sqrt(norms)


@_loss
def triplet(anchors: Array, positives: Array, negatives: Array, margin: float = 1.0) -> Array:
    """How much less than `margin` rows are nearer to what belongs to them than to what does not.

    >>> a, far = np.zeros((1, 2)), np.array([[3.0, 4.0]])
    >>> float(jt.nn.losses.triplet(a, far, a).round(3)), float(jt.nn.losses.triplet(a, a, far).round(3))
    (6.0, 0.0)
    """
    near, far = (_distance("triplet", anchors, others) for others in (positives, negatives))
    return np.maximum(near - far + margin, 0)


@_loss
def contrastive(first: Array, second: Array, same: Array, margin: float = 1.0) -> Array:
    """The square of the distance of rows that are the `same` (1), and of what others (0) lack to
    `margin`.

    >>> a, b = np.zeros((2, 1)), np.array([[0.5], [0.25]])
    >>> jt.nn.losses.contrastive(a, b, np.array([1, 0]), reduction="none").round(3)
    array([0.25 , 0.562])
    """
    distance = _distance("contrastive", first, second)
    lacking = np.maximum(margin - distance, 0)
    return same * distance * distance + (1 - same) * lacking * lacking


def _pair(name: str, predictions: Array, targets: Array) -> tuple[Array, Array]:
    """Predictions and targets as floats of one dtype, that of the predictions, and of one shape."""
    x, y = wide(predictions), array_of(targets)
    if x.shape != y.shape:
        remedy = "reshape one of them: x[:, 0] drops an axis of one element, x[:, None] adds one."
        if name == "softmax_cross_entropy" and y.shape == x.shape[:-1]:
            remedy = "of classes there is sparse_softmax_cross_entropy; jt.ops.one_hot makes rows."
        complain(
            jt.errors.ShapeError,
            f"{name} takes predictions and targets of one shape",
            remedy,
            predictions=x,
            targets=y,
        )
    return x, y if y.dtype == x.dtype else y.astype(x.dtype)


def _check_labels(fit: Array, mask: Any, wanted: str, given: Array, name: str = "labels") -> None:
    """The given ones, where they are not masked, fit."""
    fit = fit if mask is None else fit | ~(array_of(mask) != 0)
    check(
        fit, ValueError, f"there are {name} of another kind", f"they are {wanted}.", **{name: given}
    )


def _check_classes(labels: Array, logits: Array) -> None:
    count = logits.shape[-1]
    check(
        (labels >= 0) & (labels < count),
        IndexError,
        f"a label is none of the {count} classes of logits",
        f"give labels from 0 to {count - 1}; where mask is False they may be anything.",
        logits=logits,
        labels=labels,
    )


def _difference(name: str, predictions: Array, targets: Array) -> Array:
    x, y = _pair(name, predictions, targets)
    return x - y


def _distance(name: str, first: Array, second: Array) -> Array:
    """The Euclidean distance of rows. The root has a slope of 0 where they meet, not an infinite one."""
    difference = _difference(name, first, second)
    square = (difference * difference).sum(axis=-1)
    apart = square > 0
    return np.where(apart, np.sqrt(np.where(apart, square, np.ones_like(square))), 0 * square)
