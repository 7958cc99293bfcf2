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
float32. Where targets are ints of a class they are checked, in compiled code too.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import jitney as jt

from .activations import log_softmax
from .ctc import ctc as ctc
from .faults import Array, complain
from .reductions import reduced as reduced
from .reductions import wide

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


def mse(
    predictions: Array,
    targets: Array,
    *,
    weights: Any = None,
    mask: Any = None,
    reduction: str = "mean",
) -> Array:
    """The square of the difference.

    >>> float(jt.nn.losses.mse(np.array([1.0, 2.0]), np.array([0.0, 4.0])))
    2.5
    """
    difference = _difference("mse", predictions, targets)
    return reduced(difference * difference, weights, mask, reduction)


def mae(
    predictions: Array,
    targets: Array,
    *,
    weights: Any = None,
    mask: Any = None,
    reduction: str = "mean",
) -> Array:
    """The magnitude of the difference.

    >>> float(jt.nn.losses.mae(np.array([1.0, 2.0]), np.array([0.0, 4.0]), reduction="sum"))
    3.0
    """
    return reduced(np.abs(_difference("mae", predictions, targets)), weights, mask, reduction)


def huber(
    predictions: Array,
    targets: Array,
    delta: float = 1.0,
    *,
    weights: Any = None,
    mask: Any = None,
    reduction: str = "mean",
) -> Array:
    """Half of the square of a difference up to `delta`, and straight beyond.

    >>> jt.nn.losses.huber(np.array([0.5, 3.0]), np.zeros(2), reduction="none")
    array([0.125, 2.5  ])
    """
    size = np.abs(_difference("huber", predictions, targets))
    inside = np.minimum(size, delta)
    return reduced(inside * (size - 0.5 * inside), weights, mask, reduction)


def hinge(
    scores: Array,
    labels: Array,
    *,
    weights: Any = None,
    mask: Any = None,
    reduction: str = "mean",
) -> Array:
    """How much less than 1 a score is on the side of its label, which is -1 or 1.

    >>> jt.nn.losses.hinge(np.array([2.0, 0.5]), np.array([1, -1]), reduction="none")
    array([0. , 1.5])
    """
    scores, labels = _pair("hinge", scores, labels)
    return reduced(np.maximum(1 - labels * scores, 0), weights, mask, reduction)


def log_loss(
    probabilities: Array,
    labels: Array,
    eps: float = 1e-7,
    *,
    weights: Any = None,
    mask: Any = None,
    reduction: str = "mean",
) -> Array:
    """Minus the logarithm of the probability that was given to what is the case; labels are 0 or 1, or
    between. `eps` keeps it finite. Where there are logits, `sigmoid_cross_entropy` is exact.

    >>> float(jt.nn.losses.log_loss(np.array([0.5]), np.array([1.0]), eps=0.0).round(6))
    0.693147
    """
    p, y = _pair("log_loss", probabilities, labels)
    losses = -y * np.log(p + eps) - (1 - y) * np.log(1 - p + eps)
    return reduced(losses, weights, mask, reduction)


def sigmoid_cross_entropy(
    logits: Array,
    labels: Array,
    pos_weight: Any = None,
    *,
    label_smoothing: float = 0.0,
    weights: Any = None,
    mask: Any = None,
    reduction: str = "mean",
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
    return reduced((1 - y) * x + share * falling, weights, mask, reduction)


def softmax_cross_entropy(
    logits: Array,
    labels: Array,
    *,
    label_smoothing: float = 0.0,
    weights: Any = None,
    mask: Any = None,
    reduction: str = "mean",
) -> Array:
    """Cross entropy of rows of probabilities and the softmax of rows of logits, shape `(..., classes)`.

    `label_smoothing` takes that share of each label and spreads it over all classes.

    >>> row = np.array([[0.0, 0.0, -1e4]])
    >>> float(jt.nn.losses.softmax_cross_entropy(row, np.array([[0.5, 0.5, 0.0]])).round(6))
    0.693147
    """
    x, y = _pair("softmax_cross_entropy", logits, labels)
    if label_smoothing:
        y = y * (1 - label_smoothing) + label_smoothing / x.shape[-1]
    return reduced(-(y * log_softmax(x)).sum(axis=-1), weights, mask, reduction)


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
    logits, labels = wide(logits), np.asarray(labels) if np.isscalar(labels) else labels
    if np.shape(labels) != logits.shape[:-1] or labels.dtype.kind not in "iu":
        complain(
            jt.errors.ShapeError,
            "sparse_softmax_cross_entropy takes a class for each row of logits",
            "give ints of the logits' shape without its last axis; for rows of probabilities there is "
            "softmax_cross_entropy.",
            operands={"logits": logits, "labels": labels},
        )
    if mask is not None:
        labels = np.where(mask, labels, 0)
    log_p = log_softmax(logits)
    losses = -np.take_along_axis(log_p, labels[..., None], axis=-1)[..., 0]
    if label_smoothing:
        losses = (1 - label_smoothing) * losses - label_smoothing * log_p.mean(axis=-1)
    if class_weights is not None:
        by_label = class_weights[labels]
        weights = by_label if weights is None else weights * by_label
    return reduced(losses, weights, mask, reduction)


def kl_divergence(
    log_predictions: Array,
    targets: Array,
    *,
    weights: Any = None,
    mask: Any = None,
    reduction: str = "mean",
) -> Array:
    """How far rows of probabilities, `targets`, are from others, whose logarithms are given: the sum
    over a row of `t * (log(t) - log_p)`, where 0 counts nothing.

    >>> float(jt.nn.losses.kl_divergence(np.log([[0.5, 0.5]]), np.array([[1.0, 0.0]])).round(6))
    0.693147
    """
    log_p, t = _pair("kl_divergence", log_predictions, targets)
    log_t = np.log(np.where(t > 0, t, 1))
    return reduced((t * (log_t - log_p)).sum(axis=-1), weights, mask, reduction)


def cosine(
    predictions: Array,
    targets: Array,
    *,
    weights: Any = None,
    mask: Any = None,
    reduction: str = "mean",
) -> Array:
    """1 less the cosine of the angle between rows; of a row of zeros that is 1.

    >>> float(jt.nn.losses.cosine(np.array([[1.0, 1.0]]), np.array([[2.0, 2.0]])).round(6))
    0.0
    """
    a, b = _pair("cosine", predictions, targets)
    norms = np.maximum((a * a).sum(axis=-1) * (b * b).sum(axis=-1), np.finfo(a.dtype).tiny)
    return reduced(1 - (a * b).sum(axis=-1) / np.sqrt(norms), weights, mask, reduction)


def triplet(
    anchors: Array,
    positives: Array,
    negatives: Array,
    margin: float = 1.0,
    *,
    weights: Any = None,
    mask: Any = None,
    reduction: str = "mean",
) -> Array:
    """How much less than `margin` rows are nearer to what belongs to them than to what does not.

    >>> a, far = np.zeros((1, 2)), np.array([[3.0, 4.0]])
    >>> float(jt.nn.losses.triplet(a, far, a).round(3)), float(jt.nn.losses.triplet(a, a, far).round(3))
    (6.0, 0.0)
    """
    near = _distance("triplet", anchors, positives)
    return reduced(
        np.maximum(near - _distance("triplet", anchors, negatives) + margin, 0),
        weights,
        mask,
        reduction,
    )


def contrastive(
    first: Array,
    second: Array,
    same: Array,
    margin: float = 1.0,
    *,
    weights: Any = None,
    mask: Any = None,
    reduction: str = "mean",
) -> Array:
    """The square of the distance of rows that are the `same` (1), and of what others (0) lack to
    `margin`.

    >>> a, b = np.zeros((2, 1)), np.array([[0.5], [0.25]])
    >>> jt.nn.losses.contrastive(a, b, np.array([1, 0]), reduction="none").round(3)
    array([0.25 , 0.562])
    """
    distance = _distance("contrastive", first, second)
    lacking = np.maximum(margin - distance, 0)
    losses = same * distance * distance + (1 - same) * lacking * lacking
    return reduced(losses, weights, mask, reduction)


def _pair(name: str, predictions: Array, targets: Array) -> tuple[Array, Array]:
    """Predictions and targets as floats of one dtype, that of the predictions, and of one shape."""
    x = wide(predictions)
    if np.shape(x) != np.shape(targets):
        complain(
            jt.errors.ShapeError,
            f"{name} takes predictions and targets of one shape",
            "reshape one of them: x[:, 0] drops an axis of one element, x[:, None] adds one.",
            operands={"predictions": x, "targets": targets},
        )
    y = targets if hasattr(targets, "dtype") else np.asarray(targets)
    return x, y if y.dtype == x.dtype else y.astype(x.dtype)


def _difference(name: str, predictions: Array, targets: Array) -> Array:
    x, y = _pair(name, predictions, targets)
    return x - y


def _distance(name: str, first: Array, second: Array) -> Array:
    """The Euclidean distance of rows. The root has a slope of 0 where they meet, not an infinite one."""
    difference = _difference(name, first, second)
    square = (difference * difference).sum(axis=-1)
    apart = square > 0
    return np.where(apart, np.sqrt(np.where(apart, square, np.ones_like(square))), 0 * square)
